"""Collect groups of episodes that start from the same initial state, for estimators that compare them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gem._internal.counts import check_count
from gem.conversation.history import FULL_HISTORY, History
from gem.errors import BadValue, InfraError
from gem.policies import Policy
from gem.rollout.scheduler import BATCH_WAIT, RolloutScheduler
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VectorEnv

ATTEMPTS = 3  # how often a member that fails is played before its group is dropped
REFILL_LIMIT = 3  # groups with equal returns that are replaced, per group of the batch


class Batch(NamedTuple):
    """Episodes that belong together, and what happened until they were complete.

    Args:
        trajectories: group by group, or each episode followed by its continuations.
        failed: episodes and continuations that failed. Each was played again, or dropped with those it belongs to.
        dropped: groups that stayed incomplete; or episodes that failed repeatedly, or whose continuations did.
        equal: groups whose members all have the same return, including those that were replaced.
        points: of self-play: by opponent, the points of the policy in each completed game, between 0 and 1.
    """

    trajectories: list[Trajectory]
    failed: int = 0
    dropped: int = 0
    equal: int = 0
    points: Mapping[str, Sequence[float]] = {}


class GroupCollector:
    """Runs a policy in all slots of a vector environment and returns groups of episodes as they are complete.

    All members of a group start with a reset to the same seed. They are played on any slots, in parallel, and sample
    different tokens. A member that fails is played again with the same seed. Incomplete groups and running episodes are
    kept for the next batch. Reproducibility is that of Collector.

    Args:
        vec_env: with autoreset "disabled".
        size: members of a group; 1 plays the seeds one after another.
        seed_of: returns the seed of group 0, 1, ….
        batch_wait, history: see Collector.

    Raises:
        BadValue: for another autoreset mode, or a size below 1.
    """

    def __init__(
        self,
        vec_env: VectorEnv,
        size: int,
        seed_of: Callable[[int], int],
        *,
        batch_wait: float = BATCH_WAIT,
        history: History = FULL_HISTORY,
    ) -> None:
        if vec_env.autoreset is not Autoreset.DISABLED:
            raise BadValue(f"GroupCollector needs autoreset='disabled', got {vec_env.autoreset.value!r}")
        check_count("size", size)
        self.vec_env, self.size, self._seed_of = vec_env, size, seed_of
        self._scheduler = RolloutScheduler(vec_env, batch_wait, history)
        self._begun = 0  # groups whose members were put into _waiting
        self._waiting: deque[int] = deque()  # numbers of episodes to play: group * size + member
        self._members: dict[int, list[Trajectory]] = {}  # finished members of incomplete groups, by group
        self._attempts: Counter[int] = Counter()  # failures by number of the episode
        self._complete: deque[list[Trajectory]] = deque()
        self._failed = self._dropped = 0  # since the last batch

    def collect(self, policy: Policy, *, groups: int, refill: bool = False) -> Batch:
        """Return the next groups to be complete, group by group; ``group_id`` is the number of the group.

        Args:
            refill: replace groups whose members have equal returns, up to REFILL_LIMIT times the number of groups.

        Raises:
            InfraError: as many groups were dropped in a row as a batch has.
            Exception: any exception of the policy. No episode is lost, and the next call continues from the same state.
        """
        taken: list[list[Trajectory]] = []
        equal = replaced = 0
        while len(taken) < groups:
            dropped = self._dropped
            while not self._complete:
                self._start()
                self._take(self._scheduler.step(policy))
                if self._dropped - dropped >= groups:
                    raise InfraError(f"{groups} groups failed in a row, the last with: {self._failure}")
            group = self._complete.popleft()
            if len({t.total_reward for t in group}) == 1:
                equal += 1
                if refill and replaced < REFILL_LIMIT * groups:
                    replaced += 1
                    continue
            taken.append(group)
        batch = Batch([t for group in taken for t in group], self._failed, self._dropped, equal)
        self._failed = self._dropped = 0
        return batch

    def get_state(self) -> dict[str, Any]:
        """Return the state of the vector environment and of all groups that were not returned yet, as plain data."""
        self._start()
        while ended := self._scheduler.drain():
            self._take(ended)
        return {
            **self._scheduler.get_state(),
            "begun": self._begun,
            "waiting": list(self._waiting),
            "members": [[t.to_json() for t in members] for members in self._members.values()],
            "groups": list(self._members),
            "attempts": list(self._attempts.items()),
            "failed": self._failed,
            "dropped": self._dropped,
            "complete": [[t.to_json() for t in group] for group in self._complete],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state that get_state() returned."""
        self._scheduler.set_state(state)
        self._begun, self._waiting = state["begun"], deque(state["waiting"])
        members = [[Trajectory.from_json(t) for t in group] for group in state["members"]]
        self._members = dict(zip(state["groups"], members, strict=True))
        self._attempts = Counter(dict(map(tuple, state["attempts"])))
        self._failed, self._dropped = state.get("failed", 0), state.get("dropped", 0)  # not in older checkpoints
        self._complete = deque([Trajectory.from_json(t) for t in group] for group in state["complete"])

    def _start(self) -> None:
        if self._scheduler.empty:
            self.vec_env.reset(ids=self.vec_env.pending)  # discard pending steps of other code
            self._begin(range(self.vec_env.num_envs))

    def _begin(self, slots: Sequence[int]) -> None:
        """Start the next episodes on free slots."""
        begun = []
        for slot in slots:
            if not self._waiting:
                first = self._begun * self.size
                self._members[self._begun] = []
                self._waiting += range(first, first + self.size)
                self._begun += 1
            number = self._waiting.popleft()
            group = number // self.size
            begun.append(
                Trajectory(
                    self.vec_env.env_ids[slot],
                    slot=slot,
                    episode=number,
                    seed=self._seed_of(group),
                    group_id=group,
                )
            )
        self._scheduler.begin(begun)

    def _take(self, ended: Sequence[Trajectory]) -> None:
        """Sort ended episodes into their groups, and start the next ones."""
        for trajectory in ended:
            group = trajectory.group_id
            if trajectory.failure is not None:
                self._fail(trajectory)
            elif group in self._members:  # otherwise it was dropped
                self._members[group].append(trajectory)
                if len(self._members[group]) == self.size:
                    self._complete.append(sorted(self._members.pop(group), key=lambda t: t.episode))
        self._begin(sorted(trajectory.slot for trajectory in ended))

    def _fail(self, trajectory: Trajectory) -> None:
        """Play a failed member again, or drop its group after ATTEMPTS failures."""
        group, number = trajectory.group_id, trajectory.episode
        self._failed, self._failure = self._failed + 1, trajectory.failure
        self._attempts[number] += 1
        if group not in self._members:
            return
        if self._attempts[number] < ATTEMPTS:
            self._waiting.appendleft(number)
            return
        del self._members[group]
        self._waiting = deque(n for n in self._waiting if n // self.size != group)
        self._dropped += 1
