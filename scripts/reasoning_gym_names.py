"""Write src/gem/envs/data/reasoning_gym/generators.txt, the names of the generators in the installed reasoning-gym.

python scripts/reasoning_gym_names.py
"""

from __future__ import annotations

from pathlib import Path

from reasoning_gym.factory import DATASETS

NAMES_FILE = Path(__file__).resolve().parents[1] / "src" / "gem" / "envs" / "data" / "reasoning_gym" / "generators.txt"


def main() -> None:
    NAMES_FILE.write_text(render(sorted(DATASETS)), encoding="utf-8")


def render(names: list[str]) -> str:
    return "".join(f"{name}\n" for name in names)


if __name__ == "__main__":
    main()
