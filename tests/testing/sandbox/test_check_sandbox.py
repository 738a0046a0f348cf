"""check_sandbox(): a correct sandbox passes, and each deliberate defect is found by its check."""

import os
import time
from dataclasses import replace

import pytest

from gem.errors import SandboxError
from gem.sandbox import Report, Result, Status
from gem.sandbox.command.subprocess_ import SubprocessSandbox
from gem.sandbox.interpreter_session import InterpreterSession
from gem.testing.sandbox import limits as sandbox_limits
from gem.testing.sandbox.check_sandbox import CHECKS, CONTAINMENT_CHECKS, check_sandbox


def altered(change):
    """A sandbox whose results are changed by a function."""

    class Altered(SubprocessSandbox):
        def run(self, *args, **kwargs):
            return change(super().run(*args, **kwargs))

    return Altered


class ClaimsEverything(SubprocessSandbox):
    """Claims every guarantee and enforces none."""

    def report(self):
        return Report("liar", "", dict.fromkeys(super().report().guarantees, "claimed"))


class TakesAnyPath(SubprocessSandbox):
    def run(self, program, *, files=None, **options):
        return super().run(program, **options)


class LeaksTheEnvironment(SubprocessSandbox):
    def run(self, program, **options):
        loud = f"import os; os.environ.update({dict(os.environ)!r})\n"
        return super().run(loud + program if isinstance(program, str) else program, **options)


class RunsEveryTest(SubprocessSandbox):
    def run_tests(self, program, cases, *, stop=None, **options):
        return super().run_tests(program, cases, **options)


class HasNoFunctions(SubprocessSandbox):
    def run_tests(self, program, cases, *, function=None, **options):
        if function is not None:
            raise SandboxError("no functions")
        return super().run_tests(program, cases, **options)


class _Forgetful(InterpreterSession):
    def run(self, code, **options):
        result = super().run(code, **options)
        self._end()
        return result


class Forgets(SubprocessSandbox):
    def session(self, *, limits=None):
        session = super().session(limits=limits)
        session.__class__ = _Forgetful
        return session


class BurnsTheHost(SubprocessSandbox):
    def run(self, program, **options):
        start = time.process_time()
        while time.process_time() - start < 1.1:
            pass
        return super().run(program, **options)


class WithoutPrelude(SubprocessSandbox):
    def run_tests(self, program, cases, **options):
        return super().run_tests(f"del List, Counter\n{program}", cases, **options)


class SharesFiles(SubprocessSandbox):
    def run(self, program, **options):
        return super().run("print(['file'])" if "listdir" in program else program, **options)


class WithoutFork(SubprocessSandbox):
    def run(self, program, **options):
        return super().run("import os\ndel os.fork\n" + program, **options)


BROKEN = [
    (altered(lambda r: replace(r, stdout=r.stdout + r.stderr)), "streams"),
    (altered(lambda r: replace(r, stdout=r.stdout.replace("''", "'a'"))), "stdin"),
    (altered(lambda r: replace(r, exit_code=0, status=Status.OK)), "exit-codes"),
    (altered(lambda r: replace(r, stderr="")), "exceptions"),
    (altered(lambda r: replace(r, signal=None, exit_code=1)), "crashes"),
    (altered(lambda r: replace(r, stdout="") if r.status is Status.TIMEOUT else r), "timeout"),
    (altered(lambda r: replace(r, stdout=r.stdout[:10_000], truncated=True)), "long-output"),
    (altered(lambda r: replace(r, status=Status.KILLED) if r.status is Status.OUTPUT_LIMIT else r), "endless-output"),
    (TakesAnyPath, "invalid-paths"),
    (TakesAnyPath, "as-script"),
    (LeaksTheEnvironment, "environment"),
    (RunsEveryTest, "tests"),
    (HasNoFunctions, "functions"),
    (WithoutPrelude, "starter-code"),
    (SharesFiles, "tests-apart"),
    (WithoutFork, "child-processes"),
    (Forgets, "session-state"),
    (BurnsTheHost, "host-cpu"),
    (ClaimsEverything, "network"),
    (ClaimsEverything, "host-files"),
    (ClaimsEverything, "host-settings"),
    (ClaimsEverything, "other-processes"),
    (ClaimsEverything, "no-processes-left"),
    (ClaimsEverything, "memory"),
    (ClaimsEverything, "memory-of-children"),
    (ClaimsEverything, "kernel-memory"),
    (ClaimsEverything, "processes"),
    (ClaimsEverything, "disk"),
    (ClaimsEverything, "hidden-files"),
    (ClaimsEverything, "cpu-of-children"),
    (ClaimsEverything, "cells-end"),
    (ClaimsEverything, "locks"),
    (ClaimsEverything, "shared-memory"),
    (ClaimsEverything, "priorities"),
    (ClaimsEverything, "kernel-slots"),
]
BY_NAME = {check.name: check for check in CHECKS}


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "name"), BROKEN, ids=[f"{name}-{made.__name__}" for made, name in BROKEN])
def test_each_defect_fails_its_check(broken, name, monkeypatch):
    if name == "cpu-of-children":  # its program runs until this limit
        monkeypatch.setattr(sandbox_limits, "AMPLE_S", 3.0)
    with broken() as sandbox:
        [finding] = check_sandbox(sandbox, checks=[BY_NAME[name]])
    assert finding.status == "failed" and finding.detail, finding


@pytest.mark.slow
def test_a_correct_sandbox_passes_and_missing_guarantees_are_unchecked():
    started = []
    with SubprocessSandbox() as sandbox:
        findings = check_sandbox(sandbox, started=started.append)
    assert [finding.name for finding in findings if finding.status == "failed"] == []
    unchecked = {finding.name for finding in findings if finding.status == "unchecked"}
    assert unchecked == {check.name for check in CONTAINMENT_CHECKS} - {"host-cpu"}
    assert [check.name for check in started] == [finding.name for finding in findings]


def test_a_closed_sandbox_fails_every_check_without_raising():
    sandbox = SubprocessSandbox()
    sandbox.close()
    findings = check_sandbox(sandbox)
    kept = {finding.name for finding in findings if finding.status == "passed"}
    assert kept <= {"invalid-paths", "session-closed"}
    assert "closed" in findings[0].detail


def test_every_check_has_a_unique_name():
    assert len(BY_NAME) == len(CHECKS)


def test_an_unexpected_result_is_reported_as_a_failure():
    with altered(lambda r: Result(status=Status.OK, stdout="no json"))() as sandbox:
        assert "raised JSONDecodeError" in check_sandbox(sandbox, checks=[BY_NAME["environment"]])[0].detail
