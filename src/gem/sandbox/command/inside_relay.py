"""Relay data between the host and a program in a child process. Used by inside.py for function calls and sessions.

The relay sends JSON lines to the host that contain the output, the answers and the exit code of the program. The
program cannot write to the host directly, so it cannot forge these messages.
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
CHANNEL = 3  # index of the socket in the ``fds`` of a program


def relay(job: Mapping[str, Any]) -> None:
    """Run ``module.run(options, fds)`` in a child process and relay its streams and its socket until it ends."""
    # The child could write to the host through /proc/<parent>/fd (20_forged_messages, 50_write_into_others_pipes).
    set_dumpable(0)
    ours, theirs = socket.socketpair()
    out, err, died = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        redirect_streams(base64.b64decode(job["stdin"]), out[1], err[1])
        for fd in (*out, *err, *died, ours.detach()):  # by these, too, it could forge messages of the relay
            os.close(fd)
        set_dumpable(1)  # as without a sandbox: it can open /dev/stdin and look at itself
        importlib.import_module(job["relay"]).run(job["options"], (0, 1, 2, theirs.detach()))
        os._exit(0)
    for fd in (out[1], err[1], theirs.detach()):
        os.close(fd)
    Relay(child, ours, {out[0]: "stdout", err[0]: "stderr"}, died).run()


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run the program in options["source"], call its function, and send the exit code and the return value.

    The answer is one JSON line on the socket fds[CHANNEL].

    Args:
        options: "source" (base64), "function" (a name), "arguments" (JSON text of a list), "value_bytes" (maximum
            size of the return value) and "any_sequence" (see Case).
        fds: descriptors of stdin, stdout, stderr and the socket.
    """
    program: Any = sys.modules["program"]
    values: Any = sys.modules["values"]
    answer: dict[str, Any] = {"exit_code": 1}

    def call() -> None:
        try:
            module = program.new_function_module()
            program.run_in(module, code)
            value = program.find_function(module, options["function"])(*json.loads(options["arguments"]))
            limits = options["value_bytes"], options["any_sequence"]
            answer["value"] = values.encode_returned(value, options["function"], *limits)
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
        """Relay until the child process ends or the host closes stdin, then kill the child process."""
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

    # A handler reads one descriptor. It returns b"" if the descriptor has no more data to read.

    def watch_child(self) -> None:
        """Arrange that a byte is written to ``died`` whenever a child process ends.

        The end of the other descriptors does not show this, because descendants of the child may hold them open.
        """
        os.set_blocking(self.died[1], False)
        signal.set_wakeup_fd(self.died[1])
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.write(self.died[1], b"0")  # makes report_exit() check once now, because the child may have ended already

    def forward_input(self) -> bytes:
        """Forward a message of the host to the interpreter of a session. An empty message interrupts the cell."""
        size = read(4)
        message = size + read(int.from_bytes(size, "big"))
        self.control.setblocking(True)
        with contextlib.suppress(OSError):  # the child has ended; report_exit() handles this
            self.control.sendall(message)
            if message == bytes(4):
                os.killpg(self.child, signal.SIGINT)
        self.control.setblocking(False)
        return message

    def forward_output(self, fd: int) -> bytes | None:
        """Forward and return a chunk of output. Returns None if no output is available yet, b"" at the end."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return None
        self.send(self.outputs[fd], data)
        return data

    def forward_answers(self) -> bytes | None:
        """Forward answers of the program, preceded by the output that it has written so far.

        Returns None if no answer is available yet, b"" if the socket is closed.
        """
        try:
            data = self.control.recv(CHUNK)
        except BlockingIOError:
            return None
        except OSError:  # the child ended without reading all of its input
            return b""
        self.forward_remaining_output()
        self.send("answer", data)
        return data

    def report_exit(self) -> bytes | None:
        """If the child process has ended, send its exit code as the last message and return b""; else return None."""
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


def read(size: int) -> bytes:
    """Read ``size`` bytes from the host, or fewer if it has closed stdin."""
    parts = []
    while size and (part := os.read(0, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def set_dumpable(value: int) -> None:
    with contextlib.suppress(ImportError, OSError, AttributeError):  # not Linux: no /proc to protect
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, value, 0, 0, 0)
