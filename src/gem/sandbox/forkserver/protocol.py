"""The protocol between the host and a fork server, and the format of the job that a child reads.

For each run, the host sends a RunRequest over the control socket. The attached descriptors are a socket for this run,
the job file, and the descriptors that the child inherits. The server sends JSON lines over the socket of the run:
``{"started": true}`` before the fork, then ``{"ended": …}`` with the exit status, or ``{"failed": …}`` if the run could
not be set up. The host sends words over this socket, each followed by a newline:

- ``kill <status>``: kill the run, for this reason. Closing the socket kills it without a reason.
- ``busy <seconds>``: a cell of a session starts and may use this much CPU time. If it uses more, the server sends
  ``{"exceeded": n}`` in the n-th cell.
- ``idle``: the cell has ended. Every process of the run is stopped IDLE_S later, unless the next cell starts earlier.
- ``interrupt``: send SIGINT to the process group of the run. The server answers ``{"done": "interrupt"}``.
- ``kill-children``: kill every process of the run except its first one. The server answers as to ``interrupt``.
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
IDLE_S = 0.05
CONTROL = socket.SOCK_SEQPACKET if sys.platform.startswith("linux") else socket.SOCK_STREAM
_REQUEST = struct.Struct("=16sdqqq")


@dataclass(frozen=True)
class RunRequest:
    """A request for a run: a key of ``server.ENTRIES`` and the limits of the run."""

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
        modules: names of modules to import before the first fork. Modules that are not installed are skipped.
        readable: folders of the interpreter and its libraries.
        hidden: a folder that programs must not read, even if it is inside a readable folder.
        path: value of PATH for programs.
        folder: folder in which working directories are created; not used at level "ns".
        network: whether programs have network access.
        cgroups: whether to use cgroups where they can be made.
    """

    level: str
    modules: list[str]
    readable: list[str]
    hidden: str
    path: str
    folder: str
    network: bool
    cgroups: bool


def job_file(options: Mapping[str, Any], files: Mapping[str, bytes]) -> int:
    """Return the descriptor of a file with the options and files of a run, encoded with marshal."""
    return in_memory(marshal.dumps((dict(options), dict(files))))


def read_job(fd: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    with open(fd, "rb", closefd=False) as file:
        options, files = marshal.loads(file.read())
    return options, files


def in_memory(data: bytes) -> int:
    """Return the descriptor of an anonymous file that contains ``data``. On Linux, the file is sealed against writing.

    If ``data`` is empty, the descriptor refers to /dev/null.
    """
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    if sys.platform == "linux":
        fd = os.memfd_create("gem", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        import tempfile  # imported here, because its imports would increase the cost of every fork

        with tempfile.TemporaryFile(buffering=0) as file:
            fd = os.dup(file.fileno())
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return fd
