"""Messages between the host and a test driver, over a SOCK_SEQPACKET socket."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import NamedTuple

CHANNEL, SOURCE = 3, 4  # descriptors of a driver: the socket, the program
ARGUMENTS, VALUE = 3, 4  # descriptors of a test that calls a function, after its standard streams
TEST_FDS = 5  # descriptors per test, at most
OVERSUBSCRIPTION = 3  # tests that share a processor, at most, as long as they are quick
MAX_STARTS = 30  # tests started by one message; a driver can hold 256 descriptors
MESSAGE_BYTES = 1 << 16

COMPILED, COMPILE_FAILED = b"compiled", b"broken"  # the driver's first message
CLEANUP_FAILED = 75  # exit code of a driver that could not clear away what a test left

_REPORT = struct.Struct("=ii?ddqi")
_ERROR_BYTES = 256


class DriverCommand(NamedTuple):
    """From the host: start tests, whose descriptors are attached to the message, or stop them."""

    start: bool
    numbers: Sequence[int]

    def packed(self) -> bytes:
        return array("i", [self.start, *self.numbers]).tobytes()

    @classmethod
    def of(cls, message: bytes) -> DriverCommand:
        start, *numbers = array("i", message)
        return cls(bool(start), numbers)


class RunReport(NamedTuple):
    """From the driver: a test has ended.

    Args:
        code: exit code, or the negative signal number.
        timed_out: whether it was killed at its time limit.
        wall_s: seconds by FairClock.
        setup_error: why it could not be started; empty if it was.
    """

    number: int
    code: int
    timed_out: bool
    wall_s: float
    cpu_s: float
    max_rss_bytes: int
    setup_error: bytes = b""

    def packed(self) -> bytes:
        setup_error = self.setup_error[:_ERROR_BYTES]
        return _REPORT.pack(*self[:-1], len(setup_error)) + setup_error

    @classmethod
    def all_of(cls, message: bytes) -> list[RunReport]:
        """Decode all reports of a message."""
        found, end = [], 0
        while end < len(message):
            number, code, timed_out, wall_s, cpu_s, peak, size = _REPORT.unpack_from(message, end)
            start = end + _REPORT.size
            end = start + size
            found.append(cls(number, code, timed_out, wall_s, cpu_s, peak, message[start:end]))
        return found
