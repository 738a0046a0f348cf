"""Machines: a private file system and a shell that keeps its state. They need level ns."""

import os
import signal
import socket
import subprocess
import sys
import threading

import pytest
from waiting import idle, until

from gem.errors import BadValue, SandboxError
from gem.sandbox import Limits, Status, make_sandbox
from gem.sandbox.machine import EPOCH_S, FileEntry, entries_of

LIMITS = Limits(wall_s=30, disk_bytes=8 << 20, memory_bytes=256 << 20, processes=32)


@pytest.fixture(scope="module")
def sandbox(machines):
    made = make_sandbox("zygote", level="ns", limits=LIMITS)
    yield made
    made.close()


@pytest.fixture
def machine(sandbox):
    with sandbox.machine(files={"a.txt": "one\n", "deep/b.txt": b"\xff"}) as made:
        yield made


def output(machine, command, **options):
    result = machine.exec(command, **options)
    assert result.status in (Status.OK, Status.ERROR), result
    return result.stdout


def wait_until(machine, command, text):
    until(lambda: text in output(machine, command))


# ---- the shell


def test_the_shell_keeps_folder_variables_functions_and_aliases(machine):
    output(machine, "cd deep; export A='x y'; b=2; f() { echo f$b; }; alias g='echo alias'")
    assert output(machine, 'pwd; echo "$A $b"; f; g') == "/home/user/deep\nx y 2\nf2\nalias\n"
    assert machine.folder == "/home/user/deep"


def test_both_streams_arrive_in_order_with_the_exit_status(machine):
    result = machine.exec("echo 1; echo 2 >&2; echo 3; (exit 7)")
    assert (result.status, result.exit_code, result.stdout) == (Status.ERROR, 7, "1\n2\n3\n")
    assert output(machine, "echo $?") == "7\n"


def test_a_syntax_error_is_reported_and_does_not_end_the_shell(machine):
    output(machine, "a=1")
    result = machine.exec("if then")
    assert result.exit_code == 2 and "line 1: syntax error" in result.stdout and not result.state_lost
    assert output(machine, "echo $a") == "1\n"


def test_here_documents_and_comments_work(machine):
    assert output(machine, "cat <<EOF\n$HOME\nEOF\n# the end") == "/home/user\n"


def test_a_command_reads_an_empty_standard_input(machine):
    assert output(machine, "cat; read x; echo $?") == "1\n"


def test_a_shell_that_exits_is_replaced_and_keeps_folder_and_exports(machine):
    output(machine, "cd deep; export A=1; b=2")
    result = machine.exec("set -e; false; echo never")
    assert (result.exit_code, result.stdout, result.state_lost) == (1, "", True)
    assert output(machine, 'pwd; echo "$A" "$b"') == "/home/user/deep\n1 \n"


def test_a_working_directory_that_is_removed_becomes_the_root(machine):
    output(machine, "mkdir x; cd x; rmdir ../x")
    machine.exec("exit 0")
    assert output(machine, "pwd") == "/\n"


def test_long_output_is_cut_in_the_middle_with_a_note(sandbox):
    with sandbox.machine(limits=Limits(output_bytes=1000)) as machine:
        result = machine.exec("seq 3000")
    assert result.truncated and len(result.stdout) < 1100
    assert result.stdout.startswith("1\n2\n") and "bytes cut" in result.stdout and result.stdout.endswith("3000\n")


def test_background_processes_stay_and_stop_between_commands(sandbox, machine):
    output(machine, "(i=0; while :; do i=$((i + 1)); echo $i > count; done) &")
    until(lambda: idle(sandbox))
    before = machine.read("count")
    wait_until(machine, f"[ $(cat count) -eq {before.decode()} ] || echo counting", "counting")
    assert "Running" in output(machine, "jobs")


# ---- limits


def test_a_command_that_times_out_is_killed_and_the_shell_is_kept(sandbox):
    def is_kept():  # if it answers within HANGUP_S
        with sandbox.machine() as machine:
            output(machine, "a=1; sleep 1000 & ")
            result = machine.exec("echo before; sleep 1000; true", wall_s=0.5)
            assert result.status is Status.TIMEOUT
            kept = result.stdout.split("\n")[0], output(machine, "echo $a; jobs | grep -c sleep")
            return kept == ("before", "1\n1\n")

    until(is_kept)


def test_a_shell_that_spins_is_replaced(machine, limit_after_output):
    output(machine, "cd deep")
    result = machine.exec("trap '' INT TERM; echo deaf; while :; do :; done")
    assert result.status is Status.TIMEOUT and result.state_lost
    assert output(machine, "pwd") == "/home/user/deep\n"


