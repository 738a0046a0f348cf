"""The interface of every vector environment, and what a slot does when its episode ends.

Terms: a *slot* is one environment of the vector; N is their number, B the number stepped by one call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gem.core import Info
from gem.errors import BadAction, BadValue

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


class VectorEnv(ABC):
    """N environments stepped together. Every backend plays the same episodes from the same seeds."""

    num_envs: int
    env_ids: list[str | None]  # the registered id of each slot, None where it was not made by id
    autoreset: Autoreset
    collector: Any = None  # whoever collects from this vector keeps the episodes under way here

    @abstractmethod
    def reset(
        self, seed: int | Sequence[int | None] | None = None, *, ids: Sequence[int] | None = None, **env_kwargs: Any
    ) -> tuple[list[Any], list[Info]]:
        """Start a new episode in every slot, or in those of ids.

        Args:
            seed: an integer s seeds slot i with s + i; a list holds one seed (or None) per slot reset.
            ids: the slots to reset. None resets all, and gives up the episodes that rollout.collect has under way here.
            env_kwargs: ``env3_kwargs={…}`` is passed on to the reset of slot 3.

        Returns observations and infos, in the order of ids. A slot whose machinery fails here says so in
        ``info["failure"]``, and its episode ends as failed at its first step, whatever the action. (With autoreset in
        the same step that info comes with the last, sound step of the episode before, whose own is ``final_info``.)
        """

    @abstractmethod
    def step(self, actions: Actions) -> VecStep:
        """Step every slot with a list of N actions, or some of them with a dict {slot: action}.

        Raises BadAction when the list has another length, is a plain string, or names a slot that there is not.
        """

    @abstractmethod
    def sample_random_action(self, slot: int) -> str:
        """A random legal action of one slot's environment."""

    @abstractmethod
    def shows_history(self, slot: int) -> bool:
        """Whether a slot's observations hold its whole history (it has an observation wrapper), or what is new."""

    @abstractmethod
    def shows_prompt(self, slot: int) -> bool:
        """Whether a slot's observations are prompts already, written with a chat template."""

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """All N episodes as plain data, for set_state()."""

    @abstractmethod
    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to where get_state() was called on a vector built in the same way."""

    @abstractmethod
    def close(self) -> None:
        """End every slot. Safe to call twice."""

    def __len__(self) -> int:
        return self.num_envs

    def __enter__(self) -> VectorEnv:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def slots_of(self, actions: Actions) -> list[tuple[int, Any]]:
        """(slot, action) pairs in the order given, checked."""
        if isinstance(actions, Mapping):
            self.check_ids(list(actions))
            return list(actions.items())
        if isinstance(actions, (str, bytes)) or not isinstance(actions, (Sequence, np.ndarray)):
            raise BadAction(f"actions must be a list of {self.num_envs} or a dict, got {type(actions).__name__}")
        if len(actions) != self.num_envs:
            raise BadAction(f"need {self.num_envs} actions, one per slot, got {len(actions)}; step some with a dict")
        return list(enumerate(actions))

    def check_ids(self, ids: Sequence[int]) -> None:
        for slot in ids:
            if isinstance(slot, bool) or not isinstance(slot, (int, np.integer)) or not 0 <= slot < self.num_envs:
                raise BadAction(f"no slot {slot!r}; there are {self.num_envs}, numbered from 0")
        if len(set(ids)) != len(ids):
            raise BadAction(f"a slot is named twice in {list(ids)}")

    def seeds_for(self, seed: int | Sequence[int | None] | None, ids: Sequence[int]) -> list[int | None]:
        """One seed per slot of ids."""
        if seed is None:
            return [None] * len(ids)
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + slot for slot in ids]
        if len(seed) != len(ids):
            raise BadValue(f"need {len(ids)} seeds, one per slot, got {len(seed)}")
        return list(seed)
