"""Where an environment is tried: every call is written down, and what fails is cut to the shortest that still does."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from gem._internal.text import short_repr
from gem.core import Step
from gem.errors import InfraError, MissingDependency
from gem.policies import Oracle
from gem.registry import EnvSpec, resolve
from gem.testing.plain import RESET, STEP, difference, plain
from gem.testing.subject import Subject

SHRINK_TRIES = 60  # shorter scripts tried, of one that fails


class Broken(Exception):
    """A promise was seen broken. what: what was seen; script: the lines that led to it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what, self.script, self.turns = what, list[str](), 0


class Unchecked(Exception):
    """It cannot be told whether the promise is kept, and why."""


@dataclass(frozen=True)
class Play:
    """A seed and the actions taken in its episode."""

    seed: int
    actions: tuple[str, ...]


Body = Callable[[int, Sequence[str]], None]


class Lab:
    """Builds environments of one subject and keeps the script of what was done with them.

    Args:
        subject: what is tried.
        seeds: played for promises about single episodes.
        episodes: over which means and rates are taken.
    """

    def __init__(self, subject: Subject, seeds: Sequence[int], episodes: int) -> None:
        self.subject, self.seeds, self.episodes = subject, seeds, episodes
        self.plays: list[Play] = []
        self.long_plays: list[Play] = []  # to the turn limit
        self.samples = True  # whether the environment samples actions
        self.passed: set[str] = set()  # names of promises
        self.broken: dict[str, str] = {}  # those that fail or cannot be tried → the one that has to be mended first
        self.script: list[str] = []
        self.players: list[Player] = []
        self._starts: dict[int, bytes] = {}
        self.child: Mapping[str, Any] | None = None  # what another process found, see checks_build

    @property
    def spec(self) -> EnvSpec | None:
        return self.subject.spec

    def scene(self) -> None:
        """Close what was built and start a new script."""
        for player in self.players:
            with suppress(Exception):  # whether close() works is the business of the check "protocol"
                player.env.close()
        self.players, self.script = [], []

    def fresh(self, name: str = "env") -> Player:
        """A newly built environment, under a name of its own in the script."""
        return self.adopt(name, self.call(f"{name} = {self.subject.code}", self.subject.build))

    def start(self, seed: int) -> tuple[Player, Any]:
        """A player right after reset(seed), and what it was shown; read back where making it anew could take long."""
        if seed not in self._starts:
            player = self.fresh()
            shown = player.reset(seed)[0]
            if "pickle" in self.passed:
                with suppress(Exception):  # pickle raises what the environment raises; it is reset then, every time
                    self._starts[seed] = pickle.dumps((player.env, shown))
            return player, shown
        self.script += [f"env = {self.subject.code}", f"env.reset(seed={seed})"]
        env, shown = pickle.loads(self._starts[seed])
        player = self.adopt("env", env)
        player.over = False
        return player, shown

    def adopt(self, name: str, env: Any, like: Player | None = None) -> Player:
        """An environment that came about in another way; like: the one whose running episode it shares."""
        player = Player(self, name, env)
        if like is not None:
            player.turn, player.over = like.turn, like.over
        self.players.append(player)
        return player

    def call(
        self, code: str, function: Callable[..., Any], *args: Any, optional: bool = False, passes: Any = (), **kw: Any
    ) -> Any:
        """Call into the environment, writing it down.

        optional: an environment may leave it out, by raising NotImplementedError.
        passes: exceptions that the caller waits for.

        Raises Broken for any other exception, and Unchecked where it is not the environment's.
        """
        self.script.append(code)
        try:
            return function(*args, **kw)
        except passes:
            raise
        except (InfraError, MissingDependency) as e:
            raise Unchecked(f"{code} could not run: {type(e).__name__}: {e}") from e
        except (Exception, SystemExit) as e:  # whatever the environment raises is what we are here to report
            if optional and isinstance(e, NotImplementedError):
                raise Unchecked(str(e) or f"{code} is not implemented") from e
            broken = Broken(f"{code} raised {type(e).__name__}: {short_repr(str(e), 200)}")
            raise broken from e

    @property
    def has_oracle(self) -> bool:
        """An oracle that reads observations does not know those of a wrapper."""
        if self.spec is None or self.spec.oracle is None:
            return False
        return self.spec.oracle_sees == "state" or not self.subject.wrapped

    def each(self, body: Body, plays: Sequence[Play] | None = None) -> None:
        """Run the body on every play; raises Broken with the shortest script, when one fails."""
        tried = [(self.attempt(body, play), play) for play in (self.plays if plays is None else plays)]
        failed = [(failure, play) for failure, play in tried if failure is not None]
        if failed:
            failure, play = min(failed, key=lambda pair: pair[0].turns)
            raise self._shrunk(body, failure, play)

    def attempt(self, body: Body, play: Play) -> Broken | None:
        """Run the body on one play, in a new scene. Returns how it failed, None when it did not."""
        self.scene()
        try:
            body(play.seed, play.actions)
        except Broken as broken:
            self.sign(broken)
            return broken
        finally:
            self.scene()
        return None

    def sign(self, broken: Broken) -> None:
        """Keep with a failure the script that led to it."""
        if not broken.script:
            broken.script = [*self.subject.setup, *_modules(self.script), *self.script]
            broken.turns = max((player.turn for player in self.players), default=0)

    def _shrunk(self, body: Body, failure: Broken, play: Play) -> Broken:
        """Leave out actions as long as the body still fails: first all after the failure, then halves, then fewer."""

        def again(fewer: list[str]) -> Broken | None:
            return self.attempt(body, replace(play, actions=tuple(fewer)))

        actions = list(play.actions)
        if (cut := again(actions[: failure.turns])) is not None:
            actions, failure = actions[: failure.turns], cut
        tries, size = SHRINK_TRIES, (len(actions) + 1) // 2
        while size and tries:
            start = 0
            while start < len(actions) and tries:
                tries -= 1
                fewer = actions[:start] + actions[start + size :]
                if (smaller := again(fewer)) is None:
                    start += size
                else:
                    actions, failure = fewer, smaller
            size //= 2
        return failure


