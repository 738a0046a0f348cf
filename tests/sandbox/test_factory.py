"""make_sandbox() and get_sandbox(): choice of backend, options, and the shared sandbox."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from gem.errors import BadValue, SandboxError, UnknownArgument
from gem.sandbox import Limits, factory, get_sandbox, make_sandbox


def test_the_limits_are_the_defaults_of_every_run():
    with make_sandbox("subprocess", limits=Limits(output_bytes=10)) as sandbox:
        assert sandbox.run("print('x' * 100)").truncated


def test_an_unknown_backend_is_an_error_that_suggests_the_closest_one():
    with pytest.raises(BadValue, match=r"'bubblewarp'.*'bubblewrap'.* auto, "):
        make_sandbox("bubblewarp")


def test_an_unknown_option_is_an_error_that_lists_the_options_of_the_backend():
    with pytest.raises(UnknownArgument, match=r"'subprocess' .*'level'.*\(options: none\)"):
        make_sandbox("subprocess", level="ns")


def test_on_windows_the_local_sandbox_is_an_error_that_names_other_backends(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SandboxError, match=r'"docker".*"podman" or "remote"'):
        make_sandbox()


def test_all_threads_share_one_sandbox():
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: get_sandbox("subprocess"), range(32)))
    assert len(found) == 1


@pytest.mark.parametrize(("backend", "level"), [("subprocess", "auto"), ("zygote", "basic")])
def test_a_closed_shared_sandbox_is_replaced(backend, level):
    first = get_sandbox(backend, level=level)
    first.close()
    second = get_sandbox(backend, level=level)
    assert second is not first and second.run("print(1)").stdout == "1\n"


def test_a_forked_process_creates_its_own_shared_sandbox():
    shared = get_sandbox("subprocess")
    reader, writer = os.pipe()
    with factory._lock, warnings.catch_warnings():  # as if another thread was creating one
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            try:
                mine = get_sandbox("subprocess")
                os.write(writer, repr((mine is shared, mine.run("print(1)").stdout)).encode())
            finally:
                os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        assert file.read() == "(False, '1\\n')"
    os.waitpid(pid, 0)
    assert get_sandbox("subprocess") is shared


def test_shared_sandboxes_are_closed_at_exit():
    code = (
        "from gem.sandbox import get_sandbox\n"
        "session = get_sandbox('subprocess').session()\n"
        "print(session.run('import os\\nprint(os.getpid(), os.getcwd())').stdout, end='', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    pid, folder = int(done.stdout.split()[0]), done.stdout.split()[1]
    assert not os.path.exists(folder)
    with pytest.raises(ProcessLookupError):
        for _ in range(1000):
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    raise ProcessLookupError


def test_a_sandbox_that_cannot_be_created_is_not_shared(monkeypatch, tmp_path):
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    for _ in range(2):
        with pytest.raises(SandboxError, match="not installed"):
            get_sandbox("docker")
    monkeypatch.setenv("PATH", path)
