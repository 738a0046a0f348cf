"""100 programs with labels, graded by CodeEnv: scripts, functions, checkers, LiveCodeBench rows, long integers.

The rows, programs and labels of programs.jsonl were written without knowledge of the grader. ``label`` is 1 if a
program passes all tests of its row, ``why`` gives the reason, and ``contested`` marks labels that judges may dispute.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gem.envs.questions.code_env import CodeEnv, fenced

LINES = Path(__file__).with_name("programs.jsonl").read_bytes().split(b"\n")
PROGRAMS = [json.loads(line) for line in LINES if line]
# The label follows from Python's default limit of 4,300 digits, which this environment lifts for all programs.
OTHER_LABELS = {"bigint-02": 1}
FRAGILE_CHECKERS = {"checker-11", "checker-12"}  # they raise an exception if the output is empty


@pytest.mark.slow
@pytest.mark.parametrize("program", [pytest.param(program, id=program["id"]) for program in PROGRAMS])
def test_a_program_is_graded_as_labelled(program):
    env = CodeEnv(dataset=[program["row"]], timeout=1.0 if program["kind"] == "infinite_loop" else 20.0)
    env.reset(seed=0)
    assert (env.row_error() is not None) == (program["id"] in FRAGILE_CHECKERS)
    step = env.step(fenced(program["submission"]))
    assert step.reward == OTHER_LABELS.get(program["id"], program["label"]), (program["why"], step.info["tests"])


def test_there_are_a_hundred_programs_and_a_label_differs_only_where_it_is_contested():
    assert len({program["id"] for program in PROGRAMS}) == 100
    contested = {program["id"] for program in PROGRAMS if program.get("contested")}
    assert OTHER_LABELS.keys() <= contested
