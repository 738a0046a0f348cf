"""What the exporters and importers of other tools' records share: messages of an episode, and episodes of messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gem._internal.inbound import shaped, without_surrogates
from gem.conversation.observations import as_messages
from gem.core import StopReason
from gem.evaluation.records import FAILURES, read_records, read_settings
from gem.trajectory import Trajectory, Turn

IMAGE = "[image]"  # what stands for an image, which other tools do not get


def evaluation_episodes(path: str) -> tuple[dict[str, Any], list[list[Trajectory]]]:
    """Return the settings of an evaluation, and its episodes by environment: the finished ones, then the failed ones.

    Raises:
        BadValue: the folder is no evaluation.
    """
    settings = read_settings(path)
    found = {trajectory.episode: trajectory for trajectory in read_records(path)}
    for trajectory in read_records(path, FAILURES):
        if found.get(trajectory.episode, trajectory).failure is not None:
            found[trajectory.episode] = trajectory
    episodes, first = [], 0
    with shaped(path, "an evaluation"):
        for env in settings["envs"]:
            count = int(env["tasks"]) * int(settings["rollouts"])
            episodes.append([found[number] for number in sorted(found) if first <= number < first + count])
            first += count
    return settings, episodes


def messages_of(trajectory: Trajectory) -> Iterator[tuple[Mapping[str, Any], Turn | None]]:
    """Yield the messages of an episode, each with its turn if the model said it.

    Content is text. ``tool_calls`` are in OpenAI's format. A native result of a tool has ``tool_call_id``.
    """
    for turn in trajectory.turns:
        for message in as_messages(turn.observation, turn.role):
            yield {**message, "content": text_of(message["content"])}, None
        yield _said(turn), turn
    if trajectory.final_observation not in (None, "") and trajectory.turns:
        for message in as_messages(trajectory.final_observation):
            yield {**message, "content": text_of(message["content"])}, None


def _said(turn: Turn) -> Mapping[str, Any]:
    if turn.message is None or not turn.message.get("tool_calls"):
        return {"role": "assistant", "content": turn.action}
    return {**turn.message, "content": text_of(turn.message.get("content"))}


def openai_message(message: Mapping[str, Any], calls: Sequence[tuple[str, str, str]]) -> Mapping[str, Any]:
    """Return a message in OpenAI's format, with native tool calls given as id, name and arguments as JSON text."""
    found = {"role": message["role"], "content": message.get("content")}
    if not calls:
        return found
    functions = [(id, {"name": name, "arguments": arguments}) for id, name, arguments in calls]
    return {**found, "tool_calls": [{"id": id, "type": "function", "function": each} for id, each in functions]}


def reward_parts_of(trajectory: Trajectory) -> dict[str, float]:
    """Return the sums of the parts of the reward over an episode, by name."""
    parts: dict[str, float] = {}
    for turn in trajectory.turns:
        for name, part in turn.reward_parts.items():
            parts[name] = parts.get(name, 0.0) + part
    return parts


def text_of(content: Any) -> str:
    """Return the text of a message's content: a text, or a list of parts."""
    if isinstance(content, str) or content is None:
        return content or ""
    if not isinstance(content, Sequence):
        return json.dumps(content, default=str)
    parts = [part if isinstance(part, str) else part.get("text") or part.get("reasoning") for part in content]
    return "\n".join(part if isinstance(part, str) else IMAGE for part in parts)


def writable(data: Any) -> Any:
    """Return JSON data with U+FFFD for each lone surrogate, which the parsers of other tools refuse."""
    return without_surrogates(data)[0]


def episode_of(messages: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], **fields: Any) -> Trajectory:
    """Return a trajectory of messages.

    Args:
        messages: each message in OpenAI's format, with fields of Turn for one that the model said, such as
            ``sampled_ids``; an assistant message is one that the model said.
        fields: of Trajectory. The reward is in the last turn; see set_reward().
    """
    turns: list[Turn] = []
    before: list[Any] = []
    for message, extra in messages:
        text = text_of(message.get("content"))
        if message.get("role") != "assistant":
            before.append({"role": message.get("role", "user"), "content": text})
            continue
        calls = message.get("tool_calls") or []
        action = json.dumps(dict(message), ensure_ascii=False) if calls else text
        kept = {"role": "assistant", "content": text, "tool_calls": list(calls)} if calls else None
        turns.append(Turn(_observation(before), action, message=kept, **extra))
        before = []
    return Trajectory(turns=turns, final_observation=_observation(before), **fields)


def _observation(messages: list[Any]) -> Any:
    if not messages:
        return ""
    return messages[0]["content"] if len(messages) == 1 and messages[0]["role"] == "user" else messages


def explanation_of(trajectory: Trajectory) -> dict[str, Any]:
    """Return why an episode has its score, as ``explanation`` and ``checks``, without the ones that it lacks."""
    last = trajectory.turns[-1] if trajectory.turns else Turn("", "")
    found = {"explanation": last.explanation, "checks": [asdict(check) for check in last.checks]}
    return {name: value for name, value in found.items() if value}


def set_score(
    trajectory: Trajectory,
    score: float | None,
    parts: Mapping[str, float],
    stop: str | None,
    why: Mapping[str, Any],
) -> None:
    """Put the score of an imported episode in its last turn.

    Args:
        score: of the episode; None if it has none, which makes it a failure if it has no other.
        parts: named components.
        stop: why it ended, if not by itself: a StopReason, or a word of the other tool.
        why: has ``explanation`` and ``checks``, if the tool gives them; what is none is left out.
    """
    if not trajectory.turns:
        trajectory.failure = trajectory.failure or "no reply of a model was recorded"
    if score is None:
        trajectory.failure = trajectory.failure or "no score was recorded"
    if trajectory.failure is not None:
        trajectory.stop_reason, trajectory.truncated = StopReason.FAILED.value, True
        return
    trajectory.turns[-1].reward, trajectory.turns[-1].reward_parts = score, dict(parts)
    trajectory.turns[-1].explain(why)
    trajectory.stop_reason = stop or (StopReason.SOLVED if (score or 0.0) >= 1.0 else StopReason.LOST).value
    trajectory.terminated, trajectory.truncated = stop is None, stop is not None


def number_of(value: Any) -> float | None:
    """Return a score as a number: C, P, I and N of inspect-ai are 1, 0.5, 0 and 0; None for what is no score."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    return {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}.get(value) if isinstance(value, str) else None
