"""Verification of a row of SWE-bench or SWE-Gym.

1. Every process of the agent is killed, and its changes are read as a diff against the first files.
2. In a fresh machine with the repository, the diff and then test_patch are applied, and the tests run. Changes of the
   files that test_patch changes are not applied, nor those of files that steer test runners, unless the reference
   changes them, nor new modules in place of test runners.
3. The host reads the output: every test of FAIL_TO_PASS and PASS_TO_PASS must have passed, and none of them failed.

The tests import the code of the agent, as in SWE-bench, so code that finds out how it is tested can print forged
results.

If there is no result, such as at a time limit, 2 is repeated. If that fails too, a control check decides whether the
changes or the sandbox are the cause.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from gem.envs.computers.swe.outcomes import FAILED, PASSED, Outcomes, run_of
from gem.envs.computers.swe.rows import SweRow, changed_paths
from gem.envs.computers.task import TerminalTask, start_task
from gem.envs.computers.verify import Start, VerifierError, control
from gem.errors import BadValue, SandboxError
from gem.sandbox.machine import Machine
from gem.sandbox.results import Status

FOLDER = "/testbed"  # of the repository, as in the published images
# Files that change how tests run or are counted, wherever they are in the repository.
STEERING = (
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth"),
    *("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"),
)
RUNNERS = ("pytest", "_pytest", "pluggy", "unittest")  # modules that would be imported in place of the installed ones
_GIT = "git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.quotePath=true -c safe.directory=*"
_INDEX, _DIFF, _TEST_DIFF = "/tmp/gem.index", "/tmp/gem.diff", "/tmp/gem-tests.diff"
_RENAMES = re.compile(rb"^(rename|copy) (from|to) ", re.MULTILINE)
ACTIVATE = "[ ! -f /opt/miniconda3/bin/activate ] || . /opt/miniconda3/bin/activate testbed"
TO_REPOSITORY = """\
git config user.name user
git config user.email user@localhost
git commit -q --allow-empty -m base
git tag gem-base"""
SETUP = f"cd {FOLDER}\ngit init -q -b main\ngit add -A -f\n{TO_REPOSITORY}"


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
        diff = _agent_diff(machine)
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


def _agent_diff(machine: Machine) -> bytes:
    """Return the changes of the agent. An index of its own keeps what the agent has staged or locked out of it."""
    settings = "--cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames"
    script = (
        f"cd {FOLDER} && export GIT_INDEX_FILE={_INDEX} && rm -rf {_INDEX} {_DIFF} && {_GIT} read-tree gem-base && "
        f"{_GIT} add -A && {_GIT} diff {settings} gem-base > {_DIFF}"
    )
    result = machine.run(["/bin/sh", "-c", script])
    if not result.ok:
        raise VerifierError(f"git in {FOLDER} ends with {result.status.value}, status {result.exit_code}")
    diff = machine.read(_DIFF)
    if _RENAMES.search(diff):  # a git that the agent has replaced; what is not applied goes by one path of a change
        raise VerifierError("the diff has renames")
    return diff


def _choice(row: SweRow, machine: Machine) -> str:
    """Return the options of git apply that leave out changes that do not count. The first pattern of a path decides."""
    tests, gold = set(changed_paths(row.test_patch)), set(changed_paths(row.patch))
    listed = machine.run(["/bin/sh", "-c", f"cd {FOLDER} && {_GIT} ls-tree --name-only gem-base"])
    if not listed.ok:
        raise VerifierError(f"git in a fresh {FOLDER} ends with {listed.status.value}, status {listed.exit_code}")
    present = {*listed.stdout.splitlines(), *(path.partition("/")[0] for path in gold)}
    planted = {name for runner in RUNNERS for name in (runner, f"{runner}.py")} - present
    options = [f"--exclude={_literal(path)}" for path in sorted(tests)]
    options += [f"--include={_literal(path)}" for path in sorted(gold)]
    options += [f"--exclude={place}{name}" for name in STEERING for place in ("", "*/")]
    options += [f"--exclude={name}{rest}" for name in sorted(planted) for rest in ("", "/*")]
    return shlex.join([*options, "--include=*"])


def _literal(path: str) -> str:
    """Return a pattern of git that matches this path only."""
    return re.sub(r"([\\*?\[])", r"\\\1", path)


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
        if not _apply(machine, diff, _DIFF, _choice(row, machine)):
            return "the changes do not fit the repository without the changes of tests"
        if not _apply(machine, row.test_patch.encode(), _TEST_DIFF):
            with start_task(task, start) as unchanged:
                if _apply(unchanged, row.test_patch.encode(), _TEST_DIFF):
                    return "the tests do not fit the changes"
            raise BadValue(f"the test_patch of {row.instance_id} does not fit {row.repo} at {row.base_commit}")
        result = machine.run(["/bin/bash", "-c", f"{ACTIVATE}\ncd {FOLDER}\n{{ {command}\n}} 2>&1"])
    if result.status not in (Status.OK, Status.ERROR):
        raise VerifierError(f"the tests: {result.status.value} limit exceeded")
    outcomes = parse(result.stdout)
    wanted = (*row.fail_to_pass, *row.pass_to_pass)
    if wrong := [test for test in wanted if outcomes.get(test) != PASSED]:
        return f"{len(wrong)} of {len(wanted)} tests do not pass, such as {wrong[0]}"
    if result.exit_code and FAILED not in outcomes.values():
        return f"the tests end with status {result.exit_code}, although none has failed"
    return ""


def _apply(machine: Machine, diff: bytes, path: str, options: str = "") -> bool:
    """Apply a diff to the repository, and return whether it fits."""
    if not diff.strip():
        return True
    machine.write({path: diff})
    return machine.run(["/bin/sh", "-c", f"cd {FOLDER} && {_GIT} apply --whitespace=nowarn {options} {path}"]).ok
