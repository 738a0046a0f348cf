"""Runs a program in a child process and relays between it and the host. Loaded by inside.py for calls and sessions.

The relay sends the host lines of JSON with the program's output, its answers and how it ended. The program cannot write
to the host directly, so it cannot forge these messages.
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
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

PR_SET_DUMPABLE = 4
CHUNK = 32768  # bytes of output per message
CHANNEL = 3  # index of the socket among the descriptors of a program


def relay(job: Mapping[str, Any]) -> None:
    """Run ``module.run(options, fds)`` in a child, with standard streams and a socket, and relay until it ends."""
    set_dumpable(0)  # or the child could write to the host through /proc/<parent>/fd
    ours, theirs = socket.socketpair()
    out, err, died = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        redirect_streams(base64.b64decode(job["stdin"]), out[1], err[1])
        for fd in (*out, *err, *died, ours.detach()):
            os.close(fd)
        set_dumpable(1)
        importlib.import_module(job["relay"]).run(job["options"], (0, 1, 2, theirs.detach()))
        os._exit(0)
    for fd in (out[1], err[1], theirs.detach()):
        os.close(fd)
    Relay(child, ours, {out[0]: "stdout", err[0]: "stderr"}, died).run()


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Call options["function"] of options["source"]; answer with its exit code and its value."""
    program: Any = sys.modules["program"]
    values: Any = sys.modules["values"]
    answer: dict[str, Any] = {"exit_code": 1}

    def call() -> None:
        try:
            module = program.new_module("program")
            program.run_in(module, code)
            value = program.find_function(module, options["function"])(*json.loads(options["arguments"]))
            answer["value"] = values.encode(value)
        except MemoryError:
            answer["out_of_memory"] = True
            raise

    program.open_streams(unbuffered=True)
    code = program.compiled(base64.b64decode(options["source"]))
    if code is not None:
        answer["exit_code"] = program.execute(call)
    with socket.socket(fileno=fds[CHANNEL]) as channel:
        channel.sendall(json.dumps(answer).encode() + b"\n")
    os._exit(0)


def redirect_streams(stdin: bytes, out: int, err: int) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)


class Relay:
    """Relays between the host (descriptors 0 and 1) and a child process."""

    def __init__(self, child: int, control: socket.socket, outputs: Mapping[int, str], died: tuple[int, int]) -> None:
        self.child, self.control, self.outputs, self.died = child, control, outputs, died

    def run(self) -> None:
        """Relay until the child ends or the host hangs up."""
        self.watch_child()
        handlers: dict[int, Callable[[], bytes | None]] = {
            0: self.forward_input,
            self.control.fileno(): self.forward_answers,
            self.died[0]: self.report_exit,
        }
        handlers.update({fd: functools.partial(self.forward_output, fd) for fd in self.outputs})
        selector = selectors.DefaultSelector()
        for fd in handlers:
            os.set_blocking(fd, fd == 0)
            selector.register(fd, selectors.EVENT_READ)
        while self.died[0] in selector.get_map() and 0 in selector.get_map():
            for key, _ in selector.select():
                if handlers[key.fd]() == b"":
                    selector.unregister(key.fd)
        with contextlib.suppress(OSError):
            os.kill(self.child, signal.SIGKILL)

    # Each handler serves one descriptor and returns b"" at its end.

    def watch_child(self) -> None:
        """Write a byte to ``died`` whenever a child ends; other descriptors may be held open by its descendants."""
        os.set_blocking(self.died[1], False)
        signal.set_wakeup_fd(self.died[1])
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.write(self.died[1], b"0")  # the child may have ended already

    def forward_input(self) -> bytes:
        data = os.read(0, CHUNK)
        self.control.setblocking(True)
        with contextlib.suppress(OSError):  # the child has ended, which is reported separately
            self.control.sendall(data)
        self.control.setblocking(False)
        return data

    def forward_output(self, fd: int) -> bytes | None:
        """Forward a chunk of output; returns it, or None if there is nothing to read."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return None
        self.send(self.outputs[fd], data)
        return data

    def forward_answers(self) -> bytes | None:
        """Forward answers, after the output that was written before them."""
        try:
            data = self.control.recv(CHUNK)
        except BlockingIOError:
            return None
        except OSError:  # the child died with unread input
            return b""
        self.forward_remaining_output()
        self.send("answer", data)
        return data

    def report_exit(self) -> bytes | None:
        """Send the exit code of the child as the last message."""
        os.read(self.died[0], 64)
        pid, status = os.waitpid(self.child, os.WNOHANG)
        if pid == 0:
            return None
        while self.forward_answers():
            pass
        self.forward_remaining_output()
        self.send("exit_code", str(os.waitstatus_to_exitcode(status)).encode())
        return b""

    def forward_remaining_output(self) -> None:
        for fd in self.outputs:
            while self.forward_output(fd):
                pass

    def send(self, name: str, data: bytes) -> None:
        line = json.dumps({name: base64.b64encode(data).decode()}).encode() + b"\n"
        while data and line:
            line = line[os.write(1, line) :]


def set_dumpable(value: int) -> None:
    with contextlib.suppress(ImportError, OSError, AttributeError):  # not Linux: there is no /proc to protect
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, value, 0, 0, 0)
