"""What `gem eval` shows while it runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from gem.cli.eval.display import Display, report_table
from gem.evaluation.columns import Sample
from gem.evaluation.metrics import wilson_interval
from gem.evaluation.report import EvalReport, env_score

PLANNED = 20


def report(done: int, tokens: int = 9) -> EvalReport:
    """The report of an evaluation of 20 tasks, every fourth of which failed."""
    played = [Sample(float(n % 2), turns=3, tokens_in=70, tokens_out=tokens) for n in range(done)]
    failed = [Sample(float("nan"), failure="EndpointError: down")]
    samples = [failed[0] if n % 4 == 0 else sample for n, sample in enumerate(played)]
    samples += [None] * (PLANNED - done)
    scores = env_score({str(n): [sample] for n, sample in enumerate(samples)}, name="qa:Facts", id="qa:Facts")
    return EvalReport(model="m", envs=[scores], settings={"rollouts": 1})


def shown(counts: list[int], monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    clock = iter(range(100))
    monkeypatch.setattr("gem.cli.eval.display.time.monotonic", lambda: float(next(clock)))
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, color_system=None, highlight=False, width=160, height=40)
    with Display(console, detect=None) as display:
        for done in counts:
            display.update(report(done))
    return " ".join(out.getvalue().split())


def test_a_terminal_shows_a_table_with_scores_turns_tokens_failures_and_the_time_left(monkeypatch):
    text = shown([0, 12], monkeypatch, terminal=True)
    assert "20 tasks" in text and "Expected 95 % interval of a success rate: ±" in text
    for column in ("environment", "done", "score", "solved", "turns", "failed", "tokens in", "tokens out"):
        assert column in text
    assert "9/20" in text and str(wilson_interval(6, 9)) in text
    assert "12/20" not in text  # failed samples are not done
    assert "9/20 done, 3 failed, 4.5 samples/s, 40 tokens/s, 2 s left" in text


def test_the_first_failure_is_shown_once_and_tokens_only_if_there_are_some():
    out = io.StringIO()
    with Display(Console(file=out, width=160), detect=None) as display:
        for done in (0, 4, 12):
            failures = {"FunctionFailed: a:f: ValueError: no [b]": 1} if done else {}
            display.update(replace(report(done, tokens=0), attempts_failed=failures))
    text = out.getvalue()
    assert text.count("a sample failed: FunctionFailed: a:f: ValueError: no [b]") == 1
    assert "tokens/s" not in text and "samples/s, " in text


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_number_of_the_table_is_cut_off_in_a_narrow_terminal(width):
    samples = {str(n): [Sample(n / 7, turns=3, invalid=1, tokens_in=1_234_567, tokens_out=98_765)] for n in range(3)}
    scores = env_score(samples, name="game:GuessTheNumber-v0-easy", id="x")
    console = Console(width=width, file=io.StringIO())
    console.print(report_table(EvalReport(model="m", envs=[scores])))
    lines = [line.split("│")[1:-1] for line in console.file.getvalue().splitlines() if line.startswith("│")]
    columns = ["".join("".join(part).split()) for part in zip(*lines, strict=True)]
    assert columns == ["".join(cell.split()) for cell in scores.cells() if cell not in ("0", "")]


def test_elsewhere_a_line_is_printed_for_each_tenth(monkeypatch):
    text = shown([0, 1, 2, 12, 13, 20], monkeypatch, terminal=False)
    assert "environment" not in text.replace("1 environment,", "")
    assert text.count(" samples/s") == 2 and "15/20 done, 5 failed" in text
