"""run_python, as published code calls it. New code uses gem.sandbox, whose results say more."""

from __future__ import annotations

from gem.sandbox import Limits, get_sandbox
from gem.sandbox.factory import backend_of

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
    limits = Limits(wall_s=timeout)
    result = get_sandbox(backend_of(sandbox_type)).run(code, stdin=stdin or "", limits=limits)
    if not (stopped := result.stopped(limits)):
        return result.ok, result.stdout, result.stderr
    before = f"{result.stderr}\n" if result.stderr and not result.stderr.endswith("\n") else result.stderr
    return result.ok, result.stdout, f"{before}{stopped}\n"
