"""Tasks about reading what is written by rules."""

from __future__ import annotations

import random
import re
from collections import Counter

from gem.envs.code_mini.task import Function, Script, Task, lines, word, words


def exact_reckoning(text: str) -> str:
    """Work out expressions of integers, with +, - and *, brackets, and signs in front of what they belong to, as in
    -(3-5) or 2*-7. Multiplication binds stronger than addition and subtraction; what binds alike goes from left to
    right. Blanks may stand between any two parts.

    Each line holds an expression of at most 500 characters; there are 1 to 50 lines.

    Print the value of each on a line of its own.
    """

    def total(tokens: list[str]) -> int:
        value = product(tokens)
        while tokens[-1] in "+-":
            sign = 1 if tokens.pop() == "+" else -1
            value += sign * product(tokens)
        return value

    def product(tokens: list[str]) -> int:
        value = factor(tokens)
        while tokens[-1] == "*":
            tokens.pop()
            value *= factor(tokens)
        return value

    def factor(tokens: list[str]) -> int:
        token = tokens.pop()
        if token == "-":
            return -factor(tokens)
        if token != "(":
            return int(token)
        value = total(tokens)
        tokens.pop()
        return value

    rows = [re.findall(r"\d+|[-+*()]", line) for line in text.strip().split("\n")]
    return "\n".join(str(total(["end", *reversed(row)])) for row in rows)


