from collections import Counter

import pytest

from gem.envs.games.grids.rush_hour import (
    Oracle,
    RushHourEnv,
    State,
    distances,
    drawn,
    levels,
    masks_of,
    neighbors,
    read_map,
    solved,
    upside_down,
)
from gem.errors import BadValue

FREE = "." * 12 + "XX.A.." + "...A.." + "." * 12  # one vertical car of two cells stands in the way


def test_a_map_is_read_and_drawn():
    state = read_map(FREE)
    assert [(car.name, car.lane, car.length, car.horizontal) for car in state.cars] == [
        ("X", 2, 2, True),
        ("A", 3, 2, False),
    ]
    assert state.offsets == (0, 2) and drawn(state) == FREE
    for _, cells in levels():
        assert drawn(read_map(cells)) == cells and upside_down(upside_down(cells)) == cells


def test_cars_slide_along_their_length_as_far_as_the_way_is_free():
    state = read_map(FREE)
    moves = {after for after in neighbors(masks_of(state.cars), state.offsets)}
    assert moves == {(1, 2), (0, 0), (0, 1), (0, 3), (0, 4)}
    assert distances(state.cars, state.offsets)[state.offsets] == 2


def test_every_level_has_no_car_out_of_place_and_two_or_three_cells_each():
    for _, cells in levels():
        counts = Counter(cells)
        assert counts["X"] == 2 and cells.index("X") // 6 == 2 and set(counts.values()) - {counts["."]} <= {2, 3}
        assert not solved(read_map(cells).offsets)
    assert len({cells for _, cells in levels()}) == len(levels())


@pytest.mark.parametrize("arguments", [(3, 5, 10), (6, 9, 20), (10, 14, 30)])
def test_the_shortest_solution_has_as_many_moves_as_stored(arguments, play):
    moves = {**{cells: n for n, cells in levels()}, **{upside_down(cells): n for n, cells in levels()}}
    env = RushHourEnv(*arguments)
    for seed in range(4):
        env.reset(seed=seed)
        start = drawn(env.state)
        state = read_map(start)
        assert distances(state.cars, state.offsets)[state.offsets] == moves[start]
        total, _ = play(env, Oracle(env).act, seed)
        assert total == 1.0 and env.turn == moves[start]


def test_a_blocked_way_is_an_invalid_move():
    env = RushHourEnv()
    env.reset(seed=0)
    env.state = read_map(FREE)
    for action, reason in (("X right 2", "blocked"), ("A left", "across_its_length"), ("B up", "no_such_car")):
        step = env.step(rf"\boxed{{{action}}}")
        assert step.info["invalid"] == reason and env.state == State(*vars(read_map(FREE)).values())


@pytest.mark.parametrize("bad", [{"least_moves": 2}, {"most_moves": 15}, {"least_moves": 9, "most_moves": 8}])
def test_wrong_numbers_of_moves_are_named(bad):
    with pytest.raises(BadValue, match=next(iter(bad))):
        RushHourEnv(**bad)
    with pytest.raises(BadValue, match="max_turns"):
        RushHourEnv(max_turns=5)
