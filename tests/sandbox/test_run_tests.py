"""Sandbox.run_tests(): isolation between the tests of a program, and results that cannot be forged."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from waiting import until

from gem.errors import BadValue
from gem.sandbox import Case, Limits, Status
from gem.sandbox.forkserver.entry import values

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")
LIMITS = Limits(wall_s=20, memory_bytes=512 << 20)
CONTAINED = pytest.mark.parametrize("level", ["ns", "lsm"], indirect=True)


def run(sandbox, program, stdins, **options):
    return sandbox.run_tests(program, [Case(stdin=stdin) for stdin in stdins], **options)


def call(sandbox, program, function, *arguments):
    return sandbox.run_tests(program, [Case(arguments=json.dumps(a)) for a in arguments], function=function)


# --- scripts ---


def test_each_test_reads_its_own_input_and_results_come_in_order(sandbox):
    results = run(sandbox, "print(int(input()) ** 2)", [str(n) for n in range(25)])
    assert [result.stdout for result in results] == [f"{n * n}\n" for n in range(25)]
    assert all(result.ok and result.exit_code == 0 and result.value is None for result in results)


def test_every_kind_of_exit_is_distinguished(sandbox):
    program = """
        import os, sys
        match input():
            case "ok": print("fine")
            case "exit": sys.exit(3)
            case "zero": sys.exit(0)
            case "message": sys.exit("no luck")
            case "raise": 1 / 0
            case "signal": os.kill(os.getpid(), 15)
    """
    kinds = ["ok", "exit", "zero", "message", "raise", "signal"]
    program = "\n".join(line[8:] for line in program.splitlines())
    results = dict(zip(kinds, run(sandbox, program, kinds), strict=True))
    assert results["ok"].stdout == "fine\n"
    ends = {kind: (result.status, result.exit_code) for kind, result in results.items()}
    assert ends == {
        "ok": (Status.OK, 0),
        "exit": (Status.ERROR, 3),
        "zero": (Status.OK, 0),
        "message": (Status.ERROR, 1),
        "raise": (Status.ERROR, 1),
        "signal": (Status.KILLED, None),
    }
    assert results["message"].stderr == "no luck\n"
    assert "ZeroDivisionError" in results["raise"].stderr
    assert "1 / 0" in results["raise"].stderr and "case_runner" not in results["raise"].stderr
    assert results["signal"].signal == 15


@pytest.mark.slow
def test_a_test_that_times_out_has_no_exit_code_and_keeps_its_output(sandbox):
    def is_kept():  # if the test has printed before the limit, and flushes within FLUSH_S
        program = "import time; print('before', end=''); time.sleep(600)"
        [result] = run(sandbox, program, [""], limits=Limits(wall_s=0.5))
        assert (result.status, result.exit_code) == (Status.TIMEOUT, None)
        return result.stdout == "before"

    until(is_kept)


def test_a_program_that_does_not_compile_fails_every_test_with_the_error(sandbox):
    results = run(sandbox, "def f(:\n  pass", ["1", "2"])
    assert [result.status for result in results] == [Status.ERROR] * 2
    assert all("SyntaxError" in result.stderr and result.exit_code == 1 for result in results)


def test_source_that_is_not_python_is_an_error_of_the_program(sandbox):
    for program in (b"\xff\xfe\x00", b"x = 1\0", "x = '\ud800'"):
        assert [result.status for result in run(sandbox, program, [""])] == [Status.ERROR]


def test_the_program_runs_as_main(sandbox):
    program = "import sys\nif __name__ == '__main__': print(sys.modules['__main__'].__dict__ is globals())"
    assert run(sandbox, program, [""])[0].stdout == "True\n"


def test_18_megabytes_of_input_arrive_completely(sandbox):
    program = "import sys, zlib; data = sys.stdin.buffer.read(); print(len(data), zlib.crc32(data))"
    import zlib

    data = bytes(range(256)) * (18_000_000 // 256)
    assert [r.stdout for r in run(sandbox, program, [data] * 3)] == [f"{len(data)} {zlib.crc32(data)}\n"] * 3


def test_the_input_can_be_opened_by_name_and_ends(sandbox):
    program = "print(open('/dev/stdin').read() + open(0).read(), input)"
    assert (
        run(sandbox, "import sys; print(repr(sys.stdin.read()), repr(sys.stdin.read()))", [""])[0].stdout == "'' ''\n"
    )
    assert run(sandbox, program, ["x"])[0].stdout.startswith("x")


def test_hundreds_of_tests_run(sandbox):
    results = run(sandbox, "print(input())", [str(n) for n in range(300)])
    assert [result.stdout for result in results] == [f"{n}\n" for n in range(300)]


@pytest.mark.slow
def test_slow_tests_after_quick_ones_get_their_full_time(sandbox):
    def others_are_ok():  # if they are not delayed
        program = "import time\ntime.sleep(float(input()))"
        results = run(sandbox, program, ["0"] * 20 + ["600", "0"], limits=Limits(wall_s=0.5))
        late = results.pop(20)
        assert late.status is Status.TIMEOUT and late.wall_s >= 0.5
        return all(result.ok for result in results)

    until(others_are_ok)


def test_a_test_that_follows_one_that_was_killed_runs_in_its_place(sandbox):
    program = "import os, signal\nif input() == '1': os.kill(os.getpid(), signal.SIGTERM)\nprint('fine')"
    results = run(sandbox, program, list("0110" * 10))
    assert [result.status for result in results] == [Status.OK, Status.KILLED, Status.KILLED, Status.OK] * 10


def test_an_empty_list_of_tests_returns_no_results(sandbox):
    assert sandbox.run_tests("print(1)", []) == []


def test_the_head_and_tail_of_output_are_kept(sandbox):
    program = "import sys; print('a' * 5000 + 'b' * 5000); print('e' * 10, file=sys.stderr)"
    result = run(sandbox, program, [""], limits=Limits(output_bytes=1000))[0]
    assert result.ok and result.truncated and result.stderr == "e" * 10 + "\n"
    assert result.stdout.startswith("aaa") and result.stdout.endswith("bbb\n") and "9001 bytes cut" in result.stdout


def test_endless_output_does_not_affect_other_tests(sandbox):
    program = "import sys\nif input() == '1':\n    while True: print('x' * 1000)\nprint('done')"
    results = run(sandbox, program, list("010100"))
    expected = [Status.OK, Status.OUTPUT_LIMIT, Status.OK, Status.OUTPUT_LIMIT, Status.OK, Status.OK]
    assert [result.status for result in results] == expected
    assert all(result.stdout == "done\n" for result in results if result.ok)


def test_stop_cancels_the_remaining_tests(sandbox):
    seen = []

    def stop(index, result):
        seen.append(index)
        return not result.ok

    program = "import time\nn = int(input())\nif n == 3: raise SystemExit(1)\nif n > 3: time.sleep(600)"
    results = sandbox.run_tests(program, [Case(stdin=str(n)) for n in range(50)], stop=stop)
    assert seen[-1] == 3 and set(seen) <= {0, 1, 2, 3}  # tests that ran at the same time may not have ended
    assert [index for index, result in enumerate(results) if result is not None] == sorted(seen)
    assert [index for index in seen if not results[index].ok] == [3]


def test_an_exception_in_stop_propagates_and_the_sandbox_still_works(sandbox):
    def stop(index, result):
        raise KeyError(index)

    with pytest.raises(KeyError):
        sandbox.run_tests("print(1)", [Case()], stop=stop)
    assert run(sandbox, "print(2)", [""])[0].stdout == "2\n"


@CONTAINED
def test_the_working_directory_is_empty_at_every_start(sandbox):
    program = """
