"""GroupCollector: groups from one initial state, complete or dropped, and the same after a restart."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import pytest

from gem.core import Env, Step
from gem.errors import BadValue, InfraError
from gem.policies import Reply, Request
from gem.rollout import GroupCollector
from gem.seeding import stream
from gem.vector import VectorEnv, make_vec


class Guesser:
    """Guesses by the key of the request, as a model that samples does."""

    chat = max_prompt_tokens = None
    version = 0

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [Reply(rf"\boxed{{{stream(*r.key).randint(1, 10)}}}") for r in requests]


class Flaky(Env):
    """Two turns; the server fails in the first step of the episodes that are listed by their position."""

    played = 0
    failing: frozenset[int] = frozenset()

    def reset(self, seed: int | None = None):
        super().reset(seed)
        self.state, self.number = 0, Flaky.played
        Flaky.played += 1
        return f"seed {seed}", {}

    def step(self, action: str) -> Step:
        if self.number in self.failing:
            raise InfraError("the server is down")
        self.state += 1
        return Step("next", float(len(action)), terminated=self.state == 2)


def games(slots: int, size: int, **options: object) -> GroupCollector:
    vec_env = make_vec("game:GuessTheNumber-v0-easy", num_envs=slots, autoreset="disabled")
    return GroupCollector(vec_env, size, lambda group: 100 + group, **options)  # type: ignore[arg-type]


def flaky(slots: int, failing: Collection[int]) -> GroupCollector:
    Flaky.played, Flaky.failing = 0, frozenset(failing)
    return GroupCollector(VectorEnv.of([Flaky] * slots, "disabled"), 3, lambda group: group)


def plays(trajectories) -> list[tuple[object, int, list[str]]]:
    return [(t.group_id, t.seed, [turn.action for turn in t.turns]) for t in trajectories]


@pytest.mark.parametrize("slots", [1, 4, 7])
def test_the_members_of_a_group_start_from_one_state_and_play_differently(slots):
    batch = games(slots, 4).collect(Guesser(), groups=3).trajectories
    groups = [batch[i : i + 4] for i in range(0, 12, 4)]
    for group in groups:
        assert len({t.group_id for t in group}) == 1
        assert {t.seed for t in group} == {100 + group[0].group_id}
        assert len({t.turns[0].observation for t in group}) == 1
        assert len({tuple(turn.action for turn in t.turns) for t in group}) > 1


def test_what_a_group_plays_does_not_depend_on_the_slots():
    def by_number(slots: int) -> dict[object, list[object]]:
        batch = games(slots, 2).collect(Guesser(), groups=8).trajectories
        return {t.episode: plays([t]) for t in batch}

    one, five = by_number(1), by_number(5)
    assert all(five[n] == one[n] for n in five.keys() & one.keys()) and len(five.keys() & one.keys()) >= 12


def test_incomplete_groups_are_carried_over_and_none_is_lost():
    collector = games(5, 3)
    seen = [t.episode for _ in range(6) for t in collector.collect(Guesser(), groups=2).trajectories]
    assert len(set(seen)) == len(seen) == 36
    assert {n // 3 for n in range(24)} <= {n // 3 for n in seen}


def test_a_failed_member_is_played_again_from_the_same_state():
    batch = flaky(2, failing={1}).collect(Guesser(), groups=2)
    assert (batch.failed, batch.dropped) == (1, 0)
    assert [(t.group_id, t.seed, t.failure) for t in batch.trajectories] == [(g, g, None) for g in (0, 0, 0, 1, 1, 1)]


def test_a_group_that_stays_incomplete_is_dropped_and_counted():
    batch = flaky(1, failing={1, 2, 3}).collect(Guesser(), groups=2)
    assert (batch.failed, batch.dropped) == (3, 1)
    assert [t.group_id for t in batch.trajectories] == [1, 1, 1, 2, 2, 2]


def test_a_batch_of_failed_groups_is_an_error():
    with pytest.raises(InfraError, match=r"2 groups .*the server is down"):
        flaky(2, failing=range(1000)).collect(Guesser(), groups=2)


def test_groups_with_equal_returns_are_counted_and_replaced_on_request():
    plain = games(4, 2).collect(Guesser(), groups=10)
    refilled = games(4, 2).collect(Guesser(), groups=10, refill=True)
    assert plain.equal > 0
    pairs = zip(refilled.trajectories[::2], refilled.trajectories[1::2], strict=True)
    assert all(a.total_reward != b.total_reward for a, b in pairs)


def test_refilling_ends_where_all_groups_have_equal_returns():
    collector = flaky(2, failing=())
    policy = Guesser()
    policy.act = lambda requests: [Reply("same") for _ in requests]  # type: ignore[method-assign]
    batch = collector.collect(policy, groups=2, refill=True)
    assert (len(batch.trajectories), batch.equal) == (6, 8)


def test_a_restored_collector_returns_the_same_groups():
    whole, stopped = games(5, 3), games(5, 3)
    for collector in (whole, stopped):
        collector.collect(Guesser(), groups=2)
    state = json.loads(json.dumps(stopped.get_state()))
    resumed = games(5, 3)
    resumed.set_state(state)
    expected = whole.collect(Guesser(), groups=6).trajectories
    assert plays(resumed.collect(Guesser(), groups=6).trajectories) == plays(expected)


def test_a_restored_collector_still_counts_failures_before_a_policy_error():
    class Fails(Guesser):
        calls = 0

        def act(self, requests: Sequence[Request]) -> list[Reply]:
            self.calls += 1
            if self.calls == 2:
                raise RuntimeError("out of memory")
            return super().act(requests)

    stopped = flaky(1, failing={0})
    with pytest.raises(RuntimeError, match="out of memory"):
        stopped.collect(Fails(), groups=1)
    state = json.loads(json.dumps(stopped.get_state()))
    resumed = flaky(1, failing=())
    resumed.set_state(state)
    assert resumed.collect(Guesser(), groups=1).failed == 1


def test_groups_need_a_member_and_no_autoreset():
    with pytest.raises(BadValue, match=r"size .*at least 1, got 0"):
        games(1, 0)
    with pytest.raises(BadValue, match="autoreset='disabled', got 'same_step'"):
        GroupCollector(make_vec("game:GuessTheNumber-v0-easy", num_envs=1), 2, lambda group: group)
