"""Inside a worker: it builds its share of the slots and plays them in the order asked, each call within its time limit.

A worker process runs main(); an actor holds a Player of its own.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from gem._internal.framing import Channel, dumps, to_picklable
from gem.errors import BadAction, BadValue, EnvFailed
from gem.vector.slots import Call, CallTimeout, Facts, OnFailure, Outcome, Position, SlotGroup, describe
from gem.vector.wire import pack, unpack_call

STAGES = 4  # of one call, each with the whole time limit: the call, the close, the rebuilding, the next reset

Result = TypeVar("Result")


@dataclass(frozen=True)
class Task:
    """What a worker is to play.

    Args:
        factories: pickled {slot: factory}.
        slots: those of them to build.
        same_step, on_failure: see SlotGroup.
        timeout: seconds for one call, from when it starts; None waits.
        lost: slot → why the episode it was in has failed with an earlier worker, and where that was.
    """

    factories: bytes
    slots: Sequence[int]
    same_step: bool
    on_failure: OnFailure
    timeout: float | None = None
    lost: Mapping[int, tuple[str, Position | None]] = field(default_factory=dict)


class Report(NamedTuple):
    """How building went. facts: of each slot; None where it failed. error: what was raised, pickled; trace: where."""

    facts: dict[int, Facts] | None
    error: bytes = b""
    trace: str = ""


class Player:
    """The slots of a task, built and played in this thread, which has to be the main one for the time limit to hold.

    Args:
        task: what to play. Raises BadValue when its factories cannot be loaded here, and what they raise.
        still_here: called when a call is over its time limit and has been told so, at most STAGES times a call.
    """

    def __init__(self, task: Task, still_here: Callable[[], None] = lambda: None) -> None:
        self._alarm = Alarm(task.timeout, still_here)
        try:
            factories = pickle.loads(task.factories)
        except Exception as e:
            raise BadValue(
                f"a worker cannot load the environments of slots {list(task.slots)}: {describe(e)}; "
                "define them in a module that it can import"
            ) from e
        self.group = SlotGroup(
            {slot: factories[slot] for slot in task.slots}, same_step=task.same_step, on_failure=task.on_failure
        )
        for slot, (why, position) in task.lost.items():
            self.group.lose(slot, why, position)

    def facts(self) -> dict[int, Facts]:
        return {slot: self.group.facts(slot) for slot in self.group.envs}

    def play(self, slot: int, packed: bytes) -> bytes:
        """Perform a packed call of a slot. Returns the packed outcome, which says so where either cannot be pickled."""
        try:
            call = unpack_call(packed)
        except Exception as e:
            return pack(
                Outcome(slot, None, BadAction(f"slot {slot}: what was sent cannot be unpickled: {describe(e)}"))
            )
        outcome = self.perform(call)
        try:
            return pack(outcome)
        except Exception as e:
            why = f"its answer to {call.what} cannot be pickled: {describe(e)}"
            self.group.lose(slot, why, None)
            return pack(Outcome(slot, None, EnvFailed(f"{self.group.name(slot)}: {why}")))

    def perform(self, call: Call) -> Outcome:
        """As SlotGroup.perform, within the time limit; so is what follows a failure, the rebuilding and the reset."""
        try:
            return self._alarm.limit(self.group.perform, call)
        except CallTimeout as e:  # it struck outside step() and reset(): in close() or a state, say
            why = str(e)
        try:
            return self._alarm.limit(self.group.fail, call, why)
        except CallTimeout:
            self.group.lose(call.slot, why, None)
            return Outcome(call.slot, None, EnvFailed(f"{self.group.name(call.slot)} failed and hangs again: {why}"))


def build(task: Task, still_here: Callable[[], None] = lambda: None) -> tuple[Player | None, Report]:
    """A player of the task, and what to tell the parent: the facts or, where there is none, why."""
    try:
        player = Player(task, still_here)
        return player, Report(player.facts())
    except BaseException as e:  # SystemExit, too: it is the parent that says so
        return None, Report(None, dumps(to_picklable(e)), traceback.format_exc())


class Alarm:
    """Raises CallTimeout in the main thread when something there runs too long, and again after each such time.

    Args:
        seconds: the time limit; None sets none.
        still_here: called when the limit has passed, at most STAGES times for one call.
    """

    def __init__(self, seconds: float | None, still_here: Callable[[], None]) -> None:
        self.seconds = seconds if threading.current_thread() is threading.main_thread() else None
        self._still_here = still_here
        self._armed = False
        self._rings = 0

    def limit(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call the function. Raises CallTimeout where it was too late; never after this has returned."""
        if self.seconds is None:
            return function(*args)
        results: list[Result] = []
        try:
            try:
                self._arm(self.seconds)
                results.append(function(*args))
            finally:
                self._disarm()
        except CallTimeout:  # perhaps while disarming
            self._disarm()
            if not results:
                raise
        return results[0]

    def _arm(self, seconds: float) -> None:
        signal.signal(signal.SIGALRM, self._ring)  # each time: an environment may have set its own
        self._rings, self._armed = 0, True
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    def _disarm(self) -> None:
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        if not self._armed:  # it went off while being disarmed
            return
        self._rings += 1
        if self._rings <= STAGES:
            self._still_here()
        raise CallTimeout(f"over the time limit of {self.seconds:g} s")


