"""The choice of a level, by a test program that tries to escape."""

import errno
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gem.errors import BadValue, SandboxError
from gem.sandbox import Result, Status, make_sandbox
from gem.sandbox.forkserver.host import probe
from gem.sandbox.forkserver.host.execution import SetupFailed
from gem.tools.python.tool import PythonCodeTool

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")
REFUSED = {"reach a network": errno.EPERM, "read the host's files": errno.EACCES}

# Makes the kernel refuse the system calls in `refused` for this process and its children.
REFUSE = """
import ctypes, errno, struct
from gem.sandbox.forkserver.syscalls import NUMBERS
code = [(0x20, 0, 0, 0)]
for name in refused:
    code += [(0x15, 0, 1, NUMBERS[name]), (0x06, 0, 0, 0x00050000 | errno.EPERM)]
code.append((0x06, 0, 0, 0x7FFF0000))
data = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(data))
libc = ctypes.CDLL(None)
libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_ulong)
assert libc.prctl(38, 1, None, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP
"""
NO_ISOLATION = f"refused = ['unshare', 'landlock_create_ruleset']{REFUSE}"

# Becomes a user for whom RLIMIT_NPROC applies. A home folder of root that contains the interpreter is opened to all.
UNPRIVILEGED = """
import os, sys
from gem.sandbox.forkserver import linux
if os.getuid() == 0:
    home = os.path.expanduser("~")
    if sys.base_prefix.startswith(home + "/"):
        linux.unshare(linux.NEW_MOUNTS)
        linux.mount("", "/", flags=linux.RECURSIVE | linux.PRIVATE)
        folder = os.open(sys.base_prefix, os.O_RDONLY)
        linux.mount("tmpfs", home, "tmpfs", 0, "mode=755")
        os.makedirs(sys.base_prefix)
        linux.mount(f"/proc/self/fd/{folder}", sys.base_prefix, flags=linux.BIND)
        os.close(folder)
    os.setgid(61234)
    os.setuid(61234)
"""


@pytest.fixture(autouse=True)
def without_a_named_level(monkeypatch):
    monkeypatch.delenv("GEM_SANDBOX_LEVEL", raising=False)


@pytest.fixture
def outcomes(monkeypatch):
    """Replaces the test of each level: a reason, "" if the level holds, or an exception; a list is used up in order."""

    def set_outcomes(**outcomes):
        def test(level):
            outcome = outcomes[level].pop(0) if isinstance(outcomes[level], list) else outcomes[level]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(probe, "_test", test)
        monkeypatch.setattr(probe, "PAUSES_S", (0.0, 0.0))
        forget()

    def forget():
        probe.why_not.cache_clear()
        probe._warn.cache_clear()

    yield set_outcomes
    forget()


def in_a_new_process(code, **environment):
    """Run Python code and return its stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def printed(attempts, *, pid=1, forks=errno.EAGAIN, status=Status.OK):
    return Result(status=status, stdout=json.dumps({"attempts": attempts, "pid": pid}) + f"\n{forks}\n")


# ---- what the test program prints


def test_a_level_holds_if_every_attempt_is_refused():
    assert probe._escapes("ns", printed(REFUSED)) == ""
    assert probe._escapes("lsm", printed(REFUSED, pid=7)) == ""


def test_a_level_holds_if_the_program_is_killed_for_starting_too_many_processes():
    assert probe._escapes("lsm", printed(REFUSED, forks="", status=Status.KILLED)) == ""


@pytest.mark.parametrize(
    ("level", "result", "why"),
    [
        ("ns", printed({"reach a network": 0}), "reach a network"),
        ("ns", printed(REFUSED, pid=7), "see other processes"),
        ("lsm", printed({"read the host's files": 0}, pid=7), "read the host's files"),
        ("lsm", printed(REFUSED, forks=0), "start unlimited processes"),
    ],
)
def test_a_level_does_not_hold_if_an_attempt_succeeds(level, result, why):
    assert probe._escapes(level, result) == f"a program can {why}"


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (Result(status=Status.ERROR, stderr="Boom\n"), "ended with error: Boom"),
        (Result(status=Status.TIMEOUT), "ended with timeout"),
        (printed(REFUSED, forks="", status=Status.TIMEOUT), "timed out"),
        (printed({"read the host's files": errno.EMFILE}), "met EMFILE"),
        (printed(REFUSED, forks=errno.ENOMEM), "met ENOMEM"),
    ],
)
def test_a_program_that_fails_or_meets_a_shortage_decides_nothing(result, why):
    with pytest.raises(SandboxError, match=why):
        probe._escapes("ns", result)


def test_the_program_reports_its_escapes_where_it_is_not_isolated(monkeypatch):
    run_once = probe.run_once
    monkeypatch.setattr(probe, "run_once", lambda level, source, limits: run_once("basic", source, limits))
    assert "reach a network" in probe._test("lsm")


# ---- shortages


def others_can_run_this_python():
    folders = [sys.executable, *map(str, Path(sys.executable).parents)]
    return os.getuid() != 0 or all(os.stat(path).st_mode & 0o001 for path in folders)


@pytest.mark.skipif(not others_can_run_this_python(), reason="the interpreter is in a folder that is closed to others")
@pytest.mark.slow
def test_too_few_processes_are_an_error_and_not_a_lower_level():
    best = in_a_new_process(f"{UNPRIVILEGED}from gem.sandbox import make_sandbox; print(make_sandbox().level)")[0]
    code = f"""{UNPRIVILEGED}
