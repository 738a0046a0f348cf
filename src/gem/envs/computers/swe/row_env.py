"""Issues of SWE-bench and SWE-Gym: change a repository so that the tests of its repair pass.

Action       a command between <bash> and </bash>; the first one of a reply counts. <finish> ends the episode.
Observation  the issue on reset; then the output of the command and its exit status.
Reward       at the end, 1.0 if every test of FAIL_TO_PASS and PASS_TO_PASS passes, else 0.0.
Ends         terminated on <finish>; truncated after ``max_turns`` replies, where the changes count as well.
Verifier     the changes of the agent and test_patch are applied to the repository in a fresh machine, where the tests
             run. See gem.envs.computers.swe.row_verify.

The repository is in /testbed, at base_commit, as a git repository with this one commit. It comes from a local checkout,
or from the image of a container.
Actions and limits are those of terminal tasks; order of rows as in gem.envs.dataset_env.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from gem.core import Info
from gem.datasets import Rows, load_rows
from gem.envs.computers.containers.images import image_map_of
from gem.envs.computers.shell_env import Oracle, ShellEnv, State
from gem.envs.computers.swe import row_images
from gem.envs.computers.swe.checkouts import files_at, find_checkout
from gem.envs.computers.swe.outcomes import run_of
from gem.envs.computers.swe.row_images import RowImages, setup_of
from gem.envs.computers.swe.row_verify import ACTIVATE, FOLDER, SETUP, verify_row
from gem.envs.computers.swe.rows import SweRow, read_row
from gem.envs.computers.task import TerminalTask
from gem.errors import BadValue, did_you_mean
from gem.sandbox import Limits, Machine
from gem.sandbox.containers.engine import find_engine
from gem.sandbox.machine import MachineFiles
from gem.seeding import permuted

__all__ = ["Oracle", "SweRowsEnv"]

PROGRAMS = ("git",)
TEST_OUTPUT_BYTES = 32 << 20


class SweRowsEnv(ShellEnv):
    """See the module docstring for the rules.

    Args:
        dataset_name: a .jsonl, .parquet or other dataset file, a folder, or a dataset of the hub (see
            gem.datasets.load_rows). After a "#", the instance_id of the only row to ask.
        split: None for the only one of the dataset.
        dataset: rows to use instead.
        repositories: folders with checkouts, by repository; those in $GEM_DATA/repositories are used for the others. In
            a git repository, base_commit is read; another folder is used as it is.
        image: play in containers of podman or docker with these images, instead of checkouts; see RowImages.
        image_map: local names of images, by name or pattern. None means the variable GEM_IMAGE_MAP.
        engine: "podman", "docker", or "auto" for the one that is installed.
        hints: whether the agent is also shown hints_text.
        shuffle: as in DatasetEnv.
        test_timeout: CPU seconds for the tests; they may take four times as many by the clock, which is the only limit
            in a container.
        max_turns, timeout, max_failures, limits: as in TerminalEnv.

    Raises:
        BadValue: a value out of range, or a dataset that cannot be read. reset() raises it for a malformed row, with
            the column, for a repository without a checkout, and for a row whose tests nothing says how to run.
        MissingDependency: reset() needs the package swebench to find out how the tests of a row are run.
        SandboxError: this machine cannot isolate a shell, or lacks git. With ``image``: no engine is installed; reset()
            raises it if an image is missing.
    """

    folder: ClassVar = FOLDER

    def __init__(
        self,
        dataset_name: str = "",
        split: str | None = None,
        dataset: Any = None,
        *,
        repositories: Mapping[str, Any] | None = None,
        image: str | None = None,
        image_map: Mapping[str, str] | None = None,
        engine: str = "auto",
        hints: bool = False,
        shuffle: bool = True,
        test_timeout: float = 600.0,
        max_turns: int = 50,
        timeout: float = 60.0,
        max_failures: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        if not test_timeout > 0:
            raise BadValue(f"test_timeout must be above 0, got {test_timeout}")
        if not dataset_name and dataset is None:
            raise BadValue("pass dataset_name or dataset")
        self.images = None if image is None else RowImages(image, image_map_of(image_map), engine)
        if self.images is not None:
            find_engine(engine)
            self.state_fields = ("image",)
            limits = limits or replace(row_images.LIMITS, wall_s=timeout)
        programs = PROGRAMS if self.images is None else None
        super().__init__(
            "a row of SWE-bench",
            programs,
            max_turns=max_turns,
            timeout=timeout,
            max_failures=max_failures,
            limits=limits,
        )
        name, _, only = dataset_name.partition("#")
        self.repositories, self.hints, self.shuffle = repositories, hints, shuffle
        limits = replace(self.limits, wall_s=4 * test_timeout, cpu_s=test_timeout, output_bytes=TEST_OUTPUT_BYTES)
        self.test_limits = limits  # a verdict depends on CPU seconds, not on the load of the machine
        self.dataset: Rows = load_rows(name if dataset is None else dataset, split)
        self._asked: Sequence[int] = range(len(self.dataset)) if not only else [self._number_of(only)]

    def reset(self, seed: int | None = None, idx: int | None = None) -> tuple[str, Info]:
        """Start an episode with the next row in the order of the seed, or with the row number ``idx``."""
        self._begin(seed)
        self.state = State(self._next() if idx is None else idx)
        row = self.row()
        run_of(row)  # what cannot be verified is not played
        if self.images is not None:
            self.images.image_of(row)
        return self.rules(), {"idx": self.state.number, "instance_id": row.instance_id, "repo": row.repo}

    def ask_only(self, numbers: Sequence[int], *, shuffle: bool = True) -> None:
        """Ask only the rows with these numbers; see DatasetEnv.ask_only()."""
        self._asked, self.shuffle = numbers, shuffle

    def instances(self) -> int | None:
        return len(self._asked)

    def rules(self) -> str:
        return (
            f"{self.task().instruction}\n\nYou work in a shell on a Linux machine, in the folder {FOLDER}, without a "
            "network. Write a command between <bash> and </bash>; I answer with its output. You have "
            f"{self.max_turns} turns and {self.timeout:g} seconds per command. When the "
            "issue is solved, write <finish>."
        )

    def row(self) -> SweRow:
        """Return the row of this episode. Raises BadValue if it is malformed, with its place."""
        number = self.state.number
        if not 0 <= number < len(self.dataset):
            raise BadValue(f"idx must be a row number from 0 to {len(self.dataset) - 1}, got {number!r}")
        row = self.dataset[number]
        try:
            return read_row(row)
        except BadValue as e:
            raise BadValue(f"{self.dataset.where(number)}: {e}") from e

    def task(self) -> TerminalTask:
        row = self.row()
        if self.images is None:
            files = files_at(find_checkout(row.repo, self.repositories), row.base_commit, FOLDER)
        else:
            files = ()
        hints = f"\n\nHints:\n\n{row.hints_text.strip()}" if self.hints and row.hints_text.strip() else ""
        return TerminalTask(
            instruction=f"The folder {FOLDER} is a checkout of {row.repo}. Change it so that this issue is solved:\n\n"
            f"{row.problem_statement.strip()}{hints}\n\nHidden tests check the result. Your changes of tests and of "
            "the settings of test runners have no effect.",
            files={entry.path: entry for entry in files},
            expected={},
            setup=SETUP if self.images is None else setup_of(row),
            solution=(f"cd {FOLDER} && printf %s {shlex.quote(row.patch)} | git apply",),
        )

    def machine(self) -> Machine:
        fresh = self._live is None and self._saved is None
        machine = super().machine()
        if fresh and self.images is not None:
            machine.exec(ACTIVATE)
        return machine

    def _start(self, files: MachineFiles, limits: Limits | None = None) -> Machine:
        if self.images is None:
            return super()._start(files, limits)
        return self.images.start(self.images.image_of(self.row()), files, limits or self.limits)

    def _restored(self, saved: Mapping[str, Any]) -> Machine:
        return super()._restored(saved) if self.images is None else self.images.restored(saved, self.limits)

    def _verdict(self) -> str:
        start_tests = partial(self._start, limits=self.test_limits)
        return verify_row(self.row(), self.task(), self.machine(), self._start, start_tests)

    def _number_of(self, instance_id: str) -> int:
        ids = [row.get("instance_id") for row in self.dataset]
        if instance_id not in ids:
            raise BadValue(f"no instance_id {instance_id!r}{did_you_mean(instance_id, map(str, ids))} in the rows")
        return ids.index(instance_id)

    def _next(self) -> int:
        count, seed = len(self._asked), self._seed or 0
        if not self.shuffle:
            return self._asked[(seed + self._episode) % count]
        epoch, position = divmod(self._episode, count)
        return self._asked[permuted(position, count, seed, epoch)]
