"""The clock of tests that share processors, and the messages of the batch driver."""

import pytest

from gem.sandbox.zygote import batch_clock
from gem.sandbox.zygote.batch_clock import FairClock
from gem.sandbox.zygote.batch_protocol import DriverCommand, RunReport


@pytest.fixture
def passes(monkeypatch):
    """Replace time.monotonic() by a clock that the test advances."""
    seconds = [100.0]
    monkeypatch.setattr(batch_clock.time, "monotonic", lambda: seconds[0])

    def by(change):
        seconds[0] += change

    return by


def test_the_clock_equals_wall_time_with_a_processor_per_test(passes):
    clock = FairClock(2)
    for running in (0, 1, 2):
        before = clock.now()
        passes(5)
        assert clock.now() - before == 5, running
        clock.change_running(+1)


def test_the_clock_advances_as_if_each_test_ran_alone(passes):
    clock = FairClock(2)
    first = clock.change_running(+1)
    passes(1)  # alone
    clock.change_running(+5)
    passes(3)  # six on two processors
    clock.change_running(-3)
    passes(3)  # three on two
    clock.change_running(-2)
    passes(0.5)  # alone again
    assert clock.now() - first == pytest.approx(1 + 3 * 2 / 6 + 3 * 2 / 3 + 0.5)


def test_the_rate_converts_clock_time_to_wall_time(passes):
    clock = FairClock(1)
    clock.change_running(+4)
    deadline = clock.now() + 2
    passes((deadline - clock.now()) / clock.rate)
    assert clock.now() == pytest.approx(deadline)


def test_commands_survive_a_round_trip():
    for command in (DriverCommand(True, [3, 1, 2]), DriverCommand(False, [7]), DriverCommand(True, [])):
        assert DriverCommand.of(command.packed()) == command


def test_reports_sent_together_are_split():
    reports = [
        RunReport(1, 0, False, 0.25, 0.125, 1 << 33),
        RunReport(2, 125, False, 0.0, 0.0, 0, b"no room"),
        RunReport(3, -9, True, 10.0, 9.5, 5),
    ]
    assert RunReport.all_of(b"".join(report.packed() for report in reports)) == reports
    assert RunReport.all_of(b"") == []


def test_setup_errors_are_shortened_so_that_all_reports_fit_one_message():
    long = RunReport(2, 125, False, 0.0, 0.0, 0, b"x" * 100_000)
    found = RunReport.all_of(long.packed() * 30)
    assert len(found) == 30 and len(long.packed() * 30) < 1 << 16
    assert all(report.setup_error == b"x" * 256 for report in found)
