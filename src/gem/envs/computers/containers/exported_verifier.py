"""The verifier of an exported terminal task. It runs as root in a container of its own, as /tests/verify.py.

The home folder of the agent is an artifact. Files are compared here; programs that the task asks for, or that read the
files, run as another user on a copy, and what they should print is readable only for root. This file is copied to the
folder of the task, so it uses the standard library only.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

HOME = Path("/home/user")
USER = 1000
MAX_BYTES = 64 << 20
SECONDS = 60


def main() -> None:
    task = json.loads(Path("/tests/task.json").read_text())
    given = HOME.rename("/tests/given")  # readable only for root
    why = (
        first_wrong_file(task["expected"], given, task["exact"])
        or wrong_link(task["links"], given)
        or extra_file(task, given)
    )
    for check in task["checks"]:
        try:
            why = why or run_check(check, given)
        except OSError as e:  # such as a pipe, or a file in place of a folder
            why = f"{check['name']}: {type(e).__name__}: {e}"[:1000]
    print(why or "solved")
    Path("/logs/verifier/reward.txt").write_text("0\n" if why else "1\n")


def first_wrong_file(expected: dict[str, str | None], top: Path, exact: Collection[str] = ()) -> str:
    """Return what is wrong with the first file, or "". The last newline may be missing where the path is not exact."""
    for name, text in expected.items():
        path = top / name
        if text is None:
            if os.path.lexists(path):
                return f"{name} still exists"
        elif is_outside(path, top) or not path.is_file():
            return f"{name} is missing or not a regular file"
        elif path.stat().st_size > MAX_BYTES or path.read_bytes() not in (
            text.encode(),
            (text if name in exact else text.removesuffix("\n")).encode(),
        ):
            return f"the content of {name} is wrong"
    return ""


def is_outside(path: Path, top: Path) -> bool:
    """Whether a path is a link, or leads through one."""
    while path != top:
        if path.is_symlink():
            return True
        path = path.parent
    return False


def wrong_link(links: dict[str, str], top: Path) -> str:
    for name, target in links.items():
        path = top / name
        if not path.is_symlink():
            return f"{name} is not a symbolic link"
        if os.readlink(path).removeprefix("./").removeprefix(f"{HOME}/") != target:
            return f"{name} leads to the wrong place"
    return ""


def extra_file(task: dict[str, Any], top: Path) -> str:
    wanted = {name for name, text in task["expected"].items() if text is not None} | set(task["links"])
    for folder in task["complete"]:
        for place, folders, names in os.walk(top / folder):
            links = [name for name in folders if os.path.islink(os.path.join(place, name))]
            for name in [*names, *links]:
                path = str(Path(place, name).relative_to(top))
                if path not in wanted and not path.startswith(f"{folder}/.git/"):
                    return f"{path} should not exist"
    return ""


def run_check(check: dict[str, Any], given: Path) -> str:
    """Run a program on a copy of the files. Returns what is wrong, or ""."""
    HOME.mkdir()
    for name in check["only"] or [child.name for child in given.iterdir()]:
        source, place = given / name, HOME / name
        if is_outside(source, given) and check["only"]:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True)
        elif os.path.lexists(source):
            shutil.copy2(source, place, follow_symlinks=False)
    for name, text in check["files"].items():
        place = HOME / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        elif os.path.lexists(place):
            place.unlink()
        place.write_text(text)
    for place_, folders, names in os.walk(HOME):
        for name in [".", *folders, *names]:
            os.chown(os.path.join(place_, name), USER, USER, follow_symlinks=False)
    try:
        return outcome(check)
    finally:
        kill_user()
        shutil.rmtree(HOME)


def outcome(check: dict[str, Any]) -> str:
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(HOME), "USER": "user", "LOGNAME": "user"}
    variables |= {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "SHELL": "/bin/bash", "TERM": "dumb"}
    with open("/tests/output", "w+b") as output:
        process = subprocess.Popen(
            check["arguments"],
            cwd=HOME,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.DEVNULL,
            user=USER,
            group=USER,
            extra_groups=[],
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_BYTES, MAX_BYTES)),
        )
        try:
            process.communicate(check["stdin"].encode(), timeout=SECONDS)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            kill_user()
            process.wait()
        output.seek(0)
        printed = output.read(MAX_BYTES).decode(errors="replace")
    kill_user()
    if (text := check["stdout"]) is not None and (process.returncode or printed not in (text, text.removesuffix("\n"))):
        return f"{check['name']}: the output is wrong"
    why = first_wrong_file(check["expected"], HOME)
    return why and f"{check['name']}: {why}"


def kill_user() -> None:
    """Kill every process of the other user."""
    for _ in range(20):
        found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and is_users(entry)]
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def is_users(entry: Path) -> bool:
    try:
        state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        return entry.stat().st_uid == USER and state not in "ZX"
    except OSError:
        return False


if __name__ == "__main__":
    main()
