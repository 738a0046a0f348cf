"""Metrics of episodes, and their documentation."""

import re
from pathlib import Path
from typing import Any

import pytest

from gem.rl.metrics import summarize
from gem.rl.run.monitor import (
    IN_A_ROW,
    MAX_CLIPPED,
    MAX_CUT,
    MAX_EQUAL,
    MAX_GAP,
    MIN_ENTROPY,
    SKILLED,
    WARNINGS,
)
from gem.trajectory import Trajectory, Turn

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
SMALL = {"steps": 1, "batch": 4, "minibatch": 4, "imitation_steps": 1, "eval_episodes": 2}


def documented(title: str) -> dict[str, str]:
    """Return the first two cells of each row of a section's table."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section, re.MULTILINE))


def turn(**more: Any) -> Turn:
    return Turn("", "a", sampled_ids=[1, 2], reward=0.5, **more)


def test_a_summary_has_the_parts_of_the_reward_the_tool_calls_and_the_cut_replies():
    calls = [{"name": "python", "fault": None}, {"name": "python", "fault": "error"}]
    with_tool = Trajectory(turns=[turn(tool_calls=calls, reward_parts={"tool": 0.5}, finish="length"), turn()])
    summary = summarize([with_tool, Trajectory(turns=[turn(), turn(reward_parts={"task": 0.25, "tool": 0.25})])])
    assert summary["reward_parts"] == {"task": 0.125, "tool": 0.375}
    assert (summary["tool_calls"], summary["tool_errors"], summary["cut_replies"]) == (1.0, 0.5, 0.25)
    assert (summary["reward"], summary["reward_std"], summary["reply_tokens"]) == (1.0, 0.0, 2.0)


def test_a_summary_of_failed_episodes_counts_them_only():
    summary = summarize([Trajectory(failure="it broke")])
    assert summary.pop("failed") == 1 and summary.pop("tool_calls") == 0.0
    assert set(summary.values()) == {None}


def test_every_warning_and_its_threshold_are_documented():
    conditions = documented("Warnings")
    assert set(conditions) == set(WARNINGS) and "three updates in a row" in PAGE and IN_A_ROW == 3
    limits = {"cut_replies": MAX_CUT, "equal_groups": MAX_EQUAL, "sampler_gap": MAX_GAP}
    for name, limit in {**limits, "low_entropy": MIN_ENTROPY, "clipped": MAX_CLIPPED}.items():
        assert f"{limit:g}" in conditions[name]
    for name in ("equal_rewards", "equal_groups", "low_entropy"):
        assert f"`success` below {SKILLED:g}" in conditions[name]


@pytest.mark.train
def test_every_metric_is_documented_and_every_documented_metric_exists(tmp_path: Path):
    pytest.importorskip("torch")
    from gem.rl.config import TrainConfig
    from gem.rl.run.trainer import Trainer

    of_episodes = set(documented("Episodes"))
    found: set[str] = set()

    def check_summary(summary: dict[str, Any]) -> None:
        assert set(summary) - {"episodes"} <= of_episodes

    env = "game:GuessTheNumber-v0-easy"
    for more in (
        {"env": [env, "game:GuessTheNumber-v0-hard"], "curriculum": "levels"},
        {"advantage": "grpo", "group_size": 2, "curriculum": "seeds"},
        {"advantage": "gae"},
        {"advantage": "branch", "advantage_options": {"width": 1}},
    ):
        with Trainer.start(TrainConfig(out=str(tmp_path), name=str(len(found)), **SMALL, **more)) as trainer:
            row = trainer.run() or trainer.folder.read_metrics()[-1]
        for summary in row.pop("envs", {}).values():
            check_summary(summary)
        for evaluation in (row.pop("eval"), row.pop("untrained")):
            for by_mode in [evaluation, *evaluation.pop("sets", {}).values()]:
                assert list(by_mode) == ["greedy", "sampled"]
                for summary in by_mode.values():
                    check_summary(summary)
        found |= {f"time.{name}" for name in row.pop("time")} | set(row)
    assert found | {"reward_parts", "points"} == set(documented("Progress")) | of_episodes | set(documented("Learning"))
