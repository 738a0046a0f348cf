"""The isolation levels without namespaces: "basic", and "lsm", which adds Landlock and seccomp.

The methods of a level are called in this order: isolate_server() in the parent of the server; set_up() in the server
before it imports libraries; prepare() in the server after the imports. Then for every run: new_folder() and fork() in
the server, isolate() in the child before it runs the program, kill() and clear() in the server.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.isolation import file_locks, semaphores
from gem.sandbox.forkserver.isolation.landlock import REFER_SINCE, LandlockRules, hide
from gem.sandbox.forkserver.isolation.seccomp import Filter
from gem.sandbox.forkserver.limits import limits, processes
from gem.sandbox.forkserver.limits.monitor import TESTS
from gem.sandbox.forkserver.limits.removal import remove_tree
from gem.sandbox.forkserver.protocol import RunRequest, ServerSettings

ON_LINUX = sys.platform.startswith("linux")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
CONFIGURATION = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives", "/etc/ssl", "/etc/mime.types")
NETWORK_CONFIGURATION = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services", "/etc/gai.conf")
MACHINE = ("/proc/cpuinfo", "/proc/meminfo", "/proc/version")
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
NEW_USERS = (linux.CAP_SETUID, linux.CAP_SETGID, linux.CAP_CHOWN, linux.CAP_DAC_OVERRIDE, linux.CAP_KILL)
# Blocks of user ids for the runs of a server if it runs as root: first id, ids per block, number of blocks. The first
# ids belong to no user of a machine, but a container may have only 65,536 ids.
BLOCKS = ((1_900_000_000, 5_000, 1_000), (10_000, 1_000, 50))
# RLIMIT_NPROC counts all tasks of a user. Where runs share a user, it leaves room for several runs at their limit, and
# the cgroup or the monitor enforces the limit of each. With less room, a few such runs would keep others from starting
# a thread; with more, one run could start more processes between two checks.
ROOM = 8
_RANDOM = random.SystemRandom()  # keeps the state that programs inherit
TRUNCATION_SINCE, SIGNALS_SINCE = 3, 6  # Landlock ABI versions


def readable_paths(settings: ServerSettings) -> list[str]:
    """Return the paths, besides the working directory, that programs may read."""
    network = NETWORK_CONFIGURATION if settings.network else ()
    return [*SYSTEM, *CONFIGURATION, *network, *settings.readable]


class BasicLevel:
    """Each run has resource limits, a session and a private folder; if the sandbox runs as root, also its own user."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.base = ""
        self.count = 0
        self.users: Users | None = None
        self.sees_files = True

    def isolate_server(self) -> None:
        self.base = f"{self.settings.folder}/gem-{os.urandom(8).hex()}"
        os.mkdir(self.base, 0o711)  # names in it are not listed
        if ON_LINUX:
            linux.adopt_orphans()  # if the server is killed, those of its runs are found here

    def set_up(self) -> None:
        if ON_LINUX:
            linux.adopt_orphans()  # they would be children of the host's process 1, and not be counted
            linux.die_with_parent(signal.SIGTERM)  # not SIGKILL, so that the server ends its runs first

    def prepare(self) -> None:
        limits.image_bytes()  # before the first run
        self.fork_one = linux.fork if ON_LINUX and linux.only_thread() else os.fork
        self.reads_all = False
        new_users = ON_LINUX and all(map(linux.has_capability, NEW_USERS))
        if new_users and not all(map(_open_to_all, [*self.settings.readable, self.base])):
            self.reads_all = new_users = linux.has_capability(linux.CAP_DAC_READ_SEARCH)
        if new_users:
            self.users = reserve_users()
        if self.users:
            self.sees_files = linux.has_capability(linux.CAP_SYS_PTRACE)
        self.tasks = limits.UserTasks() if ON_LINUX and not self.users else None

    def new_folder(self) -> str:
        self.count += 1
        folder = f"{self.base}/{self.count}"
        os.makedirs(self.base, 0o711, exist_ok=True)  # at level "basic", a program can remove this folder
        os.mkdir(folder, 0o700)  # runs with users of their own do not read each other's files (182_files_of_neighbours)
        return folder

    def fork(self, *, with_init: bool) -> tuple[int, int | None]:
        """Fork a child.

        Args:
            with_init: whether a separate process 1 is started if the run has a pid namespace. No effect here.

        Returns:
            (pid, init): the process id of the child, 0 in the child; and the id of the process to kill in order to end
            the run, or None if that is the child.
        """
        self.others = self.tasks.count() if self.tasks else 0
        return self.fork_one(), None

    def isolate(self, request: RunRequest, folder: str, files: Mapping[str, bytes], user: int | None) -> None:
        """Isolate this process, in a working directory with files, as a user from ``users`` if there are any."""
        os.setsid()  # the group by which processes of the run are found; that of the server could be killed otherwise
        os.environ.update(HOME=folder, TMPDIR=folder)
        os.chdir(folder)
        limits.set_limits(request, processes=self.others + request.processes * (ROOM if self.tasks else 1))
        if user is not None:
            self._become_user(user, folder)
        limits.write_files(files)  # as the program's user
        if ON_LINUX:
            # Those of root, where it has no other users to become: it reads and signals everything.
            linux.drop_capabilities(linux.CAP_DAC_READ_SEARCH if self.reads_all else None)
            linux.set_no_new_privileges()  # set-user-id programs, such as su
            linux.die_with_parent()  # after the change of user, which clears it
        self._confine(request, folder)

    def _become_user(self, uid: int, folder: str) -> None:
        # RLIMIT_NPROC, pages of pipes and descriptors in flight are counted by user (163_process_hog, 120_pipe_pages),
        # and a user signals only processes of its own (169_kill_the_neighbours).
        os.chown(folder, uid, uid)
        if self.reads_all:
            linux.keep_capabilities()
        os.setgroups([])  # files that only a group of root's may read, such as that of disks
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        linux.set_dumpable()

    def _confine(self, request: RunRequest, folder: str) -> None:
        pass

    def kill(self, pid: int) -> None:
        for kill in (os.killpg, os.kill):  # the child may not have created its process group yet
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)

    def clear(self, folder: str, user: int | None) -> None:
        """Remove the files of a run; with a user of its own also its shared memory, which only "basic" lets it make."""
        remove_tree(folder)
        if user is not None and self.settings.level == "basic":
            with contextlib.suppress(OSError):
                for entry in list(os.scandir("/dev/shm")):
                    with contextlib.suppress(OSError):
                        if entry.stat(follow_symlinks=False).st_uid == user:  # of a link, not of what it leads to
                            (remove_tree if entry.is_dir(follow_symlinks=False) else os.unlink)(entry.path)

    def clean_up(self) -> None:
        """Kill the remaining processes of all runs and remove their files. Called when the server ends."""
        while left := processes.children(os.getpid()):
            for pid in left:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        remove_tree(self.base)


