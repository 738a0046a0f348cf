"""Sandboxes and machines in containers. Only with -m containers."""

import os
import subprocess
import sys
import tempfile

import pytest

from gem.errors import BadValue, SandboxError
from gem.sandbox import FileEntry, Limits, Status, make_sandbox
from gem.sandbox.containers.engine import LABEL, ContainerEngine
from gem.sandbox.machine import FOLDER
from gem.testing.sandbox.check_sandbox import check_sandbox

pytestmark = pytest.mark.containers


@pytest.fixture(scope="module")
def sandbox(debian, engine):
    with make_sandbox(engine, image=debian, limits=Limits(wall_s=20, output_bytes=4_000)) as made:
        yield made


@pytest.fixture(scope="module")
def machine(sandbox):
    with sandbox.machine(files=[FileEntry("/work/run.sh", b"echo $NAME > out", mode=0o755)], folder="/work") as made:
        yield made


def test_programs_in_containers_pass_the_checks_of_sandboxes(debian, engine):
    with make_sandbox(engine, image=debian) as sandbox:
        findings = check_sandbox(sandbox)
    assert [(found.name, found.detail) for found in findings if found.status == "failed"] == []
    unchecked = {found.name for found in findings if found.status == "unchecked"}
    assert unchecked <= {"cpu-of-children", "cells-end", "kernel-slots"}


def test_the_report_says_how_machines_are_isolated(sandbox, engine):
    assert engine in sandbox.report().machines and "no network" in sandbox.report().machines


def test_the_shell_keeps_folder_variables_and_functions(machine):
    assert machine.exec("export NAME=gem; mkdir -p sub; cd sub; f() { echo fun; }").ok
    result = machine.exec("f; ../run.sh; cat out; (exit 4)")
    assert (result.exit_code, result.stdout, result.status) == (4, "fun\ngem\n", Status.ERROR)
    assert machine.folder == "/work/sub" and machine.read("out") == b"gem\n"
    machine.exec("cd /work")


def test_both_streams_are_shown_in_order(machine):
    assert machine.exec("echo a; echo b >&2; echo c").stdout == "a\nb\nc\n"


def test_a_command_that_times_out_is_killed_and_background_jobs_stay(machine):
    machine.exec("sleep 1000 & echo $! > /work/job")
    result = machine.exec("echo before; sleep 1000", wall_s=1)
    assert result.status is Status.TIMEOUT and result.stdout.startswith("before\n") and not result.state_lost
    assert machine.processes() == [int(machine.read("/work/job"))]
    with pytest.raises(BadValue, match="background processes"):
        machine.get_state()
    machine.stop()
    assert machine.processes() == []


def test_a_shell_that_spins_or_exits_is_replaced(machine):
    machine.exec("cd /work; export KEPT=1; lost=1")
    spun = machine.exec("while :; do :; done", wall_s=1)
    assert spun.status is Status.TIMEOUT and spun.state_lost
    assert machine.exec("echo $KEPT-$lost; pwd").stdout == "1-\n/work\n"
    assert machine.exec("exit 3").state_lost
    assert machine.exec("echo $KEPT").stdout == "1\n"
    assert machine.processes() == []


def test_output_is_bounded(machine):
    assert machine.exec("yes").status is Status.OUTPUT_LIMIT
    assert "bytes cut" in machine.exec("seq 10000").stdout


def test_programs_outside_the_shell_have_a_clean_environment(machine):
    machine.exec("export KEPT=1; alias cat=true")
    result = machine.run(["/bin/sh", "-c", "cat; echo ${KEPT:-clean}; echo error >&2; exit 2"], stdin=b"in\n")
    assert (result.stdout, result.exit_code) == ("in\nclean\n", 2)
    assert machine.run(["/bin/sleep", "60"], wall_s=1).status is Status.TIMEOUT
    assert machine.processes() == []


def test_files_are_read_written_and_listed(machine):
    machine.write([FileEntry("/data", b"", FOLDER), FileEntry("/data/x", b"\0\xff", mode=0o600)])
    machine.exec("ln -sf x /data/link; mkfifo -m 600 /data/pipe")
    assert machine.read("/data/x") == machine.read("/data/link") == b"\0\xff"
    listed = {entry.path: entry.kind for entry in machine.entries("/data")}
    assert listed["/data/x"] == "file" and listed["/data/link"] == "link"
    with pytest.raises(FileNotFoundError):
        machine.read("/nothing")
    with pytest.raises(IsADirectoryError):
        machine.read("/data")


