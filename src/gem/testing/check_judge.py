"""check_judge(): measure how often an LLM judge accepts wrong answers and rejects right ones.

The labelled pairs of data/judge_pairs.jsonl were written for this purpose: paraphrases, near misses, verbose answers,
hedges, refusals and injected instructions. They are short and easy for people, so a judge that errs on them should not
be trusted with harder answers.

>>> from collections import Counter
>>> sorted(Counter(pair.correct for pair in judge_pairs()).items())
[(False, 45), (True, 34)]
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gem._internal.text import shorten
from gem.errors import BadValue, InfraError
from gem.evaluation.metrics import wilson_interval
from gem.graders.judge import Judge

__all__ = [
    "JudgeError",
    "JudgePair",
    "JudgeReport",
    "Rate",
    "check_judge",
    "judge_pairs",
]

PAIRS = Path(__file__).parent / "data" / "judge_pairs.jsonl"


@dataclass(frozen=True, kw_only=True)
class JudgePair:
    """An answer with the verdict that a judge should reach.

    Args:
        kind: what makes the answer difficult, such as "near miss".
        correct: whether the answer is right.
    """

    kind: str
    question: str
    reference: str
    answer: str
    correct: bool


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A number of errors, its share of the pairs that could have had this error, and the 95 % interval of the share.

    The interval is Wilson's score interval (E. B. Wilson, JASA 22, 1927). For 0 pairs it is 0 to 1.
    """

    count: int
    total: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class JudgeError:
    """A pair that a judge did not label as it should.

    Args:
        error: "false accept", "false reject" or "no verdict".
        reason: the judge's reason, or the message of the failure.
    """

    error: str
    pair: JudgePair
    reason: str


@dataclass(frozen=True, kw_only=True)
class JudgeReport:
    """How a judge graded labelled pairs.

    Args:
        model: the name of the judge's model.
        false_accepts: wrong answers that were accepted, of the wrong answers with a verdict.
        false_rejects: right answers that were not accepted, of the right answers with a verdict.
        failed: number of pairs without a verdict.
        errors: the pairs that were mislabelled or got no verdict, in the order of the pairs.
        seconds: duration.
    """

    model: str
    false_accepts: Rate
    false_rejects: Rate
    failed: int
    errors: Sequence[JudgeError]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-serializable data."""
        return asdict(self)

    def to_text(self) -> str:
        """Return the rates, and one line for each error."""
        total = self.false_accepts.total + self.false_rejects.total + self.failed
        lines = [
            f"judge {self.model!r}, {total} labelled pairs, {self.seconds:.1f} s",
            f"  false accepts  {_shown(self.false_accepts, 'wrong')}",
            f"  false rejects  {_shown(self.false_rejects, 'right')}",
            f"  no verdict     {self.failed} of {total}",
        ]
        for error in self.errors:
            answer = shorten(json.dumps(error.pair.answer, ensure_ascii=False), 80)
            lines += ["", f"{error.error} ({error.pair.kind}): {error.pair.question}", f"  answer: {answer}"]
            lines += [f"  reference: {error.pair.reference}", f"  judge: {shorten(error.reason, 200)}"]
        return "\n".join(lines)


def check_judge(
    judge: Judge,
    *,
    pairs: Sequence[JudgePair] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> JudgeReport:
    """Grade labelled pairs with a judge and count its errors. An answer counts as accepted if its grade is correct.

    Args:
        pairs: None for the pairs that judge_pairs() returns.
        progress: called with (pairs done, total pairs) after each pair.

    Raises:
        BadValue: there are no pairs.
        InfraError: no pair got a verdict; the error is that of the first pair.
    """
    pairs = judge_pairs() if pairs is None else pairs
    if not pairs:
        raise BadValue("pairs must not be empty")
    start = time.perf_counter()
    outcomes: dict[int, Any] = {}
    with ThreadPoolExecutor(judge.endpoint.concurrency, thread_name_prefix="check_judge") as pool:
        futures = {pool.submit(_outcome, judge, pair): number for number, pair in enumerate(pairs)}
        try:
            for future in as_completed(futures):
                outcomes[futures[future]] = future.result()
                progress(len(outcomes), len(pairs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            judge.endpoint.close()  # aborts the requests in flight, for which the pool would wait
            raise
    failures = [outcomes[number] for number in sorted(outcomes) if isinstance(outcomes[number], InfraError)]
    if len(failures) == len(pairs):
        raise failures[0]
    errors = [error for number, pair in enumerate(pairs) if (error := _error(pair, outcomes[number])) is not None]
    counts = Counter(error.error for error in errors)
    labels = Counter(pair.correct for number, pair in enumerate(pairs) if not isinstance(outcomes[number], InfraError))
    return JudgeReport(
        model=judge.endpoint.model,
        false_accepts=rate(counts["false accept"], labels[False]),
        false_rejects=rate(counts["false reject"], labels[True]),
        failed=len(failures),
        errors=errors,
        seconds=time.perf_counter() - start,
    )


def judge_pairs() -> list[JudgePair]:
    """Return the shipped pairs."""
    return [JudgePair(**json.loads(line)) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def rate(count: int, total: int) -> Rate:
    """Return a share with its 95 % interval.

    >>> found = rate(1, 10)
    >>> f"{found.rate:.1%}, {found.low:.1%} to {found.high:.1%}"
    '10.0%, 1.8% to 40.4%'
    """
    if total == 0:
        return Rate(count=count, total=0, rate=0.0, low=0.0, high=1.0)
    found = wilson_interval(count, total)
    return Rate(count=count, total=total, rate=found.value, low=found.low, high=found.high)


def _outcome(judge: Judge, pair: JudgePair) -> Any:
    """Return the grade of a pair, or the InfraError that prevented it."""
    try:
        return judge.grade(pair.answer, pair.reference, question=pair.question)
    except InfraError as e:
        return e


def _error(pair: JudgePair, outcome: Any) -> JudgeError | None:
    if isinstance(outcome, InfraError):
        return JudgeError(error="no verdict", pair=pair, reason=str(outcome))
    if outcome.correct is pair.correct:
        return None
    return JudgeError(error="false accept" if outcome.correct else "false reject", pair=pair, reason=outcome.reason)


def _shown(found: Rate, label: str) -> str:
    interval = f"95% interval {found.low:.1%} to {found.high:.1%}"
    return f"{found.count} of {found.total} {label} answers, {found.rate:.1%} ({interval})"
