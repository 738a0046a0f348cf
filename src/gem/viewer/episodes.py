"""What the viewer shows of an episode: a row of the list, and the conversation.

Both are read from the JSON of a trajectory (see gem.trajectory) without rebuilding it, so images and arrays need no
extras. Results hold only what JavaScript can represent: numbers that JSON lacks and seeds are text.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

from gem._internal.inbound import finite, loads, shaped
from gem.errors import BadInput, BadValue
from gem.evaluation.cost import Price, request_cost, sum_of_known
from gem.messages import ToolErrorType
from gem.policies.usage import token_counts, token_usage

Json = dict[str, Any]

MAX_TITLE = 500  # characters of the task that gem.viewer.recordings makes a title from

_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
_DOLLARS = re.compile(r"\$([^$\n]+)\$")  # LaTeX, which titles show as it is written
_TOOL_ERRORS = frozenset(member.value for member in ToolErrorType)


def parse(line: bytes) -> Json:
    """Parse one line of a JSON Lines file. Raises BadValue if it is not a trajectory."""
    try:
        data = loads(line, "it", keep_surrogates=True)
    except BadInput as e:
        raise BadValue(f"not a trajectory: {e}") from e
    if not isinstance(data, dict) or not isinstance(data.get("turns"), list):
        raise BadValue("not a trajectory: an object with the key 'turns' is expected")
    return data


def row_of(data: Json, line: bytes, price: Price | None = None) -> Json:
    """Return the row of an episode in the list.

    ``key`` identifies the episode by its content. ``title`` is the beginning of the task, "" if it is unknown,
    and ``label`` the row or the seed that it comes from.
    ``reward`` is None for a failed episode. ``task`` is equal for rollouts of one task and for the agents of one game,
    and None if it is unknown; ``group`` is the id of the task as text. ``agent`` is None outside games of several
    agents. ``forks`` counts the contexts that do not extend the previous one. ``cost`` is in US dollars, at a price or
    as the endpoint reports it, and None if it is not known.

    Raises:
        BadValue: the data is not a trajectory.
    """
    with shaped("it", "a trajectory"):
        turns, failure = data["turns"], data.get("failure")
        rewards = [turn.get("reward") for turn in turns]
        failed = failure is not None or None in rewards
        usages = list(map(_usage, turns))
        lengths = [(_context(turn), len(turn.get("sampled_ids", ()))) for turn in turns]
        counts = [token_counts(usage, *length) for usage, length in zip(usages, lengths, strict=True)]
        cost = sum_of_known(
            request_cost(usage, *length, turn.get("finish"), price)
            for usage, length, turn in zip(usages, lengths, turns, strict=True)
        )
        return {
            "key": hashlib.blake2b(line, digest_size=8).hexdigest(),
            "env": _optional(data.get("env_id")),
            "model": _optional(data.get("model")),
            "task": _task(data),
            "group": None if data.get("group_id") is None else _shown(data["group_id"]),
            "label": _label(data),
            "title": _title(turns[0]["observation"]) if turns else "",
            "agent": _optional(data.get("agent")),
            "episode": _optional(data.get("episode")),
            "update": turns[0].get("policy_version", 0) if turns else 0,
            "outcome": _outcome(data),
            "failure": None if failure is None else str(failure).partition(":")[0].strip()[:60],
            "reward": None if failed else _number(sum(rewards)),
            "turns": len(turns),
            "invalid": sum(turn.get("invalid") is not None for turn in turns),
            "tool_errors": sum(map(_tool_errors, turns)),
            "forks": sum(_forks(turns)),
            "cut": any(turn.get("finish") == "length" for turn in turns),
            "tokens": sum(sampled for _, sampled in lengths),
            "tokens_in": sum(fed for fed, _ in counts),
            "tokens_out": sum(sampled for _, sampled in counts),
            "seconds": _number(sum(sum(turn.get("seconds", {}).values()) for turn in turns)),
            "cost": _number(cost if price or any(usages) else None),
        }


def body_of(data: Json) -> Json:
    """Return an episode as details and turns of messages. Raises BadValue if the data is not a trajectory."""
    with shaped("it", "a trajectory"):
        details = {name: _shown(data[name]) for name in _DETAILS if data.get(name) not in (None, {}, [])}
        turns = [{**_turn(turn), "fork": fork} for turn, fork in zip(data["turns"], _forks(data["turns"]), strict=True)]
        final = messages(data.get("final_observation"), "user") if data.get("final_observation") is not None else []
        why = _why(data["turns"][-1]) if data["turns"] else {}
        return {"details": details, "tools": data.get("tools") or [], "why": why, "turns": turns, "final": final}


_DETAILS = ("seed", "row_id", "group_id", "slot", "episode", "stop_reason", "failure", "model", "sampling")


def messages(observation: Any, role: str) -> list[Json]:
    """Return an encoded observation as messages: "role", "text" and, if there are any, "images", "calls", "reasoning".

    An observation of another type, such as a dictionary, is the "data" of a message without text.

    Args:
        role: role of an observation that is not a list of messages.
    """
    if isinstance(observation, str):
        return [{"role": role, "text": observation}]
    if isinstance(observation, dict) and isinstance(observation.get("text"), str):
        images, links = _images(_items(observation.get("images")))
        return [_message(role, "\n".join([observation["text"], *links]), images=images)]
    if isinstance(observation, list) and observation and all(isinstance(item, dict) for item in observation):
        return [_chat_message(item, role) for item in observation]
    return [{"role": role, "text": "", "data": _plain(observation)}]


def searchable(body: Any) -> Iterator[str]:
    """Yield every text of a body without formulas, but not the names of keys and the images."""
    if isinstance(body, str):
        if not body.startswith("data:image/"):
            yield body
    elif isinstance(body, dict | list):
        for item in body.values() if isinstance(body, dict) else body:
            yield from searchable(item)


def dump(data: Any) -> str:
    """Return compact ASCII JSON that is safe inside a <script> element."""
    try:
        text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    except ValueError:  # infinite or undefined numbers, for example in usage or in arguments of tools
        text = json.dumps(finite(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _title(observation: Any) -> str:
    """Return the beginning of the last message of the user, or of the last message if the user has none."""
    found = messages(observation, "user")
    message = next((m for m in reversed(found) if m["role"] == "user"), found[-1])
    text = message["text"] or " ".join(searchable(message.get("data", "")))
    return _DOLLARS.sub(r"\1", text[:MAX_TITLE].strip())


def _why(turn: Json) -> Json:
    """Return why the episode has its score, as its last turn says: "explanation" and "checks", where there are any."""
    shown = [
        {
            "name": _shown(check.get("name")),
            "passed": check.get("passed") is True,
            "detail": _shown(check.get("detail") or ""),
        }
        for check in _items(turn.get("checks"))
        if isinstance(check, dict)
    ]
    explanation = {"explanation": _shown(turn["explanation"])} if turn.get("explanation") else {}
    return explanation | ({"checks": shown} if shown else {})


def _turn(turn: Json) -> Json:
    reply = turn.get("message")
    said = {"role": "assistant", "text": str(turn["action"])}
    if isinstance(reply, dict):
        said = _chat_message(reply, "assistant")
        said["text"] = said["text"] or ("" if said.get("calls") else str(turn["action"]))
    shown = {
        "observation": messages(turn["observation"], str(turn.get("role", "user"))),
        "reply": said,
        "reward": _number(turn.get("reward")),
        "context": _context(turn),
        "fed": list(map(int, turn["prompt_ids"]["adds"])),
        "ids": list(map(int, turn.get("sampled_ids", []))),
        "logprobs": [_number(logprob) for logprob in turn.get("logprobs", [])],
        "calls": [{**_call(call), "fault": _optional(call["fault"])} for call in turn.get("tool_calls", ())],
        "mask": list(map(int, turn.get("loss_mask", []))),
    }
    turn = {**turn, "usage": _usage(turn)}
    return shown | {name: _plain(turn[name]) for name in _TURN_DETAILS if turn.get(name) not in (None, {}, [], 0)}


_TURN_DETAILS = ("reward_parts", "invalid", "finish", "seconds", "policy_version", "dropped", "usage")


def _forks(turns: list[Json]) -> list[bool]:
    lengths = [(turn["prompt_ids"]["keeps"], len(turn["prompt_ids"]["adds"])) for turn in turns]
    ends = [keeps + adds + len(turn.get("sampled_ids", ())) for (keeps, adds), turn in zip(lengths, turns, strict=True)]
    pairs = pairwise(zip(lengths, ends, strict=True))
    return [False] * bool(turns) + [sum(now) > 0 and now[0] < end for (_, end), (now, _) in pairs]


def _usage(turn: Json) -> Json:
    return token_usage(turn["usage"]) if turn.get("usage") else {}


def _context(turn: Json) -> int:
    """Return the number of tokens of the context of a turn."""
    return int(turn["prompt_ids"]["keeps"]) + len(turn["prompt_ids"]["adds"])


def _tool_errors(turn: Json) -> int:
    """Return the number of tool calls that failed or were refused. Older trajectories record only some of them."""
    return sum(call["fault"] is not None for call in turn.get("tool_calls", ())) or turn.get("invalid") in _TOOL_ERRORS


def _outcome(data: Json) -> str:
    if data.get("failure") is not None:
        return "failed"
    if data.get("stop_reason"):
        return str(data["stop_reason"])
    return "terminated" if data.get("terminated") else "truncated" if data.get("truncated") else "unfinished"


def _task(data: Json) -> str | None:
    if data.get("agent") is not None and data.get("seed") is not None:
        return f"game of seed {_shown(data['seed'])}"
    return _label(data) if data.get("group_id") is None else f"task {_shown(data['group_id'])}"


def _label(data: Json) -> str | None:
    return next((f"{name} {_shown(data[key])}" for name, key in _TASK_FROM if data.get(key) is not None), None)


_TASK_FROM = (("row", "row_id"), ("seed", "seed"))


def _chat_message(message: Json, role: str) -> Json:
    content = message.get("content")
    parts = _items(content) if not isinstance(content, str) else [content]
    images, links = _images([part for part in parts if _is_image(part)])
    texts = [_part_text(part) for part in parts if not _is_image(part)]
    calls = [_call(call) for call in _items(message.get("tool_calls"))]
    reasoning = message.get("reasoning_content") or message.get("reasoning") or message.get("thinking")
    role = str(message.get("role", role))
    return _message(role, "\n".join([*texts, *links]), images=images, calls=calls, reasoning=reasoning)


def _message(role: str, text: str, **parts: Any) -> Json:
    return {"role": role, "text": text, **{name: part for name, part in parts.items() if part}}


def _call(call: Any) -> Json:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict):  # whatever the model wrote in its place
        function = {"arguments": call}
    arguments = function.get("arguments")
    if isinstance(arguments, str):  # JSON as the model wrote it
        with suppress(BadInput):
            arguments = loads(arguments, "it", keep_surrogates=True)
    return {"name": str(function.get("name", "")), "arguments": _plain(arguments)}


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image", "image_url")


def _part_text(part: Any) -> str:
    return part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else _shown(part)


def _images(parts: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Return the embedded images as data URLs, and a line of text for each other image: nothing is downloaded."""
    images: list[str] = []
    links: list[str] = []
    for part in parts:
        value = part.get("image", part.get("image_url", part)) if isinstance(part, dict) else part
        if isinstance(value, dict):
            value = f"data:image/png;base64,{value['$image']}" if "$image" in value else value.get("url", value)
        if isinstance(value, str) and _IMAGE.fullmatch(value):
            images.append(value)
        else:
            links.append(f"[image: {_shown(value)[:200]}]")
    return images, links


def _items(value: Any) -> list[Any]:
    """Return the items of an encoded list or tuple; any other value is the only item, and None is no item."""
    if isinstance(value, dict) and isinstance(value.get("$tuple"), list):
        value = value["$tuple"]
    return value if isinstance(value, list) else [] if value is None else [value]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)


def _optional(value: Any) -> str | None:
    return None if value is None else str(value)


def _plain(value: Any) -> Any:
    """Return JSON data with text for numbers that JavaScript does not represent."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    exact = not isinstance(value, int | float) or (math.isfinite(value) and abs(value) <= 2**53)
    return value if exact else str(value)


def _number(value: Any) -> Any:
    """Return a finite number or None as it is, and any other value as text."""
    return value if value is None or (isinstance(value, int | float) and math.isfinite(value)) else str(value)
