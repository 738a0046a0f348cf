"""Checks that a sandbox runs programs, commands and sessions correctly: input, output, exit status and limits."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gem.errors import BadValue, SandboxError
from gem.sandbox import Case, Limits, Result, Sandbox, Status
from gem.testing.check import Check, CheckFailed, Unchecked, check, require

# Environment variables that may have the same value in the sandbox and on the host.
SHARED_VARIABLES = {
    "PATH",
    "LANG",
    "LC_ALL",
    "TERM",
    "TZ",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
}
GRACE_S = 2.0  # maximum time by which a run may exceed its time limit


def expect(result: Result, status: Status, **fields: Any) -> Result:
    """Return the result. Raises CheckFailed if the result has another status or other values of these fields."""
    found = {name: getattr(result, name) for name in fields}
    if result.status is not status or found != fields:
        expected = {"status": str(status), **fields}
        raise CheckFailed(
            f"expected {expected}, got {str(result.status)!r} with {found} and stderr {result.stderr[-300:]!r}"
        )
    return result


def require_guarantee(sandbox: Sandbox, guarantee: str) -> None:
    """Raise Unchecked if the sandbox does not enforce this guarantee."""
    if sandbox.report().guarantees.get(guarantee) is None:
        raise Unchecked(f"the sandbox does not guarantee {guarantee!r}")


def mechanism(sandbox: Sandbox, guarantee: str) -> str:
    """Return how the sandbox enforces a guarantee; an empty string if it does not."""
    return sandbox.report().guarantees[guarantee] or ""


@check("streams", "stdout and stderr are captured separately, and exit code 0 has status ok.")
def streams(sandbox: Sandbox) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    expect(sandbox.run(code), Status.OK, exit_code=0, stdout="out\n", stderr="err\n", truncated=False)


@check("stdin", "A program reads its stdin followed by EOF; without stdin it reads EOF immediately.")
def stdin(sandbox: Sandbox) -> None:
    expect(sandbox.run("import sys; print(repr(sys.stdin.read()))"), Status.OK, stdout="''\n")
    code = "import sys; data = sys.stdin.buffer.read(); print(len(data), data[-3:])"
    expect(sandbox.run(code, stdin=b"x" * 1_000_000 + b"\0\xff\n"), Status.OK, stdout="1000003 b'\\x00\\xff\\n'\n")


@check("exit-codes", "sys.exit(0) has status ok; any other code has status error and is reported.")
def exit_codes(sandbox: Sandbox) -> None:
    expect(sandbox.run("import sys; sys.exit(0)"), Status.OK, exit_code=0)
    expect(sandbox.run("import sys; sys.exit(3)"), Status.ERROR, exit_code=3, signal=None)


@check("exceptions", "An uncaught exception has status error and a traceback that quotes the source line.")
def exceptions(sandbox: Sandbox) -> None:
    result = expect(sandbox.run("def f():\n    return 1 / 0\nf()"), Status.ERROR, exit_code=1, stdout="")
    for piece in ("line 2", "return 1 / 0", "ZeroDivisionError"):
        require(piece in result.stderr, f"the traceback lacks {piece!r}: {result.stderr!r}")


@check("crashes", "The result names the signal that killed a program.")
def crashes(sandbox: Sandbox) -> None:
    expect(sandbox.run("import ctypes; ctypes.string_at(0)"), Status.KILLED, exit_code=None, signal=11)


@check("any-source", "Invalid or long source code gives a result, not an exception of the sandbox.")
def any_source(sandbox: Sandbox) -> None:
    expect(sandbox.run("x = 1\n" * 100_000 + "print(x)"), Status.OK, stdout="1\n")
    for source in (b"print(1)\0", b"\xff\xfe", "x = '\ud800", "while"):
        require(sandbox.run(source).status is Status.ERROR, f"source {source!r} does not have status error")


@check("any-output", "Output bytes that are not valid UTF-8 become replacement characters.")
def any_output(sandbox: Sandbox) -> None:
    code = "import sys; sys.stdout.buffer.write(b'a\\xff\\xc3(b\\n')"
    expect(sandbox.run(code), Status.OK, stdout="a\ufffd\ufffd(b\n")


@check("as-script", "A program runs as __main__ in its working directory and can import the given files.")
def as_script(sandbox: Sandbox) -> None:
    files: dict[str, str | bytes] = {"pack/helper.py": "value = 41", "data.txt": b"1"}
    code = "import pack.helper\nif __name__ == '__main__': print(pack.helper.value + int(open('data.txt').read()))"
    expect(sandbox.run(code, files=files), Status.OK, stdout="42\n")


@check("empty-directory", "The working directory is empty and writable.")
def empty_directory(sandbox: Sandbox) -> None:
    code = "import os; print(os.listdir('.')); open('x', 'w').write('x'); print(os.listdir('.'))"
    expect(sandbox.run(code), Status.OK, stdout="[]\n['x']\n")


@check("invalid-paths", "A file path outside the working directory raises BadValue.")
def invalid_paths(sandbox: Sandbox) -> None:
    for path in ("../x", "/tmp/x", "a/../../x"):
        try:
            sandbox.run("", files={path: ""})
        except BadValue:
            continue
        raise CheckFailed(f"files={{{path!r}: ''}} did not raise BadValue")


@check("timeout", "A program is killed at its time limit, and its earlier output is kept.")
def timeout(sandbox: Sandbox) -> None:
    start = time.monotonic()
    code = "print('before', end='')\nimport time\ntime.sleep(60)"
    expect(sandbox.run(code, limits=Limits(wall_s=1)), Status.TIMEOUT, stdout="before")
    took = time.monotonic() - start
    require(took < 1 + GRACE_S + 1, f"a run with a limit of 1 s took {took:.1f} s")  # one extra second for startup


@check("long-output", "Long output keeps its head and tail, and states the number of bytes removed.")
def long_output(sandbox: Sandbox) -> None:
    code = "print('head' + 'x' * 30_000 + 'tail', end='')"
    text = expect(sandbox.run(code, limits=Limits(output_bytes=10_000)), Status.OK, truncated=True).stdout
    require(
        text.startswith("headx") and text.endswith("xtail"), f"the head or tail is missing: {text[:9]!r}…{text[-9:]!r}"
    )
    require(str(30_008 - 10_000) in text, f"the number of removed bytes is missing: {text.strip('headxtil')!r}")


@check("endless-output", "A program that writes unlimited output is killed.")
def endless_output(sandbox: Sandbox) -> None:
    expect(sandbox.run("while True: print('x' * 1000)", limits=Limits(output_bytes=10_000)), Status.OUTPUT_LIMIT)


@check("environment", "A program cannot read the host's environment variables.")
def environment(sandbox: Sandbox) -> None:
    seen = json.loads(expect(sandbox.run("import json, os; print(json.dumps(dict(os.environ)))"), Status.OK).stdout)
    leaked = [name for name, value in os.environ.items() if name not in SHARED_VARIABLES and seen.get(name) == value]
    require(not leaked, f"the program can read {leaked}")


@check("commands", "exec() takes a shell command line or a list of arguments.")
def commands(sandbox: Sandbox) -> None:
    expect(sandbox.exec("read word; echo $word; exit 4", stdin="hello\n"), Status.ERROR, stdout="hello\n", exit_code=4)
    expect(sandbox.exec(["echo", "a  b", "$HOME"]), Status.OK, stdout="a  b $HOME\n")
    expect(sandbox.exec("cat data", files={"data": "kept"}), Status.OK, stdout="kept")


@check("tests", "Each test case reads its own input, and stop() skips the remaining cases.")
def tests(sandbox: Sandbox) -> None:
    cases = [Case(stdin=str(number)) for number in range(4)]
    found = sandbox.run_tests("print(int(input()) * 2)", cases)
    require([r and r.stdout for r in found] == ["0\n", "2\n", "4\n", "6\n"], f"the test cases printed {found}")
    stopped = sandbox.run_tests("print(input())", cases, stop=lambda index, result: True)
    require(any(stopped) and None in stopped, "stop() returned True, but all or none of the test cases ran")


@check("functions", "A function is called with JSON arguments and its return value is converted to JSON.")
def functions(sandbox: Sandbox) -> None:
    program = "class Solution:\n    def add(self, a, b):\n        print('called')\n        return [a + b]\n"
    [result] = sandbox.run_tests(program, [Case(arguments="[1, 2]")], function="add")
    require(result is not None, "a test case was not run")
    expect(result, Status.OK, value="[3]", stdout="called\n") if result else None
    [failed] = sandbox.run_tests("def f(): 1 / 0", [Case(arguments="[]")], function="f")
    require(
        failed is not None and failed.status is Status.ERROR and failed.value is None,
        f"a function that raises gave {failed}",
    )


@check("starter-code", "A function may use the names that the starter code of programming tasks relies on.")
def starter_code(sandbox: Sandbox) -> None:
    program = "class Solution:\n    def total(self, nums: List[int]) -> int:\n        return Counter(nums).total()\n"
    [result] = sandbox.run_tests(program, [Case(arguments="[[1, 2, 2]]")], function="total")
    require(result is not None and result.value == "3", f"starter code without imports gave {result}")


@check("tests-apart", "Tests of one program do not see the files of each other.")
def tests_apart(sandbox: Sandbox) -> None:
    program = "import os\nprint(os.listdir('.'))\nopen('file', 'w').write('x')"
    found = sandbox.run_tests(program, [Case() for _ in range(6)])
    require([r and r.stdout for r in found] == ["[]\n"] * 6, f"the working directories of six tests contained {found}")


@check("child-processes", "Programs can use multiprocessing, with the start methods fork and spawn.")
def child_processes(sandbox: Sandbox) -> None:
    program = (
        "import multiprocessing\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn'):\n"
        "        with multiprocessing.get_context(method).Pool(2) as pool: print(pool.map(double, [1, 2]))\n"
    )
    expect(sandbox.run(program, limits=Limits(wall_s=20)), Status.OK, stdout="[2, 4]\n[2, 4]\n")


@check("threads", "Several threads can use one sandbox.")
def threads(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: sandbox.run(f"print({number})").stdout, range(16)))
    require(found == [f"{number}\n" for number in range(16)], f"16 runs in 8 threads printed {found}")


@check("session-state", "Variables and imports persist between cells; the value of a final expression is printed.")
def session_state(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        expect(session.run("import math\nx = math.floor(2.5)"), Status.OK, stdout="")
        expect(session.run("x += 1; x"), Status.OK, stdout="3\n")
        expect(session.run("input()"), Status.ERROR)
        expect(session.run("print(x)"), Status.OK, stdout="3\n", stderr="")


@check("session-isolation", "Two sessions share no state.")
def session_isolation(sandbox: Sandbox) -> None:
    with sandbox.session() as one, sandbox.session() as other:
        one.run("x = 1")
        expect(other.run("x"), Status.ERROR, state_lost=False)
        expect(one.run("x"), Status.OK, stdout="1\n")


@check("session-exit", "sys.exit() ends the cell but not the session.")
def session_exit(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        session.run("x = 5")
        expect(session.run("import sys; sys.exit(3)"), Status.ERROR, exit_code=3, state_lost=False)
        expect(session.run("x"), Status.OK, stdout="5\n")


@check("session-interrupt", "A cell is interrupted at its time limit, and variables are kept.")
def session_interrupt(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        session.run("x = 5")
        code = "print('before')\nwhile True: pass"
        expect(session.run(code, wall_s=0.5), Status.TIMEOUT, stdout="before\n", state_lost=False)
        expect(session.run("x"), Status.OK, stdout="5\n")


@check(
    "session-lost",
    "If a cell cannot be interrupted, the result has state_lost set and the next cell starts fresh.",
)
def session_lost(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        session.run("x = 5")
        code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
        expect(session.run(code, wall_s=0.5), Status.TIMEOUT, state_lost=True)
        expect(session.run("'x' in globals()"), Status.OK, stdout="False\n", state_lost=False)


@check("session-closed", "A closed session raises SandboxError.")
def session_closed(sandbox: Sandbox) -> None:
    session = sandbox.session()
    session.run("1")
    session.close()
    session.close()
    try:
        session.run("1")
    except SandboxError:
        return
    raise CheckFailed("a closed session ran a cell")


CHECKS: tuple[Check[Sandbox], ...] = (
    streams,
    stdin,
    exit_codes,
    exceptions,
    crashes,
    any_source,
    any_output,
    as_script,
    empty_directory,
    invalid_paths,
    timeout,
    long_output,
    endless_output,
    environment,
    commands,
    tests,
    functions,
    starter_code,
    tests_apart,
    child_processes,
    threads,
    session_state,
    session_isolation,
    session_exit,
    session_interrupt,
    session_lost,
    session_closed,
)
