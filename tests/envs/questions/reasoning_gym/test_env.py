"""ReasoningGymEnv: every generator of the installed reasoning-gym, and its isolation from the process."""

import importlib
import importlib.util
import json
import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("reasoning_gym", reason="needs the [reasoning] extra")

from gem._internal.text import short_repr
from gem.envs.questions.reasoning_gym.env import ReasoningGymEnv, may_be_scored, with_products
from gem.envs.questions.reasoning_gym.source import DataSet
from gem.envs.questions.reasoning_gym.specs import UNANSWERED, generator_names, reasoning_gym_specs
from gem.errors import BadValue, EpisodeOver, GraderError, MissingDependency, UnknownArgument, install_command
from gem.registry import make
from gem.testing.env.check_env import check_env

SPECS = {spec.id: spec for spec in reasoning_gym_specs()}
# tests/compat/test_published_ids.py plays every published generator; the first two are newer.
SOME = ["rg:coin_flip", "rg:path_star", "rg:chain_sum", "rg:list_functions", "rg:rush_hour"]
SCRIPT = Path(__file__).resolve().parents[4] / "scripts" / "reasoning_gym_names.py"


@pytest.mark.parametrize("env_id", SOME)
def test_the_gold_answer_scores_one_and_a_wrong_answer_less(env_id):
    env = make(SPECS[env_id], seed=3)
    prompt, info = env.reset()
    assert prompt == f"{env.entry['question']}\n\nThink step by step, and put your final answer in \\boxed{{}}."
    assert info == {}
    gold = env.answer
    assert (gold is None) is (env.name in UNANSWERED)
    if gold is not None:
        won = env.step(env.format.write(gold))
        explanation = won.info.pop("explanation")
        assert (won.reward, won.info) == (1.0, {"correct": True, "answer": gold, "stop_reason": "solved"})
        assert short_repr(gold, 200) in explanation
    env.reset(seed=3)
    lost = env.step(r"\boxed{no such answer}")
    assert (lost.terminated, lost.truncated) == (True, False)
    assert 0.0 <= lost.reward < 1.0
    assert "no such answer" in lost.info.pop("explanation")
    assert lost.info == {"correct": False, "answer": gold, "stop_reason": "lost"}


def escaped(text):
    return text if "\\" in text else re.sub(r"[%$#&_{}]", r"\\\g<0>", text)


def in_latex(text):
    """Write a gold answer with the operators of LaTeX."""
    if re.fullmatch(r"-?\d+/\d+", text):
        return re.sub(r"(\d+)/(\d+)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\*\*(?:(\d+)|\(([^()]*)\))", r"^{\1\2}", re.sub(r"\b(exp|log|sin|cos)\(", r"\\\1(", escaped(text)))
    text = re.sub(r"(\d)e(-?\d+)$", r"\1 \\times 10^{\2}", re.sub(r"sqrt\(([^()]*)\)", r"\\sqrt{\1}", text))
    signs = {"×": "times", "*": "cdot", "->": "to", "→": "rightarrow", "∨": "lor", "∧": "land", "<": "lt", ">": "gt"}
    return re.sub("->|[×*→∨∧<>]", lambda match: rf"\{signs[match[0]]} ", text)


FORMS = {
    "text": lambda gold: rf"\text{{{gold}}}",
    "full stop": lambda gold: f"{gold}.",
    "bold text": lambda gold: rf"\textbf{{{gold}.}}",
    "Markdown": lambda gold: f"**{gold}**.",
    "escaped": lambda gold: rf"\mathrm{{{escaped(gold)}}}",
    "operators": in_latex,
    "spaces": lambda gold: f"${escaped(gold)}$".replace(" ", r"\,"),
}


@pytest.mark.parametrize("name", [name for name in generator_names() if name not in UNANSWERED])
def test_an_answer_scores_in_latex_what_it_scores_in_plain_text(name):
    env = make(SPECS[f"rg:{name}"])
    env.reset(seed=4)
    other = env.answer

    def score(answer):
        env.reset(seed=3)
        return env.step(rf"\boxed{{{answer}}}").reward

    env.reset(seed=3)
    gold = env.answer
    assert {form: score(write(gold)) for form, write in FORMS.items()} == dict.fromkeys(FORMS, 1.0), gold
    plain = score(other)
    for form, write in FORMS.items():
        assert score(write(other)) < 1.0 or plain == 1.0, (form, gold, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["intermediate_integration", "simple_integration", "polynomial_multiplication"])