class LsmLevel(BasicLevel):
    """Landlock restricts file access, and seccomp restricts system calls. Programs cannot leave their process group."""

    def prepare(self) -> None:
        super().prepare()
        semaphores.install(Path(semaphores.__file__).read_text("utf-8"))
        readable = readable_paths(self.settings)
        self.rules = LandlockRules([*readable, *MACHINE], DEVICES, network=self.settings.network)
        # An older version would prevent this process from moving files; see remove_tree().
        if self.rules.abi >= REFER_SINCE:
            hide(self.settings.hidden)
        # A user of its own cannot signal other runs, and may signal its children. The filter always refuses kill(-1).
        guard = self.rules.abi < SIGNALS_SINCE and not self.users
        self.filters = {
            trusted: Filter(
                network=self.settings.network,
                fake_groups=not trusted,
                guard_signals=guard and not trusted,
                fake_attributes=not self.users,
                fake_by_path=True,
                guard_truncation=self.rules.abi < TRUNCATION_SINCE,
            )
            for trusted in (False, True)
        }
        file_locks.install()
        if self.users:
            file_locks.install_times()

    def _confine(self, request: RunRequest, folder: str) -> None:
        if self.rules.abi < REFER_SINCE:
            hide(self.settings.hidden)
        self.rules.restrict(folder)
        # The last step. Landlock says nothing about sockets except TCP (43_net_udp_dns), nor about System V, keys and
        # attributes of files.
        self.filters[request.entry == TESTS].install()  # a test runner confines each test to a group of its own


class Users:
    """User ids for runs, each used by one run at a time. Nothing else on the machine uses them.

    Args:
        lock: a socket whose name reserves the ids among the servers of a machine. The kernel frees the name when the
            last process that has the socket ends.
    """

    def __init__(self, ids: range, lock: socket.socket) -> None:
        self.ids, self.lock = ids, lock
        self._free = deque(ids)
        self._free.rotate(_RANDOM.randrange(len(ids)))

    def take(self) -> int:
        """Return an id. Raises OSError if all are in use."""
        if not self._free:
            raise OSError(errno.EAGAIN, f"all {len(self.ids)} user ids of a fork server are in use")
        return self._free.popleft()

    def give_back(self, user: int) -> None:
        self._free.append(user)


def reserve_users() -> Users | None:
    """Reserve user ids that no other server uses. Returns None if this process has no ids besides its own.

    Raises:
        OSError: if other servers have reserved all ids.
    """
    maps = [_mapped(f"/proc/self/{kind}_map") for kind in ("uid", "gid")]
    taken = False
    for first, size, count in BLOCKS:
        # In random order: servers in other containers do not see these names, and the kernel counts a user's processes
        # in all containers together.
        for start in _RANDOM.sample(range(first, first + size * count, size), count):
            ids = range(start, start + size)
            if not all(any(ids[0] in span and ids[-1] in span for span in spans) for spans in maps):
                continue
            lock = socket.socket(socket.AF_UNIX)
            try:
                lock.bind(f"\0gem-users-{start}")
                return Users(ids, lock)
            except OSError as e:
                lock.close()
                if e.errno != errno.EADDRINUSE:
                    raise
                taken = True
    if taken:
        raise OSError(errno.EAGAIN, "other fork servers have reserved all user ids")
    return None


def _mapped(path: str) -> list[range]:
    """Return the ids that exist in this user namespace."""
    with open(path) as file:
        spans = [list(map(int, line.split())) for line in file]
    return [range(inside, inside + count) for inside, _, count in spans]


def _open_to_all(path: str) -> bool:
    """Whether every user has search permission for a folder and all its parents."""
    while True:
        try:
            if not os.stat(path).st_mode & 0o001:
                return False
        except OSError:
            return False
        if path == os.path.dirname(path):
            return True
        path = os.path.dirname(path)
