"""Checks of reset() and step(): accepted actions, and the types, info, rewards and flags of the results."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gem._internal.text import short_repr
from gem.core import RESERVED_INFO_KEYS, EndOnTruncation, Env, Step, StopReason
from gem.errors import BadValue, EpisodeOver
from gem.testing.check import CheckFailed, Unchecked, check
from gem.testing.env.harness import Harness, Rollout, TrackedEnv
from gem.testing.env.rollouts import record_rollouts
from gem.testing.env.target import layers
from gem.testing.plain_data import canonical, text_of
from gem.trajectory import ScoreCheck

# Stop reasons that truncate an episode: limits outside the task and infrastructure failures. All others terminate it.
TRUNCATING = frozenset({StopReason.MAX_TURNS, StopReason.MAX_TOKENS, StopReason.REFUSED, StopReason.FAILED})
# The turn limit in the rules of an environment.
_TURNS = r"(?:turns|guesses|attempts|tries|steps|rounds|actions)\b"
_SPELLED = "two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_COUNT = rf"(\d+|{'|'.join(_SPELLED)})"
TURN_LIMIT = re.compile(
    rf"(?:in|within|at most|up to|more than|maximum of|limit of|limit:|have|only) {_COUNT} {_TURNS}"
    rf"|(?:limit of|limit:|you have) {_COUNT} moves\b"  # elsewhere, moves are those of a solution
    r"|(?:guess|try|act|move|answer) (?:at most|up to|no more than) (\d+) times"
    rf"|(?:turn limit|limit of turns|max(?:imum|\.)? (?:number of )?{_TURNS})(?: is)?[ :=]+(\d+)",
    re.IGNORECASE,
)
TOLERANCE = 1e-9  # allowed rounding error of sums of rewards
MARK = "added by gem check"

LONG_TEXT_SIZES = (2**12, 2**16, 2**20)  # increasing, to detect quadratic time before memory runs out; CPU time counts
MAX_EXTRA_SECONDS = 0.5  # maximum difference to the shortest time, except for the largest size
MAX_EXTRA_SECONDS_LARGEST = 20.0
LONG_TEXTS: tuple[Callable[[int], str], ...] = (
    lambda size: "a" * size,
    lambda size: "{" * size,
    lambda size: " \n" * (size // 2),
    lambda size: "\\boxed{" * (size // 8),
    lambda size: "\\boxed{" * (size // 8) + "1" + "}" * (size // 8),
    lambda size: "\\boxed{" + "9" * size + "}",
    lambda size: "\\boxed{" + "1 " * (size // 2) + "}",
)
# Contents of a box: numbers, characters that str.isdigit() accepts and int() rejects, unusual letters, moves in games.
_BOX_CONTENTS = (
    *("", " ", "\x001", "\udc80", "\\boxed{1}", "-1", "+1", "1.5", "1e400", "nan", "0x1", "1_0", "9" * 5000),
    *("²", "٣", "①", "１ ２ ３", "ß", "İ", "ǰ ŉ", "é", "e\u0301", "🙂", "{0}", "null"),
    *("7", "1 2 3 4", "1 1 1", "0 0 A", "0 0 0 9", "-1 -1 -1", "999 999 999", "A C", "A A", "up", "crane", "e"),
    *("reveal 0 0", "reveal -1 -1", "flag 99 99", "search[x]", "<PREV_PAGE>"),
)
UNUSUAL_TEXTS = (
    *("", " ", "\n\n", "\t\r\x0b\x0c\x85\u2028", "\x00", "\x00" * 100, "\x1b[2J\x07", "\ud800", "\udfff\ud800"),
    *("\u202e\\boxed{1}\u202c", "\u200f\u200e\u2066", "\ufeff\\boxed{1}", "²", "٣", "①", "ß", "\\", "'\"`;--"),
    *("\\boxed{", "}", "\\boxed}{", "\\boxed{1}\\boxed{2}", "[" * 500, "(?:(a+)+$", "%s %n {0} {self.__class__} ${x}"),
    *('{"action": 1}', "null", "<answer>1</answer>", "<answer>", "<python></python>", "<search>x</search>"),
    *("```python\n```", "<tool_call><tool_name>x</tool_name><arguments>{</arguments></tool_call>"),
    *(f"\\boxed{{{content}}}" for content in _BOX_CONTENTS),
)


@check("protocol", "It is a gem.Env that can be built, reset with a seed, played, and closed twice.", essential=True)
def protocol(harness: Harness) -> str | None:
    env = harness.build()
    if not isinstance(env.env, Env):
        raise CheckFailed(f"{harness.target.code} returned {short_repr(env.env)}, not a gem.Env")
    env.reset(0)
    for _ in range(2):
        harness.call(f"{env.name}.close()", env.env.close)
    try:
        record_rollouts(harness)
    except CheckFailed as e:
        harness.attach_script(e)
        harness.for_each_rollout(lambda seed, actions: _play(harness, seed, actions))  # look for a shorter script
        raise
    return None if harness.samples_actions else r"cannot sample actions; played fallback actions such as \boxed{1}"


@check("types", "Observation, reward, flags and info have the types that gem.Step declares.", needs=("protocol",))
def types(harness: Harness) -> str | None:
    def inspect(answer: Any) -> None:
        if not _is_observation(answer[0]):
            raise CheckFailed(
                f"the observation is {short_repr(answer[0])}, not a str, a dict with a 'text' or a list of messages"
            )
        if not isinstance(answer[-1], dict) or not all(isinstance(key, str) for key in answer[-1]):
            raise CheckFailed(f"info is {short_repr(answer[-1])}, not a dict with str keys")
        if isinstance(answer, Step):
            _require_number_and_flags(*answer[1:4])

    _inspect_answers(harness, inspect)
    return None


@check("fresh-info", "Each call returns a new info dict, which never changes later.", needs=("types",))
def fresh_info(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        returned: list[tuple[str, Any, str]] = []

        def inspect(answer: Any) -> None:
            observation, info = answer[0], answer[-1]
            if MARK in info:
                raise CheckFailed("an info dict is reused: it contains a key that the caller added to an earlier one")
            mutable = (None if isinstance(observation, str) else observation, info)
            line = harness.script.pop()
            returned.append((line, mutable, canonical(mutable)))
            info[MARK] = True
            harness.script += [f"info = {line}[-1]", f"info[{MARK!r}] = True"]

        _play(harness, seed, actions, inspect)
        for line, (observation, info), before in returned:
            info.pop(MARK, None)
            after = canonical((observation, info))
            if after != before:
                raise CheckFailed(
                    f"the result of {line} later changed from {short_repr(before)} to {short_repr(after)}"
                )

    harness.for_each_rollout(body)
    return None


@check("reserved-info-keys", "info contains no key that clients reserve for their own records.", needs=("types",))
def reserved_info_keys(harness: Harness) -> str | None:
    def inspect(answer: Any) -> None:
        if used := sorted(RESERVED_INFO_KEYS & set(answer[-1])):
            raise CheckFailed(f"info contains the reserved key {used[0]!r}")

    _inspect_answers(harness, inspect)
    return None


@check("rewards", "Every reward is finite, and info['reward_parts'], if present, sums to it.", needs=("types",))
def rewards(harness: Harness) -> str | None:
    def inspect(answer: Any) -> None:
        if not isinstance(answer, Step):
            return
        if not math.isfinite(answer.reward):
            raise CheckFailed(f"the reward is {answer.reward}")
        parts = answer.info.get("reward_parts")
        if parts is not None and not _sums_to(parts, answer.reward):
            raise CheckFailed(f"info['reward_parts'] is {short_repr(parts)}, but the reward is {answer.reward}")

    _inspect_answers(harness, inspect)
    return None


@check("reward-range", "The total reward of an episode is in the declared range.", needs=("rewards",))
def reward_range(harness: Harness) -> str | None:
    if harness.spec is None or not any(map(math.isfinite, harness.spec.reward_range)):
        raise Unchecked("no range is declared; declare one with EnvSpec(reward_range=…)")
    low, high = harness.spec.reward_range

    def body(seed: int, actions: Sequence[str]) -> None:
        env = harness.build()
        env.reset(seed)
        total = sum(step.reward for step in env.run(actions))
        if env.over and not low - TOLERANCE <= total <= high + TOLERANCE:
            raise CheckFailed(f"the rewards sum to {total:g}, outside the declared {low:g} to {high:g}")

    harness.for_each_rollout(body, _all_rollouts(harness))
    return None


@check("endings", "terminated, truncated and info['stop_reason'] agree.", needs=("types",))
def endings(harness: Harness) -> str | None:
    reasons: set[Any] = set()

    def inspect(answer: Any) -> None:
        if isinstance(answer, Step):
            _require_consistent_ending(answer, both=end_on_truncation)
            if answer.terminated or answer.truncated:
                reasons.add(answer.info.get("stop_reason"))

    env = harness.build().env
    end_on_truncation = any(isinstance(layer, EndOnTruncation) for layer in layers(env))
    _inspect_answers(harness, inspect, _all_rollouts(harness))
    if not reasons:
        raise Unchecked("no episode ended")
    return f"observed: {', '.join(sorted(map(str, reasons)))}"


@check("explanation", "info['explanation'] and info['checks'] have their types, in last steps only.", needs=("types",))
def explanation(harness: Harness) -> str | None:
    def inspect(answer: Any) -> None:
        info = answer[-1]
        if found := sorted({"explanation", "checks"} & set(info)):
            if not isinstance(answer, Step) or not (answer.terminated or answer.truncated):
                raise CheckFailed(f"info[{found[0]!r}] is set before the end of the episode")
            if not isinstance(info.get("explanation", ""), str):
                raise CheckFailed(f"info['explanation'] is {short_repr(info['explanation'])}, not a str")
            try:
                ScoreCheck.read(info.get("checks", []))
            except BadValue as e:
                raise CheckFailed(f"info['checks']: {e}; gem.core.Step says what they are") from e

    _inspect_answers(harness, inspect, _all_rollouts(harness))
    return None


@check("stop-reason", "info['stop_reason'] says why an episode ended.", needs=("types", "endings"))
def stop_reason(harness: Harness) -> str | None:
    def inspect(answer: Any) -> None:
        if isinstance(answer, Step) and (answer.terminated or answer.truncated) and not answer.info.get("stop_reason"):
            raise CheckFailed("the episode ends without info['stop_reason']; gem.StopReason lists the values")

    _inspect_answers(harness, inspect, _all_rollouts(harness))
    return None


def _number(text: str) -> int:
    """Return the number that is written in digits or as a word of _SPELLED."""
    return int(text) if text.isdigit() else 2 + _SPELLED.index(text.lower())


@check("turn-limit", "Episodes are truncated at the turn limit that the first observation states.", needs=("endings",))
def turn_limit(harness: Harness) -> str | None:
    stated: set[int] = set()

    def body(seed: int, actions: Sequence[str]) -> None:
        env = harness.build()
        limits = {_number(next(filter(None, match))) for match in TURN_LIMIT.findall(text_of(env.reset(seed)[0]))}
        stated.update(limits)
        valid = 0
        for action in actions if limits else ():
            if env.over:
                break
            step = env.step(action)
            valid += "invalid" not in step.info
            cut = step.truncated and step.info.get("stop_reason") in (None, StopReason.MAX_TURNS)
            if valid > max(limits) or (cut and env.turn < min(limits)):
                turns = f"truncated after turn {env.turn}" if cut else f"not over after {valid - 1} turns"
                raise CheckFailed(f"the episode is {turns}, but the first observation states a limit of {max(limits)}")

    harness.for_each_rollout(body, _all_rollouts(harness))
    return f"stated: {', '.join(map(str, sorted(stated)))}" if stated else "the first observation states no limit"


@check(
    "episode-over",
    "step() raises EpisodeOver before the first reset and after the end of an episode.",
    needs=("protocol",),
)
def episode_over(harness: Harness) -> str | None:
    ended: list[int] = []
    action = harness.rollouts[0].actions[0] if harness.rollouts[0].actions else ""

    def body(seed: int, actions: Sequence[str]) -> None:
        env = harness.build()
        env.reset(seed)
        env.run(actions)
        if env.over:
            ended.append(seed)
            _require_episode_over(harness, env, action)

    _require_episode_over(harness, harness.build(), action)
    harness.for_each_rollout(body, _all_rollouts(harness))
    if not ended:
        raise Unchecked("no episode ended")
    return None


@check(
    "any-text",
    "No action makes step() raise: empty text, 1 MB, NUL, surrogates, nested braces, moves of other games.",
    needs=("protocol",),
)
def any_text(harness: Harness) -> str | None:
    unusual = list(_rollouts_with_unusual_texts(harness))
    played = harness.for_each_rollout(lambda seed, actions: _play(harness, seed, actions), unusual)
    for make_text in LONG_TEXTS:
        _step_with_growing_text(harness, make_text)
    if played < len(unusual):
        return (
            f"{played} of {len(unusual)} episodes with unusual texts, for lack of time, and {len(LONG_TEXTS)} long ones"
        )
    return f"{len(UNUSUAL_TEXTS)} unusual texts and {len(LONG_TEXTS)} long ones"


@check(
    "sampled-legal",
    "sample_random_action() returns an action that is legal in the current state.",
    needs=("protocol",),
)
def sampled_legal(harness: Harness) -> str | None:
    failures = []
    for rollout in harness.rollouts[: len(harness.seeds)]:
        # for_each_rollout() cannot be used, because shrinking would change the states in which actions are sampled.
        failure = harness.attempt(lambda seed, actions: _step_with_samples(harness, seed, len(actions)), rollout)
        if failure is not None:
            failures.append(failure)
    if failures:
        raise min(failures, key=lambda failure: failure.turns)
    return None


def _play(
    harness: Harness, seed: int, actions: Sequence[str], inspect: Callable[[Any], None] = lambda answer: None
) -> None:
    """Play an episode in a new environment, and pass the results of reset() and of each step() to inspect()."""
    env = harness.build()
    inspect(env.reset(seed))
    for action in actions:
        if env.over:
            break
        inspect(env.step(action))


def _inspect_answers(
    harness: Harness, inspect: Callable[[Any], None], rollouts: Sequence[Rollout] | None = None
) -> None:
    harness.for_each_rollout(lambda seed, actions: _play(harness, seed, actions, inspect), rollouts)


def _all_rollouts(harness: Harness) -> list[Rollout]:
    return [*harness.rollouts, *harness.long_rollouts]


def _is_observation(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(message, Mapping) and "role" in message for message in value)
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("text"), str))


def _require_number_and_flags(reward: Any, terminated: Any, truncated: Any) -> None:
    if isinstance(reward, bool) or not isinstance(reward, (int, float)):
        raise CheckFailed(f"the reward is {short_repr(reward)}, not a number")
    if not isinstance(terminated, bool) or not isinstance(truncated, bool):
        flags = f"{short_repr(terminated)} and {short_repr(truncated)}"
        raise CheckFailed(f"terminated and truncated are {flags}, not bools")


def _sums_to(parts: Any, reward: float) -> bool:
    return isinstance(parts, Mapping) and abs(sum(parts.values()) - reward) <= TOLERANCE


def _require_consistent_ending(step: Step, *, both: bool) -> None:
    reason, ended = step.info.get("stop_reason"), step.terminated or step.truncated
    if step.terminated and step.truncated and not both:
        raise CheckFailed("both terminated and truncated are set; only gem.make(…, end_on_truncation=True) does this")
    if reason is None:
        return
    if not ended:
        raise CheckFailed(f"info['stop_reason'] is {short_repr(reason)}, but the episode has not ended")
    if reason not in list(StopReason):
        raise CheckFailed(f"info['stop_reason'] is {short_repr(reason)}, not a StopReason")
    flag = "truncated" if StopReason(reason) in TRUNCATING else "terminated"
    if not getattr(step, flag):
        other = "terminated" if flag == "truncated" else "truncated"
        raise CheckFailed(f"info['stop_reason'] is '{StopReason(reason)}', which requires {flag}, but {other} is set")


def _require_episode_over(harness: Harness, env: TrackedEnv, action: str) -> None:
    when = "after the end" if env.turn else "before the first reset"
    try:
        harness.call(f"{env.name}.step({action!r})", env.env.step, action, expected=EpisodeOver)
    except EpisodeOver:
        return
    except CheckFailed as e:
        raise CheckFailed(f"{when}, {e.detail}, not EpisodeOver") from e
    raise CheckFailed(f"{when}, step() raises nothing")


def _rollouts_with_unusual_texts(harness: Harness) -> Iterator[Rollout]:
    """Yield two rollouts per unusual text: the text is the first action in one and the second action in the other."""
    first = harness.rollouts[0]
    variants = [action + end for action in first.actions[:1] for end in ("\x00", "\ud800", "\n", "}")]
    for before in ((), first.actions[:1]):
        for text in (*UNUSUAL_TEXTS, *variants):
            yield Rollout(first.seed, (*before, text))


def _step_with_growing_text(harness: Harness, make_text: Callable[[int], str]) -> None:
    fastest = math.inf
    for size in LONG_TEXT_SIZES:
        harness.new_case()
        env = harness.build()
        env.reset(harness.rollouts[0].seed)
        start = time.process_time()
        env.step(make_text(size))
        seconds = time.process_time() - start
        fastest = min(fastest, seconds)
        if seconds - fastest > (MAX_EXTRA_SECONDS_LARGEST if size == LONG_TEXT_SIZES[-1] else MAX_EXTRA_SECONDS):
            raise CheckFailed(f"a text of {size:,} characters takes {seconds:.1f} s: time grows faster than length")


def _step_with_samples(harness: Harness, seed: int, turns: int) -> None:
    env = harness.build()
    env.reset(seed)
    for _ in range(turns):
        if env.over:
            break
        invalid = env.step(env.sample()).info.get("invalid")
        if invalid is not None:
            raise CheckFailed(f"the sampled action is invalid: info['invalid'] is {invalid!r}")