import os
print(os.listdir("."), os.listdir(os.environ["TMPDIR"]))
os.makedirs("a/b")
open("a/b/c", "w").close()
os.chmod("a", 0)
os.mkdir("z", 0)
"""
    assert [r.stdout for r in run(sandbox, program, [""] * 9)] == ["[] []\n"] * 9


def test_home_and_the_temporary_folder_are_the_working_directory(sandbox):
    program = """
import os, subprocess, sys, tempfile
told = subprocess.run(["/bin/sh", "-c", "echo $HOME $TMPDIR"], capture_output=True, text=True).stdout.split()
own = [sys.path[0], os.environ["HOME"], os.environ["TMPDIR"], tempfile.gettempdir()]
print({*own, *told} == {os.getcwd()})
"""
    assert [result.stdout for result in run(sandbox, program, [""] * 20)] == ["True\n"] * 20


@CONTAINED
def test_a_daemon_does_not_outlive_its_test(sandbox):
    program = """
import os, sys, time
if input() == "leave":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(0.01)
                os.write(1, b"still here\\n")
        os._exit(0)
    os.wait()
    print("left", flush=True)
else:
    time.sleep(0.3)
    print("quiet")
"""
    results = run(sandbox, program, ["leave", "stay", "leave", "stay"])
    assert [result.status for result in results] == [Status.OK] * 4
    assert [result.stdout for result in results[1::2]] == ["quiet\n"] * 2
    assert all("left\n" in result.stdout for result in results[::2])


def test_a_memory_hog_is_killed_without_affecting_other_tests(sandbox):
    program = "x = bytearray(3 << 30) if input() == '1' else b''\nprint(len(x))"
    results = run(sandbox, program, list("0100"))
    assert [result.ok for result in results] == [True, False, True, True]
    assert results[1].status in (Status.MEMORY, Status.ERROR)


@CONTAINED
def test_a_memory_hog_with_many_processes_is_identified_and_the_other_tests_run_again(sandbox):
    program = """
