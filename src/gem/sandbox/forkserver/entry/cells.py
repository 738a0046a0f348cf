"""The interpreter of a session: runs cells one after another in the same namespace.

The host sends cells over a socket and receives an answer for each, and one before the first, when the interpreter is
ready. A cell is interrupted by SIGINT, which is ignored between cells, and by an empty message, in case the signal
arrives before the cell has started. The signal is sent before the next cell, so it never reaches a later cell. The
standard streams and the SIGINT handler are restored before each cell.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import json
import linecache
import os
import resource
import signal
import socket
import struct
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from gem.sandbox.forkserver.entry import program

CHANNEL = 3  # index of the socket among the descriptors
LENGTH = struct.Struct(">I")  # as in interpreter_session.py; this file runs without gem
INTERRUPT = LENGTH.pack(0)  # an empty message


def run(options: Mapping[str, Any], fds: Sequence[int]) -> NoReturn:
    """Run cells until the host closes its socket. The last of the four descriptors is the interpreter's socket."""
    exit_code = 1
    try:
        CellInterpreter(fds[CHANNEL]).serve()
        exit_code = 0
    finally:
        os._exit(exit_code)


class CellInterpreter:
    """Runs cells in one namespace.

    Args:
        channel: descriptor of a stream socket to the host.
    """

    def __init__(self, channel: int) -> None:
        self.pid = os.getpid()
        self.kept = [program.own_descriptor(fd) for fd in (0, 1, 2)]  # copies, because a cell can close its streams
        self.channel = socket.socket(fileno=program.own_descriptor(channel))
        os.close(channel)
        if os.getpgrp() != self.pid:  # the whole group is interrupted, to interrupt commands that a cell waits for
            os.setpgid(0, 0)
        module = types.ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        sys.path.insert(0, os.getcwd())
        program.reseed_random()
        self.variables = module.__dict__

    def serve(self) -> None:
        self._disable_interrupts()
        self._send(exit_code=0, cpu_s=0.0, out_of_memory=False)
        while (message := self._receive()) is not None:
            if message:  # otherwise the message is an interrupt that arrived after its cell had ended
                self._run(**json.loads(message))

    def _run(self, code: str, name: str) -> None:
        """Run a cell and send the fields of a CellAnswer."""
        self._restore_streams()
        before = _cpu_seconds()
        ending: BaseException | None = None
        exit_code = 1
        try:
            self._enable_interrupts()
            ending = _execute(code, name, self.variables)
            exit_code = _exit_code(ending)
        except BaseException as e:  # KeyboardInterrupt while a traceback was printed
            ending = e
        self._disable_interrupts()
        if os.getpid() != self.pid:  # a child forked by the cell must not answer in its place
            os._exit(exit_code)
        out_of_memory = isinstance(ending, MemoryError)
        self._send(exit_code=exit_code, cpu_s=_cpu_seconds() - before, out_of_memory=out_of_memory)

    def _restore_streams(self) -> None:
        for fd, kept in enumerate(self.kept):  # 48_closes_its_descriptors
            os.dup2(kept, fd)
        raw = io.FileIO(0, closefd=False)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8", errors="replace")
        sys.stdout = program.unbuffered_writer(1, "replace")
        sys.stderr = program.unbuffered_writer(2, "backslashreplace")
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]

    def _enable_interrupts(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.suppress(BlockingIOError):
            if self.channel.recv(LENGTH.size, socket.MSG_PEEK | socket.MSG_DONTWAIT) == INTERRUPT:
                signal.raise_signal(signal.SIGINT)

    def _disable_interrupts(self) -> None:
        while True:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                return
            except KeyboardInterrupt:
                continue

    def _receive(self) -> bytes | None:
        """Return the next message, or None if the host closed its socket."""
        size = self._read(LENGTH.size)
        return self._read(LENGTH.unpack(size)[0]) if size else None

    def _read(self, size: int) -> bytes:
        parts = []
        while size and (part := self.channel.recv(min(size, 1 << 20))):
            parts.append(part)
            size -= len(part)
        return b"" if size else b"".join(parts)

    def _send(self, **message: Any) -> None:
        self.channel.sendall(json.dumps(message).encode() + b"\n")


def _execute(code: str, name: str, variables: dict[str, Any]) -> BaseException | None:
    """Run a cell. If it raises, print the traceback and return the exception; otherwise return None."""
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    raised: BaseException | None = None
    try:
        _execute_as_notebook(code, name, variables)
    except BaseException as e:
        raised = e
        _show(e)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the cell may have replaced the stream
            stream.flush()
    return raised


def _execute_as_notebook(code: str, name: str, variables: dict[str, Any]) -> None:
    """Run the statements of a cell. If the last one is an expression, pass its value to sys.displayhook."""
    # Not ast.parse(), which would add a frame to tracebacks.
    tree: Any = compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body[-1:]
    if last and isinstance(last[0], ast.Expr):
        del tree.body[-1]
        shown = compile(ast.Interactive(last), name, "single", dont_inherit=True)
        if tree.body:
            exec(compile(tree, name, "exec", dont_inherit=True), variables)
        exec(shown, variables)
    else:
        exec(compile(tree, name, "exec", dont_inherit=True), variables)


def _show(error: BaseException) -> None:
    """Print a traceback without frames of this file. For SystemExit, print only the message, if there is one."""
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


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children that it has reaped."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
