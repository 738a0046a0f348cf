"""Which sandbox one gets, and who shares it."""

import os
import subprocess
import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from gem.errors import BadValue, SandboxError, UnknownArgument
from gem.sandbox import Limits, factory, get_sandbox, make_sandbox


@pytest.fixture
def levels(monkeypatch):
    """What the zygote backend was asked for, by a stand-in that only remembers it."""
    asked = []

    class Remembers:
        def __init__(self, *, limits, level="auto", require=None):
            asked.append(level)

    module = types.ModuleType("remembers")
    module.Remembers = Remembers
    monkeypatch.setitem(sys.modules, "remembers", module)
    monkeypatch.setitem(factory.BACKENDS, "zygote", "remembers:Remembers")
    monkeypatch.delenv("GEM_SANDBOX_LEVEL", raising=False)
    return asked


def test_the_limits_are_the_defaults_of_every_run():
    with make_sandbox("subprocess", limits=Limits(output_bytes=10)) as sandbox:
        assert sandbox.run("print('x' * 100)").truncated


def test_an_unknown_backend_is_named_with_the_closest_one():
    with pytest.raises(BadValue, match=r"no sandbox 'bubblewarp'; did you mean 'bubblewrap'\?  \(available: auto, "):
        make_sandbox("bubblewarp")


def test_an_unknown_option_is_named_with_what_the_backend_takes():
    with pytest.raises(UnknownArgument, match=r"sandbox 'subprocess' has no option 'level'  \(options: none\)"):
        make_sandbox("subprocess", level="ns")


def test_the_level_comes_from_the_environment_where_none_is_asked_for(levels, monkeypatch):
    make_sandbox()
    monkeypatch.setenv("GEM_SANDBOX_LEVEL", "lsm")
    make_sandbox()
    make_sandbox("zygote", level="auto")
    make_sandbox(level="basic")
    assert levels == ["auto", "lsm", "lsm", "basic"]


def test_the_shared_sandbox_is_one_for_all_threads():
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: get_sandbox("subprocess"), range(32)))
    assert len(found) == 1


def test_a_shared_sandbox_that_was_closed_is_made_anew():
    first = get_sandbox("subprocess")
    first.close()
    second = get_sandbox("subprocess")
    assert second is not first and second.run("print(1)").stdout == "1\n"


def test_a_forked_process_makes_its_own():
    shared = get_sandbox("subprocess")
    reader, writer = os.pipe()
    with factory._lock, warnings.catch_warnings():  # as when another thread was asking for one
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


def test_what_is_shared_is_closed_at_exit():
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


def test_what_cannot_be_made_is_not_shared(monkeypatch, tmp_path):
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    for _ in range(2):
        with pytest.raises(SandboxError, match="not installed"):
            get_sandbox("docker")
    monkeypatch.setenv("PATH", path)
