"""The interpreter of a session: runs one cell after another, and keeps their variables.

The host sends cells over a socket and is told how each ended. It interrupts a cell by sending anything more: while a
cell runs, the kernel turns what arrives on that socket into SIGINT. What a cell does to its streams, and to the handler
of SIGINT, is undone before the next one.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import fcntl
import io
import json
import linecache
import os
import resource
import select
import signal
import socket
import struct
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from gem.sandbox.zygote import program

CHANNEL = 3  # the place of the socket among the descriptors of a launch
FIRST_OWN_FD = 64  # above what a cell is likely to touch
LENGTH = struct.Struct(">I")  # precedes each message of the host; an answer is a line


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Serve cells until the host hangs up. Of the four descriptors the last is the socket."""
    exit_code = 1
    try:
        CellInterpreter(fds[CHANNEL]).serve()
        exit_code = 0
    finally:
        os._exit(exit_code)


class CellInterpreter:
    """One namespace, in which cells run.

    channel: a stream socket to the host.
    """

    def __init__(self, channel: int) -> None:
        self.pid = os.getpid()
        self.kept = [_moved(fd) for fd in (0, 1, 2)]  # a cell may close those that it uses
        self.channel = socket.socket(fileno=_moved(channel))
        os.close(channel)
        if os.getpgrp() != self.pid:
            os.setpgid(0, 0)
        fcntl.fcntl(self.channel, fcntl.F_SETSIG, signal.SIGINT)
        # The group, where there is one of its own: commands that a cell waits for are meant, too.
        fcntl.fcntl(self.channel, fcntl.F_SETOWN, -self.pid if os.getpgrp() == self.pid else self.pid)
        self.flags = fcntl.fcntl(self.channel, fcntl.F_GETFL)
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        sys.path.insert(0, os.getcwd())
        program.reseed_random()
        self.variables = module.__dict__

    def serve(self) -> None:
        self._disable_interrupts()
        while (message := self._receive()) is not None:
            if "code" in message:  # or it is an interrupt that came too late
                self._send(self._answer(message["code"], message["name"]))

    def _answer(self, code: str, name: str) -> dict[str, Any]:
        """Run a cell, and say what the host cannot see: its exit code, CPU seconds, and whether memory ran out."""
        self._restore_streams()
        before = _cpu_seconds()
        ending: BaseException | None = None
        exit_code = 1
        try:
            self._enable_interrupts()
            ending = _execute(code, name, self.variables)
            exit_code = _exit_code(ending)
        except BaseException as e:  # it came while an error was shown
            ending = e
        self._disable_interrupts()
        if os.getpid() != self.pid:  # the cell forked, and this is its child
            os._exit(exit_code)
        out_of_memory = isinstance(ending, MemoryError)
        return {"exit_code": exit_code, "cpu_s": _cpu_seconds() - before, "out_of_memory": out_of_memory}

    def _restore_streams(self) -> None:
        for fd, kept in enumerate(self.kept):
            os.dup2(kept, fd)
        raw = io.FileIO(0, closefd=False)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8", errors="replace")
        sys.stdout = program.unbuffered_writer(1, "replace")
        sys.stderr = program.unbuffered_writer(2, "backslashreplace")
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]

    def _enable_interrupts(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        fcntl.fcntl(self.channel, fcntl.F_SETFL, self.flags | os.O_ASYNC)
        if select.select([self.channel], [], [], 0)[0]:  # the host's patience was over before this
            signal.raise_signal(signal.SIGINT)

    def _disable_interrupts(self) -> None:
        while True:
            try:
                fcntl.fcntl(self.channel, fcntl.F_SETFL, self.flags)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                return
            except KeyboardInterrupt:
                continue

    def _receive(self) -> Any:
        """The next message; None when the host has hung up."""
        size = self._read(LENGTH.size)
        return json.loads(self._read(LENGTH.unpack(size)[0])) if size else None

    def _read(self, size: int) -> bytes:
        parts = []
        while size and (part := self.channel.recv(min(size, 1 << 20))):
            parts.append(part)
            size -= len(part)
        return b"" if size else b"".join(parts)

    def _send(self, message: dict[str, Any]) -> None:
        self.channel.sendall(json.dumps(message).encode() + b"\n")


def _execute(code: str, name: str, variables: dict[str, Any]) -> BaseException | None:
    """Run a cell and show what it raised; returns that."""
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    raised: BaseException | None = None
    try:
        _execute_as_notebook(code, name, variables)
    except BaseException as e:
        raised = e
        _show(e)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the cell may have put anything in its place
            stream.flush()
    return raised


def _execute_as_notebook(code: str, name: str, variables: dict[str, Any]) -> None:
    """Run the statements; a last expression is shown by sys.displayhook."""
    tree: Any = compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)  # ast.parse would be in tracebacks
    last = tree.body[-1:]
    if last and isinstance(last[0], ast.Expr):
        del tree.body[-1]
        shown = compile(ast.Interactive(last), name, "single", dont_inherit=True)
        exec(compile(tree, name, "exec", dont_inherit=True), variables)
        exec(shown, variables)
    else:
        exec(compile(tree, name, "exec", dont_inherit=True), variables)


def _show(error: BaseException) -> None:
    """Print a traceback without the frames of this file; of SystemExit, its message if there is one."""
    if isinstance(error, SystemExit):
        if not isinstance(error.code, (int, type(None))):
            print(error.code, file=sys.stderr)
        return
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _exit_code(ending: BaseException | None) -> int:
    if isinstance(ending, SystemExit):
        return ending.code & 0xFF if isinstance(ending.code, int) else int(ending.code is not None)
    return int(ending is not None)


def _moved(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN_FD)


def _cpu_seconds() -> float:
    """Of this process and of those children that it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
