"""Compare evaluations: runs by environments and columns, with paired differences on the tasks that they share.

Evaluations whose settings are equal but for the seed are one run: their rollouts of a task are pooled.
"""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from gem._internal.inbound import shaped
from gem._internal.text import counted, one_line, short_repr
from gem.errors import BadValue
from gem.evaluation.columns import BY_KEY, COLUMNS, Column, EnvSamples, Sample
from gem.evaluation.metrics import (
    Estimate,
    PairedDifference,
    interquartile_interval,
    paired_difference,
    suite_mean,
    task_means,
)
from gem.evaluation.report import markdown_row, plain_data, read_report, suite_of

MAX_FLIPS = 5  # tasks that are listed per environment and run
_AVERAGED = [column for column in COLUMNS if column.per_task]


class Flip(NamedTuple):
    """A task that one run solves in most rollouts, and the other does not.

    Args:
        task: its id.
        before, after: share of solved rollouts in the first run, and in the other.
        link: where its episodes are in the page that `gem view` writes for both.
    """

    task: str
    before: float
    after: float
    link: str


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """One run: an evaluation, or several with different seeds.

    Args:
        name: name in tables.
        paths: its evaluations.
        seeds: the seed of each; None if it has none.
    """

    name: str
    paths: Sequence[str]
    seeds: Sequence[int | None]


@dataclass(frozen=True, kw_only=True)
class ComparedEnv:
    """One environment of a comparison.

    Args:
        name: of the environment.
        values: for each run, key of column → value, as in its report. For several seeds, score, solved, pass@k and
            pass^k are those of all rollouts, and other numbers are means over the seeds.
        paired: for each run after the first, key of column → paired difference to the first on the shared tasks; empty
            without shared tasks.
        shared: for each run after the first, the number of shared tasks.
        flipped: for each run after the first, the shared tasks that only one of the two solves, with the largest change
            first.
    """

    name: str
    values: Sequence[Mapping[str, Any]]
    paired: Sequence[Mapping[str, PairedDifference]]
    shared: Sequence[int]
    flipped: Sequence[Sequence[Flip]]

    @property
    def scores(self) -> list[float | None]:
        """The score of each run; None where the run has none."""
        return [None if math.isnan(values["score"].value) else values["score"].value for values in self.values]

    @property
    def differences(self) -> list[PairedDifference | None]:
        """The difference in score of each run after the first; None without shared tasks."""
        return [pairs.get("score") for pairs in self.paired]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Several evaluations side by side.

    Args:
        runs: the runs.
        envs: the environments that all runs have.
        suite: for each run, key of column → mean over the environments, each counted once; empty for one environment.
            "iqm" is the interquartile mean of the scores of all seeds in all environments, if a run has several seeds.
        suite_differences: for each run after the first, key of column → difference of these means on shared tasks.
        warnings: what differs between the runs besides the model.
    """

    runs: Sequence[ComparedRun]
    envs: Sequence[ComparedEnv]
    suite: Sequence[Mapping[str, Estimate]]
    suite_differences: Sequence[Mapping[str, Estimate]]
    warnings: Sequence[str]

    @property
    def columns(self) -> list[str]:
        names = [run.name for run in self.runs]
        return ["environment", "number", *names, *(f"{name} − {names[0]}" for name in names[1:])]

    def rows(self) -> list[list[tuple[str, bool]]]:
        """Return the cells of a table, each with whether it is the best mean of its row.

        Numbers that are 0 in all runs are left out. The name of an environment is in its first row only.
        """
        rows = []
        for env in self.envs:
            name = env.name
            for label, column, values in _shown(env.values):
                pairs = [pairs.get(column.key) for pairs in env.paired]
                cells = [_paired_text(pair, n) for pair, n in zip(pairs, env.shared, strict=True)]
                rows.append(_row(name, label, column, values, cells if column.per_task else [""] * len(cells)))
                name = ""
        name = f"all {counted(len(self.envs), 'environment')}"
        means = [(column.key, f"mean {column.name}", column) for column in _AVERAGED]
        for key, label, column in [*means, ("iqm", "interquartile mean", BY_KEY["score"])]:
            if any(key in values for values in self.suite):
                found = [values.get(key) for values in self.suite]
                rows.append(_row(name, label, column, found, [_signed(d.get(key)) for d in self.suite_differences]))
                name = ""
        return rows

    def flips(self) -> list[str]:
        """Return lines on the tasks that only one of two runs solves, with links to their episodes."""
        lines = []
        first, *others = self.runs
        for env in self.envs:
            for run, flips in zip(others, env.flipped, strict=True):
                if flips:
                    won = sum(flip.after > flip.before for flip in flips)
                    lost = counted(len(flips) - won, "task")
                    lines.append(f"{env.name}: only {run.name} solves {counted(won, 'task')}, only {first.name} {lost}")
                for task, before, after, link in flips[:MAX_FLIPS]:
                    lines.append(f"task {task}: {before:.0%} → {after:.0%} solved, {link}")
                if len(flips) > MAX_FLIPS:
                    lines.append(f"{len(flips) - MAX_FLIPS:,} more tasks are in the JSON of this comparison")
        if lines:
            paths = " ".join(shlex.quote(_folder(path)) for run in self.runs for path in run.paths)
            lines.append(f"The links lead to the page that this writes: gem view {paths}")
        return lines

    def to_markdown(self) -> str:
        """Return a table with the best mean of each row in bold, the tasks that flipped, and the warnings."""
        rows = [self.columns, ["---"] * len(self.columns)]
        rows += [[f"**{text}**" if is_best else text for text, is_best in row] for row in self.rows()]
        table = "\n".join(map(markdown_row, rows))
        return (
            "\n".join([table, "", *(f"- {one_line(line)}" for line in [*self.flips(), *self.warnings])]).rstrip() + "\n"
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with a name for each number. Undefined numbers are None."""
        return dict(plain_data(vars(self) | {"columns": [column.about() for column in COLUMNS]}))


