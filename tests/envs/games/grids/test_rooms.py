import random
from collections import deque
from dataclasses import replace

import pytest

import gem
from gem.envs.games.grids.rooms import RoomsEnv, seen
from gem.envs.games.grids.rooms_world import CARRIED, MOVES, Door, State, Thing, after, is_done, plan
from gem.errors import BadValue

# Two rooms side by side: the agent, facing east, in the left one; the door between them is blue and locked.
MAP = ["#########", "#...#...#", "#.......#", "#...#...#", "#########"]
WIDTH, ROWS = len(MAP[0]), len(MAP)
START = State(
    walls="".join(MAP),
    width=WIDTH,
    things=(Thing("blue key", 1 * WIDTH + 3), Thing("red ball", 1 * WIDTH + 6), Thing("grey box", 3 * WIDTH + 7)),
    doors=(Door("blue door", 2 * WIDTH + 4, "locked"),),
    where=2 * WIDTH + 1,
    facing=1,
    task=("pick up", "red ball", ""),
)


def played(state, *moves):
    for move in moves:
        state, _, invalid = after(state, move)
        assert invalid is None, move
    return state


def fewest(state):
    """Return the least number of moves that do the task, by breadth-first search over all states."""
    queue, found = deque([(state, 0)]), {repr(state)}
    while True:
        before, moves = queue.popleft()
        for move in MOVES:
            then, _, invalid = after(before, move)
            if invalid is None and repr(then) not in found:
                if is_done(then):
                    return moves + 1
                found.add(repr(then))
                queue.append((then, moves + 1))


def test_a_locked_door_opens_with_the_key_of_its_color_only():
    before = played(START, "forward", "forward")
    assert after(before, "forward")[2] == "blocked" and after(before, "toggle")[2] == "locked"
    assert after(before, "drop")[2] == "nothing_carried" and after(before, "pick up")[2] == "nothing_there"
    with_key = played(before, "left", "pick up", "right", "toggle")
    assert with_key.doors[0].status == "open" and with_key.carried().name == "blue key"
    assert played(with_key, "toggle").doors[0].status == "closed"
    other = replace(before, things=(Thing("red key", CARRIED), *START.things[1:]))
    assert after(other, "toggle")[2] == "locked"


def test_things_are_carried_one_at_a_time_and_put_on_empty_floor():
    held = played(START, "forward", "forward", "left", "pick up")
    assert played(held, "left", "drop").things[0].cell == held.where - 1
    at_ball = replace(held, where=2 * WIDTH + 6, facing=0)
    assert after(at_ball, "pick up")[2] == "hands_full" and after(at_ball, "drop")[2] == "no_space"


def test_walls_and_closed_doors_hide_what_is_behind_them():
    inside = {cell for cell in seen(START) if cell is not None}
    assert START.doors[0].cell in inside and START.things[0].cell in inside
    assert START.things[1].cell not in inside and START.things[2].cell not in inside
    opened = replace(START, doors=(replace(START.doors[0], status="open"),))
    assert {thing.cell for thing in START.things} <= set(seen(opened))
    behind = replace(opened, facing=3)
    assert not {thing.cell for thing in START.things[1:]} & set(seen(behind))


def test_what_is_seen_is_told_relative_to_the_agent():
    env = RoomsEnv()
    env.reset(seed=0)
    env.state = START
    assert env.board().splitlines()[-1] == (
        "You face east. You see: a blue key 2 ahead and 1 left; a locked blue door 3 ahead."
    )
    env.step(r"\boxed{turn left}")
    assert (
        env.board().splitlines()[-1]
        == "You face north. You see: a blue key 1 ahead and 2 right; a locked blue door 3 right."
    )


@pytest.mark.parametrize(
    ("task", "moves"),
    [
        (("pick up", "blue key", ""), ["forward", "forward", "left", "pick up"]),
        (("open", "blue door", ""), ["forward", "forward", "left", "pick up", "right", "toggle"]),
        (("go to", "blue key", ""), ["forward", "forward", "left"]),
    ],
)
def test_plans_of_short_tasks(task, moves):
    assert plan(replace(START, task=task)) == moves