def test_there_is_no_network(machine):
    assert machine.exec("cat /proc/net/dev | grep -c :").stdout.strip() == "1"


def test_a_state_is_restored_in_another_container(sandbox):
    with sandbox.machine(folder="/home") as first:
        first.exec("echo data > file; export NAME=gem; cd /tmp")
        state = first.get_state()
    with sandbox.machine(state=state) as second:
        assert second.exec("cat /home/file; echo $NAME; pwd").stdout == "data\ngem\n/tmp\n"
    with pytest.raises(BadValue, match="gone"):
        sandbox.machine(state={**state, "image": "localhost/none:1"})


def test_a_machine_in_which_no_process_can_be_started_has_ended(sandbox, monkeypatch):
    def fail(*_):
        raise SandboxError("runc: Resource temporarily unavailable")  # as after a bomb

    with sandbox.machine() as machine:
        assert machine.exec("true").ok and machine.exec("exit").state_lost
        monkeypatch.setattr(machine, "_start_shell", fail)
        result = machine.exec("true")
        assert (result.status, result.state_lost) == (Status.KILLED, True)
        assert machine.ended == "no shell can be started in it"
    with sandbox.machine() as machine:
        monkeypatch.setattr(machine, "_processes", fail)
        with pytest.raises(SandboxError, match=r"has ended: .*cannot be killed"):
            machine.stop()
        assert machine.ended == "its processes cannot be killed"


def test_writing_files_leaves_no_copy_of_them_on_the_host(machine, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    machine.write({"/work/copied": b"x"})
    assert machine.read("/work/copied") == b"x"
    assert not list(tmp_path.iterdir()) and not os.listdir(machine.engine.folder)


def test_hard_links_are_listed_as_files(machine):
    machine.exec("mkdir -p /linked/in; cd /linked; echo one > a; ln a in/b; ln a z; mkfifo pipe; cd /work")
    found = {entry.path: entry.content for entry in machine.entries("/linked")}
    assert found == {"/linked/a": b"one\n", "/linked/in": b"", "/linked/in/b": b"one\n", "/linked/z": b"one\n"}
    every = {entry.path: entry.content for entry in machine.entries()}
    assert every.items() >= found.items()
    assert machine.read("/linked/in/b") == b"one\n"


@pytest.mark.parametrize("name", ["gone", "\\xff"])
def test_a_shell_that_ends_in_a_removed_or_odd_folder_is_replaced(sandbox, name):
    with sandbox.machine() as machine:
        machine.exec(f"mkdir $'/tmp/{name}'; cd $'/tmp/{name}'; export A=1")
        assert machine.exec("rmdir /tmp/gone; exit 3").state_lost
        assert machine.exec("pwd; echo $A").stdout == "/\n1\n" and (machine.folder, machine.ended) == ("/", "")


def test_closing_leaves_no_container(sandbox, engine):
    machine = sandbox.machine()
    machine.exec("sleep 1000 &")
    machine.close()
    listed = subprocess.run(
        [engine, "ps", "--all", "--quiet", "--filter", f"name={machine.name}"], capture_output=True, check=True
    )
    assert listed.stdout == b""
    with pytest.raises(SandboxError, match="ended: closed"):
        machine.exec("true")


def test_the_container_and_folders_of_a_killed_process_are_removed_by_the_next_engine(
    debian, engine, machine, tmp_path, monkeypatch
):
    program = (
        f"import os; from gem.sandbox import make_sandbox as f; machine = f({engine!r}, image={debian!r}).machine(); "
        "print(machine.name, flush=True); os.kill(os.getpid(), 9)"
    )
    call, own = [sys.executable, "-c", program], os.environ | {"TMPDIR": str(tmp_path)}
    name = subprocess.run(call, stdout=subprocess.PIPE, text=True, env=own).stdout.strip()
    assert list(tmp_path.glob("gem-*"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = ContainerEngine(engine)
    listing = ("ps", "--all", "--format", "{{.Names}}", "--filter", f"label={LABEL}")
    assert name in engine.ask(*listing).decode().split()
    ask, calls = engine.ask, []
    monkeypatch.setattr(engine, "ask", lambda *call, **options: calls.append(call) or ask(*call, **options))
    engine.flags(debian)
    # podman forgets a container that runs on if its client is killed while another one waits for the container to end
    waiting = ("--time", "0") if engine.name == "podman" else ()
    assert ("rm", "--force", *waiting, name) in calls
    names = engine.ask(*listing).decode().split()
    assert name not in names and machine.name in names
    assert [str(path) for path in tmp_path.glob("gem-*")] == [engine.folder]
