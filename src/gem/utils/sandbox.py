"""run_python, as published code calls it. New code uses gem.sandbox, whose results say more."""

from __future__ import annotations

from gem.errors import BadValue, did_you_mean
from gem.sandbox import Limits, Result, Status, get_sandbox
from gem.sandbox.choose import BACKENDS, PUBLISHED_NAMES

TIMEOUT_S = 10  # the published default


def run_python(
    code: str, sandbox_type: str = "auto", stdin: str | None = None, timeout: float = TIMEOUT_S
) -> tuple[bool, str, str]:
    r"""Run a program.

    Args:
        sandbox_type: "auto" is the best that holds on this machine; "none" runs it uncontained, with one warning;
            "bwrap", or the name of another backend of gem.sandbox.
        stdin: what it reads; None is EOF at once.
        timeout: seconds of wall clock.

    Returns whether it exited with code 0, its stdout, and its stderr, which ends with a line on what stopped it, if
    anything did.

    Raises BadValue for an unknown sandbox_type, SandboxError where the machinery failed: that says nothing of the code.

    >>> run_python("print(input())", stdin="hello")
    (True, 'hello\n', '')
    """
    known = ["auto", *PUBLISHED_NAMES, *BACKENDS]
    if sandbox_type not in known:
        raise BadValue(f"no sandbox_type {sandbox_type!r}{did_you_mean(sandbox_type, known)}  ({', '.join(known)})")
    sandbox = get_sandbox(PUBLISHED_NAMES.get(sandbox_type, sandbox_type))
    result = sandbox.run(code, stdin=stdin or "", limits=Limits(wall_s=timeout))
    return result.ok, result.stdout, result.stderr + _stopped(result, timeout)


def _stopped(result: Result, timeout: float) -> str:
    """A line on what ended a program that did not end by itself."""
    said = {
        Status.TIMEOUT: f"the program was stopped after {timeout:g} s",
        Status.MEMORY: "the program took more memory than it may",
        Status.OUTPUT_LIMIT: "the program was stopped because it wrote without end",
        Status.KILLED: f"the program was ended by signal {result.signal}",
    }
    if result.status not in said:
        return ""
    return ("\n" if result.stderr and not result.stderr.endswith("\n") else "") + said[result.status] + "\n"
