"""Question answering with short answers."""

import pytest

from gem.envs.questions.qa_env import QaEnv
from gem.errors import BadValue

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


def test_the_f1_reward_gives_part_of_the_credit():
    reward = opened({"question": "Where?", "answer": "New York City"}, reward="f1")[0].step("<answer>New York</answer>")
    assert reward.reward == pytest.approx(0.8)  # precision 1, recall 2/3


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
