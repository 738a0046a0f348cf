"""The check "secrets": observations and info do not reveal what the agent has to find out.

A secret such as "7" may also occur in an observation by chance. The check therefore tests whether secrets occur more
often than chance explains:

1. Each episode is played with the same actions as a partner episode with another seed. A secret counts as shown only if
   the partner episode does not show the same word after the same number of actions. This excludes words that come from
   the actions or from turn numbers.
2. Each episode is searched for the secrets of unrelated episodes in the same way. This estimates the probability of a
   chance occurrence.
3. A legitimate observation may be correlated with the secret. For example, if an observation states a range that
   contains the secret number, the secret is a bound of the range more often than an unrelated number is. The odds of a
   chance occurrence are therefore assumed to be eight times as high as estimated.
4. The check fails if the probability of at least as many occurrences by chance is below one in a million.

The last step is not searched: it may reveal the secrets, in the observation or under ``revealed`` in the info.

The search is repeated in repr(env) and str(env), in the text read backwards, decoded or shifted by one, and in decoded
texts of attributes, which may hold the secret in plain text only: see VIEWS.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from gem._internal.text import short_repr
from gem.testing.check import CheckFailed, Unchecked, check
from gem.testing.env.harness import Harness, Rollout, TrackedEnv
from gem.testing.plain_data import plain

MAX_PROBABILITY = 1e-6  # the check fails if the occurrences are less probable than this by chance
CORRELATION_FACTOR = 8  # assumed ratio of the odds of a chance occurrence to those of an unrelated secret
CONFIRMATION_PROBABILITY = 0.1  # below this, but not below MAX_PROBABILITY, more episodes are played
CONFIRMATION_FACTOR = 4  # the number of episodes is multiplied by this for the second estimate
FIRST_SEED = 1_000  # the default seeds of the recorded rollouts, whose actions are used, are smaller
MAX_ROLLOUTS, MAX_TURNS = 2, 30  # number of action lists played per episode, and maximum length of a list
VIEWED_TURNS = 10  # only these are searched through VIEWS, to save time
MAX_TEXTS, MAX_TEXT = 200, 2_000  # number and length of the texts in attributes that are searched
UNRELATED_EPISODES = 10  # each episode is searched for the secrets of this many other episodes


class Shown(NamedTuple):
    """What an environment shows at one turn.

    Args:
        text: of observation and info.
        repr: repr(env) and str(env).
        inside: repr(env), str(env) and the texts in its attributes, which may hold the secret, but not in disguise.
    """

    text: str
    repr: str = ""
    inside: str = ""


View = Callable[[Shown], str]


@dataclass(frozen=True)
class EpisodeText:
    """The text that an episode shows before its end.

    Args:
        seed: seed of the episode.
        secret: pattern that matches any secret of the episode as a whole word; None if the episode has no secrets.
        shown: for each list of actions, what is shown after 0, 1, 2, … actions. Empty without secrets.
        texts: the same through a view, casefolded.
    """

    seed: int
    secret: re.Pattern[str] | None
    shown: list[list[Shown]]
    texts: list[list[str]] = field(default_factory=list)

    def through(self, view: View) -> EpisodeText:
        return replace(self, texts=[[view(shown).casefold() for shown in turns] for turns in self.shown])


@dataclass(frozen=True)
class LeakEstimate:
    """How often episodes show their own secrets and the secrets of other episodes.

    Args:
        leaks: episodes that show one of their own secrets.
        chance: estimated probability that an episode shows an unrelated secret.
        count: number of episodes with secrets.
    """

    leaks: list[EpisodeText]
    chance: float
    count: int

    def probability(self, leaks: int) -> float:
        """Return the probability that at least this many episodes show their secret by chance."""
        n, p = self.count, CORRELATION_FACTOR * self.chance / (1 - self.chance + CORRELATION_FACTOR * self.chance)
        return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(leaks, n + 1))


def text_of_shown(shown: Shown) -> str:
    return shown.text


def _decoded(pattern: re.Pattern[str], decode: Callable[[str], bytes], inside: bool = False) -> View:
    """Return a view of the parts of a text that match the pattern, decoded."""

    def view(shown: Shown) -> str:
        parts = []
        for encoded in pattern.findall(shown.inside if inside else shown.text):
            with suppress(ValueError):  # not encoded, or not UTF-8
                parts.append(decode(encoded).decode())
        return "\n".join(parts)

    return view


def _shifted(by: int) -> View:
    """Return a view in which each letter and each number is shifted."""
    table = {
        ord(a): chr((ord(a) - first + by) % 26 + first)
        for first in (65, 97)
        for a in map(chr, range(first, first + 26))
    }

    def view(shown: Shown) -> str:
        # Numbers with more digits than int() accepts are no secrets.
        numbers = re.sub(r"(?<![\w.])\d{1,18}(?![\w.]\w)", lambda match: str(int(match[0]) + by), shown.text)
        return numbers.translate(table)

    return view


BASE64 = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}|\b[A-Za-z0-9+/_-]{3}=|\b[A-Za-z0-9+/_-]{2}==")
HEXADECIMAL = re.compile(r"\b(?:[0-9a-fA-F]{2}){2,}\b")


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), b"+/")


# Other places and encodings in which an environment may show a secret.
VIEWS: Mapping[str, View] = {
    " in repr(env) or str(env)": lambda shown: shown.repr,
    " backwards": lambda shown: shown.text[::-1],
    " with separators between the letters": lambda shown: re.sub(r"(?<=\b\w)[^\w\n]{1,3}(?=\w\b)", "", shown.text),
    " in base64": _decoded(BASE64, _from_base64),
    " in base64 in repr(env), str(env) or an attribute": _decoded(BASE64, _from_base64, inside=True),
    " in hexadecimal": _decoded(HEXADECIMAL, bytes.fromhex),
    " in hexadecimal in repr(env), str(env) or an attribute": _decoded(HEXADECIMAL, bytes.fromhex, inside=True),
    " shifted by one": _shifted(-1),
    " shifted by minus one": _shifted(1),
}


@check("secrets", "Nothing that secrets() names is shown before the end.", needs=("protocol", "types"))
def secrets(harness: Harness) -> str | None:
    scripts = [list(rollout.actions[:MAX_TURNS]) for rollout in harness.rollouts[:MAX_ROLLOUTS]]
    episodes = _play_episodes(harness, scripts, harness.episodes)
    if all(episode.secret is None for episode in episodes):
        return "secrets() declares that nothing is hidden"
    _require_no_encoded_leak(harness, episodes, scripts)
    estimate = _estimate_leaks(episodes, scripts)
    if MAX_PROBABILITY <= estimate.probability(len(estimate.leaks)) < CONFIRMATION_PROBABILITY:
        more = _play_episodes(harness, scripts, CONFIRMATION_FACTOR * harness.episodes)
        estimate = _estimate_leaks(more, scripts)
    if estimate.probability(len(estimate.leaks)) < MAX_PROBABILITY:
        raise _leak_failure(harness, estimate, scripts)
    if estimate.probability(estimate.count) >= MAX_PROBABILITY:
        seed = next(episode.seed for episode in episodes if episode.secret is not None)
        example = short_repr(_secrets(harness, seed)[0])
        rate = f"a secret such as {example} occurs by chance in {estimate.chance:.0%} of other episodes"
        raise Unchecked(f"{rate}, too often to decide from {estimate.count} episodes")
    return f"searched {estimate.count} episodes"


def _require_no_encoded_leak(harness: Harness, episodes: Sequence[EpisodeText], scripts: Sequence[list[str]]) -> None:
    scripts = [actions[:VIEWED_TURNS] for actions in scripts[:1]]
    episodes = [replace(e, shown=[turns[: VIEWED_TURNS + 1] for turns in e.shown[:1]]) for e in episodes]
    for where, view in VIEWS.items():
        estimate = _estimate_leaks(episodes, scripts, view)
        if estimate.probability(len(estimate.leaks)) < MAX_PROBABILITY:
            raise _leak_failure(harness, estimate, scripts, where, view)


def _estimate_leaks(
    episodes: Sequence[EpisodeText], scripts: Sequence[list[str]], view: View = text_of_shown
) -> LeakEstimate:
    own = [episode.through(view) for episode in episodes if episode.secret is not None]
    seen = [[f"{action}\n{view(Shown(action))}".casefold() for action in actions] for actions in scripts]
    leaks, searched, found = [], 0, 0
    for i, episode in enumerate(own):
        partner = own[(i + 1) % len(own)]
        if _occurs(episode, episode, partner, seen):
            leaks.append(episode)
    for i, episode in enumerate(own if leaks or view is text_of_shown else []):
        partner = own[(i + 1) % len(own)]
        for j in range(2, min(UNRELATED_EPISODES + 2, len(own))):
            unrelated = own[(i + j) % len(own)]
            if unrelated.secret not in (episode.secret, partner.secret):
                searched += 1
                found += _occurs(unrelated, episode, partner, seen)
    return LeakEstimate(leaks, (found + 1) / (searched + 2), len(own))


def _occurs(owner: EpisodeText, episode: EpisodeText, partner: EpisodeText, scripts: Sequence[list[str]]) -> bool:
    """Whether the episode shows a secret of the owner that the partner does not show at the same turn."""
    assert owner.secret is not None
    for texts, partner_texts, actions in zip(episode.texts, partner.texts, scripts, strict=True):
        for k, (text, partner_text) in enumerate(zip(texts, partner_texts, strict=False)):
            if k and owner.secret.search(actions[k - 1]):
                break  # the action contains the secret, so later observations may quote the action
            if set(owner.secret.findall(text)) - set(owner.secret.findall(partner_text)):
                return True
    return False


def _leak_failure(
    harness: Harness, estimate: LeakEstimate, scripts: Sequence[list[str]], where: str = "", view: View = text_of_shown
) -> CheckFailed:
    """Return a failure with the script of the shortest episode found that shows its secret."""
    rate = f"so do {len(estimate.leaks)} of {estimate.count} episodes; expected by chance: {estimate.chance:.1%}"

    def body(seed: int, actions: Sequence[str]) -> None:
        partner = _play_episode(harness, seed + 1, [list(actions)])
        harness.new_case()
        episode = _play_episode(harness, seed, [list(actions)])
        if episode.secret is not None and _estimate_leaks([episode, partner], [list(actions)], view).leaks:
            harness.script.append("env.secrets()")
            text = next(t for t in reversed(episode.through(view).texts[0]) if episode.secret.search(t))
            match = episode.secret.search(text)
            assert match is not None
            raise CheckFailed(f"shows {match[0]!r}{where} before the end, which secrets() names; {rate}")

    rollouts = [Rollout(episode.seed, tuple(script)) for episode in estimate.leaks[:5] for script in scripts]
    try:
        harness.for_each_rollout(body, rollouts)
    except CheckFailed as failure:
        return failure
    # body() uses the next seed for the partner episode, and no leak was found with this partner.
    return CheckFailed(f"shows a secret{where} before the end; {rate}")


def _play_episodes(harness: Harness, scripts: Sequence[list[str]], count: int) -> list[EpisodeText]:
    return [_play_episode(harness, seed, scripts) for seed in range(FIRST_SEED, FIRST_SEED + count)]


def _play_episode(harness: Harness, seed: int, scripts: Sequence[list[str]]) -> EpisodeText:
    names = sorted({name.casefold() for name in _secrets(harness, seed) if name.strip()}, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)") if names else None
    return EpisodeText(seed, pattern, [_shown(harness, seed, actions) for actions in scripts] if names else [])


def _secrets(harness: Harness, seed: int) -> list[str]:
    env, _ = harness.start(seed)
    names = harness.call("env.secrets()", env.env.secrets)
    if names is None:
        raise Unchecked("secrets() is not declared; return [] when nothing is hidden")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckFailed(f"secrets() returned {short_repr(names)}, not a list of str")
    return names


def _shown(harness: Harness, seed: int, actions: Sequence[str]) -> list[Shown]:
    harness.new_case()
    env = harness.build()
    shown = [_look(env, *env.reset(seed))]
    for action in actions:
        step = env.step(action)
        if env.over:
            break
        shown.append(_look(env, step.observation, step.info))
    return shown


def _look(env: TrackedEnv, observation: Any, info: Any) -> Shown:
    texts = []
    for function in (repr, str):
        code = f"{function.__name__}({env.name})"
        texts.append(env.harness.call(code, function, env.env))
        env.harness.script.remove(code)
    own = "\n".join(dict.fromkeys(texts))
    inside = own
    if env.turn <= VIEWED_TURNS:
        inside = "\n".join([own, *islice(_texts_in(vars(env.env.unwrapped)), MAX_TEXTS)])
    return Shown("\n".join(_leaves(plain((observation, info)))), own, inside)


def _texts_in(value: Any, depth: int = 3) -> Iterator[str]:
    """Yield the short texts in containers of Python, and in dataclasses."""
    if isinstance(value, bytes):
        value = value[:MAX_TEXT].decode(errors="replace")
    if isinstance(value, str):
        if len(value) <= MAX_TEXT:
            yield value
    elif depth and len(items := _items(value)) <= MAX_TEXTS:
        for item in items:
            yield from _texts_in(item, depth - 1)


def _items(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    return [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else ()


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield str(value)
