"""Tasks in which the best of many ways is found without trying them all."""

from __future__ import annotations

import random

from gem.envs.code_mini.task import Function, Script, Task, integers, lines, word


def round_table_gifts(values: list[int]) -> int:
    """Gifts lie around a round table, so that the last one is beside the first one. One may take as many as one likes,
    but no two that lie side by side.

    round_table_gifts(values) takes the values of 1 to 5000 gifts, integers of at least 0, and returns the largest sum
    of values one can take. A single gift is beside nothing.
    """

    def in_a_row(row: list[int]) -> int:
        taken = left = 0
        for value in row:
            taken, left = left + value, max(taken, left)
        return max(taken, left)

    return max(in_a_row(values[1:]), in_a_row(values[:-1]), values[0] if len(values) == 1 else 0)


def typing_errors(text: str) -> str:
    """Somebody typed a word and made errors. There are four kinds: a letter was left out; a letter too many was typed;
    a letter was replaced by another one; or two neighbouring letters of the word were typed in the wrong order, with
    nothing else going wrong at these two.

    Each of the two lines holds a word of 1 to 300 small letters: the right one, and the one that was typed.

    Print the smallest number of errors that explains it.
    """
    right, typed = text.split()
    before: list[int] = []
    row = list(range(len(typed) + 1))
    for i, letter in enumerate(right, 1):
        earlier, before, row = before, row, [i]
        for j, key in enumerate(typed, 1):
            errors = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != key))
            if i > 1 and j > 1 and letter == typed[j - 2] and key == right[i - 2]:
                errors = min(errors, earlier[j - 2] + 1)
            row.append(errors)
    return str(row[-1])