def test_a_formula_may_be_written_in_latex(name):
    import sympy

    env = ReasoningGymEnv(name)
    for seed in range(6):
        env.reset(seed=seed)
        latex = sympy.latex(sympy.parse_expr(env.answer))
        assert env.step(rf"\boxed{{{latex}}}").reward == 1.0, latex
        env.reset(seed=seed)
        assert env.step(rf"\boxed{{2 \left({latex}\right)}}").reward == 0.0, latex


@pytest.mark.parametrize(
    ("formula", "python"),
    [
        ("2 x y", "2*x*y"),
        ("3(x+1)(x-1)", "3*(x+1)*(x-1)"),
        ("sin**2(3(x+1)) cos 2x", "sin(3*(x+1))**2*cos(2*x)"),
        ("x**2 5 - e**x", "x**2*5-E**x"),
        ("log x + C", "log(x)+C"),
        ("sin**2 x", "sin(x)**2"),
        (")(", ")*("),
        ("sin", "sin()"),
        ("", ""),
    ],
)
def test_a_formula_gets_the_signs_of_its_products(formula, python):
    assert with_products(formula) == python


@pytest.mark.slow
def test_a_generator_passes_check_env():
    report = check_env(SPECS["rg:list_functions"], seeds=1, episodes=1)
    assert report.ok, report


