"""Logs of inspect-ai: write an evaluation as its JSON logs, one per environment, and read such logs.

The format is that of inspect-ai 0.3.285; ``inspect_ai.log.read_eval_log`` reads what is written here.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gem._internal.folders import write_text
from gem._internal.inbound import REPLY, loads, read_json, read_member, shaped
from gem.errors import BadValue, MissingDependency
from gem.evaluation.columns import COLUMNS, Sample
from gem.evaluation.cost import Price, price_of
from gem.evaluation.exchange.messages import (
    episode_of,
    evaluation_episodes,
    explanation_of,
    messages_of,
    number_of,
    openai_message,
    reward_parts_of,
    set_score,
    writable,
)
from gem.evaluation.records import SETTINGS
from gem.evaluation.report import read_report
from gem.trajectory import Trajectory

_FINISH = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
_LIMITS = {"max_tokens": "token", "max_turns": "message", "refused": "custom"}  # stop reason → inspect-ai's limit
_STOPS = {"token": "max_tokens", "context": "max_tokens", "message": "max_turns", "turn": "max_turns"}


def export_inspect(path: str, out: str) -> list[Path]:
    """Write a log for each environment of an evaluation, and return the files.

    Raises:
        BadValue: the folder is no evaluation, or has no report.
    """
    settings, episodes = evaluation_episodes(path)
    report = read_report(path)
    created = datetime.fromtimestamp((Path(path) / SETTINGS).stat().st_mtime, timezone.utc).isoformat()
    Path(out).mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    with shaped(path, "an evaluation"):
        for env, scores, played in zip(settings["envs"], report["envs"], episodes, strict=True):
            log = _log(settings, report, env, scores, played, created)
            file = _file_for(scores["name"], Path(out), files)
            write_text(file, json.dumps(writable(log), indent=1) + "\n")
            files.append(file)
    return files


def _file_for(name: str, folder: Path, others: Sequence[Path]) -> Path:
    """Return a path for the log of an environment, with its name, that is not yet taken."""
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60] or "environment"
    stems = [stem, *(f"{stem}-{n}" for n in range(2, len(others) + 2))]
    return next(file for file in (folder / f"{stem}.json" for stem in stems) if file not in others)


def _log(
    settings: Mapping[str, Any],
    report: Mapping[str, Any],
    env: Mapping[str, Any],
    scores: Mapping[str, Any],
    played: Sequence[Trajectory],
    created: str,
) -> dict[str, Any]:
    sampling = settings["policy"]["sampling"]
    names = ("temperature", "max_tokens", "top_p", "seed", "reasoning_effort")
    count = Counter[str]()
    samples = []
    for trajectory in played:
        count[str(trajectory.group_id)] += 1
        samples.append(_sample(trajectory, count[str(trajectory.group_id)], price_of(settings)))
    return {
        "version": 2,
        "status": "success" if report.get("complete") else "cancelled",
        "eval": {
            "created": created,
            "task": scores["name"],
            "task_args": env["kwargs"],
            "dataset": {"name": env["id"], "samples": env["tasks"], "shuffled": True},
            "model": str(settings["policy"]["model"]),
            "model_generate_config": {name: sampling[name] for name in names if sampling.get(name) is not None},
            "config": {"limit": env["tasks"], "epochs": settings["rollouts"]},
            "packages": {"gem-gym": settings["gem"]},
            "metadata": {
                "wrappers": env["wrappers"],
                "tasks_hash": env["hash"],
                "columns": {column.name: scores.get(column.key) for column in COLUMNS},
            },
        },
        "results": {
            "total_samples": scores["planned"],
            "completed_samples": scores["done"],
            "scores": [_metrics(name, scores[key]) for name, key in (("reward", "score"), ("solved", "solved"))],
        },
        "stats": {"started_at": created, "completed_at": created},
        "samples": samples,
    }


def _metrics(name: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    values = {"mean": estimate["value"], "ci_low": estimate["low"], "ci_high": estimate["high"]}
    metrics = {key: {"name": key, "value": value} for key, value in values.items() if value is not None}
    return {"name": name, "scorer": name, "params": {}, "metrics": metrics}


def _sample(trajectory: Trajectory, epoch: int, price: Price | None) -> dict[str, Any]:
    listed = list(messages_of(trajectory))
    messages = [_message(message) for message, _ in listed]
    first = next((i for i, (_, turn) in enumerate(listed) if turn is not None), len(listed))
    model = trajectory.model or "unknown"
    outcome = Sample.of(trajectory, price)
    sample: dict[str, Any] = {
        "id": str(trajectory.group_id),
        "epoch": epoch,
        "input": messages[:first] or "",
        "target": "",
        "messages": messages,
        "output": {"model": model, "choices": []},
        "metadata": {"env": trajectory.env_id, "seed": trajectory.seed, "stop_reason": trajectory.stop_reason},
        "model_usage": {model: _usage(outcome)},
    }
    if trajectory.turns:
        said = [message for message, (_, turn) in zip(messages, listed, strict=True) if turn is not None]
        reason = _FINISH.get(trajectory.turns[-1].finish or "stop", "unknown")
        sample["output"]["choices"] = [{"message": said[-1], "stop_reason": reason}]
    if trajectory.failure is not None:
        sample["error"] = {"message": trajectory.failure, "traceback": "", "traceback_ansi": ""}
        return sample
    why = {"explanation": trajectory.stop_reason or "", **explanation_of(trajectory)}
    metadata = {"reward_parts": reward_parts_of(trajectory), "checks": why.pop("checks", [])}
    sample["scores"] = {
        "reward": {"value": trajectory.total_reward, **why, "metadata": metadata},
        "solved": {"value": float(trajectory.solved), **why},
    }
    if trajectory.stop_reason in _LIMITS:
        sample["limit"] = {"type": _LIMITS[trajectory.stop_reason], "limit": 0}
    return sample


def _usage(outcome: Sample) -> dict[str, Any]:
    """Return the tokens as inspect-ai counts them since 2026: ``input_tokens`` are those that no cache served."""
    found = {
        "input_tokens": outcome.tokens_in - outcome.tokens_cached,
        "output_tokens": outcome.tokens_out,
        "total_tokens": outcome.tokens_in + outcome.tokens_out,
        "input_tokens_cache_read": outcome.tokens_cached,
        "reasoning_tokens": outcome.tokens_reasoning,
    }
    return found if outcome.cost is None else {**found, "total_cost": outcome.cost}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    if "tool_call_id" in message:
        found["tool_call_id"] = message["tool_call_id"]
    if message.get("tool_calls"):
        found["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    return found


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments, error = function.get("arguments"), None
    try:
        parsed = loads(arguments, "it", REPLY) if isinstance(arguments, str) else arguments
    except ValueError as e:
        parsed, error = None, str(e)
    if not isinstance(parsed, dict):
        parsed, error = {"arguments": arguments}, error or "the arguments are no object"
    found = {"id": str(call.get("id", "")), "function": str(function.get("name", "")), "arguments": parsed}
    return {**found, "type": "function", **({"parse_error": error} if error else {})}


def read_inspect(path: str) -> Iterator[Trajectory]:
    """Yield the samples of a log of inspect-ai as trajectories; the first score of a sample is its reward.

    Args:
        path: a .json log, or an .eval log.

    Raises:
        BadValue: the file is no such log.
    """
    for number, (header, sample) in enumerate(_samples(Path(path))):
        with shaped(f"{path}: sample {number}", "one of inspect-ai"):
            yield _trajectory(header, sample, number)


def _samples(path: Path) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                header = loads(read_member(archive, "header.json", extra="eval"), "header.json")
                for name in sorted(archive.namelist()):
                    if name.startswith("samples/"):
                        yield header, loads(read_member(archive, name, extra="eval"), name)
            return
        data = read_json(path)
        if not isinstance(data, dict) or not isinstance(data.get("eval"), dict):
            raise ValueError("it has no eval")
        if not isinstance(data.get("samples") or [], list):
            raise ValueError("its samples are no list")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as e:
        raise BadValue(f"{path} is not a log of inspect-ai: {getattr(e, 'strerror', None) or e}") from e
    except MissingDependency as e:
        how = "or convert it with `inspect log convert --to json`"
        raise MissingDependency(f"cannot read {path}, which is compressed with zstandard: {e}; {how}") from e
    for sample in data.get("samples") or ():
        yield data, sample


def _trajectory(header: Mapping[str, Any], sample: Mapping[str, Any], number: int) -> Trajectory:
    attachments = sample.get("attachments") or {}
    messages = [{**m, "content": _resolved(m.get("content"), attachments)} for m in sample["messages"]]
    about = header["eval"]
    model = about.get("model")
    trajectory = episode_of(
        [(_openai_calls(message), {}) for message in messages],
        env_id=str(about.get("task")),
        episode=number,
        group_id=str(sample["id"]),
        model=None if model is None else str(model),
        failure=None if sample.get("error") is None else str(sample["error"].get("message")),
    )
    if trajectory.turns and (choices := (sample.get("output") or {}).get("choices")):
        trajectory.turns[-1].finish = "length" if choices[-1].get("stop_reason") == "max_tokens" else "stop"
    scores = sample.get("scores") or {}
    values = {name: number_of(score.get("value")) for name, score in scores.items()}
    known = {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
    limit = sample.get("limit")
    stop = None if limit is None else _STOPS.get(limit.get("type"), str(limit.get("type")))
    first = next(iter(known), None)
    scored = {} if first is None else scores[first]
    why = {**(scored.get("metadata") or {}), "explanation": scored.get("explanation")}
    set_score(trajectory, None if first is None else known[first], {}, stop, why)
    return trajectory


def _resolved(content: Any, attachments: Mapping[str, str]) -> Any:
    """Replace references to attachments by their text."""
    if isinstance(content, str) and content.startswith("attachment://"):
        return attachments.get(content.removeprefix("attachment://"), content)
    if isinstance(content, list):
        return [_resolved(part, attachments) for part in content]
    if isinstance(content, dict) and "text" in content:
        return {**content, "text": _resolved(content["text"], attachments)}
    return content


def _openai_calls(message: Mapping[str, Any]) -> Mapping[str, Any]:
    calls = message.get("tool_calls") or ()
    return openai_message(message, [(c["id"], c["function"], json.dumps(c.get("arguments") or {})) for c in calls])
