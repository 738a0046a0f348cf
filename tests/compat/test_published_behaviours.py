"""Behaviours of the published package that callers rely on."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest

import gem
from gem.envs.code_env import CodeEnv
from gem.envs.math_env import MathEnv
from gem.envs.math_visual_env import MathVisualEnv
from gem.envs.qa_env import QaEnv
from gem.errors import BadValue, CompatibilityWarning, EpisodeOver, UnknownArgument, UnknownEnv
from gem.tools.function_tool import FunctionTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.vector import VectorEnv

MATH = [{"problem": f"What is {i}+1?", "answer": str(i + 1)} for i in range(5)]
QA = [{"question": f"Which number follows {i}?", "answer": [str(i + 1)]} for i in range(5)]
GAME = "game:GuessTheNumber-v0-easy"


def test_a_data_set_without_a_split_uses_its_only_or_its_train_split():
    assert len(MathEnv(dataset={"test": MATH[:2], "train": MATH}).dataset) == 5
    assert len(MathEnv(dataset={"test": MATH[:2]}).dataset) == 2
    with pytest.raises(BadValue, match="'a', 'b'"):
        MathEnv(dataset={"a": MATH, "b": MATH})


@pytest.mark.parametrize(("cls", "rows"), [(MathEnv, MATH), (QaEnv, QA)])
def test_a_data_set_given_together_with_its_name_is_used(cls, rows):
    assert len(cls("axon-rl/somewhere", "train", rows).dataset) == 5


def test_rows_are_selected_shuffled_and_read_by_column():
    rows = MathEnv(dataset=MATH).dataset
    assert rows["answer"] == ["1", "2", "3", "4", "5"]
    assert rows.select([3, 0])["answer"] == ["4", "1"]
    shuffled = rows.shuffle(seed=1)["answer"]
    assert sorted(shuffled) == rows["answer"] and shuffled == rows.shuffle(seed=1)["answer"] != rows["answer"]
    with pytest.raises(KeyError):
        rows["solution"]
    with pytest.raises(BadValue):
        rows.select([5])
    assert len(MathEnv(dataset=rows.shuffle(seed=1).select(range(2))).dataset) == 2


def test_an_environment_counts_its_epochs():
    env = MathEnv(dataset=MATH)
    epochs = [env.epoch for _ in range(11) if env.reset(seed=None)]
    assert epochs == [0] * 5 + [1] * 5 + [2]


@pytest.mark.parametrize(("cls", "rows", "right"), [(MathEnv, MATH, r"\boxed{7}"), (QaEnv, QA, "<answer>7</answer>")])
def test_assigning_an_answer_starts_an_episode_that_grades_one_row(cls, rows, right):
    env = cls(dataset=rows)
    with pytest.raises(EpisodeOver):
        env.step(right)
    for gold, reward in ((7, 1.0), ("8", 0.0), (["8", "7"], 1.0)):
        env.answer = gold
        assert env.step(right)[1] == reward
        with pytest.raises(EpisodeOver):
            env.step(right)
    with pytest.raises(BadValue):
        env.answer = " "
    env.reset(seed=1)
    env.step(right)
    state = env.get_state()
    env.set_state(state)
    with pytest.raises(EpisodeOver):
        env.step(right)


@pytest.mark.parametrize("answer", ["Paris", ["Paris"], ["Paris", "Lutetia"]])
def test_an_answer_is_a_list_exactly_if_its_column_holds_lists(answer):
    env = gem.envs.qa_env.QaEnv(dataset=[{"question": "Capital of France?", "answer": answer}], extract_boxed=True)
    env.reset(seed=1)
    assert env.answer == answer
    env.answer = answer
    assert env.answer == answer and env.check_correct("Paris", env.answer)


def test_an_action_without_an_answer_earns_nothing_on_request():
    for arguments, reward in (({}, -0.1), ({"use_format_error_reward": False}, 0.0)):
        env = MathEnv(dataset=MATH, **arguments)
        env.reset(seed=1)
        assert env.step("no box")[1] == reward


def test_the_published_positions_of_math_and_visual_arguments():
    env = MathEnv("", None, MATH, "problem", "answer", False, 3, True)
    assert (env.seed, env.format_error_reward) == (3, 0.0)
    env = MathVisualEnv("", None, MATH, "picture", "problem", "answer", 4, False)
    assert (env.seed, env.image_key) == (4, "picture")
    assert MathEnv.check_correct(model_answer="1/2", gt_answer="0.5")
    assert QaEnv.check_correct(model_answer="Bern", gt_answer=["bern"])


def test_a_keyword_without_effect_is_dropped_with_one_warning_per_process(monkeypatch):
    pytest.importorskip("sympy", reason="needs the extra [math]")
    monkeypatch.setattr("gem._internal.construction._warned", False)
    with pytest.warns(CompatibilityWarning, match="max_turns=4 .*no effect") as caught:
        env = MathEnv(dataset=MATH, max_turns=4)
    assert caught[0].filename == __file__
    assert env.spawn().reset(seed=1)[0]  # a second warning would be an error
    assert MathEnv(dataset=MATH, max_turns=3)
    with pytest.raises(UnknownArgument, match="dataset"):
        gem.make("math:GSM8K", datset=MATH)
    with pytest.raises(TypeError, match="max_turn"):
        MathEnv(dataset=MATH, max_turn=4)


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (MathEnv, {"use_mp": False}),
        (MathVisualEnv, {"use_mp": True}),
        (CodeEnv, {"verbose": True}),
        (CodeEnv, {"max_workers": 2}),
        (QaEnv, {"load_from_cache_file": False}),
    ],
)
def test_a_published_keyword_without_effect_is_named(cls, arguments, monkeypatch):
    monkeypatch.setattr("gem._internal.construction._warned", False)
    with pytest.warns(CompatibilityWarning, match=f"{cls.__name__}: {next(iter(arguments))}=.* has no effect"):
        cls(dataset=MATH, **arguments)


def test_a_parameter_of_a_subclass_has_its_own_meaning():
    class Their(MathEnv):
        def __init__(self, max_turns=3, **kwargs):
            super().__init__(**kwargs)
            self.max_turns = max_turns

    assert Their(dataset=MATH, max_turns=7).max_turns == 7
    assert Their(dataset=MATH, max_turns=7).spawn().max_turns == 7


def test_a_subclass_grades_in_the_pool_of_its_environment():
    class Their(MathEnv):
        def step(self, action):
            graded = self.mp_pool.apply_async(self.check_correct, (action, self.answer))
            return "", float(graded.get(timeout=60)), True, True, {}

    with Their(dataset=MATH) as env:
        env.reset(seed=1)
        assert [env.step(env.answer)[1], env.step("-1")[1]] == [1.0, 0.0]


def test_the_rows_of_an_evaluation_come_in_their_order():
    env = MathEnv(dataset=MATH, eval=True)
    assert [env.reset(seed=seed)[1]["idx"] for seed in range(5)] == [0, 1, 2, 3, 4]


def test_make_accepts_the_keywords_that_direct_calls_accept():
    pytest.importorskip("sympy", reason="needs the extra [math]")
    assert gem.make("math:GSM8K", dataset=MATH, max_turns=4).reset(seed=1)[0]
    assert gem.make("eval:QaOpen", dataset=QA, max_turns=4).max_turns == 4


def test_an_unknown_id_is_a_key_error_and_a_value_error():
    for kind in (KeyError, ValueError, UnknownEnv):
        with pytest.raises(kind, match="did you mean"):
            gem.make("game:Wordel-v0")


@pytest.mark.parametrize("options", [{}, {"async_mode": True}, {"backend": "thread"}])
@pytest.mark.parametrize("env_id", [GAME, "code:Warmup-v0"])
def test_the_environments_of_a_vector_can_be_reached(options, env_id):
    vector = gem.make_vec([env_id, GAME], **options)
    try:
        vector.reset(seed=1)
        assert [env.env_id for env in vector.envs] == [env_id, GAME]
        assert isinstance(vector.envs[1].sample_random_action(), str)
    finally:
        vector.close()


def test_environments_in_other_processes_cannot_be_reached():
    vector = gem.make_vec(GAME, backend="process")
    try:
        assert not hasattr(vector, "envs")
    finally:
        vector.close()


def test_a_tool_wrapper_steps_with_verbose():
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    env = ToolEnvWrapper(gem.make(GAME), [FunctionTool(double)])
    env.reset(seed=1)
    assert env.step("no call", verbose=True)[2]


def ends(env):
    env.reset(seed=1)
    return [bool(over) for over in env.step(r"\boxed{99}")[2:4]]


def test_an_environment_variable_ends_episodes_on_truncation(monkeypatch):
    assert ends(gem.make(GAME, max_turns=1)) == [False, True]
    monkeypatch.setenv("GEM_END_ON_TRUNCATION", "1")
    assert ends(gem.make(GAME, max_turns=1)) == [True, True]
    assert ends(gem.make(GAME, max_turns=1, end_on_truncation=False)) == [False, True]


def test_workers_inherit_the_environment_variable(monkeypatch):
    monkeypatch.setenv("GEM_END_ON_TRUNCATION", "1")
    vector = VectorEnv.of([partial(gem.make, GAME, max_turns=1)] * 2, backend="process")
    try:
        vector.reset(seed=1)
        assert vector.step([r"\boxed{99}"] * 2).terminated_B.tolist() == [True, True]
    finally:
        vector.close()


def test_a_published_style_script_runs_in_a_new_process():
    code = (
        "import gem\nfrom gem.utils.debug import run_and_print_episode\n"
        f"env = gem.make({GAME!r}, seed=1)\nrun_and_print_episode(env, lambda _: env.sample_random_action())\n"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert "reward" in run.stdout and run.stderr == ""


def test_code_environments_take_the_published_arguments():
    rows = [{"problem": "Print 1.", "tests": {"inputs": [""], "outputs": ["1"]}}]
    assert CodeEnv("axon-rl/CodeContest", "test", rows, verbose=True, max_workers=2).reset(seed=1)[0]


def total_reward(env_id, actions, **arguments):
    env = gem.make(env_id, seed=5, **arguments)
    env.reset()
    total = 0.0
    for action in actions:
        _, reward, terminated, truncated, info = env.step(action)
        total += reward
        if terminated or truncated:
            break
    return total, info


def test_what_the_published_package_gave_away_earns_nothing():
    pytest.importorskip("sympy", reason="needs the extra [math]")
    for low, high in ((1, 24), (26, 50)):
        guesses = [r"\boxed{25}"] * 7
        assert total_reward("game:GuessTheNumber-v0-hard", guesses, min_number=low, max_number=high)[0] == 0.0
    assert total_reward("game:TowerofHanoi-v0-easy", [r"\boxed{A A}"])[1]["invalid"]
    assert not QaEnv.check_correct("the", "a")
    for answer, gold in (("10 miles", "10 km"), ("y=5", "x=5"), ("(1,234)", "1234")):
        assert not MathEnv.check_correct(answer, gold)
