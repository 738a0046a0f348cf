"""Checkpoints that are either complete or not there.

A checkpoint is written beside its place, synced, and renamed into it; the manifest with every file's SHA-256 goes in
last. So a process killed at any moment, or a disk that fills up, leaves the checkpoint before it as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gem.errors import BadValue

MANIFEST = "manifest.json"
KEPT = 2  # the newest, and the one before in case the newest is damaged later


def save_checkpoint(folder: Path, update: int, write: Callable[[Path], None]) -> Path:
    """Write checkpoint `update` under folder and drop the ones older than the last KEPT.

    Args:
        update: one that has no checkpoint yet.
        write: fills the empty directory it is given.

    Returns the checkpoint's path. An OSError from a full or failing disk goes through, and nothing else is touched.
    """
    target, draft = folder / f"update-{update:06d}", folder / f".draft-{update:06d}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        write(draft)
        files = sorted(path for path in draft.rglob("*") if path.is_file())
        sums = {str(file.relative_to(draft)): _sha256(file) for file in files}
        (draft / MANIFEST).write_text(json.dumps({"update": update, "sha256": sums}, indent=1))
        for file in [*files, draft / MANIFEST, draft]:
            _sync(file)
        draft.rename(target)
        _sync(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    for old in complete_checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old)
    return target


def complete_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints under a folder, oldest first."""
    return sorted(path.parent for path in folder.glob(f"update-*/{MANIFEST}"))


def newest_checkpoint(folder: Path) -> Path:
    """The newest checkpoint, verified. Raises BadValue when there is none or a file of it is damaged."""
    checkpoints = complete_checkpoints(folder)
    if not checkpoints:
        raise BadValue(f"no complete checkpoint under {folder}; start the run again")
    newest = checkpoints[-1]
    try:
        sums: dict[str, Any] = json.loads((newest / MANIFEST).read_text())["sha256"]
        damaged = [name for name, wanted in sums.items() if _sha256(newest / name) != wanted]
    except (OSError, ValueError, KeyError, TypeError) as e:
        damaged = [f"{MANIFEST}: {e}"]
    if damaged:
        way_out = f"delete it to go on from {checkpoints[-2].name}" if len(checkpoints) > 1 else "start the run again"
        raise BadValue(f"the checkpoint {newest} is damaged ({', '.join(damaged)}); {way_out}")
    return newest


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