import os, time
if input() == "hog":
    for _ in range(6):
        if os.fork() == 0:
            x = b"x" * (100 << 20)
            time.sleep(600)
    time.sleep(600)
print("fine")
"""
    limits = Limits(wall_s=20, memory_bytes=200 << 20)
    results = run(sandbox, program, ["stay", "hog", "stay", "stay"], limits=limits)
    assert [results[index].stdout for index in (0, 2, 3)] == ["fine\n"] * 3
    assert results[1].status is Status.MEMORY


def test_tests_have_different_random_numbers(sandbox):
    results = run(sandbox, "import random; print(random.random())", [""] * 6)
    assert len({result.stdout for result in results}) == 6


def test_tests_can_use_threads_and_processes(sandbox):
    program = """
import os, subprocess, threading
thread = threading.Thread(target=print, args=("thread",), kwargs={"flush": True})
thread.start()
thread.join()
print(subprocess.run(["/bin/sh", "-c", "echo process"], capture_output=True, text=True).stdout, end="")
pid = os.fork()
if pid == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    result = run(sandbox, program, [""])[0]
    assert (result.stdout, result.stderr) == ("thread\nprocess\n7\n", "")


# --- isolation between tests ---


@CONTAINED
def test_tests_cannot_reach_the_driver(sandbox):
    program = """
import os, signal
driver = os.getppid()
def attempt(name, action):
    try:
        print(name, action())
    except OSError:
        print(name, "refused")
def write(path):
    with open(path, "r+b", buffering=0) as file:
        return file.seek(4096)
attempt("memory", lambda: write(f"/proc/{driver}/mem"))
for number in range(16):
    attempt("descriptor", lambda: os.open(f"/proc/{driver}/fd/{number}", os.O_RDWR))
attempt("environment", lambda: open(f"/proc/{driver}/environ").read())
attempt("write", lambda: open("../stray", "w"))
for fd in range(3, 64):
    try:
        os.fstat(fd)
        print("open", fd)
    except OSError:
        pass
"""
    assert run(sandbox, program, [""])[0].stdout.split() == [
        word for name in ("memory", *["descriptor"] * 16, "environment", "write") for word in (name, "refused")
    ]


@CONTAINED
def test_a_test_that_kills_everything_it_can_does_not_change_other_results(sandbox):
    program = """
import os, signal, time
if input() == "kill":
    for pid in (os.getppid(), -os.getppid(), 1, -1):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGRTMAX - 1, signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(pid, number)
            except OSError:
                pass
    time.sleep(0.1)
else:
    time.sleep(0.5)
print("alive")
"""
    results = run(sandbox, program, ["stay", "kill", "stay", "kill", "kill", "stay"])
    assert [results[index].stdout for index in (0, 2, 5)] == ["alive\n"] * 3
    assert all(results[index].status in (Status.OK, Status.KILLED) for index in (1, 3, 4))


def test_the_exit_status_cannot_be_forged(sandbox):
    # The program writes to every descriptor, then exits with 1.
    program = """
import os
for fd in range(256):
    for words in (b"compiled", b'{"index": 0, "code": 0}', b"\\0" * 29):
        try:
            os.write(fd, words)
        except OSError:
            pass
os._exit(1)
"""
    assert [(r.status, r.exit_code) for r in run(sandbox, program, [""] * 3)] == [(Status.ERROR, 1)] * 3


