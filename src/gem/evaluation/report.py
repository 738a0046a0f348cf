"""The result of an evaluation: scores with intervals per environment, as a table, as JSON and as Markdown.

A sample is one rollout of one task. Failed samples have no score and enter no mean; the report says how the score would
move if all of them had been 0 or 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

from gem._internal.folders import plain
from gem._internal.inbound import read_json
from gem._internal.text import clip, counted, one_line
from gem.errors import BadValue
from gem.evaluation.columns import BY_KEY, COLUMNS, Column, EnvSamples, Sample, summed
from gem.evaluation.metrics import Estimate, suite_mean, task_means
from gem.evaluation.records import SETTINGS
from gem.wrappers.wrapper_factory import has_tool

REPORT, MARKDOWN, LATEX = "report.json", "report.md", "report.tex"
MAX_NOTE = 2_000  # characters of a note
MAX_FAILED_SHARE = 0.02  # of the samples; above it the score is not to be trusted
_COMPARED = {"name", "id", "wrappers", "score", "failed", "tasks"}  # what compare() reads of an environment
_SHOWN = tuple(column for column in COLUMNS if not column.family and not column.noted)

Tasks: TypeAlias = Mapping[str, Mapping[str, Sequence[float]]]  # task id → "scores" and "solved" of its rollouts


@dataclass(frozen=True, kw_only=True)
class EnvScore:
    """The scores of one environment.

    Args:
        name: name in the report.
        id, wrappers: the environment.
        description: which tasks were asked.
        planned: number of samples to take, tasks times rollouts.
        distinct: number of different tasks; equal episodes of several seeds are one.
        score … retries: see gem.evaluation.columns.
        if_failures_scored: the score if all failures had been 0, and if they had been 1.
        retry_causes: cause → number of the retries.
        causes: reason → number of failed samples.
        models: name of a model, as the endpoint reported it with its replies → number of finished samples.
        bounds: lowest and highest possible score; None if they are unknown.
        unanswered: why a first prompt had no reply → number of finished samples.
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
    calls: int
    cut: int
    overflowed: int
    refused: int
    invalid: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    tokens_reasoning: int
    cost: float
    latency_p50: float
    latency_p95: float
    seconds_policy: float
    seconds_env: float
    retries: int
    retry_causes: Mapping[str, int]
    causes: Mapping[str, int]
    models: Mapping[str, int]
    bounds: tuple[float, float] | None
    unanswered: Mapping[str, int]
    tasks: Tasks

    def cells(self) -> list[str]:
        """Return the cells of a table, in the order of EvalReport.columns."""
        return [self.name, *(self.cell(column) for column in _SHOWN)]

    def cell(self, column: Column) -> str:
        """Return a column's value as tables show it."""
        out_of = f"/{getattr(self, column.out_of)}" if column.out_of else ""
        return column.text(getattr(self, column.key)) + out_of


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
    found = EnvSamples(samples, bounds)
    values: dict[str, Any] = {column.key: column.compute(found) for column in COLUMNS}
    return EnvScore(
        name=name,
        id=id,
        wrappers=wrappers,
        description=description,
        planned=sum(map(len, samples.values())),
        distinct=len(samples),
        if_failures_scored=(_with_failures(samples, 0.0), _with_failures(samples, 1.0)),
        retry_causes=summed(s.retries for s in found.done),
        causes=dict(Counter(str(s.failure) for s in found.failures).most_common()),
        models=dict(Counter(model for s in found.done for model in s.models).most_common()),
        bounds=bounds,
        unanswered=dict(Counter(s.unanswered for s in found.done if s.unanswered is not None).most_common()),
        tasks={
            task: {"scores": [s.score for s in rollouts], "solved": [float(s.solved) for s in rollouts]}
            for task, rollouts in found.scored.items()
        },
        **values,
    )


