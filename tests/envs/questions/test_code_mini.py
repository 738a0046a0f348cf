"""code:Mini: the tasks are distinct, the references are correct, and the tests tell correct from wrong programs."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from fractions import Fraction

import pytest

import gem
from gem.datasets.rows import key_of
from gem.envs.questions.code_env import CodeEnv, fenced
from gem.envs.questions.code_solutions import CodeOracle, reference, solutions
from gem.errors import BadValue
from gem.graders.code import CodeGrader
from gem.graders.code.tests import read_tests
from gem.sandbox import Limits, get_sandbox

ROWS = CodeEnv("gem:code/mini.jsonl").dataset
IDS = [row["id"] for row in ROWS]
GRADER = CodeGrader(limits=Limits(wall_s=20.0))


def graded(program, row):
    return GRADER.grade(program, read_tests(row["tests"]), get_sandbox())


# The tasks


def test_there_are_at_least_forty_tasks_with_distinct_ids_and_statements():
    assert len(ROWS) == len(set(IDS)) == len({row["problem"] for row in ROWS}) >= 40


def test_no_two_statements_differ_only_in_numbers():
    assert len({"".join(c for c in row["problem"] if not c.isdigit()) for row in ROWS}) == len(ROWS)


def test_a_statement_describes_input_and_output_and_shows_the_first_test_as_an_example():
    for row in ROWS:
        (text, *_), tests = row["problem"].split("\n\nExample"), row["tests"]
        given, expected = tests["inputs"][0], tests["outputs"][0]
        if name := tests.get("fn_name"):
            assert f"{name}(" in text and "return" in text, row["id"]
            example = f"\n\nExample: {name}({', '.join(map(repr, given))}) returns {expected!r}."
        else:
            assert "Print" in text, row["id"]
            example = f"\n\nExample input:\n{given.rstrip()}\n\nExample output:\n{expected.rstrip()}"
        assert row["problem"].endswith(example), row["id"]


def test_both_forms_of_tests_and_all_levels_of_difficulty_are_there():
    assert Counter("fn_name" in row["tests"] for row in ROWS)[True] >= 15
    assert Counter("fn_name" in row["tests"] for row in ROWS)[False] >= 15
    assert {row["difficulty"] for row in ROWS} == {1, 2, 3}


def test_rows_are_named_by_their_task():
    assert [key_of(row) for row in ROWS] == IDS


# The tests of a task


def test_a_task_has_about_ten_distinct_tests_all_of_which_the_environment_runs():
    for row in ROWS:
        suite = read_tests(row["tests"])
        assert 8 <= len(suite.tests) <= CodeEnv.max_tests, row["id"]
        assert len({json.dumps(given) for given in row["tests"]["inputs"]}) == len(suite.tests), row["id"]
        assert len(json.dumps(row)) < 40_000, row["id"]


def test_no_answer_is_that_of_more_than_half_the_tests():
    for row in ROWS:
        outputs = Counter(map(json.dumps, row["tests"]["outputs"]))
        assert max(outputs.values()) <= outputs.total() / 2, row["id"]


@pytest.mark.slow
def test_the_reference_passes():
    for row in ROWS:
        grade = graded(reference(row["id"]), row)
        assert grade.correct, (row["id"], grade.reason)


@pytest.mark.slow
def test_programs_that_do_nothing_or_repeat_their_input_fail():
    for row in ROWS:
        name = row["tests"].get("fn_name")
        nothing = f"def {name}(*given): return None" if name else "print()"
        echo = f"def {name}(*given): return given[0]" if name else "import sys\nprint(sys.stdin.read())"
        assert graded(nothing, row).reward == graded(echo, row).reward == 0.0, row["id"]


def test_the_references_of_functions_do_not_change_their_arguments():
    for row in ROWS:
        if name := row["tests"].get("fn_name"):
            scope = {}
            exec(reference(row["id"]), scope)
            kept = json.dumps(row["tests"]["inputs"])
            assert [scope[name](*given) for given in row["tests"]["inputs"]] == row["tests"]["outputs"]
            assert json.dumps(row["tests"]["inputs"]) == kept, row["id"]


def test_every_task_has_one_reference_and_a_task_of_another_data_set_has_none():
    assert [solution.task for solution in solutions("mini")] == IDS
    assert not {solution.task for solution in solutions("warmup")} & set(IDS)
    with pytest.raises(BadValue, match=r"reference solution .*'HumanEval/0'"):
        reference("HumanEval/0")


# The environment


def test_the_oracle_solves_a_task_of_either_form_in_the_default_sandbox():
    env = gem.make("code:Mini", seed=0, timeout=20.0)
    for name in ("wrapped-letter", "harbour-view"):
        observation, _ = env.reset(idx=IDS.index(name))
        assert ROWS[IDS.index(name)]["problem"] in observation
        assert env.step(CodeOracle(env).act(observation)).reward == 1.0


def test_the_reward_can_be_the_fraction_of_tests_passed():
    env = gem.make("code:Mini", reward="fraction", timeout=20.0)
    env.reset(seed=0, idx=IDS.index("two-tables"))
    step = env.step(fenced("def two_tables(guests, quarrels): return []"))
    assert 0 < step.reward < 1 and not step.info["correct"]


# Slow but obvious implementations of tasks whose references are neither


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


def evaluated(text):
    return "\n".join(str(eval(line)) for line in text.strip().split("\n"))


TWINS = {  # task: (slow implementation, longest input in characters of JSON that it handles within about a second)
    "climbing-numbers": (climbing, 14),
    "calm-stretch": (calm, 1000),
    "fewest-swaps": (swaps, 5000),
    "largest-square": (square, 11000),
    "spreading-rumour": (rumour, 2000),
    "two-tables": (tables, 120),
    "cable-plan": (cables, 1500),
    "round-table-gifts": (gifts, 80),
    "fullest-backpack": (backpack, 120),
    "up-and-down": (picked, 50),
    "ways-to-read": (readings, 80),
    "shelf-width": (shelves, 90),
    "painted-area": (painted, 1000),
    "crossing-paths": (crossings, 1000),
    "stretched-rope": (rope, 200),
    "lighthouses": (lights, 26),
    "overtakings": (overtaken, 1000),
    "cheapest-journey": (journey, 4000),
    "river-crossing": (river, 100),
    "exact-reckoning": (evaluated, 600),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_the_expected_outputs_agree_with_a_slow_implementation(name):
    tests, (twin, longest) = ROWS[IDS.index(name)]["tests"], TWINS[name]
    small = [
        pair for pair in zip(tests["inputs"], tests["outputs"], strict=True) if len(json.dumps(pair[0])) <= longest
    ]
    assert len(small) >= 5
    for given, expected in small:
        assert (twin(*given) if "fn_name" in tests else f"{twin(given)}\n") == expected, given
