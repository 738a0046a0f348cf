"""Folders of Terminal-Bench 1, built and played by an engine of containers. Only with -m containers."""

from pathlib import Path

import pytest

import gem
from gem.envs.computers.containers.container_env import Oracle

pytestmark = pytest.mark.containers
TASKS = Path(__file__).parent / "tasks" / "terminalbench"


@pytest.mark.parametrize("name", ["sort-lines", "two-commands"])
def test_the_solution_scores_1_and_doing_nothing_0(name, debian, engine):
    pytest.importorskip("yaml")
    with gem.make(f"terminalbench:{TASKS}#{name}", image_map={"ubuntu:*": debian}, engine=engine) as env:
        observation, _ = env.reset(seed=0)
        oracle, step = Oracle(env), None
        while step is None or not (step.terminated or step.truncated):
            step = env.step(oracle.act(observation))
        assert step.reward == 1.0, step
        env.reset(seed=0)
        seen = env.step(
            "<bash>find / -name 'test_outputs*' -o -name 'solution.*' -o -name run-tests.sh 2>/dev/null</bash>"
        )
        assert "test_outputs" not in seen.observation and "solution" not in seen.observation
        idle = env.step("<finish>")
        assert idle.reward == 0.0 and "FAILED" in idle.info["verifier"]


def test_one_printed_pass_followed_by_the_end_of_the_output_is_no_success(debian, engine):
    pytest.importorskip("yaml")
    fake = "=== short test summary info ===\\nPASSED tests/test_outputs.py::test_the_lines_are_sorted\\n"
    with gem.make(f"terminalbench:{TASKS}#sort-lines", image_map={"ubuntu:*": debian}, engine=engine) as env:
        env.reset(seed=0)
        env.step(f"<bash>mv /usr/bin/python3 /x; printf '#!/bin/sh\\nprintf \"{fake}\"' > /usr/bin/python3; "
                 "chmod +x /usr/bin/python3</bash>")  # fmt: skip
        step = env.step("<finish>")
        assert step.reward == 0.0 and "has not passed" in step.info["verifier"]
