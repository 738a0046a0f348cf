"""Verification of a row of SWE-bench or SWE-Gym.

1. Every process of the agent is killed, and its changes are read as a diff against the first files. Changes of the
   files that test_patch changes do not count, nor those of files that steer test runners, unless the reference changes
   them, nor new modules in place of test runners.
2. In a fresh machine with the repository, the diff and then test_patch are applied, and the tests run.
3. The host reads the output: every test of FAIL_TO_PASS and PASS_TO_PASS must have passed, and none of them failed.

The tests import the code of the agent, as in SWE-bench, so code that finds out how it is tested can print forged
results.

If there is no result, such as at a time limit, 2 is repeated. If that fails too, a control check decides whether the
changes or the sandbox are the cause.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from gem.envs.swe.outcomes import FAILED, PASSED, Outcomes, run_of
from gem.envs.swe.rows import SweRow, changed_paths
from gem.envs.terminal.task import TerminalTask, start_task
from gem.envs.terminal.verify import Start, VerifierError, control
from gem.errors import BadValue, SandboxError
from gem.sandbox.base import Status
from gem.sandbox.machine import Machine

FOLDER = "/testbed"  # of the repository, as in the published images
# Files that change how tests run or are counted, wherever they are in the repository.
STEERING = (
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth"),
    *("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"),
)
RUNNERS = ("pytest", "_pytest", "pluggy", "unittest")  # modules that would be imported in place of the installed ones
_GIT = "git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.quotePath=true -c safe.directory=*"
_INDEX, _DIFF, _TEST_DIFF = "/tmp/gem.index", "/tmp/gem.diff", "/tmp/gem-tests.diff"
_ACTIVATE = "[ ! -f /opt/miniconda3/bin/activate ] || . /opt/miniconda3/bin/activate testbed"
SETUP = f"""\
cd {FOLDER}
git init -q -b main
git config user.name user
git config user.email user@localhost
git add -A -f
git commit -q --allow-empty -m base
git tag gem-base"""


def verify_row(row: SweRow, task: TerminalTask, machine: Machine, start: Start, start_tests: Start) -> str:
    """Return why an issue is not solved, or "" if it is.

    Args:
        row: the row.
        task: the first files and setup of a machine.
        machine: the machine of the agent. Its processes are killed.
        start, start_tests: start a fresh machine with files, with the limits of a command and of the tests.

    Raises:
        BadValue: if test_patch does not fit the repository, or nothing says how the tests are run.
        SandboxError: if the sandbox fails.
    """
    command, parse = run_of(row)
    try:
        machine.stop()
        diff = _agent_diff(row, task, machine)
    except (VerifierError, OSError) as e:
        return f"the changes cannot be read: {e}"
    except SandboxError:
        if machine.ended in ("", "closed"):
            raise
        control(start)
        return f"the machine has ended: {machine.ended}"
    trouble = ""
    for _ in range(2):
        try:
            return _tests_fault(row, task, diff, start_tests, command, parse)
        except (VerifierError, SandboxError, OSError) as e:
            trouble = str(e)
    control(start)
    return f"{trouble}, twice, and the control check works"


def _agent_diff(row: SweRow, task: TerminalTask, machine: Machine) -> bytes:
    """Return the changes of the agent. An index of its own keeps what the agent has staged or locked out of it."""
    gold = set(changed_paths(row.patch))
    excluded = [f":(exclude,top,literal){path}" for path in changed_paths(row.test_patch)]
    excluded += [f":(exclude,top,glob)**/{name}" for name in STEERING]
    present = {path.removeprefix(f"{FOLDER}/").partition("/")[0] for path in (*task.files, *gold)}
    planted = {name for runner in RUNNERS for name in (runner, f"{runner}.py")} - present
    excluded += [f":(exclude,top,literal){name}" for name in sorted(planted)]
    allowed = [path for path in gold if _steers(path) and path not in changed_paths(row.test_patch)]
    settings = "--cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames"
    parts = [f"{_GIT} diff {settings} gem-base -- . {shlex.join(excluded)}"]
    if allowed:
        parts.append(f"{_GIT} diff {settings} gem-base -- {shlex.join(f':(top,literal){path}' for path in allowed)}")
    script = (
        f"cd {FOLDER} && export GIT_INDEX_FILE={_INDEX} && rm -rf {_INDEX} {_DIFF} && {_GIT} read-tree gem-base && "
        f"{_GIT} add -A && {{ {' && '.join(parts)}; }} > {_DIFF}"
    )
    result = machine.run(["/bin/sh", "-c", script])
    if not result.ok:
        raise VerifierError(f"git in {FOLDER} ends with {result.status.value}, status {result.exit_code}")
    return machine.read(_DIFF)


def _steers(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name in STEERING or name.endswith(".pth")


def _tests_fault(
    row: SweRow,
    task: TerminalTask,
    diff: bytes,
    start: Start,
    command: str,
    parse: Callable[[str], Outcomes],
) -> str:
    """Run the tests in a fresh machine. Returns what is wrong, or "". Raises VerifierError if there is no result."""
    with start_task(task, start) as machine:
        if not _apply(machine, diff, _DIFF):
            return "the changes do not fit the repository without the changes of tests"
        if not _apply(machine, row.test_patch.encode(), _TEST_DIFF):
            with start_task(task, start) as unchanged:
                if _apply(unchanged, row.test_patch.encode(), _TEST_DIFF):
                    return "the tests do not fit the changes"
            raise BadValue(f"the test_patch of {row.instance_id} does not fit {row.repo} at {row.base_commit}")
        result = machine.run(["/bin/bash", "-c", f"{_ACTIVATE}\ncd {FOLDER}\n{{ {command}\n}} 2>&1"])
    if result.status not in (Status.OK, Status.ERROR):
        raise VerifierError(f"the tests: {result.status.value} limit exceeded")
    outcomes = parse(result.stdout)
    wanted = (*row.fail_to_pass, *row.pass_to_pass)
    if wrong := [test for test in wanted if outcomes.get(test) != PASSED]:
        return f"{len(wrong)} of {len(wanted)} tests do not pass, such as {wrong[0]}"
    if result.exit_code and FAILED not in outcomes.values():
        return f"the tests end with status {result.exit_code}, although none has failed"
    return ""


def _apply(machine: Machine, diff: bytes, path: str) -> bool:
    """Apply a diff to the repository, and return whether it fits."""
    if not diff.strip():
        return True
    machine.write({path: diff})
    return machine.run(["/bin/sh", "-c", f"cd {FOLDER} && {_GIT} apply --whitespace=nowarn {path}"]).ok
