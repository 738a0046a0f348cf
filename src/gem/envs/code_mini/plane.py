"""Tasks about points and shapes in the plane. All coordinates are integers."""

from __future__ import annotations

import random
from itertools import pairwise

from gem.envs.code_mini.task import Function, Script, Task, lines


def painted_area(posters: list[list[int]]) -> int:
    """Posters hang on a wall, straight but one over the other. How much of the wall is covered?

    painted_area(posters) takes up to 60 lists [left, bottom, right, top] with left < right and bottom < top, all from
    -10000 to 10000, and returns the area that is covered by one poster or more.
    """
    columns = sorted({x for left, _, right, _ in posters for x in (left, right)})
    covered = 0
    for start, end in pairwise(columns):
        reached = -10001
        for bottom, top in sorted((b, t) for left, b, right, t in posters if left <= start and end <= right):
            covered += (end - start) * max(0, top - max(bottom, reached))
            reached = max(reached, top)
    return covered


def draw_posters(rng: random.Random, size: int) -> list[list[list[int]]]:
    posters = []
    for _ in range(min(size, 50)):
        x, y = rng.randint(-40, 40), rng.randint(-40, 40)
        posters.append([x, y, x + rng.randint(1, 30), y + rng.randint(1, 30)])
    return [posters]


def fenced_meadow(text: str) -> str:
    """A farmer walks around a meadow and comes back to where he started, without crossing his own way. Each part of his
    way is a direction (N, E, S or W) and a number of metres.

    The first line holds the number of parts n (4 to 500). The second line holds the parts, with blanks between them,
    like E12.

    Print the area of the meadow in square metres, and L where the meadow was to his left, R where it was to his right.
    """
    x, y, doubled = 0, 0, 0
    for part in text.split()[1:]:
        dx, dy = {"N": (0, 1), "E": (1, 0), "S": (0, -1), "W": (-1, 0)}[part[0]]
        a, b = x + dx * int(part[1:]), y + dy * int(part[1:])
        doubled += x * b - a * y
        x, y = a, b
    return f"{abs(doubled) // 2} {'L' if doubled > 0 else 'R'}"


