"""What a driver of tests and its host say to each other, one message of a SOCK_SEQPACKET socket at a time."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import NamedTuple

CHANNEL, SOURCE = 3, 4  # the socket and the program, among a driver's descriptors
ARGUMENTS, VALUE = 3, 4  # among those of a test that calls a function, after its standard streams
TEST_FDS = 5  # at most
OVERSUBSCRIPTION = 3  # tests at most that share a processor, as long as they are quick
MAX_STARTS = 30  # in one message: a driver may hold 256 descriptors
MESSAGE_BYTES = 1 << 16

COMPILED, COMPILE_FAILED = b"compiled", b"broken"  # the driver's first message
CLEANUP_FAILED = 75  # exit code of a driver that could not clear away what a test left

_REPORT = struct.Struct("=ii?ddqi")
_ERROR_BYTES = 256


class DriverCommand(NamedTuple):
    """From the host: start tests, whose descriptors come along, as many for each; or stop them."""

    start: bool
    numbers: Sequence[int]

    def packed(self) -> bytes:
        return array("i", [self.start, *self.numbers]).tobytes()

    @classmethod
    def of(cls, message: bytes) -> DriverCommand:
        start, *numbers = array("i", message)
        return cls(bool(start), numbers)


class RunReport(NamedTuple):
    """From the driver: a test is over.

    code: the exit code, or a signal's number negated. timed_out: whether it was stopped at its time limit. wall_s: by a
    FairClock. setup_error: why it could not be begun, or nothing.
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
        """Those that were sent together."""
        found, end = [], 0
        while end < len(message):
            number, code, timed_out, wall_s, cpu_s, peak, size = _REPORT.unpack_from(message, end)
            start = end + _REPORT.size
            end = start + size
            found.append(cls(number, code, timed_out, wall_s, cpu_s, peak, message[start:end]))
        return found