def test_endless_output_is_stopped(machine):
    assert machine.exec("yes").status is Status.OUTPUT_LIMIT
    assert output(machine, "echo fine") == "fine\n"


def test_the_cpu_limit_holds_for_each_command(sandbox):
    with sandbox.machine(limits=Limits(wall_s=60, cpu_s=0.3)) as machine:
        assert machine.exec("while :; do :; done").status is Status.TIMEOUT
        assert output(machine, "echo fine") == "fine\n"


def test_a_full_disk_is_an_error_of_the_command(machine):
    assert "No space left" in output(machine, "head -c 20M /dev/zero > big")
    with pytest.raises(OSError, match="space"):
        machine.write({"more": b"x" * 4096})
    assert output(machine, "rm big; echo fine") == "fine\n"


def test_a_fork_bomb_is_held_and_can_be_stopped(machine):
    machine.exec("f() { f | f & }; f", wall_s=1)
    machine.stop()
    assert output(machine, "echo fine").endswith("fine\n")  # after what the bomb wrote before it was stopped


# ---- files


def test_files_are_read_and_written_with_fixed_times(machine):
    machine.write([FileEntry("new/x.sh", b"echo hi\n", mode=0o755), FileEntry("/srv/link", b"/home/user", "link")])
    assert machine.read("deep/b.txt") == b"\xff" and machine.read("/home/user/a.txt") == b"one\n"
    assert output(machine, "new/x.sh; readlink /srv/link; stat -c %Y a.txt new new/x.sh deep .") == (
        f"hi\n/home/user\n{EPOCH_S}\n{EPOCH_S}\n{EPOCH_S}\n{EPOCH_S}\n" + output(machine, "stat -c %Y .")
    )
    with pytest.raises(FileNotFoundError):
        machine.read("missing")
    with pytest.raises(IsADirectoryError):
        machine.read("deep")


def test_entries_show_everything_that_was_created(machine):
    output(machine, "mkdir -m 000 shut; ln -s nowhere l; echo 1 > /tmp/t; chmod 000 deep/b.txt; mkfifo p")
    found = {entry.path: entry for entry in machine.entries()}
    assert found["/home/user/l"].content == b"nowhere" and found["/tmp/t"].content == b"1\n"
    assert found["/home/user/shut"].mode == 0 and found["/home/user/deep/b.txt"][1:4] == (b"\xff", "file", 0)
    assert "/home/user/p" not in found and "/usr" not in found
    assert {entry.path for entry in machine.entries("/tmp")} == {"/tmp/t"}


def test_files_with_more_bytes_than_the_disk_are_not_read(machine):
    output(machine, "for i in 1 2 3; do truncate -s 4M hole$i; done")
    with pytest.raises(OSError, match="too large"):
        machine.entries()


def test_a_folder_of_the_host_is_uploaded(machine, tmp_path):
    (tmp_path / "run").write_text("echo run\n")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "link").symlink_to("run")
    machine.upload(tmp_path, "/opt/tool")
    assert output(machine, "/opt/tool/link; stat -c %a /opt/tool/run") == "run\n755\n"


@pytest.mark.parametrize("path", ["", "/", "../x", "a/../b", "a\0b"])
def test_a_path_that_names_no_file_is_an_error(path):
    with pytest.raises(BadValue, match="path in a machine"):
        entries_of({path: ""})


@pytest.mark.parametrize("path", ["\ud800", "a\0b"])
def test_a_name_that_no_file_can_have_is_an_error_when_it_is_read(machine, path):
    with pytest.raises(OSError):
        machine.read(path)
    assert machine.read("a.txt") == b"one\n"


# ---- state


def test_a_machine_continues_from_a_saved_state(sandbox, machine):
    output(machine, "cd deep; export A='1 2'; echo x > y; ln -s y z; chmod 600 y; touch -d 2020-01-01 y; mkdir -m 0 s")
    state = machine.get_state()
    with sandbox.machine(state=state) as other:
        assert output(other, "pwd; echo $A; cat z; stat -c '%a %Y' y") == "/home/user/deep\n1 2\nx\n600 1577836800\n"
    with sandbox.machine(state=state) as again:
        assert again.get_state()["hash"] == state["hash"]
    assert output(machine, "pwd") == "/home/user/deep\n"


def test_a_machine_with_background_processes_has_no_state(machine):
    output(machine, "sleep 1000 &")
    with pytest.raises(BadValue, match=r"background processes cannot be saved: (sleep|bash)$"):
        machine.get_state()


