"""Run the environments of slots: steps, resets, same-step autoreset, failures and rebuilding.

All backends run their slots with SlotGroup, in the thread of the caller, on other threads or in workers. Autoreset,
failures and random streams therefore behave the same in all backends.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from gem._internal.framing import describe_error
from gem._internal.text import short_repr
from gem.core import Info, Step, StopReason, position_of, skip_to
from gem.datasets.tasks import DatasetTask
from gem.errors import BadValue, CallerError, EnvFailed, InfraError

Factory = Callable[[], Any]
OnFailure = Literal["raise", "restart"]
Position = tuple[int | None, int]  # (seed, episode), as returned by gem.core.position_of

MAX_FAILURES = 5  # consecutive failures of a slot after which EnvFailed is raised even with "restart"
_log = logging.getLogger(__name__)


class CallTimeout(BaseException):
    """Raised in a call that exceeds its time limit. A BaseException, so that ``except Exception`` does not catch it."""


class MalformedResult(Exception):
    """An environment returned something else than a step or an observation with its info."""


class SlotCall(NamedTuple):
    """A method call on the environment of one slot.

    Args:
        method: "step", "reset", "sample_random_action", "get_state" or "set_state".
        argument: the action for "step", the state for "set_state", (seed, kwargs) or (seed, kwargs, position of the new
            episode) for "reset", else None.
    """

    slot: int
    method: str
    argument: Any = None


class SlotOutcome(NamedTuple):
    """The outcome of a SlotCall.

    Args:
        value: the result of the method: a Step for "step", (observation, info) for "reset", an action for
            "sample_random_action", a state for "get_state". None for "set_state" and after an error.
        error: CallerError if the environment refused the call, EnvFailed if the environment failed, None if the call
            succeeded.
        position: position of the slot if the call started or restored an episode, else None.
        interrupted: whether the call raised KeyboardInterrupt, which the vector environment raises to its caller. The
            call then counts as failed.
    """

    slot: int
    value: Any
    error: Exception | None = None
    position: Position | None = None
    interrupted: bool = False


class SlotMetadata(NamedTuple):
    """Constant properties of a slot's environment.

    Args:
        order: identifies the order of rows that the slot shares with others (see DatasetEnv.share_order). If it is not
            None, only reset() starts an episode, because the vector environment assigns its place in the order.
    """

    env_id: str | None
    shows_history: bool
    shows_prompt: bool
    ends_on_truncation: bool
    order: tuple[int, int] | None = None


class SlotGroup:
    """Runs the environments of some slots. Different threads may use different slots at the same time.

    Args:
        factories: slot → callable that builds its environment.
        same_step: whether step() resets the environment after the last step of an episode (Autoreset.SAME_STEP), except
            in slots that share an order of rows.
        on_failure: what to do if an environment hangs or raises an exception other than CallerError and InfraError.
            "raise" raises EnvFailed, and the slot must be reset before its next step. "restart" ends the episode as
            failed and rebuilds the environment; MAX_FAILURES failures in a row raise EnvFailed as with "raise".
    """

    def __init__(self, factories: Mapping[int, Factory], *, same_step: bool, on_failure: OnFailure) -> None:
        self.same_step, self.on_failure = same_step, on_failure
        self._factories = dict(factories)
        self.envs: dict[int, Any] = {}
        self._pending_failures: dict[int, str] = {}  # slot → reason why the slot's next step ends its episode as failed
        self._broken: dict[int, str] = {}  # slot → reason why it must be reset before its next step
        self._failures: dict[int, int] = {}  # slot → consecutive failures
        self._last_steps: dict[int, Step] = {}  # slot → last step of the old episode, during an autoreset
        self._new_positions: dict[int, Position] = {}  # slot → position of an episode that no outcome has reported
        try:
            for slot, build in self._factories.items():
                self.envs[slot] = build()
        except BaseException:
            self.close()
            raise
        self._ordered = {slot for slot in self.envs if self.metadata(slot).order is not None}

    def metadata(self, slot: int) -> SlotMetadata:
        env = self.envs[slot]
        # An object with reset() and step() need not be an Env, and has none of these members then.
        flags = {name: bool(getattr(env, name, False)) for name in SlotMetadata._fields[1:-1]}
        inner = getattr(env, "unwrapped", env)
        return SlotMetadata(env.env_id, **flags, order=inner.shared_order if isinstance(inner, DatasetTask) else None)

    def perform(self, call: SlotCall) -> SlotOutcome:
        """Run a call. An Exception, SystemExit or KeyboardInterrupt is returned in the outcome.

        Raises:
            CallTimeout: outside of the environment's step() and reset().
        """
        slot, method, argument = call
        value: Any = None
        try:
            if method == "step":
                value = self.step(slot, argument)
            elif method == "reset":
                value = self.reset(slot, *argument)
            elif method == "sample_random_action":
                value = str(self.envs[slot].sample_random_action())
            elif method == "get_state":
                value = {"env": self.envs[slot].get_state(), "pending_failure": self._pending_failures.get(slot)}
            else:
                self._set_state(slot, argument)
        except (Exception, SystemExit) as e:
            return self.error_outcome(call, e)
        except KeyboardInterrupt:
            return self.abandon(call, "interrupted by KeyboardInterrupt")._replace(interrupted=True)
        return SlotOutcome(slot, value, None, self._new_positions.pop(slot, None))

    def step(self, slot: int, action: Any) -> Step:
        """Step one slot.

        Raises:
            CallerError: the environment refused the action.
            EnvFailed: the environment failed (see on_failure), or an earlier failure requires a reset.
        """
        if slot in self._broken:
            raise EnvFailed(f"{self.name(slot)} has failed and was not reset since: {self._broken[slot]}")
        if slot in self._pending_failures:
            return self._end_failed(slot, self._pending_failures.pop(slot))
        env = self.envs[slot]
        try:
            step = as_step(env.step(action))
        except CallerError:
            raise
        except InfraError as e:
            step = failed_step(describe(e))
        except (Exception, SystemExit, CallTimeout) as e:
            if self.envs[slot] is not env:
                raise _abandoned(slot) from e
            failed: Step = self._after_failure(slot, describe(e), position_of(env), cause=e)
            return failed
        if self.envs[slot] is not env:
            raise _abandoned(slot)
        if self._failures:
            self._failures.pop(slot, None)
        return self._start_next(slot, step) if (step.terminated or step.truncated) and self._autoresets(slot) else step

    def reset(
        self, slot: int, seed: int | None, kwargs: Mapping[str, Any], position: Position | None = None
    ) -> tuple[Any, Info]:
        """Reset one slot and return (observation, info).

        Args:
            position: of the episode to start. None starts the next episode of the slot, or the first one of the seed.

        If the environment raises InfraError, the info contains ``failure``, and the new episode ends as failed at its
        first step.

        Raises:
            CallerError: the environment refused the seed or the keyword arguments.
            EnvFailed: the environment failed (see on_failure).
        """
        self._repair(slot)
        self._pending_failures.pop(slot, None)
        env = self.envs[slot]
        if position is not None:
            start_at(env, position)
        try:
            observation, info = _as_first(env.reset(seed=seed, **kwargs))
        except CallerError:
            raise
        except InfraError as e:
            self._pending_failures[slot] = why = describe(e)
            self._new_positions[slot] = _position_after_reset(env, seed)
            return "", failed_step(why).info
        except (Exception, SystemExit, CallTimeout) as e:
            if self.envs[slot] is not env:
                raise _abandoned(slot) from e
            position = _position_after_reset(env, seed)
            begun: tuple[Any, Info] = self._after_failure(slot, describe(e), position, method="reset", cause=e)
            return begun
        if self.envs[slot] is not env:
            raise _abandoned(slot)
        self._new_positions[slot] = position_of(env)
        return observation, info

    def error_outcome(self, call: SlotCall, error: BaseException) -> SlotOutcome:
        """Return the outcome of a call that raised ``error``."""
        slot, method, _ = call
        if isinstance(error, (CallerError, EnvFailed)):
            return SlotOutcome(slot, None, error)
        return SlotOutcome(slot, None, EnvFailed(f"{self.name(slot)}: {method} raised {describe(error)}"))

    def abandon(self, call: SlotCall, why: str) -> SlotOutcome:
        """Return the outcome of a call that hung, treating the timeout as an exception of the environment.

        The environment may still be running the call, so it is never called or closed again.
        """
        slot, method, argument = call
        last_step = self._last_steps.pop(slot, None)
        seed = argument[0] if method == "reset" else None
        env = self.envs[slot] = _HungEnv(self.envs[slot])
        position = _position_after_reset(env, seed)
        try:
            value = self._after_failure(slot, why, position, method=method if last_step is None else "reset")
        except EnvFailed as e:
            return SlotOutcome(slot, None, e)
        if last_step is not None:
            value = step_into_next(last_step, *value)
        return SlotOutcome(slot, value, None, self._new_positions.pop(slot, None))

    def detach_hung(self, slot: int) -> SlotGroup:
        """Return a new group that replaces this group after a call of its only slot hung.

        The first call on the new group must be abandon(). The hanging call keeps running in this group and does not
        affect the new group. Close this group when the hanging call returns.
        """
        successor = self.split_off(slot)
        successor.envs[slot] = _HungEnv(self.envs[slot])
        # The hanging call must start no episode and rebuild no environment.
        self.same_step, self.on_failure = False, "raise"
        return successor

    def split_off(self, slot: int) -> SlotGroup:
        """Return a new group that contains only this slot. The slot must no longer be used in the old group."""
        part = copy.copy(self)
        part._factories, part.envs = {slot: self._factories[slot]}, {slot: self.envs[slot]}
        for name in ("_pending_failures", "_broken", "_failures", "_last_steps", "_new_positions"):
            by_slot = getattr(self, name)
            setattr(part, name, {slot: by_slot[slot]} if slot in by_slot else {})
        return part

    def mark_lost(self, slot: int, why: str, position: Position | None) -> None:
        """Mark the episode of a slot as failed, for example because the worker of the slot died.

        Args:
            why: the reason of the failure.
            position: position of the failed episode, from which the environment continues with the next episode. None
                leaves the position of the environment unchanged.
        """
        if position is not None:
            skip_to(self.envs[slot], *position)
        (self._pending_failures if self.on_failure == "restart" else self._broken)[slot] = why

    def is_healthy(self, slot: int) -> bool:
        """Return whether no earlier failure of the slot has to be handled in its next step or reset."""
        return slot not in self._broken and slot not in self._pending_failures

    def remember_last_step(self, slot: int, step: Step) -> bool:
        """Return whether a step ended the episode, so that a same-step autoreset follows.

        If so, the step is stored, so that abandon() can return the step even if the autoreset hangs.
        """
        over = (step.terminated or step.truncated) and self._autoresets(slot)
        if over:
            self._last_steps[slot] = step
        return over

    def name(self, slot: int) -> str:
        env_id = getattr(self.envs.get(slot), "env_id", None)
        return f"slot {slot} ({env_id})" if env_id else f"slot {slot}"

    def close(self) -> None:
        """Close all environments. Exceptions are logged, not raised."""
        for slot, env in self.envs.items():
            self._close_env(slot, env)

    def _end_failed(self, slot: int, why: str) -> Step:
        """Return the last step of a failed episode. With same-step autoreset, the next episode is started."""
        step = failed_step(why)
        return self._start_next(slot, step) if self._autoresets(slot) else step

    def _autoresets(self, slot: int) -> bool:
        return self.same_step and slot not in self._ordered

    def _start_next(self, slot: int, step: Step) -> Step:
        """Reset the slot and return the last step with the new episode's first observation (same-step autoreset)."""
        self._last_steps[slot] = step
        try:
            observation, info = self.reset(slot, None, {})
        except Exception:
            del self._last_steps[slot]
            raise
        del self._last_steps[slot]
        return step_into_next(step, observation, info)

    def _after_failure(
        self, slot: int, why: str, position: Position, *, method: str = "step", cause: BaseException | None = None
    ) -> Any:
        """Handle a failed call according to on_failure.

        With "raise", raise EnvFailed. With "restart", rebuild the environment and return the value of the failed call:
        a failed Step for "step", an observation and an info with ``failure`` for "reset".
        """
        self._failures[slot] = self._failures.get(slot, 0) + 1
        if self.on_failure == "raise" or self._failures[slot] >= MAX_FAILURES or method not in ("step", "reset"):
            self._broken[slot] = why
            times = f" {self._failures[slot]} times in a row" if self._failures[slot] > 1 else ""
            raise EnvFailed(f"{self.name(slot)} failed{times}: {why}") from cause
        self._rebuild(slot, why, position)
        if method == "reset":
            self._pending_failures[slot] = why
            self._new_positions[slot] = position
            return "", failed_step(why).info
        return self._end_failed(slot, why)

    def _repair(self, slot: int) -> None:
        if slot in self._broken:
            self._rebuild(slot, self._broken[slot], position_of(self.envs[slot]))
            del self._broken[slot]

    def _rebuild(self, slot: int, why: str, position: Position) -> None:
        self._close_env(slot, self.envs[slot])
        try:
            env = self._factories[slot]()
        except (Exception, SystemExit, CallTimeout) as e:
            self._broken[slot] = why
            raise EnvFailed(f"{self.name(slot)} failed ({why}) and cannot be rebuilt: {describe(e)}") from e
        skip_to(env, *position)
        self.envs[slot] = env

    def _set_state(self, slot: int, state: Any) -> None:
        if not isinstance(state, Mapping) or not {"env", "pending_failure"} <= state.keys():
            raise BadValue("not a slot state: env or pending_failure is missing")
        self._repair(slot)
        self.envs[slot].set_state(state["env"])
        self._pending_failures.pop(slot, None)
        if state["pending_failure"] is not None:
            self._pending_failures[slot] = state["pending_failure"]
        self._new_positions[slot] = position_of(self.envs[slot])

    def _close_env(self, slot: int, env: Any) -> None:
        try:
            env.close()
        except (Exception, SystemExit):
            _log.warning("slot %d failed to close", slot, exc_info=True)


