"""Checks of the process: settings, output, files that remain, dependence on the clock, and growth."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from gem._internal.text import short_repr
from gem.testing.check import Check, CheckFailed, Unchecked, check
from gem.testing.env.construction import probe
from gem.testing.env.harness import Harness
from gem.testing.env.process_state import CLOCK_SHIFT, ProcessState, shifted_clock

ROLLOUTS = 3  # number of recorded rollouts that are replayed
CHANGED_BY_IMPORTS = (
    "environment variables",
    "warnings filters",
    "the root logger",
    "sys.path",
)  # by imports of libraries
SECONDS_TO_CLEAN_UP = 2.0  # time that background processes have to remove their files after the end of the process

GROWTH_SECONDS = 6.0
BYTES_PER_EPISODE, BYTES_PER_ROUND = 4, 2_000  # smallest growth of memory that fails
BYTES_PER_STEP = 20_000  # an episode may keep its history
SLOWDOWN_OF_EPISODES, SLOWDOWN_OF_STEPS = 1.5, 4.0
MIN_SLOWDOWN_S = 2e-4  # differences below this are not measurable


@check(
    "process-state",
    "Building and playing changes no setting of the process, such as the working directory or the signal handlers.",
    needs=("protocol",),
)
def process_state(harness: Harness) -> str | None:
    initial, since_start = harness.process_state, list(harness.process_state.changes())

    def require_no_change() -> None:
        for change in initial.changes():
            raise CheckFailed(f"{harness.script[-1]} changes {change}")

    def body(seed: int, actions: Sequence[str]) -> None:
        initial.restore()
        _play(harness, seed, actions, require_no_change)

    before = ProcessState()
    try:
        harness.for_each_rollout(body, harness.rollouts[:ROLLOUTS])
    finally:
        before.restore()
    for change in since_start:
        if not change.startswith(CHANGED_BY_IMPORTS):
            raise CheckFailed(f"the first use of the environment changed {change}")
    return None


@check(
    "stdout",
    "Playing writes nothing to standard output or standard error, apart from logs and warnings.",
    needs=("construction", "protocol"),
)
def stdout(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        with _captured_output() as (output, errors):
            _play(
                harness,
                seed,
                actions,
                lambda: _require_no_output(harness.script[-1], output.getvalue(), errors.getvalue()),
            )

    harness.for_each_rollout(body, harness.rollouts[:ROLLOUTS])
    if harness.target.entry is not None:
        findings = probe(harness)
        _require_no_output("an episode in another process", findings["output"], findings["errors"])
    return None


@contextlib.contextmanager
def _captured_output() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Capture standard output and standard error, without the warnings and logs that no handler takes."""
    last_resort, logging.lastResort = logging.lastResort, logging.NullHandler()
    try:
        with (
            warnings.catch_warnings(record=True),
            contextlib.redirect_stdout(io.StringIO()) as output,
            contextlib.redirect_stderr(io.StringIO()) as errors,
        ):
            yield output, errors
    finally:
        logging.lastResort = last_resort


@check(
    "files",
    "No file that is written while playing remains after close() and the end of the process.",
    needs=("stdout",),
)
def files(harness: Harness) -> str | None:
    written = [path for path in probe(harness)["written"] if not path.startswith(("/dev/", "/proc/", "/sys/"))]
    deadline = time.perf_counter() + SECONDS_TO_CLEAN_UP
    while (left := [path for path in written if os.path.lexists(path)]) and time.perf_counter() < deadline:
        time.sleep(0.05)
    if left:
        raise CheckFailed(f"{len(left)} written files or folders remain, such as {left[0]!r}")
    return None


@check(
    "wall-clock",
    "Episodes do not depend on the date or the time of day.",
    needs=("protocol", "seed-determinism", "step-determinism"),
)
def wall_clock(harness: Harness) -> str | None:
    def body(seed: int, actions: Sequence[str]) -> None:
        env, twin = harness.build(), harness.build("twin")
        start = env.reset_plain(seed)
        expected = env.run(actions)
        names = {cls.__module__ for cls in type(env.env.unwrapped).__mro__}
        modules = [sys.modules[name] for name in names if name in sys.modules]
        harness.script.append(f"# with a clock that is {CLOCK_SHIFT} ahead:")
        with shifted_clock(modules):
            twin.expect_reset(seed, start, env.name)
            twin.expect_steps(actions, expected, env.name)

    harness.for_each_rollout(body, harness.rollouts[:ROLLOUTS])
    return None