def draw_expressions(rng: random.Random, size: int) -> str:
    def expression(parts: int) -> str:
        if parts <= 1:
            return rng.choice(["", "", "-"]) + str(rng.randint(0, 20))
        left = rng.randint(1, parts - 1)
        inner = rng.choice(["+", "-", "*", " - ", " * "]).join([expression(left), expression(parts - left)])
        return rng.choice([inner, inner, f"({inner})", f"-({inner})"])

    return lines(*(expression(2 + size // 6) for _ in range(4)))


def first_bracket_fault(code: str) -> int:
    """Every opening bracket ( [ { of a text has to be closed by one of its kind, and pairs must not cross.

    first_bracket_fault(code) takes a text of up to 5000 characters. It returns the position, counted from 0, of the
    first closing bracket that does not fit what is open before it. Where there is none, but brackets stay open at the
    end, it returns the position of the last of them that was opened. Where all is well it returns -1.
    """
    opened: list[int] = []
    for position, letter in enumerate(code):
        if letter in "([{":
            opened.append(position)
        elif letter in ")]}":
            if not opened or code[opened[-1]] + letter not in ("()", "[]", "{}"):
                return position
            opened.pop()
    return opened[-1] if opened else -1


def draw_brackets(rng: random.Random, size: int) -> list[str]:
    code, opened = "", ""
    while len(code) < size or opened:
        if opened and rng.random() < 0.5 + 0.4 * (len(code) > size):
            code, opened = code + opened[-1], opened[:-1]
        else:
            pair = rng.choice(["()", "[]", "{}", "xx"])
            code, opened = code + pair[0], opened + pair[1].strip("x")
    place = rng.randrange(len(code))
    fault = rng.choice(["", code[place], rng.choice("([{)]}"), rng.choice("([{)]}")])
    return [code[:place] + fault + code[place + 1 :]]


def settings_file(text: str) -> str:
    """A file of settings has sections, which open with their name between square brackets. Within a section, lines of
    the form name = value set values; blanks at the ends of name and value do not count. What stands before the first
    section belongs to the section "default". Where a name is set again in the same section, the later value holds.
    Empty lines, and lines whose first character is #, mean nothing.

    The first line holds the number of questions q (1 to 100). Each of the q lines that follow holds a question of the
    form section.name. The rest is the file: up to 1000 lines.

    Print for each question, on a line of its own, the value; where it is not set in that section, the value that it has
    in "default"; where it has none there either, a single ?. Values are never empty.
    """
    rows = text.split("\n")
    count = int(rows[0])
    values, section = {}, "default"
    for row in rows[count + 1 :]:
        if row.startswith("["):
            section = row.strip()[1:-1]
        elif row.strip() and not row.startswith("#"):
            name, _, value = row.partition("=")
            values[section, name.strip()] = value.strip()
    answers = []
    for question in rows[1 : count + 1]:
        section, _, name = question.partition(".")
        answers.append(values.get((section, name), values.get(("default", name), "?")))
    return "\n".join(answers)


def draw_settings(rng: random.Random, size: int) -> str:
    sections, names = ["default", "net", "disk", "ui"], words(rng, 2 + size // 10, 2, "abc")
    rows = []
    for _ in range(size):
        name, value = rng.choice(names), f"{word(rng, 2)}{rng.choice(['', '=', ' '])}{rng.randint(0, 99)}"
        blank = " " * rng.randint(0, 2)
        setting = f"{name}{blank}={blank}{value}"
        rows.append(rng.choice([setting, setting, setting, f"#{setting}", f"[{rng.choice(sections)}]", ""]))
    questions = [f"{rng.choice(sections)}.{rng.choice(names)}" for _ in range(3 + size // 10)]
    return lines(len(questions), *questions, *rows)


def nested_weight(notation: str) -> int:
    """A mobile is written as a list between square brackets, whose items are integers or lists again, as in
    [3,[1,[4]],2]. An integer counts as often as there are lists around it: here 3 and 2 count once, 1 twice, 4 three
    times.

    nested_weight(notation) takes such a text, of up to 5000 characters and without blanks, in which lists may be empty
    and integers may be negative, and returns the sum of all integers, each as often as it counts. Lists are nested up
    to 2000 deep.
    """
    total, depth = 0, 0
    for token in re.findall(r"-?\d+|[\[\]]", notation):
        if token == "[":
            depth += 1
        elif token == "]":
            depth -= 1
        else:
            total += depth * int(token)
    return total


def draw_notation(rng: random.Random, size: int) -> list[str]:
    def mobile(items: int, depth: int) -> str:
        parts = []
        while items > 0:
            taken = rng.randint(1, items) if depth < 40 and rng.random() < 0.5 else 0
            parts.append(mobile(taken - 1, depth + 1) if taken else str(rng.randint(-9, 30)))
            items -= taken or 1
        return f"[{','.join(parts)}]"

    return [mobile(size, 1)]


def count_atoms(text: str) -> str:
    """The formula of a molecule is a row of parts: the symbol of an element, a capital letter that may be followed by a
    small one, or a formula in round brackets. A number behind a part, from 2 to 999, says how often the part is there.

    One line holds a formula of at most 1000 characters, with brackets nested up to 5 deep.

    Print for each element its symbol and the number of its atoms, one element on a line, in the alphabetical order of
    the symbols.
    """
    levels: list[Counter[str]] = [Counter()]
    for symbol, opening, number in re.findall(r"([A-Z][a-z]?|\))?(\()?(\d*)", text.strip()):
        times = int(number or 1)
        if symbol == ")":
            inner = levels.pop()
            levels[-1].update({element: count * times for element, count in inner.items()})
        elif symbol:
            levels[-1][symbol] += times
        if opening:
            levels.append(Counter())
    return "\n".join(f"{element} {count}" for element, count in sorted(levels[0].items()))


def draw_formula(rng: random.Random, size: int) -> str:
    def formula(parts: int, depth: int) -> str:
        made = ""
        for _ in range(parts):
            nested = depth < 3 and rng.random() < 0.3
            made += f"({formula(rng.randint(1, 3), depth + 1)})" if nested else rng.choice(["H", "He", "C", "Ca", "O"])
            made += str(rng.randint(2, 30)) if rng.random() < 0.5 else ""
        return made

    return lines(formula(2 + min(size, 80) // 8, 0))


def table_cells(row: str) -> list[str]:
    """A row of a table is written as its cells, with commas between them. A cell that begins with a double quote ends
    with one; what stands between them is its content, in which commas mean nothing special and a double quote is
    written twice. All other cells hold no quotes and are their own content. Cells may be empty.

    table_cells(row) takes a row of up to 2000 characters, written by these rules, and returns the contents of its
    cells.
    """
    cells, position = [], 0
    while position <= len(row):
        if row[position : position + 1] == '"':
            end = position + 1
            while row[end : end + 2] == '""' or row[end] != '"':
                end += 2 if row[end] == '"' else 1
            cells.append(row[position + 1 : end].replace('""', '"'))
            position = end + 2
        else:
            cells.append(row[position:].split(",", 1)[0])
            position += len(cells[-1]) + 1
    return cells


def draw_table_row(rng: random.Random, size: int) -> list[str]:
    cells = [word(rng, rng.randint(0, 5), 'abc ,"') for _ in range(1 + size // 3)]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    return [",".join(q if set(c) & set(',"') or rng.random() < 0.2 else c for q, c in zip(quoted, cells, strict=True))]


def roman_bill(text: str) -> str:
    """Add Roman numbers. The letters I, V, X, L, C, D, M stand for 1, 5, 10, 50, 100, 500, 1000. They are written from
    large to small and added, except for 4, 9, 40, 90, 400 and 900, which are IV, IX, XL, XC, CD and CM.

    One line holds 1 to 200 Roman numbers, with blanks between them. Their sum is below 4000.

    Print the sum as a Roman number.
    """
    values = {"M": 1000, "CM": 900, "D": 500, "CD": 400, "C": 100, "XC": 90}
    values |= {"L": 50, "XL": 40, "X": 10, "IX": 9, "V": 5, "IV": 4, "I": 1}
    total = sum(values[part] for part in re.findall("CM|CD|XC|XL|IX|IV|[MDCLXVI]", text))
    written = ""
    for letters, value in values.items():
        written += letters * (total // value)
        total %= value
    return written


def draw_bill(rng: random.Random, size: int) -> str:
    def roman(number: int) -> str:
        pairs = zip((100, 90, 50, 40, 10, 9, 5, 4, 1), ["C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"], strict=True)
        written = ""
        for value, letters in pairs:
            written, number = written + letters * (number // value), number % value
        return written

    return lines([roman(rng.randint(1, 3900 // size if size > 10 else 380)) for _ in range(size)])


TASKS: tuple[Task, ...] = (
    Script(
        exact_reckoning,
        draw_expressions,
        ("2*-(3-5)-4\n(1 + 2)*(3-10)\n", "0\n-21"),
        edges=["7\n", "10-3-2\n2-3*4\n", "-2*-(-3)\n--5\n((4))*99999999999\n"],
        difficulty=3,
    ),
    Function(
        first_bracket_fault,
        draw_brackets,
        (["f(a[2)]"], 5),
        edges=[[""], ["({[]})"], ["(()"], ["]"], ["((a)"], ["([)"]],
        difficulty=2,
    ),
    Script(
        settings_file,
        draw_settings,
        ("3\nui.size\nui.font\nui.mode\nsize = 10\n[ui]\nfont = Gem Sans\n# mode = a\n", "10\nGem Sans\n?"),
        edges=["1\na.b\n", "2\na.x\ndefault.x\n[a]\nx=1\n[default]\nx = 2\n[a]\nx =3=4\n"],
        difficulty=3,
    ),
    Function(
        nested_weight,
        draw_notation,
        (["[3,[1,[4]],2]"], 19),
        edges=[["[]"], ["[[[]],-5]"], [f"{'[' * 1500}7{']' * 1500}"]],
    ),
    Script(
        count_atoms,
        draw_formula,
        ("Ca(OH)2\n", "Ca 1\nH 2\nO 2"),
        edges=["H\n", "((C2)3H)2\n", "CoCO12(He(C2H5)4)10\n"],
        difficulty=3,
    ),
    Function(
        table_cells,
        draw_table_row,
        (['oak,"beech, old",,"""elm"""'], ["oak", "beech, old", "", '"elm"']),
        edges=[[""], [","], ['""'], ['"",a'], ['a,"b"""'], ['""""']],
        difficulty=3,
    ),
    Script(
        roman_bill, draw_bill, ("XIV CM VI\n", "CMXX"), edges=["I\n", "MMM CMXCIX\n", "IV IX XL XC CD\n"], difficulty=2
    ),
)
