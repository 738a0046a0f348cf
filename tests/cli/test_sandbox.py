"""gem sandbox report, run, selftest and serve."""

import http.client
import io
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gem.cli import main
from gem.testing.sandbox.check_sandbox import CHECKS, check_sandbox

BACKEND = ["--backend", "subprocess"]


@pytest.fixture
def program(tmp_path):
    """Writes a program and returns its path."""

    def write(code):
        path = tmp_path / "program.py"
        path.write_text(code)
        return str(path)

    return write


@pytest.fixture
def typed(monkeypatch):
    """Sets the contents of stdin."""

    def give(data):
        stream = io.TextIOWrapper(io.BytesIO(data))
        monkeypatch.setattr(sys, "stdin", stream)

    give(b"")
    return give


def test_report_shows_which_guarantees_are_enforced(capsys):
    assert main(["sandbox", "report", *BACKEND]) == 0
    shown = capsys.readouterr().out
    assert "backend  subprocess\nlevel    none\n" in shown
    assert "  network        NOT ENFORCED\n" in shown and "  process_limit  NOT ENFORCED\n" in shown
    assert "  wall           the host's clock" in shown and "\n- No isolation" in shown


def test_run_forwards_both_outputs_and_the_exit_code(program, typed, capsys):
    typed(b"input\n")
    path = program("import sys; print(input()); print('err', file=sys.stderr); sys.exit(5)")
    assert main(["sandbox", "run", path, *BACKEND]) == 5
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("input\n", "err\n")


def test_a_program_read_from_standard_input_gets_eof_as_its_input(typed, capsys):
    typed(b"import sys; print(repr(sys.stdin.read()))")
    assert main(["sandbox", "run", "-", *BACKEND]) == 0
    assert capsys.readouterr().out == "''\n"


@pytest.mark.parametrize(
    ("code", "flags", "exit_code", "said"),
    [
        ("while True: print('kept')", ["--output-bytes", "1000"], 137, "gem: killed: output limit exceeded\n"),
        ("print('kept', flush=True); import ctypes; ctypes.string_at(0)", [], 139, ""),
    ],
)
def test_a_killed_program_is_reported_on_stderr_and_by_the_exit_code(
    code, flags, exit_code, said, program, typed, capsys
):
    assert main(["sandbox", "run", program(code), *BACKEND, *flags]) == exit_code
    captured = capsys.readouterr()
    assert captured.out.startswith("kept\n") and captured.err == said


def test_a_program_that_times_out_is_reported(program, typed, capsys, limit_after_output):
    code = program("print('kept', end=''); import time; time.sleep(600)")
    assert main(["sandbox", "run", code, *BACKEND, "--wall-s", "60"]) == 124
    assert capsys.readouterr() == ("kept", "gem: killed: time limit exceeded\n")


@pytest.fixture
def few_checks(monkeypatch):
    few = [check for check in CHECKS if check.name in ("streams", "network")]
    monkeypatch.setattr(sys.modules[check_sandbox.__module__], "CHECKS", few)


def test_selftest_shows_a_line_for_each_check_and_a_summary(few_checks, capsys):
    assert main(["sandbox", "selftest", *BACKEND]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("passed     streams ") for line in lines)
    assert any(line.startswith("unchecked  network ") for line in lines)
    assert lines[-1].startswith("subprocess: 1 of 2 checks passed, 0 failed, ")


def test_selftest_fails_if_a_check_fails(few_checks, capsys, monkeypatch):
    from gem.sandbox.command.subprocess_ import SubprocessSandbox

    honest = SubprocessSandbox.report
    monkeypatch.setattr(
        SubprocessSandbox,
        "report",
        lambda self: SimpleNamespace(**{**vars(honest(self)), "guarantees": {"network": "claimed"}}),
    )
    assert main(["sandbox", "selftest", *BACKEND]) == 1
    shown = capsys.readouterr().out
    assert "FAILED     network" in shown and "the host received a connection" in shown


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["run"], "sandbox run needs a file, or - "),
        (["report", "x.py"], "sandbox report .*'x.py'"),
        (["raport"], "did you mean 'report'"),
        (["run", "missing.py", *BACKEND], "missing.py: No such file"),
        (["report", "--backend", "zygot"], "did you mean 'zygote'"),
        (["report", "--level", "nss"], "did you mean 'ns'"),
        (["report", *BACKEND, "--level", "ns"], "'subprocess' .*'level'"),
        (["report", "--backend", "remote"], "'remote' requires .*url="),
        (["report", *BACKEND, "--wall-s", "-1"], r"wall_s .*above 0.*got -1\.0"),
        (["serve", *BACKEND], "needs a token in GEM_SANDBOX_TOKEN"),
    ],
)
def test_a_usage_error_is_one_line(argv, said, usage_error, typed, monkeypatch):
    monkeypatch.delenv("GEM_SANDBOX_TOKEN", raising=False)
    assert re.search(said, usage_error("sandbox", *argv))


def test_an_infra_error_is_one_line_and_exits_with_1(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["sandbox", "report", "--backend", "docker"]) == 1
    error = capsys.readouterr().err
    assert re.fullmatch("gem: error: docker .*install podman or docker\n", error)


def test_serve_serves_the_sandbox_until_it_is_interrupted():
    pytest.importorskip("uvicorn", reason="needs the extra [serve]")
    argv = [sys.executable, "-m", "gem", "sandbox", "serve", *BACKEND, "--port", "0"]
    environment = {**os.environ, "GEM_SANDBOX_TOKEN": "t"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            host, port = server.stdout.readline().split("//")[1].split(";")[0].split(":")
            connection = http.client.HTTPConnection(host, int(port), timeout=30)
            connection.request("GET", "/report", headers={"Authorization": "Bearer t"})
            assert b'"subprocess"' in connection.getresponse().read()
            connection.close()
            server.send_signal(2)
            assert server.wait(30) == 0
        finally:
            server.kill()


def test_the_output_of_a_program_is_escaped_on_a_terminal_and_exact_elsewhere(program, typed, capsys, monkeypatch):
    typed(b"")
    path = program("import sys; print('\x1b[2Jout'); print('\x1b[2Jerr', file=sys.stderr)")
    assert main(["sandbox", "run", path, *BACKEND]) == 0
    assert tuple(capsys.readouterr()) == ("\x1b[2Jout\n", "\x1b[2Jerr\n")
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert main(["sandbox", "run", path, *BACKEND]) == 0
    assert tuple(capsys.readouterr()) == ("\\x1b[2Jout\n", "\\x1b[2Jerr\n")
