from collections import Counter

import pytest

from gem.core import StopReason
from gem.envs.games.grids.frozen_lake import (
    FrozenLakeEnv,
    Oracle,
    State,
    after,
    best_directions,
    distance,
    sideways,
)
from gem.errors import BadValue


def test_moves_stay_on_the_lake():
    assert [after(0, direction, 3) for direction in ("up", "left", "down", "right")] == [0, 0, 3, 1]
    assert [after(8, direction, 3) for direction in ("up", "left", "down", "right")] == [5, 7, 8, 8]
    assert set(sideways("up")) == {"left", "right"} and set(sideways("left")) == {"up", "down"}


def test_every_map_has_a_way_to_the_goal_that_is_short_enough():
    for size, holes in ((3, 0.5), (4, 0.25), (12, 0.4)):
        env = FrozenLakeEnv(size, holes)
        for seed in range(20):
            env.reset(seed=seed)
            assert distance(env.state.cells, size) <= env.turn_limit()


def test_the_oracle_takes_a_shortest_way_on_ice_that_is_not_slippery(play):
    env = FrozenLakeEnv(6, 0.3)
    oracle = Oracle(env)
    for seed in range(30):
        total, _ = play(env, oracle.act, seed)
        assert total == 1.0 and env.turn == distance(env.state.cells, 6)


def test_slippery_ice_moves_sideways_as_often_as_the_card_says():
    env, reached = FrozenLakeEnv(3, 0.0, slip=0.4), Counter()
    for seed in range(1000):
        env.reset(seed=seed)
        env.state = State(env.state.cells, 4)
        env.step(r"\boxed{up}")
        reached[env.state.where] += 1
    for cell, chance in ((1, 0.6), (3, 0.2), (5, 0.2)):
        assert abs(reached[cell] / 1000 - chance) < 4 * (chance * (1 - chance) / 1000) ** 0.5


def test_the_plan_has_the_value_of_an_exhaustive_search():
    cells, size, slip = "...O....G", 3, 0.5
    plan = best_directions(cells, size, slip, 5)

    def value(where, left, planned):
        if cells[where] != "." or left == 0:
            return float(cells[where] == "G")
        options = [plan[left - 1][where]] if planned else ["up", "right", "down", "left"]
        return max(
            (1 - slip) * value(after(where, move, size), left - 1, planned)
            + slip / 2 * sum(value(after(where, side, size), left - 1, planned) for side in sideways(move))
            for move in options
        )

    assert value(0, 5, planned=True) == pytest.approx(value(0, 5, planned=False), abs=1e-4) and value(0, 5, True) > 0.1


def test_a_hole_ends_the_game_without_a_reward():
    env = FrozenLakeEnv(3, 0.0)
    env.reset(seed=0)
    env.state = State(".O......G")
    step = env.step(r"\boxed{right}")
    assert (step.reward, step.terminated, step.info["stop_reason"]) == (0.0, True, StopReason.LOST)
    assert "You fall into a hole" in step.observation


@pytest.mark.parametrize("bad", [{"size": 2}, {"holes": 0.6}, {"slip": 1.0}, {"max_turns": 9}])
def test_wrong_arguments_are_named(bad):
    with pytest.raises(BadValue, match=next(iter(bad))):
        FrozenLakeEnv(**bad)