@dataclass(frozen=True, kw_only=True)
class EvalReport:
    """The scores of an evaluation.

    Args:
        model: name of the model or policy.
        envs: one entry per environment.
        settings: what defines the evaluation; see gem.evaluation.evaluate.
        seconds: duration of this call.
        backend: what else decided the replies, by name: the host of the endpoint, the format of the weights.
        folder: folder of the records; None if they were not kept.
        lost: US dollars that failed attempts have cost, as far as known; they are in no cost of an environment.
        attempts_failed: reason → number of failed attempts, those of samples that ended when played again included.
    """

    model: str
    envs: Sequence[EnvScore]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    backend: Mapping[str, str] = field(default_factory=dict)
    folder: str | None = None
    lost: float = 0.0
    attempts_failed: Mapping[str, int] = field(default_factory=dict)

    columns = ("environment", *(column.name for column in _SHOWN))

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

    def suite(self) -> dict[str, Estimate]:
        """Return the means over environments of score and solved, by key; empty unless two environments have outcomes.

        Each environment counts once; see gem.evaluation.metrics.suite_mean().
        """
        return suite_of([env.tasks for env in self.envs], [vars(env) for env in self.envs])

    def to_json(self) -> dict[str, Any]:
        """Return plain data. Undefined numbers are None. "columns" defines the numbers of each environment."""
        more = {"served": self.served, "failed_share": self.failed_share, "complete": self.complete}
        return dict(
            plain_data(vars(self) | more | {"suite": self.suite(), "columns": [column.about() for column in COLUMNS]})
        )

    def to_markdown(self) -> str:
        """Return a table, and what a reader must know about its numbers."""
        rows = [list(self.columns), ["---"] * len(self.columns), *(env.cells() for env in self.envs)]
        table = "\n".join(markdown_row(row) for row in rows)
        return (
            f"# Evaluation of {one_line(self.model)}\n\n{table}\n\n"
            + "\n".join(f"- {line}" for line in self.notes())
            + "\n"
        )

    def to_latex(self) -> str:
        """Return a tabular of the scores with intervals, for a paper; it needs no package."""
        means = [column for column in _SHOWN if column.per_task]
        rows = [["environment", BY_KEY["done"].name]]
        for column in means:
            rows[0] += [column.name, "95\\,\\% interval"]
        for env in self.envs:
            cells = [_latex(one_line(env.name)), env.cell(BY_KEY["done"])]
            for column in means:
                value, _, interval = column.text(getattr(env, column.key)).partition(" ")
                cells += [value, interval]
            rows.append(cells)
        lines = [" & ".join(row) + r" \\" for row in rows]
        head = [
            f"% Evaluation of {one_line(self.model)}",
            rf"\begin{{tabular}}{{lr{'rc' * len(means)}}}",
            r"\hline",
            lines[0],
            r"\hline",
        ]
        return "\n".join([*head, *lines[1:], r"\hline", r"\end{tabular}"]) + "\n"

    def _repeated(self, env: EnvScore) -> str:
        """Return how many tasks an environment has, if several of its seeds start equal episodes."""
        seeds = env.planned // self.settings.get("rollouts", env.planned)
        return f"; equal episodes are of one task, so {counted(env.distinct, 'task')}" if env.distinct < seeds else ""

    def notes(self) -> list[str]:
        """Return lines on pass@k, failures, and how the intervals are meant."""
        means = [column for column in COLUMNS if column.per_task]
        defined = "; ".join(f"{column.name}: {column.definition}" for column in means)
        lines = [f"{defined}; both with 95 % intervals over tasks."]
        if suite := self.suite():
            shown = ", ".join(f"{BY_KEY[key].name} {value}" for key, value in suite.items())
            lines.append(f"Mean over the {len(self.envs)} environments, each counted once: {shown}.")
        for env in self.envs:
            lines.append(f"{env.name}: {env.description}{self._repeated(env)}.")
            for column in COLUMNS:
                if column.family and env.done and (values := getattr(env, column.key)):
                    shown = ", ".join(f"{column.name[:-1]}{k} {column.text(value)}" for k, value in values.items())
                    lines.append(f"{env.name}: {shown}")
            is_native = bool(self.settings.get("native_tools")) and has_tool(env.wrappers)
            if env.calls == 0 and (is_native or "mcp" in self.settings):
                lines.append(
                    f"{env.name}: no tool was called in {counted(env.done, 'sample')}. If the model never calls one, "
                    "the server may not pass the tools on: its chat template may have no place for them, or it may "
                    "need options to read calls."
                )
            if env.latency_p50 > 0:  # a model has replied
                times = [f"{c.name} {env.cell(c)} s" for c in COLUMNS if c.noted and c.unit == "seconds"]
                lines.append(f"{env.name}: {', '.join(times)}")
            if env.retry_causes:
                lines.append(
                    f"{env.name}: retries after {', '.join(f'{c} ({n:,})' for c, n in env.retry_causes.items())}"
                )
            if env.failed:
                low, high = env.if_failures_scored
                cause = next(iter(env.causes))
                lines.append(
                    f"{env.name}: {env.failed} of {env.planned} samples failed and are in no mean; scored 0 or 1, they "
                    f"would make the score {low:.3f} or {high:.3f}. Most frequent cause: {cause}"
                )
            if env.unanswered:
                count, cause = sum(env.unanswered.values()), next(iter(env.unanswered))
                lines.append(
                    f"{env.name}: the first prompt of {count} of {env.done} samples had no reply; they are scored "
                    f"without an action. Most frequent cause: {cause}"
                )
        attempts = sum(self.attempts_failed.values())
        if attempts > sum(env.failed for env in self.envs):
            cause = next(iter(self.attempts_failed))
            lines.append(
                f"{counted(attempts, 'attempt')} failed; failed samples are played again. Most frequent cause: {cause}"
            )
        if self.lost:
            lines.append(f"Besides, failed attempts have cost ${self.lost:,.4f} more.")
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
        how = f"; `gem eval --resume {path}` writes it" if (Path(path) / SETTINGS).is_file() else ""
        raise BadValue(f"cannot read the report {file} ({e.strerror}){how}") from e
    except ValueError as e:
        raise BadValue(f"{file} is not a report: {e}") from e


def suite_of(tasks: Sequence[Tasks], values: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
    """Return the means over environments by key of column, as EvalReport.suite() does.

    Args:
        tasks: EnvScore.tasks of each environment.
        values: key of column → Estimate, of each environment.
    """
    if len(tasks) < 2 or not all(tasks):
        return {}
    return {
        column.key: suite_mean(
            [task_means([found[column.per_task] for found in each.values()]) for each in tasks],
            [each[column.key] for each in values],
        )
        for column in COLUMNS
        if column.per_task
    }


def _with_failures(samples: Mapping[str, Sequence[Sample | None]], score: float) -> float:
    """Return the mean over tasks if every failed sample had this score."""
    means = []
    for rollouts in samples.values():
        played = [s.score if s.failure is None else score for s in rollouts if s is not None]
        means += [sum(played) / len(played)] if played else []
    return sum(means) / len(means) if means else math.nan


def plain_data(data: Any) -> Any:
    """Return dataclasses and named tuples as JSON data by the names of their fields, and None for undefined numbers."""
    if is_dataclass(data):
        data = vars(data)
    if hasattr(data, "_asdict"):
        data = data._asdict()
    if isinstance(data, Mapping):
        return {str(key): plain_data(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain_data(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _latex(text: str) -> str:
    escaped = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(escaped.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)


def markdown_row(cells: Sequence[str]) -> str:
    """Return a row of a table. Names cannot end their cell or their line."""
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"
