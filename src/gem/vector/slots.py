"""A share of a vector's slots, played where they live: in this process, on a thread, or inside a worker.

Every backend plays its slots through this one class, so that autoreset, failures and streams mean the same everywhere.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from gem._internal.framing import describe_error
from gem.core import Info, Step, StopReason, position_of, skip_to
from gem.errors import BadValue, CallerError, EnvFailed, InfraError

Factory = Callable[[], Any]
OnFailure = Literal["raise", "restart"]
Position = tuple[int | None, int]  # (seed, episode) of gem.core.position_of

MAX_FAILURES = 5  # of one slot in a row, before it is given up
_log = logging.getLogger(__name__)


class CallTimeout(BaseException):
    """Raised inside an environment's call by whoever enforces its time limit; no `except Exception` swallows it."""


class Call(NamedTuple):
    """What a slot is asked: "step" an action, "reset" to (seed, kwargs), "sample" an action, "get" or "set" a state."""

    slot: int
    what: str
    argument: Any = None


class Outcome(NamedTuple):
    """What came of a Call.

    value: a Step, (observation, info), an action, a state. error: CallerError where the call was refused, EnvFailed
    where the environment failed and failures are raised. position: after whatever began or restored an
    episode, else None.
    """

    slot: int
    value: Any
    error: Exception | None = None
    position: Position | None = None


class Facts(NamedTuple):
    """What a vector tells of a slot without asking it."""

    env_id: str | None
    shows_history: bool
    shows_prompt: bool


