"""Level "ns": each run has its own namespaces and root file system, in which the program is process 1.

The order of calls matters. The user namespace of the server owns the mount and pid namespaces of a run, so a child that
still has the server's capabilities can mount its folders and /proc. Afterwards the child enters a new user namespace,
for which RLIMIT_NPROC is counted separately, and drops its capabilities.

The comments say what a program could do without a rule, and name programs in tests/sandbox/attacks that try it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterable, Iterator, Mapping

from gem.sandbox.forkserver import linux
from gem.sandbox.forkserver.isolation import file_locks
from gem.sandbox.forkserver.isolation.lockdown import (
    CONFIGURATION,
    DEVICES,
    NETWORK_CONFIGURATION,
    Users,
    readable_paths,
    reserve_users,
)
from gem.sandbox.forkserver.isolation.seccomp import Filter
from gem.sandbox.forkserver.limits import limits
from gem.sandbox.forkserver.limits.monitor import MAX_FILES
from gem.sandbox.forkserver.protocol import RunRequest, ServerSettings
from gem.sandbox.machine_protocol import EPOCH_S

USER = 1000  # user id that programs see
HOME_CANDIDATES = ("/tmp", "/home", "/var/tmp")  # the first one that contains no readable path is used
BOX = "/box"  # mount point of the file system that holds all files of a run
# The first existing folder that contains no readable path is used.
ROOT_CANDIDATES = ("/sys", "/mnt", "/media", "/srv", "/opt")
# No file of the host is visible (29_read_ssh_key, 30_walk_everything), no object of System V (14_sysv_ipc), no name of
# the host, and no process besides the server's, so that no signal reaches one (23_kill_all, 31_proc_snoop). If process
# 1 ends, the kernel kills the rest (22_daemon_acts_later).
NEW_ROOT = linux.NEW_MOUNTS | linux.NEW_IPC | linux.NEW_UTS | linux.NEW_PIDS
MACHINE = "machine"  # the entry of machines, which have a root of their own
MACHINE_HOME = "/home/user"
TERMINALS = 16  # most terminals that a machine may open; the kernel has a limit for all together
# A file of the host that is a device, or runs as another user, is a file like others.
SAFE_MOUNT = linux.NO_SUID | linux.NO_DEVICES


class NamespaceLevel:
    """Isolation by namespaces. See the module docstring."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.base = ""
        self.users: Users | None = None
        self.sees_files = True

    def isolate_server(self) -> None:
        users = [(USER, os.getuid(), os.getgid(), 1)]
        if os.getuid() == 0 and all(map(linux.has_capability, (linux.CAP_SETUID, linux.CAP_SETGID))):
            self.users = reserve_users()
        if self.users:  # each run has a user of its own, because the kernel does not apply some limits to root
            ids = self.users.ids
            users = [(0, 0, 0, 1), (ids.start, ids.start, ids.start, len(ids))]
            os.setgroups([])  # files that only a group of root's may read, such as that of disks
        # The network namespace has no interface, and its lists in /proc/net are empty (98_list_sockets). The filter
        # refuses sockets as well, so that neither depends on the other (41_net_metadata, 43_net_udp_dns).
        flags = NEW_ROOT | linux.NEW_USER | (0 if self.settings.network else linux.NEW_NETWORK)
        with _mapped(users):
            linux.unshare(flags)

    def set_up(self) -> None:
        linux.die_with_parent()  # and all runs with this process, which is process 1 of a namespace around theirs
        # What the host mounts later would appear in visible folders, and writable.
        linux.mount("", "/", flags=linux.RECURSIVE | linux.PRIVATE)
        self.visible = visible = readable_paths(self.settings)
        root = _first_unused(filter(os.path.isdir, ROOT_CANDIDATES), visible)
        self.home = _first_unused(HOME_CANDIDATES, visible)
        linux.mount("tmpfs", root, "tmpfs", SAFE_MOUNT, "size=16m,mode=755")
        # The system may replace these files at any time, and a file that was replaced cannot be mounted again.
        copied = (*CONFIGURATION, *NETWORK_CONFIGURATION)
        _populate_root(root, visible, copied, hidden=self.settings.hidden, home=self.home)
        os.mkdir(root + BOX)
        linux.mount("proc", f"{root}/proc", "proc", SAFE_MOUNT | linux.NO_EXEC)
        linux.change_root(root)  # detaches the old root: /proc/1/root and ".." lead nowhere (181_settings_through_proc)
        os.stat(os.__file__)  # fails if the library is in a folder that the user of this namespace cannot enter
        # All runs share this root. Where they also share its user, a program could leave files for the next one
        # (297_traces_for_the_next_test).
        linux.mount("", "/", flags=linux.REMOUNT | linux.BIND | linux.READ_ONLY | SAFE_MOUNT)
        linux.set_hostname("sandbox")
        os.environ.update(HOME=self.home, TMPDIR=self.home)

    def prepare(self) -> None:
        self.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        limits.image_bytes()  # before the first run
        self.fork_one = linux.fork if linux.only_thread() else os.fork
        network = self.settings.network
        self.filters = {
            machine: Filter(network=network, own_pids=True, fake_groups=False, terminals=machine)
            for machine in (False, True)
        }
        file_locks.install()

    def new_folder(self) -> str:
        return ""

    def fork(self, *, with_init: bool) -> tuple[int, int | None]:
        linux.unshare(linux.NEW_PIDS)
        init = pid = None
        try:
            # The first process in a new pid namespace becomes its process 1.
            if with_init and (init := os.fork()) == 0:
                _run_init()
            pid = self.fork_one()
            return pid, init
        finally:
            if pid != 0:
                linux.setns(self.own_pids, linux.NEW_PIDS)  # the next run is not born into the namespace of this one
            if pid is None and init:
                os.kill(init, signal.SIGKILL)

    def isolate(self, request: RunRequest, folder: str, files: Mapping[str, bytes], user: int | None) -> None:
        os.setsid()  # kill(0) also reaches those outside the pid namespace: the server (87_kill_ones_own_group)
        # NEW_IPC is a second lock: the filter refuses every call that makes such an object.
        linux.unshare(linux.NEW_MOUNTS | linux.NEW_IPC)
        if request.entry == MACHINE:
            self._enter_machine_root(request, USER if user is None else user)
        else:
            self._mount_folders(request)
        self._become_user(USER if user is None else user)
        limits.write_files(files)  # as the program's user, who may not follow a link to more than the program may
        limits.set_limits(request, processes=request.processes)
        linux.set_no_new_privileges()  # without it, the kernel takes no filter from a process without capabilities
        # A second lock: with those of its user namespace, a program reaches code of the kernel that is for root.
        linux.drop_capabilities()
        # The last step: the filter refuses most of the calls above.
        self.filters[request.entry == MACHINE].install()

    def _mount_folders(self, request: RunRequest) -> None:
        """Mount the writable folders of a program, and make the first the working directory."""
        # A full disk is that of the run alone (07_disk_fill), also by empty files, whose inodes are memory
        # (08_many_files).
        linux.mount("tmpfs", BOX, "tmpfs", SAFE_MOUNT, f"size={request.disk_bytes},nr_inodes={MAX_FILES},mode=755")
        for name, target in (("home", self.home), ("shm", "/dev/shm")):
            os.mkdir(f"{BOX}/{name}")
            os.chmod(f"{BOX}/{name}", 0o1777)
            linux.mount(f"{BOX}/{name}", target, flags=linux.BIND)
        # The server's /proc shows the processes of all runs (31_proc_snoop, 180_descriptors_through_proc).
        linux.mount("proc", "/proc", "proc", SAFE_MOUNT | linux.NO_EXEC)
        linux.unmount(BOX)  # a test could leave files beside the two folders, and only these are emptied after it
        os.chdir(self.home)

    def _enter_machine_root(self, request: RunRequest, user: int) -> None:
        """Enter a root of its own: a tmpfs in which a machine can create files, and the system's folders, read-only.

        The sticky bit keeps the machine from removing what was created here.
        """
        linux.mount("tmpfs", BOX, "tmpfs", SAFE_MOUNT, f"size={request.disk_bytes},nr_inodes={MAX_FILES},mode=1777")
        visible = [path for path in self.visible if path != "/etc/localtime"]  # the time zone is UTC
        _populate_root(BOX, visible, hidden=self.settings.hidden, home=MACHINE_HOME)
        for name in ("etc", "dev/shm", "tmp", "var/tmp", "opt", "srv", "home"):
            os.makedirs(f"{BOX}/{name}", exist_ok=True)
            with contextlib.suppress(OSError):  # a library is mounted here, read-only
                os.chmod(f"{BOX}/{name}", 0o1777)
        for name in ("", "etc", "tmp", "var", "home", MACHINE_HOME.strip("/")):
            os.utime(f"{BOX}/{name}", (EPOCH_S, EPOCH_S))
        os.chown(BOX + MACHINE_HOME, user, user if self.users else -1)
        linux.mount("proc", f"{BOX}/proc", "proc", SAFE_MOUNT | linux.NO_EXEC)
        os.mkdir(f"{BOX}/dev/pts")
        os.symlink("pts/ptmx", f"{BOX}/dev/ptmx")
        with contextlib.suppress(OSError):  # without it, machines have no terminal
            flags = linux.NO_SUID | linux.NO_EXEC
            # newinstance: terminals of the host could be opened and typed into (44_type_into_the_terminal).
            linux.mount("devpts", f"{BOX}/dev/pts", "devpts", flags, f"newinstance,ptmxmode=0666,max={TERMINALS}")
        linux.change_root(BOX)
        os.chdir(MACHINE_HOME)
        os.environ.update(HOME=MACHINE_HOME, TMPDIR="/tmp")

    def _become_user(self, user: int) -> None:
        if self.users:  # no capability counts outside, but files that belong to root would be the program's
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            linux.set_dumpable()
        # Processes of the runs of one user would be counted together (163_process_hog).
        linux.unshare(linux.NEW_USER)
        _write_maps("self", [(USER, user, user, 1)])

    def kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def clear(self, folder: str, user: int | None) -> None:
        pass

    def clean_up(self) -> None:
        pass


