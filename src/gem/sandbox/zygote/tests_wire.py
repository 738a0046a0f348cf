"""What a driver of tests and its host say to each other, one message of a SOCK_SEQPACKET socket at a time."""

from __future__ import annotations

import struct
from typing import NamedTuple

CHANNEL, SOURCE = 3, 4  # the socket and the program, among a driver's descriptors
ARGUMENTS, VALUE = 3, 4  # among those of a test that calls a function, after its standard streams
TEST_FDS = 5  # at most
MESSAGE_BYTES = 4096

COMPILED, BROKEN = b"compiled", b"broken"  # the driver's first message
UNCLEAN = 75  # exit code of a driver that could not clear away what a test left

_ORDER = struct.Struct("=?i")
_REPORT = struct.Struct("=ii?ddq")


class Order(NamedTuple):
    """From the host: start a test, whose descriptors come along, or stop it."""

    start: bool
    number: int

    def packed(self) -> bytes:
        return _ORDER.pack(*self)

    @classmethod
    def of(cls, message: bytes) -> Order:
        return cls(*_ORDER.unpack(message))


class Report(NamedTuple):
    """From the driver: a test is over.

    code: the exit code, or a signal's number negated. overdue: whether it was stopped at its time limit. trouble: why
    it could not be begun, or nothing.
    """

    number: int
    code: int
    overdue: bool
    wall_s: float
    cpu_s: float
    max_rss_bytes: int
    trouble: bytes = b""

    def packed(self) -> bytes:
        return _REPORT.pack(*self[:-1]) + self.trouble

    @classmethod
    def of(cls, message: bytes) -> Report:
        return cls._make((*_REPORT.unpack_from(message), message[_REPORT.size :]))
