r"""LaTeX in messages, as trees of MathML elements for the page.

Formulas stand between ``$…$``, ``$$…$$``, ``\(…\)`` or ``\[…\]``, or are a ``\boxed{…}``; code is left alone. The
library latex2mathml converts them. Formulas of models are hostile, so a worker with a time limit reads them, they are
short and define no macros, and of the result only listed elements, attributes and values are kept. Other formulas stay
text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from gem._internal.worker_pool import WorkerPool
from gem.errors import InfraError, MissingDependency, require

MAX_FORMULA = 1_000  # characters
MAX_NODES, MAX_DEPTH = 800, 40  # elements of a formula
MAX_FORMULAS = 1_000  # of an episode
TIMEOUT_S = 3.0  # per episode; latex2mathml takes under .1 s for the slowest of 37,000 random formulas of MAX_FORMULA
MAX_TIMEOUTS = 3  # episodes whose formulas took too long; those of later episodes then stay text

_FORMULA = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`"  # code
    r"|\$\$(?P<block>[^$]{1,1000}?)\$\$|\\\[(?P<bracket>[^$]{1,1000}?)\\\]|\\\((?P<paren>[^$]{1,1000}?)\\\)"
    r"|(?<![\w$\\])\$(?![\s$])(?P<dollar>(?:[^$\\\n`]|\\.){1,500}?)(?<!\s)\$(?![\w$])"
    r"|(?P<box>\\boxed\{(?:[^{}\n$]|\{(?:[^{}\n]|\{[^{}\n]{0,200}\}){0,200}\}){1,300}\})",
    re.DOTALL,
)
_HINT = re.compile(r"\$|\\[(\[b]")
_WORD = re.compile(r"(?:\\[a-zA-Z]+\s*\{[^{}]*\}|\\[a-zA-Z]+)|([a-zA-Z]{4,})")  # group 1: no command or its text
_MACRO = re.compile(r"\\(?:(?:re)?new[a-z]+|provide[a-z]+|DeclareMath[a-zA-Z]+|def|let)(?![a-zA-Z])")
_ALIGNED = re.compile(r"\\(begin|end)\s*\{(align|gather)ed\}")  # latex2mathml knows them with a star only

_ELEMENT = re.compile(
    "m(?:ath|row|i|n|o|text|space|frac|sqrt|root|sup|sub|subsup|under|over|underover|table|tr|td|style|padded|phantom"
    "|enclose)"
)
_CHILDREN = {
    **dict.fromkeys(("mfrac", "mroot", "msup", "msub", "munder", "mover"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
_ATTRIBUTE = re.compile(
    "display|displaystyle|scriptlevel|stretchy|fence|form|accent|movablelimits|linethickness|columnalign|mathvariant"
    "|notation|width|minsize|maxsize"
)
_VALUE = re.compile(r"[a-z]{1,16}|\d(?:\.\d{1,3})?(?:em|ex|px)?")  # a word, or a length below 10 em


class FormulaRenderer:
    """Converts the formulas of episodes. Without latex2mathml, from the extra [viewer], formulas stay text."""

    def __init__(self) -> None:
        try:
            require("latex2mathml.converter", extra="viewer")
        except MissingDependency:
            self._pool = None
        else:
            self._pool = WorkerPool(1, timeout=TIMEOUT_S, modules=[__name__, "latex2mathml.converter"])
        self._timeouts = 0

    def add_to(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body of gem.viewer.episodes with its formulas.

        Messages get "math": for their "text" and "reasoning", the formulas as [start, end, number], in UTF-16 units as
        JavaScript counts. The body gets "formulas": by number, trees [name without its "m", attributes or nothing,
        children or text…].
        """
        places = [place for place in _places(body) if _HINT.search(place[0][place[1]])]
        if self._pool is None or not places or self._timeouts >= MAX_TIMEOUTS:
            return body
        try:
            found, trees = self._pool.run(f"{__name__}:convert", [message[name] for message, name in places])
        except InfraError:
            self._timeouts += 1
            return body
        for (message, name), formulas in zip(places, found, strict=True):
            if formulas:
                message.setdefault("math", {})[name] = formulas
        return {**body, "formulas": trees} if trees else body


def _places(body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the messages of a body with the names of their texts."""
    turns = [[*turn["observation"], turn["reply"]] for turn in body["turns"]]
    for message in [*(message for messages in turns for message in messages), *body["final"]]:
        yield from ((message, name) for name in ("text", "reasoning") if isinstance(message.get(name), str))


def convert(texts: Sequence[str]) -> tuple[list[list[list[int]]], list[Any]]:
    """Return the formulas of each text, and the trees of all; see FormulaRenderer.add_to(). Runs in a worker."""
    trees: dict[tuple[str, bool], Any] = {}
    numbers: dict[tuple[str, bool], int] = {}
    found: list[list[list[int]]] = []
    for text in texts:
        found.append([])
        units = at = 0  # UTF-16 units before the character number ``at``
        for start, end, latex, is_block in find(text):
            key = latex, is_block
            if key not in trees and len(trees) < MAX_FORMULAS:
                trees[key] = tree_of(latex, is_block)
            if trees.get(key) is None:
                continue
            first = units + _units(text[at:start])
            units, at = first + _units(text[start:end]), end
            found[-1].append([first, units, numbers.setdefault(key, len(numbers))])
    return found, [trees[key] for key in numbers]


def find(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yield start, end and LaTeX of the formulas of a text, and whether a formula is displayed on a line of its own."""
    for match in _FORMULA.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        latex = match[kind].strip()
        if kind == "dollar" and any(word[1] for word in _WORD.finditer(latex)):  # $HOME/bin:$
            continue
        yield match.start(), match.end(), latex, kind in ("block", "bracket")


@cache
def _converter() -> Any:
    return require("latex2mathml.converter", extra="viewer").convert_to_element


def tree_of(latex: str, is_block: bool = False) -> Any:
    """Return the tree of a formula, None if it is too large, or has something that is not converted or not allowed."""
    if len(latex) > MAX_FORMULA or _MACRO.search(latex):
        return None
    latex = _ALIGNED.sub(r"\\\1{\2*}", latex)
    try:
        element = _converter()(latex, display="block" if is_block else "inline")
        if sum(1 for _ in element.iter()) > MAX_NODES:
            return None
        return _tree(element, MAX_DEPTH)
    except Exception:  # latex2mathml raises IndexError, KeyError, StopIteration and many more for wrong LaTeX
        return None


def _tree(element: Any, depth: int) -> Any:
    text = html.unescape(element.text or "").strip("\n\t\r ")
    if not _ELEMENT.fullmatch(element.tag) or depth == 0 or "\\" in text or (element.tag == "mi" and text == "&"):
        raise ValueError(element.tag)
    if len(element) != _CHILDREN.get(element.tag, len(element)):
        raise ValueError(f"{element.tag} has {len(element)} children")
    children = [_tree(child, depth - 1) for child in element]
    kept = {
        name: value
        for name, value in element.attrib.items()
        if _ATTRIBUTE.fullmatch(name) and _VALUE.fullmatch(value) and (name, value) != ("display", "inline")
    }
    if element.tag == "mrow" and len(children) == 1:
        return children[0]
    return [element.tag[1:], *([kept] if kept else []), *([text] if text else []), *children]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