class _HungEnv:
    """Replaces an environment whose call hangs. Keeps the position; step() and reset() raise EnvFailed."""

    def __init__(self, env: Any) -> None:
        self.env_id, self.unwrapped = env.env_id, self
        self._seed, self._episode = position_of(env)

    def __getattr__(self, name: str) -> Any:
        raise EnvFailed(f"{self.env_id or 'the environment'} hung and was not reset since")

    def close(self) -> None:
        """Do nothing, because the environment is still running a call."""


def check_vector_options(env_fns: Sequence[Factory], on_failure: OnFailure, timeout: float | None = None) -> None:
    """Raise BadValue for options that are invalid for all backends."""
    if not env_fns:
        raise BadValue("a vector env needs at least one environment, got none")
    if on_failure not in ("raise", "restart"):
        raise BadValue(f"on_failure must be 'raise' or 'restart', got {on_failure!r}")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0):
        raise BadValue(f"timeout must be seconds above 0, or None, got {timeout!r}")


def _abandoned(slot: int) -> EnvFailed:
    return EnvFailed(f"slot {slot}: this call was abandoned")


def describe(error: BaseException) -> str:
    """Describe an error in one line, with its location in the environment's code if it was raised there."""
    return str(error) if isinstance(error, (CallTimeout, MalformedResult)) else describe_error(error)


