"""Environments that wait, compute, fail, hang and die on demand, for tests and benchmarks of vectors.

Worker processes import this module by name, so it holds classes and functions only, and needs no pytest.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gem.core import Env, Info, Step, StopReason
from gem.errors import BadAction, EpisodeOver, InfraError
from gem.registry import EnvSpec
from gem.seeding import stream

HANG = 30.0  # seconds: longer than any test, but finite, so that abandoned threads end


class Counting(Env):
    """Ends after `turns` steps. Observations contain the turn and the number of resets of this instance."""

    def __init__(self, turns: int = 2, fails_at: tuple[int, ...] = (), fails_at_reset: tuple[int, ...] = ()) -> None:
        self.turns, self.fails_at, self.fails_at_reset = turns, fails_at, fails_at_reset
        self.resets = self.turn = 0
        self.closed = 0

    def reset(self, seed: int | None = None, *, greeting: str = "episode") -> tuple[str, Info]:
        super().reset(seed)
        self.resets += 1
        if self.resets in self.fails_at_reset:
            raise InfraError(f"no server for episode {self.resets}")
        self.turn = 0
        return f"{greeting} {self.resets}", {"suffix": "begin"}

    def step(self, action: str) -> Step:
        if action == "refused":
            raise BadAction("this action is refused")
        self.turn += 1
        if self.turn in self.fails_at:
            raise InfraError("the server died")
        over = self.turn == self.turns
        info = {"correct": True, "stop_reason": StopReason.SOLVED} if over else {}
        return Step(f"turn {self.turn} of {self.resets}", float(self.turn), terminated=over, info=info)

    def sample_random_action(self) -> str:
        return str(self.action_rng.randint(0, 99))

    def close(self) -> None:
        self.closed += 1


class Echo(Env):
    """Returns the action as observation, without end. The info holds the type of the action and the process id."""

    state: str = ""

    def reset(self, seed: int | None = None) -> tuple[Any, Info]:
        super().reset(seed)
        self.state = "hello"
        return self.state, {}

    def step(self, action: Any) -> Step:
        self.state = str(action)
        return Step(action, 1.0, info={"type": type(action).__name__, "pid": os.getpid()})

    def sample_random_action(self) -> str:
        return "echo"


@dataclass(frozen=True)
class Walk:
    turns: int
    turn: int = 0
    over: bool = False


class Walker(Env):
    """Episodes of 1 to `longest` turns. Length, observations, rewards and kind of end depend on the seed.

    seconds, reset_seconds: time to sleep in each step and reset. burns: seconds of CPU time that each step uses.
    """

    state: Walk

    def __init__(
        self, longest: int = 6, *, seconds: float = 0.0, reset_seconds: float = 0.0, burns: float = 0.0
    ) -> None:
        self.longest, self.seconds, self.reset_seconds, self.burns = longest, seconds, reset_seconds, burns

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        super().reset(seed)
        pause(self.reset_seconds)
        self.state = Walk(self.rng.randint(1, self.longest))
        return f"episode {self._episode} of seed {self._seed}", {"draw": self.rng.random()}

    def step(self, action: str) -> Step:
        if self.state.over:
            raise EpisodeOver("the walk is over; call reset()")
        pause(self.seconds)
        burn(self.burns)
        turn = self.state.turn + 1
        self.state = replace(self.state, turn=turn, over=turn == self.state.turns)
        terminated = self.state.over and self.rng.random() < 0.5
        info = {"stop_reason": StopReason.SOLVED if terminated else StopReason.MAX_TURNS} if self.state.over else {}
        observation = f"episode {self._episode} of seed {self._seed}, turn {turn}: {action} {self.rng.randint(0, 999)}"
        return Step(observation, self.rng.random(), terminated, self.state.over and not terminated, info)

    def sample_random_action(self) -> str:
        return str(self.action_rng.randint(0, 99))


class Faulty(Walker):
    """A Walker with injected faults.

    Args:
        faults: (episode, turn) → "raise", "infra", "exit", "hang", "late" or "die"; turn 0 is the reset. "late" hangs,
            and the time limit of the worker passes at once.
        rate: probability of a fault of `kinds` at each step, determined by seed, episode and turn.
        hang: seconds that "hang" sleeps, in one call, like a stuck library.
        log: a file that receives a line "seed episode turn kind" before each fault.
        walker: arguments of Walker.
    """

    def __init__(
        self,
        faults: Mapping[tuple[int, int], str] | None = None,
        *,
        rate: float = 0.0,
        kinds: Iterable[str] = ("raise",),
        hang: float = HANG,
        log: str | Path | None = None,
        **walker: Any,
    ) -> None:
        super().__init__(**walker)
        self.faults, self.rate, self.kinds = dict(faults or {}), rate, tuple(kinds)
        self.hang, self.log = hang, log

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        answer = super().reset(seed)
        self._inject(0)
        return answer

    def step(self, action: str) -> Step:
        self._inject(self.state.turn + 1)
        return super().step(action)

    def _inject(self, turn: int) -> None:
        kind = self.faults.get((self._episode, turn))
        if kind is None and turn and self.rate:
            chance = stream(self._seed or 0, self._episode, turn, "fault")
            kind = chance.choice(self.kinds) if chance.random() < self.rate else None
        if kind is not None:
            self._write(f"{self._seed} {self._episode} {turn} {kind}\n")
            inject(kind, self.hang)

    def _write(self, line: str) -> None:
        if self.log is not None:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(line)


class Waiting(Walker):
    """A Walker with coroutines that wait `waits` and `reset_waits` seconds."""

    def __init__(self, *, waits: float = 0.0, reset_waits: float = 0.0, **walker: Any) -> None:
        super().__init__(**walker)
        self.waits, self.reset_waits = waits, reset_waits

    async def areset(self, seed: int | None = None) -> tuple[str, Info]:
        await asyncio.sleep(self.reset_waits)
        return self.reset(seed)

    async def astep(self, action: str) -> Step:
        await asyncio.sleep(self.waits)
        return self.step(action)


MALFORMED: dict[str, Any] = {
    "reward None": ("", None, False, False, {}),
    "reward '1'": ("", "1", False, False, {}),
    "reward [1]": ("", [1], False, False, {}),
    "reward nan": ("", float("nan"), False, False, {}),
    "reward inf": Step("", float("inf")),
    "which is not finite": Step("", 10**400),
    "info []": ("", 1.0, False, False, []),
    "terminated='no'": ("", 1.0, "no", False, {}),
    "truncated=None": Step("", 1.0, False, None),  # type: ignore[arg-type]
    "instead of (observation, reward, terminated, truncated, info)": ("", 1.0, False, {}),
}


class Misbehaving(Walker):
    """A Walker that returns a malformed step for an action of MALFORMED, and raises KeyboardInterrupt on "ctrl-c"."""

    def step(self, action: str) -> Any:
        if action == "ctrl-c":
            raise KeyboardInterrupt
        return MALFORMED[action] if action in MALFORMED else super().step(action)


class MisbehavingWaiting(Misbehaving):
    """The same with coroutines."""

    async def areset(self, seed: int | None = None) -> tuple[str, Info]:
        return self.reset(seed)

    async def astep(self, action: str) -> Any:
        return self.step(action)


def inject(kind: str, hang: float) -> None:
    if kind == "raise":
        raise ZeroDivisionError("injected")
    if kind == "infra":
        raise InfraError("injected")
    if kind == "exit":
        raise SystemExit("injected")
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "late":
        pass_time_limit()
    assert kind in ("hang", "late"), kind
    time.sleep(hang)


def pass_time_limit() -> None:
    """Let the time limit pass that a worker has set for this call, and if it repeats, the next one start."""
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    if left:
        signal.setitimer(signal.ITIMER_REAL, 0.001, interval)


def pause(seconds: float) -> None:
    if seconds:
        time.sleep(seconds)


def burn(seconds: float) -> None:
    """Use CPU time of this thread for some seconds."""
    if seconds:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass


def _spec(name: str, **facts: Any) -> EnvSpec:
    return EnvSpec(f"fixture:{name}-v0", f"fixture_envs:{name.partition('-')[0]}", **facts)


SPECS = [
    _spec("Echo"),
    _spec("Walker"),
    _spec("Walker-thread", runs="thread"),
    _spec("Walker-process", runs="process"),
    _spec("Waiting", runs="thread"),
    _spec("Misbehaving"),
    _spec("MisbehavingWaiting", runs="thread"),
    _spec("Faulty"),
    _spec("Faulty-thread", runs="thread"),
    _spec("Faulty-process", runs="process"),
]
