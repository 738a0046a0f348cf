"""The result of an evaluation: scores with intervals per environment, as a table, as JSON and as Markdown.

A sample is one rollout of one task. Failed samples have no score and enter no mean; the report says how the score would
move if all of them had been 0 or 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gem._internal.folders import plain
from gem._internal.inbound import read_json
from gem._internal.text import clip, one_line
from gem.core import StopReason
from gem.errors import BadValue
from gem.evaluation.metrics import Estimate, mean_interval, pass_at_k, pass_hat_k
from gem.trajectory import Trajectory

REPORT, MARKDOWN, LATEX = "report.json", "report.md", "report.tex"
MAX_NOTE = 2_000  # characters of a note
MAX_FAILED_SHARE = 0.02  # of the samples; above it the score is not to be trusted
_UNKNOWN = Estimate(math.nan, math.nan, math.nan, "t")
_COMPARED = {"name", "id", "wrappers", "score", "failed", "tasks"}  # what compare() reads of an environment
_COLUMNS = (
    "environment",
    "done",
    "score",
    "solved",
    "turns",
    "cut",
    "overflow",
    "refused",
    "invalid",
    "failed",
    "tokens in",
    "tokens out",
)


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
        failure: why the sample failed; None if it did not.
        models: names of the models that replied, as the endpoint reports them.
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
    failure: str | None = None
    models: Sequence[str] = ()

    @classmethod
    def of(cls, trajectory: Trajectory) -> Sample:
        turns = trajectory.turns
        if trajectory.failure is not None:
            return cls(math.nan, turns=len(turns), failure=trajectory.failure)
        return cls(
            trajectory.total_reward,
            trajectory.solved,
            len(turns),
            any(turn.finish == "length" for turn in turns),
            trajectory.stop_reason == StopReason.MAX_TOKENS,
            trajectory.stop_reason == StopReason.REFUSED,
            sum(turn.invalid is not None for turn in turns),
            sum(_count(turn.usage.get("prompt_tokens")) or len(turn.context) for turn in turns),
            sum(_count(turn.usage.get("completion_tokens")) or len(turn.sampled_ids) for turn in turns),
            models=tuple(sorted({turn.model for turn in turns if turn.model is not None})),
        )


def _count(value: Any) -> int:
    return value if type(value) is int else 0  # a record of someone else may have anything


@dataclass(frozen=True, kw_only=True)
class EnvScore:
    """The scores of one environment.

    Args:
        name: name in the report.
        id, wrappers: the environment.
        description: which tasks were asked.
        planned: number of samples to take, tasks times rollouts.
        distinct: number of different tasks; equal episodes of several seeds are one.
        done, failed: samples with a score; samples whose last attempt failed.
        score: mean reward per episode.
        solved: share of solved episodes.
        pass_at, pass_hat: k → pass@k and pass^k over the tasks with at least k finished rollouts.
        if_failures_scored: the score if all failures had been 0, and if they had been 1.
        turns: mean number of turns.
        cut, overflowed, refused, invalid: number of finished samples with a reply at the token limit, a full context, a
            refusal, an invalid action.
        tokens_in, tokens_out: tokens of finished samples.
        causes: reason → number of failed samples.
        models: name of a model, as the endpoint reported it with its replies → number of finished samples.
        tasks: task id → the scores and the solved flags (0 or 1) of its finished rollouts.
    """

    name: str
    id: str
    wrappers: str
    description: str
    planned: int
    distinct: int
    done: int
    failed: int
    score: Estimate
    solved: Estimate
    pass_at: Mapping[int, Estimate]
    pass_hat: Mapping[int, Estimate]
    if_failures_scored: tuple[float, float]
    turns: float
    cut: int
    overflowed: int
    refused: int
    invalid: int
    tokens_in: int
    tokens_out: int
    causes: Mapping[str, int]
    models: Mapping[str, int]
    tasks: Mapping[str, Mapping[str, Sequence[float]]]

    def cells(self) -> list[str]:
        """Return the cells of a table, in the order of EvalReport.columns."""
        counts = (self.cut, self.overflowed, self.refused, self.invalid, self.failed, self.tokens_in, self.tokens_out)
        turns = "" if math.isnan(self.turns) else f"{self.turns:.1f}"
        shown = ["" if math.isnan(found.value) else str(found) for found in (self.score, self.solved)]
        return [self.name, f"{self.done}/{self.planned}", *shown, turns, *(f"{count:,}" for count in counts)]


def env_score(
    samples: Mapping[str, Sequence[Sample | None]],
    *,
    name: str,
    id: str,
    wrappers: str = "",
    description: str = "",
    bounds: tuple[float, float] | None = None,
) -> EnvScore:
    """Summarize the samples of one environment.

    Args:
        samples: task id → one entry per rollout; None for a rollout that was not played yet.
        bounds: lowest and highest possible score; None if they are unknown.
    """
    played = [sample for rollouts in samples.values() for sample in rollouts if sample is not None]
    done, failures = [s for s in played if s.failure is None], [s for s in played if s.failure is not None]
    finished = {
        task: [s for s in rollouts if s is not None and s.failure is None] for task, rollouts in samples.items()
    }
    scored = {task: rollouts for task, rollouts in finished.items() if rollouts}
    flags = [[float(s.solved) for s in rollouts] for rollouts in scored.values()]
    most = min(map(len, samples.values()), default=0)  # equal episodes of several seeds are rollouts of one task
    ks = sorted({k for k in (2, 4, 8, 16, 32, 64, 128, most) if 2 <= k <= most})
    return EnvScore(
        name=name,
        id=id,
        wrappers=wrappers,
        description=description,
        planned=sum(map(len, samples.values())),
        distinct=len(samples),
        done=len(done),
        failed=len(failures),
        score=_mean([[s.score for s in rollouts] for rollouts in scored.values()], bounds),
        solved=_mean(flags, (0.0, 1.0)),
        pass_at={k: _mean(_per_task(pass_at_k, flags, k), (0.0, 1.0)) for k in ks},
        pass_hat={k: _mean(_per_task(pass_hat_k, flags, k), (0.0, 1.0)) for k in ks},
        if_failures_scored=(_with_failures(samples, 0.0), _with_failures(samples, 1.0)),
        turns=sum(s.turns for s in done) / len(done) if done else math.nan,
        cut=sum(s.cut for s in done),
        overflowed=sum(s.overflowed for s in done),
        refused=sum(s.refused for s in done),
        invalid=sum(s.invalid > 0 for s in done),
        tokens_in=sum(s.tokens_in for s in done),
        tokens_out=sum(s.tokens_out for s in done),
        causes=dict(Counter(str(s.failure) for s in failures).most_common()),
        models=dict(Counter(model for s in done for model in s.models).most_common()),
        tasks={
            task: {"scores": [s.score for s in rollouts], "solved": [float(s.solved) for s in rollouts]}
            for task, rollouts in scored.items()
        },
    )


@dataclass(frozen=True, kw_only=True)
class EvalReport:
    """The scores of an evaluation.

    Args:
        model: name of the model or policy.
        envs: one entry per environment.
        settings: what defines the evaluation; see gem.evaluation.evaluate.
        seconds: duration of this call.
        folder: folder of the records; None if they were not kept.
    """

    model: str
    envs: Sequence[EnvScore]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    folder: str | None = None

    columns = _COLUMNS

    def __getitem__(self, name: str) -> EnvScore:
        """Return the scores of an environment by its name. Raises BadValue for an unknown name."""
        for env in self.envs:
            if env.name == name:
                return env
        raise BadValue(f"no environment {name!r} in the report; there are {', '.join(env.name for env in self.envs)}")

    @property
    def failed_share(self) -> float:
        """Share of the planned samples that failed."""
        return sum(env.failed for env in self.envs) / max(1, sum(env.planned for env in self.envs))

    @property
    def served(self) -> list[str]:
        """Names of the models that replied, as the endpoint reported them."""
        return sorted({model for env in self.envs for model in env.models})

    @property
    def complete(self) -> bool:
        """Whether every sample was played, successfully or not."""
        return all(env.done + env.failed == env.planned for env in self.envs)

    def to_json(self) -> dict[str, Any]:
        """Return plain data. Undefined numbers are None."""
        more = {"served": self.served, "failed_share": self.failed_share, "complete": self.complete}
        return dict(_plain(vars(self) | more))

    def to_markdown(self) -> str:
        """Return a table, and what a reader must know about its numbers."""
        rows = [list(_COLUMNS), ["---"] * len(_COLUMNS), *(env.cells() for env in self.envs)]
        table = "\n".join(markdown_row(row) for row in rows)
        return (
            f"# Evaluation of {one_line(self.model)}\n\n{table}\n\n"
            + "\n".join(f"- {line}" for line in self.notes())
            + "\n"
        )

    def to_latex(self) -> str:
        """Return a tabular of the scores with intervals, for a paper; it needs no package."""
        rows = [["environment", "samples", "score", "95\\,\\% interval", "solved", "95\\,\\% interval"]]
        for env in self.envs:
            cells = [_latex(one_line(env.name)), str(env.done)]
            for found in (env.score, env.solved):
                cells.append("" if math.isnan(found.value) else f"{found.value:.3f}")
                cells.append("" if math.isnan(found.low) else f"[{found.low:.3f}, {found.high:.3f}]")
            rows.append(cells)
        lines = [" & ".join(row) + r" \\" for row in rows]
        head = [
            f"% Evaluation of {one_line(self.model)}",
            r"\begin{tabular}{lrrcrc}",
            r"\hline",
            lines[0],
            r"\hline",
        ]
        return "\n".join([*head, *lines[1:], r"\hline", r"\end{tabular}"]) + "\n"

    def notes(self) -> list[str]:
        """Return lines on pass@k, failures, and how the intervals are meant."""
        lines = ["score: mean reward per episode; solved: share of episodes; both with 95 % intervals over tasks."]
        for env in self.envs:
            lines.append(f"{env.name}: {env.description}.")
            for symbol, values in (("pass@", env.pass_at), ("pass^", env.pass_hat)):
                if values and env.done:
                    lines.append(f"{env.name}: " + ", ".join(f"{symbol}{k} {value}" for k, value in values.items()))
            if env.failed:
                low, high = env.if_failures_scored
                cause = next(iter(env.causes))
                lines.append(
                    f"{env.name}: {env.failed} of {env.planned} samples failed and are in no mean; scored 0 or 1, they "
                    f"would make the score {low:.3f} or {high:.3f}. Most frequent cause: {cause}"
                )
        if any(name != self.model for name in self.served):
            lines.append(f"The endpoint reported as its model: {', '.join(self.served)}.")
        if not self.complete:
            lines.append("The evaluation is not complete.")
        return [clip(one_line(line), MAX_NOTE) for line in lines]  # causes and names come from servers


def read_report(path: str | Path) -> dict[str, Any]:
    """Return the JSON of a report, from its file or its folder. Raises BadValue for anything else."""
    file = plain(Path(path) / REPORT) if Path(path).is_dir() else Path(path)
    try:
        data: dict[str, Any] = read_json(file)
        if not isinstance(data, dict) or not isinstance(data.get("envs"), list):
            raise ValueError("it has no list of environments")
        if any(not isinstance(env, dict) or not env.keys() >= _COMPARED for env in data["envs"]):
            raise ValueError("an environment lacks its name, score or tasks")
        return data
    except OSError as e:
        how = f"; `gem eval --resume {path}` writes it" if Path(path).is_dir() else ""
        raise BadValue(f"cannot read the report {file} ({e.strerror}){how}") from e
    except ValueError as e:
        raise BadValue(f"{file} is not a report: {e}") from e


def _mean(scores: Sequence[Sequence[float]], bounds: tuple[float, float] | None) -> Estimate:
    return mean_interval(scores, bounds=bounds) if scores else _UNKNOWN


def _per_task(estimate: Any, flags: Sequence[Sequence[float]], k: int) -> list[list[float]]:
    return [[estimate(len(rollouts), int(sum(rollouts)), k)] for rollouts in flags if len(rollouts) >= k]


def _with_failures(samples: Mapping[str, Sequence[Sample | None]], score: float) -> float:
    """Return the mean over tasks if every failed sample had this score."""
    means = []
    for rollouts in samples.values():
        played = [s.score if s.failure is None else score for s in rollouts if s is not None]
        means += [sum(played) / len(played)] if played else []
    return sum(means) / len(means) if means else math.nan


def _plain(data: Any) -> Any:
    if isinstance(data, EnvScore):
        data = vars(data)
    if isinstance(data, Estimate):
        data = data._asdict()
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _latex(text: str) -> str:
    escaped = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(escaped.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


def markdown_row(cells: Sequence[str]) -> str:
    """Return a row of a table. Names cannot end their cell or their line."""
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"
