"""gem info."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gem.cli import main
from gem.core import Env
from gem.registry import ENV_REGISTRY, register

EASY = "game:GuessTheNumber-v0-easy"


def test_info_shows_rules_parameters_optimum_oracle_and_a_sample_episode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", EASY]) == 0
    out = capsys.readouterr().out
    for part in [
        "Guess the secret integer between 1 and 10, in at most 4 turns.",
        "  max_turns      4\n",
        "Episode reward  -0.1 to 1\n",
        "100.0% of episodes solved, in 2.9 turns on average (balanced search)",
        "gem.envs.games.guess_the_number:Oracle, reads the observation",
        "Sample episode, seed 0, played by the oracle",
        "> \\boxed{5}\nTurn 1: 5 is",
        "Game over (solved): total reward 1 in ",
    ]:
        assert part in out, part
    assert ">>>" not in out


def test_info_is_the_same_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", EASY])
    first = capsys.readouterr().out
    main(["info", EASY])
    assert capsys.readouterr().out == first


def test_info_takes_arguments_of_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", EASY, "--env-kwargs", "max_number=100", "max_turns=7"]) == 0
    out = capsys.readouterr().out
    assert "  max_number     100  (given)\n" in out and "between 1 and 100, in at most 7 turns" in out


class Counter(Env):
    """Ends after a number of steps. It has no oracle and no state."""

    def __init__(self, steps: int, *, samples: bool = True) -> None:
        self.steps, self.samples = steps, samples

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed)
        self.left = self.steps
        return {"text": "Count.", "images": [b"", b""]}, {}

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return [{"role": "user", "content": f"left: {self.left}"}], 0.5, False, self.left == 0, {}

    def sample_random_action(self) -> str:
        return f"go {self.left}" if self.samples else super().sample_random_action()


@pytest.fixture
def counter() -> Any:
    register("test:Counter-v0", Counter, steps=20)
    yield "test:Counter-v0"
    del ENV_REGISTRY["test:Counter-v0"]


def test_info_samples_actions_without_an_oracle_and_shortens_long_episodes(
    counter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", counter]) == 0
    out = capsys.readouterr().out
    assert "played by random actions\n\nCount.\n[images: 2]\n" in out
    assert "> go 13\nuser: left: 12\n\n… 11 turns omitted …\n\n> go 1\nuser: left: 0\n" in out
    assert "Game over (truncated): total reward 10 in 20 turns." in out
    assert "Episode reward  -inf to inf" in out and "unknown" in out


def test_info_reports_that_no_episode_can_be_sampled(counter: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", counter, "--env-kwargs", "samples=false"]) == 0
    assert capsys.readouterr().out.endswith("(stopped: this environment cannot sample random actions)\n")


@pytest.mark.parametrize(
    ("arguments", "row"),
    [
        ("game:TowerofHanoi-v0-easy --env-kwargs random_start=false", "1 episode\n"),
        ("game:TowerofHanoi-v0-easy", "26 different episodes\n"),
        ("game:FifteenPuzzle-v0-easy", "9 different episodes\n"),
        ("game:Sudoku-v0", "many\n"),
    ],
)
def test_info_says_how_many_different_episodes_there_are(
    capsys: pytest.CaptureFixture[str], arguments: str, row: str
) -> None:
    assert main(["info", *arguments.split()]) == 0
    assert f"Instances       {row}" in capsys.readouterr().out


def test_info_works_without_the_data(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["info", "eval:QaOpen", "--data", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Instances       unknown: dataset 'google-research-datasets/nq_open'" in out
    assert "split                 'validation'" in out and "Sample episode" not in out


def test_info_as_json_has_the_facts_and_the_whole_sample_episode(
    counter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", counter, "--json", "--env-kwargs", "steps=12"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["id"] == counter and data["parameters"] == {"steps": 12, "samples": True}
    assert (data["optimum"], data["instances"], data["reward_range"]) == (None, None, [None, None])
    sample = data["sample"]
    assert [turn["action"] for turn in sample["turns"]] == [f"go {n}" for n in range(12, 0, -1)]
    assert (sample["stop_reason"], sample["turns"][-1]) == (
        "truncated",
        {"action": "go 1", "observation": "user: left: 0", "reward": 0.5},
    )


def test_info_as_json_says_which_data_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["info", "eval:QaOpen", "--json", "--data", str(tmp_path)]) == 0
    assert "google-research-datasets/nq_open" in json.loads(capsys.readouterr().out)["missing_data"]


def test_text_wraps_to_the_width_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["info", "game:Wordle-v0"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60
