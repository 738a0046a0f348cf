"""Programs in containers, by the command line of docker or podman.

A run is a container of its own, and so is a session, for as long as it lasts. What a program needs has to be in the
image; images are never fetched here, because that may take longer than any limit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from gem.errors import SandboxError
from gem.sandbox.base import Limits, Report
from gem.sandbox.running import Ending, Running, as_shells_do
from gem.sandbox.scripted import INTERPRETER_FLAGS, ScriptedSandbox, environment
from gem.sandbox.zygote.removal import remove_tree

LABEL = "gem-sandbox"
IMAGE = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
NOBODY = "65534:65534"
WORK = "/tmp"  # inside, where programs start
SHARED_MEMORY = 8  # /dev/shm gets one part in so many of the disk limit, /tmp the rest
ENGINE_FAILED = 125  # the engine's own exit code
ANSWER_S = 60.0  # for the engine to answer a question, or to end a container


class _ContainerSandbox(ScriptedSandbox):
    """Runs programs in containers, without network, as nobody, on a read-only root.

    Args:
        image: one that is on this machine, with python3 and timeout in it. None is the official slim image of this
            Python's version.
        runtime: of the containers, "runsc" for gVisor; None is the engine's default.

    Raises SandboxError where the engine is not installed, does not answer, or has no such image.
    """

    engine: str

    def __init__(self, *, limits: Limits | None = None, image: str | None = None, runtime: str | None = None) -> None:
        super().__init__(limits=limits)
        self.image, self.runtime = image or IMAGE, runtime
        self._owner = os.getpid()
        self.label = f"{LABEL}={uuid.uuid4().hex}"
        if shutil.which(self.engine) is None:
            raise SandboxError(f"{self.engine} is not installed; install it, or use another sandbox")
        self._ask("version")
        try:
            self._ask("image", "inspect", self.image)
        except SandboxError as e:
            raise SandboxError(f"{self.engine} has no image {self.image}; `{self.engine} pull {self.image}`") from e
        self._folder = tempfile.mkdtemp(prefix="gem-")  # where clients run: podman leaves files there
        self._remove_folder = weakref.finalize(self, _remove, self._folder, self._owner)

    def report(self) -> Report:
        return Report(
            self.engine,
            "",
            {
                "network": "--network none",
                "files": f"the image {self.image}, read-only",
                "processes": "a pid namespace, --pids-limit",
                "memory": "--memory, without swap",
                "disk": "tmpfs of limited size, everything else read-only",
                "cpu": "RLIMIT_CPU, for each process apart",
                "wall": "timeout inside, and the host's clock",
                "output": "counted while it is read, kept by no log",
                "kernel": "no capabilities, no new privileges, the engine's seccomp profile",
            },
            [
                "CPU seconds and peak memory are not known.",
                "An exit code from 129 to 192 is taken for a signal, as shells do.",
            ],
        )

    def close(self) -> None:
        """End all containers of this sandbox, those of crashed threads included."""
        was_closed, started = self.closed, hasattr(self, "_remove_folder")
        super().close()
        if started and not was_closed and self._owner == os.getpid():
            self._remove_folder()
            with contextlib.suppress(SandboxError):
                if left := self._ask("ps", "--all", "--quiet", "--filter", f"label={self.label}").split():
                    self._ask("rm", "--force", *left)

    def _start(self, limits: Limits, *, lasting: bool) -> Running:
        name = f"gem-{uuid.uuid4().hex}"
        arguments = [*self._arguments(name, limits), *self._command(limits, lasting)]
        return _Container(self, name, arguments, self._folder)

    def _arguments(self, name: str, limits: Limits) -> Iterator[str]:
        shared = limits.disk_bytes // SHARED_MEMORY
        yield from ("run", "--rm", "--interactive", "--init", "--name", name, "--label", self.label, "--pull", "never")
        yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", NOBODY, "--read-only")
        yield from ("--memory", f"{limits.memory_bytes}b", "--memory-swap", f"{limits.memory_bytes}b")
        yield from ("--pids-limit", str(limits.processes), "--shm-size", f"{max(shared, 4096)}b")
        yield from ("--tmpfs", f"/tmp:rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes - shared}")
        yield from ("--workdir", WORK, "--log-driver", "none")
        if not limits.network:
            yield from ("--network", "none")
        if self.runtime is not None:
            yield from ("--runtime", self.runtime)
        for variable, value in environment(WORK, "/usr/local").items():
            yield from ("--env", f"{variable}={value}")

    def _command(self, limits: Limits, lasting: bool) -> Iterator[str]:
        yield self.image
        if not lasting:  # the host's clock starts later, so this one ends later
            yield from ("timeout", "--kill-after=1", str(ceil(limits.wall_s) + 2))
        yield from ("python3", *INTERPRETER_FLAGS)

    def _rlimits(self, limits: Limits) -> dict[str, tuple[int, int]]:
        cpu_s = max(1, round(limits.cpu_seconds))
        return {
            "RLIMIT_CPU": (cpu_s, cpu_s + 1),
            "RLIMIT_FSIZE": (limits.disk_bytes, limits.disk_bytes),
            "RLIMIT_CORE": (0, 0),
        }

    def _ask(self, *arguments: str) -> str:
        """What the engine answers. Raises SandboxError where it does not, or refuses."""
        try:
            done = subprocess.run(
                [self.engine, *arguments], capture_output=True, text=True, timeout=ANSWER_S, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise SandboxError(f"{self.engine} {arguments[0]} did not answer: {e}") from e
        if done.returncode:
            raise SandboxError(f"{self.engine} {arguments[0]} failed: {done.stderr.strip()}")
        return done.stdout


class DockerSandbox(_ContainerSandbox):
    __doc__ = _ContainerSandbox.__doc__
    engine = "docker"


class PodmanSandbox(_ContainerSandbox):
    __doc__ = _ContainerSandbox.__doc__
    engine = "podman"


class _Container(Running):
    """The client of a container, which ends when the container does."""

    def __init__(self, sandbox: _ContainerSandbox, name: str, arguments: Sequence[str], folder: str) -> None:
        self.sandbox, self.container = sandbox, name
        super().__init__([sandbox.engine, *arguments], folder=folder)

    def kill(self) -> None:
        if self.owner == os.getpid() and not self.over and not self.ended():
            super().kill()
            self._remove()

    def finish(self) -> Ending:
        """Raises SandboxError where it was the engine that ended, and not the program."""
        ending = super().finish()
        if ending.signal is not None:  # of the client, which may leave its container behind
            self._remove()
        if ending.exit_code == ENGINE_FAILED:
            self.sandbox._ask("version")
        ending = as_shells_do(ending)
        return replace(ending, out_of_memory=ending.signal == signal.SIGKILL)

    def _remove(self) -> None:
        with contextlib.suppress(SandboxError):  # it is gone, as it should be
            self.sandbox._ask("rm", "--force", self.container)


def _remove(folder: str, owner: int) -> None:
    if owner == os.getpid():
        remove_tree(folder)