def _play(harness: Harness, seed: int, actions: Sequence[str], after_each_call: Callable[[], None]) -> None:
    """Build an environment, play an episode, sample an action and close it. Calls the function after each call."""
    env = harness.build()
    after_each_call()
    env.reset(seed)
    after_each_call()
    for action in actions:
        if env.over:
            break
        env.step(action)
        after_each_call()
    if harness.samples_actions and not env.over:
        env.sample()
        after_each_call()
    harness.call(f"{env.name}.close()", env.env.close)
    after_each_call()


def _require_no_output(call: str, output: str, errors: str) -> None:
    if output:
        raise CheckFailed(f"{call} prints {short_repr(output)}")
    if errors:
        raise CheckFailed(f"{call} writes {short_repr(errors)} to standard error")


Requirement = Callable[[Sequence[float], int, str], "str | None"]  # (values, count, unit); raises CheckFailed


def _growth_check(what: str, quantity: str, require: Requirement) -> Check[Harness]:
    """Build a check of one quantity that growth.measure() returns."""

    def measured(harness: Harness, seconds: float) -> str | None:
        findings = probe(harness, growth_seconds=seconds)
        if stopped := findings.get("stopped"):
            first, last, count = stopped
            times = f"{first:.3g} s for {count} episodes at first, {last:.3g} s at last, when the measurement stopped"
            if quantity == "seconds":
                raise CheckFailed(f"the episodes take longer and longer: {times}")
            raise Unchecked(f"the episodes take too long: {times}")
        note = require(findings["episodes"][quantity], findings["count"][0], "episodes")
        if findings["steps"] is not None:
            require(findings["steps"][quantity], findings["count"][1], "steps")
        return note

    def function(harness: Harness) -> str | None:
        try:
            return measured(harness, GROWTH_SECONDS)
        except CheckFailed:
            if quantity != "seconds":
                raise
            return measured(harness, 2 * GROWTH_SECONDS)  # other programs may have started during the first measurement

    description = f"{what} do not grow from episode to episode, nor from step to step."
    return check(f"growth-{quantity}", description, needs=("protocol",))(function)


def _require_constant_memory(values: Sequence[float], count: int, unit: str) -> str:
    limit = max(BYTES_PER_ROUND, BYTES_PER_EPISODE * count) if unit == "episodes" else BYTES_PER_STEP * count
    grown = [later - earlier for earlier, later in pairwise(values)]
    if min(grown[1:]) > limit:
        raise CheckFailed(f"memory grows by {min(grown[1:]) / count:,.0f} bytes per {unit[:-1]}")
    return f"{count} {unit} per round; memory after each round: {', '.join(f'{value:,.0f}' for value in values)} bytes"


def _require_constant_number(what: str) -> Requirement:
    def function(values: Sequence[float], count: int, unit: str) -> None:
        if all(earlier < later for earlier, later in pairwise(values)):
            numbers = ", ".join(f"{value:.0f}" for value in values)
            raise CheckFailed(f"the number of {what} grows: {numbers}, each after {count} more {unit}")

    return function


def _require_constant_time(values: Sequence[float], count: int, unit: str) -> None:
    if unit == "episodes":
        times, slowdown = values[1:], SLOWDOWN_OF_EPISODES  # the first round may be slower
    else:
        times, slowdown = values, SLOWDOWN_OF_STEPS
    grows = all(earlier < later for earlier, later in pairwise(times))
    if grows and times[-1] > slowdown * times[0] and times[-1] - times[0] > MIN_SLOWDOWN_S:
        numbers = ", ".join(f"{1e3 * value:.3g}" for value in values)
        raise CheckFailed(f"the time grows: {numbers} ms of processor time, each after {count} more {unit}")


GROWTH = (
    _growth_check("Allocated bytes", "memory", _require_constant_memory),
    _growth_check("Open file descriptors", "descriptors", _require_constant_number("open file descriptors")),
    _growth_check("Threads", "threads", _require_constant_number("threads")),
    _growth_check("Child processes", "processes", _require_constant_number("child processes")),
    _growth_check("Processor times", "seconds", _require_constant_time),
)
