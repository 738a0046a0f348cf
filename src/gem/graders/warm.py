"""The process that grading workers are forked from: libraries are loaded once, and a worker starts in milliseconds.

Run as ``python -m gem.graders.warm FD MODULE …``. On the socket FD each message carries one end of a socket pair; a
forked worker serves calls on it until the other end closes. Single-threaded, so that forking is safe.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import resource
import signal
import socket
import sys
from typing import Any

from gem._internal.framing import Channel, to_picklable

PR_SET_PDEATHSIG = 1  # linux/prctl.h
MEMORY_BYTES = 3 << 30  # of address space, per worker: sympy alone maps a few hundred MiB


def main(fd: int, modules: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps dead workers
    for module in modules:
        importlib.import_module(module)
    with socket.socket(fileno=fd) as control:
        control.send(b"ready")
        while True:
            _, ends, _, _ = socket.recv_fds(control, 1, 1)
            if not ends:
                return  # the parent has gone
            if os.fork() == 0:
                control.close()
                _serve(socket.socket(fileno=ends[0]))
                os._exit(0)
            os.close(ends[0])


def _serve(sock: socket.socket) -> None:
    if sys.platform == "linux":  # elsewhere a worker that is busy when its parent dies goes on to the end of that call
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(ValueError, OSError):  # where a lower limit holds already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    channel = Channel(sock)
    with contextlib.suppress(EOFError, OSError):
        channel.send(os.getpid())
        while True:
            name, arguments = channel.receive()
            channel.send(_call(name, arguments))


def _call(name: str, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    module, _, function = name.partition(":")
    try:
        return getattr(importlib.import_module(module), function)(*arguments), None
    except (Exception, SystemExit) as e:  # a grader's own bug, or memory used up: the caller is told
        return None, to_picklable(e)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
