"""The jobs of soak_sandbox.py: each runs something in a sandbox, or in a machine, and checks the result."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gem.graders.code import CodeGrader
from gem.graders.code.tests import read_tests
from gem.sandbox import Limits, Machine, Sandbox, Status

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "sandbox"))

from envelope.programs import FOLDERS, load

LIMITS = Limits(wall_s=4.0, cpu_s=1.0)  # the wall-clock limit is generous, because several runs share the processors
LATE_S = 5.0  # tolerated beyond the time limit, because several runs share the processors
# Attack programs that would not harm this machine even without a sandbox: time, output, leaks, confusion.
HOSTILE = (5, 9, 10, 11, 12, 14, 16, 17, 18, 19, 20, 21, 39, 45, 46, 47, 48, 49, 52, 53, 54, 58, 59, 60, 61, 62, 65, 68)
HOSTILE += (70, 72, 84, 86, 88, 90)

Job = Callable[[Sandbox, random.Random], str]  # returns a description of what was wrong, or an empty string


def arithmetic(sandbox: Sandbox, rng: random.Random) -> str:
    a, b = rng.randrange(10**6), rng.randrange(10**6)
    result = sandbox.run(f"print({a} * {b})")
    return wrong(result, result.ok and result.stdout == f"{a * b}\n")


def echo(sandbox: Sandbox, rng: random.Random) -> str:
    lines = [f"{rng.random()} é 世" for _ in range(rng.randrange(1, 400))]
    result = sandbox.run("import sys\nfor line in sys.stdin: print(line.strip()[::-1])", stdin="\n".join(lines))
    return wrong(result, result.ok and result.stdout.splitlines() == [line[::-1] for line in lines])


def failing(sandbox: Sandbox, rng: random.Random) -> str:
    number = rng.randrange(1, 100)
    program = rng.choice([f"import sys; print('so far'); sys.exit({number})", f"print('so far'); 1 // ({number} * 0)"])
    result = sandbox.run(program)
    code = number if "exit" in program else 1
    return wrong(result, (result.status, result.exit_code, result.stdout) == (Status.ERROR, code, "so far\n"))


def files_in_and_out(sandbox: Sandbox, rng: random.Random) -> str:
    text = str(rng.random())
    program = "import os; print(sorted(os.listdir()), open('in/data.txt').read()); open('out', 'w').write('x' * 9999)"
    result = sandbox.run(program, files={"in/data.txt": text})
    return wrong(result, result.ok and result.stdout == f"['in'] {text}\n")


def long_output(sandbox: Sandbox, rng: random.Random) -> str:
    length = rng.randrange(LIMITS.output_bytes + 1000, 8 * LIMITS.output_bytes)
    result = sandbox.run(f"print('a' * {length} + 'the end')")
    return wrong(result, result.ok and result.truncated and result.stdout.endswith("the end\n"))


def scientific(sandbox: Sandbox, rng: random.Random) -> str:
    n = rng.randrange(5, 500)
    result = sandbox.run(f"import numpy as np; print(int(np.arange({n}).sum()))")
    return wrong(result, result.ok and result.stdout == f"{n * (n - 1) // 2}\n")


def too_long(sandbox: Sandbox, rng: random.Random) -> str:
    result = sandbox.run("import time; print('before', flush=True); time.sleep(60)")
    return wrong(result, result.status is Status.TIMEOUT and result.stdout == "before\n")


def too_large(sandbox: Sandbox, rng: random.Random) -> str:
    result = sandbox.run("x = bytearray(4 << 30)\nprint('PWNED')")
    return wrong(result, result.status is Status.MEMORY)


def command(sandbox: Sandbox, rng: random.Random) -> str:
    word = f"word{rng.random()}"
    result = sandbox.exec(f"echo {word} | tr a-z A-Z") if rng.random() < 0.5 else sandbox.exec(["echo", word.upper()])
    return wrong(result, result.ok and result.stdout == f"{word.upper()}\n")


def cells(sandbox: Sandbox, rng: random.Random) -> str:
    number = rng.randrange(1000)
    with sandbox.session() as session:
        session.run(f"x = {number}")
        failed = session.run("x += 1; raise SystemExit(3)")
        result = session.run("print(x)")
    return wrong(result, failed.status is Status.ERROR and result.stdout == f"{number + 1}\n")


def tests_of_a_script(sandbox: Sandbox, rng: random.Random) -> str:
    return graded(sandbox, rng, "n = int(input())\nprint(n * n if n != {bad} else -1)", None)


def tests_of_a_function(sandbox: Sandbox, rng: random.Random) -> str:
    return graded(sandbox, rng, "def f(n):\n    return n * n if n != {bad} else -1", "f")


def graded(sandbox: Sandbox, rng: random.Random, program: str, function: str | None) -> str:
    """Grade a program that is correct, or wrong on one of its inputs."""
    numbers = rng.sample(range(1000), rng.randrange(2, 12))
    bad = rng.choice([-1, numbers[0]])
    tests = {"inputs": [f"{n}\n" for n in numbers], "outputs": [str(n * n) for n in numbers]}
    if function:
        tests = {"inputs": [[n] for n in numbers], "outputs": [n * n for n in numbers], "fn_name": function}
    grader = CodeGrader(limits=LIMITS, reward="fraction", early_exit=False)
    verdict = grader.grade(program.replace("{bad}", str(bad)), read_tests(tests), sandbox)
    expected = ["wrong" if n == bad else "passed" for n in numbers]
    return "" if verdict.details["tests"] == expected else f"{verdict}, expected {expected}"


def hostile(sandbox: Sandbox, rng: random.Random) -> str:
    path = rng.choice([path for path in sorted(FOLDERS[0].glob("*.py")) if int(path.name[:2]) in HOSTILE])
    program = load(path)
    start = time.monotonic()
    result = sandbox.run(program.source, stdin=program.stdin)
    late = time.monotonic() - start - LIMITS.wall_s
    if late > LATE_S:
        return f"{path.name} was {late:.1f} s late"
    boasts = [line for line in result.stdout.splitlines() if line.startswith("PWNED")]
    return f"{path.name}: {boasts[0]:.200}" if boasts else ""


def wrong(result: object, correct: bool) -> str:
    return "" if correct else f"{result!r:.600}"


HARMLESS: dict[Job, float] = {  # job → weight
    arithmetic: 30,
    echo: 15,
    failing: 15,
    files_in_and_out: 10,
    scientific: 8,
    tests_of_a_script: 8,
    tests_of_a_function: 6,
    cells: 4,
    command: 4,
    long_output: 2,
    too_large: 1,
    too_long: 0.5,
}


# Jobs of machines. Processes that they leave are killed by the machine, at the latest when it is closed.

MACHINE_LIMITS = Limits(wall_s=20.0, cpu_s=5.0, processes=32, disk_bytes=16 << 20, memory_bytes=256 << 20)
MachineJob = Callable[[Machine, random.Random], str]


def shell_state(machine: Machine, rng: random.Random) -> str:
    number = rng.randrange(10**6)
    machine.exec(f"export x={number}; mkdir -p /tmp/a; cd /tmp/a; echo $x > file")
    result = machine.exec("echo $x; cat file; pwd")
    return wrong(result, result.ok and result.stdout == f"{number}\n{number}\n/tmp/a\n")


def files(machine: Machine, rng: random.Random) -> str:
    content = rng.randbytes(rng.randrange(1 << 16))
    machine.write({"/tmp/data": content})
    return "" if machine.read("/tmp/data") == content else "another content was read than written"


def background(machine: Machine, rng: random.Random) -> str:
    result = machine.exec("sleep 1000 & (setsid sleep 1000 &); trap '' TERM; echo started")
    return wrong(result, result.ok and result.stdout == "started\n")


def killed_shell(machine: Machine, rng: random.Random) -> str:
    result = machine.exec(rng.choice(["kill -9 $$", "kill -9 -1; kill -9 $$"]))
    return wrong(result, result.state_lost)


def endless(machine: Machine, rng: random.Random) -> str:
    result = machine.exec("sleep 1000 & while :; do :; done", wall_s=0.2)
    return wrong(result, result.status is Status.TIMEOUT)


def bomb(machine: Machine, rng: random.Random) -> str:
    machine.exec("f() { f | f & }; f 2>/dev/null; sleep 0.2", wall_s=1.0)
    machine.stop()  # or later commands may fail, because there can be no more processes
    return ""


def full_disk(machine: Machine, rng: random.Random) -> str:
    machine.exec("head -c 30M /dev/zero > /tmp/big; rm -f /tmp/big", wall_s=5.0)
    return ""


MACHINE_JOBS: dict[MachineJob, float] = {  # job → weight
    shell_state: 30,
    files: 20,
    background: 10,
    killed_shell: 5,
    endless: 3,
    full_disk: 2,
    bomb: 1,
}