import resource
from gem.sandbox.forkserver.host import probe
probe.PAUSES_S = (0.1,)
from gem.errors import SandboxError
from gem.sandbox import make_sandbox
soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
try:
    print("got", make_sandbox().level)
except SandboxError as e:
    assert "Resource temporarily unavailable" in str(e), e
resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
print(make_sandbox().level)
"""
    assert in_a_new_process(code)[0] == best


def failed(number, call="fork"):
    return SetupFailed({"failed": "", "errno": number, "call": call})


@pytest.mark.parametrize("name", ["EAGAIN", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC"])
def test_a_shortage_in_the_server_is_undecided_and_a_refusal_is_a_reason(name, monkeypatch):
    def fail(number):
        def run_once(*_):
            raise failed(number)

        monkeypatch.setattr(probe, "run_once", run_once)

    fail(getattr(errno, name))
    with pytest.raises(SandboxError, match=f"fork: {name}"):
        probe._test("ns")
    fail(errno.EPERM)
    assert probe._test("ns") == "fork: EPERM (Operation not permitted)"


def test_an_undecided_test_is_repeated(outcomes):
    outcomes(ns=[SandboxError("the fork server died"), failed(errno.ENOMEM), ""])
    assert probe.choose() == "ns"


def test_an_undecided_level_is_an_error_and_is_tested_again_at_the_next_call(outcomes):
    outcomes(ns=[failed(errno.ENOMEM)] * 3 + [""], lsm="")
    with pytest.raises(SandboxError, match=r"could not test .*'ns'.*fork: ENOMEM.*GEM_SANDBOX_LEVEL"):
        probe.choose()
    assert probe.choose() == "ns"


def test_a_decided_level_is_not_tested_again(outcomes):
    outcomes(ns=["unshare: EPERM"], lsm=[""])
    assert [probe.choose(), probe.choose()] == ["lsm", "lsm"]


def test_a_limit_of_zero_namespaces_is_a_refusal_although_the_kernel_reports_a_shortage():
    code = """
from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.host import probe
try:
    linux.unshare(linux.NEW_USER)
except OSError:
    raise SystemExit(print("no user namespaces"))
with open("/proc/sys/user/max_user_namespaces", "w") as file:  # of the new namespace
    file.write("0")
