"""Collect batches of episodes from a vector environment, keeping in-flight episodes between batches.

A batch of N episodes contains the next N episodes that end. Running episodes continue in the next batch. If they were
discarded, batches would be biased toward short episodes: with 16 slots and batches of 16, long episodes
were 5 % instead of 50 % of all episodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from gem._internal.text import short_repr
from gem.conversation.history import FULL_HISTORY, History
from gem.errors import BadValue
from gem.policies import Policy
from gem.rollout.scheduler import BATCH_WAIT, RolloutScheduler
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VectorEnv


class Collector:
    """Runs a policy in all slots of a vector environment and returns episodes in batches as they end.

    Slots that run inline are stepped in lock-step, so runs with the same seed are bit-identical. With other backends
    and with an AsyncPolicy, timing decides the order, but each (slot, episode, turn) has its own random stream.

    Args:
        vec_env: with autoreset "same_step". Its slots are reset at the first collect().
        batch_wait: seconds to wait for other slots before the policy is queried for the slots that have finished. Not
            used for an AsyncPolicy, such as an endpoint, which is asked for each slot on its own.
        history: limits on the part of an episode shown to the policy. By default the policy is shown all of it, and an
            episode that outgrows the policy's context is truncated.

    Raises:
        BadValue: for anything but a VectorEnv, another autoreset mode or a negative batch_wait.
    """

    def __init__(self, vec_env: VectorEnv, batch_wait: float = BATCH_WAIT, history: History = FULL_HISTORY) -> None:
        _check_vector(vec_env)
        if vec_env.autoreset is not Autoreset.SAME_STEP:
            raise BadValue(f"Collector needs autoreset='same_step', got {vec_env.autoreset.value!r}")
        if not batch_wait >= 0:
            raise BadValue(f"batch_wait must be seconds >= 0, got {batch_wait!r}")
        self.vec_env = vec_env
        self._scheduler = RolloutScheduler(vec_env, batch_wait, history)
        self._finished: deque[Trajectory] = deque()

    def collect(
        self, policy: Policy, *, episodes: int | None = None, transitions: int | None = None
    ) -> list[Trajectory]:
        """Return the next episodes to end, in the order in which they end (by slot within a step).

        Failed episodes are included, with their ``failure``.

        Args:
            episodes: number of episodes to return; or
            transitions: minimum number of turns to return, in whole episodes. An episode that failed before its first
                turn counts as one.

        Raises:
            BadValue: for anything but a policy, and unless exactly one size >= 1 is given.
            Exception: any exception of the policy. No episode is lost, and the next call continues from the same state.
        """
        if isinstance(policy, type) or not hasattr(policy, "act"):
            raise BadValue(
                f"policy must be an object with act(requests), such as RandomPolicy(), got {short_repr(policy)}; "
                "gem.policies.Policy lists all members"
            )
        size, unit = (episodes, "episodes") if transitions is None else (transitions, "transitions")
        if (episodes is None) == (transitions is None) or not isinstance(size, int) or size < 1:
            raise BadValue(f"give episodes or transitions, at least 1; got {episodes=}, {transitions=}")
        taken = counted = 0
        while counted < size:
            while len(self._finished) == taken:
                self._start()
                self._finished += self._scheduler.step(policy)
            counted += 1 if unit == "episodes" else max(1, len(self._finished[taken].turns))
            taken += 1
        return [self._finished.popleft() for _ in range(taken)]  # last, so that an exception above loses no episode

    def get_state(self) -> dict[str, Any]:
        """Return the state of the vector environment and of all episodes that were not returned yet, as plain data.

        Waits until no slot is in flight. Requests that wait for a reply are withdrawn, and sent again later.
        """
        self._start()
        self._finished += self._scheduler.drain()
        return {**self._scheduler.get_state(), "finished": [t.to_json() for t in self._finished]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state that get_state() returned."""
        self._scheduler.set_state(state)
        self._finished = deque(Trajectory.from_json(t) for t in state["finished"])

    def _start(self) -> None:
        if self._scheduler.empty:
            # Discard pending steps of other code. reset() without ids would also detach this collector from the vector.
            self.vec_env.reset(ids=self.vec_env.pending)
            self._scheduler.begin([Trajectory(env_id, slot=i) for i, env_id in enumerate(self.vec_env.env_ids)])


def collect(
    vec_env: VectorEnv, policy: Policy, *, episodes: int | None = None, transitions: int | None = None
) -> list[Trajectory]:
    """Return the next episodes of vec_env to end under policy; see Collector.collect.

    Running episodes are kept in ``vec_env.collector``, and the next call continues them.
    """
    _check_vector(vec_env)
    if vec_env.collector is None:
        vec_env.collector = Collector(vec_env)
    collector: Collector = vec_env.collector
    return collector.collect(policy, episodes=episodes, transitions=transitions)


def _check_vector(vec_env: Any) -> None:
    if not isinstance(vec_env, VectorEnv):
        raise BadValue(f"vec_env must come from gem.make_vec, got {short_repr(vec_env)}")