def test_the_names_file_matches_the_installed_version():
    spec = importlib.util.spec_from_file_location("reasoning_gym_names_script", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    from reasoning_gym.factory import DATASETS

    assert script.NAMES_FILE.read_text(encoding="utf-8") == script.render(sorted(DATASETS))


def test_listing_and_importing_do_not_load_the_library():
    code = (
        "import sys; from gem.envs.questions.reasoning_gym.specs import reasoning_gym_specs as s; n = len(s());"
        "import gem.envs.questions.reasoning_gym.env; sys.exit('reasoning_gym' in sys.modules or n < 100)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_configuration_reaches_the_generator():
    env = ReasoningGymEnv("chain_sum", min_terms=20, max_terms=20)
    assert env.reset(seed=1)[0].count("+") + env.entry["question"].count(" - ") == 19


def test_an_unknown_field_is_rejected_with_the_known_ones():
    with pytest.raises(UnknownArgument, match=r"'min_term'.*'min_terms'.*\(fields: min_terms"):
        ReasoningGymEnv("chain_sum", min_term=20)


def test_a_rejected_value_includes_the_reason_of_the_library():
    with pytest.raises(BadValue, match=r"rg:chain_sum .*min_terms must be positive"):
        ReasoningGymEnv("chain_sum", min_terms=0)


def test_an_unknown_generator_is_rejected_with_the_closest_name():
    with pytest.raises(BadValue, match="did you mean 'chain_sum'"):
        ReasoningGymEnv("chain_sums")


@pytest.mark.parametrize("size", [0, -1, True, 2.0])
def test_an_invalid_size_is_rejected(size):
    with pytest.raises(BadValue, match="size must be"):
        ReasoningGymEnv("chain_sum", size=size)


def test_fields_override_those_of_the_curriculum_level():
    easy, hard = (ReasoningGymEnv("products", level=level) for level in (0, 9))
    assert len(hard.reset(seed=1)[0]) > len(easy.reset(seed=1)[0])
    over = ReasoningGymEnv("chain_sum", level=5, min_terms=3, max_terms=3)
    assert (over._generator.config.max_terms, over._generator.config.max_digits) != (5, 1)


@pytest.mark.parametrize(
    ("name", "level", "reason"),
    [
        ("chain_sum", 99, "from 0 to 10, got 99"),
        ("chain_sum", True, "level must be an integer"),
        ("acre", 0, "has no curriculum"),
    ],
)
def test_an_unknown_level_is_rejected(name, level, reason):
    with pytest.raises(BadValue, match=reason):
        ReasoningGymEnv(name, level=level)


def test_every_level_of_every_curriculum_builds_or_is_rejected_with_a_reason():
    from reasoning_gym.factory import CURRICULA

    refused = set()
    for name in sorted(CURRICULA):
        for level in range(3):
            try:
                ReasoningGymEnv(name, level=level)
            except BadValue as e:
                assert "rg:" in str(e)
                refused.add(name)
    assert refused <= {"caesar_cipher", "knight_swap", "modulo_grid", "survo"} | {
        name for name in CURRICULA if max(len(a.levels) for a in CURRICULA[name]().attributes.values()) < 3
    }


def test_the_answer_format_is_stated_and_parsed():
    env = ReasoningGymEnv("chain_sum", answer_format="tag")
    assert "<answer>" in env.reset(seed=1)[0]
    unread = env.step(rf"\boxed{{{env.answer}}}")
    assert (unread.reward, unread.info["invalid"], unread.info["correct"]) == (-0.1, "no_answer", False)
    env.reset(seed=1)
    assert env.step(f"<answer>{env.answer}</answer>").reward == 1.0


def test_partial_credit_comes_from_the_scorer():
    env = ReasoningGymEnv("prime_factorization", min_value=12, max_value=12)
    env.reset(seed=1)
    half = env.step(r"\boxed{3 × 4}")
    assert (half.reward, half.info["correct"], half.info["stop_reason"]) == (0.5, False, "lost")


def test_an_answer_that_makes_the_scorer_raise_is_wrong():
    env = ReasoningGymEnv("prime_factorization")
    env.reset(seed=1)
    assert env.step(r"\boxed{no numbers}").reward == 0.0


def test_a_seed_determines_its_episodes_and_a_data_set_ends_after_size_questions():
    env, twin = ReasoningGymEnv("chain_sum", size=2, seed=5), ReasoningGymEnv("chain_sum", size=2)
    mine = [env.reset()[0] for _ in range(5)]
    assert [twin.reset(seed=5 if not k else None)[0] for k in range(5)] == mine
    assert len(set(mine)) == 5
    assert env.state.index == 0  # the third dataset's first


@pytest.mark.parametrize("name", ["list_functions", "pool_matrix", "codeio", "bf", "decimal_arithmetic"])
def test_nothing_leaks_from_or_into_global_state(name, capsys):
    import decimal

    env = ReasoningGymEnv(name)
    random.seed(1)
    np.random.seed(1)
    before, numpy_before, precision = random.getstate(), np.random.get_state()[1].tolist(), decimal.getcontext().prec
    questions = [env.reset(seed=seed)[0] for seed in range(4)]
    assert random.getstate() == before
    assert np.random.get_state()[1].tolist() == numpy_before
    assert decimal.getcontext().prec == precision
    random.seed(2)
    np.random.seed(2)
    assert [env.reset(seed=seed)[0] for seed in range(4)] == questions
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_seed_gives_the_same_question_for_any_hash_seed():
    names = ["isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note", "word_ladder"]
    code = "from gem.envs.questions.reasoning_gym.env import ReasoningGymEnv as Env\n"
    code += f"for name in {names}: env = Env(name); print(ascii((env.reset(seed=1)[0], env.answer)))"
    other = {**os.environ, "PYTHONHASHSEED": "8" if os.environ.get("PYTHONHASHSEED") == "7" else "7"}
    done = subprocess.run([sys.executable, "-c", code], env=other, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        ascii((env.reset(seed=1)[0], env.answer)) for env in map(ReasoningGymEnv, names)
    ]


def test_an_episode_survives_saving_spawning_and_pickling():
    env = ReasoningGymEnv("list_functions", seed=9)
    env.reset()
    following = [env.reset()[0], env.reset()[0]][1]
    env.reset(seed=9)
    prompt = env.reset()[0]
    saved = json.loads(json.dumps(env.get_state()))
    restored = ReasoningGymEnv("list_functions")
    restored.set_state(saved)
    for copy in (restored, env.spawn(same_state=True), pickle.loads(pickle.dumps(env))):
        assert copy.prompt == prompt
        assert copy.step(copy.format.write(env.answer)).reward == 1.0
        with pytest.raises(EpisodeOver):
            copy.step("")
        assert copy.reset()[0] == following
    assert env.step(env.format.write(env.answer)).reward == 1.0


def test_a_foreign_state_is_rejected_and_changes_nothing():
    env = ReasoningGymEnv("chain_sum", size=10)
    prompt = env.reset(seed=1)[0]
    for wrong in ({}, {"state": {"idx": 1}}, {"state": {"dataset": 1, "index": 10}}):
        with pytest.raises(BadValue):
            env.set_state(wrong)
    assert env.prompt == prompt


def test_configurations_of_a_generator_with_class_level_data_are_isolated():
    one = ReasoningGymEnv("codeio", difficulty=3)
    expected = [one.reset(seed=1)[0], one.reset()[0]]
    assert one.reset(seed=1)[0] == expected[0]
    ReasoningGymEnv("codeio", difficulty=6).reset(seed=1)
    assert one.reset()[0] == expected[1]


def test_composite_accepts_its_data_sets_as_mappings():
    parts = [{"name": "chain_sum", "weight": 1, "config": {"min_terms": 2}}]
    env = ReasoningGymEnv("composite", datasets=parts)
    assert "State the final answer" in env.reset(seed=1)[0]
    assert env.step(env.format.write(env.answer)).reward == 1.0
    with pytest.raises(BadValue, match="at least one dataset"):
        ReasoningGymEnv("composite")


@pytest.mark.parametrize(
    "name", ["spiral_matrix", "n_queens", "binary_matrix", "string_insertion", "countdown", "simple_integration"]
)
def test_an_answer_is_never_executed(name, tmp_path):
    env = ReasoningGymEnv(name)
    target = tmp_path / "written"
    for code in (
        f"open('{target}', 'w')",
        f"[open('{target}', 'w').write('x')]",
        f"__import__('os').mkdir('{target}')",
    ):
        env.reset(seed=1)
        assert env.step(rf"\boxed{{{code}}}").reward == 0.0
    assert not target.exists()


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("countdown", "9**9**9**9"),
        ("puzzle24", "9**9**9**9"),
        ("simple_integration", "9**9**9**9**9"),
        ("polynomial_multiplication", "(x+1)**99999999"),
        ("coin_flip", "1e999999999"),
        ("chain_sum", "9" * 1_000_000),
    ],
)
def test_an_answer_too_expensive_to_evaluate_is_wrong_immediately(name, answer):
    env = ReasoningGymEnv(name)
    env.reset(seed=1)
    assert not may_be_scored(name, answer)
    assert env.step(rf"\boxed{{{answer}}}").reward == 0.0