print(probe.why_not("ns"))
"""
    out, _ = in_a_new_process(code)
    if out == "no user namespaces\n":
        pytest.skip("this machine has no user namespaces")
    assert "not available: unshare: ENOSPC" in out


FEW_FILES = """
import os, resource, tempfile
from gem.errors import SandboxError
from gem.sandbox import make_sandbox
from gem.sandbox.forkserver.host import probe
probe.PAUSES_S = ()
tempfile.tempdir = folder
before = set(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
"""


@pytest.mark.parametrize("level", ["ns", "lsm"])
@pytest.mark.parametrize("most", [64, 32])
def test_a_level_holds_also_with_a_small_limit_on_open_files(level, most, tmp_path):
    if probe.why_not(level):
        pytest.skip(f"level {level} is not available here")
    code = f"""folder, most, level = {str(tmp_path)!r}, {most}, {level!r}
{FEW_FILES}
print(repr(probe.why_not(level)))
with make_sandbox("zygote", level=level) as sandbox:
    print(sandbox.run("print(1)").stdout, end="")
    with sandbox.session() as session:
        print(session.run("2").stdout, end="")
    if most < 64 and level == "ns":
        try: sandbox.machine()
        except SandboxError as e: print(e)
"""
    said, *machine = in_a_new_process(code)[0].split("\n1\n2\n")
    assert said == "''"
    if most < 64 and level == "ns":
        assert "at most 32 files may be open" in machine[0] and "ulimit -n" in machine[0]


@pytest.mark.parametrize("most", [8, 10, 12, 14, 16])
def test_a_test_without_descriptors_names_the_limit_and_leaves_neither_files_nor_descriptors(most, tmp_path):
    if probe.why_not("lsm"):
        pytest.skip("this machine has no Landlock")
    code = f"""folder, most = {str(tmp_path)!r}, {most}
{FEW_FILES}
for _ in range(2):
    try: print("got", repr(probe.why_not("lsm")))
    except SandboxError as e: print([part in str(e) for part in ("Too many open", "at most {most} files", "ulimit")])
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
print(set(os.listdir("/proc/self/fd")) - before, os.listdir(folder))
"""
    assert in_a_new_process(code)[0] == "[True, True, True]\n" * 2 + "set() []\n"


# ---- the default


def test_the_highest_level_that_holds_is_used(outcomes):
    outcomes(ns="", lsm="")
    assert probe.choose() == "ns"


def test_a_lower_level_that_isolates_is_reported_once(outcomes, caplog):
    outcomes(ns="level 'ns' is not available: unshare: EPERM", lsm="")
    with caplog.at_level(logging.WARNING):
        assert [probe.choose(), probe.choose()] == ["lsm", "lsm"]
        assert probe.choose("lsm") == "lsm"
    [message] = [record.getMessage() for record in caplog.records]
    assert "using sandbox level 'lsm'" in message and "unshare: EPERM" in message
    assert "GEM_SANDBOX_LEVEL=lsm" in message


def test_without_isolation_the_default_is_an_error_that_names_the_remedies(outcomes):
    outcomes(ns="unshare: EPERM", lsm="landlock_create_ruleset: ENOSYS")
    with pytest.raises(SandboxError) as caught:
        probe.choose()
    for part in ("unshare: EPERM", "ENOSYS", "bubblewrap", "docker run", '"remote"', "GEM_SANDBOX_LEVEL=basic"):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["darwin", "win32"])
def test_on_other_systems_the_default_is_an_error_that_names_the_backends(name, monkeypatch, outcomes):
    outcomes()
    monkeypatch.setattr(sys, "platform", name)
    with pytest.raises(SandboxError) as caught:
        probe.choose()
    for part in ("requires Linux", '"docker"', '"podman"', '"remote"', "GEM_SANDBOX_LEVEL=basic"):
        assert part in str(caught.value)
    assert "bubblewrap" not in str(caught.value)


@pytest.mark.parametrize("accepted", [{"level": "basic"}, {"require": "basic"}])
def test_running_without_isolation_is_accepted_by_name_with_one_warning(accepted, outcomes, caplog):
    outcomes(ns="unshare: EPERM", lsm="landlock_create_ruleset: ENOSYS")
    with caplog.at_level(logging.WARNING):
        assert [probe.choose(**accepted), probe.choose(**accepted)] == ["basic", "basic"]
    assert len(caplog.records) == 1 and "does not isolate" in caplog.text


def test_the_environment_names_the_default_level(outcomes, monkeypatch):
    outcomes(ns="", lsm="")
    monkeypatch.setenv("GEM_SANDBOX_LEVEL", "basic")
    assert [probe.choose(), probe.choose("auto"), probe.choose("lsm")] == ["basic", "basic", "lsm"]
    with pytest.raises(SandboxError, match=r"'ns' is required.*'basic'"):
        probe.choose(require="ns")


def test_an_empty_environment_variable_is_not_a_level(outcomes, monkeypatch):
    outcomes(ns="", lsm="")
    monkeypatch.setenv("GEM_SANDBOX_LEVEL", "")
    assert probe.choose() == "ns"


def test_a_level_that_is_named_or_required_is_never_replaced(outcomes):
    outcomes(ns="unshare: EPERM", lsm="")
    for arguments in ({"level": "ns"}, {"require": "ns"}):
        with pytest.raises(SandboxError, match="unshare: EPERM"):
            probe.choose(**arguments)


def test_an_unknown_level_is_an_error_that_suggests_the_closest_one():
    with pytest.raises(BadValue, match="did you mean 'basic'"):
        probe.choose("bassic")
    with pytest.raises(BadValue, match="no level 'auto'"):
        probe.choose(require="auto")


def test_a_machine_that_refuses_isolation_runs_programs_only_if_that_is_accepted_by_name():
    """The kernel refuses the calls, as in a container with a strict profile."""
    code = f"""{NO_ISOLATION}
from gem.errors import SandboxError
from gem.sandbox import get_sandbox
from gem.envs.questions.code_env import CodeEnv
from gem.tools.python.tool import PythonCodeTool
from gem.utils.sandbox import run_python

env = CodeEnv(dataset=[{{"problem": "Print 1.", "tests": {{"inputs": [""], "outputs": ["1"]}}}}])
env.reset(seed=0)
for use in (
    lambda: PythonCodeTool().execute_action("<python>print(1)</python>"),
    lambda: PythonCodeTool(stateful=True).execute_action("<python>print(1)</python>"),
    lambda: env.step("```python\\nprint(1)\\n```"),
    lambda: run_python("print(1)"),
    get_sandbox,
):
    try:
        print(use())
    except SandboxError as e:
        print("unshare: EPERM" in str(e), "landlock_create_ruleset: EPERM" in str(e), "=basic" in str(e))
print(run_python("print(2)", sandbox_type="none"))
"""
    assert in_a_new_process(code)[0] == "True True True\n" * 5 + "(True, '2\\n', '')\n"
    code = f"""{NO_ISOLATION}
from gem.tools.python.tool import PythonCodeTool
for _ in range(2):
    print(PythonCodeTool().execute_action("<python>print(1)</python>")[2], end="")
"""
    out, err = in_a_new_process(code, GEM_SANDBOX_LEVEL="basic")
    assert out == "Code execution result: 1\n\n" * 2 and err.count("does not isolate programs") == 1


def test_a_machine_without_namespaces_uses_landlock_and_says_so_once():
    if probe.why_not("lsm"):
        pytest.skip("this machine has no Landlock")
    code = f"""refused = ["unshare"]{REFUSE}
from gem.sandbox import make_sandbox
for _ in range(2):
    with make_sandbox() as sandbox:
        print(sandbox.level, sandbox.run("print(1)").stdout, end="")
"""
    out, err = in_a_new_process(code)
    assert out == "lsm 1\n" * 2 and err.count("unshare: EPERM") == 1


# ---- the report


def test_a_report_names_what_enforces_each_guarantee():
    for level in probe.LEVELS:
        report = probe.report(level)
        assert (report.backend, report.level) == ("zygote", level)
        assert set(report.guarantees) == set(
            ("network", "files", "processes", "process_limit", "memory", "disk", "cpu", "wall", "output", "kernel")
        )
        assert all(report.guarantees.values()) == (level != "basic")


def test_a_report_says_that_only_a_cgroup_stops_all_processes_between_cells(monkeypatch):
    monkeypatch.setenv("GEM_SANDBOX_CGROUP", "0")
    assert any("between the cells" in note for note in probe.report("basic").notes)


def test_a_report_says_why_a_higher_level_is_not_used(outcomes):
    outcomes(ns="level 'ns' is not available: unshare: EPERM", lsm=SandboxError("fork: EAGAIN"))
    notes = probe.report("basic").notes
    assert "unshare: EPERM" in notes[0] and "fork: EAGAIN" in notes[1]


def test_a_tool_that_never_runs_a_program_needs_no_isolation(outcomes):
    outcomes(ns="unshare: EPERM", lsm="landlock_create_ruleset: ENOSYS")
    assert PythonCodeTool().instruction_string()
    with pytest.raises(SandboxError):
        make_sandbox()
