"""Take the screenshots of docs/viewer.md: python scripts/viewer_screenshots.py RUN

RUN is the folder of a training run, such as runs/demo of `make demo`. An episode with tools is played for the second
picture. Needs Chromium, its driver and selenium (see `make test-viewer`).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from gem.policies import ScriptedPolicy
from gem.registry import make
from gem.rollout import collect
from gem.tools.python.tool import PythonCodeTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.trajectory import write_jsonl
from gem.vector import VectorEnv
from gem.viewer.page import build_file
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "viewer"))
from browser import Browser  # noqa: E402

REPLIES = [
    "I list the candidates first.\n<python>print(sorted(range(1, 11))[len(range(1, 11)) // 2]</python>",
    "A bracket is missing.\n<python>print(sorted(range(1, 11))[len(range(1, 11)) // 2])</python>",
    "The middle is 6: \\boxed{6}",
    "\\boxed{3}",
    "\\boxed{2}",
]


def play_with_tools(path: Path) -> None:
    game = make("game:GuessTheNumber-v0-easy", seed=2)
    env = ToolEnvWrapper(game, [PythonCodeTool()])
    write_jsonl(path, collect(VectorEnv.of([lambda: env]), ScriptedPolicy(REPLIES), episodes=1))


def main() -> None:
    run = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the page shows the paths as they are given
        shutil.copytree(run, "runs/demo", ignore=shutil.ignore_patterns("*.pt", "*.safetensors"))
        play_with_tools(Path("tools.jsonl"))
        recordings = Recordings([Path("runs/demo"), Path("tools.jsonl")])
        page = Path(folder) / "view.html"
        page.write_text(build_file(recordings, Vocabulary.load(None, recordings.tokenizer())), encoding="utf-8")
        last, trained = len(recordings.rows), len(recordings.rows) - 1
        for name, address, options in [
            ("list", "", {}),
            ("conversation", f"#ep{last}", {}),
            ("tokens", f"#ep{trained}-tokens", {}),
            ("dark", f"#ep{last}", {"dark": True}),
            ("phone", f"#ep{last}", {"width": 390, "height": 720, "phone": True}),
        ]:
            with Browser(**{"width": 1100, "height": 720, **options}) as browser:
                browser.open(page, address)
                browser.run("document.querySelector('#rows [aria-current]')?.scrollIntoView({block: 'center'})")
                if name == "list":
                    browser.run("document.querySelector('#filters details').open = true")
                browser.driver.save_screenshot(str(ROOT / "docs" / "images" / f"viewer-{name}.png"))


if __name__ == "__main__":
    main()
