"""The contract of machines: a private file system and a shell that keeps its state from command to command.

What a command does, crashes and exceeded limits included, is reported in a Result. Only a failure of the sandbox itself
raises SandboxError.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from gem._internal.inbound import MESSAGE, check_json
from gem.errors import BadValue, SandboxError
from gem.sandbox.machine_protocol import EPOCH_S, FILE, FOLDER, LINK, FileEntry, unpack
from gem.sandbox.results import Result

__all__ = [
    "EPOCH_S",
    "FILE",
    "FOLDER",
    "HOME",
    "LINK",
    "SHELL_PATH",
    "FileEntry",
    "HasMachine",
    "Machine",
    "MachineFiles",
    "Typed",
    "entries_of",
]

HOME = "/home/user"
SHELL_PATH = "/usr/local/bin:/usr/bin:/bin"
STATES = "GEM_MACHINE_STATES"  # names the folder of archives; without it they are deleted when the process exits
MachineFiles = Mapping[str, "str | bytes"] | Iterable[FileEntry]
_folder: tuple[int, str] | None = None  # process and folder of the archives without STATES


class Typed(NamedTuple):
    """What the programs of a terminal wrote after keys were typed, and whether the terminal is still open.

    ``problem`` says why no terminal could be opened or how many bytes were not typed; "" if all keys were typed.
    """

    output: bytes
    open: bool
    problem: str = ""


@runtime_checkable
class HasMachine(Protocol):
    """An environment whose episodes have a machine, on which the tools of gem.tools.machine then work."""

    def machine(self) -> Machine:
        """Return the machine of the running episode."""


class Machine(ABC):
    """A private file system with a shell. Not safe to use from several threads at once.

    The working directory, environment variables, functions and background processes of the shell stay from command to
    command. All processes are stopped between commands, so that what runs in the background computes only while a
    command runs. If the shell exits, the next command gets a new one with the same working directory and exported
    variables.

    Attributes:
        folder: working directory of the shell.
        ended: why the machine has ended, such as "memory"; "" while it can be used.
    """

    folder: str = HOME
    ended: str = ""

    @abstractmethod
    def exec(self, command: str, *, wall_s: float | None = None) -> Result:
        """Run a command in the shell. ``stdout`` of the result has both streams, in the order of the output.

        A command that exceeds its time or output limit is killed with every process that started since the command
        did. If the shell itself has to be killed, or exits, ``state_lost`` is True: functions and variables that were
        not exported are lost. If the limit of memory is exceeded, the machine ends.

        Args:
            command: bash source of any length.
            wall_s: wall-clock seconds for this command. None means the limit of the machine.

        Raises:
            SandboxError: if the sandbox fails, or the machine has ended.
        """

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the content of a file; a relative path starts at the working directory.

        Raises:
            OSError: as open() would, for example FileNotFoundError.
        """

    @abstractmethod
    def write(self, files: MachineFiles) -> None:
        """Create or replace files; see entries_of(). Raises OSError, for example if the disk is full."""

    @abstractmethod
    def entries(self, folder: str = "/") -> list[FileEntry]:
        """Return everything below a folder that the machine has created, with absolute paths, sorted by path.

        Raises:
            OSError: EFBIG if the files have more bytes than the disk limit, holes included.
        """

    @abstractmethod
    def run(self, arguments: Sequence[str], *, stdin: bytes = b"", wall_s: float | None = None) -> Result:
        """Run a program outside the shell, in the home folder, with the environment that a new machine has.

        Nothing that was set in the shell has an effect on it. Processes that it leaves are killed. ``stdout`` of the
        result has only the standard output, as far as it is at most the output limit; standard error is discarded.

        Args:
            arguments: absolute path of the program, and its arguments.
            stdin: standard input.
            wall_s: wall-clock seconds. None means the limit of the machine.

        Raises:
            SandboxError: if the sandbox fails, or the machine has ended.
        """

    def type_keys(
        self, keys: bytes, *, rows: int = 24, columns: int = 80, wait_s: float = 0.0, wall_s: float | None = None
    ) -> Typed:
        """Type keys into the terminal of the machine, in which an interactive shell runs.

        The terminal opens with the first call, in the working directory and with the exported variables of the other
        shell, and closes when its shell exits. The call returns when the programs in the foreground wait and write
        nothing. Nothing is killed at the time limit; the programs continue with the next call.

        Args:
            keys: what the terminal sends; see gem.sandbox.screen.key_bytes().
            rows, columns: size, used when the terminal opens.
            wait_s: least seconds of wall clock to wait.
            wall_s: most seconds to wait. None means the limit of the machine.

        Raises:
            SandboxError: if the sandbox fails, the machine has ended, or this backend has no terminals.
        """
        raise SandboxError(f"{type(self).__name__} has no terminal; machines of the local sandbox have one")

    @abstractmethod
    def stop(self, *, keep: Iterable[int] = ()) -> None:
        """Kill every process of the machine, the shell included. Files can still be read.

        Args:
            keep: ids of processes that stay alive, with their descendants.
        """

    @abstractmethod
    def sleep(self, seconds: float) -> None:
        """Let background processes compute for this many seconds of wall-clock time, at most 10."""

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Return what set_state() restores: the files, working directory and exported variables.

        The files are kept as an archive named by its hash, in the folder GEM_MACHINE_STATES or, if that is not set,
        in a folder that is deleted when this process exits.

        Raises:
            BadValue: if background processes are running, which cannot be saved.
        """

    @abstractmethod
    def close(self) -> None:
        """Kill every process and remove every file of the machine. A second call has no effect."""

    def upload(self, source: str | Path, path: str) -> None:
        """Copy a file or folder of the host into the machine. File times are set to EPOCH_S.

        Raises:
            OSError: if it cannot be read or written.
        """
        self.write(_host_entries(Path(source), path))

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def entries_of(files: MachineFiles) -> list[FileEntry]:
    """Return entries. A mapping from path to content stands for files that only their owner may change.

    Raises:
        BadValue: if a path is empty, has a ".." or a NUL, or an entry has an unknown kind.
    """
    if isinstance(files, Mapping):
        files = [FileEntry(path, text.encode() if isinstance(text, str) else text) for path, text in files.items()]
    listed = list(files)
    for entry in listed:
        if not entry.path.strip("/") or "\0" in entry.path or ".." in entry.path.split("/"):
            raise BadValue(f"a path in a machine must name a file and have no '..', got {entry.path!r}")
        if entry.kind not in (FILE, FOLDER, LINK):
            raise BadValue(f"kind of {entry.path!r} must be 'file', 'folder' or 'link', got {entry.kind!r}")
    return listed


def unpacked(archive: bytes) -> list[FileEntry]:
    """Return the entries of an archive that a machine sent. Raises SandboxError if it is not one."""
    import msgspec

    try:
        check_json(archive[: archive.find(b"\n") + 1], "its table", MESSAGE._replace(bytes=len(archive)))
        return msgspec.convert(list(map(tuple, unpack(archive))), list[FileEntry])
    except (ValueError, TypeError) as e:
        raise SandboxError(f"a machine sent an invalid archive: {e}") from e


def _host_entries(source: Path, path: str) -> list[FileEntry]:
    mode = source.lstat().st_mode & 0o777
    if source.is_symlink():
        return [FileEntry(path, os.fsencode(os.readlink(source)), LINK)]
    if source.is_dir():
        inside = [_host_entries(child, f"{path}/{child.name}") for child in sorted(source.iterdir())]
        return [FileEntry(path, b"", FOLDER, mode), *(entry for entries in inside for entry in entries)]
    return [FileEntry(path, source.read_bytes(), FILE, mode)]


# ---- archives of states


def save_archive(data: bytes) -> dict[str, str]:
    """Keep an archive and return its hash and place."""
    digest = hashlib.sha256(data).hexdigest()
    place = Path(_states(), f"{digest}.machine")
    if not place.exists():
        part = place.with_suffix(f".{os.urandom(8).hex()}")
        part.write_bytes(data)
        part.rename(place)
    return {"hash": digest, "place": str(place)}


def load_archive(state: Mapping[str, Any]) -> bytes:
    """Return an archive. Raises BadValue if it is gone or has changed."""
    try:
        data = Path(state["place"]).read_bytes()
    except (OSError, TypeError, KeyError) as e:
        raise BadValue(
            f"the files of this state are gone ({e}); set {STATES} to a folder to keep them after the process ends"
        ) from e
    if hashlib.sha256(data).hexdigest() != state.get("hash"):
        raise BadValue(f"{state['place']} is not the archive that was saved: its hash differs")
    return data


def _states() -> str:
    global _folder
    if chosen := os.environ.get(STATES):
        os.makedirs(chosen, mode=0o700, exist_ok=True)
        return chosen
    if _folder is None or _folder[0] != os.getpid() or not os.path.isdir(_folder[1]):
        _folder = (os.getpid(), tempfile.mkdtemp(prefix="gem-machines-"))
    return _folder[1]


@atexit.register
def _remove_states() -> None:
    if _folder is not None and _folder[0] == os.getpid():
        shutil.rmtree(_folder[1], ignore_errors=True)
