"""Tasks about lists."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import deque

from gem.envs.code_mini.task import Function, Script, Task, integers, lines, word


def harbour_view(heights: list[int]) -> list[int]:
    """Houses stand in a row that ends at the harbour. One looks over all houses between it and the harbour when it is
    higher than each of them; the last one always does.

    harbour_view(heights) takes the heights of the houses, positive integers, the last one next to the harbour, and
    returns the heights of those that see it, in the order of the row. There are up to 5000 houses, and there may be
    none.
    """
    seen: list[int] = []
    for height in reversed(heights):
        if not seen or height > seen[-1]:
            seen.append(height)
    return seen[::-1]


def calm_stretch(readings: list[int], spread: int) -> int:
    """A stretch of readings that follow each other is calm when its largest and its smallest differ by no more than a
    given spread.

    calm_stretch(readings, spread) takes up to 5000 integers and the spread, at least 0, and returns the length of the
    longest calm stretch; 0 where there are no readings.
    """
    longest, start = 0, 0
    highs: deque[int] = deque()
    lows: deque[int] = deque()
    for end, reading in enumerate(readings):
        while highs and readings[highs[-1]] <= reading:
            highs.pop()
        while lows and readings[lows[-1]] >= reading:
            lows.pop()
        highs.append(end)
        lows.append(end)
        while readings[highs[0]] - readings[lows[0]] > spread:
            start += 1
            if highs[0] < start:
                highs.popleft()
            if lows[0] < start:
                lows.popleft()
        longest = max(longest, end - start + 1)
    return longest


def race_table(text: str) -> str:
    """Make the table of a competition. More points are better. Who has as many points as others shares their place, and
    the places after them stay empty: 1, 2, 2, 4. Those who share a place stand in alphabetical order.

    The first line holds the number of players n (1 to 500). Each of the n lines that follow holds a name, of letters
    a to z, and the points, an integer of at least 0. No name comes twice.

    Print one line for each player: place, name and points.
    """
    tokens = text.split()[1:]
    players = sorted((-int(points), name) for name, points in zip(tokens[::2], tokens[1::2], strict=True))
    totals = [total for total, _ in players]
    return "\n".join(f"{bisect_left(totals, total) + 1} {name} {-total}" for total, name in players)


def draw_race(rng: random.Random, size: int) -> str:
    names = sorted({word(rng, rng.randint(3, 7)) for _ in range(size)})
    rng.shuffle(names)
    return lines(len(names), *((name, rng.randint(0, 12)) for name in names))


def seesaw(weights: list[int]) -> list[int]:
    """Weights stand at the places 0, 1, 2, ... of a plank, which turns about one of these places. A weight pulls down
    its side by its size times its distance from that place; the plank is level when both sides pull alike.

    seesaw(weights) takes 1 to 3000 integers of at least 0 and returns all places about which the plank is level, in
    increasing order.
    """
    total = sum(weights)
    turning = sum(place * weight for place, weight in enumerate(weights))
    return [place for place in range(len(weights)) if place * total == turning]


def draw_seesaw(rng: random.Random, size: int) -> list[list[int]]:
    half = integers(rng, size, 0, 9)
    if size % 2:
        half[-1] += 1
        return [half]
    return [[*half, rng.randint(0, 9), *reversed(half)]]


def fewest_swaps(order: list[int]) -> int:
    """Books stand on a shelf in the wrong order. In one move any two of them change places.

    fewest_swaps(order) takes the numbers of up to 5000 books, all different, in the order in which they stand, and
    returns how many moves are needed at least to sort them by number.
    """
    place = {number: index for index, number in enumerate(sorted(order))}
    target = [place[number] for number in order]
    moves, seen = 0, [False] * len(order)
    for start in range(len(order)):
        index, length = start, 0
        while not seen[index]:
            seen[index] = True
            index, length = target[index], length + 1
        moves += max(0, length - 1)
    return moves


def taking_turns(queues: list[list[str]]) -> list[str]:
    """People wait in several queues. The first of the first queue is served, then the first of the second one, and so
    on; after the last queue it is the first one's turn again. A queue in which nobody is left is passed over.

    taking_turns(queues) takes a list of up to 50 lists of names, some of which may be empty, and returns all names in
    the order in which they are served.
    """
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def overtakings(text: str) -> str:
    """Runners start one after the other and arrive in another order. A runner who arrives before somebody who started
    earlier has overtaken this one.

    The first line holds the number of runners n (1 to 20000), the second the numbers 1 to n in the order of the start,
    the third in that of the arrival.

    Print how many pairs of runners there are of whom one has overtaken the other.
    """
    count, *numbers = map(int, text.split())
    started = {runner: place for place, runner in enumerate(numbers[:count])}
    arrived: list[int] = []
    pairs = 0
    for runner in numbers[count:]:
        pairs += len(arrived) - bisect_left(arrived, started[runner])
        insort(arrived, started[runner])
    return str(pairs)


def draw_runners(rng: random.Random, size: int) -> str:
    count = 10 * size
    return lines(count, rng.sample(range(1, count + 1), count), rng.sample(range(1, count + 1), count))


TASKS: tuple[Task, ...] = (
    Function(
        harbour_view,
        lambda rng, size: [integers(rng, size, 1, 3 * size)],
        ([[4, 9, 3, 6, 6, 2]], [9, 6, 2]),
        edges=[[[]], [[5]], [[3, 3, 3]]],
    ),
    Function(
        calm_stretch,
        lambda rng, size: [integers(rng, size * 4, -30, 30), rng.randint(0, 40)],
        ([[5, 8, 6, 2, 4, 3, 7], 4], 4),
        edges=[[[], 3], [[1, 1, 2, 2, 2], 0], [[1, 2, 3, 4], 9], [[*range(900), *range(900, 0, -1)], 400]],
        difficulty=3,
    ),
    Script(race_table, draw_race, ("3\nzoe 5\nann 5\nbob 9\n", "1 bob 9\n2 ann 5\n2 zoe 5"), edges=["1\na 0\n"]),
    Function(
        seesaw,
        draw_seesaw,
        ([[3, 1, 0, 1, 0, 2]], [2]),
        edges=[[[7]], [[0, 0, 0]], [[1, 1]], [[5, 0, 0]]],
        difficulty=2,
    ),
    Function(
        fewest_swaps,
        lambda rng, size: [rng.sample(range(1, 20 * size), size)],
        ([[30, 10, 20, 50, 40]], 3),
        edges=[[[]], [[2, 1]], [[1, 2, 3]], [[*range(999, -1, -1)]]],
        difficulty=2,
    ),
    Function(
        taking_turns,
        lambda rng, size: [[[word(rng, 3) for _ in range(rng.randint(0, 6))] for _ in range(size // 3 + 1)]],
        ([[["ann", "bob", "cy"], [], ["dan"]]], ["ann", "dan", "bob", "cy"]),
        edges=[[[]], [[[], []]]],
    ),
    Script(
        overtakings,
        draw_runners,
        ("4\n2 1 3 4\n1 4 2 3\n", "3"),
        edges=["1\n1\n1\n", lines(900, [*range(1, 901)], [*range(900, 0, -1)])],
        difficulty=3,
    ),
)
