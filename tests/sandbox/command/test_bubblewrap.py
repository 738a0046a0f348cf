"""The bubblewrap backend. Skipped where it is not installed or cannot create namespaces."""

import os
import shutil
import threading

import pytest

from gem.errors import SandboxError
from gem.sandbox import Limits, Status, make_sandbox
from gem.testing.sandbox.check_sandbox import check_sandbox


@pytest.fixture(scope="module")
def sandbox():
    try:
        made = make_sandbox("bubblewrap")
    except SandboxError as e:
        pytest.skip(f"bubblewrap cannot run here: {e}")
    with made:
        yield made


def test_bubblewrap_passes_the_sandbox_checks(sandbox):
    findings = check_sandbox(sandbox)
    assert [(finding.name, finding.detail) for finding in findings if finding.status != "passed"] == []


def test_a_program_runs_as_user_nobody_and_has_no_capabilities(sandbox):
    status = sandbox.run("import os\nprint(os.getuid())\nprint(open('/proc/self/status').read())").stdout
    assert status.startswith("65534\n")
    assert (
        "CapEff:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
    )


def test_only_the_folders_of_the_run_are_writable(sandbox):
    code = (
        "import os\n"
        "def writable(path):\n"
        "    try: os.close(os.open(path + '/x', os.O_CREAT | os.O_WRONLY)); return True\n"
        "    except OSError: return False\n"
        "print([path for path in ('/', '/dev', '/usr', '/proc', '/var', '/tmp', '/dev/shm', '.') if writable(path)])"
    )
    assert sandbox.run(code).stdout == "['/tmp', '/dev/shm', '.']\n"


def test_the_disk_limit_covers_all_folders_together(sandbox):
    code = (
        "total = 0\n"
        "for path in ('/tmp/a', '/dev/shm/b'):\n"
        "    try:\n"
        "        for k in range(100): total += open(path + str(k), 'wb', 0).write(bytes(1 << 18))\n"
        "    except OSError: pass\n"
        "print(total <= 8 << 20)"
    )
    assert sandbox.run(code, limits=Limits(disk_bytes=8 << 20)).stdout == "True\n"


def test_a_session_outlives_the_thread_that_opened_it(sandbox):
    sessions = []

    def open_one():
        sessions.append(sandbox.session())
        sessions[0].run("x = 1")

    thread = threading.Thread(target=open_one)
    thread.start()
    thread.join()
    with sessions[0] as session:
        assert session.run("x").stdout == "1\n"


def test_a_signal_is_distinguished_from_an_exit_code(sandbox):
    result = sandbox.exec("kill -TERM $$")
    assert (result.status, result.signal, result.exit_code) == (Status.KILLED, 15, None)


def test_many_runs_leak_no_descriptors(sandbox):
    sandbox.run("1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        sandbox.run("1")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_bwrap_is_an_error_that_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="install the package 'bubblewrap'"):
        make_sandbox("bubblewrap")


def test_a_bwrap_that_does_not_work_raises_when_the_sandbox_is_created(monkeypatch, tmp_path):
    script = tmp_path / "bwrap"
    script.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError, match="bwrap: No permissions"):
        make_sandbox("bubblewrap")
    assert shutil.which("bwrap") == str(script)
