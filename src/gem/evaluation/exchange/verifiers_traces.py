"""traces.jsonl of verifiers: write an evaluation as episodes that hold one trace each, and read such files.

The format is that of verifiers 0.4; ``verifiers.v1.utils.trace_store.read_episodes`` reads what is written here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gem._internal.folders import plain
from gem._internal.inbound import loads, read_text, shaped
from gem.errors import BadValue
from gem.evaluation.exchange.messages import (
    episode_of,
    evaluation_episodes,
    explanation_of,
    messages_of,
    openai_message,
    reward_parts_of,
    set_score,
    writable,
)
from gem.trajectory import Trajectory, Turn

TRACES = "traces.jsonl"
VERSION = "0.4.0"  # of the format
_FINISHES = ("stop", "length", "tool_calls")


def export_verifiers(path: str, out: str) -> list[Path]:
    """Write the episodes of an evaluation to out/traces.jsonl, and return that file.

    Raises:
        BadValue: the folder is no evaluation.
    """
    settings, episodes = evaluation_episodes(path)
    Path(out).mkdir(parents=True, exist_ok=True)
    file = plain(Path(out) / TRACES)
    with file.open("w", encoding="ascii") as opened:
        for env, played in zip(settings["envs"], episodes, strict=True):
            for trajectory in played:
                with shaped(path, "an evaluation"):
                    opened.write(json.dumps(writable(_episode(settings, env, trajectory))) + "\n")
    return [file]


def _episode(settings: Mapping[str, Any], env: Mapping[str, Any], trajectory: Trajectory) -> dict[str, Any]:
    key, ok = str(trajectory.group_id), trajectory.failure is None
    nodes: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for message, turn in messages_of(trajectory):
        parent = {} if not nodes else {"parent": len(nodes) - 1}
        nodes.append({**parent, "message": _message(message), **({} if turn is None else _sampled(turn))})
        if turn is not None:
            calls.append({"node": len(nodes) - 1, "model": trajectory.model, **_call(turn)})
    errors = [] if ok else [{"type": "GemFailure", "message": str(trajectory.failure)}]
    prompt = nodes[0]["message"]["content"] if nodes else None
    data = {"idx": trajectory.row_id if isinstance(trajectory.row_id, int) else None, "id": key, "prompt": prompt}
    task = {"type": env["id"], "data": {k: v for k, v in data.items() if v is not None}, "key": key, "hash": key}
    rewards = {"reward": {"score": trajectory.total_reward, "weight": 1.0}} if ok else {"reward": None}
    numbers = {"solved": float(trajectory.solved), "turns": float(len(trajectory.turns))}
    trace = {
        "version": 1,
        "id": f"{key}-{trajectory.episode}",
        "verifiers": {"version": VERSION},
        "task": task,
        "agent": {"config": {"model": str(settings["policy"]["model"])}},
        "nodes": nodes,
        "calls": calls,
        "rewards": rewards,
        "metrics": {**numbers, **reward_parts_of(trajectory)},
        "info": {"seed": trajectory.seed, "wrappers": env["wrappers"], **explanation_of(trajectory)},
        "is_completed": ok,
        "ok": ok,
        "stop_condition": trajectory.stop_reason,
        "errors": errors,
    }
    return {
        "id": f"{key}-{trajectory.episode}",
        "env": {"id": env["id"]},
        "task": task,
        "group": {"id": key},
        "run": {"type": "eval", "id": settings["envs"][0]["hash"]},
        "ok": ok,
        "errors": errors,
        "traces": [trace],
    }


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role = message["role"]
    if role == "tool" and "tool_call_id" not in message:  # a result in the text; verifiers knows native ones only
        role = "user"
    found = {"role": role, "content": message["content"]}
    if role == "tool":
        found["tool_call_id"] = message["tool_call_id"]
    if message.get("tool_calls"):
        found["tool_calls"] = [
            {
                "id": str(call.get("id", "")),
                "name": str(call["function"]["name"]),
                "arguments": str(call["function"].get("arguments") or ""),
            }
            for call in message["tool_calls"]
        ]
    return found


def _sampled(turn: Turn) -> dict[str, Any]:
    tokens = {"token_ids": turn.sampled_ids, "mask": [bool(bit) for bit in turn.loss_mask], "logprobs": turn.logprobs}
    return {"sampled": True, **(tokens if turn.sampled_ids else {})}


def _call(turn: Turn) -> dict[str, Any]:
    counts = {name: turn.usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
    usage = {"usage": counts} if all(isinstance(count, int) for count in counts.values()) else {}
    return {"finish_reason": turn.finish if turn.finish in _FINISHES else None, **usage}


def read_verifiers(path: str) -> Iterator[Trajectory]:
    """Yield each trace of a traces.jsonl as a trajectory: the branch that ends with its last message.

    Raises:
        BadValue: the file cannot be read, or a line is no episode.
    """
    number = 0
    try:
        for count, line in enumerate(read_text(path).splitlines(), start=1):
            with shaped(f"{path}, line {count}", "an episode of verifiers"):
                episode = loads(line, "it") if line.strip() else {"traces": []}
                for trace in episode["traces"]:
                    yield _trajectory(episode, trace, number)
                    number += 1
    except OSError as e:
        raise BadValue(f"cannot read {path}: {getattr(e, 'strerror', None) or e}") from e


def _trajectory(episode: Mapping[str, Any], trace: Mapping[str, Any], number: int) -> Trajectory:
    nodes = trace.get("nodes") or []
    branch: list[int] = []
    at: int | None = len(nodes) - 1 if nodes else None
    while at is not None and len(branch) <= len(nodes):  # a damaged file may have a loop
        branch.append(at)
        at = nodes[at].get("parent")
    calls = {call.get("node"): call for call in trace.get("calls") or ()}
    messages = [(_openai(nodes[i]["message"]), _turn(nodes[i], calls.get(i, {}))) for i in reversed(branch)]
    errors = trace.get("errors") or episode.get("errors") or []
    config = trace["agent"]["config"]
    trajectory = episode_of(
        messages,
        env_id=str((episode.get("env") or {}).get("id") or trace["task"]["type"]),
        episode=number,
        group_id=str(trace["task"].get("key") or (episode.get("group") or {}).get("id") or number),
        model=str(config["model"]) if config.get("model") else None,
        failure=None if trace.get("ok") or not errors else str(errors[-1].get("message")),
    )
    rewards = {name: reward for name, reward in (trace.get("rewards") or {}).items() if reward is not None}
    parts = {name: float(reward["score"]) * float(reward.get("weight", 1.0)) for name, reward in rewards.items()}
    stop = trace.get("stop_condition")
    set_score(
        trajectory,
        sum(parts.values()) if parts else None,
        parts if len(parts) > 1 else {},
        None,
        trace.get("info") or {},
    )
    if stop and trajectory.failure is None and not trajectory.solved:
        trajectory.stop_reason = str(stop)
    return trajectory


def _openai(message: Mapping[str, Any]) -> Mapping[str, Any]:
    calls = message.get("tool_calls") or ()
    return openai_message(message, [(call["id"], call["name"], call["arguments"]) for call in calls])


def _turn(node: Mapping[str, Any], call: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of Turn for a node that the model said."""
    if node["message"]["role"] != "assistant":
        return {}
    usage = call.get("usage") or {}
    found: dict[str, Any] = {"finish": call.get("finish_reason"), "usage": dict(usage)}
    ids, mask, logprobs = (node.get(name) or [] for name in ("token_ids", "mask", "logprobs"))
    if ids and len(ids) == len(mask):
        sampled = [i for i, is_sampled in enumerate(mask) if is_sampled]
        found |= {"sampled_ids": [ids[i] for i in sampled], "loss_mask": [1] * len(sampled)}
        found["logprobs"] = list(logprobs) if len(logprobs) == len(sampled) else []
    return found
