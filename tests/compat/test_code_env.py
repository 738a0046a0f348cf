"""How published code uses gem.envs.code_env.CodeEnv."""

from __future__ import annotations

import random
from typing import Any

import gem
from gem.envs.code_env import CodeEnv
from gem.parsing import code_blocks

ROWS = [
    {"problem": f"Print {i}.", "tests": f'{{"inputs": [""], "outputs": ["{i}"]}}', "other": str(i)} for i in range(20)
]


class PublishedStyleEnv(CodeEnv):
    """A subclass in the published style: it sets its own attributes, draws from the global random stream, and uses only
    _check_correct.
    """

    def __init__(self, dataset: Any = None, question_key: str = "problem", test_key: str = "tests", **_: Any) -> None:
        gem.Env.__init__(self)
        self.dataset, self.question_key, self.test_key = dataset, question_key, test_key
        self.idx = self.epoch = 0

    def reset(self, seed=None):
        gem.Env.reset(self, seed)
        self.idx = random.randint(0, len(self.dataset) - 1)
        row = self.dataset[self.idx]
        self.first_obs, self.tests = row[self.question_key], row[self.test_key]
        return self.first_obs, {"env_instruction": "write code"}

    def step(self, action):
        blocks = code_blocks(action)
        correct = bool(blocks) and self._check_correct(blocks[-1].code)
        return "", float(correct), True, True, {"metrics": {"correct": correct}}


def test_the_published_arguments_work_by_position_and_by_name():
    env = CodeEnv("", None, ROWS, "problem", "tests", 3, 5, 12, False, "auto")
    twin = CodeEnv(
        dataset_name="",
        split=None,
        dataset=ROWS,
        question_key="problem",
        test_key="tests",
        seed=3,
        max_workers=5,
        max_tests=12,
        verbose=False,
        sandbox_type="auto",
    )
    assert env.reset() == twin.reset()
    assert (env.seed, env.max_tests, env.max_workers, env.verbose) == (3, 12, 5, False)


def test_public_attributes_describe_the_current_task():
    env = CodeEnv(dataset={"train": ROWS}, split="train")
    observation, info = env.reset(seed=1)
    assert list(env.dataset) == ROWS and env.idx == info["idx"]
    assert env.first_obs == observation and env.tests == ROWS[env.idx]["tests"]


def test_a_program_can_be_graded_without_a_step():
    env = CodeEnv(dataset=ROWS)
    env.reset(seed=1)
    assert env._check_correct(f"print({env.idx})") is True
    assert env._check_correct("print('no')") is False


def test_a_subclass_that_skips_the_constructor_can_grade():
    env = PublishedStyleEnv(dataset=ROWS, dataset_name="somebody/taco", max_tests=12, seed=0)
    env.reset(seed=7)
    state = random.Random(7)
    assert env.idx == state.randint(0, 19)
    assert env.step(f"```python\nprint({env.idx})\n```")[1] == 1.0
    assert env.step("```python\nprint('no')\n```")[1] == 0.0
