"""Harness builds an environment under test, records all calls and shortens failing scripts.

TrackedEnv is in the same file because it contributes to the script as well: the calls of one instance.
"""

from __future__ import annotations

import math
import pickle
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from gem._internal.text import short_repr
from gem.core import Step
from gem.errors import InfraError, MissingDependency
from gem.policies import Oracle
from gem.registry import EnvSpec, resolve
from gem.testing.check import Check, CheckFailed, Unchecked
from gem.testing.env.process_state import ProcessState
from gem.testing.env.target import EnvTarget, literal
from gem.testing.plain_data import RESET_FIELDS, STEP_FIELDS, difference, plain

MAX_SHRINK_ATTEMPTS = 60


@dataclass(frozen=True)
class Rollout:
    """A recorded rollout: the seed of an episode and the actions taken in it."""

    seed: int
    actions: tuple[str, ...]


RolloutBody = Callable[[int, Sequence[str]], None]  # (seed, actions); raises CheckFailed


class Harness:
    """Builds instances of one target, and records a script of all calls of these instances.

    Args:
        target: the environment under test.
        seeds: seeds of the recorded rollouts.
        episodes: number of episodes used to estimate means and rates.
        seconds: approximate time for all checks. Each gets an equal part of the time that is left, and plays fewer
            rollouts when that is used up.

    Attributes:
        rollouts: recorded rollouts of at most 100 turns, replayed by most checks.
        long_rollouts: recorded rollouts that continue to the end of the episode, or to turn 2,000.
        samples_actions: whether sampling actions works; set to False when sample_random_action() fails.
        best_total: the highest sum of rewards of the episodes that were played to estimate scores.
        passed, failed: names of the checks that have passed and that have failed.
        script: lines of Python that repeat the calls of the current case.
        checks_left: number of checks that still run, which share the time.
        process_state: the settings of the process before the first check.
        probes: what other processes found, or why they could not run, by the seconds for which they measured growth (0:
            they replayed rollouts); see construction.probe.
    """

    def __init__(self, target: EnvTarget, seeds: Sequence[int], episodes: int, *, seconds: float = math.inf) -> None:
        self.target, self.seeds, self.episodes = target, seeds, episodes
        self.rollouts: list[Rollout] = []
        self.long_rollouts: list[Rollout] = []
        self.samples_actions = True
        self.passed: set[str] = set()
        self.failed: set[str] = set()
        self.script: list[str] = []
        self.process_state = ProcessState()
        self.best_total = -math.inf
        self.probes: dict[float, Mapping[str, Any] | Unchecked] = {}
        self.checks_left = 1
        self._deadline = time.perf_counter() + seconds
        self._check_deadline = math.inf
        self._envs: list[TrackedEnv] = []
        self._snapshots: dict[int, bytes] = {}

    @property
    def spec(self) -> EnvSpec | None:
        return self.target.spec

    @contextmanager
    def case(self, check: Check[Any]) -> Iterator[None]:
        """Run one check, starting with an empty script. If the check fails, attach the script to the failure."""
        self.new_case()
        now = time.perf_counter()
        self._check_deadline = now + max(0.0, self._deadline - now) / max(1, self.checks_left)
        self.checks_left -= 1
        try:
            yield
        except CheckFailed as e:
            self.attach_script(e)
            self.failed.add(check.name)
            raise
        else:
            self.passed.add(check.name)
        finally:
            self.new_case()

    def out_of_time(self) -> bool:
        """Return whether the current check has used up its part of the time."""
        return time.perf_counter() > self._check_deadline

    def new_case(self) -> None:
        """Close all environments and clear the script."""
        for tracked in self._envs:
            with suppress(Exception):  # the check "protocol" reports errors of close()
                tracked.env.close()
        self._envs, self.script = [], []

    def build(self, name: str = "env") -> TrackedEnv:
        """Build a new environment. ``name`` is its variable in the script."""
        return self.track(name, self.call(f"{name} = {self.target.code}", self.target.build))

    def start(self, seed: int) -> tuple[TrackedEnv, Any]:
        """Return an environment that has just been reset with this seed, and its first observation.

        If the check "pickle" has passed, a pickled copy is kept for each seed. Later calls with the same seed unpickle
        this copy, which is faster than building and resetting an environment.
        """
        if seed not in self._snapshots:
            env = self.build()
            observation = env.reset(seed)[0]
            if "pickle" in self.passed:
                with suppress(Exception):  # pickle may raise anything; every call then builds a new environment
                    self._snapshots[seed] = pickle.dumps((env.env, observation))
            return env, observation
        self.script += [f"env = {self.target.code}", f"env.reset(seed={seed})"]
        restored, observation = pickle.loads(self._snapshots[seed])
        env = self.track("env", restored)
        env.over = False
        return env, observation

    def track(self, name: str, env: Any, like: TrackedEnv | None = None) -> TrackedEnv:
        """Start to record the calls of an environment.

        Args:
            name: the variable of the environment in the script.
            like: the tracked environment that ``env`` is a copy of. Its turn number and ``over`` are copied. None if
                no episode is running in ``env``.
        """
        tracked = TrackedEnv(self, name, env)
        if like is not None:
            tracked.turn, tracked.over = like.turn, like.over
        self._envs.append(tracked)
        return tracked

    def call(
        self, code: str, function: Callable[..., Any], *args: Any, optional: bool = False, expected: Any = (), **kw: Any
    ) -> Any:
        """Call a function of the environment and record the call.

        Args:
            code: the call as a line of the script.
            function, args, kw: the function to call and its arguments.
            optional: whether the function may raise NotImplementedError.
            expected: exception types that propagate unchanged.

        Raises:
            CheckFailed: the function raised any other exception.
            Unchecked: the function raised InfraError or MissingDependency, or, if optional, NotImplementedError.
        """
        self.script.append(code)
        try:
            return function(*args, **kw)
        except expected:
            raise
        except (InfraError, MissingDependency) as e:
            raise Unchecked(f"{code} could not run: {type(e).__name__}: {e}") from e
        except (Exception, SystemExit) as e:  # the environment may raise anything
            if optional and isinstance(e, NotImplementedError):
                raise Unchecked(str(e) or f"{code} is not implemented") from e
            raise CheckFailed(f"{code} raised {type(e).__name__}: {short_repr(str(e), 200)}") from e

    def for_each_rollout(self, body: RolloutBody, rollouts: Sequence[Rollout] | None = None) -> int:
        """Run the body on every rollout, or on the first ones until the check is out of time. Returns their number.

        Args:
            body: called with the seed and the actions of each rollout.
            rollouts: the rollouts to run; None for self.rollouts.

        Raises:
            CheckFailed: the body failed on at least one rollout. The failure has the shortest script that was found.
        """
        rollouts = self.rollouts if rollouts is None else rollouts
        tried: list[tuple[CheckFailed | None, Rollout]] = []
        for rollout in rollouts:
            if tried and self.out_of_time():
                break
            tried.append((self.attempt(body, rollout), rollout))
        failures = [(failure, rollout) for failure, rollout in tried if failure is not None]
        if failures:
            failure, rollout = min(failures, key=lambda pair: pair[0].turns)
            raise self._shrink(body, failure, rollout)
        return len(tried)

    def attempt(self, body: RolloutBody, rollout: Rollout) -> CheckFailed | None:
        """Run the body on one rollout, with an empty script. Returns the failure, or None if the body succeeds."""
        self.new_case()
        try:
            body(rollout.seed, rollout.actions)
        except CheckFailed as failure:
            self.attach_script(failure)
            return failure
        finally:
            self.new_case()
        return None

    def attach_script(self, failure: CheckFailed) -> None:
        """Store the current script in the failure, unless the failure already has a script."""
        if not failure.script:
            failure.script = [*self.target.setup, *_import_lines(self.script), *self.script]
            failure.turns = max((env.turn for env in self._envs), default=0)

    def _shrink(self, body: RolloutBody, failure: CheckFailed, rollout: Rollout) -> CheckFailed:
        """Remove actions while the body still fails: those after the failing step, then halves, then smaller parts."""

        def attempt(actions: list[str]) -> CheckFailed | None:
            return self.attempt(body, replace(rollout, actions=tuple(actions)))

        actions = list(rollout.actions)
        if (shorter := attempt(actions[: failure.turns])) is not None:
            actions, failure = actions[: failure.turns], shorter
        attempts, size = MAX_SHRINK_ATTEMPTS, (len(actions) + 1) // 2
        while size and attempts:
            start = 0
            while start < len(actions) and attempts:
                attempts -= 1
                fewer = actions[:start] + actions[start + size :]
                if (shorter := attempt(fewer)) is None:
                    start += size
                else:
                    actions, failure = fewer, shorter
            size //= 2
        return failure


