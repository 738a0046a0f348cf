"""Local checkouts of repositories: their files at a commit, as entries of a machine."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from gem.datasets.load import GEM_DATA
from gem.errors import BadValue
from gem.sandbox.machine import FILE, FOLDER, LINK, FileEntry

REPOSITORIES = "repositories"  # folder in $GEM_DATA with checkouts, as owner/name
TIMEOUT_S = 300


def find_checkout(repo: str, repositories: Mapping[str, str | Path] | None) -> Path:
    """Return the folder of a repository.

    Args:
        repo: owner/name.
        repositories: folders by repository; those in $GEM_DATA/repositories are used for the others.

    Raises:
        BadValue: there is none.
    """
    folder = (repositories or {}).get(repo)
    if folder is None and (root := os.environ.get(GEM_DATA)):
        folder = Path(root, REPOSITORIES, repo)
    if folder is None or not Path(folder).is_dir():
        missing = "" if folder is None else f" ({folder} is no folder)"
        raise BadValue(
            f"no checkout of {repo!r}{missing}: pass repositories={{{repo!r}: FOLDER}}, or put one in "
            f"${GEM_DATA}/{REPOSITORIES}/{repo}"
        )
    return Path(folder)


@lru_cache(maxsize=16)
def files_at(folder: Path, commit: str, inside: str) -> tuple[FileEntry, ...]:
    """Return the files of a git repository at a commit, or those of another folder as they are.

    Args:
        folder: of the host.
        commit: not used for a folder that is no git repository.
        inside: folder of the machine.

    Raises:
        BadValue: git fails, for example because the commit is missing.
    """
    if not (folder / ".git").exists() and not (folder / "HEAD").is_file():
        return tuple(_folder_entries(folder, inside))
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), "archive", "--format=tar", commit]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise BadValue(f"{folder}: git archive {commit} fails: {e}") from e
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise BadValue(f"{folder} has no commit {commit}: {reason}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        return tuple(_tar_entries(archive, inside))


def _tar_entries(archive: tarfile.TarFile, inside: str) -> list[FileEntry]:
    entries = [FileEntry(inside, b"", FOLDER, 0o755)]
    for member in archive.getmembers():
        path = f"{inside}/{member.name.rstrip('/')}"
        if member.issym():
            entries.append(FileEntry(path, os.fsencode(member.linkname), LINK))
        elif member.isdir():
            entries.append(FileEntry(path, b"", FOLDER, 0o755))
        elif (file := archive.extractfile(member)) is not None:
            entries.append(FileEntry(path, file.read(), FILE, 0o755 if member.mode & 0o100 else 0o644))
    return entries


def _folder_entries(folder: Path, inside: str) -> list[FileEntry]:
    entries = [FileEntry(inside, b"", FOLDER, 0o755)]
    for child in sorted(folder.iterdir()):
        path = f"{inside}/{child.name}"
        if child.is_symlink():
            entries.append(FileEntry(path, os.fsencode(os.readlink(child)), LINK))
        elif child.is_dir():
            entries += _folder_entries(child, path)
        elif child.is_file():
            entries.append(FileEntry(path, child.read_bytes(), FILE, 0o755 if child.stat().st_mode & 0o100 else 0o644))
    return entries
