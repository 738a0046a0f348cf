"""What a sandbox promises of programs and commands: what goes in, what comes out, and how runs end."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gem.errors import BadValue
from gem.sandbox import Case, Limits, Result, Sandbox, Status
from gem.testing.check_sandbox import check
from gem.testing.lab import Broken

HARMLESS = {"PATH", "LANG", "LC_ALL", "TERM", "TZ", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
LATE_S = 2.0  # a run may end this long after its limit


def expect(result: Result, status: Status, **fields: Any) -> Result:
    """The result, if it has this status and these fields; else raises Broken."""
    found = {name: getattr(result, name) for name in fields}
    if result.status is not status or found != fields:
        wanted = {"status": str(status), **fields}
        raise Broken(f"expected {wanted}, got {str(result.status)!r} with {found} and stderr {result.stderr[-300:]!r}")
    return result


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Broken(what)


@check("streams", "stdout and stderr come back apart, and exit code 0 is ok.")
def streams(sandbox: Sandbox) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    expect(sandbox.run(code), Status.OK, exit_code=0, stdout="out\n", stderr="err\n", truncated=False)


@check("stdin", "A program reads what it is given, and then EOF; without stdin it reads EOF at once.")
def stdin(sandbox: Sandbox) -> None:
    expect(sandbox.run("import sys; print(repr(sys.stdin.read()))"), Status.OK, stdout="''\n")
    code = "import sys; data = sys.stdin.buffer.read(); print(len(data), data[-3:])"
    expect(sandbox.run(code, stdin=b"x" * 1_000_000 + b"\0\xff\n"), Status.OK, stdout="1000003 b'\\x00\\xff\\n'\n")


@check("exit-codes", "sys.exit(0) is a success, another code an error that is reported.")
def exit_codes(sandbox: Sandbox) -> None:
    expect(sandbox.run("import sys; sys.exit(0)"), Status.OK, exit_code=0)
    expect(sandbox.run("import sys; sys.exit(3)"), Status.ERROR, exit_code=3, signal=None)


@check("exceptions", "An uncaught exception is an error, with a traceback that shows the program's line.")
def exceptions(sandbox: Sandbox) -> None:
    result = expect(sandbox.run("def f():\n    return 1 / 0\nf()"), Status.ERROR, exit_code=1, stdout="")
    for piece in ("line 2", "return 1 / 0", "ZeroDivisionError"):
        require(piece in result.stderr, f"the traceback lacks {piece!r}: {result.stderr!r}")


@check("crashes", "A signal that ends a program is reported.")
def crashes(sandbox: Sandbox) -> None:
    expect(sandbox.run("import ctypes; ctypes.string_at(0)"), Status.KILLED, exit_code=None, signal=11)


@check("any-source", "Source of any length and any bytes is the program's affair, not an exception.")
def any_source(sandbox: Sandbox) -> None:
    expect(sandbox.run("x = 1\n" * 100_000 + "print(x)"), Status.OK, stdout="1\n")
    for source in (b"print(1)\0", b"\xff\xfe", "x = '\ud800", "while"):
        require(sandbox.run(source).status is Status.ERROR, f"source {source!r} is no error")


@check("any-output", "Bytes that are no UTF-8 come back as replacement characters.")
def any_output(sandbox: Sandbox) -> None:
    code = "import sys; sys.stdout.buffer.write(b'a\\xff\\xc3(b\\n')"
    expect(sandbox.run(code), Status.OK, stdout="a\ufffd\ufffd(b\n")


@check("as-script", "A program is __main__, in its working directory, and may import files that were put there.")
def as_script(sandbox: Sandbox) -> None:
    files: dict[str, str | bytes] = {"pack/helper.py": "value = 41", "data.txt": b"1"}
    code = "import pack.helper\nif __name__ == '__main__': print(pack.helper.value + int(open('data.txt').read()))"
    expect(sandbox.run(code, files=files), Status.OK, stdout="42\n")


@check("empty-directory", "The working directory is empty, and writable.")
def empty_directory(sandbox: Sandbox) -> None:
    code = "import os; print(os.listdir('.')); open('x', 'w').write('x'); print(os.listdir('.'))"
    expect(sandbox.run(code), Status.OK, stdout="[]\n['x']\n")


@check("paths-checked", "A file that would lie outside the working directory is the caller's mistake: BadValue.")
def paths_checked(sandbox: Sandbox) -> None:
    for path in ("../x", "/tmp/x", "a/../../x"):
        try:
            sandbox.run("", files={path: ""})
        except BadValue:
            continue
        raise Broken(f"files={{{path!r}: ''}} raised no BadValue")


@check("timeout", "A program that overruns is ended in time, and what it printed is there.")
def timeout(sandbox: Sandbox) -> None:
    start = time.monotonic()
    code = "print('before', end='')\nimport time\ntime.sleep(60)"
    expect(sandbox.run(code, limits=Limits(wall_s=1)), Status.TIMEOUT, stdout="before")
    took = time.monotonic() - start
    require(took < 1 + LATE_S + 1, f"a limit of 1 s took {took:.1f} s")  # one more for starting


@check("long-output", "Of long output head and tail are kept, and the bytes cut are counted.")
def long_output(sandbox: Sandbox) -> None:
    code = "print('head' + 'x' * 30_000 + 'tail', end='')"
    text = expect(sandbox.run(code, limits=Limits(output_bytes=10_000)), Status.OK, truncated=True).stdout
    require(text.startswith("headx") and text.endswith("xtail"), f"head or tail is missing: {text[:9]!r}…{text[-9:]!r}")
    require(str(30_008 - 10_000) in text, f"the cut is not counted: {text.strip('headxtil')!r}")


@check("endless-output", "A program that writes without end is stopped.")
def endless_output(sandbox: Sandbox) -> None:
    expect(sandbox.run("while True: print('x' * 1000)", limits=Limits(output_bytes=10_000)), Status.OUTPUT_LIMIT)


@check("environment", "None of the host's environment variables is seen.")
def environment(sandbox: Sandbox) -> None:
    seen = json.loads(expect(sandbox.run("import json, os; print(json.dumps(dict(os.environ)))"), Status.OK).stdout)
    leaked = [name for name, value in os.environ.items() if name not in HARMLESS and seen.get(name) == value]
    require(not leaked, f"it sees {leaked}")


@check("commands", "exec takes a line for the shell or a list of arguments.")
def commands(sandbox: Sandbox) -> None:
    expect(sandbox.exec("read word; echo $word; exit 4", stdin="hello\n"), Status.ERROR, stdout="hello\n", exit_code=4)
    expect(sandbox.exec(["echo", "a  b", "$HOME"]), Status.OK, stdout="a  b $HOME\n")
    expect(sandbox.exec("cat data", files={"data": "kept"}), Status.OK, stdout="kept")


@check("tests", "Each test of a program reads its own input, and stop() ends the rest.")
def tests(sandbox: Sandbox) -> None:
    cases = [Case(stdin=str(number)) for number in range(4)]
    found = sandbox.run_tests("print(int(input()) * 2)", cases)
    require([r and r.stdout for r in found] == ["0\n", "2\n", "4\n", "6\n"], f"tests printed {found}")
    stopped = sandbox.run_tests("print(input())", cases, stop=lambda index, result: True)
    require(any(stopped) and None in stopped, "stop() returned True and every test, or none, was run")


@check("functions", "A function of a program is called with JSON and its value comes back as JSON.")
def functions(sandbox: Sandbox) -> None:
    program = "class Solution:\n    def add(self, a, b):\n        print('called')\n        return [a + b]\n"
    [result] = sandbox.run_tests(program, [Case(arguments="[1, 2]")], function="add")
    require(result is not None, "a test was not run")
    expect(result, Status.OK, value="[3]", stdout="called\n") if result else None
    [failed] = sandbox.run_tests("def f(): 1 / 0", [Case(arguments="[]")], function="f")
    require(failed is not None and failed.status is Status.ERROR and failed.value is None, f"f() raised: {failed}")


@check("threads", "Threads share one sandbox.")
def threads(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: sandbox.run(f"print({number})").stdout, range(16)))
    require(found == [f"{number}\n" for number in range(16)], f"16 runs in 8 threads printed {found}")


CHECKS = (
    streams,
    stdin,
    exit_codes,
    exceptions,
    crashes,
    any_source,
    any_output,
    as_script,
    empty_directory,
    paths_checked,
    timeout,
    long_output,
    endless_output,
    environment,
    commands,
    tests,
    functions,
    threads,
)
