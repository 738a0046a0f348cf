"""Writes terminal tasks as Harbor folders with a separate verifier."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

from gem.core import Env
from gem.envs.computers.containers import exported_verifier
from gem.envs.computers.task import CANARY, SET_TIMES, TerminalTask
from gem.envs.computers.terminal.env import TerminalEnv
from gem.errors import BadValue
from gem.sandbox.machine import EPOCH_S, FILE, FOLDER, HOME, LINK, FileEntry

BASE = "debian:bookworm"
PACKAGES = {  # program → package of Debian; the others are in the base image
    "git": "git",
    "make": "make",
    "sqlite3": "sqlite3",
}
_DATES = f'GIT_AUTHOR_DATE="{EPOCH_S} +0000" GIT_COMMITTER_DATE="{EPOCH_S} +0000"'
_MARK = f"# canary: {CANARY}\n"


def export(env: Env) -> Callable[[Path, str], None]:
    """Harbor folders with a separate verifier, of tasks of terminal environments and of swe:Mini.

    See gem.registry.Exporter and write_harbor(). Tasks that ask for a running service cannot be written.
    """
    inner = env.unwrapped
    if not isinstance(inner, TerminalEnv):
        raise BadValue(f"{env.env_id} cannot be exported as Harbor folders; terminal:* and swe:Mini can")
    seconds = inner.max_turns * inner.timeout

    def write(place: Path, name: str) -> None:
        write_harbor(inner.task(), place, name=name, programs=inner.programs(), seconds=seconds)

    return write


def write_harbor(task: TerminalTask, place: Path, *, name: str, programs: Iterable[str], seconds: float) -> None:
    """Write a task folder.

    Args:
        task: the task.
        place: the folder, which must not exist.
        name: of the task, in the organization "gem".
        programs: that the containers need.
        seconds: for all commands of the agent together.

    Raises:
        BadValue: the task needs a service that runs on after the agent, which a separate verifier cannot see; or the
            folder exists.
    """
    if task.service is not None:
        raise BadValue(f"{name} asks for a running service, which a separate verifier cannot see")
    if place.exists():
        raise BadValue(f"{place} exists")
    packages = sorted({"ca-certificates", "python3", *(PACKAGES[name] for name in programs if name in PACKAGES)})
    base = (
        f"{_MARK}FROM {BASE}\n"
        f"RUN apt-get update && apt-get install -y --no-install-recommends {' '.join(packages)} "
        "&& rm -rf /var/lib/apt/lists/* && useradd --uid 1000 --create-home --shell /bin/bash user\n"
        "ENV LANG=C.UTF-8 LC_ALL=C.UTF-8 TZ=UTC PAGER=cat\n"
    )
    setup = ""
    if task.setup:
        run = f"su user -c 'cd && {_DATES} bash -e /opt/setup.sh && {SET_TIMES}'"
        setup = f"COPY setup.sh /opt/setup.sh\nRUN {run} && rm /opt/setup.sh\n"
    environment = f"{base}ADD files.tar /\n{setup}WORKDIR {HOME}\n"
    tests = f"{base}RUN rm -r {HOME}\nCOPY . /tests\nRUN chmod -R go= /tests\n"
    solution = "\n".join(task.solution)
    files = {
        "task.toml": _toml(name, seconds),
        "instruction.md": f"{task.instruction}\n\nYou work in the folder {HOME}. Only the files there count.\n",
        "environment/Dockerfile": environment,
        **({"environment/setup.sh": f"{_MARK}{task.setup}\n"} if task.setup else {}),
        "solution/solve.sh": f"#!/bin/bash\n{_MARK}cd {HOME}\n{solution}\n",
        "tests/Dockerfile": tests,
        "tests/test.sh": f"#!/bin/sh\n{_MARK}exec python3 -I /tests/verify.py\n",
        "tests/verify.py": f"{_MARK}{Path(exported_verifier.__file__).read_text(encoding='utf-8')}",
        "tests/task.json": json.dumps(_checks(task), indent=1) + "\n",
    }
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text, encoding="utf-8")
        if path.endswith(".sh"):
            (place / path).chmod(0o755)
    (place / "environment" / "files.tar").write_bytes(_archive(task.entries()))


def _toml(name: str, seconds: float) -> str:
    return (
        f'{_MARK}schema_version = "1.4"\nartifacts = ["{HOME}"]\n\n[task]\nname = "gem/{name}"\n'
        f'\n[agent]\ntimeout_sec = {seconds:.1f}\nuser = "user"\n'
        '\n[verifier]\ntimeout_sec = 600.0\nenvironment_mode = "separate"\n'
        '\n[verifier.environment]\nnetwork_mode = "no-network"\n'
        '\n[environment]\nnetwork_mode = "no-network"\n'
    )


def _checks(task: TerminalTask) -> dict[str, object]:
    return {
        "canary": CANARY,
        "expected": dict(task.expected),
        "exact": sorted(task.exact()),
        "links": dict(task.links),
        "complete": task.complete,
        "checks": [
            {**vars(check), "files": dict(check.files), "expected": dict(check.expected)} for check in task.checks
        ],
    }


def _archive(entries: Iterable[FileEntry]) -> bytes:
    """Return a tar of the files and the folders around them, with their times and modes."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        made: set[str] = set()
        for entry in entries:
            path = f"{HOME}/{entry.path}".lstrip("/")
            for parent in reversed(Path(path).parents):
                inside = str(parent).startswith(HOME.lstrip("/"))
                if inside and str(parent) not in made:
                    made.add(str(parent))
                    _add(tar, FileEntry(str(parent), b"", FOLDER, 0o755))
            _add(tar, entry._replace(path=path))
    return data.getvalue()


def _add(tar: tarfile.TarFile, entry: FileEntry) -> None:
    item = tarfile.TarInfo(entry.path)
    item.mode, item.mtime, item.uid, item.gid = entry.mode, entry.mtime_s, 1000, 1000
    item.type = {FILE: tarfile.REGTYPE, FOLDER: tarfile.DIRTYPE, LINK: tarfile.SYMTYPE}[entry.kind]
    if entry.kind == LINK:
        item.linkname = entry.content.decode()
    item.size = len(entry.content) if entry.kind == FILE else 0
    tar.addfile(item, io.BytesIO(entry.content))
