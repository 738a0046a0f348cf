"""What reset and step return: shapes, types, info, rewards, endings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gem._internal.text import short_repr
from gem.core import RESERVED_INFO_KEYS, Env, Step, StopReason
from gem.errors import EpisodeOver
from gem.testing.lab import Broken, Lab, Play, Player, Unchecked
from gem.testing.plain import canonical
from gem.testing.plays import record
from gem.testing.promise import promise

# A truncation is a limit outside the task, or the machinery's failure; the other reasons terminate.
TRUNCATING = frozenset({StopReason.MAX_TURNS, StopReason.MAX_TOKENS, StopReason.FAILED})
ROUNDING = 1e-9  # of a sum of rewards
MARK = "added by gem check"


@promise("protocol", "It is a gem.Env that can be built, reset with a seed, played, and closed twice.", needs=())
def protocol(lab: Lab) -> str | None:
    player = lab.fresh()
    if not isinstance(player.env, Env):
        raise Broken(f"{lab.subject.code} is {short_repr(player.env)}, which is no gem.Env")
    player.reset(0)
    for _ in range(2):
        lab.call(f"{player.name}.close()", player.env.close)
    try:
        record(lab)
    except Broken as e:
        lab.sign(e)
        lab.each(lambda seed, actions: _see(lab, seed, actions, lambda _: None))  # the same failure, cut short
        raise
    return None if lab.samples else r"it samples no actions: it was played with stand-ins such as \boxed{1}"


@promise("types", "Observation, reward, flags and info are of the types that gem.Step names.")
def types(lab: Lab) -> str | None:
    def judge(answer: Any) -> None:
        if not _is_observation(answer[0]):
            raise Broken(
                f"the observation is {short_repr(answer[0])}, not a str, a dict with a 'text' or a list of messages"
            )
        if not isinstance(answer[-1], dict) or not all(isinstance(key, str) for key in answer[-1]):
            raise Broken(f"info is {short_repr(answer[-1])}, not a dict with keys of text")
        if isinstance(answer, Step):
            _judge_numbers(*answer[1:4])

    _see_each(lab, judge)
    return None


@promise("fresh-info", "Each info dict is the caller's: it never changes later, nor comes back.", needs=("types",))
def fresh_info(lab: Lab) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        kept: list[tuple[str, Any, str]] = []

        def judge(answer: Any) -> None:
            observation, info = answer[0], answer[-1]
            if MARK in info:
                raise Broken("the info dict is used again: a key that the caller added to an earlier one is in it")
            returned = (None if isinstance(observation, str) else observation, info)
            line = lab.script.pop()
            kept.append((line, returned, canonical(returned)))
            info[MARK] = True
            lab.script += [f"info = {line}[-1]", f"info[{MARK!r}] = True"]

        _see(lab, seed, actions, judge)
        for line, (observation, info), said in kept:
            info.pop(MARK, None)
            if canonical((observation, info)) != said:
                now = short_repr(canonical((observation, info)))
                raise Broken(f"what {line} returned changed later, from {short_repr(said)} to {now}")

    lab.each(body)
    return None


@promise("reserved-info-keys", "Info keeps off the keys that clients merge with their own records.", needs=("types",))
def reserved_info_keys(lab: Lab) -> str | None:
    def judge(answer: Any) -> None:
        if used := sorted(RESERVED_INFO_KEYS & set(answer[-1])):
            raise Broken(f"info holds the reserved key {used[0]!r}")

    _see_each(lab, judge)
    return None


@promise("rewards", "Every reward is finite, and info['reward_parts'], where given, sums to it.", needs=("types",))
def rewards(lab: Lab) -> str | None:
    def judge(answer: Any) -> None:
        if not isinstance(answer, Step):
            return
        if not math.isfinite(answer.reward):
            raise Broken(f"the reward is {answer.reward}")
        parts = answer.info.get("reward_parts")
        if parts is not None and not _sums(parts, answer.reward):
            raise Broken(f"info['reward_parts'] is {short_repr(parts)}, and the reward {answer.reward}")

    _see_each(lab, judge)
    return None


@promise("reward-range", "The rewards of an episode sum to a value in the declared range.", needs=("rewards",))
def reward_range(lab: Lab) -> str | None:
    if lab.spec is None or not any(map(math.isfinite, lab.spec.reward_range)):
        raise Unchecked("no range is declared; EnvSpec(reward_range=…) does that")
    low, high = lab.spec.reward_range

    def body(seed: int, actions: Sequence[str]) -> None:
        player = lab.fresh()
        player.reset(seed)
        total = sum(step.reward for step in player.play(actions))
        if player.over and not low - ROUNDING <= total <= high + ROUNDING:
            raise Broken(f"the rewards sum to {total:g}, outside the declared {low:g} to {high:g}")

    lab.each(body, _all_plays(lab))
    return None


@promise("endings", "terminated, truncated and info['stop_reason'] agree.", needs=("types",))
def endings(lab: Lab) -> str | None:
    reasons: set[Any] = set()

    def judge(answer: Any) -> None:
        if isinstance(answer, Step):
            _agree(answer)
            if answer.terminated or answer.truncated:
                reasons.add(answer.info.get("stop_reason"))

    def named(answer: Any) -> None:
        if isinstance(answer, Step) and (answer.terminated or answer.truncated) and not answer.info.get("stop_reason"):
            raise Broken("this episode ends without info['stop_reason'], and others end with one")

    _see_each(lab, judge, _all_plays(lab))
    if not reasons:
        raise Unchecked("no episode ended")
    if reasons == {None}:
        raise Unchecked("it gives no info['stop_reason'] at the end of an episode")
    _see_each(lab, named, _all_plays(lab))
    return f"seen: {', '.join(sorted(map(str, reasons)))}"


@promise("after-the-end", "step() raises EpisodeOver before the first reset and after the end of an episode.")
def after_the_end(lab: Lab) -> str | None:
    ended: list[int] = []
    action = lab.plays[0].actions[0] if lab.plays[0].actions else ""

    def body(seed: int, actions: Sequence[str]) -> None:
        player = lab.fresh()
        player.reset(seed)
        player.play(actions)
        if player.over:
            ended.append(seed)
            _refuses(lab, player, action)

    _refuses(lab, lab.fresh(), action)
    lab.each(body, _all_plays(lab))
    if not ended:
        raise Unchecked("no episode ended")
    return None


def _see(lab: Lab, seed: int, actions: Sequence[str], judge: Callable[[Any], None]) -> None:
    """Play an episode in a new environment and judge every answer: of reset, and of each step."""
    player = lab.fresh()
    judge(player.reset(seed))
    for action in actions:
        if player.over:
            break
        judge(player.step(action))


def _see_each(lab: Lab, judge: Callable[[Any], None], plays: Sequence[Play] | None = None) -> None:
    lab.each(lambda seed, actions: _see(lab, seed, actions, judge), plays)


def _all_plays(lab: Lab) -> list[Play]:
    return [*lab.plays, *lab.long_plays]


def _is_observation(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(message, Mapping) and "role" in message for message in value)
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("text"), str))


def _judge_numbers(reward: Any, terminated: Any, truncated: Any) -> None:
    if isinstance(reward, bool) or not isinstance(reward, (int, float)):
        raise Broken(f"the reward is {short_repr(reward)}, not a number")
    if not isinstance(terminated, bool) or not isinstance(truncated, bool):
        raise Broken(f"terminated and truncated are {short_repr(terminated)} and {short_repr(truncated)}, not bools")


def _sums(parts: Any, reward: float) -> bool:
    return isinstance(parts, Mapping) and abs(sum(parts.values()) - reward) <= ROUNDING


def _agree(step: Step) -> None:
    reason, ended = step.info.get("stop_reason"), step.terminated or step.truncated
    if reason is None:
        if step.terminated and step.truncated:
            raise Broken("both terminated and truncated, with no info['stop_reason'] to say which")
        return
    if not ended:
        raise Broken(f"info['stop_reason'] is {short_repr(reason)}, and the episode goes on")
    if reason not in list(StopReason):
        raise Broken(f"info['stop_reason'] is {short_repr(reason)}, which is no StopReason")
    flag = "truncated" if StopReason(reason) in TRUNCATING else "terminated"
    if not getattr(step, flag):
        other = "terminated" if flag == "truncated" else "truncated"
        raise Broken(f"info['stop_reason'] is '{StopReason(reason)}', which goes with {flag}, and {other} is set")


def _refuses(lab: Lab, player: Player, action: str) -> None:
    when = "after the end" if player.turn else "before the first reset"
    try:
        lab.call(f"{player.name}.step({action!r})", player.env.step, action, passes=EpisodeOver)
    except EpisodeOver:
        return
    except Broken as e:
        raise Broken(f"{when}, {e.what}, not EpisodeOver") from e
    raise Broken(f"{when}, step() is accepted")
