"""Harbor task folders (also of Terminal-Bench 2 and 3): ``harbor:PATH`` or ``harbor:PATH#name``.

The verifier runs where the task says. In a separate container, it gets the artifacts only: that is the safe kind. In
the agent's container (shared), processes of the agent are still alive, as the format demands; /tests and /logs/verifier
are mounted from the host, /tests read-only, and hold nothing before the agent has finished. Rewards are read on the
host. This does not hold against an agent that is root there: it can replace the programs that the verifier calls.

A verifier that leaves no reward is run once more in a fresh container with the same files. If that leaves none either,
and a control verifier works, the state is the cause, and the reward is 0.

Actions, observations and ends are those of gem.envs.computers.containers.container_env.
"""

from __future__ import annotations

import contextlib
import logging
import posixpath
import tempfile
import time
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from gem.envs.computers.containers.container_env import ContainerEnv, Oracle, with_variables
from gem.envs.computers.containers.harbor_task import ContainerSettings, HarborTask, Healthcheck, read_harbor_task
from gem.envs.computers.containers.rewards import RewardMissing, read_rewards, scalar
from gem.envs.computers.containers.verifier import Verdict, VerifierFolders, end_of, run_twice, verifier_folders
from gem.errors import BadValue, SandboxError
from gem.sandbox.containers.machine import ContainerMachine, discard_image
from gem.sandbox.machine import FOLDER, LINK, FileEntry

__all__ = ["HarborEnv", "Oracle"]

_log = logging.getLogger(__name__)
_VERIFY = "exec >/logs/verifier/test-stdout.txt 2>&1; exec /tests/test.sh"


class HarborEnv(ContainerEnv[HarborTask]):
    __doc__ = ContainerEnv.__doc__
    kind: ClassVar = "harbor"
    marker: ClassVar = "task.toml"

    def read(self, folder: Path) -> HarborTask:
        task = read_harbor_task(folder)
        for note in task.notes:
            _log.info("%s: %s", folder, note)
        modes = {task.agent_network, task.verifier_network}
        if self.network and "allowlist" in modes:
            raise BadValue(f"{folder / 'task.toml'}: network_mode 'allowlist' is not supported; use network=False")
        if self.network and task.verifier is None and len(modes) > 1:
            raise BadValue(f"{folder / 'task.toml'}: verifier.network_mode differs from that of the shared container")
        return task

    def instruction(self, task: HarborTask) -> str:
        skills = f"\n\nThe folder {task.container.skills} has skills that you may use." if task.container.skills else ""
        return f"{task.instruction}{skills}"

    def seconds(self, task: HarborTask) -> float | None:
        return task.agent_timeout_s

    def start(self, task: HarborTask, saved: Mapping[str, Any] | None) -> ContainerMachine:
        self._folders = VerifierFolders() if task.verifier is None else None
        mounts = self._folders.mounts(tests=True) if self._folders else {}
        network = task.agent_network == "public"
        machine = self._container(task, task.container, network, mounts, user=task.agent_user, saved=saved)
        try:
            if saved is None:
                machine.write([FileEntry("/logs/artifacts", b"", FOLDER, 0o777)])
                if task.container.healthcheck:
                    wait_until_healthy(machine, task.container.healthcheck)
        except BaseException:
            machine.close()
            raise
        return machine

    def solution(self, task: HarborTask, machine: ContainerMachine) -> list[str]:
        if not (task.folder / "solution" / "solve.sh").is_file():
            raise BadValue(f"{task.folder} has no solution/solve.sh")
        machine.upload(task.folder / "solution", "/solution")
        machine.run(["/bin/sh", "-c", "chmod -R a+rX /solution; chmod a+x /solution/solve.sh"], user="0")
        variables = {"DEBIAN_FRONTEND": "noninteractive", **task.solution_environment}
        return [with_variables("/solution/solve.sh", variables)]

    # ---- the verifier

    def verify(self, task: HarborTask, machine: ContainerMachine) -> Verdict:
        try:
            return self._verify(task, machine)
        except SandboxError as e:
            self.control(task)
            return Verdict(0.0, reason=f"the container cannot be read, and the control verifier works: {e}")

    def _verify(self, task: HarborTask, machine: ContainerMachine) -> Verdict:
        for hook in task.collect:
            machine.run(["/bin/sh", "-c", hook.command], wall_s=hook.timeout_s, user=hook.user)
        if task.verifier is None:
            image = machine.commit()
            folders = self._folders
            assert folders is not None
            first = lambda: self._in_machine(task, machine, folders)  # noqa: E731
            try:
                return run_twice(first, lambda: self._again(task, image), lambda: self.control(task))
            finally:
                discard_image(machine.engine, image)
        try:
            files = artifacts_of(machine, task)
        except OSError as e:  # such as too many bytes
            self.control(task)
            return Verdict(0.0, reason=f"the artifacts cannot be read: {e.strerror or e}")
        machine.close()  # nothing of the agent runs beside its verifier
        separately = lambda: self._apart(task, files)  # noqa: E731
        return run_twice(separately, separately, lambda: self.control(task))

    def control(self, task: HarborTask) -> None:
        """Read and save a fresh container, and run a verifier there that works unless the engine fails.

        Raises:
            SandboxError: one of these does not work.
        """
        task = replace(task, verifier_timeout_s=60.0)
        with verifier_folders() as folders, tempfile.TemporaryDirectory() as place:
            Path(place, "test.sh").write_text("#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n", encoding="utf-8")
            mounts = folders.mounts(tests=True)
            with contextlib.closing(self._container(task, task.verifier or task.container, False, mounts)) as machine:
                try:
                    machine.write([FileEntry("/gem-control", b"")])
                    machine.read("/gem-control")
                    discard_image(machine.engine, machine.commit())
                    verdict = self._in_machine(task, machine, folders, Path(place))
                except OSError as e:
                    raise SandboxError(f"the files of a fresh container cannot be read: {e}") from e
                except RewardMissing as e:
                    who = f" as user {task.verifier_user!r}" if task.verifier_user else ""
                    raise SandboxError(f"the control verifier fails{who}: {e}") from e
        if verdict.reward != 1:
            raise SandboxError(f"the control verifier fails: {verdict}")

    def _again(self, task: HarborTask, image: str) -> Verdict:
        """Run a shared verifier in a fresh container with the files of the agent."""
        with verifier_folders() as folders:
            network, mounts = task.verifier_network == "public", folders.mounts(tests=True)
            machine = self._container(task, task.container, network, mounts, saved={"image": image})
            with contextlib.closing(machine):
                return self._in_machine(task, machine, folders)

    def _apart(self, task: HarborTask, files: list[FileEntry]) -> Verdict:
        """Run a separate verifier on artifacts."""
        assert task.verifier is not None
        with verifier_folders() as folders:
            network, mounts = task.verifier_network == "public", folders.mounts(tests=not task.bundled)
            with contextlib.closing(self._container(task, task.verifier, network, mounts)) as machine:
                try:
                    machine.write(files)
                except OSError as e:
                    raise RewardMissing(f"the artifacts cannot be copied: {e.strerror}") from e
                return self._in_machine(task, machine, folders)

    def _in_machine(
        self, task: HarborTask, machine: ContainerMachine, folders: VerifierFolders, tests: Path | None = None
    ) -> Verdict:
        """Run the verifier in a machine. Raises RewardMissing, with the end of its output."""
        folders.fill(tests or (None if task.bundled else task.folder / "tests"))
        if task.verifier_user:
            machine.run(["/bin/sh", "-c", 'chown "$1" /logs/verifier', "sh", task.verifier_user], user="0")
        settings = task.verifier or task.container
        result = machine.run(
            ["/bin/sh", "-c", _VERIFY],
            wall_s=task.verifier_timeout_s,
            user=task.verifier_user or "0",
            folder=settings.workdir,
            environment=task.verifier_environment,
        )
        try:
            rewards = read_rewards(folders.logs)
            reward = scalar(rewards)
        except RewardMissing as e:
            how = f"{result.status.value} {result.exit_code}" if not result.ok else "exit status 0"
            raise RewardMissing(f"{e} ({how}){end_of(folders.logs / 'test-stdout.txt')}") from None
        if reward == 1:
            return Verdict(reward, rewards)
        named = ", ".join(f"{name} {value:g}" for name, value in rewards.items())
        said = end_of(folders.logs / "test-stdout.txt")
        return Verdict(reward, rewards, f"the reward of the verifier is {reward:g} ({named}){said}")

    def _container(
        self,
        task: HarborTask,
        settings: ContainerSettings,
        network: bool,
        mounts: Mapping[str, str],
        *,
        user: str | None = None,
        saved: Mapping[str, Any] | None = None,
    ) -> ContainerMachine:
        name, seconds = task.folder.name, settings.build_timeout_s
        image = "" if saved else self.image(settings.folder, image=settings.image, name=name, timeout_s=seconds)
        memory = self.limits.memory_bytes if settings.memory_mb is None else settings.memory_mb << 20
        return ContainerMachine(
            self.engine(),
            image,
            limits=replace(self.limits, wall_s=self.timeout, memory_bytes=memory, network=network and self.network),
            folder=settings.workdir,
            user=user,
            environment=settings.environment,
            cpus=settings.cpus,
            mounts=mounts,
            state={"folder": settings.workdir, "exports": "", **saved} if saved else None,
        )


