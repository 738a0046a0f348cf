"""The command-line client of podman or docker: which flags work on this machine, images, and builds.

Where cgroups are hybrid, or limits cannot be raised, the defaults of the engine fail. The first container is therefore
started with several sets of flags until one works. Storage is the engine's choice, usually an overlay; vfs is used only
if podman cannot start without it. Images are never pulled.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading
import uuid
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gem.errors import SandboxError
from gem.sandbox.output import decoded_message
from gem.sandbox.results import Limits

ENGINES = ("podman", "docker")
ENGINE_TIMEOUT_S = 120.0  # for the engine to answer a query, or to start or remove a container
LABEL = "gem-machine"  # of the containers of machines
IMAGE_LABEL = "gem-image"  # of images that are built; `podman image prune --all --filter label=gem-image` removes them
_VFS = ("--storage-driver", "vfs")
_RUNTIMES = {  # global options, in the order in which they are tried
    "podman": ((), ("--cgroup-manager=cgroupfs",), ("--cgroup-manager=cgroupfs", "--runtime", "runc")),
    "docker": ((),),
}
_ULIMITS = ((), ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"))
_found: dict[str, ContainerEngine] = {}
_lock = threading.Lock()


class _Flags(NamedTuple):
    """What works here. limited: whether the limits of memory and processes can be set."""

    options: tuple[str, ...]
    ulimits: tuple[str, ...]
    limited: bool


class ContainerEngine:
    """Runs the client of an engine. Use find_engine().

    Args:
        name: "podman" or "docker".

    Raises:
        SandboxError: the engine is not installed or does not respond.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        if shutil.which(name) is None:
            raise SandboxError(f"{name} is not installed; install podman or docker")
        self._flags: _Flags | None = None
        # Clients run in a folder of their own, because podman leaves files there. For its name, see machine_name().
        self.folder = tempfile.mkdtemp(prefix=f"gem-{_pid_namespace()}-{os.getpid()}-")
        weakref.finalize(self, _remove, self.folder, os.getpid())
        self.storage: tuple[str, ...] = ()
        try:
            self.ask("info")
        except SandboxError:
            if name != "podman":
                raise
            self.storage = _VFS
            self.ask("info")

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a call."""
        return [self.name, *self.storage, *(self._flags.options if self._flags else ()), *arguments]

    def ask(
        self, *arguments: str, stdin: bytes = b"", timeout_s: float = ENGINE_TIMEOUT_S, temporary: str | None = None
    ) -> bytes:
        """Run a command of the engine and return its stdout.

        Args:
            arguments, stdin: of the client.
            timeout_s: wall-clock seconds.
            temporary: folder for its temporary files. None means that of this process.

        Raises:
            SandboxError: it failed or timed out; the message has the end of its stderr.
        """
        variables = None if temporary is None else os.environ | {"TMPDIR": temporary}
        try:
            done = subprocess.run(
                self.command(*arguments), capture_output=True, timeout=timeout_s, input=stdin, cwd=self.folder,
                env=variables,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as e:
            raise SandboxError(f"{self.name} {arguments[0]} did not respond: {e}") from e
        if done.returncode:
            text = done.stderr.decode("utf-8", "replace").strip()
            raise SandboxError(f"{self.name} {arguments[0]} failed: {text[-2000:] or f'status {done.returncode}'}")
        return done.stdout

    def has(self, image: str) -> bool:
        """Whether there is a local image of this name or id."""
        try:
            self.ask("image", "inspect", image)
        except SandboxError:
            return False
        return True

    # ---- starting containers

    def flags(self, image: str) -> _Flags:
        """Return the flags with which a container of this image starts, which are the same for every image.

        Raises:
            SandboxError: none works.
        """
        with _lock:
            if self._flags is None:
                self._flags = self._try_flags(image)
                self._remove_orphans()
            return self._flags

    def _try_flags(self, image: str) -> _Flags:
        trouble = ""
        for limited, ulimits, options in itertools.product((True, False), _ULIMITS, _RUNTIMES[self.name]):
            call = [*options, "run", "--rm", "--network", "none", "--pull", "never", *ulimits]
            call += limit_flags(Limits()) if limited else []
            try:
                self.ask(*call, "--entrypoint", "/bin/sh", image, "-c", ":")
                return _Flags(options, ulimits, limited)
            except SandboxError as e:
                trouble = str(e)
        raise SandboxError(f"{self.name} cannot start a container of {image}: {trouble}")

    def _remove_orphans(self) -> None:
        """Remove the containers of machines, and the folders of clients, whose process was killed."""
        for folder in Path(tempfile.gettempdir()).glob("gem-*"):
            if _is_orphan(folder.name):
                shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(SandboxError):
            names = self.ask("ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}").decode().split()
            if orphans := [name for name in names if _is_orphan(name)]:
                self.remove(orphans)

    def remove(self, containers: Sequence[str]) -> None:
        """Kill and remove containers. Raises SandboxError.

        Unless told otherwise, podman waits 10 s for a container to end. If the client ends meanwhile, a second call
        forgets the container without killing it.
        """
        self.ask("rm", "--force", *(("--time", "0") if self.name == "podman" else ()), *containers)

    def run_arguments(self, image: str, limits: Limits, *, cpus: float | None = None) -> list[str]:
        """Return the arguments of ``run`` that are common to all machines of an image."""
        flags = self.flags(image)
        call = ["run", "--pull", "never", "--network", "bridge" if limits.network else "none", *flags.ulimits]
        if flags.limited:
            call += limit_flags(limits)
            call += ["--cpus", f"{cpus:g}"] if cpus else []
        return call

    def isolation(self, image: str) -> str:
        """Return how machines of an image are isolated, in one line."""
        flags = self.flags(image)
        info = decoded_message(self.ask("info", "--format", "{{json .}}"), f"the answer of {self.name} info")
        driver = info.get("store", {}).get("graphDriverName") or info.get("Driver") or "unknown storage"
        limits = "cgroups limit memory and processes" if flags.limited else "memory and processes are not limited"
        given = " ".join((*self.storage, *flags.options, *flags.ulimits))
        return f"a container of {self.name} ({driver}), no network; {limits}" + (f"; flags {given}" if given else "")

    # ---- images

    def build(self, folder: Path, dockerfile: str, *, name: str, timeout_s: float, bases: Sequence[str] = ()) -> str:
        """Build an image, or return the one that was built from the same files before. Returns its name.

        The build may use the network of the host. Base images must exist.

        Args:
            folder: the build context.
            dockerfile: text of the Dockerfile.
            name: part of the name of the image.
            timeout_s: wall-clock seconds.
            bases: images that the Dockerfile names, whose ids are part of the key of the cache.

        Raises:
            SandboxError: the build failed or timed out; the message has the end of its output.
        """
        ids = [self.ask("image", "inspect", "--format", "{{.Id}}", base).decode().strip() for base in bases]
        digest = hashlib.sha256(json.dumps([dockerfile, ids, _digest(folder)]).encode()).hexdigest()[:24]
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-") or "task"
        image = f"localhost/gem/{slug}:{digest}"
        if self.has(image):
            return image
        call = ["build", "--network", "host", "--label", f"{IMAGE_LABEL}={digest}", "--tag", image]
        call += ["--isolation", "chroot", "--pull=never"] if self.name == "podman" else []
        with tempfile.TemporaryDirectory(prefix="gem-build-") as place:
            file = Path(place, "Dockerfile")
            file.write_text(dockerfile, encoding="utf-8")
            self.ask(*call, "--file", str(file), str(folder.resolve()), timeout_s=timeout_s)
        return image


def machine_name() -> str:
    """Return a name for the container of a machine, from which other processes can see whether its process lives."""
    return f"gem-{_pid_namespace()}-{os.getpid()}-{uuid.uuid4().hex}"


def _is_orphan(name: str) -> bool:
    _, namespace, pid, *_ = [*name.split("-"), "", ""]
    if namespace != _pid_namespace() or not pid.isdigit():
        return False  # of another computer or container that uses the same engine
    try:
        os.kill(int(pid), 0)
    except OSError as e:
        return e.errno == errno.ESRCH
    return False


def _pid_namespace() -> str:
    """Return a name of the pid namespace of this process on this computer."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    return "host"


def _remove(folder: str, owner: int) -> None:
    if owner == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def limit_flags(limits: Limits) -> list[str]:
    memory = f"{limits.memory_bytes}b"
    return ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes)]


def find_engine(name: str = "auto") -> ContainerEngine:
    """Return the engine of this process, found on first use.

    Args:
        name: "podman", "docker", or "auto" for the first of these that is installed and responds.

    Raises:
        SandboxError: there is none.
    """
    trouble = []
    for candidate in ENGINES if name == "auto" else (name,):
        place = f"{candidate} {shutil.which(candidate)}"
        with _lock:
            if place in _found:
                return _found[place]
        try:
            engine = ContainerEngine(candidate)
        except SandboxError as e:
            trouble.append(str(e))
            continue
        with _lock:
            return _found.setdefault(place, engine)
    raise SandboxError("; ".join(dict.fromkeys(trouble)))


def _digest(folder: Path) -> str:
    """Return a hash of the files of a folder: paths, modes, contents and targets of links."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found.update(f"{path.relative_to(folder)}\0{status.st_mode:o}\0".encode("utf-8", "surrogateescape"))
        if path.is_symlink():
            found.update(os.fsencode(os.readlink(path)))
        elif path.is_file():
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
