"""check_judge(): scripted judges of known error are measured exactly."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [eval]")

from gem._internal.text import escaped
from gem.cli import main
from gem.errors import BadValue, EndpointError
from gem.graders.judge import Judge
from gem.policies.endpoint import Endpoint
from gem.testing.check_judge import check_judge, judge_pairs, rate
from gem.testing.fakes.endpoint import Answer, FakeEndpoint, ReceivedRequest

PAIRS = judge_pairs()
WRONG, RIGHT = ([n for n, pair in enumerate(PAIRS) if pair.correct is label] for label in (False, True))


def section(request: ReceivedRequest, name: str) -> str:
    found = re.search(rf"<<{name} (\w+)>>\n(.*)\n<<END {name} \1>>", request.body["messages"][1]["content"], re.DOTALL)
    assert found is not None
    return found[2]


NUMBERS = {(escaped(pair.question), escaped(pair.answer)): number for number, pair in enumerate(PAIRS)}


class ScriptedJudge:
    """Labels every pair correctly, except for the given ones, and sends no verdict for others."""

    def __init__(self, *, flipped: set[int] | None = None, silent: set[int] | None = None) -> None:
        self.flipped, self.silent = flipped or set(), silent or set()

    def __call__(self, request: ReceivedRequest) -> str | Answer:
        number = NUMBERS[section(request, "QUESTION"), section(request, "ANSWER")]
        if number in self.silent:
            return Answer(status=400, body="too long")
        token = re.search(r"<<NAME (\w+)>>", request.body["messages"][0]["content"])
        assert token is not None
        score = int(PAIRS[number].correct != (number in self.flipped))
        return json.dumps({"token": token[1], "reason": "because", "score": score})


def measured(script: Any, **kwargs: Any) -> Any:
    with FakeEndpoint(script) as fake, Endpoint(fake.url, "wise", retries=0) as endpoint:
        return check_judge(Judge(endpoint=endpoint), **kwargs)


def test_the_shipped_pairs_are_numerous_different_and_of_all_kinds():
    assert len(PAIRS) >= 60 and min(len(WRONG), len(RIGHT)) >= 30
    assert len({(pair.question, pair.answer) for pair in PAIRS}) == len(PAIRS)
    kinds = Counter(pair.kind for pair in PAIRS)
    assert set(kinds) == {"exact", "paraphrase", "near miss", "verbose", "hedge", "refusal", "injection"}
    for kind in ("verbose", "hedge", "refusal", "injection"):  # neither the kind nor the length gives the label away
        assert {pair.correct for pair in PAIRS if pair.kind == kind} == {False, True}
    assert all(pair.question.strip() and pair.reference.strip() and pair.answer.strip() for pair in PAIRS)


def test_a_perfect_judge_has_no_errors():
    done = []
    report = measured(ScriptedJudge(), progress=lambda *counts: done.append(counts))
    assert (report.false_accepts.count, report.false_rejects.count, report.failed, report.errors) == (0, 0, 0, [])
    assert done == [(n, len(PAIRS)) for n in range(1, len(PAIRS) + 1)]


@pytest.mark.parametrize(("accepts", "rejects", "silent"), [(3, 0, 0), (0, 2, 0), (5, 7, 4), (1, 1, 60)])
def test_a_judge_of_known_error_is_measured_exactly(accepts, rejects, silent):
    flipped = {*WRONG[:accepts], *RIGHT[:rejects]}
    failing = [n for n in range(len(PAIRS)) if n not in flipped][:silent]
    report = measured(ScriptedJudge(flipped=flipped, silent=set(failing)))
    assert (report.false_accepts.count, report.false_rejects.count, report.failed) == (accepts, rejects, silent)
    assert report.false_accepts.total == len(set(WRONG) - set(failing))
    assert report.false_rejects.total == len(set(RIGHT) - set(failing))
    assert [PAIRS.index(error.pair) for error in report.errors] == sorted({*flipped, *failing})


def test_a_judge_that_accepts_everything_has_only_false_accepts():
    report = measured(ScriptedJudge(flipped=set(WRONG)))
    assert (report.false_accepts.rate, report.false_rejects.rate) == (1.0, 0.0)


def test_a_judge_without_any_verdict_raises():
    with pytest.raises(EndpointError, match="500"):
        measured([Answer(status=500)])


def test_pairs_must_not_be_empty():
    with pytest.raises(BadValue, match="pairs must not be empty"):
        measured(ScriptedJudge(), pairs=[])


# Wilson's interval for 95 %, from R: binom::binom.wilson(x, n)
@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 20, 0.0, 0.1611), (1, 10, 0.0179, 0.4042), (5, 10, 0.2366, 0.7634), (45, 45, 0.9213, 1.0), (0, 0, 0.0, 1.0)],
)
def test_intervals_are_wilsons(count, total, low, high):
    found = rate(count, total)
    assert (found.low, found.high) == (pytest.approx(low, abs=2e-4), pytest.approx(high, abs=2e-4))


def test_gem_check_judge_prints_rates_with_intervals_and_the_errors(capsys):
    with FakeEndpoint(ScriptedJudge(flipped={WRONG[0], RIGHT[0]})) as fake:
        assert main(["check", "judge", "--model", "wise", "--base-url", fake.url]) == 0
    out = capsys.readouterr().out
    assert f"judge 'wise', {len(PAIRS)} labelled pairs" in out
    assert f"false accepts  1 of {len(WRONG)} wrong answers, 2.2% (95% interval 0.4% to 11.6%)" in out
    assert f"false rejects  1 of {len(RIGHT)} right answers, 2.9% (95% interval 0.5% to 14.9%)" in out
    assert f"false accept ({PAIRS[WRONG[0]].kind}): {PAIRS[WRONG[0]].question}" in out


def test_gem_check_judge_writes_json_and_exits_with_1_without_a_verdict(capsys):
    with FakeEndpoint(ScriptedJudge(silent={3})) as fake:
        assert main(["check", "judge", "--model", "wise", "--base-url", fake.url, "--json", "--votes", "3"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["failed"], report["false_accepts"]["count"], report["errors"][0]["error"]) == (1, 0, "no verdict")
