"""The interface of vector environments, which step N environments together.

Terms: a *slot* is one environment of the vector, N is the number of slots, and B is the number of slots in one call.
Synchronous and asynchronous stepping are in one file because both update the list of pending slots.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from gem._internal.counts import check_count
from gem._internal.imports import resolve
from gem.core import Info, Step
from gem.errors import BadAction, BadValue, EnvFailed, EpisodeOver, did_you_mean
from gem.seeding import check_seed
from gem.vector.engine import Engine, wait_readable
from gem.vector.orders import SharedOrders
from gem.vector.slots import (
    Factory,
    OnFailure,
    SlotCall,
    SlotOutcome,
    SlotSettings,
    check_vector_options,
    step_into_next,
)
from gem.vector.stats import EnvStats, SlotStats

Actions = Sequence[Any] | Mapping[int, Any]
VectorEnvT = TypeVar("VectorEnvT", bound="VectorEnv")

# name → (function or class that builds the engine, its own options)
BACKENDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sync": ("gem.vector.sync:sync_engine", ()),
    "async": ("gem.vector.async_:async_engine", ("num_workers", "runs")),
    "thread": ("gem.vector.thread:thread_engine", ("num_workers",)),
    "process": ("gem.vector.process:ProcessEngine", ("num_workers",)),
    "ray": ("gem.vector.ray:RayEngine", ("num_workers", "address")),
}


class Autoreset(str, Enum):
    """When a slot starts its next episode after an episode has ended. The modes are those of Gymnasium.

    SAME_STEP: in the step that ends the episode. This step returns the first observation of the new episode. Its info
    contains the last observation and info of the old episode as ``final_obs`` and ``final_info``.
    NEXT_STEP: in the slot's next step, which ignores its action and returns the first observation with reward 0.
    DISABLED: never. The caller starts the next episode with ``reset(ids=[…])``.
    """

    SAME_STEP = "same_step"
    NEXT_STEP = "next_step"
    DISABLED = "disabled"

    @classmethod
    def of(cls, mode: str | Autoreset) -> Autoreset:
        """Return the mode with this name. Raises BadValue for an unknown name."""
        try:
            return cls(mode)
        except ValueError:
            raise BadValue(f"autoreset must be one of {[m.value for m in cls]}, got {mode!r}") from None


class VecStep(NamedTuple):
    """The results of stepping B slots, in the order of the actions.

    A reward is NaN if the episode failed because of an error that the agent did not cause. The reason is ``failure`` in
    the info of that step; with autoreset "same_step", it is ``failure`` in ``final_info``.
    """

    observations_B: list[Any]
    rewards_B: npt.NDArray[np.float64]
    terminated_B: npt.NDArray[np.bool_]
    truncated_B: npt.NDArray[np.bool_]
    infos_B: list[Info]


class Received(NamedTuple):
    """The result of recv(): the slots whose calls have finished, in order of completion, and their steps."""

    ids_B: list[int]
    step: VecStep


class VectorEnv:
    """N environments that are stepped together. All backends produce the same episodes for the same seeds.

    Args:
        engine: runs the environments of the slots. Slots are numbered from 0.
        autoreset: see Autoreset.

    Attributes:
        env_ids: registered id of each slot's environment. None for an environment that was not made by id.
        backend: name of the backend; None if the engine was passed.
        collector: the Collector that rollout.collect() uses for this vector environment. None before the first call.
    """

    def __init__(self, engine: Engine, autoreset: Autoreset) -> None:
        self.engine, self.autoreset = engine, autoreset
        self.backend: str | None = None
        self.num_envs = len(engine.metadata)
        self.env_ids: list[str | None] = [engine.metadata[i].env_id for i in range(self.num_envs)]
        self.collector: Any = None
        self._all_slots = range(self.num_envs)
        self._over = [False] * self.num_envs  # whether the slot must be reset; always False with SAME_STEP
        self._pending: dict[int, str] = {}  # slot with a call that recv() has not returned → method of the call
        self._finished: dict[int, SlotOutcome] = {}  # pending slots whose calls have finished, in order of completion
        self._broken: set[int] = set()  # slots whose last outcome was EnvFailed
        self._orders = SharedOrders(engine.metadata)
        self._last_steps: dict[int, Step] = {}  # slot whose autoreset runs as a call of its own → last step
        self._closed = False
        self._ends_on_truncation = [i for i in range(self.num_envs) if engine.metadata[i].ends_on_truncation]
        self._stats = SlotStats(self.env_ids)

    @classmethod
    def of(
        cls: type[VectorEnvT],
        env_fns: Sequence[Factory],
        autoreset: str | Autoreset = Autoreset.SAME_STEP,
        *,
        backend: str = "sync",
        timeout: float | None = None,
        on_failure: OnFailure = "raise",
        **options: Any,
    ) -> VectorEnvT:
        """Build a vector environment from functions. make_vec() builds one from ids.

        Args:
            env_fns: one callable per slot that builds its environment.
            autoreset: see Autoreset.
            backend: where the slots run; a name in BACKENDS. See make_vec().
            timeout: seconds for one call of one environment. None sets no limit. Must be None for "sync".
            on_failure: see make_vec().
            options: of the backend; None stands for its default. num_workers for all but "sync", address for "ray",
                runs for "async"; see ThreadEngine, ProcessEngine, RayEngine and async_engine().

        Raises:
            BadValue: an argument is invalid, or the backend does not support it.
            Exception: any exception of a function.
        """
        mode, own = Autoreset.of(autoreset), _options_of(backend, options)
        check_vector_options(env_fns, on_failure, timeout)
        settings = SlotSettings(mode is Autoreset.SAME_STEP, on_failure, timeout)
        build = resolve(BACKENDS[backend][0])
        vec_env = cls(build(dict(enumerate(env_fns)), settings, **own), mode)
        vec_env.backend = backend
        return vec_env

    @property
    def envs(self) -> list[Any]:
        """The environments, in the order of their slots.

        Raises:
            AttributeError: some slots run in other processes.
        """
        local = self.engine.envs()
        if len(local) < self.num_envs:
            raise AttributeError("envs is only available if all environments are in this process")
        return [local[slot] for slot in self._all_slots]

    def reset(
        self, seed: int | Sequence[int | None] | None = None, *, ids: Sequence[int] | None = None, **env_kwargs: Any
    ) -> tuple[list[Any], list[Info]]:
        """Start a new episode in all slots or in the slots of ids.

        Pending calls of these slots are awaited, and their results are discarded.

        Args:
            seed: an integer s seeds slot i with s + i. A list contains one seed or None for each slot that is reset.
                A slot without a seed continues its own sequence of episodes.
            ids: slots to reset. None resets all slots and discards the running episodes of rollout.collect().
            env_kwargs: the keyword arguments ``env3_kwargs={…}`` are passed to the reset() of slot 3, for example.

        Returns:
            Observations and infos, in the order of ids. If a reset fails and does not raise EnvFailed, the info of the
            slot contains ``failure``, and the new episode ends as failed at its first step for any action. With
            autoreset "same_step", a reset in step() may fail as well. The info of that step then contains ``failure``,
            and the info of the old episode is ``final_info``.

        Raises:
            EnvFailed: an environment failed (see on_failure in make_vec). The other slots are reset, and recv() returns
                their observations.
        """
        self._check_open()
        if ids is None:
            ids, self.collector = self._all_slots, None
        self._check_ids(ids)
        unknown = set(env_kwargs) - {f"env{i}_kwargs" for i in ids}
        if unknown:
            raise BadValue(f"reset takes env<slot>_kwargs for the slots it resets, not {sorted(unknown)}")
        seeds = self._seeds_for(seed, ids)
        self._discard([slot for slot in ids if slot in self._pending])
        calls = [
            SlotCall(slot, "reset", (slot_seed, env_kwargs.get(f"env{slot}_kwargs", {})))
            for slot, slot_seed in zip(ids, seeds, strict=True)
        ]
        outcomes = self._perform(calls)
        self._broken.difference_update(ids)
        for slot in ids:
            self._over[slot] = False
            self._stats.begin(slot)
        return [outcome.value[0] for outcome in outcomes], [outcome.value[1] for outcome in outcomes]

    def step(self, actions: Actions) -> VecStep:
        """Step slots and wait for the results.

        Args:
            actions: a list of N actions, one per slot, or a dict {slot: action} to step only some slots.

        Raises:
            BadAction: the list has the wrong length or type, or a slot does not exist. No slot is stepped.
            BadValue: a slot is pending. No slot is stepped.
            EpisodeOver: the episode of a slot has ended and autoreset is "disabled". No slot is stepped.
            CallerError: an environment refused its action. The other slots are stepped, and recv() returns their
                results.
            EnvFailed: an environment failed (see on_failure in make_vec). The other slots are stepped, and recv()
                returns their results.
        """
        if self._can_step_all(actions):
            self._pending = dict.fromkeys(self._all_slots, "step")
            steps = self.engine.step_all(actions)  # type: ignore[arg-type]
            if steps is not None:
                self._pending.clear()
                return self._vec_step(self._all_slots, steps)
            slots: Sequence[int] = self._all_slots
        else:
            slots = self.send(actions)
        self._await(slots)
        return self._take_steps(slots)

    def send(self, actions: Actions, ids: Sequence[int] | None = None) -> list[int]:
        """Start steps without waiting for them. recv() returns the results in order of completion.

        Args:
            actions: a dict {slot: action}, or a list with one action for each slot of ids.
            ids: the slots to step with a list of actions. None steps all N slots. Must be None if actions is a dict.

        Returns:
            The slots whose steps were started.

        Raises:
            BadAction, BadValue, EpisodeOver: for the same reasons as in step(). No step is started.
        """
        self._check_open()
        pairs = self._pair_actions(actions, ids)
        self._check_idle([slot for slot, _ in pairs])
        over = {slot for slot, _ in pairs if self._over[slot]}
        if over and self.autoreset is Autoreset.DISABLED:
            ended = sorted(over)
            raise EpisodeOver(f"slots {ended} have ended and autoreset is disabled; call reset(ids={ended})")
        self._submit(
            [
                SlotCall(slot, "reset", (None, {})) if slot in over else SlotCall(slot, "step", action)
                for slot, action in pairs
            ]
        )
        return [slot for slot, _ in pairs]

    def send_reset(self, ids: Sequence[int], seed: int | Sequence[int | None] | None = None) -> None:
        """Start resets without waiting for them. recv() returns each first observation as a step with reward 0.

        Args:
            ids: the slots to reset.
            seed: see reset().

        Raises:
            BadAction: a slot does not exist or is given twice. No reset is started.
            BadValue: a slot is pending or a seed is invalid. No reset is started.
        """
        self._check_open()
        self._check_ids(ids)
        self._check_idle(ids)
        seeds = self._seeds_for(seed, ids)
        self._submit([SlotCall(slot, "reset", (own, {})) for slot, own in zip(ids, seeds, strict=True)])

    def recv(self, *, min_envs: int = 1, timeout: float | None = None) -> Received:
        """Wait for results of send() and send_reset(). Return all results that have arrived, in order of completion.

        Args:
            min_envs: number of slots to wait for.
            timeout: seconds after which recv() returns even if fewer than min_envs slots, possibly none, have finished.
                None sets no limit.

        Raises:
            BadValue: fewer than min_envs slots are pending.
            CallerError: an environment refused its action. The next recv() returns the results of the other slots.
            EnvFailed: an environment failed (see on_failure in make_vec). The next recv() returns the results of the
                other slots.
        """
        self._check_open()
        check_count("min_envs", min_envs)
        if min_envs > len(self._pending):
            raise BadValue(f"min_envs={min_envs}, but only {len(self._pending)} slots are pending; send() some first")
        self._await(None, min_envs, timeout)
        slots = list(self._finished)
        return Received(slots, self._take_steps(slots))

    def wait(self, fileno: int) -> None:
        """Block until recv() may return a result, or until a file descriptor is readable."""
        if not self._pending:
            wait_readable([fileno], None)
        elif not self.is_inline and not self._finished:  # the next recv() runs inline slots
            self.engine.wait_for(fileno)

    @property
    def pending(self) -> list[int]:
        """The slots with a call from send() or send_reset() whose result recv() has not returned."""
        return list(self._pending)

    def stats(self) -> dict[str | None, EnvStats]:
        """Return {environment id: statistics of its episodes so far}."""
        return self._stats.by_id

    def sample_random_action(self, slot: int) -> str:
        """Return a random legal action for the environment of a slot."""
        return str(self._ask([SlotCall(slot, "sample_random_action")])[0].value)

    def shows_history(self, slot: int) -> bool:
        """Return whether the observations of a slot contain the whole history, because of an observation wrapper."""
        return self.engine.metadata[slot].shows_history

    def shows_prompt(self, slot: int) -> bool:
        """Return whether a slot's observations are complete prompts, formatted with a chat template."""
        return self.engine.metadata[slot].shows_prompt

    def get_state(self) -> dict[str, Any]:
        """Return the state of all N slots as plain data for set_state(). Raises BadValue if a slot is pending."""
        outcomes = self._ask([SlotCall(slot, "get_state") for slot in self._all_slots])
        return {
            "slots": [outcome.value for outcome in outcomes],
            "over": list(self._over),
            **self._stats.get_state(),
            **self._orders.get_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state that get_state() returned, for the same slots on any backend.

        Raises:
            BadValue: the state does not fit this vector environment, or a slot is pending.
        """
        if not isinstance(state, Mapping) or not {"slots", "over", "turns", "rewards"} <= state.keys():
            raise BadValue("not a state of a vector env: slots, over, turns or rewards is missing")
        if len(state["slots"]) != self.num_envs:
            raise BadValue(f"the state has {len(state['slots'])} slots, this vector env has {self.num_envs}")
        self._ask([SlotCall(slot, "set_state", own) for slot, own in enumerate(state["slots"])])
        self._orders.set_state(state)
        self._over = list(state["over"])
        self._broken.clear()
        self._stats.set_state(state)

    def get_slot_states(self, ids: Sequence[int]) -> list[Any]:
        """Return the states of slots as plain data for set_slot_states(). Raises BadValue if one is pending."""
        return [outcome.value for outcome in self._ask([SlotCall(slot, "get_state") for slot in ids])]

    def set_slot_states(self, states: Mapping[int, Any]) -> None:
        """Continue in each of these slots an episode that get_slot_states() saved in any slot.

        The statistics count such an episode from here on.

        Raises:
            BadValue: a state does not fit its slot, or a slot is pending.
        """
        self._ask([SlotCall(slot, "set_state", state) for slot, state in states.items()])
        self._broken.difference_update(states)
        for slot in states:
            self._over[slot] = False
            self._stats.begin(slot)

    def close(self) -> None:
        """Close all environments and stop all workers. Takes a few seconds at most. May be called twice."""
        if not self._closed:
            self._closed = True
            self.engine.close()

    def __len__(self) -> int:
        return self.num_envs

    def __enter__(self) -> VectorEnv:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def is_inline(self) -> bool:
        """Whether step() runs all slots one after another in the thread of the caller."""
        return self.engine.is_inline

    def _can_step_all(self, actions: Actions) -> bool:
        """Return whether step(actions) can use Engine.step_all().

        It needs inline slots, none with a shared order of rows, and one action per slot.
        """
        return (
            self.is_inline
            and type(actions) is list
            and len(actions) == self.num_envs
            and not self._pending
            and not self._closed
            and not self._orders
            and True not in self._over
        )

    def _pair_actions(self, actions: Actions, ids: Sequence[int] | None = None) -> list[tuple[int, Any]]:
        """Return (slot, action) pairs in the given order. Raises BadAction or BadValue for invalid arguments."""
        if isinstance(actions, Mapping):
            if ids is not None:
                raise BadValue("a dict of actions names its slots; do not pass ids with it")
            self._check_ids(list(actions))
            return list(actions.items())
        if isinstance(actions, (str, bytes)) or not isinstance(actions, (Sequence, np.ndarray)):
            raise BadAction(f"actions must be a list of {self.num_envs} or a dict, got {type(actions).__name__}")
        wanted = self._all_slots if ids is None else ids
        if ids is not None:
            self._check_ids(ids)
        if len(actions) != len(wanted):
            raise BadAction(f"need {len(wanted)} actions, one per slot, got {len(actions)}; step some with a dict")
        return list(zip(wanted, actions, strict=True))

    def _check_ids(self, ids: Iterable[int]) -> None:
        slots = list(ids)
        for slot in slots:
            if isinstance(slot, bool) or not isinstance(slot, (int, np.integer)) or not 0 <= slot < self.num_envs:
                raise BadAction(f"no slot {slot!r}; there are {self.num_envs}, numbered from 0")
        if len(set(slots)) != len(slots):
            raise BadAction(f"duplicate slots in {slots}")

    def _seeds_for(self, seed: int | Sequence[int | None] | None, ids: Sequence[int]) -> list[int | None]:
        """Return one seed or None for each slot of ids. Raises BadValue for an invalid seed."""
        if seed is None:
            return [None] * len(ids)
        if isinstance(seed, (int, np.integer)):
            return [check_seed(int(seed) + slot) for slot in ids]
        if len(seed) != len(ids):
            raise BadValue(f"need {len(ids)} seeds, one per slot, got {len(seed)}")
        return [None if own is None else check_seed(own) for own in seed]

    def _submit(self, calls: list[SlotCall]) -> None:
        self._pending.update((call.slot, call.method) for call in calls)
        self.engine.submit(self._orders.assign(calls))

    def _await(self, slots: Sequence[int] | None, count: int = 0, timeout: float | None = None) -> None:
        """Wait until the calls of these slots have finished, or until timeout seconds have passed.

        Args:
            slots: the slots to wait for. None waits for any ``count`` slots.
            timeout: None sets no limit.

        Raises:
            KeyboardInterrupt: an environment raised it. Its call has failed; all results remain for recv().
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pending, finished = self._pending, self._finished
        while True:
            interrupted = False
            autoresets = []
            for outcome in self.engine.collect():
                interrupted |= outcome.interrupted
                if outcome.slot in pending:
                    if outcome.slot in self._orders:
                        if self._must_autoreset(outcome):
                            autoresets.append(SlotCall(outcome.slot, "reset", (None, {})))
                            continue
                        outcome = self._with_last_step(outcome)
                    finished[outcome.slot] = outcome
            if autoresets:
                self.engine.submit(self._orders.assign(autoresets))
            if interrupted:
                raise KeyboardInterrupt
            if autoresets:  # an inline engine runs them in collect()
                continue
            if len(finished) >= count if slots is None else all(slot in finished for slot in slots):
                return
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            self.engine.wait(left)

    def _must_autoreset(self, outcome: SlotOutcome) -> bool:
        """Return whether a slot of a shared order has made the last step of an episode, and keep the step.

        Such a slot does not reset itself, because the place of its next episode is assigned here.
        """
        slot, step = outcome.slot, outcome.value
        over = isinstance(step, Step) and (step.terminated or step.truncated)
        if over and self.autoreset is Autoreset.SAME_STEP:
            self._last_steps[slot] = step
            return True
        return False

    def _with_last_step(self, outcome: SlotOutcome) -> SlotOutcome:
        """Return the outcome of a call on a slot of a shared order, after an autoreset together with the last step."""
        slot, value, error, position, _ = outcome
        if position is not None:
            self._orders.restore(slot, position)
        last_step = self._last_steps.pop(slot, None)
        return outcome if last_step is None or error else outcome._replace(value=step_into_next(last_step, *value))

    def _take(self, slots: Sequence[int]) -> list[SlotOutcome]:
        """Remove and return the finished outcomes of these slots.

        If any of the outcomes are errors, only the errors are removed, and the first error is raised.
        """
        finished, pending = self._finished, self._pending
        errors = [finished[slot] for slot in slots if finished[slot].error is not None]
        taken = errors or [finished[slot] for slot in slots]
        for outcome in taken:
            del finished[outcome.slot], pending[outcome.slot]
        if errors:
            self._raise(errors)
        return taken

    def _raise(self, outcomes: list[SlotOutcome]) -> None:
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        for outcome in outcomes:
            if isinstance(outcome.error, EnvFailed) and outcome.slot not in self._broken:
                self._broken.add(outcome.slot)
                self._stats.fail(outcome.slot)
        if len(errors) > 1:
            errors[0].args = (f"{errors[0]}; and {len(errors) - 1} more slots",)
        raise errors[0]

    def _take_steps(self, slots: Sequence[int]) -> VecStep:
        """Remove finished steps and resets and return them as one VecStep. Resets become steps with reward 0."""
        was_reset = {slot for slot in slots if self._pending[slot] == "reset"}
        steps = [
            Step(outcome.value[0], info=outcome.value[1]) if outcome.slot in was_reset else outcome.value
            for outcome in self._take(slots)
        ]
        step = self._vec_step(slots, steps)
        for slot in was_reset:
            self._over[slot] = False
            self._stats.begin(slot)
        return step

    def _vec_step(self, slots: Sequence[int], steps: list[Step]) -> VecStep:
        """Combine steps into a VecStep and update the statistics."""
        observations, rewards, terminated, truncated, infos = zip(*steps, strict=True) if steps else ((),) * 5
        rewards_B = np.array(rewards, dtype=np.float64)
        terminated_B = np.array(terminated, dtype=np.bool_)
        truncated_B = np.array(truncated, dtype=np.bool_)
        if self._ends_on_truncation:  # failed episodes too, which the environment has not reported
            terminated_B |= truncated_B & np.isin(slots, self._ends_on_truncation)
        self._stats.step(slots, rewards_B)
        if self._broken:
            self._broken.difference_update(slots)
        same_step = self.autoreset is Autoreset.SAME_STEP
        for i in np.flatnonzero(terminated_B | truncated_B).tolist():
            slot, info = slots[i], infos[i]
            self._over[slot] = not same_step
            self._stats.end(slot, info.get("final_info", info) if same_step else info)
        return VecStep(list(observations), rewards_B, terminated_B, truncated_B, list(infos))

    def _perform(self, calls: list[SlotCall]) -> list[SlotOutcome]:
        slots = [call.slot for call in calls]
        self._submit(calls)
        self._await(slots)
        return self._take(slots)

    def _ask(self, calls: list[SlotCall]) -> list[SlotOutcome]:
        """Run calls other than step and reset, and return their outcomes.

        Raises:
            BadValue: a slot is pending.
        """
        self._check_open()
        slots = [call.slot for call in calls]
        self._check_ids(slots)
        self._check_idle(slots)
        try:
            return self._perform(calls)
        finally:  # after an error, recv() must not return the outcomes of the other slots
            self._forget(slots)

    def _discard(self, slots: list[int]) -> None:
        """Wait for the calls of pending slots and discard their results."""
        if slots:
            self._await(slots)
            self._forget(slots)

    def _forget(self, slots: list[int]) -> None:
        for slot in slots:
            self._finished.pop(slot, None)
            self._pending.pop(slot, None)

    def _check_idle(self, slots: Sequence[int]) -> None:
        if busy := [slot for slot in slots if slot in self._pending]:
            raise BadValue(f"slots {busy} were sent and not received; recv() them first")

    def _check_open(self) -> None:
        if self._closed:
            raise EpisodeOver("this vector env is closed")


def _options_of(backend: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None. Raises BadValue for a backend or an option that does not exist."""
    if backend not in BACKENDS:
        raise BadValue(
            f"no backend {backend!r}{did_you_mean(str(backend), BACKENDS)}  (there are: {', '.join(BACKENDS)})"
        )
    wanted = {name: value for name, value in given.items() if value is not None}
    for name, value in wanted.items():
        if name not in BACKENDS[backend][1]:
            takers = ", ".join(other for other, (_, names) in BACKENDS.items() if name in names) or "no backend"
            raise BadValue(f"{name}={value!r} is not available for backend {backend!r}, only for {takers}")
    check_count("num_workers", wanted.get("num_workers"), optional=True)
    return wanted