def test_a_state_whose_archive_is_gone_or_changed_is_an_error(sandbox, machine):
    state = machine.get_state()
    with open(state["place"], "ab") as file:
        file.write(b"x")
    with pytest.raises(BadValue, match="hash differs"):
        sandbox.machine(state=state)
    os.remove(state["place"])
    with pytest.raises(BadValue, match="GEM_MACHINE_STATES"):
        sandbox.machine(state=state)


def test_states_are_kept_in_a_chosen_folder(machine, tmp_path, monkeypatch):
    monkeypatch.setenv("GEM_MACHINE_STATES", str(tmp_path / "kept"))
    assert machine.get_state()["place"].startswith(str(tmp_path / "kept"))


# ---- containment


def test_locale_and_time_zone_are_fixed(machine):
    assert output(machine, "date +%Z; locale 2>/dev/null | grep LC_ALL; echo $USER $HOME") == (
        "UTC\nLC_ALL=C.UTF-8\nuser /home/user\n"
    )


def test_files_of_the_host_are_out_of_reach(machine, tmp_path):
    (tmp_path / "secret").write_text("expected answer")
    shown = output(machine, f"cat {tmp_path}/secret /etc/shadow; ls {tmp_path} /proc/*/cwd/..; ls /run /var/log")
    assert "expected answer" not in shown and shown.count("No such file") >= 4
    for command in ("echo x > /usr/bin/planted", "rm /usr/bin/env", "rm /bin", "mv /usr /tmp/usr"):
        assert machine.exec(command).exit_code != 0
    assert os.path.exists("/usr/bin/env") and not os.path.exists("/usr/bin/planted")
    assert "gem" not in output(machine, "python3 -c 'import gem; print(gem.__name__)' 2>/dev/null").split()