def as_step(answer: Any) -> Step:
    """Convert the return value of an environment's step() to a Step with a finite reward, bools and a dict.

    Numbers and bools of numpy and of tensor libraries are accepted, also as arrays without dimensions.

    Raises:
        MalformedResult: the value does not have five elements, one of them has a wrong type, or the reward is not
            finite.
    """
    try:
        observation, reward, terminated, truncated, info = answer
    except (TypeError, ValueError):
        wanted = "(observation, reward, terminated, truncated, info)"
        raise MalformedResult(f"step() returned {short_repr(answer, 80)} instead of {wanted}") from None
    if (
        type(reward) is not float
        or not math.isfinite(reward)
        or type(terminated) is not bool
        or type(truncated) is not bool
        or type(info) is not dict
    ):
        reward = _checked_reward(reward)
        terminated, truncated = _checked_flag(terminated, "terminated"), _checked_flag(truncated, "truncated")
        info = _checked_info(info, "step()")
    elif type(answer) is Step:
        return answer
    return Step(observation, reward, terminated, truncated, info)


def _as_first(answer: Any) -> tuple[Any, Info]:
    """Convert the return value of an environment's reset() to (observation, info). Raises MalformedResult."""
    try:
        observation, info = answer
    except (TypeError, ValueError):
        raise MalformedResult(f"reset() returned {short_repr(answer, 80)} instead of (observation, info)") from None
    return observation, _checked_info(info, "reset()")