@pytest.mark.parametrize(
    "task",
    [
        ("pick up", "red ball", ""),
        ("go to", "grey box", ""),
        ("put", "red ball", "grey box"),
        ("put", "blue key", "red ball"),
    ],
)
def test_plans_take_few_moves_more_than_necessary(task):
    state = replace(START, task=task)
    moves = plan(state)
    assert is_done(played(state, *moves)) and fewest(state) <= len(moves) <= fewest(state) + 6


def test_a_task_behind_a_locked_door_without_a_key_has_no_plan():
    assert plan(replace(START, things=START.things[1:])) is None
    behind = (replace(START.things[0], cell=1 * WIDTH + 7), *START.things[1:])
    assert plan(replace(START, things=behind)) is None


def test_a_key_that_is_held_is_put_down_where_it_blocks_nothing():
    held = played(START, "forward", "forward", "left", "pick up", "right", "toggle")
    then = played(held, *plan(held))
    key = next(thing for thing in then.things if thing.name == "blue key")
    assert then.carried().name == "red ball" and key.cell != CARRIED


@pytest.mark.parametrize("env_id", ["game:Rooms-v0", "game:Rooms-v0-easy", "game:Rooms-v0-hard"])
def test_every_task_is_solved_by_its_plan_in_half_of_the_turns(env_id):
    env = gem.make(env_id)
    for seed in range(15):
        env.reset(seed=seed)
        moves = plan(env.state)
        assert env.least_moves <= len(moves) <= env.max_turns // 2
        total = sum(env.step(rf"\boxed{{{move}}}").reward for move in moves)
        assert env.over and total == 1.0


def test_the_oracle_recovers_from_random_moves():
    env, won = gem.make("game:Rooms-v0"), 0
    for seed in range(12):
        env.reset(seed=seed)
        rng, oracle = random.Random(seed), gem.policies.oracle(env)
        while not env.over:
            step = env.step(env.sample_random_action() if rng.random() < 0.2 else oracle.act(""))
        won += step.reward == 1.0
    assert won >= 11


def test_rooms_are_connected_and_names_are_unique():
    env = RoomsEnv(3, 3, 4, 7, 2, max_turns=200)
    for seed in range(5):
        env.reset(seed=seed)
        state, names = env.state, [item.name for item in (*env.state.things, *env.state.doors)]
        assert len(set(names)) == len(names) and len({thing.cell for thing in state.things}) == len(state.things)
        assert sum(door.status == "locked" for door in state.doors) == 2
        opened = replace(state, things=(), doors=())
        floor = {cell for cell, sign in enumerate(state.walls) if sign == "."}
        reached, waiting = {state.where}, [state.where]
        while waiting:
            near = {cell + step for cell in [waiting.pop()] for step in opened.steps()} & floor - reached
            reached |= near
            waiting += near
        assert reached == floor


def test_rooms_without_a_task_that_is_long_enough_are_refused_and_not_drawn_forever():
    env = RoomsEnv(1, 2, 3, 2, 0, ("open",), least_moves=20)
    with pytest.raises(BadValue, match="lower least_moves"):
        env.reset(seed=0)


def test_next_to_is_not_diagonally():
    ball = replace(START, task=("put", "red ball", "grey box"))
    placed = [replace(ball.things[1], cell=ball.things[2].cell + step) for step in (-1, -WIDTH, -WIDTH - 1)]
    done = [is_done(replace(ball, things=(ball.things[0], thing, ball.things[2]))) for thing in placed]
    assert done == [True, True, False]


@pytest.mark.parametrize(
    "bad",
    [
        {"max_turns": 7},
        {"rows": 0},
        {"columns": 5},
        {"size": 2},
        {"objects": 1},
        {"locked": 4},
        {"least_moves": 21},
        {"tasks": ("fly",)},
    ],
)
def test_wrong_arguments_are_named(bad):
    with pytest.raises(BadValue, match=next(iter(bad))):
        RoomsEnv(**bad)
    with pytest.raises(BadValue, match="columns"):
        RoomsEnv(1, 1, locked=0)
