"""Remove the files of a program, including unreadable folders, extremely long paths and symbolic links."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator


def remove_tree(path: str) -> None:
    """Remove a folder and its contents. Does not follow symbolic links. Errors are ignored.

    Subfolders are moved into ``path`` itself before they are emptied, which avoids long paths and recursion. No other
    process may change the folder at the same time.
    """
    with contextlib.suppress(OSError):
        empty_folder(path)
        os.rmdir(path)


def empty_folder(path: str) -> None:
    """Remove the contents of a folder as far as possible. Raises OSError if the folder itself cannot be read."""
    with contextlib.suppress(PermissionError):  # the folder belongs to another user, who made it world-writable
        os.chmod(path, 0o700)  # 39_undeletable_dir
    # NOFOLLOW, and names below open folders: a link in place of a folder would lead to the host's (33_symlink_escape).
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    prefix = os.urandom(8).hex()  # avoids collisions with existing names
    names = (f"{prefix}.{number}" for number in itertools.count())
    try:
        pending = _cleared(top, top, names)
        while pending:
            name = pending.pop()
            with contextlib.suppress(OSError):
                folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
                try:
                    pending += _cleared(folder, top, names)
                finally:
                    os.close(folder)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def _cleared(folder: int, top: int, names: Iterator[str]) -> list[str]:
    """Unlink the files of an open folder and move its subfolders into ``top``. Returns their new names."""
    moved: list[str] = []
    with os.scandir(folder) as entries:
        for entry in list(entries):
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=folder)
                    continue
                os.chmod(entry.name, 0o700, dir_fd=folder)  # the entry is a folder, not a symbolic link
                name = next(names)
                # A path of thousands of folders is longer than the kernel takes (140_disk_deep_paths,
                # 256_deep_folders).
                os.rename(entry.name, name, src_dir_fd=folder, dst_dir_fd=top)
                moved.append(name)
    return moved
