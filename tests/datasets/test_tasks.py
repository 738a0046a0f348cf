"""The protocols of environments over a dataset."""

import json

import pytest

import gem
from gem.datasets import DatasetTask, HasBaseline, HasRows, load_rows
from gem.envs import DatasetEnv

ROWS = [{"question": "1 + 1?", "answer": "2"}]


@pytest.mark.parametrize("env_id", ["qa:NaturalQuestions", "code:Warmup-v0"])
def test_questions_are_dataset_tasks(env_id):
    cls = gem.ENV_REGISTRY[env_id].load()
    assert issubclass(cls, DatasetEnv)
    members = {"skipped_rows", "shared_order", "share_order", "ask_only", "row_error", "corrupted"}
    assert members <= set(dir(cls))


def test_the_protocols_tell_environments_apart():
    question = gem.make("qa:Facts").unwrapped
    assert isinstance(question, HasRows) and isinstance(question, DatasetTask)
    assert not isinstance(question, HasBaseline)
    assert not isinstance(gem.make("game:Wordle-v0"), HasRows)


def test_an_environment_with_rows_alone_can_be_evaluated_row_by_row(monkeypatch):
    """Evaluations need ask_only() and a dataset, and nothing else of DatasetEnv."""

    class Sums(gem.Env):
        def __init__(self, dataset=None):
            self.dataset, self.numbers = dataset or load_rows(ROWS * 3), range(3)

        def ask_only(self, numbers, *, shuffle=True):
            self.numbers = numbers

        def reset(self, seed=None):
            super().reset(seed)
            self.number = self.numbers[(seed or 0) % len(self.numbers)]
            return json.dumps(self.number), {}

        def step(self, action):
            return gem.Step("", float(action == "2"), terminated=True)

    monkeypatch.setattr(gem.ENV_REGISTRY, "_specs", dict(gem.ENV_REGISTRY._specs))
    gem.register("test:Sums", Sums)
    score = gem.evaluate("constant:2", "test:Sums", limit=2)["test:Sums"]
    assert (score.done, score.score.value) == (2, 1.0) and "of 3 rows" in score.description