def draw_typed(rng: random.Random, size: int) -> str:
    right = word(rng, size, "abcde")
    letters = list(right)
    for _ in range(rng.randint(1, size // 3 + 2)):
        place = rng.randrange(len(letters))
        kind = rng.randint(0, 3)
        if kind == 0 and len(letters) > 1:
            del letters[place]
        elif kind == 1:
            letters.insert(place, rng.choice("abcde"))
        elif kind == 2:
            letters[place] = rng.choice("abcde")
        elif place:
            letters[place - 1], letters[place] = letters[place], letters[place - 1]
    return lines(right, "".join(letters))


def river_crossing(text: str) -> str:
    """A river is a table of fields, each with the effort of standing on it. One crosses it from the left column to the
    right one: starts on any field of the left column, and goes each time one column to the right, to the same row, the
    row above or the row below.

    The first line holds the numbers of rows and columns (1 to 100 each), then come the rows: integers from 0 to 99.

    Print the smallest sum of efforts, those of the first and of the last field included.
    """
    _, columns, *numbers = map(int, text.split())
    best = numbers[::columns]
    for column in range(1, columns):
        efforts = numbers[column::columns]
        best = [effort + min(best[max(0, i - 1) : i + 2]) for i, effort in enumerate(efforts)]
    return str(min(best))


def draw_river(rng: random.Random, size: int) -> str:
    rows, columns = 2 + size // 10, 3 + size // 6
    return lines((rows, columns), *(integers(rng, columns, 0, 99) for _ in range(rows)))


def fullest_backpack(things: list[list[int]], strength: int) -> list[int]:
    """Things have a weight and a use, and each is there once. Some of them are packed into a backpack whose weight must
    not exceed a hiker's strength.

    fullest_backpack(things, strength) takes up to 100 lists [weight, use] of two positive integers, and the strength,
    an integer from 0 to 2000. It returns a list of two: the largest sum of uses that can be packed, and the smallest
    weight with which this sum is reached.
    """
    best = [0] * (strength + 1)
    for weight, use in things:
        for room in range(strength, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + use)
    return [best[strength], best.index(best[strength])]


def draw_things(rng: random.Random, size: int) -> list[object]:
    things = [[rng.randint(1, 30), rng.randint(1, 25)] for _ in range(min(size, 60))]
    return [things, sum(weight for weight, _ in things) // rng.randint(2, 4)]


def up_and_down(heights: list[int]) -> int:
    """From a list of heights some are picked, in their order, so that they first rise and then fall: every one picked
    is higher than the one before it up to a highest one, and lower than the one before it from there on. The highest
    may be the first or the last of them.

    up_and_down(heights) takes 1 to 400 integers and returns how many can be picked at most.
    """

    def longest_rises(row: list[int]) -> list[int]:
        longest: list[int] = []
        for i, height in enumerate(row):
            longest.append(1 + max((longest[j] for j in range(i) if row[j] < height), default=0))
        return longest

    rises, falls = longest_rises(heights), longest_rises(heights[::-1])[::-1]
    return max(rise + fall - 1 for rise, fall in zip(rises, falls, strict=True))


def ways_to_read(letters: str, vocabulary: list[str]) -> int:
    """A message was written without blanks. Count the ways to read it as a row of words of a vocabulary; a word may be
    used any number of times. Two ways differ when a blank stands in one and not in the other.

    ways_to_read(letters, vocabulary) takes a text of 1 to 300 small letters, and up to 50 different words of 1 to 10
    small letters. It returns the number of ways, which may be 0.
    """
    ways = [1] + [0] * len(letters)
    for end in range(1, len(letters) + 1):
        for item in vocabulary:
            if letters[:end].endswith(item):
                ways[end] += ways[end - len(item)]
    return ways[-1]


def draw_reading(rng: random.Random, size: int) -> list[object]:
    vocabulary = sorted({word(rng, rng.randint(1, 3), "ab") for _ in range(3 + size // 20)})
    rng.shuffle(vocabulary)
    letters = "".join(rng.choice(vocabulary) for _ in range(size))
    return [letters + ("b" if size == 12 else ""), vocabulary]


def shelf_width(thicknesses: list[int], shelves: int) -> int:
    """Books are put on shelves in a given order: the first ones on the first shelf, those that follow on the second
    one, and so on. All shelves have the same width, and it should be as small as possible.

    shelf_width(thicknesses, shelves) takes the thicknesses of 1 to 1000 books, positive integers, and the number of
    shelves (1 to 100), and returns the smallest width with which all books find a place. Shelves may stay empty.
    """
    low, high = max(thicknesses), sum(thicknesses)
    while low < high:
        width = (low + high) // 2
        used, filled = 1, 0
        for thickness in thicknesses:
            filled += thickness
            if filled > width:
                used, filled = used + 1, thickness
        low, high = (low, width) if used <= shelves else (width + 1, high)
    return low


TASKS: tuple[Task, ...] = (
    Function(
        round_table_gifts,
        lambda rng, size: [integers(rng, size, 0, 50)],
        ([[6, 1, 2, 9, 7]], 15),
        edges=[[[4]], [[3, 8]], [[5, 1, 5]], [[0, 0, 0, 0]]],
        difficulty=2,
    ),
    Script(
        typing_errors,
        draw_typed,
        ("garden\nagrdenn\n", "2"),
        edges=["a\na\n", "a\nb\n", "ab\nba\n", "abc\nca\n", "abcdef\nbadcfe\n"],
        difficulty=3,
    ),
    Script(
        river_crossing,
        draw_river,
        ("3 4\n3 9 9 1\n5 8 2 8\n9 1 9 9\n", "9"),
        edges=["1 1\n7\n", "1 3\n1 2 3\n", "3 1\n5\n2\n4\n"],
        difficulty=2,
    ),
    Function(
        fullest_backpack,
        draw_things,
        ([[[3, 5], [4, 6], [2, 4]], 8], [11, 7]),
        edges=[[[], 5], [[[3, 9]], 2], [[[2, 3], [3, 3], [5, 6]], 5], [[[4, 1]], 0]],
        difficulty=2,
    ),
    Function(
        up_and_down,
        lambda rng, size: [integers(rng, size, 0, 2 * size)],
        ([[4, 2, 5, 9, 7, 8, 3]], 5),
        edges=[[[7]], [[3, 3, 3]], [[1, 2, 3]], [[3, 2, 1]]],
        difficulty=2,
    ),
    Function(
        ways_to_read,
        draw_reading,
        (["ninenines", ["nine", "ni", "ne", "s", "nines"]], 6),
        edges=[["a", []], ["a", ["a"]], ["aaaa", ["a", "aa"]], ["ab", ["b"]]],
        difficulty=2,
    ),
    Function(
        shelf_width,
        lambda rng, size: [integers(rng, size, 1, 60), rng.randint(1, size // 3 + 2)],
        ([[4, 2, 7, 3, 5], 3], 8),
        edges=[[[5], 1], [[5, 5], 9], [[1, 2, 3], 1], [[3, 1, 1, 1], 2]],
        difficulty=3,
    ),
)
