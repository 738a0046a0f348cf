"""code:Mini: its tasks are different, its references right, its tests tell right programs from wrong ones."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from fractions import Fraction

import pytest

from gem.datasets import key_of
from gem.envs.code_env import CodeEnv, fenced
from gem.envs.code_mini.env import CodeMiniEnv, Oracle
from gem.envs.code_mini.rows import TASKS, MiniRows, reference
from gem.envs.code_mini.task import MOST_TESTS, SIZES, Script
from gem.errors import BadValue
from gem.graders.code import CodeGrader
from gem.graders.code_tests import read_tests
from gem.sandbox import Limits, get_sandbox
from gem.seeding import stream

ROWS = MiniRows()
IDS = list(TASKS)
GRADER = CodeGrader(limits=Limits(wall_s=20.0))


def graded(program, row):
    return GRADER.grade(program, read_tests(row["tests"]), get_sandbox("subprocess"))


def outputs(row):
    return [json.dumps(output) for output in row["tests"]["outputs"]]


# The tasks


def test_there_are_at_least_forty_tasks_and_no_two_have_the_same_id_or_statement():
    assert len(ROWS) == len(TASKS) >= 40
    assert len({row["id"] for row in ROWS}) == len({row["problem"] for row in ROWS}) == len(ROWS)


def test_no_two_statements_differ_only_in_numbers():
    assert len({"".join(c for c in row["problem"] if not c.isdigit()) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("name", IDS)
def test_the_example_worked_out_by_hand_is_what_the_reference_finds(name):
    task = TASKS[name]
    given, expected = task.example
    assert task.answer(given) == (f"{expected}\n" if isinstance(task, Script) else expected)


@pytest.mark.parametrize("name", IDS)
def test_a_statement_says_how_input_and_output_look_and_shows_an_example(name):
    task, row = TASKS[name], ROWS[IDS.index(name)]
    for part in ("Example input:", "Print") if isinstance(task, Script) else (f"{task.solve.__name__}(", "return"):
        assert part in row["problem"]
    assert row["tests"]["inputs"][0] == task.example[0]


def test_both_forms_of_tests_and_all_levels_of_difficulty_are_there():
    assert Counter("fn_name" in row["tests"] for row in ROWS)[True] >= 15
    assert Counter("fn_name" in row["tests"] for row in ROWS)[False] >= 15
    assert {row["difficulty"] for row in ROWS} == {1, 2, 3}


# The tests of a task


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_task_has_about_ten_tests_all_of_which_the_environment_runs(row):
    suite = read_tests(row["tests"])
    assert 8 <= len(suite.tests) <= MOST_TESTS == CodeEnv.max_tests
    assert len(json.dumps(row)) < 40_000


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_no_answer_is_that_of_more_than_half_the_tests(row):
    assert max(Counter(outputs(row)).values()) <= len(outputs(row)) / 2


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_the_reference_passes(row):
    grade = graded(reference(row), row)
    assert grade.correct, grade.reason


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_programs_that_do_nothing_or_repeat_their_input_fail(row):
    name = row["tests"].get("fn_name")
    nothing = f"def {name}(*given): return None" if name else "print()"
    echo = f"def {name}(*given): return given[0]" if name else "import sys\nprint(sys.stdin.read())"
    assert graded(nothing, row).reward == graded(echo, row).reward == 0.0


def test_the_references_change_no_arguments():
    for row in ROWS:
        kept = json.dumps(row["tests"]["inputs"])
        for given in row["tests"]["inputs"]:
            TASKS[row["id"]].answer(given)
        assert json.dumps(row["tests"]["inputs"]) == kept, row["id"]


# Rows


def test_the_same_seed_gives_the_same_rows_and_another_one_other_inputs():
    again = [TASKS[name].tests(stream("code:Mini", 0, name)) for name in IDS]
    assert [row["tests"] for row in ROWS] == again
    for row, other in zip(ROWS, MiniRows(seed=1), strict=True):
        assert row["problem"] == other["problem"] and row["tests"]["inputs"] != other["tests"]["inputs"], row["id"]


def test_rows_are_named_by_their_task():
    assert [key_of(row) for row in ROWS] == IDS and ROWS[-1] == ROWS[len(ROWS) - 1]


def test_what_is_no_seed_is_refused():
    with pytest.raises(BadValue, match="seed"):
        MiniRows(seed=-1)


def test_a_row_of_other_data_has_no_reference():
    with pytest.raises(BadValue, match="no task 'bus-stops'"):
        reference({"id": "bus-stops"})


# The environment


def test_the_oracle_solves_a_task_of_either_form_in_the_default_sandbox():
    env = CodeMiniEnv(seed=0, timeout=20.0)
    for name in ("wrapped-letter", "harbour-view"):
        observation, _ = env.reset(idx=IDS.index(name))
        assert TASKS[name].statement in observation
        assert env.step(Oracle(env).act(observation)).reward == 1.0


def test_a_share_of_the_tests_can_be_paid():
    env = CodeMiniEnv(reward="fraction", sandbox_type="subprocess", timeout=20.0)
    env.reset(seed=0, idx=IDS.index("two-tables"))
    step = env.step(fenced("def two_tables(guests, quarrels): return []"))
    assert 0 < step.reward < 1 and not step.info["correct"]


# Slow and obvious twins of references that are neither


def climbing(low, high):
    return sum(list(str(n)) == sorted(str(n)) for n in range(low, high + 1))


def calm(readings, spread):
    spans = itertools.combinations(range(len(readings) + 1), 2)
    return max((b - a for a, b in spans if max(readings[a:b]) - min(readings[a:b]) <= spread), default=0)


def swaps(order):
    order, moves = list(order), 0
    for place, book in enumerate(sorted(order)):
        if order[place] != book:
            other = order.index(book)
            order[place], order[other], moves = order[other], order[place], moves + 1
    return moves


def square(plan):
    free = lambda i, j, side: all(row[j : j + side] == "." * side for row in plan[i : i + side])  # noqa: E731
    found = [0]
    for i, j in itertools.product(range(len(plan)), range(len(plan[0]))):
        found += [side for side in range(1, min(len(plan) - i, len(plan[0]) - j) + 1) if free(i, j, side)]
    return max(found)


def rumour(friends, people):
    knowing, evenings = {0}, 0
    while len(knowing) < people:
        more = knowing | {b for pair in friends for a, b in (pair, pair[::-1]) if a in knowing}
        if more == knowing:
            return -1
        knowing, evenings = more, evenings + 1
    return evenings


def tables(guests, quarrels):
    for seats in itertools.product((0, 1), repeat=guests):
        if all(seats[a] != seats[b] for a, b in quarrels):
            return list(seats)
    return []


def cables(houses):
    circle, total = list(range(len(houses))), 0
    lengths = sorted(
        (abs(a - c) + abs(b - d), i, j) for i, (a, b) in enumerate(houses) for j, (c, d) in enumerate(houses[:i])
    )
    for length, i, j in lengths:
        if circle[i] != circle[j]:
            total, circle = total + length, [circle[i] if c == circle[j] else c for c in circle]
    return total


def gifts(values):
    return max(
        sum(v for v, taken in zip(values, choice, strict=True) if taken)
        for choice in itertools.product((0, 1), repeat=len(values))
        if len(values) == 1 or not any(choice[i - 1] and choice[i] for i in range(len(values)))
    )


def backpack(things, strength):
    packed = [
        (sum(use for _, use in chosen), -sum(weight for weight, _ in chosen))
        for count in range(len(things) + 1)
        for chosen in itertools.combinations(things, count)
    ]
    use, weight = max(found for found in packed if -found[1] <= strength)
    return [use, -weight]


def picked(heights):
    def fits(row):
        top = row.index(max(row))
        return all(a < b for a, b in itertools.pairwise(row[: top + 1])) and all(
            a > b for a, b in itertools.pairwise(row[top:])
        )

    rows = (c for count in range(1, len(heights) + 1) for c in itertools.combinations(heights, count))
    return max(len(row) for row in rows if fits(row))


def readings(letters, vocabulary):
    return (
        1 if not letters else sum(readings(letters[len(w) :], vocabulary) for w in vocabulary if letters.startswith(w))
    )


def shelves(thicknesses, count):
    if count == 1 or len(thicknesses) == 1:
        return sum(thicknesses)
    ways = range(1, len(thicknesses) + 1)
    return min(max(sum(thicknesses[:n]), shelves(thicknesses[n:], count - 1) if thicknesses[n:] else 0) for n in ways)


def painted(posters):
    return len({(x, y) for a, b, c, d in posters for x in range(a, c) for y in range(b, d)})


def crossings(paths):
    def meet(one, other):
        (a, b, c, d), (e, f, g, h) = one, other
        det = (c - a) * (h - f) - (d - b) * (g - e)
        if det:
            t = Fraction((e - a) * (h - f) - (f - b) * (g - e), det)
            u = Fraction((e - a) * (d - b) - (f - b) * (c - a), det)
            return 0 <= t <= 1 and 0 <= u <= 1
        if (c - a) * (f - b) != (d - b) * (e - a):
            return False
        ends = [((x - a) * (c - a) + (y - b) * (d - b)) for x, y in ((a, b), (c, d), (e, f), (g, h))]
        return max(ends[:2]) >= min(ends[2:]) and max(ends[2:]) >= min(ends[:2])

    return sum(meet(one, other) for one, other in itertools.combinations(paths, 2))


def rope(nails):
    """A point is a corner where it is in no triangle of others, and on no line between two."""

    def turn(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    def covered(p):
        rest = [q for q in nails if q != p]
        return any(
            (turn(a, b, p) >= 0 and turn(b, c, p) >= 0 and turn(c, a, p) >= 0 and turn(a, b, c) > 0)
            or (turn(a, b, p) == 0 and sum((u - v) * (w - v) for u, v, w in zip(a, p, b, strict=True)) < 0)
            for a, b, c in itertools.permutations(rest, 3)
        )

    corners = sorted(p for p in nails if not covered(p)) if len(nails) > 3 else sorted(nails)
    ring = [corners.pop(0)]
    while corners:
        ring.append(next(q for q in corners if all(turn(ring[-1], q, r) >= 0 for r in corners)))
        corners.remove(ring[-1])
    return ring


def lights(text):
    lamps = [tuple(map(int, line.split())) for line in text.strip().split("\n")[1:]]
    horizon = max(offset for offset, _ in lamps) + 1
    for _, period in lamps:
        horizon *= period
    times = (s for s in range(min(horizon, 200_000)) if all(s >= a and (s - a) % p == 0 for a, p in lamps))
    return str(next(times, "never"))


def overtaken(text):
    _, start, arrival = ([int(token) for token in line.split()] for line in text.strip().split("\n"))
    return str(sum(start.index(a) > start.index(b) for a, b in itertools.combinations(arrival, 2)))


def journey(text):
    (_, first, last), *buses = [line.split() for line in text.strip().split("\n")]
    paid = {first: 0}
    for _ in buses:
        for start, end, price in buses:
            if start in paid:
                paid[end] = min(paid.get(end, 10**9), paid[start] + int(price))
    return str(paid.get(last, "no way"))


def river(text):
    _, *rows = [[int(token) for token in line.split()] for line in text.strip().split("\n")]

    def cross(row, column):
        if not 0 <= row < len(rows):
            return 10**9
        rest = min(cross(row + step, column + 1) for step in (-1, 0, 1)) if column + 1 < len(rows[0]) else 0
        return rows[row][column] + rest

    return str(min(cross(row, 0) for row in range(len(rows))))


def reckoned(text):
    return "\n".join(str(eval(line)) for line in text.strip().split("\n"))


TWINS = {
    "climbing-numbers": (climbing, 12),
    "calm-stretch": (calm, 20),
    "fewest-swaps": (swaps, 80),
    "largest-square": (square, 40),
    "spreading-rumour": (rumour, 80),
    "two-tables": (tables, 12),
    "cable-plan": (cables, 40),
    "round-table-gifts": (gifts, 12),
    "fullest-backpack": (backpack, 12),
    "up-and-down": (picked, 12),
    "ways-to-read": (readings, 12),
    "shelf-width": (shelves, 12),
    "painted-area": (painted, 150),
    "crossing-paths": (crossings, 80),
    "stretched-rope": (rope, 12),
    "lighthouses": (lights, 20),
    "overtakings": (overtaken, 12),
    "cheapest-journey": (journey, 80),
    "river-crossing": (river, 12),
    "exact-reckoning": (reckoned, 80),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_reference_agrees_with_its_slow_twin(name):
    task, (twin, most) = TASKS[name], TWINS[name]
    rng = random.Random(7)
    for size in [size for size in SIZES if size <= most] * 3:
        given = task.draw(rng, size)
        expected = twin(given) if isinstance(task, Script) else twin(*given)
        assert task.answer(given) == (f"{expected}\n" if isinstance(task, Script) else expected), given
