"""Compare evaluations: models by environments, with paired differences on the tasks that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem._internal.inbound import shaped
from gem._internal.text import counted, one_line
from gem.errors import BadValue
from gem.evaluation.metrics import PairedDifference, paired_difference
from gem.evaluation.report import markdown_row, read_report


@dataclass(frozen=True, kw_only=True)
class ComparedEnv:
    """One environment of a comparison.

    Args:
        name: of the environment.
        scores: mean score of each run; None where the run has none.
        differences: for each run after the first, its paired difference to the first on the shared tasks; None without
            shared tasks.
        shared: for each run after the first, the number of shared tasks.
    """

    name: str
    scores: Sequence[float | None]
    differences: Sequence[PairedDifference | None]
    shared: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Several evaluations side by side.

    Args:
        runs: name of each run.
        envs: the environments that all runs have.
        warnings: what differs between the runs besides the model.
    """

    runs: Sequence[str]
    envs: Sequence[ComparedEnv]
    warnings: Sequence[str]

    @property
    def columns(self) -> list[str]:
        return ["environment", *self.runs, *(f"{run} − {self.runs[0]}" for run in self.runs[1:])]

    def rows(self) -> list[list[tuple[str, bool]]]:
        """Return the cells of a table, each with whether it is the best score of its row."""
        rows = []
        for env in self.envs:
            best = max((score for score in env.scores if score is not None), default=None)
            cells = [(env.name, False)]
            cells += [("" if score is None else f"{score:.3f}", score == best) for score in env.scores]
            cells += [(_shown(pair, n), False) for pair, n in zip(env.differences, env.shared, strict=True)]
            rows.append(cells)
        return rows

    def to_markdown(self) -> str:
        """Return a table with the best score of each row in bold, and the warnings."""
        rows = [self.columns, ["---"] * len(self.columns)]
        rows += [[f"**{text}**" if is_best else text for text, is_best in row] for row in self.rows()]
        table = "\n".join(map(markdown_row, rows))
        return "\n".join([table, "", *(f"- {one_line(warning)}" for warning in self.warnings)]).rstrip() + "\n"


def compare(paths: Sequence[str | Path]) -> Comparison:
    """Compare the reports of at least two evaluations.

    Environments are matched by name, or by id if the runs share no name, as with and without a tool. Differences are
    over the tasks that both runs have finished.

    Args:
        paths: folders of evaluations, or their report.json. Differences are to the first.

    Raises:
        BadValue: fewer than two paths, a path without a report, or reports without a common environment.
    """
    if len(paths) < 2:
        raise BadValue(f"compare needs at least two evaluations, got {len(paths)}")
    reports = [read_report(path) for path in paths]
    with shaped(", ".join(map(str, paths)), "reports of evaluations"):
        runs = [str(report.get("model")) for report in reports]
        if len(set(runs)) < len(runs):
            runs = [str(path).rstrip("/") for path in paths]
        by_name = [{env["name"]: env for env in report["envs"]} for report in reports]
        common = [name for name in by_name[0] if all(name in envs for envs in by_name)]
        if not common:
            by_name = [{env["id"]: env for env in report["envs"]} for report in reports]
            common = [name for name in by_name[0] if all(name in envs for envs in by_name)]
        if not common:
            raise BadValue(f"the evaluations have no environment in common: {', '.join(map(str, paths))}")
        matched = {name: [envs[name] for envs in by_name] for name in common}
        warnings = _setting_warnings(runs, reports)
        for name, envs in matched.items():
            versions = [_versions(report, env) for report, env in zip(reports, envs, strict=True)]
            warnings += _env_warnings(name, runs, envs) + _differences(f"{name}: ", runs, versions)
        return Comparison(runs=runs, envs=[_compared(name, envs) for name, envs in matched.items()], warnings=warnings)


def _compared(name: str, envs: Sequence[Mapping[str, Any]]) -> ComparedEnv:
    first, *others = envs
    differences: list[PairedDifference | None] = []
    shared_counts = []
    for other in others:
        shared = [task for task in first["tasks"] if task in other["tasks"]]
        scores = [[env["tasks"][task]["scores"] for task in shared] for env in (first, other)]
        differences.append(paired_difference(*scores) if shared else None)
        shared_counts.append(len(shared))
    means = [None if (value := env["score"]["value"]) is None else float(value) for env in envs]
    return ComparedEnv(name=name, scores=means, differences=differences, shared=shared_counts)


def _shown(pair: PairedDifference | None, shared: int) -> str:
    if pair is None:
        return "no shared task"
    value, low, high, _ = pair.difference
    return f"{value:+.3f} [{low:+.3f}, {high:+.3f}] p={pair.p:.2g}, {shared} tasks"


def _setting_warnings(runs: Sequence[str], reports: Sequence[Mapping[str, Any]]) -> list[str]:
    warnings = _differences("", runs, [_comparable(report) for report in reports])
    for run, report in zip(runs, reports, strict=True):
        served = report.get("served", [])
        if len(served) > 1:
            warnings.append(f"{run}: the endpoint reported several models: {', '.join(served)}")
        elif report.get("model") == reports[0].get("model") and served != reports[0].get("served", []):
            before = ", ".join(reports[0].get("served", [])) or "unknown"
            now = ", ".join(served) or "unknown"
            warnings.append(f"the model that the endpoint reported differs: {before} in {runs[0]}, {now} in {run}")
        if failed := sum(env["failed"] for env in report["envs"]):
            warnings.append(f"{run}: {failed} failed samples are in no score")
        if not report.get("complete", True):
            warnings.append(f"{run} is not complete")
    return warnings


def _comparable(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what should be equal in two runs, by the name that a warning gives it."""
    settings = report.get("settings", {})
    names = ("gem", "rollouts", "prompt_template", "mcp", "token_limit", "native_tools")
    facts = {name: settings.get(name) for name in names}
    return {**facts, **settings.get("policy", {}).get("sampling", {})}


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
