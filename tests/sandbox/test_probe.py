"""The choice of a level, by a probe that tries to escape."""

import sys

import pytest

from gem.sandbox import Limits, Result, Status
from gem.sandbox.zygote import probe

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the levels are those of Linux")
CONTAINED = '{"can": [], "pid": 1}\n'


def said(stdout, status=Status.OK, stderr=""):
    return Result(status=status, stdout=stdout, stderr=stderr)


def test_a_level_is_available_if_the_program_cannot_escape():
    assert probe._failure("ns", said(CONTAINED)) == ""
    assert probe._failure("lsm", said(CONTAINED.replace("1}", "7}"))) == ""


@pytest.mark.parametrize(
    ("level", "stdout", "why"),
    [
        ("ns", '{"can": ["reach a network"], "pid": 1}\n', "reach a network"),
        ("ns", '{"can": [], "pid": 7}\n', "see other processes"),
        ("lsm", '{"can": ["read the host\'s files"], "pid": 7}\n', "read the host's files"),
        ("lsm", CONTAINED + "unlimited\n", "start unlimited processes"),
    ],
)
def test_a_level_is_unavailable_if_the_program_can_escape(level, stdout, why):
    assert probe._failure(level, said(stdout)).endswith(f"a program can {why}")


def test_a_level_is_unavailable_if_the_program_fails():
    assert "ended with error: Boom" in probe._failure("ns", said("", Status.ERROR, "Boom\n"))


def test_without_isolation_the_program_escapes(tmp_path, monkeypatch):
    """The same program, run at level basic, reports its escapes."""
    run_once = probe.run_once
    monkeypatch.setattr(
        "gem.sandbox.zygote.probe.run_once",
        lambda level, source, limits: run_once("basic", source, Limits(processes=limits.processes, wall_s=60)),
    )
    reason = probe._failure("lsm", probe._probe("lsm", tmp_path))
    assert "reach a network" in reason
    tmp_path.chmod(0o755)


def test_the_lowest_level_is_always_available():
    assert probe.why_not("basic") == ""
    assert probe.best_level() in probe.LEVELS


def test_a_level_that_cannot_be_set_up_is_unavailable_with_a_reason(monkeypatch):
    from gem.errors import SandboxError

    def refuse(*_):
        raise SandboxError("unshare: Operation not permitted")

    monkeypatch.setattr(probe, "_probe", refuse)
    probe.why_not.cache_clear()
    try:
        assert probe.best_level() == "basic"
        report = probe.report("basic")
    finally:
        probe.why_not.cache_clear()
    assert any("unshare" in note for note in report.notes)
    assert report.guarantees["files"] is None


def test_a_report_names_what_enforces_each_guarantee():
    for level in probe.LEVELS:
        report = probe.report(level)
        assert (report.backend, report.level) == ("zygote", level)
        assert set(report.guarantees) == set(
            ("network", "files", "processes", "memory", "disk", "cpu", "wall", "output", "kernel")
        )
        assert all(report.guarantees.values()) == (level != "basic")
