"""run_python with the published interface."""

import inspect
import logging

import pytest

from gem.errors import BadValue, SandboxError
from gem.sandbox import get_sandbox
from gem.sandbox.command import subprocess_
from gem.utils.sandbox import run_python


def test_the_signature_is_the_published_one():
    assert str(inspect.signature(run_python)).startswith(
        "(code: 'str', sandbox_type: 'str' = 'auto', stdin: 'str | None' = None, timeout: 'float' = 10)"
    )


def test_arguments_can_be_positional():
    assert run_python("print(input())", "none", "hi", 5) == (True, "hi\n", "")


def test_a_failing_program_writes_its_traceback_to_stderr():
    ok, stdout, stderr = run_python("print(1)\n1 / 0", "none")
    assert (ok, stdout) == (False, "1\n")
    assert stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_no_stdin_is_eof():
    assert run_python("import sys; print(repr(sys.stdin.read()))", "none")[1] == "''\n"


def test_only_exit_code_zero_is_a_success():
    assert run_python("import sys; sys.exit(0)", "none")[0] is True
    assert run_python("import sys; sys.exit(2)", "none")[0] is False


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("print('kept', flush=True); import ctypes; ctypes.string_at(0)", "[killed by signal 11]"),
        ("while True: print('kept' * 1000)", "[killed: output limit exceeded]"),
    ],
)
def test_the_last_line_of_stderr_says_why_a_program_was_stopped(code, line):
    ok, stdout, stderr = run_python(code, "none", timeout=60)
    assert not ok and stdout.startswith("kept") and stderr.endswith(f"{line}\n")


def test_the_last_line_of_stderr_says_that_a_program_timed_out(limit_after_output):
    ok, stdout, stderr = run_python("print('kept', end=''); import time; time.sleep(600)", "none", timeout=60)
    assert (ok, stdout) == (False, "kept") and stderr.endswith("[timed out after 60 s]\n")


def test_isolation_can_be_switched_off_with_one_warning(caplog, monkeypatch):
    monkeypatch.setattr(subprocess_, "_warned", False)
    get_sandbox("subprocess").close()
    with caplog.at_level(logging.WARNING, "gem.sandbox"):
        assert run_python("print(1)", "none")[0] and run_python("print(2)", "none")[0]
    assert len([record for record in caplog.records if "does not isolate" in record.message]) == 1


def test_an_unknown_type_raises_with_a_suggestion():
    with pytest.raises(BadValue, match=r"'bwarp'.*'bwrap'"):
        run_python("print(1)", "bwarp")


def test_infrastructure_failures_raise(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="not installed"):
        run_python("print(1)", "docker")


def test_isolation_is_the_default():
    assert run_python("print(input())", stdin="hi") == (True, "hi\n", "")


@pytest.mark.parametrize("code", ["print(math.sqrt(16))", "print(Counter('aab').most_common(1)[0][1] + 2.0)"])
def test_a_program_that_forgot_a_usual_import_runs_again_with_it(code):
    assert run_python(code, "none") == (True, "4.0\n", "")


@pytest.mark.parametrize("code", ["print(undefined)", "print(math.sqrt(16)); print(undefined)", "math.sqrt('x')"])
def test_an_error_is_that_of_the_program_as_it_was_written(code):
    ok, stdout, stderr = run_python(code, "none")
    assert (ok, stdout) == (False, "") and "NameError" in stderr and "line 1," in stderr
