"""The columns of an evaluation: each number's name, definition, unit, computation and format, once.

Reports (table, Markdown, LaTeX, JSON), comparisons, exports, the viewer and docs/reference/columns.md read them here. A
further column is a field of Sample that holds what a single episode contributes, a row of COLUMNS, and a field of
EnvScore in gem.evaluation.report with the key of the row.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gem.core import StopReason
from gem.evaluation.cost import Price, sum_of_known, total_cost
from gem.evaluation.metrics import Estimate, mean_interval, pass_at_k, pass_hat_k
from gem.policies.usage import retries_of, token_counts, token_usage
from gem.trajectory import Trajectory

_UNKNOWN = Estimate(math.nan, math.nan, math.nan, "t")
_KS = (2, 4, 8, 16, 32, 64, 128)  # k of pass@k, besides the number of rollouts


@dataclass(frozen=True)
class Sample:
    """The outcome of one rollout of one task.

    Args:
        score: sum of rewards; NaN for a failed sample.
        solved: whether the environment reported success.
        cut: whether a reply reached the token limit.
        overflowed: whether the conversation outgrew the model's context.
        refused: whether the model refused to reply, or a content filter removed its reply.
        invalid: number of turns with an invalid action.
        tokens_in, tokens_out: as reported by the endpoint, or as fed and sampled; 0 if unknown.
        calls: number of tool calls, refused ones included.
        failure: why the sample failed; None if it did not.
        models: names of the models that replied, as the endpoint reports them.
        tokens_cached, tokens_reasoning: the part of tokens_in that a cache served, and of tokens_out that is hidden
            reasoning; 0 if the endpoint does not report them.
        cost: US dollars; None if it is not known.
        requests: seconds of each request to the policy, its retries included.
        seconds_policy, seconds_env: seconds in total that it waited for them.
        retries: cause → number of requests sent again for it.
        unanswered: why the first prompt had no reply, such as a prompt above the context; None if it had one.
    """

    score: float
    solved: bool = False
    turns: int = 0
    cut: bool = False
    overflowed: bool = False
    refused: bool = False
    invalid: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0
    failure: str | None = None
    models: Sequence[str] = ()
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    cost: float | None = None
    requests: Sequence[float] = ()
    seconds_policy: float = 0.0
    seconds_env: float = 0.0
    retries: Mapping[str, int] = field(default_factory=dict)
    unanswered: str | None = None

    @classmethod
    def of(cls, trajectory: Trajectory, price: Price | None = None) -> Sample:
        """Return the outcome of a trajectory.

        Args:
            price: of the model; None takes the cost that the endpoint has charged, if it says so.
        """
        turns = trajectory.turns
        usages = [token_usage(turn.usage) for turn in turns]
        counts = [
            token_counts(usage, len(turn.context), len(turn.sampled_ids))
            for usage, turn in zip(usages, turns, strict=True)
        ]
        return cls(
            trajectory.total_reward if trajectory.failure is None else math.nan,
            trajectory.solved,
            len(turns),
            any(turn.finish == "length" for turn in turns),
            trajectory.stop_reason == StopReason.MAX_TOKENS,
            trajectory.stop_reason == StopReason.REFUSED,
            sum(turn.invalid is not None for turn in turns),
            sum(fed for fed, _ in counts),
            sum(sampled for _, sampled in counts),
            sum(len(turn.tool_calls) for turn in turns),
            trajectory.failure,
            tuple(sorted({turn.model for turn in turns if turn.model is not None})),
            tokens_cached=sum(usage.get("cached_tokens", 0) for usage in usages),
            tokens_reasoning=sum(usage.get("reasoning_tokens", 0) for usage in usages),
            cost=total_cost(turns, price),
            requests=tuple(
                turn.seconds["policy"]
                for turn in turns
                if "policy" in turn.seconds and (turn.usage or turn.model or turn.sampled_ids)  # of a model
            ),
            seconds_policy=sum(turn.seconds.get("policy", 0.0) for turn in turns),
            seconds_env=sum(turn.seconds.get("env", 0.0) for turn in turns),
            retries=summed(map(retries_of, usages)),
            unanswered=_unanswered(trajectory),
        )


def _unanswered(trajectory: Trajectory) -> str | None:
    turns = trajectory.turns
    if not turns and trajectory.stop_reason == StopReason.MAX_TOKENS:
        return "it is above the limit of the context"
    is_refused = len(turns) == 1 and trajectory.stop_reason in (StopReason.MAX_TOKENS, StopReason.REFUSED)
    return turns[0].explanation if is_refused else None


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of counts by name, the most frequent first."""
    found = Counter[str]()
    for count in counts:
        found.update(count)
    return dict(found.most_common())


