"""run_python(), kept for compatibility. New code should use gem.sandbox, which returns more detailed results."""

from __future__ import annotations

from gem.sandbox import Limits, get_sandbox
from gem.sandbox.factory import backend_of_published_name
from gem.sandbox.usual_imports import misses_usual_import, with_usual_imports

DEFAULT_TIMEOUT = 10  # seconds


def run_python(
    code: str, sandbox_type: str = "auto", stdin: str | None = None, timeout: float = DEFAULT_TIMEOUT
) -> tuple[bool, str, str]:
    r"""Run a Python program in a sandbox.

    A program that used a module such as math without importing it runs again with the usual imports.

    Args:
        code: Python source.
        sandbox_type: "auto" selects the highest isolation level available on this machine and raises SandboxError
            where programs cannot be isolated; "none" runs without isolation and logs one warning; "bwrap", or another
            backend of gem.sandbox.
        stdin: the complete standard input. None means empty.
        timeout: wall-clock seconds.

    Returns:
        Whether the exit code was 0, stdout, and stderr. If the program was killed, the last line of stderr says why.

    Raises:
        BadValue: if the sandbox_type is unknown.
        SandboxError: if the sandbox failed.

    >>> run_python("print(input())", stdin="hello")
    (True, 'hello\n', '')
    """
    limits = Limits(wall_s=timeout)
    sandbox = get_sandbox(backend_of_published_name(sandbox_type))
    result = sandbox.run(code, stdin=stdin or "", limits=limits)
    if misses_usual_import(result):
        again = sandbox.run(with_usual_imports(code), stdin=stdin or "", limits=limits)
        result = again if again.ok else result
    if not (stopped := result.stopped(limits)):
        return result.ok, result.stdout, result.stderr
    before = f"{result.stderr}\n" if result.stderr and not result.stderr.endswith("\n") else result.stderr
    return result.ok, result.stdout, f"{before}{stopped}\n"
