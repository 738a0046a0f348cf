"""rescore(): recorded transcripts are graded again without the model."""

from __future__ import annotations

import pytest

import gem
from gem.core import Env, Step, StopReason
from gem.errors import BadValue
from gem.evaluation import EvalEnv, evaluate, rescore
from gem.evaluation.records import read_records
from gem.evaluation.rescore import OVER
from gem.policies import Reply
from gem.registry import ENV_REGISTRY


class Grader:
    """Accepts these answers; the tests change it between the evaluation and rescore()."""

    accepted, turns = ("yes",), 1


class Question(Env):
    """Solved if the last of Grader.turns actions is accepted."""

    def reset(self, seed=None):
        super().reset(seed)
        self.turn = 0
        return "yes or no?", {}

    def step(self, action):
        if action == "crash":
            raise RuntimeError("the grader died")
        self.turn += 1
        if self.turn < Grader.turns:
            return Step("go on")
        won = action in Grader.accepted
        info = {"stop_reason": StopReason.SOLVED if won else StopReason.LOST, "checks": {"accepted": won}}
        return Step("", float(won), True, False, {**info, "explanation": f"{action} is {won}"})


class Actor:
    """Replies with the text or Reply that a list holds for the episode; each again in every turn."""

    chat, max_prompt_tokens, version, asked = None, None, 0, 0

    def __init__(self, *replies: str | Reply) -> None:
        self.replies = replies

    def act(self, requests):
        self.asked += len(requests)
        found = [self.replies[request.key[1] % len(self.replies)] for request in requests]
        return [reply if isinstance(reply, Reply) else Reply(reply) for reply in found]


@pytest.fixture(autouse=True)
def question(monkeypatch):
    monkeypatch.setattr(Grader, "accepted", ("yes",))
    gem.register("test:Question", Question)
    yield
    del ENV_REGISTRY["test:Question"]


def test_a_repaired_grader_changes_only_the_samples_it_grades_otherwise(tmp_path, monkeypatch):
    actor = Actor("yes", "Yes.", Reply("", finish="refusal"), Reply("no", finish="length"))
    evaluate(actor, "test:Question", limit=4, rollouts=2, out=str(tmp_path / "run"))
    asked, before = actor.asked, (tmp_path / "run" / "trajectories.jsonl").read_bytes()
    assert rescore(str(tmp_path / "run")).changes == []
    monkeypatch.setattr(Grader, "accepted", ("yes", "Yes."))
    found = rescore(str(tmp_path / "run"), out=str(tmp_path / "again"))
    assert [(c.sample, c.before, c.after, c.action) for c in found.changes] == [
        (number, (0.0, "lost"), (1.0, "solved"), "Yes.") for number in (1, 5)
    ]
    assert actor.asked == asked and (tmp_path / "run" / "trajectories.jsonl").read_bytes() == before
    scores = [report["test:Question"] for report in (found.before, found.after)]
    assert [s.solved.value for s in scores] == [0.25, 0.5]
    assert [(s.refused, s.cut, s.done) for s in scores] == [(2, 2, 8)] * 2
    again = {t.episode: t for t in read_records(tmp_path / "again")}
    assert again[1].solved and again[1].turns[0].action == "Yes." and len(again) == 8
    assert again[1].turns[-1].explanation == "Yes. is True" and again[1].turns[-1].checks[0].passed


def test_a_sample_that_cannot_be_played_to_its_end_keeps_its_score(tmp_path, monkeypatch):
    evaluate(Actor("yes", "no"), "test:Question", limit=2, out=str(tmp_path / "run"))
    monkeypatch.setattr(Grader, "turns", 2)
    found = rescore(str(tmp_path / "run"))
    assert found.failed == {0: OVER, 1: OVER} and found.changes == []
    assert found.after["test:Question"].score.value == 0.5


def test_games_with_hidden_states_are_played_again_with_the_same_result(tmp_path):
    env = EvalEnv(id="game:GuessTheNumber-v0-easy", wrappers="concat")
    evaluate("random", [env, "qa:Facts"], limit=8, out=str(tmp_path / "run"))
    found = rescore(str(tmp_path / "run"))
    assert found.changes == [] and found.failed == {}
    assert [e.score for e in found.before.envs] == [e.score for e in found.after.envs]


def test_changed_tasks_and_folders_without_samples_are_refused(tmp_path):
    with pytest.raises(BadValue, match="is not an evaluation"):
        rescore(str(tmp_path))
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "q", "answer": "yes"}\n')
    env = EvalEnv(id="qa:Facts", kwargs={"dataset_name": str(rows), "dataset": None})
    evaluate("constant:yes", env, out=str(tmp_path / "run"))
    rows.write_text('{"question": "another", "answer": "yes"}\n')
    with pytest.raises(BadValue, match=r"tasks of qa:Facts.*data has changed"):
        rescore(str(tmp_path / "run"))
