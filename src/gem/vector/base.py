"""The interface of every vector environment, and what a slot does when its episode ends.

Terms: a *slot* is one environment of the vector; N is their number, B the number stepped by one call.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gem.core import Info, Step
from gem.errors import BadAction, BadValue, EnvFailed, EpisodeOver
from gem.seeding import check_seed
from gem.vector.engine import Engine
from gem.vector.slots import Call, Outcome
from gem.vector.stats import EnvStats, Scores

Actions = Sequence[Any] | Mapping[int, Any]


class Autoreset(str, Enum):
    """When a slot whose episode ended starts the next one. The meanings are Gymnasium's.

    SAME_STEP: within the step that ended it; the observation returned is the new episode's first, and the info that
    goes with it holds ``final_obs`` and ``final_info`` of the old one.
    NEXT_STEP: the following step of that slot ignores its action, resets, and returns reward 0.
    DISABLED: never; the caller resets with ``reset(ids=[…])``.
    """

    SAME_STEP = "same_step"
    NEXT_STEP = "next_step"
    DISABLED = "disabled"

    @classmethod
    def of(cls, mode: str | Autoreset) -> Autoreset:
        try:
            return cls(mode)
        except ValueError:
            raise BadValue(f"autoreset must be one of {[m.value for m in cls]}, got {mode!r}") from None


class VecStep(NamedTuple):
    """What B slots answered, in the order in which they were asked: Gym's five, batched.

    rewards_B is NaN where the machinery failed (``infos_B[i]["failure"]`` says how); that is never a reward.
    """

    observations_B: list[Any]
    rewards_B: npt.NDArray[np.float64]
    terminated_B: npt.NDArray[np.bool_]
    truncated_B: npt.NDArray[np.bool_]
    infos_B: list[Info]


class Received(NamedTuple):
    """What recv() gives: ids_B, the slots in the order in which they ended, and what each of them answered."""

    ids_B: list[int]
    step: VecStep


class VectorEnv:
    """N environments behind one interface. Every backend plays the same episodes from the same seeds.

    Args:
        engine: what runs the slots, which are numbered from 0.
        autoreset: see Autoreset.
    """

    def __init__(self, engine: Engine, autoreset: Autoreset) -> None:
        self.engine, self.autoreset = engine, autoreset
        self.num_envs = len(engine.facts)
        # The registered id of each slot, None where it was not made by id.
        self.env_ids: list[str | None] = [engine.facts[i].env_id for i in range(self.num_envs)]
        self.collector: Any = None  # whoever collects from this vector keeps the episodes under way here
        self._over = [False] * self.num_envs  # ended, and not reset since; never with SAME_STEP
        self._under_way: dict[int, str] = {}  # slots sent and not received yet, and what they were asked
        self._ended: dict[int, Outcome] = {}  # those of them that ended, in that order
        self._broken: set[int] = set()  # raised EnvFailed, and nothing else since
        self._closed = False
        self._scores = Scores(self.env_ids)

    def reset(
        self, seed: int | Sequence[int | None] | None = None, *, ids: Sequence[int] | None = None, **env_kwargs: Any
    ) -> tuple[list[Any], list[Info]]:
        """Start a new episode in every slot, or in those of ids, all at once.

        Args:
            seed: an integer s seeds slot i with s + i; a list holds one seed (or None) per slot reset.
            ids: the slots to reset. None resets all, and gives up the episodes that rollout.collect has under way here.
            env_kwargs: ``env3_kwargs={…}`` is passed on to the reset of slot 3.

        A step that a slot has under way is waited for, and dropped.

        Returns observations and infos, in the order of ids. A slot whose machinery fails here says so in
        ``info["failure"]``, and its episode ends as failed at its first step, whatever the action. (With autoreset in
        the same step that info comes with the last, sound step of the episode before, whose own is ``final_info``.)
        Raises EnvFailed as on_failure says; the other slots are reset then, and recv() gives their observations.
        """
        self._check_open()
        if ids is None:
            ids, self.collector = range(self.num_envs), None  # the episodes under way are given up
        self.check_ids(ids)
        unknown = set(env_kwargs) - {f"env{i}_kwargs" for i in ids}
        if unknown:
            raise BadValue(f"reset takes env<slot>_kwargs for the slots it resets, not {sorted(unknown)}")
        seeds = self.seeds_for(seed, ids)
        self._drop([slot for slot in ids if slot in self._under_way])
        calls = [
            Call(slot, "reset", (slot_seed, env_kwargs.get(f"env{slot}_kwargs", {})))
            for slot, slot_seed in zip(ids, seeds, strict=True)
        ]
        outcomes = self._perform(calls)
        self._broken.difference_update(ids)
        for slot in ids:
            self._over[slot] = False
            self._scores.begin(slot)
        return [outcome.value[0] for outcome in outcomes], [outcome.value[1] for outcome in outcomes]

    def step(self, actions: Actions) -> VecStep:
        """Step every slot with a list of N actions, or some of them with a dict {slot: action}, and wait for them.

        Raises BadAction when the list has another length, is a plain string, or names a slot that there is not, and
        BadValue for a slot that was sent and not received; nothing was stepped then. Raises what a slot refused, and
        EnvFailed as on_failure says; the other slots' steps are kept then, and recv() gives them.
        """
        slots = self.send(actions)
        self._await(slots)
        return self._hand_out(slots)

    def send(self, actions: Actions, ids: Sequence[int] | None = None) -> list[int]:
        """Start steps and return at once; recv() gives their results, whichever end first.

        Args:
            actions: a dict {slot: action}; or a list, of N actions or of one per slot of ids.
            ids: the slots that a list of actions is for.

        Returns the slots sent to. Raises BadAction and BadValue as step() does.
        """
        self._check_open()
        pairs = self.slots_of(actions, ids)
        self._check_idle([slot for slot, _ in pairs])
        over = {slot for slot, _ in pairs if self._over[slot]}
        if over and self.autoreset is Autoreset.DISABLED:
            ended = sorted(over)
            raise EpisodeOver(f"slots {ended} have ended and autoreset is disabled; call reset(ids={ended})")
        self._submit([Call(s, "reset", (None, {})) if s in over else Call(s, "step", action) for s, action in pairs])
        return [slot for slot, _ in pairs]

    def send_reset(self, ids: Sequence[int], seed: int | Sequence[int | None] | None = None) -> None:
        """Start resets and return at once; recv() gives each new episode's first observation, as a step of reward 0.

        seed: as for reset(). Raises as send() does.
        """
        self._check_open()
        self.check_ids(ids)
        self._check_idle(ids)
        self._submit([Call(s, "reset", (seed_, {})) for s, seed_ in zip(ids, self.seeds_for(seed, ids), strict=True)])

    def recv(self, *, min_envs: int = 1, timeout: float | None = None) -> Received:
        """The steps that have ended, in the order in which they ended.

        Args:
            min_envs: wait for at least so many.
            timeout: seconds to wait; then what there is comes back, which may be nothing. None waits for min_envs.

        Raises BadValue when fewer than min_envs are under way. Raises what a slot refused, and EnvFailed as
        on_failure says; the other slots' steps are kept then, and the next recv() gives them.
        """
        self._check_open()
        if isinstance(min_envs, bool) or not isinstance(min_envs, int) or min_envs < 1:
            raise BadValue(f"min_envs must be an integer >= 1, got {min_envs!r}")
        if min_envs > len(self._under_way):
            raise BadValue(f"min_envs={min_envs}, and {len(self._under_way)} slots are under way; send() some first")
        self._await(None, min_envs, timeout)
        slots = list(self._ended)
        return Received(slots, self._hand_out(slots))

    @property
    def under_way(self) -> list[int]:
        """The slots that were sent to and not received yet."""
        return list(self._under_way)

    def stats(self) -> dict[str | None, EnvStats]:
        """What was played so far, by environment id."""
        return self._scores.by_id

    def sample_random_action(self, slot: int) -> str:
        """A random legal action of one slot's environment."""
        return str(self._ask([Call(slot, "sample")])[0].value)

    def shows_history(self, slot: int) -> bool:
        """Whether a slot's observations hold its whole history (it has an observation wrapper), or what is new."""
        return self.engine.facts[slot].shows_history

    def shows_prompt(self, slot: int) -> bool:
        """Whether a slot's observations are prompts already, written with a chat template."""
        return self.engine.facts[slot].shows_prompt

    def get_state(self) -> dict[str, Any]:
        """All N episodes as plain data, for set_state(). Raises BadValue while a step is under way."""
        outcomes = self._ask([Call(slot, "get") for slot in range(self.num_envs)])
        return {
            "slots": [outcome.value for outcome in outcomes],
            "over": list(self._over),
            **self._scores.get_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to where get_state() was called on a vector built in the same way, on any backend."""
        if not isinstance(state, Mapping) or not {"slots", "over", "turns", "rewards"} <= state.keys():
            raise BadValue("not a state of a vector env: it lacks slots, over, turns or rewards")
        if len(state["slots"]) != self.num_envs:
            raise BadValue(f"the state is of {len(state['slots'])} slots, and there are {self.num_envs}")
        self._ask([Call(slot, "set", own) for slot, own in enumerate(state["slots"])])
        self._over = list(state["over"])
        self._broken.clear()
        self._scores.set_state(state)

    def close(self) -> None:
        """End every slot and whatever runs it, within seconds. Safe to call twice."""
        if not self._closed:
            self._closed = True
            self.engine.close()

    def __len__(self) -> int:
        return self.num_envs

    def __enter__(self) -> VectorEnv:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def slots_of(self, actions: Actions, ids: Sequence[int] | None = None) -> list[tuple[int, Any]]:
        """(slot, action) pairs in the order given, checked."""
        if isinstance(actions, Mapping):
            if ids is not None:
                raise BadValue("a dict of actions names its slots; give no ids with it")
            self.check_ids(list(actions))
            return list(actions.items())
        if isinstance(actions, (str, bytes)) or not isinstance(actions, (Sequence, np.ndarray)):
            raise BadAction(f"actions must be a list of {self.num_envs} or a dict, got {type(actions).__name__}")
        wanted = range(self.num_envs) if ids is None else ids
        if ids is not None:
            self.check_ids(ids)
        if len(actions) != len(wanted):
            raise BadAction(f"need {len(wanted)} actions, one per slot, got {len(actions)}; step some with a dict")
        return list(zip(wanted, actions, strict=True))

    def check_ids(self, ids: Iterable[int]) -> None:
        slots = list(ids)
        for slot in slots:
            if isinstance(slot, bool) or not isinstance(slot, (int, np.integer)) or not 0 <= slot < self.num_envs:
                raise BadAction(f"no slot {slot!r}; there are {self.num_envs}, numbered from 0")
        if len(set(slots)) != len(slots):
            raise BadAction(f"a slot is named twice in {slots}")

    def seeds_for(self, seed: int | Sequence[int | None] | None, ids: Sequence[int]) -> list[int | None]:
        """One seed per slot of ids."""
        if seed is None:
            return [None] * len(ids)
        if isinstance(seed, (int, np.integer)):
            return [check_seed(int(seed) + slot) for slot in ids]
        if len(seed) != len(ids):
            raise BadValue(f"need {len(ids)} seeds, one per slot, got {len(seed)}")
        return [None if own is None else check_seed(own) for own in seed]

    def _submit(self, calls: list[Call]) -> None:
        self._under_way.update((call.slot, call.what) for call in calls)
        self.engine.submit(calls)

    def _await(self, slots: Sequence[int] | None, least: int = 0, timeout: float | None = None) -> None:
        """Wait until all of slots have ended or, for None, at least so many of any; or for timeout seconds."""
        give_up = None if timeout is None else time.monotonic() + timeout
        ended = self._ended
        while True:
            for outcome in self.engine.collect():
                if outcome.slot in self._under_way:
                    ended[outcome.slot] = outcome
            if len(ended) >= least if slots is None else all(slot in ended for slot in slots):
                return
            left = None if give_up is None else give_up - time.monotonic()
            if left is not None and left <= 0:
                return
            self.engine.wait(left)

    def _take(self, slots: Sequence[int]) -> list[Outcome]:
        """The outcomes of slots that have ended. Raises the first error; the sound ones are kept for recv() then."""
        ended, under_way = self._ended, self._under_way
        wrong = [ended[slot] for slot in slots if ended[slot].error is not None]
        taken = []
        for outcome in wrong or [ended[slot] for slot in slots]:
            taken.append(outcome)
            del ended[outcome.slot], under_way[outcome.slot]
        if wrong:
            self._raise(wrong)
        return taken

    def _raise(self, wrong: list[Outcome]) -> None:
        errors = [outcome.error for outcome in wrong if outcome.error is not None]
        for outcome in wrong:
            if isinstance(outcome.error, EnvFailed) and outcome.slot not in self._broken:
                self._broken.add(outcome.slot)
                self._scores.fail(outcome.slot)
        if len(errors) > 1:
            errors[0].args = (f"{errors[0]}; and {len(errors) - 1} more slots",)
        raise errors[0]

    def _hand_out(self, slots: Sequence[int]) -> VecStep:
        was_reset = [self._under_way[slot] == "reset" for slot in slots]
        steps = [
            Step(outcome.value[0], info=outcome.value[1]) if reset else outcome.value
            for outcome, reset in zip(self._take(slots), was_reset, strict=True)
        ]
        self._count(slots, steps, was_reset)
        return VecStep(
            [s.observation for s in steps],
            np.array([s.reward for s in steps], dtype=np.float64),
            np.array([s.terminated for s in steps], dtype=np.bool_),
            np.array([s.truncated for s in steps], dtype=np.bool_),
            [s.info for s in steps],
        )

    def _count(self, slots: Sequence[int], steps: list[Step], was_reset: list[bool]) -> None:
        """Keep the statistics, and which slots are over."""
        self._broken.difference_update(slots)
        same_step = self.autoreset is Autoreset.SAME_STEP
        for slot, (_, reward, terminated, truncated, info), reset in zip(slots, steps, was_reset, strict=True):
            if reset:
                self._over[slot] = False
                self._scores.begin(slot)
                continue
            self._scores.step(slot, reward)
            if terminated or truncated:
                self._over[slot] = not same_step
                self._scores.end(slot, info.get("final_info", info) if same_step else info)

    def _perform(self, calls: list[Call]) -> list[Outcome]:
        slots = [call.slot for call in calls]
        self._submit(calls)
        self._await(slots)
        return self._take(slots)

    def _ask(self, calls: list[Call]) -> list[Outcome]:
        """Perform calls on slots that have nothing under way. Raises BadValue where one has."""
        self._check_open()
        self.check_ids(call.slot for call in calls)
        self._check_idle([call.slot for call in calls])
        try:
            return self._perform(calls)
        finally:  # what the others answered where one raised is no step for recv()
            self._forget([call.slot for call in calls])

    def _drop(self, slots: list[int]) -> None:
        """Wait for slots that are under way, and forget what they answer."""
        if slots:
            self._await(slots)
            self._forget(slots)

    def _forget(self, slots: list[int]) -> None:
        for slot in slots:
            self._ended.pop(slot, None)
            self._under_way.pop(slot, None)

    def _check_idle(self, slots: Sequence[int]) -> None:
        if busy := [slot for slot in slots if slot in self._under_way]:
            raise BadValue(f"slots {busy} were sent and not received; recv() them first")

    def _check_open(self) -> None:
        if self._closed:
            raise EpisodeOver("this vector env is closed")
