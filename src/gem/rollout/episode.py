"""Playing given seeds, each exactly once: evaluation."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from gem.errors import BadValue
from gem.policies import Policy
from gem.rollout.slot import Slot, advance
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VectorEnv


def play_seeds(vec_env: VectorEnv, policy: Policy, seeds: Sequence[int]) -> list[Trajectory]:
    """One episode per seed, on however many slots there are.

    Args:
        vec_env: with autoreset disabled.

    Returns the trajectories in the order of seeds; ``episode`` is the index of the seed, so that sampling does not
    depend on the number of slots. Raises BadValue for another autoreset mode.
    """
    if vec_env.autoreset is not Autoreset.DISABLED:
        raise BadValue(f"playing seeds needs autoreset='disabled', got {vec_env.autoreset.value!r}")
    waiting = deque(enumerate(seeds))
    done: dict[int, Trajectory] = {}
    running: list[Slot] = _start(vec_env, list(range(vec_env.num_envs)), waiting)
    while running:
        playing: list[Slot] = []
        freed: list[int] = []
        for slot in running:
            if slot.overflows(policy, vec_env):
                done[slot.trajectory.episode] = slot.overflow()
                freed.append(slot.trajectory.slot)
            else:
                playing.append(slot)
        running = []
        if playing:
            replies, step, seconds = advance(playing, policy, vec_env)
            for i, (slot, reply) in enumerate(zip(playing, replies, strict=True)):
                observation, info = step.observations_B[i], step.infos_B[i]
                slot.record(reply, policy, step.rewards_B[i], info, seconds)
                terminated, truncated = bool(step.terminated_B[i]), bool(step.truncated_B[i])
                if terminated or truncated:
                    done[slot.trajectory.episode] = slot.finish(observation, info, terminated, truncated)
                    freed.append(slot.trajectory.slot)
                else:
                    slot.see(observation, info)
                    running.append(slot)
        running += _start(vec_env, freed, waiting)
    return [done[i] for i in range(len(seeds))]


def _start(vec_env: VectorEnv, free: list[int], waiting: deque[tuple[int, int]]) -> list[Slot]:
    """Begin the episodes of the next seeds on the free slots."""
    ids = free[: len(waiting)]
    episodes = [waiting.popleft() for _ in ids]
    if not ids:
        return []
    observations, infos = vec_env.reset(seed=[seed for _, seed in episodes], ids=ids)
    return [
        Slot(Trajectory(vec_env.env_ids[i], slot=i, episode=index, seed=seed), observation, info)
        for i, (index, seed), observation, info in zip(ids, episodes, observations, infos, strict=True)
    ]
