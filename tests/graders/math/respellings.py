r"""Random math answers written twice, for labels that follow from construction.

An answer is drawn as a small tree: a head and its parts, which are trees or strings (digits, names, signs, brackets).
`pair` writes it in two spellings, or writes it beside a copy in which one string is changed so that its value differs.
Values are computed from the tree by Python; nothing of the grader is used. The tables are in respellings.txt.
"""

from __future__ import annotations

import cmath
import math
import random
import re
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

Tree = tuple[Any, ...]
NAMES = list("abkmnpqrtuvwxyzαβθλεφ")
UNITS = ["cm", "km", "kg", "hours", "m/s", "cm^2"]
POOLS = [NAMES, UNITS, ["sin", "cos", "tan", "ln"], ["π", "ℯ"], *map(list, ["+-", "<≤>≥", "([", ")]"])]


def _tables() -> dict[str, dict[str, list[str]]]:
    """Return the sections of respellings.txt: heads or kinds, with their alternatives."""
    tables: dict[str, dict[str, list[str]]] = {}
    for line in (Path(__file__).parent / "respellings.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = tables[line] = {}
        elif line and not line.startswith("#"):
            head, alternatives = line.split(": ", 1)
            section.setdefault(head, []).extend(alternatives.replace("␣", " ").split(" | "))
    return tables


FORMS, SHAPES = _tables().values()
KINDS = [kind for kind in SHAPES if kind.islower()]


def _chosen(rng: random.Random, head: str, style: str) -> str:
    """Return a spelling of a head in a style; plain text borrows from LaTeX, and Python keeps a sign that it lacks."""
    forms = [form for form in FORMS[head] if form[0] == style or (form[0] == "B" and style != "V")]
    return rng.choice(forms or ([f"V6 {head}"] if style == "V" else [form for form in FORMS[head] if form[0] == "L"]))


class Drawer:
    """Draws a tree from a shape; a name of the shape stands for one name in the whole tree."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, (x, y, z) = rng, "xyz" if rng.random() < 0.4 else rng.sample(NAMES, 3)
        self.slots: dict[str, Any] = {"X": x, "x": ("sym", x), "y": ("sym", y), "z": ("sym", z)}
        if rng.random() < 0.1:
            self.slots |= {"y": ("sub", "a", "1"), "z": ("sub", "a", "2")}
        for slot, n in zip("1234", sorted(rng.sample(range(-9, 30), 4)), strict=True):
            self.slots[slot] = ("sum", "-", ("num", str(-n))) if n < 0 else ("num", str(n))

    def drawn(self, kind: str) -> Any:
        return self._read(re.findall(r"'[()]|[()]|[^\s()]+", self.rng.choice(SHAPES[kind])))

    def _read(self, words: list[str]) -> Any:
        word = words.pop(0)
        if word != "(":
            return word[1:] if word.startswith("'") else self._slot(word)
        parts = [words.pop(0)]
        while words[0] != ")":
            parts.append(self._read(words))
        words.pop(0)
        return tuple(parts)

    def _slot(self, word: str) -> Any:
        whole = {"N": (2, 12), "M": (13, 40), "B": (10, 10 ** self.rng.randint(2, 9))}
        strings = {"[": "[(", "]": "])", "±": "+-", "f": ["sin", "cos", "tan"], "S": "abxyPS", "<": "<≤>≥", "U": UNITS}
        if word in whole:
            return "num", str(self.rng.randint(*whole[word]))
        if word == "D":
            return "num", f"{self.rng.randint(0, 99)}.{self.rng.randint(11, 99)}".rstrip("0")
        if word in SHAPES:
            return self.drawn(word)
        return self.rng.choice(strings[word]) if word in strings else self.slots.get(word, ("sym", word))


class Writer:
    """Writes trees in one style: L LaTeX, P plain text or V Python. The methods return a level and a text."""

    def __init__(self, rng: random.Random, style: str) -> None:
        self.rng, self.style = rng, style

    def __call__(self, tree: Tree | str, level: int = 0) -> str:
        if isinstance(tree, str):
            return _chosen(self.rng, tree, self.style)[3:] if tree in UNITS and self.style != "V" else tree
        head, *parts = tree
        if head in ("set", "union"):
            self.rng.shuffle(parts)
        code = getattr(self, f"_{head}", None) if self.style != "V" or head not in FORMS else None
        own, text = code(*parts) if code else self._form(head, parts)
        return text if own >= level else f"({text})"

    def _form(self, head: str, parts: list[Any]) -> tuple[int, str]:
        form = _chosen(self.rng, head, self.style)
        text = re.sub(r"@\*(.)", lambda m: m[1].join(f"@{i}1" for i in range(len(parts))), form[3:])
        return int(form[1]), re.sub(r"@(\d)(\d)", lambda m: self(parts[int(m[1])], int(m[2])), text)

    def _num(self, digits: str) -> tuple[int, str]:
        if len(digits) > 4 and digits.isdigit() and self.style != "V":
            comma = self.rng.choice(["", "{,}", r"\,", r",\!"] if self.style == "L" else ["", " "])
            return 6, f"{int(digits):,}".replace(",", comma)
        return 6, digits[1:] if digits.startswith("0.") and self.rng.random() < 0.1 else digits

    def _sum(self, *parts: Any) -> tuple[int, str]:
        terms = self.rng.sample([*zip(parts[::2], parts[1::2], strict=True)], len(parts) // 2)
        return 1, "".join({"+": "＋", "-": "－"}[sign] + self(term, 2) for sign, term in terms).removeprefix("＋")

    def _prod(self, *factors: Tree) -> tuple[int, str]:
        order = self.rng.sample(factors, len(factors))
        if self.rng.random() < 0.7:  # as it is usually written
            order.sort(key=lambda factor: factor[0] != "num")
        text = self(order[0], 4)
        for left, right in pairwise(order):
            new = self(right, 4)
            touch = self._may_touch(left[0], text, right[0], new) and self.rng.random() < 0.7
            text += ((" " if re.match("[a-z]{2}", new) else self.rng.choice(["", " "])) if touch else "·") + new
        return 3, text

    def _may_touch(self, head: str, left: str, right_head: str, right: str) -> bool:
        r"""Return whether two factors may stand side by side: not 2 3, 2\frac12, x2, x(y+1), 3 sin x y."""
        if self.style == "V" or right_head in ("frac", "abs", "sci", "binom") or head in ("sci", "fn", "log", "abs"):
            return False
        after_brace = self.style == "L" and head == "pow" and left.endswith("}")
        return after_brace if right[0].isdigit() else right[0] != "(" or head in ("num", "sqrt", "sum", "pow")

    def _range(self, interval: Tree) -> tuple[int, str]:
        _, left, low, high, right = interval
        below = "" if "∞" in str(low) else self(low, 1) + ("<" if left == "(" else "≤")
        above = "" if "inf" in str(high) else ("<" if right == ")" else "≤") + self(high, 1)
        among = [self(interval), "x∈" + self(interval), f"{below}x{above}", rf"\{{x∣{below}x{above}\}}"]
        return 0, self.rng.choice(among[: 3 + (self.style == "L")])

    def _rel(self, left: Tree, sign: str, right: Tree) -> tuple[int, str]:
        if self.rng.random() < 0.3:
            left, sign, right = right, dict(zip("<≤>≥", ">≥<≤", strict=True))[sign], left
        return 0, self(left, 1) + sign + self(right, 1)


def written(rng: random.Random, tree: Tree) -> str:
    """Return a spelling of an answer."""
    style = rng.choice("LLLP")
    return _styled(rng, Writer(rng, style)(("answer", tree)), style)


def _styled(rng: random.Random, text: str, style: str) -> str:
    """Draw the spellings of signs, and drop braces that TeX does not need."""

    def sometimes(share: float, pattern: str, new: Callable[[re.Match[str]], str]) -> None:
        nonlocal text
        text = re.sub(pattern, lambda m: new(m) if rng.random() < share else m[0], text)

    if style == "L":
        sometimes(0.5, r"(?<=[_^])\{(\w)\}(?!\w)", lambda m: m[1])
        sometimes(0.4, r"\\sqrt\{(\d)\}(?!\d)", lambda m: rf"\sqrt{m[1]}")
        sometimes(0.4, r"\\frac\{(\d)\}\{(\d)\}(?!\d)", lambda m: rf"\frac{m[1]}{m[2]}")
        sometimes(0.1, r"(\\frac|\\sqrt|_|\^)\{", lambda m: m[1] + " {")
        sometimes(0.4, r"\\frac", lambda _: rng.choice([r"\dfrac", r"\tfrac", r"\cfrac"]))
    sometimes(0.15, r"(?<=[xyzabt)])\^(2|3|\{2\}|\{3\})(?!\w)", lambda m: "²³"["3" in m[1]])
    if style == "L" and rng.random() < 0.3:
        gap = rng.choice(["", " "])
        text = re.sub(r"(?<!sqrt)(?<!left)(?<!\\)([(\[]|\\\{)", rf"\\left\1{gap}", text)
        text = re.sub(r"(?<!\\)([)\]](?!\{)|\\\})", rf"{gap}\\right\1", text)
    return _with_signs(rng, text, style)


def _with_signs(rng: random.Random, text: str, style: str) -> str:
    return "".join(_chosen(rng, char, style)[3:] if char in FORMS else char for char in text)


def value(tree: Tree) -> Hashable:
    """Return what two equal answers share; ArithmeticError, ValueError or TypeError if there is no value."""
    text = _with_signs(random.Random(0), Writer(random.Random(0), "V")(tree), "V")
    return tuple(_rounded(eval(text, _scope(seed))) for seed in (1, 2, 3))


def _scope(seed: int) -> dict[str, Any]:
    """Return the functions of Python expressions, and random values of names."""

    def at(name: str) -> float:
        return random.Random(f"{name}{seed}").uniform(-2, 3)

    def integral(f: Callable[[float], float], low: float, high: float) -> float:  # Simpson's rule
        ys = [f(low + (high - low) * i / 200) for i in range(201)]
        return (high - low) / 600 * (ys[0] + ys[-1] + 4 * sum(ys[1:-1:2]) + 2 * sum(ys[2:-1:2]))

    def interval(left: str, low: float, high: float, right: str) -> Hashable:
        if low >= high or (left, low) == ("[", -math.inf) or (right, high) == ("]", math.inf):
            raise ValueError("no interval")
        return left, low, high, right

    found = vars(math) | {name: getattr(cmath, name) for name in ("sin", "cos", "tan", "exp")} | {"ln": cmath.log}
    return found | {name: at(name) for name in NAMES} | {"at": at, "integral": integral, "interval": interval}


def _rounded(found: Any) -> Hashable:
    if isinstance(found, tuple | frozenset | str):
        return found if isinstance(found, str) else type(found)(map(_rounded, found))
    if cmath.isnan(found):
        raise ValueError("not a number")
    return tuple(f"{part if abs(part) > 1e-9 else 0:.10g}" for part in (complex(found).real, complex(found).imag))


def changed(rng: random.Random, tree: Tree) -> Tree:
    """Return a tree with one string changed, so that its value differs; ValueError if there is none."""
    before, others = value(tree), [*_changes(rng, tree)]
    for other in rng.sample(others, len(others)):
        with suppress(ArithmeticError, ValueError, TypeError):
            if value(other) != before:
                return other
    raise ValueError(f"no change found for {tree}")


def _changes(rng: random.Random, tree: Tree) -> Iterator[Tree]:
    """Yield the copies of a tree in which one string is another one of its sort."""
    for index, part in enumerate(tree[1:], 1):
        for new in [_other(rng, part)] if isinstance(part, str) else _changes(rng, part):
            yield (*tree[:index], new, *tree[index + 1 :])


def _other(rng: random.Random, leaf: str) -> str:
    """Return a string with another digit, or another name; the same if it has no other."""
    for pool in POOLS:
        if leaf in pool:
            return rng.choice([other for other in pool if other != leaf])
    if not leaf[-1].isdigit():
        return leaf
    at = rng.choice([i for i, char in enumerate(leaf) if char.isdigit()])
    leading = len(leaf) > 1 and at == leaf.count("-")
    return leaf[:at] + rng.choice([d for d in "0123456789"[leading:] if d != leaf[at]]) + leaf[at + 1 :]


def pair(kind: str, seed: int, equal: bool) -> tuple[str, str]:
    """Return an answer of a kind and a gold, which are equal or not."""
    for turn in range(100):
        rng = random.Random(f"{kind} {seed} {turn}")
        tree = Drawer(rng).drawn(kind)
        with suppress(ArithmeticError, ValueError, TypeError):
            other = changed(rng, tree)
            gold = answer = written(rng, tree)
            while answer == gold:
                answer = written(rng, tree if equal else other)
            return answer, gold
    raise ValueError(f"no answers of the kind {kind}")
