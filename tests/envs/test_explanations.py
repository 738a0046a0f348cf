"""Environments of every family say at the end of an episode why it has its score, and nothing of it before."""

import importlib.util

import pytest

import gem
from gem.trajectory import ScoreCheck

KINDS = ["board", "cards", "game", "logic", "qa", "talk", "web", "webshop", "desk", "math", "vision"]
INSTALLED = (None, "math", "math,vision")  # extras that the tests need at most
IDS = [next(spec.id for spec in gem.list_envs(f"{kind}:*") if spec.extra in INSTALLED) for kind in KINDS]
BEFORE = {"explanation", "checks"}


def made(env_id):
    if env_id.startswith(("math:", "vision:")):
        for library in ["sympy", *["PIL"] * env_id.startswith("vision:")]:
            if importlib.util.find_spec(library) is None:
                pytest.skip(f"needs {library}")
    return gem.make(env_id, seed=0)


@pytest.mark.parametrize("env_id", IDS)
def test_the_last_step_alone_explains_the_score(env_id):
    env = made(env_id)
    for _ in range(3):
        _, info = env.reset()
        step = None
        for turn in range(2_000):
            assert not BEFORE & set(info)
            step = env.step("goodbye, <finish>" if turn > 30 else env.sample_random_action())
            info = step.info
            if step.terminated or step.truncated:
                break
        assert step.terminated or step.truncated
        assert info["explanation"].strip()
        ScoreCheck.read(info.get("checks", []))


def test_an_answer_is_explained_by_what_was_read_of_it_and_the_reference():
    pytest.importorskip("sympy", reason="needs the [math] extra")
    from gem.envs.math_env import MathEnv

    env = MathEnv(dataset=[{"problem": "3 + 5?", "answer": "8"}])
    env.reset(seed=0)
    assert env.step(r"I think \boxed{7}.").info["explanation"] == "Read '7'. Incorrect: the expected answer is '8'."
    env.reset(seed=0)
    assert env.step(r"\boxed{8.0}").info["explanation"] == "Read '8.0'. Correct: the answer equals '8'."
    env.reset(seed=0)
    assert "No answer found" in env.step("seven").info["explanation"]


def test_a_game_that_is_lost_says_what_ended_it_and_what_it_hid():
    env = gem.make("game:GuessTheNumber-v0", max_number=1, max_turns=1)
    env.reset(seed=0)
    assert env.step(r"\boxed{2}").info["explanation"].endswith("The turn limit was reached. Revealed: 1.")
