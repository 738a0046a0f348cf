"""Machines in containers of podman or docker.

Unlike a machine at level ns, a container has the system of its image, commands run as the user of the image, and
background processes compute between commands. Root in a container can replace the programs with which processes are
listed and killed there, so that stop() holds only against other users; a verdict must not depend on it.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import os
import posixpath
import re
import subprocess
import tarfile
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gem.errors import BadValue, SandboxError
from gem.sandbox.containers.engine import LABEL, ContainerEngine, machine_name
from gem.sandbox.containers.shell import ContainerShell, serve_program
from gem.sandbox.machine import FILE, FOLDER, LINK, STATES, FileEntry, Machine, MachineFiles, entries_of
from gem.sandbox.output import Capture
from gem.sandbox.process import CommandProcess
from gem.sandbox.results import Limits, Result, Status, call_seconds

MIN_DISK_BYTES = 1 << 30  # of limits.disk_bytes for files that the host reads; a container has no disk limit
_WAIT = ("/bin/sh", "-c", "exec sleep 1000000000")  # process 1, unless the image has an entry point
_LIST = (  # a line per process, then the id of this shell
    'for d in /proc/[0-9]*; do if read -r s < $d/stat; then echo "${d#/proc/} $s"; fi; done 2>/dev/null; echo $$'
)
_MOUNTED = "/etc/hostname"  # a file in every container, which its root cannot remove
_KILL_ROUNDS = 5
_SETTLE_S = 5.0  # for a shell to report after the processes of its command were killed
_images: list[tuple[int, ContainerEngine, str]] = []  # states, each with the id of the process that made it


class ContainerMachine(Machine):
    """A machine in a container. See Machine.

    Args:
        engine: see find_engine().
        image: a local image with /bin/sh.
        limits: wall_s and output_bytes apply to each command, memory_bytes and processes to the container, and
            disk_bytes to what the host reads. CPU time is not limited. ``network`` connects the container.
        files: the first files. They belong to root.
        folder: working directory of the shell; it is created. None means that of the image.
        user: name or id of the user who runs commands. None means that of the image.
        environment: variables of every process.
        cpus: processors that the container may use; None for all.
        mounts: folders of the host by their place in the container; those whose place ends in ":ro" are read-only
            there.
        state: what get_state() returned, instead of the image and the folder.

    Raises:
        SandboxError: the container cannot be started.
        BadValue: the state is gone.
    """

    def __init__(
        self,
        engine: ContainerEngine,
        image: str,
        *,
        limits: Limits,
        files: MachineFiles = (),
        folder: str | None = None,
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
        cpus: float | None = None,
        mounts: Mapping[str, str] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.engine, self.limits, self.user = engine, limits, user
        self.environment, self._exports = dict(environment or {}), ""
        self._shell: ContainerShell | None = None
        self._had_shell = False  # whether a shell could be started
        if state is not None:
            image, folder, self._exports = state["image"], state["folder"], state["exports"]
            if not engine.has(image):
                raise BadValue(f"the image of this state is gone ({image}); set {STATES} to keep images of states")
        self.name, self._image = machine_name(), image
        call = engine.run_arguments(image, limits, cpus=cpus)
        call += ["--detach", "--name", self.name, "--label", LABEL]
        for name, value in self.environment.items():
            call += ["--env", f"{name}={value}"]
        for place, source in (mounts or {}).items():
            call += ["--volume", f"{source}:{place}"]
        self._finalizer = weakref.finalize(self, _remove, engine, self.name, os.getpid())
        try:
            engine.ask(*call, image, *_WAIT)
            find = 'mkdir -p "$1" && cd "$1"; pwd'
            found = engine.ask("exec", "--user", "0", self.name, "/bin/sh", "-c", find, "sh", folder or ".")
            self.folder = self.first_folder = found.decode("utf-8", "surrogateescape").rstrip("\n")
            if files:
                self.write(files)
        except BaseException:
            self.close()
            raise

    # ---- commands

    def exec(self, command: str, *, wall_s: float | None = None) -> Result:
        self._check()
        start = time.monotonic()
        try:
            shell = self._shell = self._shell or self._start_shell()
        except SandboxError:
            if not self._had_shell:
                raise
            self._give_up("no shell can be started in it")  # such as after a bomb
            return Result(status=Status.KILLED, exit_code=None, state_lost=True, wall_s=time.monotonic() - start)
        start = time.monotonic()
        why = shell.run(command, call_seconds(self.limits, wall_s))
        elapsed_s = time.monotonic() - start
        if why is not None:
            try:
                self._kill(keep={shell.pid, *shell.before})
            except SandboxError:  # such as a container that can start no process
                self._give_up("its processes cannot be killed")
            else:
                shell.serve(_SETTLE_S)
        out = shell.output
        out.finish()
        if lost := out.report is None:
            self._close_shell()
            if why is not None and not self.ended:  # it computes itself
                self._signal([shell.pid])
        else:
            code, self.folder, shell.before, self._exports = out.report
        status = why or (Status.KILLED if lost else Status.OK if code == 0 else Status.ERROR)
        if lost and not self.ended and not self._is_running():
            self.ended = "killed"
        found: dict[str, Any] = {"stdout": out.kept.text(), "truncated": out.kept.truncated, "wall_s": elapsed_s}
        return Result(status=status, exit_code=None if lost else code, state_lost=lost, **found)

    def _start_shell(self) -> ContainerShell:
        client = self.engine.command("exec", "--interactive", *self._options(self.user, "/"), self.name)
        limits = self.limits
        try:
            shell = ContainerShell(
                client, self.folder, self._exports, limits.output_bytes, limits.wall_s, self.engine.folder
            )
        except SandboxError:
            self._check(running=True)
            raise
        self._had_shell = True
        return shell

    def _give_up(self, why: str) -> None:
        """Record that this machine is of no use. Raises SandboxError if no other container starts either."""
        call = self.engine.run_arguments(self._image, self.limits)
        self.engine.ask(*call, "--rm", "--entrypoint", "/bin/sh", self._image, "-c", ":")
        self.ended = self.ended or why

    def run(
        self,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        wall_s: float | None = None,
        user: str | None = None,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Result:
        """See Machine.run(). The environment is that of the container.

        Args:
            user, folder: other than those of the machine.
            environment: further variables.
        """
        self._check()
        call = ["exec", "--interactive", *self._options(user or self.user, folder)]
        for name, value in (environment or {}).items():
            call += ["--env", f"{name}={value}"]
        before = {1, *self._processes()}
        start, seconds = time.monotonic(), call_seconds(self.limits, wall_s)
        kept = Capture(self.limits.output_bytes)
        command = self.engine.command(*call, self.name, *arguments)
        with contextlib.closing(CommandProcess(command, folder=self.engine.folder)) as client:
            why = serve_program(client, kept, stdin, start + seconds)
            if why is not None:
                self._kill(keep=before)
            code = client.finish().exit_code
        if code != 0 and not self._is_running():
            self.ended, why = "killed", why or Status.KILLED
        status = why or (Status.OK if code == 0 else Status.ERROR)
        elapsed_s = time.monotonic() - start
        return Result(status=status, exit_code=code, stdout=kept.text(), truncated=kept.truncated, wall_s=elapsed_s)

    def stop(self, *, keep: Iterable[int] = ()) -> None:
        self._check()
        self._close_shell()
        try:
            self._kill(keep=keep, and_children=True)
        except SandboxError:
            self._give_up("its processes cannot be killed")
            self._check()

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, 10.0))

    # ---- files

    def read(self, path: str) -> bytes:
        self._check()
        path = posixpath.join(self.folder, path)
        for _ in range(8):  # links
            with self._tar(path) as tar:
                item = tar.next()
                if item is None:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                if item.issym():
                    path = posixpath.join(posixpath.dirname(path), item.linkname)
                    continue
                if item.isdir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
                file = tar.extractfile(item)
                if file is None or item.size > self._most_bytes():
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
                return file.read()
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def write(self, files: MachineFiles) -> None:
        self._check()
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            for entry in entries_of(files):
                item = tarfile.TarInfo(posixpath.join(self.folder, entry.path).lstrip("/"))
                item.mode, item.mtime = entry.mode, entry.mtime_s
                item.type = {FILE: tarfile.REGTYPE, FOLDER: tarfile.DIRTYPE, LINK: tarfile.SYMTYPE}[entry.kind]
                if entry.kind == LINK:
                    item.linkname = os.fsdecode(entry.content)
                    tar.addfile(item)
                else:
                    item.size = len(entry.content)
                    tar.addfile(item, io.BytesIO(entry.content))
            end = tar.offset + 2 * tarfile.BLOCKSIZE  # podman 4 may fail with "closed pipe" if more padding follows
        try:
            with tempfile.TemporaryDirectory(dir=self.engine.folder) as place:  # podman 4 leaves a copy of the archive
                self.engine.ask("cp", "-", f"{self.name}:/", stdin=data.getvalue()[:end], temporary=place)
        except SandboxError as e:
            self._check()
            raise OSError(errno.EIO, str(e)) from e

    def entries(self, folder: str = "/") -> list[FileEntry]:
        """See Machine.entries(): with "/", what differs from the image; else all files below the folder."""
        self._check()
        top = posixpath.join(self.folder, folder).rstrip("/")
        if not top:
            changed = _changed(self.engine.ask("diff", self.name))
            with self._tar("", changed) as tar:
                return sorted(self._unpacked(tar, "/", changed))
        with self._tar(top) as tar:
            return sorted(self._unpacked(tar, posixpath.dirname(top), None))[1:]

    def _unpacked(self, tar: tarfile.TarFile, top: str, names: set[str] | None) -> Iterator[FileEntry]:
        total = 0
        contents: dict[str, bytes] = {}  # by path, for hard links that follow
        for item in tar:
            name = item.name.strip("/")
            if names is not None and name not in names:
                continue
            total += len(contents.get(item.linkname, b"")) if item.islnk() else item.size
            if total > self._most_bytes():
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), item.name)
            path, rest = posixpath.join(top, name), (item.mode & 0o7777, int(item.mtime))
            if item.isdir():
                yield FileEntry(path, b"", FOLDER, *rest)
            elif item.issym():
                yield FileEntry(path, os.fsencode(item.linkname), LINK, *rest)
            elif item.islnk() and item.linkname in contents:
                yield FileEntry(path, contents[item.linkname], FILE, *rest)
            elif item.isreg() and (file := tar.extractfile(item)) is not None:
                contents[item.name] = file.read()
                yield FileEntry(path, contents[item.name], FILE, *rest)

    @contextlib.contextmanager
    def _tar(self, path: str, names: set[str] | None = None) -> Iterator[tarfile.TarFile]:
        """Open an archive of a file or folder, or of everything. Raises FileNotFoundError or SandboxError."""
        call = ("cp", f"{self.name}:{path}", "-") if names is None else ("export", self.name)
        with subprocess.Popen(
            self.engine.command(*call),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            cwd=self.engine.folder,
        ) as client:
            assert client.stdout is not None
            try:
                with tarfile.open(fileobj=client.stdout, mode="r|") as tar:
                    yield tar
            except (tarfile.TarError, EOFError) as e:
                client.kill()  # it may hold a lock of the engine until all is read
                self._check(running=True)
                self.engine.ask("cp", f"{self.name}:{_MOUNTED}", "-")  # fails if it is the engine that fails
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from e
            finally:
                client.kill()

    def _most_bytes(self) -> int:
        return max(self.limits.disk_bytes, MIN_DISK_BYTES)

    # ---- state

    def get_state(self) -> dict[str, Any]:
        """See Machine.get_state(). The files are kept as an image, named by its hash, which is removed when this
        process exits, unless GEM_MACHINE_STATES is set.
        """
        if jobs := self.processes():
            raise BadValue(f"a machine with background processes cannot be saved: {', '.join(map(str, jobs))}")
        return {"image": self.commit(), "folder": self.folder, "exports": self._exports}

    def commit(self) -> str:
        """Return the id of an image of the files. It is removed when this process exits; see get_state()."""
        self._check()
        image = self.engine.ask("commit", self.name).decode().strip().splitlines()[-1]
        if not os.environ.get(STATES):
            _images.append((os.getpid(), self.engine, image))
        return image

    # ---- processes

    def processes(self) -> list[int]:
        """Return the ids of the processes that commands have started, without the shell and process 1."""
        shell = 0 if self._shell is None else self._shell.pid
        return [pid for pid in self._processes() if pid not in (1, shell)]

    def _processes(self) -> dict[int, int]:
        """Return the processes with their parents. Empty if the programs of the container were replaced."""
        text = self.engine.ask("exec", "--user", "0", self.name, "/bin/sh", "-c", _LIST).decode("utf-8", "replace")
        *lines, own = text.rstrip("\n").split("\n")
        found = dict(process for line in lines if (process := _parsed(line)) is not None)
        return {pid: parent for pid, parent in found.items() if str(pid) != own}

    def _kill(self, *, keep: Iterable[int], and_children: bool = False) -> None:
        """Kill processes until none is left, but for process 1 and those to keep, with their descendants if asked."""
        kept = set(keep) - {1}
        for _ in range(_KILL_ROUNDS):
            found = self._processes()
            for _ in found if and_children and kept else ():
                kept |= {pid for pid, parent in found.items() if parent in kept}
            killed = [pid for pid in found if pid not in kept | {1}]
            if not killed:
                return
            self._signal(killed)

    def _signal(self, pids: Iterable[int]) -> None:
        with contextlib.suppress(SandboxError):  # some have ended by themselves
            call = ("exec", "--user", "0", self.name, "/bin/sh", "-c", 'kill -9 "$@"', "sh")
            self.engine.ask(*call, *map(str, pids))

    # ---- the container

    def close(self) -> None:
        self.ended = self.ended or "closed"
        self._close_shell()
        self._finalizer()

    def _close_shell(self) -> None:
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def _options(self, user: str | None, folder: str | None) -> list[str]:
        return [*(["--user", user] if user else []), *(["--workdir", folder] if folder else [])]

    def _is_running(self) -> bool:
        """Ask the engine. Raises SandboxError if it fails, which does not mean that the container has ended."""
        return bool(self.engine.ask("ps", "--quiet", "--filter", f"name={self.name}").strip())

    def _check(self, *, running: bool = False) -> None:
        """Raise SandboxError if the machine has ended. ``running``: ask the engine."""
        if running and not self.ended and not self._is_running():
            self.ended = "killed"
        if self.ended:
            raise SandboxError(f"this machine has ended: {self.ended}")


def _parsed(line: str) -> tuple[int, int] | None:
    """Return the id and the parent of a process from a line of _LIST; None for a zombie, parent 0 if unknown."""
    pid, _, rest = line.partition(" ")
    fields = rest.rpartition(")")[2].split()
    if not pid.isdecimal() or fields[:1] == ["Z"]:
        return None
    return int(pid), int(fields[1]) if len(fields) > 1 and fields[1].isdecimal() else 0


def _changed(diff: bytes) -> set[str]:
    """Return the paths that were added or changed, from the output of ``diff``: lines such as "C /etc".

    What follows a line break in a name is the rest of a path, or another path that has changed as little as the image.
    """
    text = diff.decode("utf-8", "surrogateescape").removesuffix("\n")
    return {path for kind, path in re.findall(r"^([ACD]) /(.*(?:\n(?![ACD] /).*)*)", text, re.MULTILINE) if kind != "D"}


def _remove(engine: ContainerEngine, name: str, owner: int) -> None:
    if owner == os.getpid():
        with contextlib.suppress(SandboxError):
            engine.remove([name])


@atexit.register
def _remove_images() -> None:
    for owner, engine, image in list(_images):
        if owner == os.getpid():
            discard_image(engine, image)


def discard_image(engine: ContainerEngine, image: str) -> None:
    """Remove an image of commit(), and containers that use it."""
    _images[:] = [entry for entry in _images if entry[1:] != (engine, image)]
    with contextlib.suppress(SandboxError):
        engine.ask("rmi", "--force", image)
