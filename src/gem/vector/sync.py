"""The plain loop: every slot in this process, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gem.core import Info, Step, StopReason
from gem.errors import BadValue, EpisodeOver, InfraError
from gem.vector.base import Actions, Autoreset, VecStep, VectorEnv


class SyncVectorEnv(VectorEnv):
    """Slots stepped in a loop: the fastest for environments that take microseconds, and the reference for the rest.

    Args:
        env_fns: one callable per slot that builds its environment.
        autoreset: see Autoreset.
    """

    def __init__(self, env_fns: Sequence[Callable[[], Any]], autoreset: str | Autoreset = Autoreset.SAME_STEP) -> None:
        self.autoreset = Autoreset.of(autoreset)
        if not env_fns:
            raise BadValue("a vector env needs at least one environment, got none")
        self.envs = [build() for build in env_fns]
        self.num_envs = len(self.envs)
        self.env_ids = [env.env_id for env in self.envs]
        self._done = [False] * self.num_envs  # ended, and not reset since
        self._failed_resets: dict[int, str] = {}  # slots whose reset failed, and why: their next step will say so
        self._closed = False

    def reset(
        self, seed: int | Sequence[int | None] | None = None, *, ids: Sequence[int] | None = None, **env_kwargs: Any
    ) -> tuple[list[Any], list[Info]]:
        self._check_open()
        if ids is None:
            ids, self.collector = range(self.num_envs), None  # the episodes under way are given up
        self.check_ids(ids)
        unknown = set(env_kwargs) - {f"env{i}_kwargs" for i in ids}
        if unknown:
            raise BadValue(f"reset takes env<slot>_kwargs for the slots it resets, not {sorted(unknown)}")
        observations, infos = [], []
        for slot, slot_seed in zip(ids, self.seeds_for(seed, ids), strict=True):
            observation, info = self._reset(slot, slot_seed, **env_kwargs.get(f"env{slot}_kwargs", {}))
            observations.append(observation)
            infos.append(info)
        return observations, infos

    def step(self, actions: Actions) -> VecStep:
        self._check_open()
        pairs = self.slots_of(actions)
        if self.autoreset is Autoreset.DISABLED and (over := [slot for slot, _ in pairs if self._done[slot]]):
            raise EpisodeOver(f"slots {over} have ended and autoreset is disabled; call reset(ids={over})")
        steps = [self._step(slot, action) for slot, action in pairs]
        return VecStep(
            [s.observation for s in steps],
            np.array([s.reward for s in steps], dtype=np.float64),
            np.array([s.terminated for s in steps], dtype=np.bool_),
            np.array([s.truncated for s in steps], dtype=np.bool_),
            [s.info for s in steps],
        )

    def sample_random_action(self, slot: int) -> str:
        return str(self.envs[slot].sample_random_action())

    def shows_history(self, slot: int) -> bool:
        return bool(getattr(self.envs[slot], "shows_history", False))

    def shows_prompt(self, slot: int) -> bool:
        return bool(getattr(self.envs[slot], "shows_prompt", False))

    def get_state(self) -> dict[str, Any]:
        failed_resets = [[slot, why] for slot, why in self._failed_resets.items()]
        return {
            "envs": [env.get_state() for env in self.envs],
            "done": list(self._done),
            "failed_resets": failed_resets,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state, Mapping) or not {"envs", "done", "failed_resets"} <= state.keys():
            raise BadValue("not a state of a vector env: it lacks envs, done or failed_resets")
        if len(state["envs"]) != self.num_envs:
            raise BadValue(f"the state is of {len(state['envs'])} slots, and there are {self.num_envs}")
        for env, env_state in zip(self.envs, state["envs"], strict=True):
            env.set_state(env_state)
        self._done, self._failed_resets = list(state["done"]), dict(state["failed_resets"])

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            for env in self.envs:
                env.close()

    def _reset(self, slot: int, seed: int | None = None, **kwargs: Any) -> tuple[Any, Info]:
        self._done[slot] = False
        self._failed_resets.pop(slot, None)
        try:
            observation, info = self.envs[slot].reset(seed=seed, **kwargs)
        except InfraError as failure:  # an episode that ends as failed at its first step, whatever the action
            self._failed_resets[slot] = why = describe(failure)
            return "", failed(why).info
        return observation, info

    def _step(self, slot: int, action: Any) -> Step:
        if self._done[slot]:  # NEXT_STEP, and this is the next step
            observation, info = self._reset(slot)
            return Step(observation, info=info)
        if slot in self._failed_resets:
            step = failed(self._failed_resets.pop(slot))
        else:
            try:
                step = Step(*self.envs[slot].step(action))
            except InfraError as failure:
                step = failed(describe(failure))
        if step.terminated or step.truncated:
            if self.autoreset is not Autoreset.SAME_STEP:
                self._done[slot] = True
                return step
            observation, info = self._reset(slot)
            return step_into_next(step, observation, info)
        return step

    def _check_open(self) -> None:
        if self._closed:
            raise EpisodeOver("this vector env is closed")


def describe(failure: InfraError) -> str:
    return f"{type(failure).__name__}: {failure}"


def failed(why: str) -> Step:
    """The step of a slot whose machinery failed: no reward, no verdict."""
    info = {"stop_reason": StopReason.FAILED, "failure": why}
    return Step("", float("nan"), terminated=False, truncated=True, info=info)


def step_into_next(last: Step, observation: Any, info: Info) -> Step:
    """The last step of an episode, showing the next one's first observation (autoreset in the same step)."""
    info = {**(info or {}), "final_obs": last.observation, "final_info": last.info}
    return Step(observation, last.reward, last.terminated, last.truncated, info)
