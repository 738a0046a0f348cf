"""Machines of a remote sandbox: the client against the server. They need level ns."""

import pytest
from waiting import until

from gem.errors import BadValue, SandboxError
from gem.sandbox import Limits, Status, make_sandbox
from gem.sandbox.machine import EPOCH_S
from gem.sandbox.remote.server import SandboxServer

for library in ("aiohttp", "starlette", "uvicorn"):
    pytest.importorskip(library, reason="needs the extra [serve]")

LIMITS = Limits(wall_s=30, disk_bytes=8 << 20, memory_bytes=256 << 20, processes=32)


@pytest.fixture(scope="module")
def inner(machines):
    with make_sandbox("zygote", level="ns", limits=LIMITS) as made:
        yield made


@pytest.fixture(scope="module")
def server(inner):
    with SandboxServer(inner, token="right") as running:
        yield running


@pytest.fixture
def remote(server):
    with make_sandbox("remote", url=server.url, token="right", limits=LIMITS) as made:
        yield made


@pytest.fixture
def machine(remote):
    with remote.machine(files={"a.txt": "one\n", "deep/b.txt": b"\xff"}) as made:
        yield made


def test_the_shell_keeps_its_folder_and_variables_from_command_to_command(machine):
    assert machine.folder == "/home/user"
    assert machine.exec("cd deep; export A=1").ok and machine.folder == "/home/user/deep"
    result = machine.exec("echo $A; cat ../a.txt; (exit 3)")
    assert (result.stdout, result.exit_code, result.status) == ("1\none\n", 3, Status.ERROR)


def test_a_command_that_times_out_is_killed_and_background_jobs_can_be_stopped(machine):
    assert machine.exec("sleep 1000 & sleep 1000", wall_s=0.5).status is Status.TIMEOUT
    machine.exec("sleep 1000 &")
    with pytest.raises(BadValue, match="background processes cannot be saved"):
        machine.get_state()
    machine.stop()
    assert machine.exec("echo back").stdout == "back\n"


def test_a_job_in_the_background_computes_while_the_machine_sleeps(machine):
    machine.exec("(while [ ! -e go ]; do sleep .01; done; echo done > answer) &")
    machine.write({"go": ""})

    def has_answered():
        machine.sleep(0.02)
        return any(entry.path.endswith("/answer") and entry.content for entry in machine.entries("/home/user"))

    until(has_answered)


def test_files_are_written_read_and_listed(machine, tmp_path):
    machine.write({"new/c.bin": bytes(range(256))})
    assert machine.read("new/c.bin") == bytes(range(256)) and machine.read("/home/user/deep/b.txt") == b"\xff"
    (tmp_path / "tool.sh").write_text("echo from the host")
    machine.upload(tmp_path / "tool.sh", "tool.sh")
    found = {entry.path: entry for entry in machine.entries("/home/user")}
    assert found["/home/user/new/c.bin"].content == bytes(range(256)) and found["/home/user/tool.sh"].mtime_s == EPOCH_S
    assert machine.exec("sh tool.sh").stdout == "from the host\n"


def test_a_missing_file_raises_what_open_would(machine):
    with pytest.raises(FileNotFoundError) as caught:
        machine.read("nowhere")
    assert str(caught.value) == "[Errno 2] No such file or directory: '/home/user/nowhere'"
    with pytest.raises(IsADirectoryError):
        machine.read("/home")


def test_names_of_files_need_not_be_utf_8(machine):
    assert machine.exec("mkdir $'a\\xff'; cd $'a\\xff'; echo x > b").ok and machine.folder == "/home/user/a\udcff"
    assert "/home/user/a\udcff/b" in [entry.path for entry in machine.entries("/home/user")]
    assert machine.read("b") == b"x\n"
    with pytest.raises(FileNotFoundError):
        machine.read("c")


def test_a_program_outside_the_shell_gets_its_input_and_nothing_of_the_shell(machine):
    machine.exec("export A=1; cat() { echo replaced; }")
    assert machine.run(["/bin/sh", "-c", "cat; echo $A"], stdin=b"given ").stdout == "given \n"


