"""The code that runs in workers: build the environments of some slots and run calls on them, with a time limit.

A worker process runs main(). A Ray actor uses SlotRunner. This module also defines the messages between workers and
their parent: WorkerSpec, BuildReport, packed calls and packed outcomes.
"""

from __future__ import annotations

import pickle
import queue
import signal
import struct
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from gem._internal.framing import Channel, describe_error, dumps, to_picklable
from gem.core import Step
from gem.errors import BadAction, BadValue, EnvFailed
from gem.vector.slots import (
    CallTimeout,
    Position,
    SlotCall,
    SlotMetadata,
    SlotOutcome,
    SlotSettings,
    build_slots,
    close_slots,
)

FLUSH_BYTES = 1 << 15  # maximum number of bytes sent without waiting; fits in the socket's buffer
_SLOT = struct.Struct("!i")  # header of a message: the slot, or a negative number for other messages
_ALIVE = _SLOT.pack(-1)  # message: the worker is alive and still busy
_REPORT = _SLOT.pack(-2)  # header of a pickled BuildReport
_PLAIN = frozenset({type(None), bool, int, float, str})  # types that any interpreter can load

Result = TypeVar("Result")


@dataclass(frozen=True)
class WorkerSpec:
    """The configuration of a worker: its slots and how to run them.

    Args:
        factories: pickled dict {slot: callable that builds its environment}.
        slots: slots whose environments the worker builds.
        settings: of the slots.
        lost: {slot: (reason, last known position)} for slots whose episode was lost when the previous worker died. The
            position is None if it is not known.
    """

    factories: bytes
    slots: Sequence[int]
    settings: SlotSettings
    lost: Mapping[int, tuple[str, Position | None]] = field(default_factory=dict)


class BuildReport(NamedTuple):
    """The result of building the environments of a worker.

    Args:
        metadata: metadata of each slot; None if building failed.
        error: the pickled exception if building failed, else empty.
        trace: the traceback of the exception if building failed, else empty.
    """

    metadata: dict[int, SlotMetadata] | None
    error: bytes = b""
    trace: str = ""


class Pickled(NamedTuple):
    """An argument that is pickled separately, so that an unpickling error affects only its own call."""

    data: bytes


PackedCall = tuple[int, str, Any]  # (slot, method, argument or Pickled)


def pack_call(call: SlotCall) -> PackedCall:
    """Convert a call to plain data for sending. If the argument cannot be pickled, the exception is raised."""
    slot, method, argument = call
    if type(argument) in _PLAIN:
        return slot, method, argument
    return slot, method, Pickled(dumps(argument))


def unpack_call(packed: PackedCall) -> SlotCall:
    slot, method, argument = packed
    return SlotCall(slot, method, pickle.loads(argument.data) if type(argument) is Pickled else argument)


def pack_outcome(outcome: SlotOutcome) -> bytes:
    """Serialize an outcome to bytes. Raises the pickling error if the value cannot be pickled."""
    slot, value, error, position, interrupted = outcome
    is_step = type(value) is Step
    # Pickling a named tuple takes four times as long as pickling a plain tuple.
    plain = tuple(value) if is_step else value
    packed_error = error if error is None else to_picklable(error)
    return _SLOT.pack(slot) + dumps((is_step, plain, packed_error, position, interrupted))


def pack_report(report: BuildReport) -> bytes:
    return _REPORT + pickle.dumps(report, protocol=5)


def unpack_messages(messages: Iterable[bytes]) -> tuple[list[SlotOutcome], BuildReport | None]:
    """Unpack the messages of a worker.

    Returns:
        The outcomes, and the last BuildReport or None. If an outcome cannot be unpickled, its error is EnvFailed.
    """
    outcomes: list[SlotOutcome] = []
    report: BuildReport | None = None
    for message in messages:
        slot = _SLOT.unpack_from(message)[0]
        if slot < 0:
            report = pickle.loads(message[_SLOT.size :]) if message.startswith(_REPORT) else report
            continue
        try:
            is_step, value, error, position, interrupted = pickle.loads(memoryview(message)[_SLOT.size :])
            outcomes.append(SlotOutcome(slot, Step(*value) if is_step else value, error, position, interrupted))
        except Exception as e:  # custom unpickling code may raise any exception
            why = f"slot {slot}: the result cannot be unpickled here: {describe_error(e)}"
            outcomes.append(SlotOutcome(slot, None, EnvFailed(why)))
    return outcomes, report