class _Run(NamedTuple):
    """Reports that are compared as one run, with the folder or file of each."""

    name: str
    paths: list[str]
    reports: list[Mapping[str, Any]]

    @property
    def seeds(self) -> list[int | None]:
        return [_seed(report) for report in self.reports]


def compare(paths: Sequence[str | Path]) -> Comparison:
    """Compare the reports of at least two evaluations.

    Evaluations with different seeds and otherwise equal settings are one run. Environments are matched by name, or if
    the runs share none by id and wrappers, or else by an id that each run has once, as with and without a tool.
    Differences are over the tasks that both have finished.

    Args:
        paths: folders of evaluations, or their report.json. Differences are to the first.

    Raises:
        BadValue: fewer than two paths, a path without a report, or reports without a common environment.
    """
    if len(paths) < 2:
        raise BadValue(f"compare needs at least two evaluations, got {len(paths)}")
    reports = [read_report(path) for path in paths]
    with shaped(", ".join(map(str, paths)), "reports of evaluations"):
        runs = _grouped([str(path).rstrip("/") for path in paths], reports)
        by = next((by for by in _KEYS if _common(reports, by)), None)
        if by is None:
            raise BadValue(f"the evaluations have no environment in common: {', '.join(map(str, paths))}")
        matched = {
            name: [[_by(report, by)[name] for report in run.reports] for run in runs] for name in _common(reports, by)
        }
        names = [run.name for run in runs]
        warnings = _setting_warnings(runs)
        for name, envs in matched.items():
            firsts = [each[0] for each in envs]
            versions = [_versions(run.reports[0], env) for run, env in zip(runs, firsts, strict=True)]
            warnings += _env_warnings(name, names, firsts) + _differences(f"{name}: ", names, versions)
        page = f"{_folder(runs[0].paths[0])}/view.html"
        compared = [_compared(name, envs, page) for name, envs in matched.items()]
        suite, suite_differences = _suite(compared, list(matched.values()))
        return Comparison(
            runs=[ComparedRun(name=run.name, paths=run.paths, seeds=run.seeds) for run in runs],
            envs=compared,
            suite=suite,
            suite_differences=suite_differences,
            warnings=warnings,
        )


def _seed(report: Mapping[str, Any]) -> int | None:
    seed = report.get("settings", {}).get("policy", {}).get("sampling", {}).get("seed")
    return seed if type(seed) is int else None


