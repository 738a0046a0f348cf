"""Which tests of a program run again, and how they are distributed, with prepared runners instead of sandboxes."""

import contextlib
import errno
import math
import socket

import pytest

from gem.errors import SandboxError
from gem.sandbox import Case, Limits, Result, Status
from gem.sandbox.admission import Admission
from gem.sandbox.forkserver.host import batch
from gem.sandbox.forkserver.host.batch import CompileFailed, run_tests
from gem.sandbox.inputs import Job

LIMITS = Limits(wall_s=10, cpu_s=2)
SLOW = Result(status=Status.TIMEOUT, wall_s=10, cpu_s=0.5)
PASSED = Result(status=Status.OK, exit_code=0)


class FakeRunners:
    """Replaces the class Runner. ``script`` maps (test, number of earlier attempts) to a result and whether it is slow,
    or to "dies". Every attempt is recorded with the number of its runner and whether a core was reserved."""

    def __init__(self, script):
        self.script, self.made, self.attempts, self.reserved = script, 0, [], False
        self.admission = Admission(2)

    def __call__(self, launch, job, level, reader):
        self.made += 1
        return FakeRunner(self, self.made)

    @contextlib.contextmanager
    def reserve(self):
        assert self.admission.free == 8  # nothing else of this program runs, or it could wait forever
        self.reserved = True
        yield
        self.reserved = False


class FakeRunner:
    def __init__(self, made, number):
        self.made, self.number = made, number
        self.sent, self.compiled, self.deadline, self.ended = [], True, math.inf, None

    def send(self, index, case):
        self.sent.append(index)

    def receive(self, ready):
        if not self.sent:
            return []
        index = self.sent[0]
        earlier = sum(index == attempt[0] for attempt in self.made.attempts)
        self.made.attempts.append((index, self.number, self.made.reserved))
        outcome = self.made.script.get((index, earlier), (PASSED, False))
        if outcome == "dies":
            self.ended = True
            return []
        return [(self.sent.pop(0), *outcome)]

    def lost_test(self):
        return self.sent.pop(0), Result(status=Status.MEMORY), False

    def unreported(self):
        return self.sent

    def close(self):
        pass


@pytest.fixture
def runners(monkeypatch):
    def prepare(script):
        made = FakeRunners(script)
        monkeypatch.setattr(batch, "Runner", made)
        monkeypatch.setattr(batch, "close_all", lambda runners: None)
        monkeypatch.setattr(batch.OutputReader, "wait", lambda self, deadline: [])
        monkeypatch.setattr(batch, "admission", lambda: made.admission)
        monkeypatch.setattr(made.admission, "reserved", made.reserve)
        return made

    return prepare


def run(count, stop=None, limits=LIMITS):
    return run_tests(None, Job(limits=limits), [Case()] * count, stop, level="ns", parallel=2)


def test_a_test_that_was_slow_because_of_other_programs_runs_again_and_passes(runners):
    made = runners({(1, 0): (SLOW, True)})
    seen = []
    results = run(5, stop=lambda index, result: seen.append((index, result.status)))
    assert [result.status for result in results] == [Status.OK] * 5
    assert sorted(seen) == [(index, Status.OK) for index in range(5)]
    again = [attempt for attempt in made.attempts if attempt[0] == 1][1:]
    assert len(again) == 1 and again[0][2]
    assert made.admission.free == 8


def test_a_slow_test_runs_again_alone_in_a_new_runner(runners):
    made = runners({(0, 0): (SLOW, True)})
    run(5)
    index, number, _ = next(attempt for attempt in made.attempts if attempt[2])
    assert index == 0 and [attempt[0] for attempt in made.attempts if attempt[1] == number] == [0]


def test_the_second_timeout_of_a_slow_test_counts(runners):
    made = runners({(0, 0): (SLOW, True), (0, 1): (SLOW, True)})
    results = run(3)
    assert [result.status for result in results] == [Status.TIMEOUT, Status.OK, Status.OK]
    assert [attempt[0] for attempt in made.attempts].count(0) == 2


def test_a_test_that_exceeded_its_cpu_limit_does_not_run_again(runners):
    made = runners({(0, 0): (Result(status=Status.TIMEOUT, cpu_s=2.1), False)})
    assert run(1)[0].status is Status.TIMEOUT
    assert len(made.attempts) == 1


def test_a_runner_that_dies_takes_one_test_with_it(runners):
    made = runners({(2, 0): "dies"})
    results = run(20)
    assert [index for index, result in enumerate(results) if result.status is not Status.OK] == [2]
    assert sorted(attempt[0] for attempt in made.attempts) == list(range(20))
    assert made.admission.free == 8


def test_few_runners_are_started_for_few_tests(runners):
    for count, most in ((1, 1), (2, 2), (50, 2)):
        made = runners({})
        run(count)
        assert made.made <= most


def test_other_programs_are_not_delayed_by_additional_runners(runners):
    made = runners({})
    assert made.admission.extra(7) == 7
    run(20)
    assert made.made == 1


def test_nothing_is_sent_after_stop(runners):
    made = runners({})
    results = run(50, stop=lambda index, result: index == 1)
    assert [attempt[0] for attempt in made.attempts][:2] == [0, 1] and len(made.attempts) <= 3
    assert sum(result is not None for result in results) == 2


def test_a_failed_compilation_is_the_result_of_every_test(runners, monkeypatch):
    failed = Result(status=Status.ERROR, exit_code=1, stderr="SyntaxError")

    def receive(self, ready):
        raise CompileFailed(failed)

    monkeypatch.setattr(FakeRunner, "receive", receive)
    runners({})
    assert run(3) == [failed] * 3
    assert run(3, stop=lambda index, result: index == 1) == [failed, failed, None]


def test_a_runner_that_fails_by_itself_is_a_failure_of_the_sandbox(runners, monkeypatch):
    def lost_test(self):
        raise SandboxError("a test runner failed")

    monkeypatch.setattr(FakeRunner, "lost_test", lost_test)
    made = runners({(0, 0): "dies"})
    with pytest.raises(SandboxError):
        run(3)
    assert made.admission.free == 8


def test_a_test_that_cannot_be_sent_is_an_error_of_the_sandbox(monkeypatch):
    def no_memory(*_):
        raise OSError(errno.ENOMEM, "no memory")

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        monkeypatch.setattr(socket, "send_fds", no_memory)
        with pytest.raises(SandboxError, match="no memory"):
            batch.send_test(ours, b"", [])


def test_sending_a_test_to_a_runner_that_has_died_is_no_error():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    with ours:
        batch.send_test(ours, b"x", [0])


def test_a_runner_that_stalls_before_it_has_compiled_the_program_is_replaced(runners, monkeypatch):
    made = runners({(0, 0): "dies"})
    monkeypatch.setattr(FakeRunner, "lost_test", lambda self: None)
    monkeypatch.setattr(
        FakeRunner, "compiled", property(lambda self: self.ended is None, lambda self, value: None), False
    )
    assert [result.status for result in run(3)] == [Status.OK] * 3
    assert made.made > 1


def test_a_runner_that_always_stalls_is_a_failure_of_the_sandbox(runners, monkeypatch):
    runners({(0, attempt): "dies" for attempt in range(20)})
    monkeypatch.setattr(FakeRunner, "lost_test", lambda self: None)
    monkeypatch.setattr(
        FakeRunner, "compiled", property(lambda self: self.ended is None, lambda self, value: None), False
    )
    with pytest.raises(SandboxError, match="too busy"):
        run(3)
