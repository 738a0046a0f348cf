"""Folders of runs and evaluations: whose they are, one writer at a time, and no links to other places.

A folder may come from someone else. Its data is shown; what it says about code, servers and keys is used only if this
user made it on this machine, or trusts it. Those folders are recorded outside of them, in
``$XDG_STATE_HOME/gem/folders``: an empty file for each, named by a digest of its file of settings. The digest covers
the content, the inode and the time of its last change, which no program can set, so that a copied, unpacked or edited
file has another one; a folder that is renamed keeps it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import socket
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gem._internal.text import one_line, shorten
from gem.errors import BadValue

LOCK = ".gem-lock"
MOST = 20  # what a folder would use that is shown
WAIT_S = 1.0  # for workers to end whose parent was killed; they hold its lock
_HOLDER = re.compile(r"(process \d+ on (\S+) since \S+) \(boot (\S*)\)\n", re.ASCII)
_MADE = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC  # O_NOFOLLOW: also for a link that is made after plain() has looked

logger = logging.getLogger(__name__)


def plain(path: Path) -> Path:
    """Return the path of a file or folder inside a folder, which may be missing. Raises BadValue for anything else.

    A link in a folder of someone else could name any file of this user; opening a FIFO could wait forever.
    """
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return path
    if stat.S_ISLNK(mode):
        raise BadValue(f"{path} is a symbolic link, which is not followed; put a copy of the file there, or delete it")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise BadValue(f"{path} is neither a file nor a folder; delete it")
    return path


def plain_tree(folder: Path) -> dict[str, Path]:
    """Return the files below a folder by their relative names. Raises BadValue as plain() does."""
    files, waiting = dict[str, Path](), [folder] if plain(folder).exists() else []
    while waiting:
        inside = [plain(path) for path in sorted(waiting.pop().iterdir())]
        waiting += [path for path in inside if path.is_dir()]
        files.update({str(path.relative_to(folder)): path for path in inside if not path.is_dir()})
    return files


def open_to_append(file: Path) -> int:
    """Open or make a file in a folder, and return its descriptor. Raises BadValue for a link, also a hard one."""
    descriptor = os.open(plain(file), os.O_WRONLY | os.O_APPEND | _MADE, 0o644)
    if os.fstat(descriptor).st_nlink > 1:  # the other name may be that of any file of this user
        os.close(descriptor)
        raise BadValue(f"{file} has a second name (a hard link), whose file would change as well; put a copy there")
    return descriptor


def write_text(file: Path, text: str) -> None:
    """Write a file in a folder, replacing an earlier one atomically. Raises OSError, and BadValue as plain() does."""
    draft = plain(plain(file).with_name(f".{file.name}"))
    try:
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_EXCL | _MADE, 0o644), "w", encoding="utf-8") as opened:
            opened.write(text)
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file, which is read in blocks."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def remember(settings: Path) -> None:
    """Record that this user made the folder with this file of settings. Logs a warning if that is impossible."""
    try:
        state = _state()
        state.mkdir(0o700, parents=True, exist_ok=True)
        _check_private(state)
        (state / _digest(settings)).touch(0o600)
    except OSError as e:
        logger.warning("cannot record that %s is yours (%s); to resume it, pass --trust", settings.parent, e)


def is_own(settings: Path) -> bool:
    """Return whether this user made the folder with this file of settings on this machine, and did not edit it."""
    try:
        _check_private(_state())
        # Where everybody may write, somebody else may have replaced the records beside the settings.
        return not os.stat(settings.parent).st_mode & stat.S_IWOTH and (_state() / _digest(settings)).is_file()
    except OSError:
        return False


def check_own(settings: Path, chosen: Mapping[str, Any], trust: bool) -> None:
    """Raise BadValue, with what the folder of a file of settings would choose, unless it is of this user.

    With ``trust`` the folder is taken for one of this user, also later. Nothing is checked if nothing is chosen.
    """
    if not chosen or is_own(plain(settings)):
        return
    if trust:
        remember(settings)
        return
    shown = [shorten(one_line(f"{name} = {json.dumps(value)}"), 200) for name, value in list(chosen.items())[:MOST]]
    shown += [f"and {len(chosen) - MOST} more"] if len(chosen) > MOST else []
    raise BadValue(
        f"{settings.parent} was not made by this user on this machine, its {settings.name} has changed since (also by "
        "cp or chmod), or everybody may write there. So it does not choose what runs, and nothing was run. It would "
        f"use: {'; '.join(shown)}. Pass --trust (in Python trust=True) if the folder is yours, or if you want this"
    )


class FolderLock:
    """The right to write into a folder, which one process has, until close() or its end.

    The file LOCK in the folder is locked with flock(), which ends with the process, and says who holds it. That decides
    where flock() has no effect between machines, or none at all.

    Raises:
        BadValue: another process has it.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.file, self._owner, self._descriptor = folder / LOCK, os.getpid(), -1
        end = time.monotonic() + WAIT_S
        while why := self._take():
            if time.monotonic() >= end:
                raise BadValue(f"{folder} is being written by {why}")
            time.sleep(WAIT_S / 20)

    def _take(self) -> str:
        """Lock the folder. Returns who has it and what to do; nothing if it is this process now."""
        descriptor = os.open(plain(self.file), os.O_RDWR | _MADE, 0o644)
        locked: bool | None = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            locked = False if isinstance(e, BlockingIOError) else None  # None: a file system without locks
        host, boot = _machine()
        found = _HOLDER.fullmatch(os.read(descriptor, 1000).decode("utf-8", "replace"))
        # With the same boot it was in another container of this machine, whose kernel knows all locks.
        is_here = found is None or found[2] == host or found[3] == boot != ""
        with suppress(FileNotFoundError):  # the holder before may have deleted the file after it was opened here
            is_free = is_here and (locked or (locked is None and found is None))
            if is_free and os.path.samestat(os.fstat(descriptor), os.lstat(self.file)):
                now = datetime.now(timezone.utc).isoformat(timespec="seconds")
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"process {self._owner} on {host} since {now} (boot {boot})\n".encode(), 0)
                self._descriptor = descriptor
                return ""
        os.close(descriptor)
        crashed = "" if is_here and locked is not None else f"; if it has crashed, delete {self.file}"
        if found and f"{found[1]} ".startswith(f"process {self._owner} on {host} "):
            return "this process; close what writes it first"
        return f"{found[1] if found else 'another process'}; wait until it ends, or stop it{crashed}"

    def close(self) -> None:
        """Give the lock back. A second call has no effect, and neither has one in a process that was forked."""
        if self._descriptor >= 0 and self._owner == os.getpid():
            with suppress(OSError):
                self.file.unlink()
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


def _state() -> Path:
    """Return the folder of the records. Raises OSError without a home folder."""
    given = os.environ.get("XDG_STATE_HOME", "")
    home = os.environ.get("HOME", os.path.expanduser("~"))
    base = given if os.path.isabs(given) else os.path.join(home, ".local", "state")
    if not os.path.isabs(base):  # it would be looked up in the current folder, which may be that of someone else
        raise FileNotFoundError("there is no home folder; set XDG_STATE_HOME")
    return Path(base, "gem", "folders")


def _check_private(folder: Path) -> None:
    """Raise PermissionError if another user could have made records."""
    found = os.lstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{folder} is not a folder that only this user may write")


def _digest(settings: Path) -> str:
    """Return the digest that names a folder. Raises OSError, also for a file of another user."""
    descriptor = os.open(settings, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{settings} is a file of another user")
        return hashlib.sha256(f"{found.st_ino} {found.st_ctime_ns}\n".encode() + opened.read()).hexdigest()


def _machine() -> tuple[str, str]:
    """Return the name of this machine, and an id of the time since it booted; "" where there is none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return re.sub(r"\s", "-", socket.gethostname()) or "unknown", boot
