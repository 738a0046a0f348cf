"""Run the verify.py of a task on a copy of the files, in a machine: no network, limits on time and memory."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from gem.envs.computers.mcpmark.checkout import ServiceTask
from gem.errors import SandboxError
from gem.sandbox import Limits, Result, Status, get_sandbox
from gem.sandbox.machine import FILE, FOLDER, LINK, FileEntry

SOLVED, NOT_SOLVED, CRASHED = 0, 1, 3
TASK, STATE = "/home/user/task", "/home/user/state"
MAX_BYTES = 64 << 20
CONTROL_S = 60.0
# An exception of verify.py would have the exit status of "not solved".
RUNNER = f"""
import os, runpy, sys, traceback
sys.path.insert(0, os.path.dirname(sys.argv[1]))
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit:
    raise
except BaseException:
    traceback.print_exc(file=sys.stdout)
    sys.stdout.flush()
    os._exit({CRASHED})
"""
_CONTROL = b"import json, os, sys\nsys.exit(not os.path.isdir(os.environ['FILESYSTEM_TEST_DIR']))\n"


def verify_files(task: ServiceTask, state: Path, timeout: float) -> str:
    """Return "" if the files solve the task, else what is wrong.

    If verify.py crashes or exceeds its limits, it is repeated in a fresh machine. If it fails again and a control
    program runs there, the files are the cause.

    Args:
        state: folder with the files of the agent.
        timeout: CPU seconds for verify.py. It may take four times as long on the clock, because others may compute.

    Raises:
        SandboxError: if the sandbox or the control program fails, or a folder on the host is gone.
    """
    if not state.is_dir():  # the server cannot remove it
        raise SandboxError(f"the folder of the episode is gone: {state}")
    try:
        files = list(entries(task.folder, TASK))
    except OSError as e:
        raise SandboxError(f"the task {task.name} cannot be read: {e}") from e
    if not any(entry.path == f"{TASK}/verify.py" for entry in files):
        raise SandboxError(f"the task {task.name} has lost its verify.py: {task.folder}")
    try:
        files += entries(state, STATE)
    except OSError as e:  # such as too many bytes
        return f"the files cannot be read: {e.strerror or e}"
    for _ in range(2):
        result = _run(files, timeout)
        if result.exit_code in (SOLVED, NOT_SOLVED) and result.status in (Status.OK, Status.ERROR):
            return "" if result.exit_code == SOLVED else f"not solved: {_last_line(result)}"
    control = _run([*files, FileEntry(f"{TASK}/verify.py", _CONTROL)], CONTROL_S)
    if control.exit_code != SOLVED:
        raise SandboxError(f"the verifier of {task.name} cannot run here: {_last_line(control)}")
    return f"verify.py failed twice on these files: {_last_line(result)}"


def entries(folder: Path, target: str) -> Iterator[FileEntry]:
    """Yield the files, folders and links below a folder of the host, for a machine, with their times.

    Raises:
        OSError: if a folder cannot be read, or there are more than MAX_BYTES.
    """
    total = 0
    for top, folders, files in os.walk(folder, onerror=_raise):
        for name in [*sorted(folders), *sorted(files)]:
            path = Path(top, name)
            status = path.lstat()
            place = f"{target}/{path.relative_to(folder).as_posix()}"
            mode, mtime_s = stat.S_IMODE(status.st_mode), int(status.st_mtime)
            if stat.S_ISLNK(status.st_mode):
                yield FileEntry(place, os.fsencode(os.readlink(path)), LINK)
            elif stat.S_ISDIR(status.st_mode):
                yield FileEntry(place, b"", FOLDER, mode | 0o700, mtime_s)
            elif stat.S_ISREG(status.st_mode):
                total += status.st_size
                if total > MAX_BYTES:
                    raise OSError(f"they have more than {MAX_BYTES >> 20} MiB")
                yield FileEntry(place, path.read_bytes(), FILE, mode | 0o400, mtime_s)


def _raise(error: OSError) -> None:
    raise error


def _run(files: list[FileEntry], timeout: float) -> Result:
    limits = Limits(wall_s=4 * timeout, cpu_s=timeout, output_bytes=1 << 20, disk_bytes=4 * MAX_BYTES)
    variables = [f"FILESYSTEM_TEST_DIR={STATE}", "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8"]
    command = ["/usr/bin/env", *variables, sys.executable, "-c", RUNNER, f"{TASK}/verify.py"]
    with get_sandbox().machine(files=[FileEntry(STATE, b"", FOLDER, 0o755), *files], limits=limits) as machine:
        return machine.run(command)


def _last_line(result: Result) -> str:
    if result.status not in (Status.OK, Status.ERROR):
        return str(result.status.value)
    lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit status {result.exit_code}"
