"""Variants of known weaknesses of the sandbox, written from their descriptions alone and by its public interface."""

import contextlib
import functools
import gc
import json
import os
import platform
import resource
import subprocess
import sys
import threading
import time

import pytest
from waiting import until

from gem.graders.code import CodeGrader
from gem.graders.code.tests import read_tests
from gem.sandbox import Case, Limits, Status, make_sandbox
from gem.tools.python.tool import PythonCodeTool

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux"),
    pytest.mark.slow,
]
LIMITS = Limits(wall_s=20, memory_bytes=1 << 30)
HOST_CPU_S = 1.0  # CPU seconds of the host for a result; the slowest takes a third of a second
HOST_BYTES = 200 << 20  # growth of the host for a result
HANG_S = 120  # a bound against hanging, not a measurement


@pytest.fixture(scope="module", autouse=True)
def without_a_named_level():
    patch = pytest.MonkeyPatch()
    patch.delenv("GEM_SANDBOX_LEVEL", raising=False)
    yield
    patch.undo()


CONTAINED = pytest.mark.parametrize("level", ["ns", "lsm"], indirect=True)


def right(sandbox, program, tests, **options):
    """Fraction of tests that a program passes."""
    return CodeGrader(reward="fraction", **options).grade(program, read_tests(tests), sandbox).reward


# --- the host's time and memory do not depend on what a program returns ---


def cases(table, telling):
    """The values of a table as cases of a test; those that are not telling run only with -m exhaustive."""
    marks = pytest.mark.exhaustive
    return [pytest.param(value, id=name, marks=() if name in telling else marks) for name, value in table.items()]


class Host:
    """Context manager that requires that the host used little CPU and memory."""

    def __enter__(self):
        gc.disable()  # beside the objects of other tests, a collection takes up to a second
        self.bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        self.cpu_s = time.process_time()

    def __exit__(self, *exception):
        gc.enable()
        cpu_s = time.process_time() - self.cpu_s
        assert cpu_s < HOST_CPU_S, f"the host used {cpu_s:.1f} s of CPU"
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - self.bytes
        assert grown < HOST_BYTES, f"the host grew by {grown >> 20} MiB"


STDERR = {
    "names in a row": '"MemoryError: " * 9000 + "\\nx"',
    "names without a line end": '"MemoryError" * 11000',
    "names between blanks": '("MemoryError" + " " * 80) * 1400 + "\\n"',
    "blanks": '" " * 120000 + "x"',
    "line ends": '"\\n" * 120000 + "x"',
    "carriage returns": '"MemoryError\\r" * 9000',
    "Unicode line ends": '"\\u2028MemoryError:\\u2029" * 6000',
    "near misses": '("Memory" * 10 + "Error.\\n") * 1800',
    "control characters": '"\\x1b[8m\\x00\\x08" * 18000',
    "tracebacks": '"Traceback (most recent call last):\\n  File \\"x\\", line 1\\n" * 2000 + "numpy.MemoryError"',
    "dots": '"a." * 60000 + "MemoryError:\\n" + "a." * 1000',
}


@pytest.mark.parametrize("text", STDERR.values(), ids=list(STDERR))
def test_the_host_spends_little_on_any_stderr(sandbox, text):
    sandbox.run("pass")
    with Host():
        for ending in ("sys.exit(1)", "os.kill(os.getpid(), 9)"):
            result = sandbox.run(f"import os, sys\nsys.stderr.write({text})\nsys.stderr.flush()\n{ending}")
    assert result.status in (Status.KILLED, Status.ERROR, Status.MEMORY) and len(result.stderr) > 50_000


def test_the_tool_spends_little_on_any_stderr(level, monkeypatch):
    tool = PythonCodeTool(keep_error_last_line=True)
    tool.execute_action("<python>print(1)</python>")
    with Host():
        for text in STDERR.values():
            program = f"import sys\nsys.stderr.write({text})\nsys.stdout.write({text})\nsys.exit(1)"
            tool.execute_action(f"<python>{program}</python>")