class Outbox:
    """Sends outcomes as they come: all there are in one message, from a thread, so that a long call holds up none."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._queue: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        threading.Thread(target=self._send_all, daemon=True).start()

    def put(self, item: tuple[int, bytes] | None) -> None:
        """Send a packed outcome; or None, a sign of life, also from a signal handler."""
        self._queue.put(item)

    def _send_all(self) -> None:
        while True:
            items = [self._queue.get()]
            while not self._queue.empty():
                items.append(self._queue.get())
            try:
                self._channel.send([item for item in items if item is not None])
            except OSError:
                return  # nobody is left to hear it


def main(control: int, lifeline: int) -> None:
    """The life of a worker process, which sends one Report, and then lists of (slot, packed outcome).

    Args:
        control: file descriptor of a socket, over which a Task comes first, and then batches of (slot, packed call).
        lifeline: file descriptor of a pipe that closes when the parent ends.
    """
    closing = threading.Event()
    signal.signal(signal.SIGTERM, lambda signum, frame: closing.set())
    # Ctrl-C is for the parent, which closes its workers then. No SIG_IGN: what an environment starts would inherit it.
    signal.signal(signal.SIGINT, lambda signum, frame: None)
    end_with(lifeline)
    sys.setswitchinterval(0.001)  # seconds that a call which computes may hold up the outcomes before it
    os.set_inheritable(control, False)
    channel = Channel(socket.socket(fileno=control))
    outbox = Outbox(channel)
    try:
        task = channel.receive()
    except (EOFError, ConnectionError):  # the parent has closed already
        return
    player, report = build(task, lambda: outbox.put(None))
    channel.send(report)
    if player is not None:
        try:
            serve(channel, player, outbox, closing)
        finally:
            player.group.close()


def serve(channel: Channel, player: Player, outbox: Outbox, closing: threading.Event) -> None:
    """Play batch after batch, until the parent closes."""
    while True:
        try:
            batch = channel.receive()
        except (EOFError, ConnectionError):
            return
        for slot, packed in batch:
            if closing.is_set():
                return
            outbox.put((slot, player.play(slot, packed)))


def end_with(lifeline: int) -> None:
    """End this process, and those it started, when the other end of a pipe closes; whatever they are doing."""
    os.set_inheritable(lifeline, False)
    if hasattr(fcntl, "F_SETSIG"):  # Linux: the kernel does it, even where a C function keeps every thread waiting
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)
