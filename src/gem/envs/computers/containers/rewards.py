"""Rewards that a Harbor verifier leaves in /logs/verifier."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path

from gem._internal.inbound import MESSAGE, loads
from gem.errors import BadInput

MAX_BYTES = 1 << 20


class RewardMissing(Exception):
    """A verifier left no reward that can be read; the message says why."""


def read_rewards(folder: Path) -> dict[str, float]:
    """Return the rewards in reward.json, else that in reward.txt, as {"reward": number}.

    Raises:
        RewardMissing: there is none, or it is empty, no regular file, not as the format asks, or not finite.
    """
    for name, parse in (("reward.json", _from_json), ("reward.txt", _from_text)):
        text = _text(folder / name)
        if text is not None:
            if not text.strip():
                raise RewardMissing(f"{name} is empty")
            return parse(text)
    raise RewardMissing("the verifier left neither reward.json nor reward.txt")


def scalar(rewards: dict[str, float]) -> float:
    """Return the reward of an episode: key "reward", else the only key. Raises RewardMissing if there are others."""
    if "reward" in rewards:
        return rewards["reward"]
    if len(rewards) == 1:
        return next(iter(rewards.values()))
    raise RewardMissing(f"reward.json has no key 'reward', but {', '.join(rewards) or 'none'}")


def _from_text(text: str) -> dict[str, float]:
    try:
        number = float(text)
    except ValueError:
        raise RewardMissing(f"reward.txt has no number, but {text[:40]!r}") from None
    return {"reward": _finite("reward.txt", number)}


def _from_json(text: str) -> dict[str, float]:
    try:
        data = loads(text, "reward.json", MESSAGE)
    except BadInput as e:
        raise RewardMissing(str(e)) from None
    if not isinstance(data, dict) or not data:
        raise RewardMissing("reward.json is not an object of numbers")
    for key, value in data.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise RewardMissing(f"reward.json: {key} is not a number, but {str(value)[:40]!r}")
    return {key: _finite(f"reward.json: {key}", value) for key, value in data.items()}


def _finite(name: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RewardMissing(f"{name} is not finite")
    return number


def _text(path: Path) -> str | None:
    """Return the content of a regular file; None if there is no file. Links are not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise RewardMissing(f"{path.name} is no regular file: {e.strerror}") from None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise RewardMissing(f"{path.name} is no regular file of at most {MAX_BYTES} bytes")
        return file.read().decode("utf-8", "replace")
