"""Tasks about grids."""

from __future__ import annotations

import random

from gem.envs.code_mini.task import Function, Script, Task, integers, lines, word


def inland_lakes(text: str) -> str:
    """A map shows water (~) and land (#). Fields that share a side belong together. A piece of water that reaches the
    border of the map is sea, any other is a lake.

    The first line holds the height and the width of the map (1 to 60 each); then come its rows.

    Print the number of lakes and the number of fields of the largest one (0 without lakes).
    """
    rows = text.split()[2:]
    water = {(i, j) for i, row in enumerate(rows) for j, field in enumerate(row) if field == "~"}
    sizes = []
    while water:
        piece = [water.pop()]
        for i, j in piece:
            for near in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                if near in water:
                    water.remove(near)
                    piece.append(near)
        if all(0 < i < len(rows) - 1 and 0 < j < len(rows[0]) - 1 for i, j in piece):
            sizes.append(len(piece))
    return f"{len(sizes)} {max(sizes, default=0)}"


def draw_map(rng: random.Random, size: int) -> str:
    height, width = 4 + size // 5, 4 + size // 4
    return lines((height, width), *(word(rng, width, "~~###") for _ in range(height)))


def cell_colony(text: str) -> str:
    """Cells live on a board whose left edge touches the right one and whose upper edge touches the lower one, so that
    every field has eight neighbours. From one day to the next a cell lives on with two or three living neighbours, and
    dies with any other number; on an empty field a cell is born when exactly three neighbours live.

    The first line holds the height and the width of the board (3 to 30 each) and a number of days (0 to 50). Then come
    the rows of the board: * is a living cell, . an empty field.

    Print the board after these days.
    """
    first, *board = text.split("\n")
    height, width, days = map(int, first.split())
    live = {(i, j) for i in range(height) for j in range(width) if board[i][j] == "*"}
    for _ in range(days):
        counts: dict[tuple[int, int], int] = {}
        for i, j in live:
            for di, dj in ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)):
                field = (i + di) % height, (j + dj) % width
                counts[field] = counts.get(field, 0) + 1
        live = {field for field, count in counts.items() if count == 3 or (count == 2 and field in live)}
    return "\n".join("".join(".*"[(i, j) in live] for j in range(width)) for i in range(height))


def draw_colony(rng: random.Random, size: int) -> str:
    height, width = 4 + size // 8, 5 + size // 8
    return lines((height, width, rng.randint(1, 6)), *(word(rng, width, "..*") for _ in range(height)))


def turned_picture(text: str) -> str:
    """A picture of characters is turned and mirrored by a row of commands: R turns it to the right by a quarter, L to
    the left, H swaps left and right, V swaps top and bottom.

    The first line holds the commands (1 to 1000 letters), the second the number of rows. Then come the rows (1 to 30),
    all of the same length (1 to 30) and without blanks.

    Print the picture after all commands.
    """
    commands, _, *rows = text.split()
    for command in commands:
        if command == "R":
            rows = ["".join(column) for column in zip(*reversed(rows), strict=True)]
        elif command == "L":
            rows = ["".join(column) for column in zip(*rows, strict=True)][::-1]
        elif command == "H":
            rows = [row[::-1] for row in rows]
        else:
            rows = rows[::-1]
    return "\n".join(rows)