@pytest.mark.slow
def test_an_equivalent_formula_is_right():
    env = ReasoningGymEnv("polynomial_multiplication")
    env.reset(seed=1)
    assert env.step(rf"\boxed{{0 + {env.answer.replace(' ', '')}}}").reward == 1.0


class StubDataset:
    """A library dataset whose scorer returns or raises a given outcome."""

    def __init__(self, outcome):
        self.outcome = outcome

    def __getitem__(self, index):
        raise self.outcome

    def score_answer(self, answer, entry):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_a_score_is_clipped_to_the_unit_interval():
    scores = [DataSet("odd", StubDataset(score), 0).score("1", {"answer": "2"}) for score in (7, 1.0, 0.25, -3)]
    assert scores == [1.0, 1.0, 0.25, 0.0]


@pytest.mark.parametrize("outcome", [float("nan"), KeyError("gone")])
def test_a_scorer_that_rejects_the_gold_answer_is_an_infra_error(outcome):
    with pytest.raises(GraderError, match="rg:odd"):
        DataSet("odd", StubDataset(outcome), 0).score("1", {"answer": "2"})


def test_a_missing_package_of_one_generator_is_named_with_the_pip_command():
    missing = ModuleNotFoundError("No module named 'bfi'", name="bfi")
    with pytest.raises(MissingDependency, match=r"rg:odd needs bfi .*pip install bfi"):
        DataSet("odd", StubDataset(missing), 0).entry(0)


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    with pytest.raises(MissingDependency, match=re.escape(install_command("reasoning"))):
        ReasoningGymEnv("chain_sum")


def test_every_name_is_listed_once():
    names = generator_names()
    assert sorted(set(names)) == names
    assert set(UNANSWERED) < set(names)


def test_a_question_that_shows_its_answer_backwards_has_no_secret():
    shown = 0
    for seed in range(40):
        env = make(SPECS["rg:rotate_matrix"], seed=seed)
        env.reset()
        backwards = env.answer in env.entry["question"][::-1]
        shown += backwards
        assert not (backwards and env.secrets())
    assert shown > 0