def test_there_is_no_network(machine):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert machine.exec(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached >&3").exit_code != 0
    code = "import socket; socket.socket(socket.AF_UNIX).connect('/run/dbus/system_bus_socket')"
    assert machine.exec(f'/usr/bin/python3 -c "{code}" 2>/dev/null').exit_code != 0


def test_other_processes_cannot_be_seen_or_killed(sandbox, machine):
    mine = os.getpid()
    with sandbox.machine() as other:
        output(other, "echo other > x")
        machine.exec(f"kill -9 {mine}; kill -9 -1; kill -9 1; kill -STOP 1; killall5 -9")
        assert output(other, "cat x") == "other\n"
    assert output(machine, "ls /proc | grep -c '^[0-9]*$' > n; [ $(cat n) -lt 10 ] && echo few") == "few\n"


def test_process_one_cannot_be_read_or_traced(machine):
    command = "cat /proc/1/environ /proc/1/maps; ls /proc/1/fd; head -c 1 /proc/1/mem; exec 9>/proc/1/mem; echo end"
    shown = output(machine, command)
    assert shown.count("ermission denied") >= 4 and "python" not in shown


def test_privileges_cannot_be_gained(machine):
    assert machine.exec("unshare -r true || mount -t tmpfs x /mnt || chroot / true").exit_code != 0
    assert "CapEff:\t0000000000000000" in output(machine, "cat /proc/self/status")


def test_a_machine_that_exceeds_its_memory_ends(sandbox):
    with sandbox.machine() as machine:
        if "cgroup" not in sandbox.report().guarantees["memory"]:
            pytest.skip("memory of many processes is only limited exactly by a cgroup")
        fill = "for i in 1 2 3 4 5 6; do python3 -c 'x = bytearray(90 << 20); import time; time.sleep(60)' & done; wait"
        result = machine.exec(fill)
        assert result.status is Status.MEMORY and result.state_lost and machine.ended == "memory"
        with pytest.raises(SandboxError, match="has ended: memory"):
            machine.exec("true")


def test_nothing_is_left_after_close(sandbox):
    machine = sandbox.machine()
    seconds = f"4321.{os.getpid()}"
    output(machine, f"setsid sleep {seconds} >/dev/null 2>&1 & echo started")
    machine.close()
    machine.close()
    left = f"sleep\0{seconds}".encode()
    until(lambda: not any(left in command_line(pid) for pid in os.listdir("/proc") if pid.isdecimal()))
    with pytest.raises(SandboxError, match="has ended: closed"):
        machine.exec("true")


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


# ---- failures of the engine


def test_a_dead_fork_server_is_an_error_and_no_result(sandbox):
    with make_sandbox("zygote", level="ns", limits=LIMITS) as own, own.machine() as machine:
        output(machine, "true")
        servers = [zygote.pid for zygote in own._pool.zygotes()]
        timer = threading.Timer(0.3, lambda: [os.kill(server, signal.SIGKILL) for server in servers])
        timer.start()
        with pytest.raises(SandboxError):
            machine.exec("sleep 100")
        timer.join()


def test_another_level_is_refused_with_the_way_out(sandbox):
    try:
        other = make_sandbox("zygote", level="lsm")
    except SandboxError as e:
        pytest.skip(str(e))
    with other, pytest.raises(SandboxError, match=r"^a machine needs .*'lsm'.*podman") as caught:
        other.machine()
    assert "\n" not in str(caught.value)


def test_the_report_names_machines(sandbox):
    assert sandbox.report().machines.startswith("a private root")


REPLACES_A_FILE = """
import os, shutil
from gem.sandbox import make_sandbox
from gem.sandbox.forkserver import linux
linux.unshare(linux.NEW_MOUNTS)
linux.mount("", "/", flags=linux.RECURSIVE | linux.PRIVATE)
linux.mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755")
for name in ("ld.so.cache", "passwd", "group"):
    shutil.copy(f"/etc/{name}", "/mnt")
linux.mount("/mnt", "/etc", flags=linux.BIND)
with make_sandbox("zygote", level="ns") as sandbox:
    for _ in range(2):
        with sandbox.machine() as machine:
            print(machine.exec("test -s /etc/ld.so.cache && echo found").stdout, end="")
        shutil.copy("/etc/ld.so.cache", "/etc/new")
        os.replace("/etc/new", "/etc/ld.so.cache")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can replace files of /etc, here in a mount namespace")
def test_machines_start_after_the_system_has_replaced_a_configuration_file(machines):
    """Each installation of a package writes /etc/ld.so.cache anew."""
    done = subprocess.run([sys.executable, "-c", REPLACES_A_FILE], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("found\nfound\n", "")


# ---- programs outside the shell


def test_a_program_outside_the_shell_has_a_clean_environment(machine):
    output(
        machine, "export PATH=/tmp LD_PRELOAD=/tmp/x.so A=1; cd /tmp; cat() { echo forged; }; alias cat='echo forged'"
    )
    result = machine.run(["/bin/bash", "-c", 'cat; pwd; echo "$PATH $LD_PRELOAD$A"'], stdin=b"in\n")
    assert (result.status, result.stdout) == (Status.OK, "in\n/home/user\n/usr/local/bin:/usr/bin:/bin \n")
    assert machine.run(["/bin/sh", "-c", "echo x >&2; exit 3"]).exit_code == 3
    assert output(machine, "pwd; echo $A") == "/tmp\n1\n"


def test_output_of_a_program_outside_the_shell_is_only_its_own(machine):
    output(machine, "(while :; do echo forged; done) & (while :; do echo forged >/proc/$$/fd/1; done) &")
    result = machine.run(["/bin/sh", "-c", "sleep 0.1; echo mine"])
    assert result.stdout == "mine\n"


def test_a_program_outside_the_shell_has_limits(machine):
    assert machine.run(["/bin/sleep", "60"], wall_s=0.3).status is Status.TIMEOUT
    result = machine.run(["/bin/sh", "-c", "while :; do echo xxxxxxxx; done"])
    assert result.status is Status.OUTPUT_LIMIT and len(result.stdout) == machine.limits.output_bytes
    assert machine.run(["/bin/sh", "-c", "exec >&-; (sleep 100 &) ; exec sleep 0.1"]).status is Status.OK
    assert machine.run(["/bin/cat"], stdin=b"x" * 300_000).stdout.startswith("xxx")
    assert machine.run(["/bin/true"], stdin=b"x" * 300_000).status is Status.OK
    assert machine.run(["/no/such/program"]).exit_code == 126


def test_processes_that_a_program_outside_the_shell_leaves_are_killed(machine):
    machine.run(["/bin/sh", "-c", "sleep 61 & sleep 0.1"])
    assert "sleep 61" not in output(machine, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")


def test_named_processes_and_their_children_survive_a_stop(machine):
    service = "bash -c 'echo $$ > pid; while :; do sleep 0.01; date +%N > tick; done'"
    ready = "until [ -s pid ] && [ -s tick ] && [ -s other ]; do sleep 0.01; done"
    output(machine, f"{service} & (while :; do date +%N > other; done) & {ready}")
    machine.stop(keep=[int(machine.read("/home/user/pid"))])
    before = machine.read("/home/user/tick"), machine.read("/home/user/other")
    until(lambda: machine.sleep(0.05) or machine.read("/home/user/tick") != before[0])
    assert machine.read("/home/user/other") == before[1]
    assert output(machine, "echo new shell") == "new shell\n"