VALUES = {
    "deep lists": "functools.reduce(lambda value, _: [value], range(900), 0)",
    "very deep lists": "functools.reduce(lambda value, _: [value], range(300000), 0)",
    "deep dictionaries": "functools.reduce(lambda value, _: {'a': value}, range(300000), 0)",
    "a wide dictionary": "{str(n): n for n in range(900000)}",
    "a long list": "[0] * 5000000",
    "a list of floats": "[0.1] * 3000000",
    "a list of empty lists": "[[]] * 4000000",
    "a list of tuples": "[(1, None, True)] * 900000",
    "a text": "'x' * 15000000",
    "a text of escapes": "'\\0' * 3000000",
    "a text of emoji": "chr(0x1F600) * 1500000",
    "a number of 4,000 digits": "[10**4000] * 3000",
    "a number beyond the limit of digits": "10**5000",
    "a huge number": "1 << 60000000",
    "infinities": "[float('inf'), float('nan')] * 1000000",
    "shared parts": "functools.reduce(lambda value, _: [value, value], range(40), 1)",
    "itself": "[value := [], value.append(value)][0]",
}


@pytest.mark.attack
@pytest.mark.parametrize("value", cases(VALUES, ["very deep lists"]))
def test_the_host_spends_little_on_any_value(sandbox, value):
    program = f"import functools, sys\nsys.set_int_max_str_digits(0)\ndef solve(n):\n    return {value}"
    sandbox.run_tests(program, [Case(arguments="[1]")], function="solve", limits=Limits(wall_s=3))  # starts runners
    for wanted in (42, [1, 2, 3]):
        with Host():
            passed = right(
                sandbox, program, {"inputs": [[1]], "outputs": [wanted], "fn_name": "solve"}, limits=Limits(wall_s=3)
            )
        assert passed == 0


FORGED = """
import os
def solve(n):
    for text in (b'[' * 9_000_000, b'{"value": ' * 900_000, b'1' * 9_000_000, bytes(9_000_000), b'\\n' * 9_000_000):
        for fd in range(3, 128):
            try:
                os.set_blocking(fd, False)
                os.write(fd, text)
            except OSError:
                pass
    os._exit(0)
"""


def test_the_host_spends_little_on_a_forged_report(sandbox):
    tests = {"inputs": [[1]], "outputs": [42], "fn_name": "solve"}
    right(sandbox, "def solve(n): return n", tests)
    with Host():
        assert right(sandbox, FORGED, tests, limits=Limits(wall_s=5)) == 0


OUTPUTS = {
    "exponents": "'1e999999999 -1E+99999999999999 1e-99999999999 ' * 1500",
    "many digits": "('9' * 4299 + ' ') * 29",
    "one number": "'9' * 128000",
    "one fraction": "'0.' + '3' * 127000",
    "small numbers": "'1 ' * 64000",
    "empty lines": "'\\n' * 128000",
    "blanks before line ends": "(' ' * 100 + '\\n') * 1200",
    "underscores": "'1_0' * 40000",
    "Unicode digits": "chr(0x664) * 60000",
    "brackets": "'[' * 120000",
}


@pytest.mark.parametrize("text", OUTPUTS.values(), ids=list(OUTPUTS))
def test_the_host_spends_little_on_any_output(sandbox, text):
    right(sandbox, "print(1)", {"inputs": [""], "outputs": ["1"]})
    for wanted in ("42", "1.5 " * 20_000, "0.333\n" * 20_000, "[1, 2]"):
        with Host():
            assert right(sandbox, f"print({text})", {"inputs": [""], "outputs": [wanted]}) == 0


RIGHT = {
    "numbers": list(range(200_000)),
    "emoji": "é😀\n\0" * 3000,
    "mixed": [[0.1 + n, str(n), None] for n in range(5000)],
    "dictionary": {str(n): [n] * 3 for n in range(20_000)},
    "long numbers": [10**200, -(10**200)],
    "empty list": [],
    "empty text": "",
}


def test_a_right_value_of_any_size_passes(sandbox):
    for name, value in RIGHT.items():
        program = f"import json\ndef solve(text): return json.loads({json.dumps(json.dumps(value))})"
        tests = {"inputs": [["x"]], "outputs": [value], "fn_name": "solve"}
        assert right(sandbox, program, tests) == 1, name


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [("(1, (2, 3))", [1, [2, 3]]), ("0.9999999999999999", 1.0), ("[1.0000000000000002] * 9", [1.0] * 9)],
)
def test_a_right_value_may_be_longer_than_the_expected_one(sandbox, returned, wanted):
    tests = {"inputs": [[1]], "outputs": [wanted], "fn_name": "solve"}
    assert right(sandbox, f"def solve(n): return {returned}", tests) == 1


# --- a shortage never lowers the level ---