def _checked_reward(reward: Any) -> float:
    if not hasattr(type(reward), "__float__") or getattr(reward, "ndim", 0) > 0:
        raise MalformedResult(f"step() returned the reward {short_repr(reward, 80)}, which is not a number")
    try:
        number = float(reward)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise MalformedResult(f"step() returned the reward {short_repr(reward, 80)}, which is not finite")
    return number


def _checked_flag(flag: Any, name: str) -> bool:
    is_array = "bool" in str(getattr(flag, "dtype", "")) and getattr(flag, "ndim", 1) == 0
    if is_array or (isinstance(flag, int) and flag in (0, 1)):
        return bool(flag)
    raise MalformedResult(f"step() returned {name}={short_repr(flag, 80)}, which is not a bool")


def _checked_info(info: Any, method: str) -> Info:
    if type(info) is dict:
        return info
    if info is None or isinstance(info, Mapping):
        return dict(info or {})
    raise MalformedResult(f"{method} returned the info {short_repr(info, 80)}, which is not a dict")


def start_at(env: Any, position: Position) -> None:
    """Make the next reset() without a seed start the episode at a position."""
    skip_to(env, position[0], position[1] - 1)


def failed_step(why: str) -> Step:
    """Return the last step of a failed episode: reward NaN, truncated, and the reason in ``info["failure"]``."""
    info = {"stop_reason": StopReason.FAILED, "failure": why}
    return Step("", float("nan"), terminated=False, truncated=True, info=info)


def step_into_next(last_step: Step, observation: Any, info: Info) -> Step:
    """Combine an episode's last step with the first observation of the next episode (same-step autoreset)."""
    info = {**(info or {}), "final_obs": last_step.observation, "final_info": last_step.info}
    return Step(observation, last_step.reward, last_step.terminated, last_step.truncated, info)


def _position_after_reset(env: Any, seed: int | None) -> Position:
    """Return the position of an environment whose reset(seed) failed, possibly before it used the seed."""
    return position_of(env) if seed is None else (seed, 0)
