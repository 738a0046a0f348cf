"""A host with secrets and services, and snapshots of its state, which must be the same before and after a run."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

HOME = Path("/tmp/v/home")
WORK = Path("/tmp/v/work")  # the trainer's working directory
EXPECTED_OUTPUT = "CANARY_EXPECTED_51cc"
SECRETS = {
    ".ssh/id_rsa": "CANARY_SSH_9f3a",
    ".aws/credentials": "CANARY_AWS_11",
    ".netrc": "CANARY_NETRC_1",
    "important.txt": "CANARY_FILE_2",
    ".bashrc": "# rc",
}
ENVIRONMENT = {
    "HOME": str(HOME),
    "LANG": "C.UTF-8",
    "USER": "u",
    "OPENAI_API_KEY": "CANARY_ENV_77aa",
    "HF_TOKEN": "CANARY_ENV_hf22",
    "AWS_SECRET_ACCESS_KEY": "CANARY_ENV_aws3",
}
STDIN = "CANARY_STDIN_secret\n"
CANARY = re.compile(r"CANARY_(?:SSH|AWS|FILE|NETRC|ENV|CMDLINE|NET|STDIN|IPC|SESSION|GRADED)\w*")


def take_terminal() -> tuple[int, int]:
    """Continue in a child that leads a session with a controlling terminal. The parent reaps orphans.

    Returns:
        The descriptors of the terminal: master and slave.
    """
    master, slave = os.openpty()
    child = os.fork()
    if child:
        reap_until(child)
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    return master, slave


def reap_until(child: int) -> None:
    """Reap processes until this child ends; then exit with its status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


class Host:
    """Files, an environment, a terminal, listeners and another process, all with canaries.

    ``hits``: names of the listeners that were reached.
    """

    def __init__(self, master: int, slave: int) -> None:
        self.master, self.slave = master, slave
        self.hits: set[str] = set()
        write_files()
        os.chdir(WORK)
        self.listeners = listen(self.hits)
        make_ipc_objects()
        self.neighbour = subprocess.Popen(
            [sys.executable, "-S", "-c", "import time; time.sleep(1000)", "--api-key=CANARY_CMDLINE_1b"],
            stdin=subprocess.DEVNULL,
        )

    def snapshot(self) -> dict[str, object]:
        """The state that a run must not change."""
        return {
            "files": files(),
            "SysV IPC": ipc_objects(),
            "mounts": Path("/proc/self/mountinfo").read_text(),
            "terminal": (termios.tcgetattr(self.slave), os.tcgetpgrp(self.slave), waiting(self.slave), self._written()),
            "stdin": waiting(0),
            "neighbour": self._neighbour(),
            "limits": limits(),
            "priorities": [priority(pid) for pid in (0, self.neighbour.pid)],
            "environment": dict(os.environ),
            "working directory": WORK.is_dir() and os.path.samefile(".", WORK),
            "reached": frozenset(self.hits),
        }

    def _written(self) -> bool:
        """Whether anything was written to the terminal."""
        return bool(select.select([self.master], [], [], 0)[0])

    def _neighbour(self) -> str:
        if self.neighbour.poll() is not None:
            return "killed"
        return "stopped" if processes()[self.neighbour.pid].endswith((":T", ":t")) else "running"


def cgroups() -> list[str]:
    """Every cgroup below that of the envelope. Empty if cgroups are hidden."""
    found = Path("/sys/fs/cgroup").glob("**/cgroup.procs")
    return sorted(str(path.parent) for path in found if not os.path.ismount(path.parent))


