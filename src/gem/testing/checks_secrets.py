"""Secrets: what the agent has to find out does not stand in what it is shown.

A secret such as "7" may stand in an observation by chance, so finding it there proves nothing. Two things do. The same
actions are played under other seeds, and only what stands in an answer of one episode and not in the same answer of
the next counts: what the actions or the turn numbers bring into both is gone. And the secrets of *other* episodes are
looked for in the same way: they stand there by chance alone. What is rightly shown may still go with the secret (a
range that holds a number ends in it more often than in others), so that chance is taken to be eight times as likely.
A leak is a secret that stands in its own episodes more often than even this explains, at odds of a million to one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gem._internal.text import short_repr
from gem.testing.lab import Broken, Lab, Play, Unchecked
from gem.testing.plain import plain
from gem.testing.promise import promise

ODDS = 1e-6
ALLOWED = 8  # times the odds of a stranger's secret
SUSPICIOUS = 0.1  # odds at which more episodes are played before judging
MORE = 4  # times as many
FIRST_SEED = 1_000  # apart from the seeds in whose episodes the actions were sampled
SCRIPTS, TURNS = 2, 30  # lists of actions that every episode is played with, and their length
STRANGERS = 10  # other episodes whose secrets are looked for in each episode


@dataclass(frozen=True)
class Heard:
    """What an episode showed before its end.

    secret: matches each of its secrets as a word of its own; None where it has none.
    texts: for each list of actions, what was shown after 0, 1, 2 … of them.
    """

    seed: int
    secret: re.Pattern[str] | None
    texts: list[list[str]]


@dataclass(frozen=True)
class Grade:
    """leaks: the episodes in which secrets stand. chance: of a stranger's secret standing there. count: of episodes."""

    leaks: list[Heard]
    chance: float
    count: int

    def odds(self, leaks: int) -> float:
        """The probability that chance explains so many leaks or more."""
        n, p = self.count, ALLOWED * self.chance / (1 - self.chance + ALLOWED * self.chance)
        return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(leaks, n + 1))


@promise("secrets", "Nothing that secrets() names is shown before the end.", needs=("protocol", "types"))
def secrets(lab: Lab) -> str | None:
    scripts = [list(play.actions[:TURNS]) for play in lab.plays[:SCRIPTS]]
    heard = _listen(lab, scripts, lab.episodes)
    if all(h.secret is None for h in heard):
        return "it declares that nothing is hidden"
    verdict = _judge(heard, scripts)
    if ODDS <= verdict.odds(len(verdict.leaks)) < SUSPICIOUS:
        verdict = _judge(_listen(lab, scripts, MORE * lab.episodes), scripts)
    if verdict.odds(len(verdict.leaks)) < ODDS:
        raise _leak(lab, verdict, scripts)
    if verdict.odds(verdict.count) >= ODDS:
        example = short_repr(_secrets(lab, next(h.seed for h in heard if h.secret is not None))[0])
        found = f"chance alone puts a secret such as {example} into {verdict.chance:.0%} of other episodes"
        raise Unchecked(f"{found}: too often to tell from {verdict.count} episodes")
    return f"looked for in {verdict.count} episodes"


def _judge(heard: Sequence[Heard], scripts: Sequence[list[str]]) -> Grade:
    own = [h for h in heard if h.secret is not None]
    leaks, strangers, found = [], 0, 0
    for i, here in enumerate(own):
        partner = own[(i + 1) % len(own)]
        if _stands(here, here, partner, scripts):
            leaks.append(here)
        for j in range(2, min(STRANGERS + 2, len(own))):
            stranger = own[(i + j) % len(own)]
            if stranger.secret not in (here.secret, partner.secret):
                strangers += 1
                found += _stands(stranger, here, partner, scripts)
    return Grade(leaks, (found + 1) / (strangers + 2), len(own))


def _stands(owner: Heard, here: Heard, partner: Heard, scripts: Sequence[list[str]]) -> bool:
    """Whether a secret of the owner stands in what was shown here, and not at the same place in the partner's."""
    assert owner.secret is not None
    for texts, others, actions in zip(here.texts, partner.texts, scripts, strict=True):
        for k, (text, other) in enumerate(zip(texts, others, strict=False)):
            if k and owner.secret.search(actions[k - 1].casefold()):
                break  # from here on it is no secret: the agent said it
            if set(owner.secret.findall(text)) - set(owner.secret.findall(other)):
                return True
    return False


def _leak(lab: Lab, verdict: Grade, scripts: Sequence[list[str]]) -> Broken:
    """The shortest episode that shows its secret."""
    share = f"so do {len(verdict.leaks)} of {verdict.count} episodes, where {verdict.chance:.1%} would by chance"

    def body(seed: int, actions: Sequence[str]) -> None:
        partner = _hear(lab, seed + 1, [list(actions)])
        lab.scene()
        here = _hear(lab, seed, [list(actions)])
        if here.secret is not None and _stands(here, here, partner, [list(actions)]):
            lab.script.append("env.secrets()")
            text = next(text for text in reversed(here.texts[0]) if here.secret.search(text))
            match = here.secret.search(text)
            assert match is not None
            raise Broken(f"{match[0]!r} is shown before the end, and secrets() names it; {share}")

    try:
        lab.each(body, [Play(h.seed, tuple(script)) for h in verdict.leaks[:5] for script in scripts])
    except Broken as broken:
        return broken
    return Broken(f"what secrets() names is shown before the end; {share}")  # against a partner of a later seed


def _listen(lab: Lab, scripts: Sequence[list[str]], count: int) -> list[Heard]:
    return [_hear(lab, seed, scripts) for seed in range(FIRST_SEED, FIRST_SEED + count)]


def _hear(lab: Lab, seed: int, scripts: Sequence[list[str]]) -> Heard:
    names = sorted({name.casefold() for name in _secrets(lab, seed) if name.strip()}, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)") if names else None
    return Heard(seed, pattern, [_shown(lab, seed, actions) for actions in scripts] if names else [])


def _secrets(lab: Lab, seed: int) -> list[str]:
    player, _ = lab.start(seed)
    named = lab.call("env.secrets()", player.env.secrets)
    if named is None:
        raise Unchecked("secrets() declares nothing; return [] where nothing is hidden")
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise Broken(f"secrets() returned {short_repr(named)}, not a list of str")
    return named


def _shown(lab: Lab, seed: int, actions: Sequence[str]) -> list[str]:
    lab.scene()
    player = lab.fresh()
    texts = [_text(player.reset(seed))]
    for action in actions:
        step = player.step(action)
        if player.over:
            break
        texts.append(_text((step.observation, step.info)))
    return texts


def _text(shown: tuple[Any, Any]) -> str:
    return "\n".join(_leaves(plain(shown))).casefold()


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