LEVEL = """
import json, os, resource, signal, sys, threading, time
from gem.errors import SandboxError
from gem.sandbox import get_sandbox, make_sandbox
import gem.sandbox.forkserver  # before memory is short
def level(**options):
    try:
        with make_sandbox("zygote", **options) as sandbox:
            return sandbox.report().level
    except (SandboxError, MemoryError):
        return "SandboxError"
"""
SHORTAGES = {
    "descriptors": (
        "used = len(os.listdir('/proc/self/fd'))\nold = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (used + SLACK, old[1]))",
        "resource.setrlimit(resource.RLIMIT_NOFILE, old)",
    ),
    "address space": (
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (SLACK << 20), -1))",
        "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    ),
    "files": (
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (SLACK, -1))",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))",
    ),
    "killed helpers": (
        """
stop = False
def harm():
    while not stop:
        for task in os.listdir("/proc/self/task"):
            try:
                for pid in map(int, open(f"/proc/self/task/{task}/children").read().split()):
                    time.sleep(SLACK / 200)
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
thread = threading.Thread(target=harm)
thread.start()
""",
        "stop = True\nthread.join()",
    ),
    "stopped helpers": (
        """
stop, stopped = False, set()
def harm():
    while not stop:
        for task in os.listdir("/proc/self/task"):
            try:
                for pid in map(int, open(f"/proc/self/task/{task}/children").read().split()):
                    if pid not in stopped:
                        stopped.add(pid)
                        os.kill(pid, signal.SIGSTOP)
                        threading.Timer(SLACK, os.kill, (pid, signal.SIGCONT)).start()
            except OSError:
                pass
thread = threading.Thread(target=harm)
thread.start()
""",
        "stop = True\nthread.join()",
    ),
}


def python(program, *, timeout_s=HANG_S, **variables):
    """Run a program in another interpreter. Returns the JSON text of its last line."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.stdout.strip(), done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@functools.cache
def best_level():
    return python(f"{LEVEL}\nprint(json.dumps(level()))")


@pytest.mark.parametrize("slack", [1, pytest.param(6, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("shortage", SHORTAGES)
def test_a_shortage_neither_lowers_the_level_nor_is_remembered(shortage, slack):
    start, end = (text.replace("SLACK", str(slack)) for text in SHORTAGES[shortage])
    quick = "from gem.sandbox.forkserver.host import probe\nprobe.PAUSES_S = (0.1, 0.2)\n"
    during, after = python(f"{LEVEL}\n{quick}{start}\nduring = level()\n{end}\nprint(json.dumps([during, level()]))")
    assert during in (best_level(), "SandboxError")
    assert after == best_level()


def test_a_shortage_during_the_choice_of_one_thread_does_not_mislead_another():
    program = f"""{LEVEL}
old = resource.getrlimit(resource.RLIMIT_NOFILE)
found = []
threads = [threading.Thread(target=lambda: found.append(level())) for _ in range(3)]
for thread in threads:
    thread.start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 4, old[1]))
    time.sleep(0.15)
    resource.setrlimit(resource.RLIMIT_NOFILE, old)
for thread in threads:
    thread.join()
print(json.dumps([found, level()]))
"""
    found, after = python(program)
    assert len(found) == 3 and set(found) <= {best_level(), "SandboxError"}
    assert after == best_level()


# --- without isolation nothing runs by default ---

NUMBERS = {
    "x86_64": {"unshare": 272, "mount": 165, "setns": 308, "create": 444, "restrict": 446, "prctl": 157},
    "aarch64": {"unshare": 97, "mount": 40, "setns": 268, "create": 444, "restrict": 446, "prctl": 167},
}
FILTER = """
import ctypes, struct
def refuse(calls, error):
    # Let the kernel refuse calls for this process and its children. A call is a number, or (number, first argument).
    code = []
    for call in calls:
        number, argument = call if isinstance(call, (list, tuple)) else (call, None)
        code.append((0x20, 0, 0, 0))
        if argument is None:
            code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error)]
        else:
            code += [(0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, argument), (0x06, 0, 0, 0x00050000 | error)]
    code.append((0x06, 0, 0, 0x7FFF0000))
    data = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(data))
    libc = ctypes.CDLL(None)
    libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong)
    assert libc.prctl(38, 1, None, 0, 0) == 0
    assert libc.prctl(22, 2, program, 0, 0) == 0