class SlotRunner:
    """Builds the environments of a WorkerSpec and runs their calls. Time limits require the main thread.

    Args:
        spec: the slots and how to run them.
        report_alive: called when a call exceeds its time limit and is interrupted. Not called again if closing,
            rebuilding or resetting the environment afterwards also exceeds the limit, so that the parent process kills
            the worker within about twice the limit.

    Raises:
        BadValue: the factories cannot be unpickled in this process.
        Exception: any exception that a factory raises.
    """

    def __init__(self, spec: WorkerSpec, report_alive: Callable[[], None] = lambda: None) -> None:
        self._timer = CallTimer(spec.settings.timeout, report_alive)
        try:
            factories = pickle.loads(spec.factories)
        except Exception as e:
            raise BadValue(
                f"a worker cannot load the environments of slots {list(spec.slots)}: {describe_error(e)}; "
                "define them in a module that it can import"
            ) from e
        own = {number: factories[number] for number in spec.slots}
        self.slots = build_slots(own, spec.settings)
        for number, (why, position) in spec.lost.items():
            self.slots[number].mark_lost(why, position)

    def metadata(self) -> dict[int, SlotMetadata]:
        return {number: slot.metadata for number, slot in self.slots.items()}

    def run(self, packed: PackedCall) -> bytes:
        """Run a packed call and return the packed outcome. Pickling errors are returned as the error of the outcome."""
        number, method, _ = packed
        try:
            call = unpack_call(packed)
        except Exception as e:
            why = f"slot {number}: the argument of {method} cannot be unpickled: {describe_error(e)}"
            return pack_outcome(SlotOutcome(number, None, BadAction(why)))
        outcome = self.perform(call)
        try:
            return pack_outcome(outcome)
        except Exception as e:
            why = f"the result of {method} cannot be pickled: {describe_error(e)}"
            slot = self.slots[number]
            slot.mark_lost(why, None)
            return pack_outcome(SlotOutcome(number, None, EnvFailed(f"{slot.name}: {why}")))

    def perform(self, call: SlotCall) -> SlotOutcome:
        """Run Slot.perform with the time limit. After a timeout, run Slot.abandon with the same limit."""
        slot = self.slots[call.slot]
        self._timer.begin()
        try:
            return self._timer.limit(slot.perform, call)
        except CallTimeout as e:  # raised outside of step() and reset(), for example in get_state() or while rebuilding
            why = str(e)
        try:
            return self._timer.limit(slot.abandon, call, why)
        except CallTimeout:
            slot.mark_lost(why, None)
            why = f"{slot.name} failed and hung again while it was rebuilt: {why}"
            return SlotOutcome(call.slot, None, EnvFailed(why))


def build(spec: WorkerSpec, report_alive: Callable[[], None] = lambda: None) -> tuple[SlotRunner | None, BuildReport]:
    """Build the environments of a WorkerSpec. Does not raise.

    Returns:
        A SlotRunner and a report with metadata. If building failed: None and a report with the error.
    """
    try:
        runner = SlotRunner(spec, report_alive)
        return runner, BuildReport(runner.metadata())
    except BaseException as e:  # including SystemExit
        return None, BuildReport(None, dumps(to_picklable(e)), traceback.format_exc())


class CallTimer:
    """Limits the duration of calls: raises CallTimeout in a call when the limit expires.

    If the call continues, CallTimeout is raised again each time that the limit expires again. There is no limit if the
    timer is created in another thread than the main thread.

    Args:
        seconds: the time limit. None sets no limit.
        report_alive: called when the limit expires for the first time after begin().
    """

    def __init__(self, seconds: float | None, report_alive: Callable[[], None]) -> None:
        self.seconds = seconds if threading.current_thread() is threading.main_thread() else None
        self._report_alive = report_alive
        self._armed = False
        self._expirations = 0

    def begin(self) -> None:
        """Begin a new call, which may run several functions with the limit."""
        self._expirations = 0

    def limit(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call the function and return its result. Raises CallTimeout if the time limit expired first."""
        if self.seconds is None:
            return function(*args)
        results: list[Result] = []
        try:
            try:
                self._arm(self.seconds)
                results.append(function(*args))
            finally:
                self._disarm()
        except CallTimeout:  # may be raised in _disarm() after the function has returned
            self._disarm()
            if not results:
                raise
        return results[0]

    def _arm(self, seconds: float) -> None:
        signal.signal(signal.SIGALRM, self._expire)  # for each call, because an environment may set its own handler
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    def _disarm(self) -> None:
        self._armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _expire(self, signum: int, frame: FrameType | None) -> None:
        if not self._armed:  # the timer expired while it was being disarmed
            return
        self._expirations += 1
        if self._expirations == 1:
            self._report_alive()
        raise CallTimeout(f"timed out after {self.seconds:g} s")


class OutcomeSender:
    """Sends messages on a background thread, so that a long call does not delay the outcomes of earlier calls.

    All queued messages are sent in one write.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._messages: deque[bytes] = deque()
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # held while sending, so that the messages stay in order
        threading.Thread(target=self._send_all, daemon=True).start()

    def put(self, message: bytes) -> None:
        """Queue a message. Safe in a signal handler."""
        self._messages.append(message)
        self._wakeups.put(None)

    def flush(self) -> None:
        """Send the queued messages in this thread if sending cannot block.

        This is faster than waking up the background thread. If sending might block, the background thread sends them.
        """
        if self._lock.acquire(blocking=False):
            try:
                if sum(map(len, self._messages)) <= FLUSH_BYTES:
                    self._send()
            finally:
                self._lock.release()

    def _send(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._wakeups.get_nowait()
        messages = [self._messages.popleft() for _ in range(len(self._messages))]
        if messages:
            with suppress(OSError):  # the parent process has closed the connection
                self._channel.send_bytes(messages)

    def _send_all(self) -> None:
        while True:
            self._wakeups.get()
            with self._lock:
                self._send()


def main(channel: Channel) -> None:
    """Run a worker process: receive a WorkerSpec, send a BuildReport, then run batches of calls.

    Returns when the parent closes the connection, or after SIGTERM.
    """
    closing = threading.Event()
    signal.signal(signal.SIGTERM, lambda signum, frame: closing.set())
    sys.setswitchinterval(0.001)  # seconds after which a call in Python code lets the sender thread run
    sender = OutcomeSender(channel)
    try:
        spec = channel.receive()
    except (EOFError, ConnectionError):  # the parent has closed the connection
        return
    runner, report = build(spec, lambda: sender.put(_ALIVE))
    channel.send_bytes([pack_report(report)])
    if runner is not None:
        try:
            _run_batches(channel, runner, sender, closing)
        finally:
            close_slots(runner.slots.values())


def _run_batches(channel: Channel, runner: SlotRunner, sender: OutcomeSender, closing: threading.Event) -> None:
    while True:
        try:
            batch: list[PackedCall] = channel.receive()
        except (EOFError, ConnectionError):
            return
        for packed in batch:
            if closing.is_set():
                return
            sender.put(runner.run(packed))
        sender.flush()
