"""Messages between the host and a test driver, over a SOCK_SEQPACKET socket."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import NamedTuple

CHANNEL, SOURCE = 3, 4  # indices of a driver's descriptors: the socket and the program
ARGUMENTS, VALUE = 3, 4  # further descriptors of a test that calls a function
TEST_FDS = 5  # maximum number of descriptors per test
OVERSUBSCRIPTION = 3  # maximum number of quick tests per processor
MAX_STARTS = 30  # maximum number of tests per message; a driver can hold 256 descriptors
MESSAGE_BYTES = 1 << 16

COMPILED, COMPILE_FAILED = b"compiled", b"broken"  # the driver's first message
CLEANUP_FAILED = 75  # exit code of a driver that could not remove the processes or files of a test

_REPORT = struct.Struct("=ii?ddqi")
_ERROR_BYTES = 256


class DriverCommand(NamedTuple):
    """A message from the host: start tests (their descriptors are attached to the message) or stop tests."""

    start: bool
    numbers: Sequence[int]

    def packed(self) -> bytes:
        return array("i", [self.start, *self.numbers]).tobytes()

    @classmethod
    def of(cls, message: bytes) -> DriverCommand:
        start, *numbers = array("i", message)
        return cls(bool(start), numbers)


class RunReport(NamedTuple):
    """A message from the driver: a test has ended.

    Args:
        code: exit code, or the negative signal number.
        timed_out: whether the test reached its time limit.
        wall_s: seconds measured by FairClock.
        setup_error: reason why the test could not be started; empty if it was started.
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