def wait_until_healthy(machine: ContainerMachine, check: Healthcheck) -> None:
    """Run a health check until it passes. Raises SandboxError if it fails too often."""
    start, failures = time.monotonic(), 0
    while not machine.run(["/bin/sh", "-c", check.command], wall_s=check.timeout_s).ok:
        starting = time.monotonic() - start < check.start_period_s
        failures += not starting
        if failures >= check.retries:
            raise SandboxError(f"the health check fails: {check.command}")
        time.sleep(check.start_interval_s if starting else check.interval_s)


def artifacts_of(machine: ContainerMachine, task: HarborTask) -> list[FileEntry]:
    """Return the artifacts that exist. Links that leave an artifact are left out, as they would lead into the tests.

    Raises:
        OSError: they have too many bytes.
    """
    found: list[tuple[str, FileEntry]] = []
    for source in task.artifacts:
        path = posixpath.normpath(posixpath.join(task.container.workdir or machine.first_folder, source))
        try:
            found.append((path, FileEntry(path, machine.read(path))))
        except IsADirectoryError:
            found += [(path, FileEntry(path, b"", FOLDER, 0o755)), *((path, entry) for entry in machine.entries(path))]
        except FileNotFoundError:
            continue
    links = {entry.path for _, entry in found if entry.kind == LINK}
    return [entry for path, entry in found if entry.kind != LINK or not leaves(entry, path, links)]


def leaves(link: FileEntry, folder: str, links: Container[str]) -> bool:
    """Whether a link may lead out of a folder: its target is absolute, has too many "..", or leads through a link.

    Args:
        links: the paths of all links that are copied with it.
    """
    place = link.path.split("/")[:-1]
    target = link.content.decode("utf-8", "surrogateescape")
    for part in target.split("/"):
        if "/".join(place) in links:
            return True
        if part == "..":
            place.pop()
        elif part not in ("", "."):
            place.append(part)
        if len(place) <= folder.count("/"):
            return True
    return target.startswith("/")
