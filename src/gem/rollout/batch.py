"""Collecting episodes from a vector environment, without ever dropping one that is under way.

A batch of N episodes is the next N that end. Those still running are carried over to the next batch: dropping them
would leave out the long ones (a true half of long episodes became 5 % with 16 slots and batches of 16).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from gem.conversation.history import WHOLE, History
from gem.errors import BadValue
from gem.policies import Policy
from gem.rollout.flight import BATCH_WAIT, Flight
from gem.rollout.slot import Slot
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VectorEnv


class Collector:
    """Plays the slots of a vector environment and hands out the episodes that end.

    Args:
        vec_env: with autoreset in the same step. Its slots are reset at the first collect().
        batch_wait: seconds to wait for slots that are not back yet before the policy is asked for those that are.
        history: limits on what the policy is shown of an episode. By default it is shown all, and an episode that
            outgrows the policy's context is truncated.

    Slots that run inline are played in lock-step, so that a run is bit-identical from its seed. Where real waiting
    decides which slots are asked together, each (slot, episode, turn) still samples from a stream of its own.

    Raises BadValue for another autoreset mode, and a batch_wait below 0.
    """

    def __init__(self, vec_env: VectorEnv, batch_wait: float = BATCH_WAIT, history: History = WHOLE) -> None:
        if vec_env.autoreset is not Autoreset.SAME_STEP:
            raise BadValue(f"collecting needs autoreset='same_step', got {vec_env.autoreset.value!r}")
        if not batch_wait >= 0:
            raise BadValue(f"batch_wait must be seconds >= 0, got {batch_wait!r}")
        self.vec_env = vec_env
        self._flight = Flight(vec_env, batch_wait, history)
        self._finished: deque[Trajectory] = deque()

    def collect(
        self, policy: Policy, *, episodes: int | None = None, transitions: int | None = None
    ) -> list[Trajectory]:
        """The next episodes to end, in the order in which they end (by slot within a step).

        Args:
            episodes: how many; or
            transitions: at least so many turns, in whole episodes.

        Failed episodes are among them, with their ``failure``. Raises BadValue unless exactly one size >= 1 is given,
        and whatever the policy raises; the next call goes on from there.
        """
        size, unit = (episodes, "episodes") if transitions is None else (transitions, "transitions")
        if (episodes is None) == (transitions is None) or size is None or size < 1:
            raise BadValue(f"give episodes or transitions, at least 1; got {episodes=}, {transitions=}")
        taken = counted = 0
        while counted < size:
            while len(self._finished) == taken:
                self._start()
                self._finished += self._flight.step(policy)
            counted += 1 if unit == "episodes" else len(self._finished[taken].turns)
            taken += 1
        return [self._finished.popleft() for _ in range(taken)]  # at the end, so that an exception loses none

    def get_state(self) -> dict[str, Any]:
        """The vector env, the episodes under way and those not handed out yet, as plain data; waits for every slot."""
        self._start()
        self._finished += self._flight.land()
        return {
            "vec_env": self.vec_env.get_state(),
            "slots": [
                {
                    "trajectory": s.trajectory.to_json(),
                    "observation": s.observation,
                    "info": s.info,
                    "tools": list(s.tools),
                }
                for s in self._flight.ready
            ],
            "finished": [t.to_json() for t in self._finished],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on where get_state() was called."""
        self._flight.land()
        self.vec_env.set_state(state["vec_env"])
        self._flight.ready = [
            Slot(Trajectory.from_json(s["trajectory"]), s["observation"], s["info"], tools=s["tools"])
            for s in state["slots"]
        ]
        self._finished = deque(Trajectory.from_json(t) for t in state["finished"])

    def _start(self) -> None:
        if self._flight.empty:
            # A step that somebody else sent is waited for and dropped; a reset of the whole vector would be theirs.
            self.vec_env.reset(ids=self.vec_env.under_way)
            self._flight.begin([Trajectory(env_id, slot=i) for i, env_id in enumerate(self.vec_env.env_ids)])


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
