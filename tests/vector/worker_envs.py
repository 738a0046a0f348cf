"""Environments that hang, kill or overload their worker process. Workers import this module by name."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fixture_envs import HANG, Walker, pass_time_limit

from gem.core import EnvWrapper, Step
from gem.errors import BadAction, BadValue


class Obedient(Walker):
    """A Walker with one long episode that executes the method an action names. Its info holds the process id."""

    def __init__(self, notes: str | None = None, dies_from: int | None = None, **walker: Any) -> None:
        super().__init__(**walker)
        self.notes = None if notes is None else Path(notes)
        self.note("built")
        if dies_from is not None and self.count("built") >= dies_from:
            os._exit(7)

    def reset(self, seed: int | None = None) -> Any:
        super().reset(seed)
        return f"episode {self._episode} of seed {self._seed}", {"pid": os.getpid()}

    def step(self, action: Any) -> Step:
        if isinstance(action, Path):  # a named pipe: wait until it is written
            action = action.read_text()
        answer = getattr(self, action)() if isinstance(action, str) and action else action
        info = {"pid": os.getpid(), "episode": self._episode}
        return Step(answer, 1.0, terminated=action == "finish", info=info)

    def close(self) -> None:
        self.note("closed")

    def note(self, word: str) -> str:
        if self.notes is not None:
            with self.notes.open("a") as file:
                file.write(f"{word}\n")
        return word

    def count(self, word: str) -> int:
        return 0 if self.notes is None else self.notes.read_text().split().count(word)

    def finish(self) -> str:
        return "finished"

    def nap(self) -> str:
        """Take longer than an actor of Ray runs calls before it returns their outcomes."""
        time.sleep(0.05)
        return "rested"

    def use_time(self) -> float:
        """Use half of the time that this call has left, and return how many seconds it had."""
        left, interval = signal.getitimer(signal.ITIMER_REAL)
        signal.setitimer(signal.ITIMER_REAL, left / 2, interval)
        return left

    def hang(self) -> str:
        """Hang until the time limit, which passes at once."""
        self.note("hanging")
        pass_time_limit()
        time.sleep(HANG)
        return self.note("woken")

    def hang_stubbornly(self) -> str:
        self.note("hanging")
        pass_time_limit()
        until = time.monotonic() + HANG
        while time.monotonic() < until:
            with suppress(BaseException):  # including CallTimeout
                time.sleep(HANG)
        return "woken"

    def swallow_twice(self) -> int:
        """Return how many of two calls that hang were interrupted."""
        interrupted = 0
        for _ in range(2):
            try:
                pass_time_limit()
                time.sleep(HANG)
            except BaseException:
                interrupted += 1
        return interrupted

    def hang_unreachably(self) -> str:
        """Hang like a C library that blocks signals and does not return."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        return self.hang()

    def hang_with_all_threads(self) -> str:
        """Hang in C code that holds the interpreter lock, with a running child process."""
        child = subprocess.Popen(["sleep", str(HANG)])
        self.note(f"{os.getpid()} {child.pid} hanging")
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        ctypes.PyDLL(None).sleep(int(HANG))
        return self.note("woken")

    def die(self) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return "alive"

    def leave(self) -> str:
        os._exit(5)

    def die_beside_a_child(self) -> str:
        """Die while a child process holds all open files of this process."""
        if os.fork() == 0:
            os.setsid()
            time.sleep(3)
            os._exit(0)
        os._exit(5)

    def say(self) -> str:
        print("something printed")
        sys.stdout.flush()
        return repr(sys.stdin.read())

    def megabytes(self) -> bytes:
        return b"x" * 5_000_000

    def lock(self) -> Any:
        return threading.Lock()

    def refuse(self) -> str:
        raise Awkward("refused", {"with": threading.Lock()})


class Awkward(BadAction):
    """An error that can be neither pickled nor unpickled."""

    def __init__(self, what: str, why: object) -> None:
        super().__init__(f"{what} for a reason")
        self.why = why


class Unbuildable(Walker):
    def __init__(self, how: str) -> None:
        if how == "refuse":
            raise BadValue("how must be something else, got 'refuse'")
        if how == "awkward":
            raise Awkward("refused", {"with": threading.Lock()})
        if how == "leave":
            raise SystemExit("leaving")
        os._exit(9)


class Crashing(EnvWrapper):
    """Raises an unexpected exception for the action "crash", and ends the process for "exit"."""

    def step(self, action: Any) -> Any:
        if action == "exit":
            os._exit(7)
        return super().step(action if action != "crash" else 1 / 0)


class Awaiting(EnvWrapper):
    """Runs a synchronous environment in coroutines."""

    awaits = True

    async def areset(self, seed: int | None = None, **kwargs: Any) -> Any:
        return self.env.reset(seed=seed, **kwargs)

    async def astep(self, action: Any) -> Any:
        return self.env.step(action)
