"""Play episodes together with continuations that fork from their states, to estimate the values of these states."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from gem._internal.counts import check_count
from gem.conversation.history import FULL_HISTORY, History
from gem.core import Env, EnvWrapper, Info
from gem.errors import BadValue, InfraError
from gem.policies import Policy
from gem.rollout.episode import ActiveEpisode
from gem.rollout.groups import ATTEMPTS, Batch
from gem.rollout.scheduler import BATCH_WAIT, RolloutScheduler
from gem.trajectory import Trajectory
from gem.vector import Autoreset, VectorEnv

_Branch = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class BranchPlan:
    """Where episodes are forked. It depends on the turn only, so that the estimates stay unbiased.

    Args:
        width: continuations from each forked state.
        turns: forked states per episode; None for no limit.
        every: distance in turns between forked states; the first is that before the first turn.

    Raises:
        BadValue: for a value below 1.
    """

    width: int = 4
    turns: int | None = None
    every: int = 1

    def __post_init__(self) -> None:
        for name, value in (("width", self.width), ("turns", self.turns), ("every", self.every)):
            check_count(f"branch_{name}", value, optional=True)

    def forks_at(self, turn: int) -> bool:
        """Return whether continuations start from the state before this turn."""
        number, rest = divmod(turn, self.every)
        return rest == 0 and (self.turns is None or number < self.turns)

    def weight(self, turn: int) -> float:
        """Return the weight of one sampled turn with this index if the continuations are trained on.

        An episode and all its continuations are samples of the policy. Those that can reach this turn get equal weights
        with sum 1, so the states that the policy visits count as much as without continuations. Those that
        ended before keep their weight, as episodes that end early do.

        >>> [BranchPlan(width=2, turns=2).weight(turn) for turn in range(4)]
        [0.3333333333333333, 0.2, 0.2, 0.2]
        """
        forks = turn // self.every + 1
        return 1.0 / (1 + self.width * (forks if self.turns is None else min(forks, self.turns)))


@dataclass(eq=False)
class _Tree:
    """An episode and its continuations."""

    number: int
    expected: int = 1  # trajectories that were begun or wait
    forked: set[int] = field(default_factory=set)  # turns
    ended: list[Trajectory] = field(default_factory=list)


class _State(NamedTuple):
    """A forked state. The state of the environment is JSON, because environments may share parts of plain data."""

    env: str
    record: Trajectory
    observation: Any
    info: Info
    tools: Sequence[Mapping[str, Any]]


class _Job(NamedTuple):
    """A trajectory that waits for a slot or runs on one: an episode, or a continuation with its branch and state."""

    tree: _Tree
    branch: _Branch | None = None
    state: _State | None = None


class BranchCollector:
    """Runs a policy in all slots of a vector environment and returns episodes with continuations from their states.

    Episodes start with a reset to a seed of their own. As soon as an episode reaches a state at which it forks, the
    continuations wait for the next free slots, so that they are sampled together with the other episodes. A
    continuation has the state of the environment, including hidden parts and its random stream, and the conversation;
    its tokens are sampled from a stream of its own. An episode or continuation that fails is played again.

    A batch begins its episodes itself and is complete when all their continuations are, so that one policy plays
    both. What a batch contains does not depend on the slots or on timing.

    Args:
        vec_env: with autoreset "disabled".
        plan: where episodes are forked.
        seed_of: returns the seed of episode 0, 1, ….
        batch_wait, history: see Collector.

    Raises:
        BadValue: for another autoreset mode.
    """

    def __init__(
        self,
        vec_env: VectorEnv,
        plan: BranchPlan,
        seed_of: Callable[[int], int],
        *,
        batch_wait: float = BATCH_WAIT,
        history: History = FULL_HISTORY,
    ) -> None:
        if vec_env.autoreset is not Autoreset.DISABLED:
            raise BadValue(f"BranchCollector needs autoreset='disabled', got {vec_env.autoreset.value!r}")
        self.vec_env, self.plan, self._seed_of = vec_env, plan, seed_of
        self._scheduler = RolloutScheduler(vec_env, batch_wait, history)
        self._begun = 0  # number of the next episode
        self._trees: dict[int, _Tree] = {}  # incomplete ones, by number
        self._complete: dict[int, list[Trajectory]] = {}
        self._waiting: deque[_Job] = deque()
        self._running: dict[int, _Job] = {}  # by slot
        self._attempts: Counter[tuple[int, _Branch | None]] = Counter()  # failures
        self._failed = self._dropped = 0  # since the last batch

    def collect(self, policy: Policy, *, episodes: int) -> Batch:
        """Return the next episodes, in the order of their numbers, each followed by its continuations.

        Continuations have the ``group_id`` of their episode, and a ``branch``. The turns that they repeat are the same
        objects.

        Raises:
            InfraError: as many episodes were dropped as a batch has.
            Exception: any exception of the policy. No episode is lost, and the next call continues from the same state.
        """
        if self._scheduler.empty:  # at the start of a batch, or after an error that discarded the running episodes
            self.vec_env.reset(ids=self.vec_env.pending)
            self._running.clear()
            self._waiting = deque(_Job(tree) for tree in map(self._planted, list(self._trees)))
        while len(self._complete) < episodes:
            while len(self._trees) + len(self._complete) < episodes:
                self._waiting.append(_Job(self._planted(self._begun)))
                self._begun += 1
            self._begin()
            ended = self._scheduler.step(policy)
            self._fork()
            for trajectory in ended:
                self._take(trajectory)
            if self._dropped >= episodes:
                raise InfraError(f"{self._dropped} episodes failed with their continuations: {self._failure}")
        taken = sorted(self._complete)[:episodes]
        batch = Batch([t for n in taken for t in self._complete.pop(n)], self._failed, self._dropped)
        self._failed = self._dropped = 0
        self._attempts.clear()
        return batch

    def get_state(self) -> dict[str, Any]:
        """Return the number of the next episode, as plain data. Episodes not returned yet will be played again."""
        return {"begun": min([*self._trees, *self._complete], default=self._begun)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state that get_state() returned."""
        self._scheduler.drain()
        self._scheduler.ready = []
        self._begun = state["begun"]
        for running in (self._trees, self._complete, self._running, self._waiting):
            running.clear()

    def _planted(self, number: int) -> _Tree:
        self._trees[number] = tree = _Tree(number)
        return tree

    def _begin(self) -> None:
        """Start waiting episodes and continuations on free slots."""
        free = [slot for slot in range(self.vec_env.num_envs) if slot not in self._running]
        reset: list[Trajectory] = []
        resumed: dict[int, ActiveEpisode] = {}
        states: dict[int, Any] = {}
        while free and self._waiting:
            job = self._waiting.popleft()
            if self._trees.get(job.tree.number) is not job.tree:  # played again, or dropped
                continue
            slot, number = free.pop(0), job.tree.number
            self._running[slot] = job
            if (state := job.state) is None:
                env_id, seed = self.vec_env.env_ids[slot], self._seed_of(number)
                reset.append(Trajectory(env_id, slot=slot, episode=number, seed=seed, group_id=number))
                continue
            record = replace(state.record, slot=slot, branch=job.branch, turns=list(state.record.turns))
            resumed[slot] = ActiveEpisode(record, state.observation, state.info, state.tools)
            states[slot] = json.loads(state.env)
        self._scheduler.begin(reset)
        if resumed:
            self._scheduler.resume(resumed, states)

    def _fork(self) -> None:
        """Let the continuations of all episodes that have reached a forked state wait for free slots."""
        forking = []
        for episode in self._scheduler.ready:
            job, turn = self._running[episode.slot], len(episode.turns)
            if job.branch is None and turn not in job.tree.forked and self.plan.forks_at(turn):
                forking.append((episode, job.tree, turn))
        if not forking:
            return
        states = self.vec_env.get_slot_states([episode.slot for episode, _, _ in forking])
        for (episode, tree, turn), env in zip(forking, states, strict=True):
            record = replace(episode.trajectory, turns=list(episode.turns))
            state = _State(json.dumps(env), record, episode.observation, episode.info, episode.tools)
            tree.forked.add(turn)
            tree.expected += self.plan.width
            self._waiting += (_Job(tree, (turn, number), state) for number in range(self.plan.width))

    def _take(self, trajectory: Trajectory) -> None:
        """Add an ended trajectory to its tree, or play it again if it failed."""
        job = self._running.pop(trajectory.slot)
        tree = job.tree
        if self._trees.get(tree.number) is not tree:
            return
        if trajectory.failure is not None:
            self._fail(job, trajectory.failure)
            return
        tree.ended.append(trajectory)
        if len(tree.ended) == tree.expected:
            del self._trees[tree.number]
            self._complete[tree.number] = sorted(tree.ended, key=lambda t: t.branch or (-1, -1))

    def _fail(self, job: _Job, failure: str) -> None:
        """Play a failed trajectory again, or drop its tree after ATTEMPTS failures."""
        number = job.tree.number
        self._failed, self._failure = self._failed + 1, failure
        self._attempts[number, job.branch] += 1
        if self._attempts[number, job.branch] >= ATTEMPTS:
            del self._trees[number]
            self._dropped += 1
        elif job.branch is None:  # its states may differ the next time, so its continuations are discarded
            self._waiting.appendleft(_Job(self._planted(number)))
        else:
            self._waiting.appendleft(job)


def check_forkable(env: Env) -> None:
    """Reset an environment, without its wrappers, and check that its episodes and its tools can be forked.

    Raises:
        BadValue: the environment or a tool cannot be forked.
    """
    inner, layer = env.unwrapped, env
    inner.reset(seed=0)
    try:
        inner.set_state(json.loads(json.dumps(inner.get_state())))
    except (NotImplementedError, TypeError) as e:
        raise BadValue(f"{env.env_id or type(inner).__name__} cannot be forked: {e}") from e
    while isinstance(layer, EnvWrapper):
        for tool in vars(layer).get("tools", ()):
            if not tool.forkable:
                raise BadValue(
                    f"the tool {type(tool).__name__} cannot be forked, because its servers may keep state, which "
                    "the continuations of an episode would share"
                )
        layer = layer.env


def sampled_tokens(trajectories: Sequence[Trajectory]) -> int:
    """Count the tokens sampled for episodes and continuations, without the turns that continuations repeat."""
    own = (turn for t in trajectories for turn in t.turns[t.branch[0] if t.branch else 0 :])
    return sum(len(turn.sampled_ids) for turn in own)
