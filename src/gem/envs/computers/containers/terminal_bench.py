"""Task folders of Terminal-Bench 1: ``terminalbench:PATH`` or ``terminalbench:PATH#name``.

The tests run in the agent's container, whose processes are still alive, as the format demands. /tests is mounted from
the host, read-only, and empty until the agent has finished. The task is solved if each test has passed. Which tests
there are is read from the test files before, not from the output, so that an output that ends early is no success.
XFAIL and SKIPPED count as passed, as in the format. This does not hold against an agent that is root there: it can
replace the programs that the tests call.

Actions, observations and ends are those of gem.envs.computers.containers.container_env.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from gem.envs.computers.containers.bench_task import HIDDEN, MARKER, BenchTask, read_bench_task, solution_of
from gem.envs.computers.containers.container_env import ContainerEnv, Oracle
from gem.envs.computers.containers.rewards import RewardMissing
from gem.envs.computers.containers.verifier import Verdict, VerifierFolders, run_twice, verifier_folders
from gem.errors import SandboxError
from gem.sandbox.containers.machine import ContainerMachine, discard_image

__all__ = ["Oracle", "TerminalBenchEnv", "read_summary"]

BUILD_S = 1800.0
OUTPUT_BYTES = 4 << 20
_PASSED, _FAILED = ("PASSED", "XFAIL", "SKIPPED"), ("FAILED", "XPASS", "ERROR", "UNKNOWN")
_LINE = re.compile(rf"^({'|'.join(_PASSED + _FAILED)})\s+(\[\d+\]\s+)?(\S.*?)(?: - .*)?$", re.MULTILINE)
_SUMMARY = "short test summary info"


def read_summary(output: str, tests: Mapping[str, int]) -> str:
    """Return why the tests did not pass, or "".

    Args:
        output: of pytest.
        tests: names such as "test_outputs.py::test_one", and how many results each must have.

    Raises:
        RewardMissing: there is no summary.
    """
    if _SUMMARY not in output:
        raise RewardMissing(f"the tests printed no summary; the output ends with: {output[-500:].strip()}")
    passed: Counter[str] = Counter()
    for status, _, name in _LINE.findall(output.rpartition(_SUMMARY)[2]):
        if status in _FAILED:
            return f"{status} {name}"
        passed[re.sub(r"\[.*", "", name.rpartition("/")[2])] += 1
    missing = [name for name, count in tests.items() if passed[name] < count]
    return f"{missing[0]} has not passed" if missing else ""


class TerminalBenchEnv(ContainerEnv[BenchTask]):
    __doc__ = ContainerEnv.__doc__
    kind: ClassVar = "terminalbench"
    marker: ClassVar = MARKER

    def read(self, folder: Path) -> BenchTask:
        return read_bench_task(folder)

    def instruction(self, task: BenchTask) -> str:
        return task.instruction

    def seconds(self, task: BenchTask) -> float | None:
        return task.agent_timeout_s

    def start(self, task: BenchTask, saved: Mapping[str, Any] | None) -> ContainerMachine:
        self._folders = VerifierFolders()
        return self._container(task, self._folders, saved)

    def solution(self, task: BenchTask, machine: ContainerMachine) -> list[str]:
        commands = solution_of(task.folder)
        if commands is not None:
            return commands
        machine.upload(task.folder / "solution.sh", "/oracle/solution.sh")
        return ["bash /oracle/solution.sh"]

    def verify(self, task: BenchTask, machine: ContainerMachine) -> Verdict:
        image, folders = machine.commit(), self._folders
        assert folders is not None
        first = lambda: self._in_machine(task, machine, folders)  # noqa: E731
        try:
            return run_twice(first, lambda: self._again(task, image), lambda: self.control(task))
        finally:
            discard_image(machine.engine, image)

    def control(self, task: BenchTask) -> None:
        """Run a program in a fresh container of the task. Raises SandboxError if that fails."""
        with verifier_folders() as folders, contextlib.closing(self._container(task, folders, None)) as machine:
            result = machine.run(["/bin/sh", "-c", "ls /tests && echo works"], user="0", wall_s=60.0)
        if not result.stdout.endswith("works\n"):
            raise SandboxError(f"the control verifier fails: {result.status} {result.stdout[-200:]!r}")

    def _again(self, task: BenchTask, image: str) -> Verdict:
        with verifier_folders() as folders:
            state = {"image": image, "folder": None, "exports": ""}
            with contextlib.closing(self._container(task, folders, state)) as machine:
                return self._in_machine(task, machine, folders)

    def _in_machine(self, task: BenchTask, machine: ContainerMachine, folders: VerifierFolders) -> Verdict:
        folders.fill(task.folder / "tests")
        shutil.copy(task.folder / "run-tests.sh", folders.tests)
        if task.same_shell:
            result = machine.exec("bash /tests/run-tests.sh", wall_s=task.test_timeout_s)
        else:
            command = ["/bin/sh", "-c", "exec bash /tests/run-tests.sh 2>&1"]
            variables = {"TEST_DIR": "/tests", "T_BENCH_TEST_DIR": "/tests"}
            result = machine.run(
                command, wall_s=task.test_timeout_s, folder=machine.first_folder, environment=variables
            )
        why = read_summary(result.stdout, task.tests)
        return Verdict(0.0 if why else 1.0, reason=why)

    def _container(
        self, task: BenchTask, folders: VerifierFolders, saved: Mapping[str, Any] | None
    ) -> ContainerMachine:
        image = "" if saved else self._image(task)
        return ContainerMachine(
            self.engine(),
            image,
            limits=replace(self.limits, wall_s=self.timeout, output_bytes=OUTPUT_BYTES, network=self.network),
            folder=task.workdir,
            environment=task.environment,
            mounts={"/tests:ro": str(folders.tests)},
            state=saved,
        )

    def _image(self, task: BenchTask) -> str:
        """Build the image from the folder without tests and solution."""
        name = task.folder.name
        if task.image is not None:
            return self.image(task.folder, image=task.image, name=name, timeout_s=BUILD_S)
        with tempfile.TemporaryDirectory(prefix="gem-context-") as place:
            shutil.copytree(task.folder, place, dirs_exist_ok=True, symlinks=True, ignore=_ignored(task.folder))
            return self.image(Path(place), image=None, name=name, timeout_s=BUILD_S)


def _ignored(top: Path) -> Any:
    return lambda folder, names: [name for name in names if name in HIDDEN] if Path(folder) == top else []