@CONTAINED
def test_tests_do_not_see_files_of_each_other(sandbox):
    program = """
import os, time
n = input()
found, folders = [], [".", "/tmp", "/dev/shm", "/var/tmp"]
for folder in folders:
    try:
        found += [name for name in os.listdir(folder) if name.startswith("left")]
    except OSError:
        pass
for folder in folders:
    try:
        os.makedirs(f"{folder}/left{n}/deep")
        open(f"{folder}/left{n}/deep/file", "w").close()
        os.chmod(f"{folder}/left{n}", 0)
    except OSError:
        pass
time.sleep(0.01)
print(found)
"""
    assert [result.stdout for result in run(sandbox, program, map(str, range(30)))] == ["[]\n"] * 30


@CONTAINED
def test_a_fork_bomb_ends_with_its_test(sandbox):
    program = "import os, sys\nif input() == '1':\n    while True: os.fork()\nprint('fine')"
    results = run(sandbox, program, list("0101"))
    assert [results[index].stdout for index in (0, 2)] == ["fine\n"] * 2
    assert all(not results[index].ok for index in (1, 3))
    assert run(sandbox, "print(1)", [""])[0].stdout == "1\n"


# --- limits of each test ---

COUNT_PROCESSES = """
import os, time
count = 0
while count < 100:
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        time.sleep(600)
    count += 1
print(count)
"""


@CONTAINED
def test_a_test_may_start_exactly_as_many_processes_as_a_run(sandbox):
    if sandbox.report().level == "lsm" and os.getuid() != 0:
        pytest.skip("the kernel counts all processes of the user, and the monitor acts later")
    limits = Limits(wall_s=30, processes=12)
    if "a monitor" in sandbox.report().guarantees["process_limit"]:
        pytest.skip("runs share RLIMIT_NPROC; a run with too many processes is killed, see test_limits.py")
    alone = sandbox.run(COUNT_PROCESSES, limits=limits).stdout
    assert 5 < int(alone) <= 12
    assert [result.stdout for result in run(sandbox, COUNT_PROCESSES, [""] * 5, limits=limits)] == [alone] * 5


@CONTAINED
def test_a_test_cannot_use_the_processes_of_other_tests(sandbox):
    program = COUNT_PROCESSES + "time.sleep(0.5)"
    results = run(sandbox, program, [""] * 4, limits=Limits(wall_s=30, processes=12))
    assert all(not result.ok or int(result.stdout) <= 12 for result in results)


@CONTAINED
def test_a_test_may_use_exactly_as_much_disk_space_as_a_run(sandbox):
    program = """
import time
size = int(input())
for number in range(size):
    with open(f"file{number}", "wb") as file:
        file.write(bytes(1 << 20))
if size > 8: time.sleep(600)  # until the monitor sees it
print("written")
"""
    limits = Limits(wall_s=60, disk_bytes=8 << 20)
    results = run(sandbox, program, ["6", "6", "10", "6", "6", "10"], limits=limits)
    over = Status.ERROR if sandbox.level == "ns" else Status.KILLED
    assert [result.status for result in results] == [Status.OK, Status.OK, over] * 2


@pytest.mark.slow
def test_the_cpu_time_of_all_processes_of_a_test_counts(sandbox):
    program = "import os\nfor _ in range(2):\n    os.fork()\nwhile True: pass"
    result = run(sandbox, program, [""], limits=Limits(wall_s=100, cpu_s=1))[0]
    assert result.status is Status.TIMEOUT and result.wall_s < 100


@pytest.mark.slow
def test_the_cpu_time_of_children_that_nobody_waits_for_counts(sandbox):
    program = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        while time.process_time() < 0.3: pass
        os._exit(0)
    time.sleep(0.3)
"""
    [result] = run(sandbox, program, [""], limits=Limits(wall_s=100, cpu_s=1))
    assert result.status is Status.TIMEOUT and result.wall_s < 100


@pytest.mark.slow
def test_the_cpu_time_of_earlier_tests_does_not_count(sandbox):
    program = "import time\nwhile time.process_time() < 0.4: pass\nprint('done')"
    results = run(sandbox, program, [""] * 5, limits=Limits(wall_s=100, cpu_s=0.7))  # one runner has two or more
    assert [result.stdout for result in results] == ["done\n"] * 5


# --- functions ---


def test_a_function_gets_json_arguments_and_returns_a_json_value(sandbox):
    program = "def add(a, b=10):\n    print('noise')\n    return a + b"
    results = call(sandbox, program, "add", [1, 2], [5], ["x", "y"], [[1], [2]])
    assert [result.value for result in results] == ["3", "15", '"xy"', "[1,2]"]
    assert [result.stdout for result in results] == ["noise\n"] * 4


def test_functions_are_found_in_classes(sandbox):
    program = """
