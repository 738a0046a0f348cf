"""The protocol between the host and a fork server, and the format in which a job reaches a child.

For each run the host sends a RunRequest over the control socket, with descriptors: a socket for this run, the job, and
those that the child inherits. Over the socket of the run the server sends lines of JSON: ``{"started": true}`` before
it forks, then ``{"ended": …}`` with how the run ended, or ``{"failed": …}`` if it could not be set up. The host kills a
run by sending the reason, or by closing the socket.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import socket
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_FDS = 64
CONTROL = socket.SOCK_SEQPACKET if sys.platform.startswith("linux") else socket.SOCK_STREAM
_REQUEST = struct.Struct("=16sdqqq")


@dataclass(frozen=True)
class RunRequest:
    """A run: the entry of the server to call, and the limits that the server enforces."""

    entry: str
    cpu_s: float
    memory_bytes: int
    processes: int
    disk_bytes: int

    def packed(self) -> bytes:
        return _REQUEST.pack(self.entry.encode(), self.cpu_s, self.memory_bytes, self.processes, self.disk_bytes)

    @classmethod
    def of(cls, data: bytes) -> RunRequest:
        entry, *limits = _REQUEST.unpack(data)
        return cls(entry.rstrip(b"\0").decode(), *limits)


REQUEST_BYTES = _REQUEST.size


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a fork server, passed to it as JSON.

    Args:
        level: "ns", "lsm" or "basic".
        modules: imported before the first fork, if installed.
        readable: folders of the interpreter and its libraries.
        hidden: a folder that programs must not read, possibly inside a readable one.
        path: PATH of the programs.
        folder: parent of the working directories, at the levels without namespaces.
        network: whether programs have network access.
    """

    level: str
    modules: list[str]
    readable: list[str]
    hidden: str
    path: str
    folder: str
    network: bool


def job_file(options: Mapping[str, Any], files: Mapping[str, bytes]) -> int:
    """A descriptor from which the child reads its options and files. Only plain data."""
    return in_memory(marshal.dumps((dict(options), dict(files))))


def read_job(fd: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    with open(fd, "rb", closefd=False) as file:
        options, files = marshal.loads(file.read())
    return options, files


def in_memory(data: bytes) -> int:
    """A readable descriptor of an anonymous file with this data. On Linux it is sealed against writing."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    if sys.platform == "linux":
        fd = os.memfd_create("gem", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        import tempfile  # imported late: its imports would be part of every fork

        with tempfile.TemporaryFile(buffering=0) as file:
            fd = os.dup(file.fileno())
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return fd