"""
WAYS = (
    "make_sandbox('zygote').run(PROGRAM).stdout",
    "get_sandbox().run(PROGRAM).stdout",
    "str(PythonCodeTool().execute_action('<python>' + PROGRAM + '</python>')[2])",
    "str(PythonCodeTool(stateful=True).execute_action('<python>' + PROGRAM + '</python>')[2])",
)
ASK = """
import os
from gem.tools.python.tool import PythonCodeTool
os.environ["OPENAI_API_KEY"] = "CANARY"
open(SECRET, "w").write("CANARY")
PROGRAM = "import os\\nprint(os.environ.get('OPENAI_API_KEY'), os.path.exists(" + repr(SECRET) + "), 'ran')"
def ask(way):
    try:
        return eval(way)
    except SandboxError as error:
        return f"SandboxError: {error}"
"""


UNCONTAINED = [(("unshare", "setns", "create"), 38), (("mount", "unshare", "restrict"), 1), (("unshare", "create"), 95)]


@pytest.mark.parametrize(("calls", "error"), UNCONTAINED, ids=lambda value: str(value))
def test_nothing_runs_by_default_without_isolation(calls, error, tmp_path):
    refused = [NUMBERS[platform.machine()][call] for call in calls]
    program = f"{LEVEL}\nSECRET = {str(tmp_path / 'id_rsa')!r}\n{FILTER}\n{ASK}\nrefuse({refused}, {error})\n"
    for answer in python(f"{program}print(json.dumps([ask(way) for way in {WAYS} * 2]))"):
        assert answer.startswith("SandboxError") and "CANARY" not in answer
        assert "GEM_SANDBOX_LEVEL=basic" in answer and "bubblewrap" in answer.lower()


def test_only_the_exact_name_accepts_the_risk():
    program = f"""{LEVEL}{FILTER}
refuse({[NUMBERS[platform.machine()][call] for call in ("unshare", "setns", "create")]}, 1)
from gem.errors import GemError
def answer(level):
    os.environ["GEM_SANDBOX_LEVEL"] = level
    try:
        with make_sandbox("zygote") as sandbox:
            return sandbox.run("print('ran')").stdout
    except GemError as error:
        return type(error).__name__
names = ["", "auto", "lsm", "ns", "none", "BASIC", " basic", "0"]
print(json.dumps([{{name: answer(name) for name in names}}, answer("basic")]))
"""
    others, basic = python(program)
    assert basic == "ran\n"
    assert {name: got for name, got in others.items() if got not in ("SandboxError", "BadValue")} == {}


def test_other_systems_have_no_local_level_by_default():
    program = f"""{LEVEL}
sys.platform = "darwin"
try:
    answer = get_sandbox().run("print('ran')").stdout
except SandboxError as error:
    answer = str(error)
print(json.dumps(answer))
"""
    answer = python(program)
    assert "ran" not in answer.split() and all(
        way in answer.lower() for way in ("docker", "podman", "remote", "gem_sandbox_level=basic")
    )


def test_a_fall_to_the_weaker_level_is_reported_once(tmp_path):
    program = f"""{LEVEL}{FILTER}