class SlotGroup:
    """Some slots of a vector. Different slots may be played by different threads.

    Args:
        factories: slot → what builds its environment.
        same_step: whether the step that ends an episode starts the next one (Autoreset.SAME_STEP).
        on_failure: of an environment that raises what is neither a CallerError nor an InfraError, or hangs: "raise"
            reports EnvFailed and leaves the slot broken until it is reset; "restart" ends the episode as failed and
            builds the environment anew. Either way a slot that fails MAX_FAILURES times in a row raises.
    """

    def __init__(self, factories: Mapping[int, Factory], *, same_step: bool, on_failure: OnFailure) -> None:
        self.same_step, self.on_failure = same_step, on_failure
        self._factories = dict(factories)
        self.envs: dict[int, Any] = {}
        self._doomed: dict[int, str] = {}  # slot → why the episode that it is in has failed: its next step says so
        self._broken: dict[int, str] = {}  # slot → why it needs a reset first
        self._failures: dict[int, int] = {}  # slot → how often in a row
        self._finished: dict[int, Step] = {}  # slot → the last step of its episode, while the next one starts
        try:
            for slot, build in self._factories.items():
                self.envs[slot] = build()
        except BaseException:
            self.close()
            raise

    def facts(self, slot: int) -> Facts:
        env = self.envs[slot]
        shows_history, shows_prompt = getattr(env, "shows_history", False), getattr(env, "shows_prompt", False)
        return Facts(env.env_id, bool(shows_history), bool(shows_prompt))

    def perform(self, call: Call) -> Outcome:
        """Do what the call says. Errors come back in the outcome; none is raised but what ends the process."""
        slot, what, argument = call
        try:
            if what == "step":
                return self._step(slot, argument)
            if what == "reset":
                return self._reset(slot, *argument)
            if what == "sample":
                return Outcome(slot, str(self.envs[slot].sample_random_action()))
            if what == "get":
                return Outcome(slot, self._get_state(slot))
            self._set_state(slot, argument)
            return Outcome(slot, None, None, position_of(self.envs[slot]))
        except (CallerError, EnvFailed) as e:
            return Outcome(slot, None, e)
        except (Exception, SystemExit) as e:
            return Outcome(slot, None, EnvFailed(f"{self.name(slot)}: {what} raised {describe(e)}"))

    def fail(self, call: Call, why: str) -> Outcome:
        """The outcome of a call that somebody else ended, because it hung: as if the environment had raised.

        The environment is left as it is and never called again: it may still be busy.
        """
        slot, what, argument = call
        last = self._finished.pop(slot, None)
        seed = argument[0] if what == "reset" else None
        env = self.envs[slot] = _GivenUp(self.envs[slot])
        try:
            outcome = self._after_failure(slot, why, _position(env, seed), what="reset" if last is not None else what)
        except EnvFailed as e:
            return Outcome(slot, None, e)
        return outcome if last is None else _join(last, outcome)

    def give_up(self, slot: int) -> SlotGroup:
        """Part with a slot that is stuck in a call which cannot be ended. Only for a group of this slot alone.

        Returns a group that goes on with it, from fail() on. When the call comes back, here, it changes nothing there;
        then this group is to be closed.
        """
        heir = self.part(slot)
        heir.envs[slot] = _GivenUp(self.envs[slot])
        self.same_step, self.on_failure = False, "raise"  # so that no episode starts and nothing is built here
        return heir

    def part(self, slot: int) -> SlotGroup:
        """A group of one of the slots alone, which is not to be played in this one any more."""
        part = copy.copy(self)
        part._factories, part.envs = {slot: self._factories[slot]}, {slot: self.envs[slot]}
        for name in ("_doomed", "_broken", "_failures", "_finished"):
            whole = getattr(self, name)
            setattr(part, name, {slot: whole[slot]} if slot in whole else {})
        return part

    def lose(self, slot: int, why: str, position: Position | None) -> None:
        """Take over a slot from a worker that died: its running episode has failed, the next one follows position."""
        if position is not None:
            skip_to(self.envs[slot], *position)
        (self._doomed if self.on_failure == "restart" else self._broken)[slot] = why

    def will_call(self, slot: int) -> bool:
        """Whether the next step or reset goes straight to the environment, and not to what is left of its failure."""
        return slot not in self._broken and slot not in self._doomed

    def goes_on(self, slot: int, answer: Any) -> bool:
        """Whether a reset will follow the step that gave this answer. Should that reset hang, the step is not lost."""
        try:
            step = as_step(answer)
            over = bool(self.same_step and (step.terminated or step.truncated))
        except (TypeError, ValueError):
            return False
        if over:
            self._finished[slot] = step
        return over

    def name(self, slot: int) -> str:
        env_id = getattr(self.envs.get(slot), "env_id", None)
        return f"slot {slot} ({env_id})" if env_id else f"slot {slot}"

    def close(self) -> None:
        """Close every environment; one that fails to is logged, and the others are closed all the same."""
        for slot, env in self.envs.items():
            self._close(slot, env)

    def _step(self, slot: int, action: Any) -> Outcome:
        if slot in self._broken:
            raise EnvFailed(f"{self.name(slot)} has failed and was not reset since: {self._broken[slot]}")
        if slot in self._doomed:
            return self._ended(slot, failed(self._doomed.pop(slot)))
        env = self.envs[slot]
        try:
            step = as_step(env.step(action))
        except CallerError:
            raise
        except InfraError as e:
            step = failed(describe(e))
        except (Exception, SystemExit, CallTimeout) as e:
            self._still_mine(slot, env)
            return self._after_failure(slot, describe(e), position_of(env), cause=e)
        self._still_mine(slot, env)
        if self._failures:
            self._failures.pop(slot, None)
        return self._ended(slot, step)

    def _ended(self, slot: int, step: Step) -> Outcome:
        if self.same_step and (step.terminated or step.truncated):
            return self._into_next(slot, step)
        return Outcome(slot, step)

    def _into_next(self, slot: int, last: Step) -> Outcome:
        self._finished[slot] = last
        try:
            begun = self._reset(slot, None, {})
        except Exception:
            del self._finished[slot]
            raise
        del self._finished[slot]
        return _join(last, begun)

    def _reset(self, slot: int, seed: int | None, kwargs: dict[str, Any]) -> Outcome:
        self._mend(slot)
        self._doomed.pop(slot, None)
        env = self.envs[slot]
        try:
            observation, info = env.reset(seed=seed, **kwargs)
        except CallerError:
            raise
        except InfraError as e:  # an episode that ends as failed at its first step, whatever the action
            self._doomed[slot] = why = describe(e)
            return Outcome(slot, ("", failed(why).info), None, _position(env, seed))
        except (Exception, SystemExit, CallTimeout) as e:
            self._still_mine(slot, env)
            return self._after_failure(slot, describe(e), _position(env, seed), what="reset", cause=e)
        self._still_mine(slot, env)
        return Outcome(slot, (observation, info), None, position_of(env))

    def _after_failure(
        self, slot: int, why: str, position: Position, *, what: str = "step", cause: BaseException | None = None
    ) -> Outcome:
        """Raise, or build the environment anew and go on, as on_failure says."""
        self._failures[slot] = self._failures.get(slot, 0) + 1
        if self.on_failure == "raise" or self._failures[slot] >= MAX_FAILURES or what not in ("step", "reset"):
            self._broken[slot] = why
            times = f" {self._failures[slot]} times in a row" if self._failures[slot] > 1 else ""
            raise EnvFailed(f"{self.name(slot)} failed{times}: {why}") from cause
        self._rebuild(slot, why, position)
        if what == "reset":
            self._doomed[slot] = why
            return Outcome(slot, ("", failed(why).info), None, position)
        return self._ended(slot, failed(why))

    def _mend(self, slot: int) -> None:
        if slot in self._broken:
            self._rebuild(slot, self._broken[slot], position_of(self.envs[slot]))
            del self._broken[slot]

    def _rebuild(self, slot: int, why: str, position: Position) -> None:
        self._close(slot, self.envs[slot])
        try:
            env = self._factories[slot]()
        except (Exception, SystemExit, CallTimeout) as e:
            self._broken[slot] = why
            raise EnvFailed(f"{self.name(slot)} failed ({why}) and cannot be built anew: {describe(e)}") from e
        skip_to(env, *position)
        self.envs[slot] = env

    def _still_mine(self, slot: int, env: Any) -> None:
        if self.envs.get(slot) is not env:
            raise EnvFailed(f"slot {slot}: this call was given up")

    def _get_state(self, slot: int) -> dict[str, Any]:
        return {"env": self.envs[slot].get_state(), "doomed": self._doomed.get(slot)}

    def _set_state(self, slot: int, state: Any) -> None:
        if not isinstance(state, Mapping) or not {"env", "doomed"} <= state.keys():
            raise BadValue("not a state of a slot: it lacks env or doomed")
        self._mend(slot)
        self.envs[slot].set_state(state["env"])
        self._doomed.pop(slot, None)
        if state["doomed"] is not None:
            self._doomed[slot] = state["doomed"]

    def _close(self, slot: int, env: Any) -> None:
        try:
            env.close()
        except (Exception, SystemExit):
            _log.warning("slot %d failed to close", slot, exc_info=True)


