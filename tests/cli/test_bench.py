"""gem bench vec: what it measures is compared with the plain loop of the same run."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from gem.cli import main
from gem.cli.bench import HEADER, Config, measure, row, steps_per_second
from gem.vector import make_vec

QUICK = ["--num-envs", "4", "--steps", "40", "--repeats", "2"]


def test_the_table_has_a_line_for_each_backend_with_sync_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "vec", *QUICK, "--backends", "thread"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"sync .*1\.00", out) and re.search(r"thread .*\d\.\d\d", out)
    assert out.index("sync ") < out.index("thread ")
    assert "4 × game:GuessTheNumber-v0, 40 steps, 2 times" in out


def test_markdown_output_is_a_table_with_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "vec", *QUICK, "--backends", "sync", "--wrappers", "concat", "--markdown"]) == 0
    title, _, head, rule, *rows = capsys.readouterr().out.splitlines()
    assert (
        title.startswith("env-steps per second: 4 × game:GuessTheNumber-v0 with concat, 40 steps, 2 times, ")
        and "Python 3" in title
    )
    assert head == "| " + " | ".join(HEADER) + " |" and set(rule) <= set("|- ")
    assert len(rows) == 1 and re.fullmatch(r"\| sync \| [\d,]+ \| [\d,]+ \| [\d,]+ \| 1\.00 \|", rows[0])


def test_every_repeat_measures_every_backend() -> None:
    rates = measure(Config(what="vec", num_envs=2, steps=10, repeats=3, backends=["sync"]))
    assert list(rates) == ["sync"] and len(rates["sync"]) == 3 and min(rates["sync"]) > 0


def test_the_requested_steps_are_played_after_an_uncounted_first_round() -> None:
    env = make_vec("game:GuessTheNumber-v0", num_envs=4, max_turns=1)
    assert env.backend == "sync"
    steps_per_second(env, [["a"] * 4, ["b"] * 4], steps=10)
    assert sum(stats.episodes for stats in env.stats().values()) == 4 * (2 + 3)


def test_the_ratio_is_the_median_of_pairs() -> None:
    assert row("async", [10.0, 50.0, 30.0], [10.0, 100.0, 10.0]) == ("async", "30", "10", "50", "1.00")


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        ([], "gem bench requires WHAT"),
        (["envs"], "vec, got 'envs'"),
        (["vec", "--backends", "thraed"], "did you mean 'thread'"),
        (["vec", "--num-envs", "0"], "--num-envs .*at least 1.*got 0"),
        (["vec", "--env", "game:Wordel-v0"], "did you mean 'game:Wordle-v0'"),
        (["vec", "--wrappers", "conact"], "did you mean 'concat'"),
    ],
)
def test_a_usage_error_is_one_line(argv: list[str], part: str, usage_error: Callable[..., str]) -> None:
    assert re.search(part, usage_error("bench", *argv))


def test_no_number_is_cut_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("gem.cli.bench.measure", lambda config: {"sync": [123_456.0], "process": [98_765.0]})
    assert main(["bench", "vec", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "…" not in out and out.count("123,456") == 3 and "98,765" in out
