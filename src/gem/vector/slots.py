"""Run the environments of slots: steps, resets, same-step autoreset, failures and rebuilding.

All backends run their slots with Slot, in the thread of the caller, on other threads or in workers. Autoreset,
failures and random streams therefore behave the same in all backends.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from gem._internal.framing import describe_error
from gem._internal.text import short_repr
from gem.conversation.observations import encodable
from gem.core import Info, Step, StopReason, position_of, skip_to, unwrapped
from gem.datasets.tasks import SharesOrder
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


class SlotSettings(NamedTuple):
    """What all slots of a vector have in common.

    Args:
        same_step, on_failure: see Slot.
        timeout: seconds for one call of one environment, measured from the start of the call. None sets no limit. Each
            engine has its own way to end a call.
    """

    same_step: bool
    on_failure: OnFailure
    timeout: float | None = None


class Slot:
    """One environment of a vector: its steps, resets, autoreset, failures and rebuilding.

    Args:
        number: of the slot in its vector.
        build: builds the environment.
        same_step: whether step() resets the environment after the last step of an episode (Autoreset.SAME_STEP), unless
            the slot shares an order of rows.
        on_failure: what to do if an environment hangs or raises an exception other than CallerError and InfraError.
            "raise" raises EnvFailed, and the slot must be reset before its next step. "restart" ends the episode as
            failed and rebuilds the environment; MAX_FAILURES failures in a row, without a reset to a seed between them,
            raise EnvFailed as with "raise".

    Attributes:
        env: the environment.
        metadata: its constant properties.
        lost: why the next step ends its episode as failed; None if it does not.
        broken: why the slot must be reset before its next step; None if it need not.
    """

    def __init__(self, number: int, build: Factory, *, same_step: bool, on_failure: OnFailure) -> None:
        self.number, self.on_failure = number, on_failure
        self._build = build
        self.env: Any = build()
        self.metadata = _metadata(self.env)
        self.lost: str | None = None
        self.broken: str | None = None
        self._autoresets = same_step and self.metadata.order is None
        self._failures = 0  # in a row
        self._last_step: Step | None = None  # of the old episode, during an autoreset
        self._new_position: Position | None = None  # of an episode that no outcome has reported

    @property
    def name(self) -> str:
        env_id = self.metadata.env_id
        return f"slot {self.number} ({env_id})" if env_id else f"slot {self.number}"

    @property
    def is_healthy(self) -> bool:
        """Whether no earlier failure has to be handled in the next step or reset."""
        return self.broken is None and self.lost is None

    def perform(self, call: SlotCall) -> SlotOutcome:
        """Run a call. An Exception, SystemExit or KeyboardInterrupt is returned in the outcome.

        Raises:
            CallTimeout: outside of the environment's step() and reset().
        """
        _, method, argument = call
        value: Any = None
        try:
            if method == "step":
                value = self.step(argument)
            elif method == "reset":
                value = self.reset(*argument)
            elif method == "sample_random_action":
                value = str(self.env.sample_random_action())
            elif method == "get_state":
                value = {"env": self.env.get_state(), "pending_failure": self.lost}
            else:
                self._set_state(argument)
        except (Exception, SystemExit) as e:
            return self.error_outcome(call, e)
        except KeyboardInterrupt:
            return self.abandon(call, "interrupted by KeyboardInterrupt")._replace(interrupted=True)
        return self._outcome(value)

    def step(self, action: Any) -> Step:
        """Step the environment.

        Raises:
            CallerError: the environment refused the action.
            EnvFailed: the environment failed (see on_failure), or an earlier failure requires a reset.
        """
        if self.broken is not None:
            raise EnvFailed(f"{self.name} has failed and was not reset since: {self.broken}")
        if self.lost is not None:
            why, self.lost = self.lost, None
            return self._end_failed(why)
        env = self.env
        try:
            step = as_step(env.step(action))
            if (shown := encodable(step.observation, step.info)) is not step.observation:
                step = step._replace(observation=shown)
        except CallerError:
            raise
        except InfraError as e:
            step = failed_step(describe(e))
        except (Exception, SystemExit, CallTimeout) as e:
            if self.env is not env:
                raise self._abandoned() from e
            failed: Step = self._after_failure(describe(e), position_of(env), cause=e)
            return failed
        if self.env is not env:
            raise self._abandoned()
        self._failures = 0
        return self._start_next(step) if (step.terminated or step.truncated) and self._autoresets else step

    def reset(self, seed: int | None, kwargs: Mapping[str, Any], position: Position | None = None) -> tuple[Any, Info]:
        """Reset the environment and return (observation, info).

        Args:
            position: of the episode to start. None starts the next episode of the slot, or the first one of the seed.

        If the environment raises InfraError, the info contains ``failure``, and the new episode ends as failed at its
        first step.

        Raises:
            CallerError: the environment refused the seed or the keyword arguments.
            EnvFailed: the environment failed (see on_failure).
        """
        self._repair()
        self.lost = None
        if seed is not None:  # whoever chooses the episodes counts which fail: a seed may be played again and again
            self._failures = 0
        env = self.env
        if position is not None:
            start_at(env, position)
        try:
            observation, info = _as_first(env.reset(seed=seed, **kwargs))
            observation = encodable(observation, info)
        except CallerError:
            raise
        except InfraError as e:
            self.lost = why = describe(e)
            self._new_position = _position_after_reset(env, seed)
            return "", failed_step(why).info
        except (Exception, SystemExit, CallTimeout) as e:
            if self.env is not env:
                raise self._abandoned() from e
            position = _position_after_reset(env, seed)
            begun: tuple[Any, Info] = self._after_failure(describe(e), position, method="reset", cause=e)
            return begun
        if self.env is not env:
            raise self._abandoned()
        self._new_position = position_of(env)
        return observation, info

    def error_outcome(self, call: SlotCall, error: BaseException) -> SlotOutcome:
        """Return the outcome of a call that raised ``error``."""
        if isinstance(error, (CallerError, EnvFailed)):
            return SlotOutcome(self.number, None, error)
        return SlotOutcome(self.number, None, EnvFailed(f"{self.name}: {call.method} raised {describe(error)}"))

    def abandon(self, call: SlotCall, why: str) -> SlotOutcome:
        """Return the outcome of a call that hung, treating the timeout as an exception of the environment.

        The environment may still be running the call, so it is never called or closed again.
        """
        _, method, argument = call
        last_step, self._last_step = self._last_step, None
        self.env = _HungEnv(self.env)
        position = _position_after_reset(self.env, argument[0] if method == "reset" else None)
        try:
            value = self._after_failure(why, position, method=method if last_step is None else "reset")
        except EnvFailed as e:
            return SlotOutcome(self.number, None, e)
        return self._outcome(value if last_step is None else step_into_next(last_step, *value))

    def detach_hung(self) -> Slot:
        """Return a new slot that replaces this one after a call hung.

        The first call on the new slot must be abandon(). The hanging call keeps running in this slot and does not
        affect the new one. Close this slot when the hanging call returns.
        """
        successor = copy.copy(self)
        successor.env = _HungEnv(self.env)
        # The hanging call must start no episode and rebuild no environment.
        self._autoresets, self.on_failure = False, "raise"
        return successor

    def mark_lost(self, why: str, position: Position | None) -> None:
        """Mark the episode as failed, for example because the worker of the slot died.

        Args:
            why: the reason of the failure.
            position: position of the failed episode, from which the environment continues with the next episode. None
                leaves the position of the environment unchanged.
        """
        if position is not None:
            skip_to(self.env, *position)
        if self.on_failure == "restart":
            self.lost = why
        else:
            self.broken = why

    def remember_last_step(self, step: Step) -> bool:
        """Return whether a step ended the episode, so that a same-step autoreset follows.

        If so, the step is stored, so that abandon() can return the step even if the autoreset hangs.
        """
        over = (step.terminated or step.truncated) and self._autoresets
        if over:
            self._last_step = step
        return over

    def close(self) -> None:
        """Close the environment. Exceptions are logged, not raised."""
        try:
            self.env.close()
        except (Exception, SystemExit):
            _log.warning("slot %d failed to close", self.number, exc_info=True)

    def _outcome(self, value: Any) -> SlotOutcome:
        position, self._new_position = self._new_position, None
        return SlotOutcome(self.number, value, None, position)

    def _abandoned(self) -> EnvFailed:
        return EnvFailed(f"slot {self.number}: this call was abandoned")

    def _end_failed(self, why: str) -> Step:
        """Return the last step of a failed episode. With same-step autoreset, the next episode is started."""
        step = failed_step(why)
        return self._start_next(step) if self._autoresets else step

    def _start_next(self, step: Step) -> Step:
        """Reset and return the last step with the new episode's first observation (same-step autoreset)."""
        self._last_step = step
        try:
            observation, info = self.reset(None, {})
        except Exception:  # after a CallTimeout, abandon() needs the step
            self._last_step = None
            raise
        self._last_step = None
        return step_into_next(step, observation, info)

    def _after_failure(
        self, why: str, position: Position, *, method: str = "step", cause: BaseException | None = None
    ) -> Any:
        """Handle a failed call according to on_failure.

        With "raise", raise EnvFailed. With "restart", rebuild the environment and return the value of the failed call:
        a failed Step for "step", an observation and an info with ``failure`` for "reset".
        """
        self._failures += 1
        if self.on_failure == "raise" or self._failures >= MAX_FAILURES or method not in ("step", "reset"):
            self.broken = why
            times = f" {self._failures} times in a row" if self._failures > 1 else ""
            raise EnvFailed(f"{self.name} failed{times}: {why}") from cause
        self._rebuild(why, position)
        if method == "reset":
            self.lost, self._new_position = why, position
            return "", failed_step(why).info
        return self._end_failed(why)

    def _repair(self) -> None:
        if self.broken is not None:
            self._rebuild(self.broken, position_of(self.env))
            self.broken = None

    def _rebuild(self, why: str, position: Position) -> None:
        self.close()
        try:
            env = self._build()
        except (Exception, SystemExit, CallTimeout) as e:
            self.broken = why
            raise EnvFailed(f"{self.name} failed ({why}) and cannot be rebuilt: {describe(e)}") from e
        skip_to(env, *position)
        self.env = env

    def _set_state(self, state: Any) -> None:
        if not isinstance(state, Mapping) or not {"env", "pending_failure"} <= state.keys():
            raise BadValue("not a slot state: env or pending_failure is missing")
        self._repair()
        self.env.set_state(state["env"])
        self.lost = state["pending_failure"]
        self._new_position = position_of(self.env)


def build_slots(factories: Mapping[int, Factory], settings: SlotSettings) -> dict[int, Slot]:
    """Build slots, by number. If one raises, those that were built are closed."""
    slots: dict[int, Slot] = {}
    try:
        for number, build in factories.items():
            slots[number] = Slot(number, build, same_step=settings.same_step, on_failure=settings.on_failure)
    except BaseException:
        close_slots(slots.values())
        raise
    return slots


def close_slots(slots: Iterable[Slot]) -> None:
    for slot in slots:
        slot.close()


def _metadata(env: Any) -> SlotMetadata:
    # An object with reset() and step() need not be an Env, and has none of these members then.
    flags = {name: bool(getattr(env, name, False)) for name in SlotMetadata._fields[1:-1]}
    inner = unwrapped(env)
    return SlotMetadata(env.env_id, **flags, order=inner.shared_order if isinstance(inner, SharesOrder) else None)


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