@dataclass(frozen=True)
class EnvSamples:
    """The samples of one environment, from which its columns are computed.

    Args:
        tasks: task id → one entry per rollout; None for a rollout that was not played yet.
        bounds: lowest and highest possible score; None if they are unknown.
    """

    tasks: Mapping[str, Sequence[Sample | None]]
    bounds: tuple[float, float] | None = None

    @cached_property
    def played(self) -> list[Sample]:
        return [sample for rollouts in self.tasks.values() for sample in rollouts if sample is not None]

    @cached_property
    def done(self) -> list[Sample]:
        """The finished samples, which all columns but ``failed`` and ``planned`` describe."""
        return [sample for sample in self.played if sample.failure is None]

    @cached_property
    def failures(self) -> list[Sample]:
        return [sample for sample in self.played if sample.failure is not None]

    @cached_property
    def scored(self) -> dict[str, list[Sample]]:
        """Task id → its finished samples, for the tasks that have some."""
        found = {
            task: [sample for sample in rollouts if sample is not None and sample.failure is None]
            for task, rollouts in self.tasks.items()
        }
        return {task: rollouts for task, rollouts in found.items() if rollouts}


@dataclass(frozen=True)
class Column:
    """One number of an evaluation.

    Args:
        key: its name in report.json and in EnvScore.
        name: its heading in tables.
        unit: such as "turns"; "" for a share.
        definition: one sentence, for a reader of the table.
        compute: returns the value for the samples of an environment: an Estimate, an int, a float (NaN if it is
            undefined), or a mapping from k to one of them for a family.
        form: format specification of the value.
        out_of: key of the number that this one is a part of, shown as "12/20"; "" for none.
        per_task: key in EnvScore.tasks of what the column is the mean of, which comparisons pair and suites average; ""
            if it is kept for no task.
        family: whether the value is a mapping from k, as for pass@k; tables show families in notes.
        noted: whether the notes of a report show it, and not its table.
    """

    key: str
    name: str
    unit: str
    definition: str
    compute: Callable[[EnvSamples], Any]
    form: str = ","
    out_of: str = ""
    per_task: str = ""
    family: bool = False
    noted: bool = False

    def about(self) -> dict[str, str]:
        """Return what a reader must know, as report.json has it."""
        return {name: getattr(self, name) for name in ("key", "name", "unit", "definition")}

    def text(self, value: Any) -> str:
        """Return a value as it is shown, "" if it is undefined.

        Args:
            value: as computed, or as report.json has it.
        """
        if isinstance(value, Mapping):
            value = Estimate.read(value)
        if value is None or math.isnan(value.value if isinstance(value, Estimate) else value):
            return ""
        if isinstance(value, Estimate):
            return str(value)
        is_mean = self.form == "," and value % 1 != 0  # of counts, over seeds
        is_long = self.form == ".3g" and value >= 100  # would be written as 1.23e+03
        return format(value, ",.1f" if is_mean else ",.0f" if is_long else self.form)


def _episodes(key: str, name: str, definition: str) -> Column:
    """Return a column: how many finished samples have a field that is true or above 0."""
    return Column(key, name, "episodes", definition, lambda s: sum(bool(getattr(sample, key)) for sample in s.done))


def _total(key: str, name: str, unit: str, definition: str) -> Column:
    """Return a column: the sum of a field over the finished samples."""
    return Column(key, name, unit, definition, lambda s: sum(getattr(sample, key) for sample in s.done))


def _latency(percentile: int, definition: str) -> Column:
    """Return a column: a percentile of the seconds of all requests."""

    def compute(samples: EnvSamples) -> float:
        requests = sorted(seconds for sample in samples.done for seconds in sample.requests)
        return requests[math.ceil(percentile / 100 * len(requests)) - 1] if requests else math.nan

    key, name = f"latency_p{percentile}", f"request p{percentile}"
    return Column(key, name, "seconds", definition, compute, ".3g", noted=True)


def _waits(key: str, name: str, definition: str) -> Column:
    """Return a column: the mean of a field with seconds, over the samples with requests to a model."""

    def compute(samples: EnvSamples) -> float:
        # Without a model, other episodes of the batch decide the time.
        return _mean([getattr(sample, key) for sample in samples.done if sample.requests])

    return Column(key, name, "seconds", definition, compute, ".3g", noted=True)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _cost(samples: EnvSamples) -> float:
    cost = sum_of_known(sample.cost for sample in samples.done)
    return math.nan if cost is None else cost


