"""Play each of a list of episodes exactly once, for evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gem.conversation.history import FULL_HISTORY, History
from gem.errors import BadValue
from gem.policies import Policy
from gem.rollout.scheduler import BATCH_WAIT, RolloutScheduler
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VectorEnv


def play_seeds(
    vec_env: VectorEnv,
    policy: Policy,
    seeds: Sequence[int],
    *,
    batch_wait: float = BATCH_WAIT,
    history: History = FULL_HISTORY,
    previous: Sequence[Trajectory] = (),
) -> list[Trajectory]:
    """Play one episode per seed on any number of slots.

    Args:
        vec_env: a vector environment with autoreset "disabled".
        batch_wait: seconds to wait for other slots before the policy is queried for the slots that have finished. Not
            used for an AsyncPolicy, such as an endpoint.
        history: limits on the part of an episode shown to the policy.
        previous: results of an earlier call with the same seeds. Only those that failed are played again.

    Returns:
        The trajectories in the order of seeds. ``episode`` is the index of the seed, so that sampling does not depend
        on the number of slots. An episode that failed has a ``failure``.

    Raises:
        BadValue: autoreset of vec_env is not "disabled", or previous has other seeds.
    """
    if previous and [trajectory.seed for trajectory in previous] != list(seeds):
        raise BadValue("previous should hold the results of a call with the same seeds, in the same order")
    done = {i: trajectory for i, trajectory in enumerate(previous) if trajectory.failure is None}
    waiting = (
        Trajectory(None, episode=i, seed=seed, group_id=seed) for i, seed in enumerate(map(int, seeds)) if i not in done
    )
    for trajectory in play_each(vec_env, policy, waiting, batch_wait=batch_wait, history=history):
        done[trajectory.episode] = trajectory
    return [done[i] for i in range(len(seeds))]


def play_each(
    vec_env: VectorEnv,
    policy: Policy,
    episodes: Iterable[Trajectory],
    *,
    batch_wait: float = BATCH_WAIT,
    history: History = FULL_HISTORY,
) -> Iterator[Trajectory]:
    """Play each episode once, on any number of slots, and yield it when it ends.

    Args:
        vec_env: a vector environment with autoreset "disabled".
        episodes: empty trajectories with a seed, and with an ``episode`` that identifies them, from which the policy's
            sampling stream is derived. They are taken one by one, as slots become free.
        batch_wait, history: as for play_seeds().

    Raises:
        BadValue: autoreset of vec_env is not "disabled".
    """
    if vec_env.autoreset is not Autoreset.DISABLED:
        raise BadValue(f"play_seeds needs autoreset='disabled', got {vec_env.autoreset.value!r}")
    waiting = iter(episodes)
    scheduler = RolloutScheduler(vec_env, batch_wait, history)
    _begin(scheduler, range(vec_env.num_envs), waiting)
    while not scheduler.empty:
        ended = scheduler.step(policy)
        yield from ended
        _begin(scheduler, [trajectory.slot for trajectory in ended], waiting)


def _begin(scheduler: RolloutScheduler, free: Sequence[int], waiting: Iterator[Trajectory]) -> None:
    """Start the next waiting episodes on the free slots."""
    begun = []
    for slot, trajectory in zip(free, waiting, strict=False):
        trajectory.slot, trajectory.env_id = slot, scheduler.vec_env.env_ids[slot]
        begun.append(trajectory)
    scheduler.begin(begun)
