"""Tasks about texts."""

from __future__ import annotations

import random
from collections import defaultdict

from gem.envs.code_mini.task import Function, Script, Task, lines, word, words


def wrapped_letter(text: str) -> str:
    """A letter is typed on a narrow sheet. Put as many words as possible on each line, with one blank between two, and
    begin a new line only where the next word does not fit any more. No line is longer than the width.

    The first line holds the width (1 to 100), the second the words of the letter, 1 to 1000 of them, none longer than
    the width.

    Print the lines of the sheet.
    """
    width, *rest = text.split()
    sheet = [""]
    for item in rest:
        longer = f"{sheet[-1]} {item}".strip()
        if len(longer) <= int(width):
            sheet[-1] = longer
        else:
            sheet.append(item)
    return "\n".join(sheet)


def draw_letter(rng: random.Random, size: int) -> str:
    width = rng.randint(8, 30)
    return lines(width, words(rng, size, 8))


def mirrored_vowels(phrase: str) -> str:
    """The vowels a, e, i, o, u of a phrase, in either case, change places: the first one with the last one, the second
    one with the last but one, and so on. Everything else stays where it is. Each vowel keeps its case.

    mirrored_vowels(phrase) takes a text of up to 1000 characters, which may be empty, and returns the changed text.
    """
    vowels = [letter for letter in phrase if letter in "aeiouAEIOU"]
    return "".join(vowels.pop() if letter in "aeiouAEIOU" else letter for letter in phrase)


def draw_phrase(rng: random.Random, size: int) -> list[str]:
    return [word(rng, size, "aeiouAEIOUbcdfgXYZ .,")]


def largest_anagram_group(names: list[str]) -> list[str]:
    """Two words are anagrams when they have the same letters, each equally often. Find the largest group of different
    words of a list that are anagrams of each other. Where several groups are equally large, take the one with the
    alphabetically first word in it.

    largest_anagram_group(names) takes a list of 1 to 1000 words of small letters, in which a word may stand several
    times, and returns the words of the group, each once, in alphabetical order.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        groups["".join(sorted(name))].append(name)
    return max(groups.values(), key=len)


def smallest_stamp(pattern: str) -> str:
    """A border was printed with a stamp, side by side, without gaps; the last print may be cut off at the end of the
    border. Find the shortest stamp that can have printed it.

    smallest_stamp(pattern) takes the border, a text of 1 to 2000 small letters, and returns the stamp.
    """
    for length in range(1, len(pattern)):
        if pattern[length:] == pattern[:-length]:
            return pattern[:length]
    return pattern


def draw_pattern(rng: random.Random, size: int) -> list[str]:
    stamp = word(rng, rng.randint(1, max(1, size // 2)), "ab")
    return [(stamp * (size + 1))[: size + rng.randint(0, size)]]


def column_cipher(text: str) -> str:
    """A message is written below a key word, row by row, as many letters in a row as the key has; the last row may be
    shorter. Then the columns are read from top to bottom: first the one below the alphabetically first letter of the
    key, and so on. Below equal letters of the key, the column further left comes first.

    The first line holds the key (1 to 20 small letters), the second the message (1 to 1000 small letters).

    Print the letters in the order in which they are read.
    """
    key, message = text.split()
    columns = sorted(range(len(key)), key=lambda column: key[column])
    return "".join(message[column :: len(key)] for column in columns)


def draw_message(rng: random.Random, size: int) -> str:
    return lines(word(rng, rng.randint(2, 9)), word(rng, size + 5))


def repaired_palindrome(text: str) -> str:
    """A palindrome reads the same from both ends. Replace as few letters of a word as possible to make it one. Of all
    palindromes that need so few replacements, choose the alphabetically first.

    One line holds the word, of 1 to 1000 small letters.

    Print how many letters are replaced, a blank, and the palindrome.
    """
    original = text.strip()
    best = [min(pair) for pair in zip(original, reversed(original), strict=True)]
    replaced = sum(a != b for a, b in zip(original, reversed(original), strict=True)) // 2
    return f"{replaced} {''.join(best)}"


def vanishing_pairs(letters: str) -> str:
    """Two equal letters that stand side by side vanish, and what was left and right of them moves together, so that
    new pairs may come about. This goes on until no two neighbours are equal. The order in which pairs vanish does not
    matter.

    vanishing_pairs(letters) takes a text of up to 2000 small letters and returns what is left, which may be empty.
    """
    left: list[str] = []
    for letter in letters:
        if left and left[-1] == letter:
            left.pop()
        else:
            left.append(letter)
    return "".join(left)


TASKS: tuple[Task, ...] = (
    Script(
        wrapped_letter,
        draw_letter,
        ("9\nwe met at the old mill\n", "we met at\nthe old\nmill"),
        edges=["1\na b c\n", "5\nabcde fg hi j\n"],
    ),
    Function(mirrored_vowels, draw_phrase, (["Blue Moon"], "Bloo Meun"), edges=[[""], ["xyz"]]),
    Function(
        largest_anagram_group,
        lambda rng, size: [[word(rng, rng.randint(2, 3), "abc" if size < 40 else "abcde") for _ in range(size)]],
        ([["tar", "one", "rat", "eon", "art", "tar"]], ["art", "rat", "tar"]),
        edges=[[["b", "a"]], [["ab", "ab", "ba", "zz"]]],
        difficulty=2,
    ),
    Function(smallest_stamp, draw_pattern, (["abcabcab"], "abc"), edges=[["a"], ["aaaa"], ["abcdea"]], difficulty=2),
    Script(
        column_cipher,
        draw_message,
        ("code\nmeetmeatnoon\n", "mmneaottneeo"),
        edges=["a\nhello\n", "zebra\nabc\n", "banana\nattackthebridge\n"],
        difficulty=2,
    ),
    Script(
        repaired_palindrome,
        lambda rng, size: lines(word(rng, size, "abcd")),
        ("ladles\n", "3 laddal"),
        edges=["z\n", "abba\n"],
    ),
    Function(
        vanishing_pairs,
        lambda rng, size: [word(rng, size, "ab" if size % 3 else "abc")],
        (["noonshine"], "shine"),
        edges=[[""], ["aaa"], ["abccbad"]],
    ),
)
