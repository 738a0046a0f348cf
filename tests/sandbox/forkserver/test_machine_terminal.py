"""The terminal of a machine: interactive programs get keys and write to a screen. It needs level ns."""

import shutil

import pytest

from gem.errors import BadValue
from gem.sandbox import Limits, Status, make_sandbox
from gem.sandbox.forkserver.host.probe import SHELL_PATH
from gem.sandbox.screen import TerminalScreen, key_bytes

pytestmark = pytest.mark.usefixtures("machines")
LIMITS = Limits(wall_s=30, disk_bytes=8 << 20, memory_bytes=256 << 20, processes=32)


def needs(program):
    return pytest.mark.skipif(shutil.which(program, path=SHELL_PATH) is None, reason=f"needs {program}")


@pytest.fixture(scope="module")
def sandbox(machines):
    made = make_sandbox("zygote", level="ns", limits=LIMITS)
    yield made
    made.close()


class Typist:
    """Types into the terminal of a machine, and waits for texts on its screen."""

    def __init__(self, machine, **size):
        pytest.importorskip("pyte")
        self.machine, self.screen, self.open, self.size = machine, TerminalScreen(**size), True, size

    def type(self, *keys, **options):
        typed = self.machine.type_keys(b"".join(map(key_bytes, keys)), **self.size, **options)
        self.screen.feed(typed.output)
        self.open = typed.open
        return self.screen.text()

    def until(self, text, *keys):
        """Type keys, and then nothing until the screen has a text."""
        shown = self.type(*keys)
        for _ in range(600):
            if text in shown:
                return shown
            shown = self.type(wait_s=0.1)
        raise AssertionError(f"the screen never had {text!r}:\n{shown}")


@pytest.fixture
def machine(sandbox):
    with sandbox.machine(files={"a.txt": "one\ntwo\n"}) as made:
        yield made


def test_a_terminal_has_the_folder_and_variables_of_the_shell_and_a_size(machine):
    machine.exec("mkdir d; cd d; export A='x y'")
    typist = Typist(machine, columns=60, rows=10)
    assert typist.until("10 60", 'echo "$A"; pwd; tty; stty size', "Enter").split("\n")[1:5] == [
        "x y",
        "/home/user/d",
        "/dev/pts/0",
        "10 60",
    ]


@needs("vi")
def test_a_file_is_changed_with_vi(machine):
    typist = Typist(machine)
    typist.until('a.txt"', "vi a.txt", "Enter")
    typist.until("two", "Escape")  # some builds of Vim wait for a key first
    typist.type(":1", "Enter", "A", " changed", "Escape")
    typist.type(":wq", "Enter")
    for _ in range(600):
        if machine.read("a.txt") == b"one changed\ntwo\n":
            return
        typist.type(wait_s=0.1)
    raise AssertionError(typist.screen.text())


@needs("less")
def test_a_pager_shows_the_next_page(machine):
    machine.exec("seq 100 > n")
    typist = Typist(machine)
    assert "\n23\n" in typist.until("\n23\n", "less n", "Enter")
    assert typist.until("\n46\n", "Space").startswith("24\n")
    typist.until("$", "q")


def test_python_answers_at_its_prompt(machine):
    typist = Typist(machine)
    typist.until(">>>", "python3 -q", "Enter") if shutil.which("python3", path=SHELL_PATH) else pytest.skip("no python")
    assert typist.until("\n42", "6 * 7", "Enter")
    typist.until("$", "C-d")


def test_an_interrupt_ends_a_program_that_writes_without_end(machine):
    typist = Typist(machine)
    typist.until("$")
    typist.type("yes", "Enter")
    assert "y\ny\n" in typist.until("y\ny\n")
    typist.until("^C", "C-c")
    assert typist.until("still here", "clear; echo still here", "Enter")


def test_an_exclamation_mark_is_not_special(machine):
    assert "a!b\n" in Typist(machine).until("a!b\n", "echo a!b", "Enter")


def test_the_terminal_closes_with_its_shell_and_another_one_opens(machine):
    typist = Typist(machine)
    typist.until("$", "cd /tmp", "Enter")
    typist.type("exit", "Enter")
    for _ in range(600):
        if not typist.open:
            break
        typist.type(wait_s=0.1)
    machine.get_state()  # no process is left
    assert typist.until("/home/user", "pwd", "Enter")


def test_a_machine_without_free_terminals_says_so(machine):
    if shutil.which("python3", path=SHELL_PATH) is None:
        pytest.skip("needs python3")
    source = (
        "import os, time\nheld = []\ntry:\n while True:\n  held.append(os.openpty())\nexcept OSError:\n"
        " print('full', flush=True)\ntime.sleep(1000)\n"
    )
    machine.write({"hold.py": source})
    assert machine.exec("python3 hold.py > out & until grep -q full out; do sleep 0.05; done").ok
    typed = machine.type_keys(b"ls\r")
    assert not typed.open and typed.problem.startswith("no terminal could be opened: ")
    machine.exec("kill %1; wait")
    assert Typist(machine).until("fine", "echo fi''ne", "Enter")


def test_keys_that_are_not_typed_are_counted(machine):
    typist = Typist(machine)
    typed = machine.type_keys(b"x" * 100, wall_s=0)
    assert "last 100 bytes" in typed.problem
    typist.screen.feed(typed.output)
    typist.until("$")
    typed = machine.type_keys(b"cat\r" + b"y\r" * 100_000)
    count = int(typed.problem.split()[2])
    assert 0 < count < 200_000 and typed.open


def test_an_open_terminal_cannot_be_saved(machine):
    Typist(machine).until("$")
    with pytest.raises(BadValue, match="bash"):
        machine.get_state()


def test_commands_of_the_other_shell_run_while_a_program_waits(machine):
    typist = Typist(machine)
    typist.type("cat > b.txt", "Enter")
    typist.type("one", "Enter")
    assert machine.exec("echo 1").stdout == "1\n"
    typist.until("done", "C-d", "C-u", "echo do''ne", "Enter")
    assert machine.exec("cat b.txt").stdout.strip() == "one"


@needs("python3")
def test_the_limit_of_memory_ends_the_machine(sandbox, machine):
    if "cgroup" not in sandbox.report().guarantees["memory"]:
        pytest.skip("memory of many processes is only limited exactly by a cgroup")
    typist = Typist(machine)
    fill = "for i in 1 2 3 4 5 6; do python3 -c 'x = bytearray(90 << 20); import time; time.sleep(60)' & done"
    typist.type(fill, "Enter")
    for _ in range(600):
        if machine.ended:
            break
        typist.type(wait_s=0.1)
    assert machine.ended == Status.MEMORY.value and not typist.open


def test_stopping_the_machine_ends_the_terminal(machine):
    typist = Typist(machine)
    typist.type("sleep 1000", "Enter")
    machine.stop()
    assert machine.exec("ls /proc | grep -c '^[0-9]'").stdout <= "5\n"
    assert typist.until("again", "clear; echo again", "Enter")


def test_a_program_cannot_type_into_its_terminal(machine):
    source = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b'x')"
    machine.write({"t.py": source})
    if shutil.which("python3", path=SHELL_PATH) is None:
        pytest.skip("needs python3")
    assert Typist(machine).until("not permitted", "python3 t.py", "Enter")