class Solution:
    calls = 0
    def solve(self, x):
        self.calls += 1
        return [x, self.calls]
class Other:
    def solve(self, x):
        return "other"
"""
    assert [r.value for r in call(sandbox, program, "solve", [1], [2])] == ["[1,1]", "[2,1]"]
    assert call(sandbox, program, "Other.solve", [1])[0].value == '"other"'


def test_the_module_of_a_called_function_is_not_main(sandbox):
    program = "def f(): return __name__\nif __name__ == '__main__': raise SystemExit('ran as a script')"
    assert call(sandbox, program, "f", [])[0].ok


PLAIN = {
    "None": "null",
    "True": "true",
    "10 ** 30": str(10**30),
    "0.1": "0.1",
    "float('inf')": "Infinity",
    "'é\\n'": '"\\u00e9\\n"',
    "(1, (2, []))": "[1,[2,[]]]",
    "{'b': 1, 'a': (2,)}": '{"a":[2],"b":1}',
    "{2: 'x', 10: 'y'}": '{"10":"y","2":"x"}',
    "__import__('collections').Counter('aab')": '{"a":2,"b":1}',
    "__import__('enum').IntEnum('Colour', 'red').red": "1",
}


def test_plain_data_is_returned_as_canonical_json(sandbox):
    results = call(sandbox, "def f(text): return eval(text)", "f", *([expression] for expression in PLAIN))
    assert {expression: result.value for expression, result in zip(PLAIN, results, strict=True)} == PLAIN


def test_a_value_may_be_as_long_as_the_case_says(sandbox):
    program = "def f(n): return 'x' * n"
    cases = [Case(arguments=f"[{n}]", value_bytes=1002) for n in (1000, 1001, 10_000)]
    results = sandbox.run_tests(program, cases, function="f")
    assert [result.status for result in results] == [Status.OK, Status.ERROR, Status.ERROR]
    assert " 1003 bytes" in results[1].stderr and " 1002" in results[1].stderr


@pytest.mark.parametrize("size", [5_000, 500_000, 15 << 20])
def test_the_host_does_not_decode_a_value_that_is_too_long(sandbox, monkeypatch, size):
    decoded = []
    monkeypatch.setattr(values, "checked", lambda data, limit: decoded.append(data))
    program = f"""