def _grouped(paths: Sequence[str], reports: Sequence[Mapping[str, Any]]) -> list[_Run]:
    """Group evaluations that differ in their seed only, and name the groups."""
    groups: dict[str, list[int]] = {}
    for i, report in enumerate(reports):
        settings, seed = report.get("settings", {}), _seed(report)
        policy = settings.get("policy", {})
        sampling = {name: value for name, value in policy.get("sampling", {}).items() if name != "seed"}
        facts = [{**settings, "policy": {**policy, "sampling": sampling}}, report.get("served"), report.get("backend")]
        key = json.dumps([facts, i if seed is None else None], sort_keys=True)
        seeds = [_seed(reports[j]) for j in groups.get(key, [])]
        groups.setdefault(f"{key}{i}" if seed in seeds else key, []).append(i)
    models = [str(reports[members[0]].get("model")) for members in groups.values()]
    is_unique = len(set(models)) == len(models)
    runs = []
    for model, members in zip(models, groups.values(), strict=True):
        count = f" ({len(members)} seeds)" if len(members) > 1 else ""
        name = (model if is_unique else paths[members[0]]) + count
        runs.append(_Run(name, [paths[i] for i in members], [reports[i] for i in members]))
    return runs


_Key: TypeAlias = Callable[[Mapping[str, Any]], str]
# What environments of several reports are matched by: the first of these that all reports share.
_KEYS: tuple[_Key, ...] = (
    lambda env: str(env["name"]),
    lambda env: "+".join(filter(None, (env["id"], env["wrappers"]))),
    lambda env: str(env["id"]),
)


def _by(report: Mapping[str, Any], key: _Key) -> dict[str, Mapping[str, Any]]:
    """Return the environments of a report by a key, without those that share theirs with another."""
    count = Counter(map(key, report["envs"]))
    return {key(env): env for env in report["envs"] if count[key(env)] == 1}


def _common(reports: Sequence[Mapping[str, Any]], key: _Key) -> list[str]:
    """Return the keys of the environments that all reports have."""
    return [name for name in _by(reports[0], key) if all(name in _by(report, key) for report in reports)]


def _compared(name: str, envs: Sequence[Sequence[Mapping[str, Any]]], page: str) -> ComparedEnv:
    first, *others = [_pooled(each) for each in envs]
    paired: list[Mapping[str, PairedDifference]] = []
    shared_counts, flipped = [], []
    for other in others:
        shared = [task for task in first if task in other]
        paired.append({c.key: paired_difference(*_scores(c, shared, first, other)) for c in _AVERAGED if shared})
        shared_counts.append(len(shared))
        flipped.append(_flipped(shared, first, other, page) if shared else [])
    return ComparedEnv(
        name=name,
        values=[_values(each) for each in envs],
        paired=paired,
        shared=shared_counts,
        flipped=flipped,
    )