@contextlib.contextmanager
def _mapped(users: list[tuple[int, int, int, int]]) -> Iterator[None]:
    """Context manager in which this process enters a user namespace.

    On exit, a helper process in the old namespace writes the user and group maps.

    Raises:
        OSError: if the maps could not be written; errno is that of the helper process.
    """
    process = os.getpid()
    ready, entered = os.pipe()
    helper = os.fork()
    if helper == 0:
        exit_code = errno.EIO
        try:
            os.close(entered)
            if os.read(ready, 1):
                _write_maps(str(process), users)
                exit_code = 0
        except OSError as e:
            exit_code = e.errno or errno.EIO
        finally:
            os._exit(exit_code)
    os.close(ready)
    try:
        yield
        os.write(entered, b".")
    finally:
        os.close(entered)
        _, status = os.waitpid(helper, 0)
    if status:
        number = max(0, os.waitstatus_to_exitcode(status)) or errno.EAGAIN  # killed: try again
        raise OSError(number, os.strerror(number), "uid_map")


def _write_maps(process: str, users: list[tuple[int, int, int, int]]) -> None:
    """Write the user and group maps of the user namespace of a process.

    Args:
        process: process id, or "self".
        users: tuples of the first id inside the namespace, the user id and the group id outside, and their number.
    """
    if len(users) == 1:
        # Required by the kernel, because a process could give up a group to which a file denies access.
        _write(f"/proc/{process}/setgroups", "deny")
    _write(f"/proc/{process}/uid_map", "".join(f"{inside} {uid} {count}\n" for inside, uid, _, count in users))
    _write(f"/proc/{process}/gid_map", "".join(f"{inside} {gid} {count}\n" for inside, _, gid, count in users))


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _populate_root(root: str, visible: list[str], copied: tuple[str, ...] = (), *, hidden: str, home: str) -> None:
    """Mount the readable paths of the host read-only in a new root, and create files that programs expect.

    Args:
        copied: paths whose files are copied instead.
    """
    os.mkdir(f"{root}/etc")
    done: list[str] = []
    for path in visible:
        if os.path.exists(path) and not any(_within(path, other) for other in done):
            if path in copied and os.path.isfile(path) and os.access(path, os.R_OK):
                _copy(path, root)
            else:
                _bind_read_only(path, root)
            done.append(path)
    if os.path.isdir(root + hidden):  # expected outputs of built-in tasks (35_read_expected_files)
        linux.mount("tmpfs", root + hidden, "tmpfs", SAFE_MOUNT | linux.READ_ONLY, "size=4k,mode=755")
    for name in ("dev", "proc", home.strip("/")):
        os.makedirs(f"{root}/{name}", exist_ok=True)
    os.mkdir(f"{root}/dev/shm")
    # Not /dev itself: disks, terminals (44_type_into_the_terminal) and the host's shared memory (13_dev_shm_leak).
    for path in filter(os.path.exists, DEVICES):
        open(root + path, "w").close()
        linux.mount(path, root + path, flags=linux.BIND)
        linux.set_read_only(root + path, device=True)  # or a program sets the times of the host's device
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{root}/dev/{name}")
    files = {"passwd": f"user:x:{USER}:{USER}::{home}:/bin/sh\n", "group": f"user:x:{USER}:\n"}
    files["hosts"] = "127.0.0.1 localhost sandbox\n"
    for name, text in files.items():
        if not os.path.exists(f"{root}/etc/{name}"):
            with open(f"{root}/etc/{name}", "w") as file:
                file.write(text)


def _copy(path: str, root: str) -> None:
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    with open(path, "rb") as source, open(root + path, "wb") as target:
        target.write(source.read())


def _bind_read_only(path: str, root: str) -> None:
    if os.path.islink(path) and "/" not in path[1:]:  # /bin and /lib are symbolic links on many systems
        os.symlink(os.readlink(path), root + path)
        return
    if os.path.isdir(path):
        os.makedirs(root + path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        open(root + path, "w").close()
    linux.mount(path, root + path, flags=linux.BIND | linux.RECURSIVE)
    linux.set_read_only(root + path)


def _first_unused(candidates: Iterable[str], visible: Iterable[str]) -> str:
    """Return the first candidate that contains no readable path."""
    return next(folder for folder in candidates if not any(_within(path, folder) for path in visible))


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _run_init() -> None:
    """Run as process 1 of a pid namespace: reap orphaned processes until killed. Killing process 1 ends the run."""
    linux.close_from(0)  # the sockets of the host and of other runs
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # zombies count as processes of the run (84_orphans_and_zombies)
    while True:
        signal.pause()
