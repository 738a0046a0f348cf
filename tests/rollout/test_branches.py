"""BranchCollector: continuations from the states of episodes, complete or dropped, and the same on any slots."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import pytest

from gem.core import Env, EnvWrapper, Step
from gem.errors import BadValue, InfraError
from gem.policies import Reply, Request
from gem.registry import make
from gem.rollout import BranchCollector, BranchPlan
from gem.rollout.branches import check_forkable
from gem.seeding import stream
from gem.tools.base_tool import BaseTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.vector import VectorEnv, make_vec


class Guesser:
    """Guesses by the key of the request, as a model that samples does."""

    chat = max_prompt_tokens = None
    version = 0

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [Reply(rf"\boxed{{{stream(*r.key).randint(1, 10)}}}") for r in requests]


class Dice(Env):
    """Three turns, each with the roll of a die in the observation; steps listed by their number fail."""

    stepped = 0
    failing: frozenset[int] = frozenset()

    def reset(self, seed: int | None = None):
        super().reset(seed)
        self.state = [self.rng.randint(1, 1000)]  # changed in place below, as forks must not notice
        return str(self.state), {"idx": seed}

    def step(self, action: str) -> Step:
        Dice.stepped += 1
        if Dice.stepped in self.failing:
            raise InfraError("the server is down")
        self.state.append(self.rng.randint(1, 1000))
        return Step(str(self.state), float(len(action)), terminated=len(self.state) == 4)


def games(slots: int, backend: str = "sync", **plan: int) -> BranchCollector:
    vec_env = make_vec("game:GuessTheNumber-v0-easy", num_envs=slots, autoreset="disabled", backend=backend)
    return BranchCollector(vec_env, BranchPlan(**plan), lambda number: 100 + number)


def dice(slots: int, failing: Collection[int] = (), **plan: int) -> BranchCollector:
    Dice.stepped, Dice.failing = 0, frozenset(failing)
    return BranchCollector(VectorEnv.of([Dice] * slots, "disabled"), BranchPlan(**plan), lambda number: number)


def plays(trajectories) -> list[tuple[object, ...]]:
    return [(t.group_id, t.branch, t.seed, [(turn.observation, turn.action) for turn in t.turns]) for t in trajectories]


def test_every_state_of_an_episode_has_its_continuations():
    batch = dice(5, width=2).collect(Guesser(), episodes=3).trajectories
    assert [t.group_id for t in batch] == [0] * 7 + [1] * 7 + [2] * 7
    assert [t.branch for t in batch[:7]] == [None, (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert {t.row_id for t in batch[:7]} == {0}
    assert {len(t.turns) for t in batch} == {3}


def test_a_continuation_repeats_the_turns_before_its_state_and_stores_them_once():
    batch = dice(4, width=2).collect(Guesser(), episodes=2).trajectories
    for episode, branches in ((batch[0], batch[1:7]), (batch[7], batch[8:])):
        for t in branches:
            turn, _ = t.branch
            assert all(ours is theirs for ours, theirs in zip(t.turns[:turn], episode.turns[:turn], strict=True))
            assert t.turns[turn].observation == episode.turns[turn].observation
    rolls = {t.final_observation for t in batch[:7]}
    assert len(rolls) == 1, "forks share the random stream of the environment, but not its state"


def test_continuations_sample_other_actions_than_their_episode():
    for t in games(8, width=8, turns=1).collect(Guesser(), episodes=4).trajectories[::9]:
        assert t.branch is None
    batch = games(8, width=8, turns=1).collect(Guesser(), episodes=1).trajectories
    assert len({t.turns[0].action for t in batch}) > 3


@pytest.mark.parametrize(
    ("plan", "forked"), [({"turns": 2}, {0, 1}), ({"every": 2}, {0, 2}), ({"turns": 1, "every": 5}, {0})], ids=str
)
def test_the_plan_limits_the_states_that_are_forked(plan, forked):
    batch = dice(3, width=1, **plan).collect(Guesser(), episodes=2).trajectories
    assert {t.branch[0] for t in batch if t.branch} == forked


@pytest.mark.parametrize("backend", ["sync", "thread"])
def test_what_is_played_does_not_depend_on_the_slots(backend):
    one = games(1, width=3).collect(Guesser(), episodes=6)
    many = games(7, backend, width=3).collect(Guesser(), episodes=6)
    assert plays(many.trajectories) == plays(one.trajectories)


def test_batches_go_on_after_a_restart():
    whole, stopped, resumed = (games(5, width=2) for _ in range(3))
    whole.collect(Guesser(), episodes=3)
    stopped.collect(Guesser(), episodes=3)
    resumed.set_state(json.loads(json.dumps(stopped.get_state())))
    expected = plays(whole.collect(Guesser(), episodes=3).trajectories)
    assert plays(resumed.collect(Guesser(), episodes=3).trajectories) == expected


def test_no_episode_is_lost_when_the_policy_fails():
    class Fails(Guesser):
        calls = 0

        def act(self, requests: Sequence[Request]) -> list[Reply]:
            self.calls += 1
            if self.calls == 3:
                raise RuntimeError("out of memory")
            return super().act(requests)

    collector, policy = games(5, width=2), Fails()
    with pytest.raises(RuntimeError, match="out of memory"):
        collector.collect(policy, episodes=3)
    assert collector.get_state() == {"begun": 0}
    expected = plays(games(5, width=2).collect(Guesser(), episodes=3).trajectories)
    assert plays(collector.collect(policy, episodes=3).trajectories) == expected


def test_no_episode_is_lost_and_all_slots_are_used_after_the_environment_raises(monkeypatch):
    def step(self, action):
        raise BadValue("this die has no faces")

    expected, collector = (dice(4, width=2) for _ in range(2))
    with monkeypatch.context() as broken, pytest.raises(BadValue, match="no faces"):
        broken.setattr(Dice, "step", step)
        collector.collect(Guesser(), episodes=1)
    batch = collector.collect(Guesser(), episodes=1).trajectories
    assert plays(batch) == plays(expected.collect(Guesser(), episodes=1).trajectories)
    assert {t.slot for t in batch} == {0, 1, 2, 3}


@pytest.mark.parametrize("step", range(1, 16))
def test_a_trajectory_that_fails_is_played_again(step):
    expected = dice(2, width=2).collect(Guesser(), episodes=1)
    batch = dice(2, failing={step}, width=2).collect(Guesser(), episodes=1)
    assert (batch.failed, batch.dropped) == (1, 0)
    assert plays(batch.trajectories) == plays(expected.trajectories)


def test_an_episode_that_fails_repeatedly_is_replaced_and_counted():
    batch = dice(1, failing={1, 2, 3}, width=1).collect(Guesser(), episodes=2)
    assert (batch.failed, batch.dropped) == (3, 1)
    assert sorted({t.group_id for t in batch.trajectories}) == [1, 2]


def test_a_batch_of_failed_episodes_is_an_error():
    with pytest.raises(InfraError, match=r"2 episodes failed .*the server is down"):
        dice(2, failing=range(1000), width=1).collect(Guesser(), episodes=2)


def test_the_weights_of_the_trajectories_that_reach_a_turn_sum_to_one():
    plan = BranchPlan(width=3, turns=2, every=2)
    forks = [sum(plan.forks_at(turn) for turn in range(k + 1)) for k in range(8)]
    assert [plan.weight(k) * (1 + 3 * forks[k]) for k in range(8)] == pytest.approx([1.0] * 8)


class Unforkable(Env):
    def reset(self, seed: int | None = None):
        super().reset(seed)
        return "", {}


class Server(BaseTool):
    forkable = False

    def functions(self):
        return []


def test_what_cannot_be_forked_is_refused():
    with pytest.raises(BadValue, match=r"Unforkable cannot be forked: .* no self\.state"):
        check_forkable(Unforkable())
    game = make("game:GuessTheNumber-v0-easy")
    check_forkable(EnvWrapper(game))
    with pytest.raises(BadValue, match=r"tool Server .*forked"):
        check_forkable(EnvWrapper(ToolEnvWrapper(game, [Server])))


def test_invalid_plans_and_autoreset_are_refused():
    with pytest.raises(BadValue, match=r"branch_width .*at least 1.*got 0"):
        BranchPlan(width=0)
    with pytest.raises(BadValue, match="autoreset='disabled', got 'same_step'"):
        BranchCollector(make_vec("game:GuessTheNumber-v0-easy", num_envs=1), BranchPlan(), lambda number: 0)
