"""Playing given seeds, each exactly once: evaluation."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from gem.conversation.history import WHOLE, History
from gem.errors import BadValue
from gem.policies import Policy
from gem.rollout.flight import BATCH_WAIT, Flight
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VectorEnv


def play_seeds(
    vec_env: VectorEnv,
    policy: Policy,
    seeds: Sequence[int],
    *,
    batch_wait: float = BATCH_WAIT,
    history: History = WHOLE,
) -> list[Trajectory]:
    """One episode per seed, on however many slots there are.

    Args:
        vec_env: with autoreset disabled.
        batch_wait: seconds to wait for slots that are not back yet before the policy is asked for those that are.
        history: limits on what the policy is shown of an episode.

    Returns the trajectories in the order of seeds; ``episode`` is the index of the seed, so that sampling does not
    depend on the number of slots. Raises BadValue for another autoreset mode.
    """
    if vec_env.autoreset is not Autoreset.DISABLED:
        raise BadValue(f"playing seeds needs autoreset='disabled', got {vec_env.autoreset.value!r}")
    waiting = deque(Trajectory(None, episode=index, seed=seed) for index, seed in enumerate(seeds))
    flight = Flight(vec_env, batch_wait, history)
    _begin(flight, range(vec_env.num_envs), waiting)
    done: dict[int, Trajectory] = {}
    while not flight.empty:
        ended = flight.step(policy)
        done |= {trajectory.episode: trajectory for trajectory in ended}
        _begin(flight, [trajectory.slot for trajectory in ended], waiting)
    return [done[i] for i in range(len(seeds))]


def _begin(flight: Flight, free: Sequence[int], waiting: deque[Trajectory]) -> None:
    """Begin the next episodes on the free slots."""
    begun = []
    for slot in free[: len(waiting)]:
        trajectory = waiting.popleft()
        trajectory.slot, trajectory.env_id = slot, flight.vec_env.env_ids[slot]
        begun.append(trajectory)
    flight.begin(begun)
