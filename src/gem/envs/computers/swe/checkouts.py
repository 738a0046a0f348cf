"""Local checkouts of repositories: their files at a commit, as entries of a machine."""

from __future__ import annotations

import os
import subprocess
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
    tree = _git(folder, "ls-tree", "-r", "-t", "-z", "--full-tree", commit)
    rows = [row.partition(b"\t") for row in tree.split(b"\0") if row]
    found = [(*head.decode().split()[:3], os.fsdecode(path)) for head, _, path in rows]  # mode, type, id, path
    contents = _blobs(folder, [number for _, kind, number, _ in found if kind == "blob"])
    entries = [FileEntry(inside, b"", FOLDER, 0o755)]
    for mode, kind, number, path in found:
        if kind != "blob":  # a folder, or a submodule, which is empty
            entries.append(FileEntry(f"{inside}/{path}", b"", FOLDER, 0o755))
        elif mode == "120000":
            entries.append(FileEntry(f"{inside}/{path}", contents[number], LINK))
        else:
            entries.append(FileEntry(f"{inside}/{path}", contents[number], FILE, 0o755 if mode == "100755" else 0o644))
    return tuple(entries)


def _blobs(folder: Path, numbers: list[str]) -> dict[str, bytes]:
    """Return the contents of objects by their ids."""
    data, at, contents = _git(folder, "cat-file", "--batch", stdin="\n".join(numbers)), 0, {}
    for number in numbers:
        end = data.index(b"\n", at)
        size = int(data[at:end].split()[-1])
        contents[number] = data[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return contents


def _git(folder: Path, *command: str, stdin: str = "") -> bytes:
    """Run a command that reads objects as they are. Raises BadValue if it fails.

    A repository's own settings can name programs. `git archive` and `git checkout` run those that filter files, and
    reading an object that is missing those that fetch; no protocol is allowed here.
    """
    options = ["-c", "safe.directory=*", "-c", "protocol.allow=never", "-C", str(folder)]
    try:
        done = subprocess.run(["git", *options, *command], input=stdin.encode(), capture_output=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise BadValue(f"{folder}: git {command[0]} fails: {e}") from e
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise BadValue(f"{folder} has no commit {command[-1]}: {reason}")
    return done.stdout


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