def draw_meadow(rng: random.Random, size: int) -> str:
    steps = [(rng.randint(1, 9), rng.choice([-1, 1]) * rng.randint(1, 9)) for _ in range(1 + size // 4)]
    height = 40 + 9 * len(steps)
    parts, back = [f"S{height}"], height
    for width, rise in steps:
        parts += [f"E{width}", f"{'N' if rise > 0 else 'S'}{abs(rise)}"]
        back -= rise
    parts += [f"N{back}", f"W{sum(width for width, _ in steps)}"]
    if rng.random() < 0.5:
        turned = dict(zip("NESW", "SWNE", strict=True))
        parts = [turned[part[0]] + part[1:] for part in reversed(parts)]
    return lines(len(parts), parts)


def crossing_paths(paths: list[list[int]]) -> int:
    """Straight paths lead through a park. Count the pairs of paths that have a point in common; to touch at an end is
    enough, and so is to lie one on the other.

    crossing_paths(paths) takes up to 100 lists [a, b, c, d]: a path from the point (a, b) to another point (c, d). It
    returns the number of pairs.
    """

    def side(path: list[int], x: int, y: int) -> int:
        a, b, c, d = path
        turn = (c - a) * (y - b) - (d - b) * (x - a)
        return (turn > 0) - (turn < 0)

    def meet(one: list[int], other: list[int]) -> bool:
        for axis in (0, 1):
            if max(one[axis], one[axis + 2]) < min(other[axis], other[axis + 2]):
                return False
            if max(other[axis], other[axis + 2]) < min(one[axis], one[axis + 2]):
                return False
        return all(side(p, q[0], q[1]) * side(p, q[2], q[3]) <= 0 for p, q in ((one, other), (other, one)))

    return sum(meet(one, other) for i, one in enumerate(paths) for other in paths[:i])


def draw_paths(rng: random.Random, size: int) -> list[list[list[int]]]:
    paths: list[list[int]] = []
    edge = rng.choice([4, 12, 30])
    while len(paths) < min(size, 60):
        path = [rng.randint(0, edge) for _ in range(4)]
        if path[:2] != path[2:]:
            paths.append(path)
    return [paths]


def stretched_rope(nails: list[list[int]]) -> list[list[int]]:
    """Nails stick in a board, and a rope is stretched around all of them. At some of them it makes a corner.

    stretched_rope(nails) takes 3 to 500 different points [x, y], not all on one line, in any order. It returns the
    points at which the rope makes a corner, against the direction of the clock (x grows to the right, y upwards). The
    first is the leftmost one; of several such points the lowest. Points on a straight part of the rope are no corners.
    """

    def half(points: list[list[int]]) -> list[list[int]]:
        chain: list[list[int]] = []
        for x, y in points:
            while len(chain) > 1:
                (a, b), (c, d) = chain[-2:]
                if (c - a) * (y - b) > (d - b) * (x - a):
                    break
                chain.pop()
            chain.append([x, y])
        return chain[:-1]

    return half(sorted(nails)) + half(sorted(nails, reverse=True))


def draw_nails(rng: random.Random, size: int) -> list[list[list[int]]]:
    edge = 3 + size // 4
    places = [[x, y] for x in range(edge + 1) for y in range(edge + 1)]
    corner = [[0, 0], [1, 0], [0, 1]]
    nails = corner + rng.sample([place for place in places if place not in corner], min(size, 100) - 2)
    rng.shuffle(nails)
    dx, dy = rng.randint(-20, 5), rng.randint(-20, 5)
    return [[[x + dx, y + dy] for x, y in nails]]


def folded_ruler(text: str) -> str:
    """A folding ruler has links of different lengths. On a table, each link goes on from the end of the one before, in
    the direction N, E, S or W, and may lie on others.

    One line holds the links, 1 to 300 of them, with blanks between them: a direction and a length from 1 to 50, as in
    N3.

    Print how many points of the grid (points with two whole coordinates) the ruler touches, and the largest number of
    times that one of them is reached. The start counts as reached once, and so does every further point for each step
    that leads to it.
    """
    x, y, reached = 0, 0, {(0, 0): 1}
    for link in text.split():
        for _ in range(int(link[1:])):
            x, y = x + (link[0] == "E") - (link[0] == "W"), y + (link[0] == "N") - (link[0] == "S")
            reached[x, y] = reached.get((x, y), 0) + 1
    return f"{len(reached)} {max(reached.values())}"


TASKS: tuple[Task, ...] = (
    Function(
        painted_area,
        draw_posters,
        ([[[0, 0, 3, 2], [1, 1, 4, 3], [6, 0, 7, 1]]], 11),
        edges=[[[]], [[[0, 0, 5, 5], [1, 1, 2, 2]]], [[[0, 0, 2, 2], [2, 0, 4, 2]]], [[[0, 0, 4, 1], [0, 3, 4, 4]]]],
        difficulty=3,
    ),
    Script(
        fenced_meadow,
        draw_meadow,
        ("6\nE4 N1 W2 N3 W2 S4\n", "10 L"),
        edges=["4\nN1 E1 S1 W1\n"],
        difficulty=2,
    ),
    Function(
        crossing_paths,
        draw_paths,
        ([[[0, 0, 4, 4], [0, 4, 4, 0], [4, 4, 6, 0], [5, 5, 7, 7]]], 2),
        edges=[[[]], [[[0, 0, 4, 0], [1, 0, 2, 0]]], [[[0, 0, 1, 1], [2, 2, 3, 3]]], [[[0, 0, 4, 0], [2, 1, 2, 5]]]],
        difficulty=3,
    ),
    Function(
        stretched_rope,
        draw_nails,
        ([[[2, 1], [4, 0], [0, 0], [2, 0], [3, 3], [1, 2]]], [[0, 0], [4, 0], [3, 3], [1, 2]]),
        edges=[[[[0, 0], [1, 0], [0, 1]]], [[[0, 2], [0, 0], [0, 1], [2, 2], [2, 0], [1, 1]]]],
        difficulty=3,
    ),
    Script(
        folded_ruler,
        lambda rng, size: lines([f"{rng.choice('NESW')}{rng.randint(1, 9)}" for _ in range(size)]),
        ("E2 N1 W1 S2\n", "6 2"),
        edges=["N1\n", "E3 W3\n"],
    ),
)
