"""Rows for a leaderboard: what a run has scored, on which tasks, and with which versions, in one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gem._internal.folders import plain, sha256, write_text
from gem._internal.inbound import shaped
from gem.evaluation.columns import COLUMNS
from gem.evaluation.records import TRAJECTORIES
from gem.evaluation.report import read_report

FILE = "leaderboard.jsonl"
_SETTINGS = ("prompt_template", "mcp", "token_limit", "native_tools", "price")  # besides the policy's


def export_leaderboard(paths: Sequence[str], out: str) -> Path:
    """Write a file with a row per evaluation, and return it. Raises BadValue for a folder without a report."""
    file = Path(out)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, "".join(json.dumps(leaderboard_row(path)) + "\n" for path in paths))
    return file


def leaderboard_row(path: str) -> dict[str, Any]:
    """Return the row of an evaluation as JSON data.

    Names are those of report.json. ``hash`` of an environment is that of its tasks, and ``records`` the SHA-256 of
    trajectories.jsonl, so that the owner of the row can show which transcripts it is of; "" if they are not in the
    folder. Files are named by the hash of their content only.

    Raises:
        BadValue: the folder holds no report.
    """
    report = read_report(path)
    records = plain((Path(path) if Path(path).is_dir() else Path(path).parent) / TRAJECTORIES)
    with shaped(path, "a report of an evaluation"):
        settings = report["settings"]
        pairs = zip(report["envs"], settings["envs"], strict=True)
        return {
            "model": str(report["model"]),
            "served": report["served"],
            "gem": settings["gem"],
            "sampling": settings["policy"]["sampling"],
            "rollouts": settings["rollouts"],
            **{name: _without_paths(settings[name]) for name in _SETTINGS if settings.get(name)},
            "complete": report["complete"],
            "failed_share": report["failed_share"],
            "suite": report.get("suite", {}),
            "envs": [_env_row(env, planned) for env, planned in pairs],
            "records": sha256(records) if records.exists() else "",
        }


def _env_row(env: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: env[name] for name in ("name", "id", "wrappers", "planned")}
    asked = {"tasks": env.get("distinct", planned["tasks"]), "hash": planned["hash"], "kwargs": planned["kwargs"]}
    return {**named, **asked, "versions": planned["versions"], **{c.key: env.get(c.key) for c in COLUMNS}}


def _without_paths(setting: Any) -> Any:
    if not isinstance(setting, Mapping):
        return setting
    return {name: value for name, value in setting.items() if name != "file"}
