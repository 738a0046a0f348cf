"""Messages between the host and process 1 of a machine, and archives of files. Both sides use this module.

A message is a JSON object and a body of bytes, each preceded by its length. An archive is a table as a line of JSON,
followed by the contents of its files in the order of the table. Nothing here is unpickled: process 1 can be trusted not
to lie about a machine, but the host does not rely on it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

SIZES = struct.Struct(">IQ")  # bytes of the JSON object and of the body
HEAD_BYTES = 1 << 21  # longest JSON object of a message
MAX_ENTRIES = 100_000  # of an archive
EPOCH_S = 1_735_689_600  # 2025-01-01 UTC: time of files for which no time is given
FILE, FOLDER, LINK = "file", "folder", "link"


class FileEntry(NamedTuple):
    """A file, folder or symbolic link in a machine.

    Args:
        path: absolute, or relative to the folder in which the machine starts.
        content: content of a file; target of a link.
        kind: "file", "folder" or "link".
        mode: permission bits; not used for links.
        mtime_s: time of the last change, in seconds since 1970; whole seconds.
    """

    path: str
    content: bytes = b""
    kind: str = FILE
    mode: int = 0o644
    mtime_s: int = EPOCH_S


def message(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    encoded = json.dumps(head).encode()
    return SIZES.pack(len(encoded), len(body)) + encoded + body


def pack(entries: Iterable[FileEntry]) -> bytes:
    """Return an archive of entries."""
    listed = list(entries)
    table = [[entry.path, entry.kind, entry.mode, entry.mtime_s, len(entry.content)] for entry in listed]
    return json.dumps(table).encode() + b"\n" + b"".join(entry.content for entry in listed)


def unpack(data: bytes) -> Iterator[FileEntry]:
    """Yield the entries of an archive. Raises ValueError if it is not one."""
    end = data.find(b"\n")
    if end < 0:
        raise ValueError("not an archive")
    start = end + 1
    try:
        table = json.loads(data[:end])
    except RecursionError:
        raise ValueError("not an archive") from None
    for path, kind, mode, mtime_s, size in table:
        yield FileEntry(path, data[start : start + size], kind, mode, mtime_s)
        start += size
    if start != len(data):
        raise ValueError(f"an archive of {start} bytes has {len(data)}")


# ---- in the machine


def write_entries(entries: Iterable[FileEntry]) -> None:
    """Create files, folders and links, and the folders around them. Replaces files and links that exist.

    Raises:
        OSError: if that fails, for example because the disk is full.
    """
    folders: list[FileEntry] = []
    made: list[str] = []
    for entry in entries:
        parent = os.path.dirname(entry.path)
        missing = []
        while parent and not os.path.isdir(parent):
            missing.append(parent)
            parent = os.path.dirname(parent)
        for folder in reversed(missing):
            os.mkdir(folder)
            made.append(folder)
        if entry.kind == FOLDER:
            os.makedirs(entry.path, exist_ok=True)
            folders.append(entry)
            continue
        with contextlib.suppress(FileNotFoundError):
            os.unlink(entry.path)
        if entry.kind == LINK:
            os.symlink(entry.content, entry.path)
        else:
            with open(entry.path, "wb") as file:
                file.write(entry.content)
            os.chmod(entry.path, entry.mode)
        os.utime(entry.path, (entry.mtime_s, entry.mtime_s), follow_symlinks=False)
    for entry in reversed(folders):  # last, because new files change the time of their folder
        os.chmod(entry.path, entry.mode)
        os.utime(entry.path, (entry.mtime_s, entry.mtime_s))
    for folder in reversed(made):
        os.utime(folder, (EPOCH_S, EPOCH_S))


def read_entries(folder: str, *, limit: int) -> list[FileEntry]:
    """Return everything of this user below a folder, sorted by path. Other file systems are left out.

    Files of this user that may not be read are made readable for a moment. Sockets and pipes are left out.

    Raises:
        OSError: EFBIG if the files have more than ``limit`` bytes, holes included, or are too many.
    """
    device, user = os.lstat(folder).st_dev, os.getuid()
    found: list[FileEntry] = []
    locked: list[tuple[str, int]] = []  # folders that their owner may not enter, and their modes
    pending, total = [folder], 0
    try:
        while pending:
            top = pending.pop()
            for name in _names(top):
                path = os.path.join(top, name)
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    status = os.lstat(path)
                    if status.st_dev != device:
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(path)
                    if status.st_uid != user:
                        continue
                    total += status.st_size
                    if total > limit or len(found) >= MAX_ENTRIES:
                        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
                    if (entry := _entry(path, status)) is not None:
                        found.append(entry)
                    if entry is not None and entry.kind == FOLDER and entry.mode & 0o700 != 0o700:
                        locked.append((path, entry.mode))
                        os.chmod(path, entry.mode | 0o700)
    finally:
        for path, mode in reversed(locked):
            os.chmod(path, mode)
    return sorted(found)


def read_file(path: str, *, limit: int) -> bytes:
    """Return the content of a file. Raises OSError; EFBIG if it has more than ``limit`` bytes."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe must not wait for a writer
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        return file.read(limit)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # gone, or of another user
        return []


def _entry(path: str, status: os.stat_result) -> FileEntry | None:
    mode, mtime_s = stat.S_IMODE(status.st_mode), int(status.st_mtime)
    if stat.S_ISDIR(status.st_mode):
        return FileEntry(path, b"", FOLDER, mode, mtime_s)
    if stat.S_ISLNK(status.st_mode):
        return FileEntry(path, os.fsencode(os.readlink(path)), LINK, mode, mtime_s)
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        content = read_file(path, limit=status.st_size)
    except PermissionError:
        with _mode(path, 0o600):
            content = read_file(path, limit=status.st_size)
    return FileEntry(path, content, FILE, mode, mtime_s)


@contextlib.contextmanager
def _mode(path: str, mode: int) -> Iterator[None]:
    before = stat.S_IMODE(os.lstat(path).st_mode)
    os.chmod(path, mode)
    try:
        yield
    finally:
        os.chmod(path, before)
