"""Tasks and policies for the loops of clients, and the stub dataset that the tasks read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gem.wrappers.wrapper_factory import get_wrapper_fns

GAME, GAME_TURNS = "game:GuessTheNumber-v0-easy", 4
ROWS = [{"problem": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(1, 9)]


def play(prompt: str) -> str:
    """A policy that wins every task below, and reads only the prompt."""
    if question := re.findall(r"What is (\d+) \+ (\d+)\?", prompt):
        answer = str(sum(map(int, question[-1])))
        return f"<answer>{answer}</answer> \\boxed{{{answer}}}"
    if "<python>" in prompt and "Code execution result: " not in prompt:
        return "<python>print(6 * 7)</python>"
    low, high = map(int, re.findall(r"between (\d+) and (\d+)", prompt)[-1])
    for number, hint in re.findall(r": (\d+) is too (high|low)", prompt):
        low, high = (int(number) + 1, high) if hint == "low" else (low, int(number) - 1)
    return rf"I say \boxed{{{(low + high) // 2}}}"


def waste(prompt: str) -> str:
    """A policy that plays a game to its turn limit."""
    return r"\boxed{99}"


TASKS = {
    "game": (GAME, "concat_with_action"),
    "questions": ("qa:HotpotQA", ""),
    "mathematics": ("math:GSM8K", ""),
    "python tool": (GAME, "python_tool_no_int_reward,concat_with_action"),
}


def wrapped(env: Any, wrappers: str) -> Any:
    for wrap in get_wrapper_fns(wrappers, tokenizer=None):
        env = wrap(env)
    return env


def write_stub_data(folder: Path) -> None:
    """Write ROWS where GEM_DATA=folder finds the datasets of the tasks."""
    for name in ("axon-rl/HotpotQA", "axon-rl/GSM-8k"):
        (folder / name / "data").mkdir(parents=True)
        text = "".join(json.dumps(row) + "\n" for row in ROWS)
        (folder / name / "data" / "train-00000-of-00001.jsonl").write_text(text, encoding="utf-8")
