"""The self-check of sandboxes: a sound one passes, and each way to break a promise is found under its name."""

from dataclasses import replace

import pytest

from gem.errors import SandboxError
from gem.sandbox import Report, Result, Status
from gem.sandbox.scripted_session import ScriptedSession
from gem.sandbox.subprocess_ import SubprocessSandbox
from gem.testing.check_sandbox import check_sandbox, checks


def altered(change):
    """A sandbox whose results are changed by a function."""

    class Altered(SubprocessSandbox):
        def run(self, *args, **kwargs):
            return change(super().run(*args, **kwargs))

    return Altered


class Promises(SubprocessSandbox):
    """Promises everything, and keeps nothing of it."""

    def report(self):
        return Report("liar", "", dict.fromkeys(super().report().guarantees, "so it says"))


class TakesAnyPath(SubprocessSandbox):
    def run(self, program, *, files=None, **options):
        return super().run(program, **options)


class LeaksTheEnvironment(SubprocessSandbox):
    def run(self, program, **options):
        import os

        loud = f"import os; os.environ.update({dict(os.environ)!r})\n"
        return super().run(loud + program if isinstance(program, str) else program, **options)


class RunsEveryTest(SubprocessSandbox):
    def run_tests(self, program, cases, *, stop=None, **options):
        return super().run_tests(program, cases, **options)


class HasNoFunctions(SubprocessSandbox):
    def run_tests(self, program, cases, *, function=None, **options):
        if function is not None:
            raise SandboxError("not today")
        return super().run_tests(program, cases, **options)


class _Forgetful(ScriptedSession):
    def run(self, code, **options):
        result = super().run(code, **options)
        self._end()
        return result


class Forgets(SubprocessSandbox):
    def session(self, *, limits=None):
        session = super().session(limits=limits)
        session.__class__ = _Forgetful
        return session


BROKEN = [
    (altered(lambda r: replace(r, stdout=r.stdout + r.stderr)), "streams"),
    (altered(lambda r: replace(r, stdout=r.stdout.replace("''", "'a'"))), "stdin"),
    (altered(lambda r: replace(r, exit_code=0, status=Status.OK)), "exit-codes"),
    (altered(lambda r: replace(r, stderr="")), "exceptions"),
    (altered(lambda r: replace(r, signal=None, exit_code=1)), "crashes"),
    (altered(lambda r: replace(r, stdout="") if r.status is Status.TIMEOUT else r), "timeout"),
    (altered(lambda r: replace(r, stdout=r.stdout[:10_000], truncated=True)), "long-output"),
    (altered(lambda r: replace(r, status=Status.KILLED) if r.status is Status.OUTPUT_LIMIT else r), "endless-output"),
    (TakesAnyPath, "paths-checked"),
    (TakesAnyPath, "as-script"),
    (LeaksTheEnvironment, "environment"),
    (RunsEveryTest, "tests"),
    (HasNoFunctions, "functions"),
    (Forgets, "session-state"),
    (Promises, "network"),
    (Promises, "host-files"),
    (Promises, "host-settings"),
    (Promises, "other-processes"),
    (Promises, "nothing-left"),
    (Promises, "memory"),
    (Promises, "disk"),
]
_CHECKS = {check.name: check for check in checks()}


@pytest.mark.parametrize(("broken", "name"), BROKEN, ids=[f"{name}-{made.__name__}" for made, name in BROKEN])
def test_a_broken_promise_is_found(broken, name):
    with broken() as sandbox:
        finding = _CHECKS[name].judge(sandbox)
    assert finding.status == "failed" and finding.detail, finding


def test_a_sound_sandbox_passes_and_what_it_does_not_promise_is_unchecked():
    started = []
    with SubprocessSandbox() as sandbox:
        findings = check_sandbox(sandbox, started=started.append)
    assert [finding.name for finding in findings if finding.status == "failed"] == []
    unchecked = {finding.name for finding in findings if finding.status == "unchecked"}
    assert unchecked == {check.name for check in checks() if check.guarantee}
    assert [check.name for check in started] == [finding.name for finding in findings]


def test_a_sandbox_whose_machinery_is_down_fails_every_check_and_raises_nothing():
    sandbox = SubprocessSandbox()
    sandbox.close()
    findings = check_sandbox(sandbox)
    kept = {finding.name for finding in findings if finding.status == "passed"}
    assert kept <= {"paths-checked", "session-closed"}
    assert "closed" in findings[0].detail


def test_every_check_says_what_it_checks_under_a_name_of_its_own():
    names = [check.name for check in checks()]
    assert len(set(names)) == len(names)
    assert all(check.says.endswith(".") and len(check.says) < 120 for check in checks())


def test_a_result_of_the_wrong_kind_is_a_finding_too():
    with altered(lambda r: Result(status=Status.OK, stdout="no json"))() as sandbox:
        assert "raised JSONDecodeError" in _CHECKS["environment"].judge(sandbox).detail
