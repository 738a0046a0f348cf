"""Sandboxes that run programs in containers, using the command-line client of docker or podman.

Each run and each session has its own container. The image must contain everything that the programs need. Images are
never pulled automatically, because pulling an image can take longer than the time limit of a run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from gem.errors import SandboxError
from gem.sandbox.command.sandbox import INTERPRETER_FLAGS, CommandSandbox, environment
from gem.sandbox.containers.engine import ContainerEngine, find_engine, limit_flags
from gem.sandbox.containers.machine import ContainerMachine
from gem.sandbox.machine import Machine, MachineFiles
from gem.sandbox.process import CommandProcess, ProcessExit, exit_from_client
from gem.sandbox.results import Limits, Report

LABEL = "gem-sandbox"
IMAGE = f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
NOBODY = "65534:65534"
WORK = "/tmp"  # working directory inside the container
SHARED_MEMORY = 8  # /dev/shm gets 1/8 of the disk limit, /tmp the rest
ENGINE_FAILED = 125  # exit code of the client if the engine failed to start the container


class _ContainerSandbox(CommandSandbox):
    """Runs programs in containers as user nobody, with a read-only root file system.

    The container has no network unless the limits of the run allow it.

    Args:
        limits: default limits of every run.
        image: name of a local image that contains the commands python3 and timeout. None means the official slim image
            of the Python version that runs this code.
        runtime: container runtime, for example "runsc" for gVisor. None means the default of the engine.

    Raises:
        SandboxError: if the engine is not installed or does not respond, or the image is missing.
    """

    engine: str

    def __init__(self, *, limits: Limits | None = None, image: str | None = None, runtime: str | None = None) -> None:
        self.image, self.runtime = image or IMAGE, runtime
        self._owner = os.getpid()
        self.label = f"{LABEL}={uuid.uuid4().hex}"
        self.client = find_engine(self.engine)
        self.client.ask("version")
        if not self.client.has(self.image):
            raise SandboxError(f"{self.engine} has no image {self.image}; run `{self.engine} pull {self.image}`")
        super().__init__(limits=limits)  # last: from here on, close() is called at exit

    def machine(
        self,
        *,
        files: MachineFiles = (),
        folder: str | None = None,
        limits: Limits | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> Machine:
        """Start a machine with the system of the image; see Sandbox.machine() and ContainerMachine.

        The first files belong to root. A state is an image.
        """
        limits = limits or self.limits
        return ContainerMachine(self.client, self.image, limits=limits, files=files, folder=folder, state=state)

    def report(self) -> Report:
        machines, notes, limited = None, [], True
        try:
            machines, limited = self.client.isolation(self.image), self.client.flags(self.image).limited
        except SandboxError as e:
            notes = [f"No machines: {e}"]
        return Report(
            self.engine,
            "",
            {
                "network": "--network none",
                "files": f"the image {self.image}, read-only",
                "processes": "a pid namespace that ends with the run",
                "kernel": "no capabilities, no new privileges, the engine's seccomp profile",
                "process_limit": "--pids-limit" if limited else None,
                "memory": "--memory, without swap" if limited else None,
                "disk": "tmpfs of limited size; everything else is read-only",
                "cpu": "RLIMIT_CPU per process",
                "wall": "timeout inside the container, and the host's clock",
                "output": "counted as it is read, not logged",
            },
            [
                "CPU seconds and peak memory are not reported.",
                "Exit codes from 129 to 192 are reported as signals, as shells do.",
                *notes,
            ],
            machines,
        )

    def close(self) -> None:
        """Remove all containers of this sandbox, including any left behind by a host thread that crashed."""
        was_closed = self.closed
        super().close()
        if not was_closed and self._owner == os.getpid():
            with contextlib.suppress(SandboxError):
                call = ("ps", "--all", "--quiet", "--filter", f"label={self.label}")
                if left := self.client.ask(*call).decode().split():
                    self.client.remove(left)

    def _start(self, limits: Limits, *, for_session: bool) -> CommandProcess:
        name = f"gem-{uuid.uuid4().hex}"
        arguments = [*self._arguments(name, limits), *self._command(limits, for_session)]
        return _ContainerClient(self.client, name, arguments)

    def _arguments(self, name: str, limits: Limits) -> Iterator[str]:
        shared, flags = limits.disk_bytes // SHARED_MEMORY, self.client.flags(self.image)
        yield from ("run", "--rm", "--interactive", "--init", "--name", name, "--label", self.label, "--pull", "never")
        yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", NOBODY, "--read-only")
        yield from flags.ulimits
        yield from limit_flags(limits) if flags.limited else ()
        yield from ("--shm-size", f"{max(shared, 4096)}b")
        yield from ("--tmpfs", f"/tmp:rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes - shared}")
        yield from ("--workdir", WORK, "--log-driver", "none")
        if not limits.network:
            yield from ("--network", "none")
        if self.runtime is not None:
            yield from ("--runtime", self.runtime)
        for variable, value in environment(WORK, "/usr/local").items():
            yield from ("--env", f"{variable}={value}")

    def _command(self, limits: Limits, for_session: bool) -> Iterator[str]:
        yield self.image
        if not for_session:  # in addition to the time limit that the host enforces, which starts later
            yield from ("timeout", "--kill-after=1", str(ceil(limits.wall_s) + 2))
        yield from ("python3", *INTERPRETER_FLAGS)


class DockerSandbox(_ContainerSandbox):
    __doc__ = _ContainerSandbox.__doc__
    engine = "docker"


class PodmanSandbox(_ContainerSandbox):
    __doc__ = _ContainerSandbox.__doc__
    engine = "podman"


class _ContainerClient(CommandProcess):
    """The client process of the engine for one container. The client exits when the container exits."""

    def __init__(self, client: ContainerEngine, name: str, arguments: Sequence[str]) -> None:
        self.client, self.container = client, name
        super().__init__(client.command(*arguments), folder=client.folder)

    def kill(self) -> None:
        if self.owner == os.getpid() and not self.finished and not self.exited():
            super().kill()
            self._remove()

    def finish(self) -> ProcessExit:
        """See CommandProcess.finish.

        Raises:
            SandboxError: if the engine itself does not respond.
        """
        ended = super().finish()
        if ended.signal is not None:  # a client that was killed may leave its container running
            self._remove()
        if ended.exit_code == ENGINE_FAILED:
            self.client.ask("version")
        ended = exit_from_client(ended)
        return replace(ended, out_of_memory=ended.signal == signal.SIGKILL)

    def _remove(self) -> None:
        with contextlib.suppress(SandboxError):  # raised if the container is already removed, as it usually is
            self.client.remove([self.container])
