"""Collecting episodes from a vector environment, without ever dropping one that is under way.

A batch of N episodes is the next N that end. Those still running are carried over to the next batch: dropping them
would leave out the long ones (a true half of long episodes became 5 % with 16 slots and batches of 16).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from gem.errors import BadValue
from gem.policies import Policy
from gem.rollout.slot import Slot, advance
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VectorEnv


class Collector:
    """Plays the slots of a vector environment in lock-step and hands out the episodes that end.

    Args:
        vec_env: with autoreset in the same step. Its slots are reset at the first collect().

    Raises BadValue for another autoreset mode.
    """

    def __init__(self, vec_env: VectorEnv) -> None:
        if vec_env.autoreset is not Autoreset.SAME_STEP:
            raise BadValue(f"collecting needs autoreset='same_step', got {vec_env.autoreset.value!r}")
        self.vec_env = vec_env
        self._slots: list[Slot] = []
        self._finished: deque[Trajectory] = deque()

    def collect(
        self, policy: Policy, *, episodes: int | None = None, transitions: int | None = None
    ) -> list[Trajectory]:
        """The next episodes to end, in the order in which they end (by slot within a step).

        Args:
            episodes: how many; or
            transitions: at least so many turns, in whole episodes.

        Failed episodes are among them, with their ``failure``. Raises BadValue unless exactly one size >= 1 is given.
        """
        size, unit = (episodes, "episodes") if transitions is None else (transitions, "transitions")
        if (episodes is None) == (transitions is None) or size is None or size < 1:
            raise BadValue(f"give episodes or transitions, at least 1; got {episodes=}, {transitions=}")
        batch: list[Trajectory] = []
        counted = 0
        while counted < size:
            while not self._finished:
                self._step(policy)
            batch.append(self._finished.popleft())
            counted += 1 if unit == "episodes" else len(batch[-1].turns)
        return batch

    def get_state(self) -> dict[str, Any]:
        """The vector env, the episodes under way and those not handed out yet, as plain data."""
        self._start()
        return {
            "vec_env": self.vec_env.get_state(),
            "slots": [
                {
                    "trajectory": s.trajectory.to_json(),
                    "observation": s.observation,
                    "info": s.info,
                }
                for s in self._slots
            ],
            "finished": [t.to_json() for t in self._finished],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on where get_state() was called."""
        self.vec_env.set_state(state["vec_env"])
        self._slots = [Slot(Trajectory.from_json(s["trajectory"]), s["observation"], s["info"]) for s in state["slots"]]
        self._finished = deque(Trajectory.from_json(t) for t in state["finished"])

    def _step(self, policy: Policy) -> None:
        self._start()
        self._end_overflowing(policy)
        replies, step, seconds = advance(self._slots, policy, self.vec_env)
        for i, (slot, reply) in enumerate(zip(self._slots, replies, strict=True)):
            observation, info = step.observations_B[i], step.infos_B[i]
            ended = bool(step.terminated_B[i] or step.truncated_B[i])
            last = info["final_info"] if ended else info
            slot.record(reply, policy, step.rewards_B[i], last, seconds)
            if not ended:
                slot.see(observation, info)
                continue
            self._finished.append(
                slot.finish(info["final_obs"], last, bool(step.terminated_B[i]), bool(step.truncated_B[i]))
            )
            self._slots[i] = _next(slot, observation, info)

    def _start(self) -> None:
        if not self._slots:
            # By ids: a reset of the whole vector is somebody else's, and ends what is collected here.
            observations, infos = self.vec_env.reset(ids=range(self.vec_env.num_envs))
            self._slots = [
                Slot(Trajectory(self.vec_env.env_ids[i], slot=i), o, info)
                for i, (o, info) in enumerate(zip(observations, infos, strict=True))
            ]

    def _end_overflowing(self, policy: Policy) -> None:
        for i, slot in enumerate(self._slots):
            if slot.overflows(policy, self.vec_env):
                self._finished.append(slot.overflow())
                (observation,), (info,) = self.vec_env.reset(ids=[i])
                self._slots[i] = _next(slot, observation, info)


def collect(
    vec_env: VectorEnv, policy: Policy, *, episodes: int | None = None, transitions: int | None = None
) -> list[Trajectory]:
    """The next episodes of vec_env to end under policy; see Collector.collect.

    Episodes under way stay with vec_env: the next call goes on with them.
    """
    if vec_env.collector is None:
        vec_env.collector = Collector(vec_env)
    collector: Collector = vec_env.collector
    return collector.collect(policy, episodes=episodes, transitions=transitions)


def _next(slot: Slot, observation: Any, info: dict[str, Any]) -> Slot:
    old = slot.trajectory
    return Slot(Trajectory(old.env_id, slot=old.slot, episode=old.episode + 1), observation, info)
