"""What stands between the host and a program that answers it: functions and sessions of sandboxes that start commands.

A child runs the program. Its parent, the relay, tells the host by lines of JSON what the child writes, what it answers
and how it ended, and no program can speak for it. This file is sent along with a job, and loaded by inside.py.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib
import json
import os
import selectors
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

PR_SET_DUMPABLE = 4
PIECE = 32768  # bytes told at once


def relay(job: Mapping[str, Any]) -> None:
    """Run ``module.run(options, fds)`` in a child, as the fork server does: streams, and a socket to the host.

    Pass on what it writes, what it answers, and how it ended.
    """
    set_dumpable(0)  # or the child could write to the host through /proc/<parent>/fd
    ours, theirs = socket.socketpair()
    out, err, died = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        take_streams(base64.b64decode(job["stdin"]), out[1], err[1])
        for fd in (*out, *err, *died, ours.detach()):
            os.close(fd)
        set_dumpable(1)
        importlib.import_module(job["relay"]).run(job["options"], (0, 1, 2, theirs.detach()))
        os._exit(0)
    for fd in (out[1], err[1], theirs.detach()):
        os.close(fd)
    Relay(child, ours, {out[0]: "stdout", err[0]: "stderr"}, died).run()


def take_streams(stdin: bytes, out: int, err: int) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)


class Relay:
    """Between the host (descriptors 0 and 1) and a child."""

    def __init__(self, child: int, control: socket.socket, outputs: Mapping[int, str], died: tuple[int, int]) -> None:
        self.child, self.control, self.outputs, self.died = child, control, outputs, died

    def run(self) -> None:
        """Until the child dies or the host goes."""
        self.notice_death()
        serve: dict[int, Callable[[], bytes | None]] = {
            0: self.obey,
            self.control.fileno(): self.tell_answers,
            self.died[0]: self.tell_death,
        }
        serve.update({fd: functools.partial(self.tell_output, fd) for fd in self.outputs})
        selector = selectors.DefaultSelector()
        for fd in serve:
            os.set_blocking(fd, fd == 0)
            selector.register(fd, selectors.EVENT_READ)
        while self.died[0] in selector.get_map() and 0 in selector.get_map():
            for key, _ in selector.select():
                if serve[key.fd]() == b"":
                    selector.unregister(key.fd)
        with contextlib.suppress(OSError):
            os.kill(self.child, signal.SIGKILL)

    # Each of these serves one descriptor, and returns b"" at its end.

    def notice_death(self) -> None:
        """A byte arrives at died[0] for each child that ends: what it forked may hold all other descriptors."""
        os.set_blocking(self.died[1], False)
        signal.set_wakeup_fd(self.died[1])
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.write(self.died[1], b"0")  # it may be dead already

    def obey(self) -> bytes:
        """Pass on what the host sends."""
        data = os.read(0, PIECE)
        self.control.setblocking(True)
        with contextlib.suppress(OSError):  # the child is gone, which will be told
            self.control.sendall(data)
        self.control.setblocking(False)
        return data

    def tell_output(self, fd: int) -> bytes | None:
        """Pass on a piece of output. Returns it, or None where there is nothing yet."""
        try:
            data = os.read(fd, PIECE)
        except BlockingIOError:
            return None
        self.tell(self.outputs[fd], data)
        return data

    def tell_answers(self) -> bytes | None:
        """Pass on answers, after what was printed before them."""
        try:
            data = self.control.recv(PIECE)
        except BlockingIOError:
            return None
        except OSError:  # it died with something unread
            return b""
        self.tell_rest()
        self.tell("answer", data)
        return data

    def tell_death(self) -> bytes | None:
        """How the child ended is told last."""
        os.read(self.died[0], 64)
        pid, status = os.waitpid(self.child, os.WNOHANG)
        if pid == 0:
            return None
        while self.tell_answers():
            pass
        self.tell_rest()
        self.tell("gone", str(os.waitstatus_to_exitcode(status)).encode())
        return b""

    def tell_rest(self) -> None:
        for fd in self.outputs:
            while self.tell_output(fd):
                pass

    def tell(self, name: str, data: bytes) -> None:
        line = json.dumps({name: base64.b64encode(data).decode()}).encode() + b"\n"
        while data and line:
            line = line[os.write(1, line) :]


def set_dumpable(value: int) -> None:
    with contextlib.suppress(ImportError, OSError, AttributeError):  # not Linux, and no /proc to fear
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, value, 0, 0, 0)
