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
    """One run: which entry of the server is called, and Limits without what the host itself watches."""

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
    """What a server is told when it starts, as JSON.

    Args:
        level: "ns", "lsm" or "basic".
        modules: imported before the first fork; those that are not installed are left out.
        readable: folders of the interpreter and its libraries.
        hidden: a folder that may lie in one of them, and that programs must not read.
        path: the programs' PATH.
        folder: where working directories are made, at the levels without namespaces.
        network: whether programs may reach any.
    """

    level: str
    modules: list[str]
    readable: list[str]
    hidden: str
    path: str
    folder: str
    network: bool


def job_file(options: Mapping[str, Any], files: Mapping[str, bytes]) -> int:
    """A descriptor of what the child alone reads: its options and the files to be laid out. Plain data only."""
    return in_memory(marshal.dumps((dict(options), dict(files))))


def read_job(fd: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    with open(fd, "rb", closefd=False) as file:
        options, files = marshal.loads(file.read())
    return options, files


def in_memory(data: bytes) -> int:
    """A descriptor from which data can be read, and which is in no folder. On Linux nobody can write to it."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    if sys.platform == "linux":
        fd = os.memfd_create("gem", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        import tempfile  # what it imports would be in every fork

        with tempfile.TemporaryFile(buffering=0) as file:
            fd = os.dup(file.fileno())
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return fd