def test_keys_are_typed_into_a_terminal(machine):
    typed = machine.type_keys(b"echo $((6 * 7))\r", columns=40)
    assert b"42" in typed.output and typed.open and typed.problem == ""


def test_a_machine_continues_from_a_saved_state(remote, machine):
    machine.exec("cd deep; export A='1 2'; echo x > y")
    state = machine.get_state()
    assert list(state) == ["hash"]
    with remote.machine(state=state) as other:
        assert other.folder == "/home/user/deep" and other.exec("echo $A; cat y").stdout == "1 2\nx\n"


def test_a_state_that_the_server_does_not_have_is_an_error(remote):
    with pytest.raises(BadValue, match="not have this state"):
        remote.machine(state={"hash": "0" * 64, "place": "/etc/passwd"})


def test_a_machine_that_exceeds_its_memory_ends_and_says_so(remote):
    with remote.machine() as machine:
        if "cgroup" not in remote.report().guarantees["memory"]:
            pytest.skip("memory of many processes is only limited exactly by a cgroup")
        fill = "for i in 1 2 3 4 5 6; do python3 -c 'x = bytearray(90 << 20); import time; time.sleep(60)' & done; wait"
        assert machine.exec(fill).status is Status.MEMORY and machine.ended == "memory"
        with pytest.raises(SandboxError):
            machine.exec("true")


def test_a_machine_that_ends_between_commands_says_why(remote):
    with remote.machine() as machine:
        if "cgroup" not in remote.report().guarantees["memory"]:
            pytest.skip("memory of many processes is only limited exactly by a cgroup")
        fill = "(while [ ! -e go ]; do sleep .01; done; exec python3 -c 'x = bytearray(90 << 20); input()' < pipe) &"
        assert machine.exec(f"mkfifo pipe; sleep 1000 > pipe & {fill * 6}").ok and machine.ended == ""
        with pytest.raises(SandboxError, match="the machine has ended: memory"):
            machine.write({"go": ""})
            machine.sleep(10)
        assert machine.ended == "memory"


def test_a_closed_machine_is_gone_from_the_server(server, remote):
    machine = remote.machine()
    opened = len(server._api.machines)
    machine.close()
    machine.close()
    assert len(server._api.machines) == opened - 1
    with pytest.raises(SandboxError, match="this machine is closed"):
        machine.exec("true")


def test_machines_end_with_their_server(inner):
    with SandboxServer(inner, token="right") as server, make_sandbox("remote", url=server.url, token="right") as remote:
        remote.machine(limits=LIMITS)
        api = server._api
        machine = next(iter(api.machines.values()))
    assert api.machines == {} and machine.ended == "closed"


def test_an_unknown_machine_or_method_is_an_error_with_its_name(remote, machine):
    with pytest.raises(SandboxError, match=r"no machine unknown.*3600 s"):
        remote._send("POST", "/machines/unknown/exec", {"command": "true"}, None, 0)
    with pytest.raises(BadValue, match="a machine has no operation 'format'"):
        machine._call("format", {}, bool)


def test_a_sandbox_without_machines_says_which_have_them():
    with (
        make_sandbox("subprocess") as sandbox,
        SandboxServer(sandbox, token="right") as server,
        make_sandbox("remote", url=server.url, token="right") as remote,
        pytest.raises(SandboxError, match=r"SubprocessSandbox has no machines.*docker or podman"),
    ):
        remote.machine()


def test_text_that_looks_like_base64_arrives_as_it_is_and_bytes_are_no_text(machine):
    assert machine.run(["/bin/cat"], stdin=b"aGk=").stdout == "aGk="
    assert machine.run(["/bin/cat"], stdin="aGk=").stdout == "aGk="
    assert "bHMK" in machine.type_keys(b"echo bHMK\n", wait_s=5.0).output.decode()
    for wrong in (lambda: machine.exec(b"ls"), lambda: machine.read(b"/etc/passwd")):
        with pytest.raises(TypeError):
            wrong()
    assert machine.run([]).exit_code == 126
