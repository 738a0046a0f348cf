"""Files of a training run: configuration, metrics, trajectories, curve and checkpoints.

A checkpoint is either complete or absent. It is written to a draft folder, synced and renamed; its manifest holds the
SHA-256 of every file. A process killed at any moment, or a full disk, leaves the previous checkpoint intact.
"""

from __future__ import annotations

import json
import os
import re
import reprlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from gem._internal.folders import FolderLock, check_own, open_to_append, plain, plain_tree, remember, sha256, write_text
from gem._internal.inbound import loads, read_json, read_text, shaped
from gem._internal.typed import check_keys
from gem.errors import BadValue, CallerError, InfraError, UnknownArgument
from gem.registry import register_class
from gem.rl.config import CHOICES, TrainConfig
from gem.trajectory import Trajectory

MANIFEST = "manifest.json"
# Settings that choose code, models, servers and files, for the message on a folder that is not trusted.
CHOOSING = (
    *("env", "env_kwargs", "eval_env", "wrappers", "mcp", *CHOICES, "model", "chat_template", "prompt_template"),
    *("opponents", "sampler", "sampler_options", "log"),
)
KEPT = 2  # number of checkpoints kept: the newest, and the one before in case the newest is damaged later


class RunFolder:
    """``runs/<name>/``: config.json, metrics, trajectories and evaluations (.jsonl), checkpoints/ and curve.png.

    ``reference/`` has the weights that the KL penalty compares with. They are written once, and not in each checkpoint.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file, self.curve = path / "config.json", path / "curve.png"
        self.metrics, self.trajectories = path / "metrics.jsonl", path / "trajectories.jsonl"
        self.evaluations = path / "evaluations.jsonl"
        self.checkpoints, self.reference = path / "checkpoints", path / "reference"
        self.lock: FolderLock | None = None

    @classmethod
    def create(cls, config: TrainConfig) -> RunFolder:
        """Create the folder of a new run. Raises BadValue if the name is taken or the folder cannot be written."""
        run = cls(cls.free_path(config))
        path = run.path
        try:
            path.mkdir(parents=True)
            run.lock = FolderLock(path)
            run.write_config(config)
            run.metrics.touch()
            run.trajectories.touch()
            run.evaluations.touch()
        except OSError as e:
            raise BadValue(f"cannot write the run to {path}: {e.strerror}") from e
        return run

    @staticmethod
    def free_path(config: TrainConfig) -> Path:
        """Return the path for a new run. Raises BadValue if the configured name is taken or cannot be created."""
        path = Path(config.out) / (config.name or _free_name(config))
        if path.exists():
            raise BadValue(f"{path} exists; continue it with --resume {path}, or choose another --name")
        parent = next(folder for folder in path.absolute().parents if folder.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise BadValue(f"cannot write the run to {path}: {parent} is not a writable folder; choose another --out")
        return path

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, plays: bool = False, trust: bool | None = None
    ) -> tuple[RunFolder, TrainConfig]:
        """Open the folder of an existing run and read its configuration.

        Args:
            plays: leave out an advantage and a loss of other packages, which may be missing where a policy only plays.
            trust: None if the configuration is only shown, or how to load the policy. Otherwise, the folder must be one
                that this user has made on this machine, or trusts. Without ``plays``, None is the same as False.

        Raises:
            BadValue: if the folder is not a run, its configuration is damaged, or it is not trusted.
        """
        run = cls(Path(path))
        plain(run.config_file)
        try:
            settings = read_json(run.config_file)
            if not isinstance(settings, dict):
                raise BadValue(f"it must be an object, got {reprlib.repr(settings)}")
            check_keys(str(run.config_file), settings, [field.name for field in fields(TrainConfig)])
            for name in CHOICES:
                if plays and ":" in str(settings.get(name)):
                    settings = {key: value for key, value in settings.items() if not key.startswith((name, "critic_"))}
        except OSError as e:
            raise BadValue(f"{path} is not a training run: cannot read {run.config_file.name} ({e.strerror})") from e
        except UnknownArgument as e:
            raise BadValue(f"{e}; it was written by another version of gem") from e
        except (ValueError, TypeError) as e:
            raise BadValue(f"{run.config_file} is damaged: {e}") from e
        if trust is not None or not plays:  # before TrainConfig imports the module of an advantage or a loss
            chosen = {name: settings[name] for name in CHOOSING if settings.get(name)}
            check_own(run.config_file, {"env": TrainConfig().title, **chosen}, bool(trust))
        try:
            config = TrainConfig(**settings)
        except CallerError as e:
            raise BadValue(f"cannot use the settings of {run.config_file}: {e}") from e
        if trust is not None or not plays:
            for env in (*config.envs, *config.eval_sets):
                register_class(env.id)
        return run, config

    def write_config(self, config: TrainConfig) -> None:
        """Write config.json, replacing an earlier one atomically."""
        text = json.dumps(config.saved(), indent=1) + "\n"
        if not (self.config_file.exists() and plain(self.config_file).read_text() == text):
            write_text(self.config_file, text)
            remember(self.config_file)

    def claim(self) -> None:
        """Lock the folder of an existing run. Raises BadValue if another process writes it, or for a link in it."""
        self.lock = FolderLock(self.path)
        for path in (self.checkpoints, self.reference, self.path / "sampler", self.path / "tensorboard"):
            plain_tree(path)
        for path in (*self._growing, self.curve, self.path / "wandb", self.path / f".draft-{self.reference.name}"):
            plain(path)

    def close(self) -> None:
        """Let others write into the folder."""
        if self.lock is not None:
            self.lock.close()

    def check_space(self, needed: int) -> None:
        """Raise BadValue if the disk has less room than these bytes."""
        parent = next(folder for folder in self.path.absolute().parents if folder.exists())
        free = shutil.disk_usage(parent).free
        if free < needed:
            raise BadValue(
                f"the first checkpoints take {needed / 1e6:,.0f} MB, and {parent} has {free / 1e6:,.0f} MB left; free "
                "some space, or choose another --out, --lora-rank or a smaller model"
            )

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        _append(self.metrics, [json.dumps(row)])

    def append_trajectories(self, trajectories: Iterable[Trajectory]) -> None:
        _append(self.trajectories, [json.dumps(t.to_json()) for t in trajectories])

    def append_evaluation(self, update: int, mode: str, played: Sequence[Trajectory]) -> None:
        """Record the outcome of each episode of an evaluation.

        Args:
            update: number of updates so far.
            mode: "greedy" or "sampled".
        """
        outcomes = [outcome_of(trajectory) for trajectory in played]
        _append(self.evaluations, [json.dumps({"update": update, "mode": mode, "outcomes": outcomes})])

    def read_evaluation(self, update: int, mode: str) -> list[dict[str, Any]]:
        """Return the outcomes that append_evaluation() recorded; none for an update without an evaluation."""
        lines = read_text(plain(self.evaluations)).splitlines() if self.evaluations.exists() else []
        with shaped(str(self.evaluations), "the evaluations of a run"):
            rows = [loads(line, "a line") for line in lines]
            found = [row["outcomes"] for row in rows if (row["update"], row["mode"]) == (update, mode)]
        return found[-1] if found else []

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the rows of metrics.jsonl without a last line that is still being written.

        Raises:
            BadValue: if a line is damaged.
        """
        rows = []
        lines = read_text(plain(self.metrics)).split("\n")
        for number, line in enumerate(lines[:-1], start=1):
            try:
                rows.append(row := loads(line, "it"))
                if not isinstance(row, dict) or not isinstance(row.get("eval", {}), dict):
                    raise ValueError(f"got {line[:80]!r}")
            except ValueError as e:
                raise BadValue(f"{self.metrics}, line {number}: not metrics of a run: {e}") from e
        return rows

    def sizes(self) -> dict[str, int]:
        """Return the sizes in bytes of the files that grow, by name, for truncate_to()."""
        return {file.name: file.stat().st_size for file in self._growing if file.exists()}

    @property
    def _growing(self) -> tuple[Path, ...]:
        return self.metrics, self.trajectories, self.evaluations

    def truncate_to(self, sizes: Mapping[str, int]) -> None:
        """Truncate the files that grow to the result of an earlier sizes().

        A resumed run writes the removed rows again.

        Raises:
            BadValue: if a file is shorter than its earlier size.
        """
        for file in self._growing:
            if file.name not in sizes:  # the run was started by a version that did not write it
                file.touch()
                continue
            if file.stat().st_size < sizes[file.name]:
                raise BadValue(f"{file} is shorter than at its checkpoint; it was modified since")
            os.truncate(file, sizes[file.name])


