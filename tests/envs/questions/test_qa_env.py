"""Question answering with short answers."""

import sys
from types import SimpleNamespace

import pytest

from gem.envs.questions.qa_env import QaEnv
from gem.envs.questions.specs import HUB_DATASETS
from gem.errors import BadValue
from gem.graders import Grade

ROW = {"question": "Who wrote Faust?", "answer": ["Goethe", "Johann Wolfgang von Goethe"]}


def opened(row=ROW, **options):
    env = QaEnv(dataset=[row], **options)
    observation, _ = env.reset(seed=0)
    return env, observation


@pytest.mark.parametrize(
    ("action", "reward"),
    [
        ("<answer>goethe.</answer>", 1.0),
        ("<answer>Johann Wolfgang von Goethe</answer>", 1.0),
        ("<answer>Schiller</answer> no, <answer>Goethe</answer>", 1.0),
        ("<answer>Schiller</answer>", 0.0),
        ("Goethe", -0.1),
    ],
)
def test_the_last_tagged_answer_is_compared_with_every_reference_answer(action, reward):
    env, observation = opened()
    step = env.step(action)
    assert observation.startswith("Who wrote Faust?") and "<answer>" in observation
    assert (step.reward, step.terminated) == (pytest.approx(reward), True)


@pytest.mark.parametrize("kwargs", [{}, {"reward": "f1"}, {"extract_boxed": True}, {"answer_format": "plain"}])
@pytest.mark.parametrize(
    "form", [r"\text{%s}", r"\textbf{%s.}", r"\mathrm{%s}", "**%s**", "`%s`.", r"\boxed{%s}", r"\text{\emph{%s}}."]
)
def test_the_styles_of_an_answer_do_not_count(kwargs, form):
    env, _ = opened({"question": "Is it?", "answer": "True"}, **kwargs)
    assert env.step(env.format.write(form % "True")).reward == 1.0
    env.reset(seed=0)
    assert env.step(env.format.write(form % "False")).reward == 0.0


@pytest.mark.parametrize(
    ("kwargs", "reply"),
    [
        ({}, "<think><answer>Goethe</answer></think> Hm."),
        ({}, "<think>So <answer>Goethe</answer>"),
        ({}, "<answer>Goethe</answer> or rather <answer>Schi"),
        ({}, "<answer>Goethe</answer> or rather <answer></answer>"),
        ({"extract_boxed": True}, r"It is \boxed{Goethe}</think>, I think."),
        ({"extract_boxed": True}, r"\boxed{Goethe}, or rather \boxed{Schi"),
        ({"extract_boxed": True}, r"\boxed{Goethe}, or rather \boxed{}"),
        ({"answer_format": "plain"}, "<think>Goethe"),
        ({"answer_format": "code"}, "<think>\n```\nGoethe\n```\n</think>"),
    ],
)
def test_thoughts_and_answers_that_are_taken_back_are_no_answer(kwargs, reply):
    assert opened(**kwargs)[0].step(reply).info["invalid"] == "no_answer"


def test_the_f1_reward_gives_part_of_the_credit():
    reward = opened({"question": "Where?", "answer": "New York City"}, reward="f1")[0].step("<answer>New York</answer>")
    assert reward.reward == pytest.approx(0.8)  # precision 1, recall 2/3


@pytest.mark.parametrize(
    ("reward", "answer", "gold", "score"),
    [
        ("exact", "1990's", "1990s", 0.0),
        ("squad_em", "1990's", "1990s", 1.0),
        ("squad_em", "a Ph.D.", "PhD", 1.0),
        ("squad_em", "no, not at all", "no", 0.0),
        ("squad_f1", "no, not at all", "no", 0.4),
        ("hotpotqa_f1", "no, not at all", "no", 0.0),
        ("hotpotqa_f1", "New York", "New York City", 0.8),
    ],
)
def test_official_scores_are_named_in_the_options(reward, answer, gold, score):
    env, _ = opened({"question": "What?", "answer": gold}, reward=reward)
    assert env.step(f"<answer>{answer}</answer>").reward == pytest.approx(score)


@pytest.mark.parametrize("reward", ["f1", "squad_f1", "hotpotqa_f1"])
def test_the_wrong_answer_of_the_row_check_shares_no_word_under_f1(reward):
    env, _ = opened(reward=reward)
    assert env.step(env.corrupted("<answer>Goethe</answer>")).reward == 0.0


def test_a_reference_answer_that_the_official_normalization_deletes_is_reported():
    row = {"question": "Which grade?", "answer": "A"}
    assert "articles" in opened(row, reward="squad_em")[0].row_error()
    assert opened({**row, "answer": ["A", "the best"]}, reward="squad_em")[0].row_error() is None
    assert opened(row)[0].row_error() is None


def test_the_ids_of_public_datasets_are_graded_by_the_exact_match_of_squad():
    specs = [spec for spec in HUB_DATASETS if spec.entry_point.endswith(":QaEnv") and not spec.id.startswith("logic:")]
    assert len(specs) == 10 and {spec.kwargs["reward"] for spec in specs} == {"squad_em"}


def within_a_tenth(answer, gold):
    near = abs(float(answer) - float(gold)) < 0.1
    return Grade(reward=float(near), correct=near, reason="near" if near else "far", parsed=answer)


@pytest.mark.parametrize("how", ["a function", "its name"])
def test_a_grader_of_ones_own_decides(how, monkeypatch):
    monkeypatch.setitem(sys.modules, "graders_of_mine", SimpleNamespace(within=within_a_tenth))
    reward = within_a_tenth if how == "a function" else "graders_of_mine:within"
    env, _ = opened({"question": "What is π?", "answer": "3.14"}, reward=reward)
    step = env.step("<answer>3.2</answer>")
    assert (step.reward, step.observation) == (1.0, "near")
    env.reset(seed=0)
    assert env.step("<answer>4</answer>").reward == 0.0
    env.reset(seed=0)
    with pytest.raises(ValueError, match="text"):  # it gets the answer as written
        env.step(r"<answer>\text{3.2}</answer>")


def test_a_grader_of_ones_own_must_be_one_and_return_a_grade():
    with pytest.raises(
        BadValue, match=r"'exact', 'f1', 'squad_em', 'squad_f1', 'hotpotqa_f1', a function or .*, got 5"
    ):
        opened(reward=5)
    with pytest.raises(BadValue, match=r"must return a gem\.graders\.Grade, got 1\.0"):
        opened(reward=lambda answer, gold: 1.0)[0].step("<answer>x</answer>")


def test_what_only_exact_match_refuses_is_right_for_another_grader():
    env, _ = opened({"question": "Which article?", "answer": "the"}, reward=within_a_tenth)
    assert env.row_error() is None and env.corrupted("<answer>the</answer>") is None


def test_boxed_answers_are_read_and_asked_for():
    env, observation = opened(extract_boxed=True)
    assert "boxed" in observation
    assert env.step(r"\boxed{Goethe}").reward == 1.0


def test_reference_answers_in_the_question_are_no_secrets():
    row = {"question": "Is Frankfurt or Heidelberg larger?", "answer": ["Frankfurt", "Frankfurt am Main"]}
    assert opened(row)[0].secrets() == ["Frankfurt am Main"]


def test_contradictory_and_unknown_options_are_refused():
    with pytest.raises(BadValue, match=r"extract_boxed=True .*answer_format='tag'"):
        QaEnv(dataset=[ROW], extract_boxed=True, answer_format="tag")
    with pytest.raises(BadValue, match=r"reward .*'exact', 'f1'.*'bleu'"):
        QaEnv(dataset=[ROW], reward="bleu")
