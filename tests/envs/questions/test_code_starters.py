"""Starter code in the form of LeetCode, made for every shipped task that calls a function: a correct body passes."""

from __future__ import annotations

import inspect
import textwrap

import pytest

from gem.envs.questions.code_env import CodeEnv, fenced
from gem.envs.questions.code_solutions import reference

ROWS = [
    row for name in ("mini", "warmup") for row in CodeEnv(f"gem:code/{name}.jsonl").dataset if "fn_name" in row["tests"]
]


def annotation(value):
    """The type of a JSON value in the notation of LeetCode."""
    if isinstance(value, list):
        return f"List[{annotation(value[0]) if value else 'Any'}]"
    if isinstance(value, dict):
        return "Dict[str, Any]"
    return "Optional[Any]" if value is None else type(value).__name__


def starter_and_solution(row):
    """The starter code of a row, and a complete program: the reference is the body of the method."""
    name, source = row["tests"]["fn_name"], reference(row["id"])
    scope = {}
    exec(source, scope)
    parameters = list(inspect.signature(scope[name]).parameters)
    types = [annotation(value) for value in row["tests"]["inputs"][0]]
    signature = ", ".join(f"{p}: {t}" for p, t in zip(parameters, types, strict=True))
    returned = annotation(row["tests"]["outputs"][0])
    starter = f"class Solution:\n    def {name}(self, {signature}) -> {returned}:\n"
    body = f"{source}\nreturn {name}({', '.join(parameters)})\n"
    return starter, starter + textwrap.indent(body, " " * 8)


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_correct_body_in_leetcode_starter_code_passes(row):
    starter, program = starter_and_solution(row)
    env = CodeEnv(dataset=[{**row, "starter_code": starter}], timeout=20.0)
    prompt, _ = env.reset(seed=0)
    assert starter in prompt
    step = env.step(fenced(program))
    assert step.reward == 1.0, step.observation