def outcome_of(trajectory: Trajectory) -> dict[str, Any]:
    """Return the seed, the reward (None if the episode failed), the number of turns and the end of an episode."""
    return {
        "seed": trajectory.seed,
        "reward": None if trajectory.failure is not None else trajectory.total_reward,
        "turns": len(trajectory.turns),
        "stop_reason": trajectory.stop_reason,
    }


def save_checkpoint(folder: Path, update: int, write: Callable[[Path], None]) -> Path:
    """Write a checkpoint and delete all but the newest KEPT checkpoints.

    Args:
        folder: the folder of all checkpoints of the run.
        update: number of the update. The folder must not have a checkpoint of this update.
        write: function that writes the files of the checkpoint to the given empty directory.

    Returns:
        The path of the checkpoint.

    Raises:
        OSError: if the checkpoint cannot be written. Earlier checkpoints are then unchanged.
    """
    target = folder / f"update-{update:06d}"
    write_complete(target, write, update=update)
    for old in complete_checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old)
    return target


def write_complete(target: Path, write: Callable[[Path], None], **about: Any) -> None:
    """Write a folder that is either complete or absent, with a manifest.

    Args:
        target: the folder, which must not exist.
        write: function that writes the files to the given empty directory.
        about: more entries of the manifest.
    """
    draft = target.with_name(f".draft-{target.name}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        write(draft)
        files = sorted(path for path in draft.rglob("*") if path.is_file())
        sums = {str(file.relative_to(draft)): sha256(file) for file in files}
        (draft / MANIFEST).write_text(json.dumps({**about, "sha256": sums}, indent=1))
        for file in [*files, draft / MANIFEST, draft]:
            _sync(file)
        draft.rename(target)
        _sync(target.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def check_intact(folder: Path, advice: str) -> None:
    """Raise BadValue, with advice, if files of a folder that write_complete() wrote are missing or differ."""
    try:
        files = plain_tree(folder)
        sums: dict[str, Any] = read_json(files[MANIFEST])["sha256"]
        # Only names of files in the folder are read: a name such as ../../x could be that of any other one.
        damaged = [name for name, wanted in sums.items() if name not in files or sha256(files[name]) != wanted]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        damaged = [f"{MANIFEST}: {e}"]
    if damaged:
        raise BadValue(f"{folder} is damaged ({', '.join(damaged)}); {advice}")


def complete_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first."""
    found = plain(folder).glob(f"update-*/{MANIFEST}")
    return sorted(path.parent for path in found if re.fullmatch(r"update-[0-9]+", path.parent.name))


def newest_checkpoint(folder: Path) -> Path:
    """Verify and return the newest checkpoint. Raises BadValue if there is no checkpoint or the newest is damaged."""
    checkpoints = complete_checkpoints(folder)
    if not checkpoints:
        raise BadValue(f"no complete checkpoint under {folder}; start the run again")
    newest = checkpoints[-1]
    others = f"delete it to resume from {checkpoints[-2].name}" if len(checkpoints) > 1 else "start the run again"
    check_intact(newest, others)
    return newest


def _append(file: Path, lines: list[str]) -> None:
    """Append all lines. If writing fails, restore the previous file size and raise InfraError."""
    before = file.stat().st_size
    try:
        with os.fdopen(open_to_append(file), "ab", buffering=0) as out:
            data = "".join(line + "\n" for line in lines).encode()
            while data:
                data = data[out.write(data) :]
    except OSError as e:
        os.truncate(file, before)
        raise InfraError(f"cannot write {file}: {e.strerror}; its complete lines are kept") from e


def _free_name(config: TrainConfig) -> str:
    first, more = config.envs[0], len(config.envs) - 1
    title = f"{first.id}-and-{more}-more" if more else first.id
    base = f"{title.replace(':', '-')}-seed{config.seed}"
    names = [base, *(f"{base}-{n}" for n in range(2, 10_000))]
    return next(name for name in names if not (Path(config.out) / name).exists())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