def waiting(fd: int) -> int:
    """Number of bytes that can be read from a descriptor without blocking."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def write_files() -> None:
    for name, content in SECRETS.items():
        (HOME / name).parent.mkdir(parents=True, exist_ok=True)
        (HOME / name).write_text(content + "\n")
    WORK.mkdir(parents=True)
    (WORK / "tests.json").write_text(f'{{"inputs": ["1"], "outputs": ["{EXPECTED_OUTPUT}"]}}')


def listen(hits: set[str]) -> list[socket.socket]:
    """Start services that answer with a canary and record that they were reached."""
    addresses = {
        "loopback": (socket.AF_INET, ("127.0.0.1", 8765)),
        "metadata service": (socket.AF_INET, ("169.254.169.254", 80)),
        "abstract socket": (socket.AF_UNIX, "\0gem_abstract"),
        "unix socket": (socket.AF_UNIX, str(HOME / "docker.sock")),
    }
    listeners = []
    for name, (family, address) in addresses.items():
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen(8)
        threading.Thread(target=answer, args=(listener, name, hits), daemon=True).start()
        listeners.append(listener)
    for family, address in ((socket.AF_INET, ("127.0.0.1", 8766)), (socket.AF_UNIX, str(HOME / "log.sock"))):
        datagrams = socket.socket(family, socket.SOCK_DGRAM)
        datagrams.bind(address)
        threading.Thread(target=receive, args=(datagrams, hits), daemon=True).start()
        listeners.append(datagrams)
    return listeners


def answer(listener: socket.socket, name: str, hits: set[str]) -> None:
    while True:
        connection, _ = listener.accept()
        hits.add(name)
        with connection, contextlib.suppress(OSError):
            connection.settimeout(1)
            connection.recv(100)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nCANARY_NET_TOKEN\n")


def receive(datagrams: socket.socket, hits: set[str]) -> None:
    while True:
        datagrams.recvfrom(100)
        hits.add("datagrams")


def writable() -> list[str]:
    """Writable folders of an envelope, on which enter.sh mounts an empty tmpfs."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [place for _, place, kind, options, *_ in mounts if kind == "tmpfs" and "rw" in options.split(",")]


def files() -> dict[str, object]:
    """Every file and folder in writable places: path → mode, owner, links, size and time of modification."""
    seen: dict[str, object] = {}
    for root in writable():
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if not os.path.ismount(os.path.join(folder, name))]
            for path in (os.path.join(folder, name) for name in [*folders, *names]):
                with contextlib.suppress(OSError):
                    stat = os.lstat(path)
                    is_folder = os.path.isdir(path) and not os.path.islink(path)
                    times = () if is_folder else (stat.st_size, stat.st_mtime_ns)
                    seen[path] = (stat.st_mode, stat.st_uid, stat.st_nlink if times else 0, *times)
    return seen


def processes() -> dict[int, str]:
    """Every process: id → "name:state"."""
    seen = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit():
                line = Path(f"/proc/{entry}/stat").read_text(errors="replace")
                name = line[line.index("(") + 1 : line.rindex(")")]
                seen[int(entry)] = f"{name}:{line[line.rindex(')') + 2 :].split()[0]}"
    return seen


def peak_bytes() -> int:
    """Peak resident memory of this process."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10  # type: ignore[index]


def limits() -> object:
    import resource

    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return {name: resource.getrlimit(getattr(resource, name)) for name in names}


def priority(pid: int) -> tuple[int, int]:
    """Priorities of a process (0: this one) for the processors and for disks; the second is -1 if it is unknown."""
    number = {"x86_64": 252, "aarch64": 31}.get(os.uname().machine)
    return os.getpriority(os.PRIO_PROCESS, pid), -1 if number is None else _libc.syscall(number, 1, pid)


_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p


def make_ipc_objects() -> None:
    """Create SysV shared memory, a semaphore and a queue with one message. Their namespace ends with the envelope."""
    secret = b"CANARY_IPC_42"
    shared = _libc.shmget(0, 4096, 0o1600)
    ctypes.memmove(_libc.shmat(shared, None, 0), secret, len(secret))
    _libc.semget(0, 1, 0o1600)
    message = ctypes.create_string_buffer(struct.pack("l", 1) + secret)
    _libc.msgsnd(_libc.msgget(0, 0o1600), message, len(secret), 0)


def ipc_objects() -> list[list[str]]:
    """The SysV objects, without the times and the process that used them last; semaphores with their values."""
    kinds: dict[str, list[int]] = {"shm": [0, 1, 2, 3, 6], "sem": [0, 1, 2, 3], "msg": [0, 1, 2, 3, 4]}
    found = []
    for kind, columns in kinds.items():
        rows = [line.split() for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]]
        found.append([" ".join(row[column] for column in columns) for row in rows])
        if kind == "sem":
            found.append([str(_libc.semctl(int(row[1]), 0, 12)) for row in rows])  # 12: GETVAL
    return found