def _score(samples: EnvSamples) -> Estimate:
    scores = [[sample.score for sample in rollouts] for rollouts in samples.scored.values()]
    return mean_interval(scores, bounds=samples.bounds) if scores else _UNKNOWN


def _solved(samples: EnvSamples) -> Estimate:
    flags = [[float(sample.solved) for sample in rollouts] for rollouts in samples.scored.values()]
    return mean_interval(flags) if flags else _UNKNOWN


def _by_k(estimate: Callable[[int, int, int], float]) -> Callable[[EnvSamples], dict[int, Estimate]]:
    def compute(samples: EnvSamples) -> dict[int, Estimate]:
        most = min(map(len, samples.tasks.values()), default=0)  # equal episodes of several seeds are of one task
        counts = [(len(rollouts), sum(sample.solved for sample in rollouts)) for rollouts in samples.scored.values()]
        found = {}
        for k in sorted({k for k in (*_KS, most) if 2 <= k <= most}):
            shares = [[estimate(n, solved, k)] for n, solved in counts if n >= k]
            found[k] = mean_interval(shares, bounds=(0.0, 1.0)) if shares else _UNKNOWN
        return found

    return compute


COLUMNS = (
    Column("done", "done", "episodes", "finished episodes, of those planned", lambda s: len(s.done), out_of="planned"),
    Column(
        "score",
        "score",
        "reward",
        "mean total reward of a task's finished episodes, averaged over tasks",
        _score,
        per_task="scores",
    ),
    Column(
        "solved",
        "solved",
        "",
        "share of a task's finished episodes that the environment reports as solved, averaged over tasks",
        _solved,
        per_task="solved",
    ),
    Column(
        "pass_at",
        "pass@k",
        "",
        "probability that at least one of k episodes of a task is solved, averaged over tasks with k finished episodes",
        _by_k(pass_at_k),
        family=True,
    ),
    Column(
        "pass_hat",
        "pass^k",
        "",
        "probability that all of k episodes of a task are solved, averaged over tasks with k finished episodes",
        _by_k(pass_hat_k),
        family=True,
    ),
    Column(
        "turns",
        "turns",
        "turns",
        "mean number of turns of the finished episodes",
        lambda s: _mean([sample.turns for sample in s.done]),
        ".1f",
    ),
    _total("calls", "calls", "calls", "tool calls of the finished episodes, refused ones included"),
    _episodes("cut", "cut", "finished episodes with a reply at its token limit"),
    _episodes("overflowed", "overflow", "finished episodes that ended because the model's context was full"),
    _episodes(
        "refused",
        "refused",
        "finished episodes that ended because the model refused to reply or a content filter removed its reply",
    ),
    _episodes(
        "invalid",
        "invalid",
        "finished episodes with at least one action that the environment could not read or refused",
    ),
    Column(
        "failed",
        "failed",
        "episodes",
        "episodes that failed at the last attempt, for a reason outside the model; in no other column",
        lambda samples: len(samples.failures),
    ),
    _total("tokens_in", "tokens in", "tokens", "tokens of the prompts of all turns of the finished episodes"),
    _total("tokens_out", "tokens out", "tokens", "tokens of the replies of the finished episodes"),
    _total("tokens_cached", "cached", "tokens", "the part of tokens in that the endpoint reports as read from a cache"),
    _total(
        "tokens_reasoning",
        "reasoning",
        "tokens",
        "the part of tokens out that the endpoint reports as hidden reasoning",
    ),
    Column(
        "cost",
        "cost",
        "US dollars",
        "cost of the finished episodes, at the given price or as the endpoint reports it; empty if that of one turn is "
        "unknown",
        _cost,
        ",.4f",
    ),
    _latency(
        50, "median of the time from a request to its reply, retries included, over the turns of finished episodes"
    ),
    _latency(
        95,
        "95th percentile of the time from a request to its reply, retries included, over the turns of these episodes",
    ),
    _waits(
        "seconds_policy",
        "model time",
        "mean time that a finished episode waited for the model; empty if no model has replied",
    ),
    _waits(
        "seconds_env",
        "environment time",
        "mean time that a finished episode waited for steps of the environment; empty if no model has replied",
    ),
    Column(
        "retries",
        "retries",
        "requests",
        "requests of the finished episodes that were sent again, after a failure or a rate limit",
        lambda samples: sum(count for sample in samples.done for count in sample.retries.values()),
        noted=True,
    ),
)
BY_KEY = {column.key: column for column in COLUMNS}