def _pooled(envs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return task id → "scores" and "solved" of the rollouts of all seeds."""
    tasks: dict[str, dict[str, list[float]]] = {}
    for env in envs:
        for task, found in env["tasks"].items():
            kept = tasks.setdefault(task, {column.per_task: [] for column in _AVERAGED})
            for name, values in kept.items():
                values += map(float, found.get(name, ()))
    return tasks


def _scores(column: Column, tasks: Sequence[str], *runs: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Any]:
    return [[run[task][column.per_task] for task in tasks] for run in runs]


def _flipped(
    tasks: Sequence[str],
    first: Mapping[str, Mapping[str, Sequence[float]]],
    other: Mapping[str, Mapping[str, Sequence[float]]],
    page: str,
) -> list[Flip]:
    before, after = (task_means(scores).tolist() for scores in _scores(BY_KEY["solved"], tasks, first, other))
    found = [
        Flip(task, was, now, f"{quote(page)}#task={quote(task)}")
        for task, was, now in zip(tasks, before, after, strict=True)
        if (was > 0.5) != (now > 0.5)
    ]
    return sorted(found, key=lambda flip: -abs(flip.after - flip.before))


def _folder(path: str) -> str:
    return path.removesuffix("/report.json")


def _values(envs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return key of column → value, for the reports of one environment with different seeds."""
    if len(envs) == 1:
        return {column.key: _read(column, envs[0]) for column in COLUMNS}
    tasks = {
        task: [
            Sample(score, solved=bool(solved)) for score, solved in zip(found["scores"], found["solved"], strict=True)
        ]
        for task, found in _pooled(envs).items()
    }
    low, high = envs[0].get("bounds") or (None, None)
    pooled = EnvSamples(tasks, None if low is None or high is None else (float(low), float(high)))
    return {
        column.key: column.compute(pooled)
        if column.per_task or column.family
        else _mean([_read(column, env) for env in envs])
        for column in COLUMNS
    }


def _read(column: Column, env: Mapping[str, Any]) -> Any:
    """Return a value of report.json as Column.compute() returned it; NaN, or an empty mapping, if it is missing."""
    value = env.get(column.key)
    if column.family:
        return {int(k): Estimate.read(each) for k, each in (value or {}).items()}
    if isinstance(value, Mapping):
        return Estimate.read(value)
    if column.per_task or (value is not None and not (type(value) in (int, float) and math.isfinite(value))):
        raise ValueError(f"{column.key} is {short_repr(value)}")
    return math.nan if value is None else value


def _mean(values: Sequence[Any]) -> Any:
    numbers = [value.value if isinstance(value, Estimate) else value for value in values]
    mean = sum(numbers) / len(numbers)
    return int(mean) if all(type(number) is int for number in numbers) and mean == int(mean) else mean


def _suite(
    compared: Sequence[ComparedEnv], envs: Sequence[Sequence[Sequence[Mapping[str, Any]]]]
) -> tuple[list[Mapping[str, Estimate]], list[Mapping[str, Estimate]]]:
    """Return Comparison.suite and .suite_differences.

    Args:
        envs: by environment and run, the reports of each seed.
    """
    runs = list(zip(*envs, strict=True))
    pooled = [[_pooled(seeds) for seeds in run] for run in runs]
    suites = [suite_of(tasks, [env.values[i] for env in compared]) for i, tasks in enumerate(pooled)]
    if any(len(run[0]) > 1 for run in runs):
        for suite, run in zip(suites, runs, strict=True):
            found = interquartile_interval([[_read(BY_KEY["score"], env).value for env in seeds] for seeds in run])
            suite["iqm"] = found if len(run[0]) > 1 else found._replace(low=math.nan, high=math.nan)
    differences: list[Mapping[str, Estimate]] = []
    for i, other in enumerate(pooled[1:]):
        pairs = [env.paired[i] for env in compared]
        shared = [[task for task in was if task in now] for was, now in zip(pooled[0], other, strict=True)]
        found_by_key = {}
        for column in _AVERAGED if len(envs) > 1 and all(shared) else ():
            scores = [_scores(column, *each) for each in zip(shared, pooled[0], other, strict=True)]
            changes = [task_means(now) - task_means(was) for was, now in scores]
            found_by_key[column.key] = suite_mean(changes, [pair[column.key].difference for pair in pairs])
        differences.append(found_by_key)
    return list(suites), differences


def _shown(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Column, list[Any]]]:
    """Yield the label, the column and the value of each run, for the numbers that are not 0 or missing in all runs."""
    for column in COLUMNS:
        found = [values[column.key] for values in runs]
        if column.family:
            ks = sorted({k for value in found for k in value})
            for k in ks:
                yield f"{column.name[:-1]}{k}", column, [value.get(k) for value in found]
        elif any(isinstance(value, Estimate) or value > 0 for value in found):
            yield column.name, column, found


def _row(
    name: str, label: str, column: Column, values: Sequence[Any], differences: Sequence[str]
) -> list[tuple[str, bool]]:
    """Return the cells of a row. The best means are marked, unless all are equal."""
    means = {value.value for value in values if isinstance(value, Estimate) and not math.isnan(value.value)}
    best = max(means) if len(means) > 1 else math.nan
    cells = [(column.text(value), isinstance(value, Estimate) and value.value == best) for value in values]
    return [(name, False), (label, False), *cells, *((text, False) for text in differences)]