import logging, warnings
said = []
class Keep(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.getLogger().addHandler(Keep())
warnings.showwarning = lambda message, *_: said.append(str(message))
refuse({[NUMBERS[platform.machine()]["unshare"]]}, 1)
levels = [level() for _ in range(3)]
print(json.dumps([levels, [text for text in said if "lsm" in text or "ns" in text]]))
"""
    levels, said = python(program)
    assert levels == ["lsm"] * 3 and len(said) == 1


def test_an_empty_level_means_unset():
    assert python(f"{LEVEL}\nprint(json.dumps(level()))", GEM_SANDBOX_LEVEL="") == best_level()


# --- limits of the run ---

BURN = """
import os, signal, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""
CPU = {
    "children one after the other": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n"
    "    if not os.fork():\n        burn(0.03)\n        os._exit(0)\n    time.sleep(0.03)",
    "grandchildren": "while True:\n    pid = os.fork()\n    if not pid:\n        if not os.fork():\n"
    "            burn(0.02)\n        os._exit(0)\n    os.waitpid(pid, 0)\n    time.sleep(0.02)",
    "threads that end": "import threading\nwhile True:\n    thread = threading.Thread(target=burn, args=(0.02,))\n"
    "    thread.start()\n    thread.join()",
    "system time": "while True:\n    for _ in range(1000):\n        os.stat('.')\n        os.listdir('.')",
    "children at once": "for _ in range(20):\n    if not os.fork():\n        burn(100)\ntime.sleep(60)",
}


@pytest.mark.attack
@pytest.mark.parametrize("program", cases(CPU, ["children one after the other"]))
@pytest.mark.parametrize("cgroup", cases({"cgroup": "", "no cgroup": "0"}, ["no cgroup"]))
@pytest.mark.parametrize("level", cases({"ns": "ns", "lsm": "lsm"}, ["lsm"]))
def test_cpu_seconds_are_those_of_the_whole_run(level, cgroup, program):
    asking = f"""
import json
from gem.sandbox import Limits, make_sandbox
with make_sandbox("zygote", level={level!r}) as sandbox:
    result = sandbox.run({BURN + program!r}, limits=Limits(wall_s=40, cpu_s=1.5))
print(json.dumps([result.status, result.cpu_s, result.wall_s]))
"""
    status, cpu_s, wall_s = python(asking, **({"GEM_SANDBOX_CGROUP": cgroup} if cgroup else {}))
    assert status == "timeout" and 0.75 < cpu_s < 4 and wall_s < 35


def test_the_report_names_who_enforces_each_limit():
    program = f"""{LEVEL}
with make_sandbox("zygote") as sandbox:
    print(json.dumps({{name: text or "" for name, text in sandbox.report().guarantees.items()}}))
"""
    with_cgroup, without = python(program), python(program, GEM_SANDBOX_CGROUP="0")
    assert not any(text.startswith("cgroup") or " by a cgroup" in text for text in without.values()), without
    if os.getuid() == 0 and os.access("/sys/fs/cgroup/memory", os.W_OK):
        assert with_cgroup["memory"] != without["memory"] and "cgroup" in with_cgroup["memory"]


# --- neighbours ---

HOGS = {
    "sixty processes": "import os\nfor _ in range(6):\n    os.fork()\nwhile True: pass",
    "native threads": "import hashlib, os, threading\nfor _ in range(3):\n    os.fork()\n"
    "def spin():\n    while True: hashlib.sha256(bytes(1 << 20))\n"
    "for _ in range(6): threading.Thread(target=spin).start()",
    "short lives": "import os, time\nfor _ in range(5):\n    os.fork()\nwhile True:\n"
    "    end = time.perf_counter() + 0.003\n    while time.perf_counter() < end: pass\n"
    "    try:\n        if os.fork(): os._exit(0)\n    except OSError: pass",
}
HONEST = "def solve(n):\n    total = 0\n    for i in range(n):\n        total += i * i % 7\n    return total"


@pytest.mark.attack
@pytest.mark.parametrize("hog", cases(HOGS, ["sixty processes"]))
def test_a_right_program_passes_beside_greedy_ones(level, sandbox, hog):
    size = 1_500_000
    tests = {"inputs": [[size]] * 3, "outputs": [sum(i * i % 7 for i in range(size))] * 3, "fn_name": "solve"}
    start = time.monotonic()
    assert right(sandbox, HONEST, tests) == 1
    alone_s = time.monotonic() - start
    stop = threading.Event()

    def attack():
        while not stop.is_set():
            sandbox.run(hog, limits=Limits(wall_s=4))

    threads = [threading.Thread(target=attack) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1)
        rewards = [right(sandbox, HONEST, tests, limits=Limits(wall_s=4 * alone_s + 1)) for _ in range(2)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert rewards == [1, 1]


@pytest.mark.attack
@pytest.mark.exhaustive
def test_a_greedy_session_leaves_other_sessions_their_share(sandbox):
    with sandbox.session(limits=Limits(wall_s=8)) as greedy, sandbox.session(limits=Limits(wall_s=20)) as honest:
        thread = threading.Thread(target=greedy.run, args=(HOGS["sixty processes"],))
        thread.start()
        try:
            time.sleep(0.5)
            results = [
                honest.run(
                    "import threading\nt = threading.Thread(target=print)\nt.start(); t.join(); sum(range(10**6))"
                )
            ]
            results += [honest.run("sum(range(10**6))") for _ in range(5)]
        finally:
            thread.join()
    assert all(result.ok for result in results)


KILLERS = {
    "signals": "os.kill(pid, 9)",
    "stops": "os.kill(pid, 19)",
    "groups": "os.killpg(pid, 9)",
    "queued signals": "libc.syscall(129, pid, 9, ctypes.create_string_buffer(128))",
    "threads": "libc.syscall(200, pid, 9)",
    "threads of groups": "libc.syscall(234, pid, pid, 9)",
    "descriptors of processes": "libc.syscall(424, libc.syscall(434, pid, 0), 9, 0, 0)",
    "owners of sockets": "one, two = socket.socketpair(); fcntl.fcntl(one, 10, 9); fcntl.fcntl(one, 8, pid); "
    "fcntl.fcntl(one, 4, 0o20000); two.send(b'x')",
    "limits": "resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0))",
    "memory": "open(f'/proc/{pid}/mem', 'r+b').write(b'x'); open(f'/proc/{pid}/oom_score_adj', 'w').write('1000')",
}
NAME = f"marked_{os.getpid()}"  # other test processes have other names
MARK = f"import ctypes, time\nctypes.CDLL(None).prctl(15, b'{NAME}')\n"


def marked():
    """Numbers of processes that ran MARK."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
            found |= {int(pid)} if file.read() == f"{NAME}\n" else set()
    return found


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are those of x86_64")
@CONTAINED
def test_no_signal_reaches_runs_of_the_same_or_of_another_sandbox(level, sandbox):
    """The numbers of the processes are told to the killer, which would otherwise have to guess."""
    start = f"import os, time\npid = os.fork()\nif not pid:\n    {MARK.strip().replace(chr(10), '; ')}; time.sleep(600)"
    with make_sandbox("zygote", level=level) as other, other.session() as theirs, sandbox.session() as mine:
        for session in (theirs, mine):
            assert session.run(start).ok
        while len(victims := marked()) < 2:
            assert cell(mine, "time.sleep(0.02)") == cell(theirs, "time.sleep(0.02)") == ""
        for attack in KILLERS.values():
            body = f"for pid in {victims}:\n    try:\n        " + attack.replace("; ", "\n        ")
            imports = "import ctypes, fcntl, os, resource, socket\nlibc = ctypes.CDLL(None)"
            sandbox.run(f"{imports}\n{body}\n    except Exception: pass")
        for session in (theirs, mine):
            assert cell(session, "print(os.waitpid(pid, os.WNOHANG))") == "(0, 0)\n"
        assert marked() == victims


# --- sessions ---


def cell(session, code, **options):
    result = session.run(code, **options)
    assert result.ok and not result.state_lost, result
    return result.stdout


POOLS = {
    "executor": (
        "from concurrent.futures import ProcessPoolExecutor\npool = ProcessPoolExecutor(2)\n",
        "print(sum(pool.map(abs, range(-5, 0))))",
    ),
    "pool": ("import multiprocessing\npool = multiprocessing.Pool(2)\n", "print(sum(pool.map(abs, range(-5, 0))))"),
    "program": (
        "import subprocess, sys\nloop = 'while True: print(5 * int(input()))'\n"
        "child = subprocess.Popen([sys.executable, '-u', '-c', loop], stdin=-1, "
        "stdout=-1, text=True, bufsize=1, start_new_session=True)\n",
        "child.stdin.write('3\\n')\nprint(int(child.stdout.readline()))",
    ),
    "thread": (
        "import queue, threading\nasked, answers = queue.Queue(), queue.Queue()\ndef work():\n"
        "    while True: answers.put(asked.get() * 5)\nthreading.Thread(target=work, daemon=True).start()\n",
        "asked.put(3)\nprint(answers.get())",
    ),
    "loop": (
        "import asyncio, threading\nloop = asyncio.new_event_loop()\n"
        "threading.Thread(target=loop.run_forever, daemon=True).start()\n"
        "async def f(): await asyncio.sleep(0.01); return 15\n",
        "print(asyncio.run_coroutine_threadsafe(f(), loop).result())",
    ),
}


def test_honest_helpers_survive_from_cell_to_cell(sandbox):
    with contextlib.ExitStack() as stack:
        sessions = {kind: stack.enter_context(sandbox.session()) for kind in POOLS}
        for kind, session in sessions.items():
            cell(session, POOLS[kind][0])
        for pause_s in (0, 0.02, 0.3, 0, 0.05, 0.06):
            time.sleep(pause_s)
            assert {kind: cell(session, POOLS[kind][1]) for kind, session in sessions.items()} == dict.fromkeys(
                POOLS, "15\n"
            )


@pytest.mark.attack
@pytest.mark.exhaustive
def test_each_cell_has_the_cpu_limit_for_itself(sandbox):
    with sandbox.session(limits=Limits(wall_s=30, cpu_s=2)) as session:
        cell(session, f"{BURN}\nx = 3")
        for _ in range(4):
            cell(session, "burn(1)")
        cell(session, "pid = os.fork()\nif not pid:\n    burn(1)\n    os._exit(0)\nos.waitpid(pid, 0)")
        cell(session, "burn(1)")
        for greedy in ("burn(60)", "pid = os.fork()\nif not pid:\n    burn(60)\n    os._exit(0)\nos.waitpid(pid, 0)"):
            result = session.run(greedy)
            assert result.status is Status.TIMEOUT and result.wall_s < 25
            session.run(BURN)
        assert cell(session, "print(2)") == "2\n"


@CONTAINED
def test_nothing_is_left_of_a_session_that_is_closed_while_its_processes_are_frozen(sandbox):
    before = marked()
    with sandbox.session() as session:
        body = f"os.setsid()\n{MARK}while True: time.sleep(0.01)".replace("\n", "\n        ")
        cell(session, f"import os, time\nfor _ in range(5):\n    if not os.fork():\n        {body}")
        while len(marked() - before) < 5:
            cell(session, "time.sleep(0.02)")
        time.sleep(0.2)  # until they are frozen
    until(lambda: not marked() - before)


# --- honest programs ---

STARTERS = {
    "twoSum": ("nums: List[int], target: int", "Optional[List[int]]", "[0, 1]", [0, 1]),
    "count": ("words: List[str]", "Dict[str, int]", "dict(Counter(['a', 'b', 'a']))", {"a": 2, "b": 1}),
    "modPow": ("n: int", "int", "pow(3, 4, 5)", 1),
    "gcds": ("n: int", "List[int]", "[gcd(12, 18), math.gcd(4, 6), lcm(2, 3), comb(5, 2)]", [6, 2, 6, 10]),
    "heaps": (
        "n: int",
        "List[int]",
        "nlargest(2, [1, 5, 3]) + [heappop(h) for h in [[2, 3]]] + [heapq.heappop([7])]",
        [5, 3, 2, 7],
    ),
    "sums": ("n: int", "list[int]", "list(accumulate([1, 2, 3])) + list(itertools.chain([1], [2]))", [1, 3, 6, 1, 2]),
    "bisects": ("n: int", "int", "bisect_left([1, 3, 5], 4) + bisect.bisect([1], 1)", 3),
    "words": ("s: str", "Tuple[str, str]", "(ascii_lowercase[:3], string.ascii_uppercase[:2])", ["abc", "AB"]),
    "regex": ("s: str", "List[str]", "re.findall(r'[a-z]+', 'ab cd') + re.split(',', 'x,y')", ["ab", "cd", "x", "y"]),
    "folds": ("n: int", "int", "reduce(lambda a, b: a * b, [2, 3]) + functools.reduce(int.__add__, [1, 2])", 9),
    "limits": (
        "n: float",
        "bool",
        "inf > 10**9 and math.inf > n and -inf < 0 and floor(2.5) == 2 and sqrt(4) == 2",
        True,
    ),
    "queues": ("n: int", "Deque[int]", "list(deque([1, 2], maxlen=1)) + list(collections.deque([3]))", [2, 3]),
    "groups": (
        "n: int",
        "DefaultDict[int, List[int]]",
        "(lambda d: (d[1].append(2), dict(d))[1])(defaultdict(list))['x']"
        " if False else [OrderedDict(a=1)['a'], sum(map(len, permutations([1, 2])))]",
        [1, 4],
    ),
    "chance": ("n: int", "bool", "0 <= random.random() < 1 and randint(1, 1) == 1", True),
    "typed": ("f: Callable[[int], int], s: Set[int], i: Iterable[Any]", "Union[int, Tuple[int, ...], None]", "5", 5),
}


def test_starter_code_works_without_imports(sandbox):
    for name, (arguments, result, body, value) in STARTERS.items():
        asked = [1] * (arguments.count(": "))
        method = f"class Solution:\n    def {name}(self, {arguments}) -> {result}:\n        return {body}\n"
        function = f"def {name}({arguments}) -> {result}:\n    return {body}\n"
        cached = f"@cache\ndef helper(n):\n    return n\n@lru_cache(None)\ndef other(n): return n\n{function}"
        later, text = f"from __future__ import annotations\n{method}", f"'Text.'\n{function}"
        tests = {"inputs": [asked], "outputs": [value], "fn_name": name}
        for program in (method, function, cached, later, text):
            assert right(sandbox, program, tests) == 1, program


WORKING = [
    "def gcd(a, b): return a + b\ndef solve(n): return gcd(20, 22)",
    "count = 42\ndef solve(n): return count",
    "import datetime\ndef solve(n): return datetime.datetime(2000, 1, 1).year - 1958",
    "from datetime import datetime\ndef solve(n): return datetime(2000, 1, 1).year - 1958",
    "import time\ndef solve(n): return 42 if time.time() > 1e9 else 0",
    "def solve(n): return sum([20, 22]) if open and pow(2, 3, 5) == 3 and max(1, 2) == 2 and hash else 0",
    "def solve(n): return len(list(zip([1], [2]))) + 41 if any([1]) and all([1]) and abs(-1) == 1 else 0",
    "import sys\nsys.setrecursionlimit(9999)\ndef f(n): return n and 1 + f(n - 1)\ndef solve(n): return f(8000) - 7958",
    "class Solution:\n    def solve(self, n): return 42",
    "class Counter:\n    total = 42\ndef solve(n): return Counter.total",
    "e = 40\npi = 2\ndef solve(n): return e + pi",
    "from math import *\nfrom collections import *\ndef solve(n): return floor(42.5)",
    "def solve(n):\n    import re as string\n    return 42 if string.match('a', 'a') else 0",
    "if __name__ == '__main__':\n    print('main')\ndef solve(n): return 42",
    "def solve(n): return 42 if type(n) is int and isinstance(n, int) and str(1) == '1' and int('1') == 1 else 0",
    "def solve(n): return 42 if round(2.5) == 2 and range(3)[1] == 1 and sorted([2, 1]) == [1, 2] else 0",
]


def test_the_prelude_changes_no_program_that_works_without_it(sandbox):
    tests = {"inputs": [[1]], "outputs": [42], "fn_name": "solve"}
    assert [program for program in WORKING if right(sandbox, program, tests) != 1] == []


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("gcd", [12, 18], 6),
        ("sorted", [[2, 1]], [1, 2]),
        ("reduce", [], 1),
        ("Counter", ["aa"], {"a": 2}),
    ],
)
def test_a_function_of_the_prelude_is_not_an_answer(sandbox, name, arguments, value):
    tests = {"inputs": [arguments], "outputs": [value], "fn_name": name}
    for program in ("pass", "def other(): pass", "class Solution:\n    pass", f"def f():\n    def {name}(): pass"):
        assert right(sandbox, program, tests) == 0


def test_errors_name_the_lines_of_the_program(sandbox):
    program = "def solve(nums: List[int]):\n\n    return 1 / nums[0]"
    [result] = sandbox.run_tests(program, [Case(arguments="[[0]]")], function="solve")
    assert "line 3" in result.stderr and "1 / nums[0]" in result.stderr


SPAWN = """
import multiprocessing
def square(n):
    return n * n
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(sum(pool.map(square, range(int(input())))))
"""


def test_spawned_processes_work_in_tests_of_a_program(sandbox):
    tests = {"inputs": ["3\n", "4\n"], "outputs": ["5\n", "14\n"]}
    assert right(sandbox, SPAWN, tests, limits=Limits(wall_s=40)) == 1


FILES = """
import glob, os, sys, tempfile
n = input()
places = {".", tempfile.gettempdir(), "/tmp", "/dev/shm", os.path.expanduser("~")}
seen = []
for place in places:
    seen += glob.glob(f"{place}/seen_*") + glob.glob(f"{place}/.seen_*") + glob.glob(f"{place}/*/seen_*")
for place in places:
    for name in (f"seen_{n}", f".seen_{n}", f"dir_{n}/seen_{n}"):
        try:
            os.makedirs(os.path.dirname(f"{place}/{name}"), exist_ok=True)
            open(f"{place}/{name}", "w").close()
            os.chmod(os.path.dirname(f"{place}/{name}"), 0o700)
        except OSError:
            pass
sys.path.insert(0, ".")
with open("planted.py", "x") as file:
    file.write("value = " + n)
import planted
print(planted.value, len(seen), len(os.listdir(".")) > 3)
"""


@CONTAINED
def test_tests_do_not_see_files_of_each_other(sandbox):
    results = sandbox.run_tests(FILES, [Case(stdin=f"{n}\n") for n in range(12)])
    assert [result.stdout for result in results] == [f"{n} 0 True\n" for n in range(12)]


def test_a_test_does_not_see_memory_environment_or_modules_of_the_one_before(sandbox):
    program = """
import builtins, os, sys, math
def solve(n):
    seen = [getattr(builtins, "mark", 0), os.environ.get("MARK", ""), getattr(math, "mark", 0), getattr(sys, "mark", 0)]
    builtins.mark = math.mark = sys.mark = 1
    os.environ["MARK"] = "1"
    os.umask(0o777), os.chdir("/"), sys.path.clear()
    return seen
"""
    tests = {"inputs": [[n] for n in range(8)], "outputs": [[0, "", 0, 0]] * 8, "fn_name": "solve"}
    assert right(sandbox, program, tests) == 1
