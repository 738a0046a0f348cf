"""Write the tasks of an environment of gem as a data set of RL2. See README.md."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from gem.integrations import make_tasks

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("file", help="a .jsonl file")
parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
parser.add_argument("--wrappers", default="", help="such as python_tool,concat_chat")
parser.add_argument("--tasks", type=int, default=4096, help="number of seeds")
parser.add_argument("--seed", type=int, default=0, help="another seed gives other tasks")
options = parser.parse_args()
tasks = make_tasks(options.env, options.tasks, seed=options.seed, wrappers=options.wrappers)
lines = [json.dumps(task.to_row()) + "\n" for task in tasks]
Path(options.file).write_text("".join(lines), encoding="utf-8")