class Player:
    """One environment under test, whose calls are lines of the script.

    turn: steps taken in its episode. over: no episode is running.
    """

    def __init__(self, lab: Lab, name: str, env: Any) -> None:
        self.lab, self.name, self.env = lab, name, env
        self.turn, self.over = 0, True

    def reset(self, seed: int | None = None) -> tuple[Any, Any]:
        code = f"{self.name}.reset({'' if seed is None else f'seed={seed}'})"
        answer = self.lab.call(code, self.env.reset, seed=seed)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise Broken(f"{code} returned {short_repr(answer)}, not (observation, info)")
        self.turn, self.over = 0, False
        return answer

    def step(self, action: str) -> Step:
        self.turn += 1
        code = f"{self.name}.step({literal(action)})"
        answer = self.lab.call(code, self.env.step, action)
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise Broken(f"{code} returned {short_repr(answer)}, not ({', '.join(STEP)})")
        self.over = True in map(plain, answer[2:4])  # whatever else they are, "types" reports
        return Step(*answer)

    def begin(self, seed: int | None = None) -> tuple[Any, Any]:
        """Reset. Returns the answer as plain data, which nothing changes later."""
        observation, info = self.reset(seed)
        return plain(observation), plain(info)

    def play(self, actions: Sequence[str]) -> list[Step]:
        """Take the actions as long as the episode goes on. Returns the answers as plain data."""
        steps: list[Step] = []
        for action in actions:
            if self.over:
                break
            step = self.step(action)
            steps.append(step._replace(observation=plain(step.observation), info=plain(step.info)))
        return steps

    def start_as(self, seed: int | None, expected: Sequence[Any], whose: str) -> None:
        """Reset, and raise Broken unless the answer is the expected one, or as much of it as is given.

        whose: who gave it.
        """
        given = slice(len(expected))
        self._compare(RESET[given], expected, self.reset(seed)[given], whose)

    def repeat(self, actions: Sequence[str], expected: Sequence[Step], whose: str) -> None:
        """Take the actions again, and raise Broken at the first answer that is not the expected one."""
        for action, step in zip(actions, expected, strict=False):
            if self.over:
                raise Broken(f"{self.name} ended after turn {self.turn}, where {whose} went on")
            self._compare(STEP, step, self.step(action), whose)

    def _compare(self, names: Sequence[str], expected: Sequence[Any], answer: Sequence[Any], whose: str) -> None:
        if found := difference(names, expected, answer):
            field, was, now = found
            where = f"at turn {self.turn}" if self.turn else "after reset"
            other = "the first time it was" if whose == self.name else f"{whose}'s is"
            raise Broken(f"{where}, {self.name}'s {field} is {now}; {other} {was}")

    def sample(self) -> str:
        """A sampled action; raises Unchecked where the environment samples none."""
        code = f"{self.name}.sample_random_action()"
        action = self.lab.call(code, self.env.sample_random_action, optional=True)
        if not isinstance(action, str):
            raise Broken(f"{code} returned {short_repr(action)}, not a str")
        return action

    def oracle(self) -> Oracle:
        """The oracle that the spec names, for this environment."""
        name = None if self.lab.spec is None else self.lab.spec.oracle
        if name is None:
            raise Unchecked("no oracle is known")
        code = f"oracle = gem.registry.resolve({name!r})(env.unwrapped)"
        return cast(Oracle, self.lab.call(code, lambda: resolve(name)(self.env.unwrapped)))


def literal(text: str) -> str:
    """The text as Python writes it; in a long one, what is repeated over and over as a product.

    >>> literal("ab"), literal("{" * 500 + "1")
    ("'ab'", "'{' * 500 + '1'")
    """
    if len(text) <= 200:
        return repr(text)
    parts, end = [], 0
    for run in re.finditer(r"(.{1,8}?)\1{19,}", text, re.DOTALL):
        parts += [repr(text[end : run.start()])] if run.start() > end else []
        parts.append(f"{run[1]!r} * {len(run[0]) // len(run[1])}")
        end = run.end()
    return " + ".join(parts + ([repr(text[end:])] if end < len(text) else []))


def _modules(script: Sequence[str]) -> list[str]:
    """Import lines for the standard modules that the script uses."""
    text = "\n".join(script)
    return [f"import {name}" for name in ("copy", "json", "pickle", "random") if re.search(rf"\b{name}\.", text)]