def draw_picture(rng: random.Random, size: int) -> str:
    height, width = rng.sample(range(2, 5 + size // 10), 2)
    return lines(word(rng, size, "RLHV"), height, *(word(rng, width, "abc.#/") for _ in range(height)))


def mountain_passes(heights: list[list[int]]) -> list[list[int]]:
    """A field of a table of heights is a pass when nothing in its row is higher and nothing in its column is lower than
    it.

    mountain_passes(heights) takes a list of 1 to 60 rows of equal length (1 to 60) and returns the passes as lists
    [row, column], counted from 0, in the order of the rows, and within a row in that of the columns.
    """
    lowest = [min(column) for column in zip(*heights, strict=True)]
    return [
        [i, j]
        for i, row in enumerate(heights)
        for j, height in enumerate(row)
        if height == max(row) and height == lowest[j]
    ]


def draw_heights(rng: random.Random, size: int) -> list[list[list[int]]]:
    width, top = 2 + size // 15, 1 + size // 10
    table = [integers(rng, width, 1, 3 + top) for _ in range(2 + size // 12)]
    if rng.random() < 0.7:
        row, column = rng.randrange(len(table)), rng.randrange(width)
        table[row] = [min(height, 3) for height in table[row]]
        for other in table:
            other[column] = max(other[column], 3)
        table[row][column] = 3
    return [table]


def bingo_night(text: str) -> str:
    """A card of bingo is a square of numbers, all different. Numbers are called one after the other, and those on the
    card are marked. It wins with the first call after which a whole row, a whole column or one of the two diagonals is
    marked.

    The first line holds the side of the card n (1 to 12) and the number of calls c (1 to 500). Then come the n rows of
    the card, and a line with the c numbers called, all different.

    Print how many calls have been made when the card wins, or "no bingo".
    """
    side, _, *numbers = map(int, text.split())
    called = {number: turn for turn, number in enumerate(numbers[side * side :], 1)}
    card = [[called.get(numbers[i * side + j]) for j in range(side)] for i in range(side)]
    rows = [*card, *zip(*card, strict=True)]
    rows += [[card[i][i] for i in range(side)], [card[i][side - 1 - i] for i in range(side)]]
    wins = [max(turn or 0 for turn in row) for row in rows if None not in row]
    return str(min(wins)) if wins else "no bingo"


def draw_bingo(rng: random.Random, size: int) -> str:
    side = 2 + size // 18
    numbers = rng.sample(range(1, 2 * side * side + 1), side * side)
    calls = rng.sample(range(1, 2 * side * side + 1), rng.randint(side * side, 2 * side * side))
    card = [numbers[row * side : (row + 1) * side] for row in range(side)]
    return lines((side, len(calls)), *card, calls)


def largest_square(plan: list[str]) -> int:
    """A plan of a garden shows free fields (.) and trees (T). A square pond of whole fields is to be dug where no tree
    stands.

    largest_square(plan) takes 1 to 100 rows of equal length (1 to 100) and returns the side of the largest possible
    pond, 0 where there is none.
    """
    best, above = 0, [0] * len(plan[0])
    for row in plan:
        sides: list[int] = []
        for j, field in enumerate(row):
            around = min(above[j], above[j - 1], sides[j - 1]) if j else 0
            sides.append(around + 1 if field == "." else 0)
        best, above = max(best, *sides), sides
    return best


def draw_plan(rng: random.Random, size: int) -> list[list[str]]:
    width = 2 + size // 3
    trees = "." * rng.randint(1, 9) + "T"
    return [[word(rng, width, trees) for _ in range(2 + size // 4)]]


def falling_sand(text: str) -> str:
    """A box is seen from the side: sand (o), stone (#) and air (.). All sand falls straight down until it lies on the
    floor, on stone or on other sand. Stone stays where it is.

    The first line holds the number of rows n (1 to 60). Then come the rows, of equal length (1 to 60), from top to
    bottom.

    Print the rows when nothing falls any more.
    """
    rows = [list(row) for row in text.split()[1:]]
    for column in range(len(rows[0])):
        floor = len(rows) - 1
        for i in range(len(rows) - 1, -1, -1):
            if rows[i][column] == "#":
                floor = i - 1
            elif rows[i][column] == "o":
                rows[i][column] = "."
                rows[floor][column] = "o"
                floor -= 1
    return "\n".join("".join(row) for row in rows)


def draw_box(rng: random.Random, size: int) -> str:
    height = 2 + size // 5
    return lines(height, *(word(rng, 3 + size // 5, "..oo#") for _ in range(height)))


TASKS: tuple[Task, ...] = (
    Script(
        inland_lakes,
        draw_map,
        ("4 6\n######\n#~#~~#\n##~#~#\n#~####\n", "3 3"),
        edges=["1 1\n~\n", "3 3\n###\n#~#\n###\n", "3 3\n###\n###\n###\n"],
        difficulty=2,
    ),
    Script(
        cell_colony,
        draw_colony,
        ("4 5 1\n.....\n.***.\n.....\n.....\n", "..*..\n..*..\n..*..\n....."),
        edges=["3 3 0\n*..\n...\n..*\n", "6 6 24\n.*....\n..*...\n***...\n......\n......\n......\n"],
        difficulty=2,
    ),
    Script(turned_picture, draw_picture, ("RV\n2\nabc\nde.\n", ".c\neb\nda"), edges=["L\n1\nxyz\n", "HV\n2\nab\ncd\n"]),
    Function(
        mountain_passes,
        draw_heights,
        ([[[5, 9, 4], [6, 7, 3], [5, 8, 2]]], [[1, 1]]),
        edges=[[[[1]]], [[[2, 2], [2, 2]]], [[[1, 2, 3]]]],
    ),
    Script(
        bingo_night,
        draw_bingo,
        ("2 3\n4 7\n1 9\n5 7 1\n", "3"),
        edges=["1 1\n3\n3\n", "2 2\n1 2\n3 4\n1 9\n"],
        difficulty=2,
    ),
    Function(
        largest_square,
        draw_plan,
        ([["..T.", "....", "T...", "...T"]], 2),
        edges=[[["T"]], [["."]], [["...."]], [["." * 100] * 100]],
        difficulty=2,
    ),
    Script(falling_sand, draw_box, ("4\no.o\n.#o\n...\n.o.\n", "...\n.#.\n..o\nooo"), edges=["1\no\n", "2\n#\no\n"]),
)
