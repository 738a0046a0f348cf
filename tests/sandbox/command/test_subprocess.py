"""The subprocess backend, and the base class of all backends that start one command per run."""

import logging
import os
import sys
import threading
import warnings

import pytest
from waiting import until

from gem.errors import BadValue, SandboxError
from gem.sandbox import Case, Limits, Status, make_sandbox
from gem.sandbox.command import subprocess_


@pytest.fixture(scope="module")
def sandbox():
    with make_sandbox("subprocess", limits=Limits(wall_s=60)) as made:
        yield made


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(pid):
    until(lambda: not alive(pid))


def test_a_program_runs_with_this_interpreter_and_its_libraries(sandbox):
    result = sandbox.run("import sys, numpy; print(sys.prefix)")
    assert (result.status, result.stdout, result.stderr) == (Status.OK, f"{sys.prefix}\n", "")


def test_all_processes_of_a_run_are_killed_at_a_timeout(sandbox, limit_after_output):
    code = "import os, time\nif os.fork() == 0:\n    print(os.getpid(), end='')\ntime.sleep(600)"
    result = sandbox.run(code)
    assert result.status is Status.TIMEOUT and result.signal == 9
    wait_until_gone(int(result.stdout))


def test_a_daemon_that_holds_stdout_is_not_waited_for(sandbox):
    code = "import os, time\npid = os.fork()\nif pid == 0: time.sleep(600)\nprint(pid)"
    result = sandbox.run(code)
    assert result.ok
    wait_until_gone(int(result.stdout))


def test_the_working_directory_is_removed_even_when_it_is_locked(sandbox):
    result = sandbox.run("import os\nprint(os.getcwd())\nos.makedirs('a/b')\nos.chmod('a/b', 0)\nos.chmod('a', 0)")
    assert result.ok and not os.path.exists(result.stdout.strip())


def test_a_missing_command_fails_as_in_a_shell(sandbox):
    assert sandbox.exec(["no-such-command"]).exit_code == 127
    assert sandbox.exec(["/etc"]).exit_code == 126


@pytest.mark.parametrize("command", [[], ["a\0b"], [1]])
def test_an_invalid_command_raises_bad_value(sandbox, command):
    with pytest.raises(BadValue, match="command must be"):
        sandbox.exec(command)


def test_a_function_that_does_not_return_plain_data_has_no_value(sandbox):
    [result] = sandbox.run_tests("def f(): return {1}", [Case(arguments="[]")], function="f")
    assert result.value is None and result.status is Status.ERROR and "set" in result.stderr


def test_a_function_that_exits_has_no_value(sandbox):
    program = "import os, sys\ndef leave(n): sys.exit(n)\ndef vanish(n): os._exit(n)"
    for function in ("leave", "vanish"):
        [result] = sandbox.run_tests(program, [Case(arguments="[4]")], function=function)
        assert (result.status, result.exit_code, result.value) == (Status.ERROR, 4, None)


def test_a_long_value_is_returned_completely(sandbox):
    [result] = sandbox.run_tests(
        "def f(n): return 'x' * n", [Case(arguments="[3000000]", value_bytes=4_000_000)], function="f"
    )
    assert result.status is Status.OK and result.value == '"' + "x" * 3_000_000 + '"'


def test_a_method_of_a_class_is_called_on_a_new_instance(sandbox):
    program = "class Box:\n    def __init__(self): self.n = 0\n    def add(self, k): self.n += k; return self.n"
    cases = [Case(arguments="[2]"), Case(arguments="[3]")]
    assert [result.value for result in sandbox.run_tests(program, cases, function="Box.add")] == ["2", "3"]


def test_a_memory_error_has_status_memory(sandbox):
    [called] = sandbox.run_tests("def f(): raise MemoryError", [Case(arguments="[]")], function="f")
    assert called.status is Status.MEMORY
    with sandbox.session() as session:
        assert session.run("bytearray(1 << 60)").status is Status.MEMORY


def test_a_cell_reports_its_cpu_time(sandbox):
    with sandbox.session() as session:
        assert session.run("for _ in range(3_000_000): pass").cpu_s > 0.001


def test_a_cell_that_ends_its_interpreter_loses_the_state(sandbox):
    with sandbox.session() as session:
        session.run("x = 1")
        result = session.run("print('last words')\nimport os\nos._exit(7)")
        assert (result.exit_code, result.stdout, result.state_lost) == (7, "last words\n", True)
        assert session.run("import os\nos._exit(0)").status is Status.ERROR
        assert session.run("'x' in globals()").stdout == "False\n"


def test_processes_of_a_session_end_with_it(sandbox):
    with sandbox.session() as session:
        pid = int(session.run("import os, time\npid = os.fork()\nif pid == 0: time.sleep(600)\npid").stdout)
        assert alive(pid)
    wait_until_gone(pid)


def test_closing_a_session_ends_a_cell_running_in_another_thread(sandbox, tmp_path):
    session, results = sandbox.session(), []
    program = f"import time; open({str(tmp_path / 'started')!r}, 'w'); time.sleep(600)"
    thread = threading.Thread(target=lambda: results.append(session.run(program, wall_s=600)))
    thread.start()
    until((tmp_path / "started").exists)
    session.close()
    thread.join(60)
    assert not thread.is_alive() and results[0].state_lost


def test_a_closed_sandbox_raises(sandbox):
    other = make_sandbox("subprocess")
    other.close()
    other.close()
    for work in (lambda: other.run("1"), lambda: other.exec("true"), lambda: other.session().run("1")):
        with pytest.raises(SandboxError, match="closed"):
            work()


def test_closing_the_sandbox_kills_runs_of_other_threads(tmp_path):
    other, results = make_sandbox("subprocess", limits=Limits(wall_s=600)), []
    program = f"import time; open({str(tmp_path / 'started')!r}, 'w'); time.sleep(600)"
    thread = threading.Thread(target=lambda: results.append(other.run(program)))
    thread.start()
    until((tmp_path / "started").exists)
    other.close()
    thread.join(60)
    assert not thread.is_alive() and results[0].status is Status.KILLED


def test_many_runs_leak_no_descriptors(sandbox):
    sandbox.run("1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        sandbox.run("1")
        with sandbox.session() as session:
            session.run("1")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_forked_process_can_use_the_sandbox(sandbox):
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns about forks in processes with threads
        pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, sandbox.run("print('forked')").stdout.encode())
            sandbox.close()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        assert file.read() == "forked\n"
    os.waitpid(pid, 0)
    assert sandbox.run("print('parent')").stdout == "parent\n"


def test_an_interpreter_that_cannot_start_raises_sandbox_error(sandbox, monkeypatch):
    for executable, said in (("/no/such/python", "could not be started"), ("/bin/false", "failed")):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(SandboxError, match=said):
            sandbox.run("1")


def test_it_warns_once_that_it_does_not_isolate(monkeypatch, caplog):
    monkeypatch.setattr(subprocess_, "_warned", False)
    with caplog.at_level(logging.WARNING, "gem.sandbox"):
        for _ in range(2):
            make_sandbox("subprocess").close()
    [message] = [record.message for record in caplog.records if "does not isolate" in record.message]
    assert "subprocess" in message and "network access" in message


def test_the_report_shows_that_little_is_guaranteed(sandbox):
    promised = {name for name, means in sandbox.report().guarantees.items() if means}
    assert promised == {"wall", "output"}