class TrackedEnv:
    """An environment whose calls are recorded in the script of the harness.

    Attributes:
        turn: number of steps taken in the current episode.
        over: whether the episode has ended, or no episode has started.
    """

    def __init__(self, harness: Harness, name: str, env: Any) -> None:
        self.harness, self.name, self.env = harness, name, env
        self.turn, self.over = 0, True

    def reset(self, seed: int | None = None) -> tuple[Any, Any]:
        code = f"{self.name}.reset({'' if seed is None else f'seed={seed}'})"
        answer = self.harness.call(code, self.env.reset, seed=seed)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise CheckFailed(f"{code} returned {short_repr(answer)}, not (observation, info)")
        self.turn, self.over = 0, False
        return answer

    def step(self, action: str) -> Step:
        self.turn += 1
        code = f"{self.name}.step({literal(action)})"
        answer = self.harness.call(code, self.env.step, action)
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise CheckFailed(f"{code} returned {short_repr(answer)}, not ({', '.join(STEP_FIELDS)})")
        self.over = True in map(plain, answer[2:4])  # the check "types" reports flags that are not bools
        return Step(*answer)

    def reset_plain(self, seed: int | None = None) -> tuple[Any, Any]:
        """Reset the environment. Returns the result as plain data, which later calls cannot modify."""
        observation, info = self.reset(seed)
        return plain(observation), plain(info)

    def run(self, actions: Sequence[str]) -> list[Step]:
        """Take actions until the episode ends. Returns the steps, with observation and info converted to plain data."""
        steps: list[Step] = []
        for action in actions:
            if self.over:
                break
            step = self.step(action)
            steps.append(step._replace(observation=plain(step.observation), info=plain(step.info)))
        return steps

    def expect_reset(self, seed: int | None, expected: Sequence[Any], source: str) -> None:
        """Reset the environment. Raises CheckFailed if the result differs from the expected values.

        Args:
            seed: passed to reset().
            expected: (observation, info), or (observation,) to compare only observations.
            source: name of the environment that returned the expected values.
        """
        compared = slice(len(expected))
        self._compare(RESET_FIELDS[compared], expected, self.reset(seed)[compared], source)

    def expect_steps(self, actions: Sequence[str], expected: Sequence[Step], source: str) -> None:
        """Take actions. Raises CheckFailed at the first step that differs from the expected step."""
        for action, step in zip(actions, expected, strict=False):
            if self.over:
                raise CheckFailed(f"{self.name} ended after turn {self.turn}; {source} did not")
            self._compare(STEP_FIELDS, step, self.step(action), source)

    def sample(self) -> str:
        """Sample an action. Raises Unchecked if the environment does not implement sampling."""
        code = f"{self.name}.sample_random_action()"
        action = self.harness.call(code, self.env.sample_random_action, optional=True)
        if not isinstance(action, str):
            raise CheckFailed(f"{code} returned {short_repr(action)}, not a str")
        return action

    def oracle(self) -> Oracle:
        """Build the oracle that the spec names for this environment. Raises Unchecked if the spec names no oracle."""
        name = None if self.harness.spec is None else self.harness.spec.oracle
        if name is None:
            raise Unchecked("no oracle is known")
        code = f"oracle = gem.registry.resolve({name!r})(env.unwrapped)"
        return cast(Oracle, self.harness.call(code, lambda: resolve(name)(self.env.unwrapped)))

    def _compare(self, names: Sequence[str], expected: Sequence[Any], answer: Sequence[Any], source: str) -> None:
        if found := difference(names, expected, answer):
            field, wanted, got = found
            where = f"at turn {self.turn}" if self.turn else "after reset"
            other = "the first time it was" if source == self.name else f"{source}'s is"
            raise CheckFailed(f"{where}, {self.name}'s {field} is {got}; {other} {wanted}")


def _import_lines(script: Sequence[str]) -> list[str]:
    """Return import lines for the modules of the standard library that the script uses."""
    text = "\n".join(script)
    return [f"import {name}" for name in ("copy", "json", "pickle", "random") if re.search(rf"\b{name}\.", text)]
