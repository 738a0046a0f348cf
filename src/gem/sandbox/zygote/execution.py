"""Execute one run on a fork server: start it, collect its output, and kill it if it exceeds a limit."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

from gem.errors import SandboxError
from gem.sandbox.base import Files, Limits, Result, Status
from gem.sandbox.output import Capture, OutputReader
from gem.sandbox.zygote.host import Launch, Launcher, RunExit, Zygote, run_status
from gem.sandbox.zygote.protocol import in_memory

DEATH_S = 30.0  # time for a killed run to end, even on a busy machine


def run_once(level: str, source: bytes, limits: Limits) -> Result:
    """Start a fork server, run one program on it, and close the server.

    Raises:
        SandboxError: if the level is not available or the program could not be run.
    """
    server = Zygote(level)
    try:
        return execute(server.launch, "program", {"source": source}, b"", limits, None)
    finally:
        server.close()


def execute(
    launch: Launcher, entry: str, options: dict[str, Any], stdin: bytes, limits: Limits, files: Files | None
) -> Result:
    """Start a run and return its result. Kills the run at its time limit or if it writes too much output."""
    with contextlib.closing(OutputReader()) as listener:
        (out, to_out), (err, to_err) = (listener.pipe(limits.output_bytes) for _ in range(2))
        given = [in_memory(stdin), to_out, to_err]
        try:
            run = launch(entry, options, given, limits, files)
        finally:
            for fd in given:
                os.close(fd)
        with contextlib.closing(run):
            run.wait_until_started()
            start = time.monotonic()
            ended = _ended(run, listener, start + limits.wall_s)
        listener.drain(out, err)
        wall_s = time.monotonic() - start
        return _result(ended, limits, wall_s, listener.captures[out], listener.captures[err])


def _ended(run: Launch, listener: OutputReader, deadline: float) -> RunExit:
    """Wait until a run has ended. Kill it at the deadline (time.monotonic()) or if it writes too much output."""
    listener.watch(run.fileno())
    while not run.over():
        if listener.floods:
            run.kill(Status.OUTPUT_LIMIT)
            break
        if time.monotonic() >= deadline:
            run.kill(Status.TIMEOUT)
            break
        listener.wait(deadline)
    ended = run.wait(DEATH_S)
    if ended is None:
        run.server.close(0)
        raise SandboxError(f"a killed run did not end within {DEATH_S:g} s")
    return ended


def _result(ended: RunExit, limits: Limits, wall_s: float, out: Capture, err: Capture) -> Result:
    stdout, stderr = out.text(), err.text()
    return Result(
        status=run_status(ended, limits, stderr),
        exit_code=ended.exit_code,
        signal=ended.signal,
        stdout=stdout,
        stderr=stderr,
        truncated=out.truncated or err.truncated,
        wall_s=wall_s,
        cpu_s=ended.cpu_s,
        max_rss_bytes=ended.max_rss_bytes,
    )
