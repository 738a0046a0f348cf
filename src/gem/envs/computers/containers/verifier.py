"""What verifiers of task folders have in common: their folders on the host, and what a failing one means."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gem.envs.computers.containers.rewards import RewardMissing
from gem.errors import SandboxError

LOGS = "/logs/verifier"
_SHOWN_BYTES = 1_000  # of the output of a verifier, in info["explanation"]


@dataclass(frozen=True)
class Verdict:
    """What a verifier says. rewards: all that it names. reason: why the task is not solved, "" if it is."""

    reward: float
    rewards: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


def run_twice(first: Callable[[], Verdict], second: Callable[[], Verdict], control: Callable[[], None]) -> Verdict:
    """Return the verdict of a verifier, which is repeated if it leaves none.

    Args:
        first: runs the verifier. Raises RewardMissing.
        second: runs it again on the same files in a fresh container.
        control: runs a verifier that works unless the engine fails. Raises SandboxError if it does not.

    Raises:
        SandboxError: the engine fails.
    """
    trouble = ""
    for attempt in (first, second):
        try:
            return attempt()
        except (RewardMissing, SandboxError) as e:
            trouble = str(e)
    control()
    return Verdict(0.0, reason=f"no reward, twice, and the control verifier works: {trouble}")


class VerifierFolders:
    """The folders of the host that a verifier sees as /tests and /logs/verifier. They are empty until fill()."""

    def __init__(self) -> None:
        self.place = tempfile.TemporaryDirectory(prefix="gem-verifier-", ignore_cleanup_errors=True)
        self.tests, self.logs = Path(self.place.name, "tests"), Path(self.place.name, "logs")
        self.tests.mkdir(mode=0o755)
        self.logs.mkdir(mode=0o700)

    def fill(self, tests: Path | None) -> None:
        """Remove everything, such as stale rewards, and copy tests. Raises RewardMissing if something stays."""
        try:
            for folder in (self.tests, self.logs):
                for child in folder.iterdir():
                    shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
        except OSError as e:  # files of users of the container
            raise RewardMissing(f"{LOGS} cannot be emptied: {e.strerror}") from e
        if tests is not None:
            shutil.copytree(tests, self.tests, dirs_exist_ok=True, symlinks=True)
            self.tests.chmod(0o755)  # it got the mode of the source
            if (script := self.tests / "test.sh").is_file():
                script.chmod(0o755)

    def mounts(self, *, tests: bool) -> dict[str, str]:
        return {**({"/tests:ro": str(self.tests)} if tests else {}), LOGS: str(self.logs)}

    def remove(self) -> None:
        self.place.cleanup()


@contextlib.contextmanager
def verifier_folders() -> Iterator[VerifierFolders]:
    folders = VerifierFolders()
    try:
        yield folders
    finally:
        folders.remove()


def end_of(path: Path) -> str:
    """Return the end of the output of a verifier, as a part of a sentence; "" if it cannot be read."""
    with contextlib.suppress(OSError):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _SHOWN_BYTES))
                return f"; its output ends with: {file.read().decode('utf-8', 'replace').strip()}"
    return ""