def _paired_text(pair: PairedDifference | None, shared: int) -> str:
    if pair is None:
        return "no shared task"
    return f"{_signed(pair.difference)} p={pair.p:.2g}, {counted(shared, 'task')}"


def _signed(found: Estimate | None) -> str:
    if found is None:
        return ""
    value, low, high, _ = found
    return f"{value:+.3f}" if math.isnan(low) else f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def _setting_warnings(runs: Sequence[_Run]) -> list[str]:
    names, firsts = [run.name for run in runs], [run.reports[0] for run in runs]
    warnings = _differences("", names, [_comparable(run) for run in runs])
    machines = [report.get("backend") or {} for report in firsts]
    warnings += _differences("", names, machines) if all(machines) else []  # older reports do not say it
    served = [report.get("served", []) for report in firsts]
    for name, report, models in zip(names, firsts, served, strict=True):
        if len(models) > 1:
            warnings.append(f"{name}: the endpoint reported several models: {', '.join(models)}")
        elif report.get("model") == firsts[0].get("model") and models != served[0]:
            before, now = (", ".join(each) or "unknown" for each in (served[0], models))
            warnings.append(f"the model that the endpoint reported differs: {before} in {names[0]}, {now} in {name}")
    for run in runs:
        if failed := sum(env["failed"] for report in run.reports for env in report["envs"]):
            warnings.append(f"{run.name}: {failed} failed samples are in no score")
        if not all(report.get("complete", True) for report in run.reports):
            warnings.append(f"{run.name} is not complete")
    return warnings


def _comparable(run: _Run) -> dict[str, Any]:
    """Return what should be equal in two runs, by the name that a warning gives it."""
    settings, seeds = run.reports[0].get("settings", {}), run.seeds
    names = ("gem", "rollouts", "prompt_template", "mcp", "token_limit", "native_tools")
    facts = {name: settings.get(name) for name in names}
    sampling = settings.get("policy", {}).get("sampling", {})
    return {**facts, **sampling, "seed": sampling.get("seed") if len(seeds) < 2 else seeds}


def _versions(report: Mapping[str, Any], env: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions of an environment in a report, by the name that a warning gives them."""
    recorded = report.get("settings", {}).get("envs", [])
    number = report["envs"].index(env)
    versions = recorded[number].get("versions", {}) if number < len(recorded) else {}
    names = {
        "version": "version of the environment",
        "arguments": "default arguments",
        "environment": "code of the environment",
        "grader": "grader",
    }
    return {names[key]: versions.get(key) for key in names} | dict(versions.get("libraries", {}))


def _differences(where: str, runs: Sequence[str], facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each fact of a run that differs from that of the first."""
    first = facts[0]
    return [
        f"{where}{key} differs: {first.get(key)!r} in {runs[0]}, {own.get(key)!r} in {run}"
        for run, own in zip(runs[1:], facts[1:], strict=True)
        for key in {**first, **own}
        if not _same(first.get(key), own.get(key))
    ]


def _same(one: Any, other: Any) -> bool:
    """Return whether two facts are equal. The content of files counts, not their names."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and "hash" in one:
        return bool(one["hash"] == other.get("hash"))
    return bool(one == other)


def _env_warnings(name: str, runs: Sequence[str], envs: Sequence[Mapping[str, Any]]) -> list[str]:
    warnings = []
    for run, env in zip(runs[1:], envs[1:], strict=True):
        if env["wrappers"] != envs[0]["wrappers"]:
            before, now = (repr(e["wrappers"]) for e in (envs[0], env))
            warnings.append(f"{name}: wrappers differ: {before} in {runs[0]}, {now} in {run}")
        first, own = (e["tasks"].keys() for e in (envs[0], env))
        if first.isdisjoint(own):
            warnings.append(
                f"{name}: {run} has no task of {runs[0]}; the arguments of the environment or its data differ"
            )
        elif first != own:
            warnings.append(
                f"{name}: {runs[0]} has {counted(len(first), 'task')} and {run} has {len(own):,}; the scores are over "
                f"all tasks of each run, the difference is over the {counted(len(first & own), 'task')} of both"
            )
    return warnings