class _GivenUp:
    """Stands for an environment that is stuck in a call: where in its seed's episodes it is, and nothing else."""

    def __init__(self, env: Any) -> None:
        self.env_id, self.unwrapped = env.env_id, self
        self._seed, self._episode = position_of(env)

    def __getattr__(self, name: str) -> Any:
        raise EnvFailed(f"{self.env_id or 'the environment'} hung, and was not reset since")

    def close(self) -> None:
        """Nothing: it is busy."""


def describe(error: BaseException) -> str:
    """Return the error in one line, with its location in the environment's code unless it is an InfraError."""
    return str(error) if isinstance(error, CallTimeout) else describe_error(error)


def as_step(answer: Any) -> Step:
    """What an environment answered, as a Step. Raises ValueError unless it is five values."""
    if isinstance(answer, Step):
        return answer
    observation, reward, terminated, truncated, info = answer
    return Step(observation, reward, terminated, truncated, info)


def failed(why: str) -> Step:
    """The step of a slot whose machinery failed: no reward, no verdict."""
    info = {"stop_reason": StopReason.FAILED, "failure": why}
    return Step("", float("nan"), terminated=False, truncated=True, info=info)


def _position(env: Any, seed: int | None) -> Position:
    """Where an environment is whose reset(seed) failed, perhaps before it took the seed."""
    return position_of(env) if seed is None else (seed, 0)


def _join(last: Step, begun: Outcome) -> Outcome:
    """The outcome of a step that ended an episode and started the next one."""
    return begun._replace(value=step_into_next(last, *begun.value))


def step_into_next(last: Step, observation: Any, info: Info) -> Step:
    """The last step of an episode, showing the next one's first observation (autoreset in the same step)."""
    info = {**(info or {}), "final_obs": last.observation, "final_info": last.info}
    return Step(observation, last.reward, last.terminated, last.truncated, info)
