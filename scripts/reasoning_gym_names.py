"""Write src/gem/envs/reasoning_gym_names.py from the installed reasoning-gym.

python scripts/reasoning_gym_names.py
"""

from __future__ import annotations

from pathlib import Path

from reasoning_gym.factory import DATASETS

MODULE = Path(__file__).resolve().parents[1] / "src" / "gem" / "envs" / "reasoning_gym_names.py"


def main() -> None:
    head = MODULE.read_text(encoding="utf-8").partition("NAMES:")[0]
    MODULE.write_text(head + render(sorted(DATASETS)), encoding="utf-8")


def render(names: list[str]) -> str:
    lines = "".join(f'    "{name}",\n' for name in names)
    return f"NAMES: tuple[str, ...] = (\n{lines})\n"


if __name__ == "__main__":
    main()