import os
def f():
    data = b"[" + b"0," * {size // 2} + b"0]"
    while data:
        data = data[os.write(4, data):]
    os._exit(0)
"""
    [result] = sandbox.run_tests(program, [Case(arguments="[]", value_bytes=4096)], function="f")
    assert not result.ok and result.value is None
    assert decoded == []


def test_other_values_are_errors_with_a_reason(sandbox):
    expressions = ["{1}", "object()", "b'x'", "1j", "{(1, 2): 3}", "{1: 'a', '1': 'b'}", "[print]"]
    expressions += ["'x' * (17 << 20)", "range(3)", "collections.deque([1])"]
    results = call(sandbox, "def f(text): return eval(text)", "f", *([expression] for expression in expressions))
    for expression, result in zip(expressions, results, strict=True):
        assert (result.status, result.value) == (Status.ERROR, None), expression
        assert result.stderr.startswith("the return value of f "), expression


def test_a_case_may_allow_other_sequences(sandbox):
    program = "from array import array\ndef f(text): return eval(text)"
    expressions = ["collections.deque([1, (2,)])", "[range(2, 7, 2)]", "{'a': array('i', [3, 4])}", "{5}"]
    cases = [Case(arguments=json.dumps([expression]), any_sequence=True) for expression in expressions]
    results = sandbox.run_tests(program, cases, function="f")
    assert [result.value for result in results] == ["[1,[2]]", "[[2,4,6]]", '{"a":[3,4]}', None]


def test_integers_of_any_length_are_read_and_written(sandbox):
    digits = "7" * 20_000
    [printed] = run(sandbox, "print(int(input()) + 1)", [digits])
    assert printed.stdout == f"{digits[:-1]}8\n"
    [returned] = sandbox.run_tests("def f(n): return [n + 1]", [Case(arguments=f"[{digits}]")], function="f")
    assert returned.value == f"[{digits[:-1]}8]"


def test_values_nested_too_deep_are_an_error(sandbox):
    program = "def f(depth):\n    value = []\n    for _ in range(depth): value = [value]\n    return value"
    fine, deep, endless = call(sandbox, program, "f", [90], [200], [100_000])
    assert fine.ok and fine.value == "[" * 91 + "]" * 91
    assert [(r.status, r.value) for r in (deep, endless)] == [(Status.ERROR, None)] * 2


def test_objects_with_custom_comparison_are_returned_as_their_content(sandbox):
    program = """
class Liar(str):
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __str__(self): return "42"
    def __repr__(self): return "42"
    __class__ = property(lambda self: int)
class List(list):
    def __iter__(self): return iter([42])
    def __len__(self): return 1
class Dict(dict):
    def items(self): return [("x", 42)]
class Int(int):
    def __int__(self): return 42
    def __index__(self): return 42
class Float(float):
    def __float__(self): return 42.0
def f(): return [Liar("41"), List([1, 2]), Dict(a=1), Int(41), Float(41.5)]
"""
    assert call(sandbox, program, "f", [])[0].value == '["41",[1,2],{"a":1},41,41.5]'


@pytest.mark.parametrize(
    "program",
    [
        "import os\ndef f(): os._exit(0)",
        "import os\nos._exit(0)",
        "import sys\ndef f(): sys.exit(0)",
        "import os\ndef f():\n    os.write(4, b'[42')\n    os._exit(0)",
        "import os\ndef f():\n    os.write(4, b'[' * 100000)\n    os._exit(0)",
    ],
)
def test_ending_without_a_value_is_an_error(sandbox, program):
    result = call(sandbox, program, "f", [])[0]
    assert (result.status, result.value) == (Status.ERROR, None)
    assert "without returning a value" in result.stderr


def test_a_missing_function_is_an_error_of_the_program(sandbox):
    for function in ("g", "Class.g", "Solution.g"):
        result = call(sandbox, "class Solution: pass", function, [])[0]
        assert result.status is Status.ERROR and "the program has no" in result.stderr


def test_a_function_needs_arguments(sandbox):
    with pytest.raises(BadValue, match=r"cases \[1\] have no arguments for f"):
        sandbox.run_tests("def f(): pass", [Case(arguments="[]"), Case()], function="f")


def test_functions_can_read_stdin(sandbox):
    cases = [Case(stdin="some input", arguments="[]")]
    assert sandbox.run_tests("def f(): return input()", cases, function="f")[0].value == '"some input"'


def test_the_callback_can_run_programs_although_all_slots_are_taken(sandbox):
    def check():
        return sandbox.run_tests("print(1)", [Case()] * 2, stop=lambda *_: not sandbox.run("print(2)").ok)

    with ThreadPoolExecutor(12) as pool:
        calls = [pool.submit(check) for _ in range(12)]
        assert all([result.stdout for result in call.result(120)] == ["1\n"] * 2 for call in calls)


def test_tests_do_not_see_attributes_and_times_that_others_set_on_their_folder(sandbox):
    program = """
import os
print(os.stat(".").st_mtime_ns % 1000, [os.getxattr(".", n) for n in os.listxattr(".") if n.startswith("user.")])
os.utime(".", ns=(7, 7))
try:
    os.setxattr(".", "user.gem", b"seen")
except OSError:
    pass
"""
    _, *rest = (result.stdout for result in sandbox.run_tests(program, [Case()] * 4, limits=LIMITS))
    assert all("seen" not in out and not out.startswith("7 ") for out in rest)


def test_one_runner_runs_many_tests(sandbox):
    # Process ids count up in a sandbox, and the first test of a runner has the second id of its namespace or more.
    program = "import os\nprint(os.getppid() if os.getppid() > 1 else os.getpid())"
    results = sandbox.run_tests(program, [Case()] * 12)
    numbers = [int(result.stdout) for result in results]
    if sandbox.level == "ns":
        assert max(numbers) > 4
    else:
        assert len(set(numbers)) <= min(4, len(os.sched_getaffinity(0)))
