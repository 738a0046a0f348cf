"""Sentences and remarks: "Ines has 31 stamps" says 31 if the question asks how many stamps Ines has.

Every word around the value has to be a word of the last question or a word that says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile

from gem.graders.math.asked.pieces import AnswerText, Piece, formulas, pieces, trees_of, words_of
from gem.graders.math.equal import normal, same
from gem.graders.math.lexer import tokens
from gem.graders.math.lexer import words as word_set
from gem.graders.math.question import Question, words_in
from gem.graders.math.tree import Num, Op, Quantity, Relation, Sym, Tree, mapped, names_in, substituted, walk
from gem.graders.math.values import approximate

SAYS_NOTHING = word_set(
    "an a the it its it's this that he she they there we you i is are was were be been has have had "
    "will would can do does did of in on at to by for with who which what value result number answer so "
    "now then therefore hence thus so his her their o'clock she'll he'll it'll they'll there's that's "
    "exactly only , . : = '"
)
_NEVER = word_set("wrong false incorrect not no never none nor neither or and but if unless maybe about than")
_DENIALS = word_set("not impossible never cannot isn't can't doesn't")
_DIVIDED = word_set("each every per apiece average mean difference left remain remaining more fewer less")
_REASONS = word_set("since because as counterexample example e.g.")  # after them, an answer says why
_VERBS = word_set("are is was were do does did has have will would can must should")
_PRONOUNS = word_set("he she it his her him its")
_OPENINGS = word_set(  # words at the beginning of a question that are no names
    "If How What Which When Where Who In On At Of For From To By It There This Each Every One Two Three "
    "Four Five Six Find Give After Before Some All Both During Suppose Let Today"
)
MOST = word_set(
    "most greatest largest highest fastest tallest biggest oldest longest maximum maximal max faster taller"
)
LEAST = word_set("least smallest lowest slowest shortest youngest fewest minimum minimal min")
_ALIKE = [MOST, LEAST] + [  # words of which each says what the others ask for
    frozenset(words.split())
    for words in (
        "cost price spend pay charge", "earn make", "need require", "left remain", "old age", "weigh weight",
        "long length", "tall high height", "far distance", "fast speed", "long take time last", "each every per apiece",
        "factor times", "det determinant", "dim dimension", "sup supremum", "inf infimum",
    )
]  # fmt: skip
_PASTS = {
    past: verb
    for verb, pasts in {
        "buy": "bought", "sell": "sold", "eat": "ate eaten", "give": "gave given", "make": "made", "pay": "paid",
        "spend": "spent", "drive": "drove driven", "run": "ran", "take": "took taken", "get": "got", "lose": "lost",
        "win": "won", "write": "wrote written", "grow": "grew grown", "find": "found", "keep": "kept",
    }.items()
    for past in pasts.split()
}  # fmt: skip

_REPEATING = word_set("or = ≈ about approximately equals")
_ATTAINED = word_set(
    "attained achieved occurs occurring reached obtained taken at when for if which it is only value ,"
)
_ANSWERS = word_set("yes no true false")


def said_values(answer: AnswerText, short: AnswerText, q: Question) -> Iterator[Tree]:
    """Yield the value that a sentence, or a value with a remark in brackets, says; nothing for other answers."""
    parts: Sequence[Piece] = answer.parts
    if len(parts) > 2 and parts[-1] == ")" and "(" in parts[1:]:
        at = max(i for i, part in enumerate(parts) if part == "(")
        parts, remark = parts[:at], parts[at + 1 : -1]
        if not _holds(remark, parts, q):
            return
        if len(parts) == 1:
            yield from trees_of(parts)
    if "many" in words_in(q.asked) and ":" in parts[2:] and isinstance(parts[0], Num):
        parts = parts[: parts.index(":")]  # 4 solutions: x = …
    parts = [p for p in parts if not (isinstance(p, Sym) and p.name.casefold() in q.words)] or parts
    parts = _without_known(parts, q) if len(trees_of(parts)) > 1 else parts
    trees, name = trees_of(parts), [word.casefold() for word in words_of(short.parts)]
    if not trees and len(name) == len(short.parts) and len("".join(name)) > 1:
        low = [str(part).casefold() for part in parts]
        at = next((i for i in range(len(low)) if low[i : i + len(name)] == name), -1)
        rest = [*parts[:at], "", *parts[at + len(name) :]]
        if at >= 0 and len(rest) > 1 and low.count(name[0]) == 1 and name[0] not in _ANSWERS and adds_nothing(rest, q):
            yield short.tree
    if not trees or len(parts) < 2:
        return
    place = next(i for i, part in enumerate(parts) if not isinstance(part, str))
    if len(trees) == 2 and _is_attained(parts[place + 1 :], trees[0], q) and adds_nothing(parts[: place + 1], q):
        yield trees[0]
    counts = isinstance(parts[0], Num) and isinstance(short.tree, Num) and len(parts) == 2 and not q.text
    noun = parts[1] if counts else ""
    if len(trees) == 1 and (adds_nothing(parts, q) or noun in ("people", "ways")):
        yield trees[0]


def _holds(remark: Sequence[Piece], parts: Sequence[Piece], q: Question) -> bool:
    """Return whether a remark in brackets repeats the value, says where it is attained, or repeats the question."""
    values, remark = trees_of(parts), _without_known(remark, q)
    said, words = trees_of(remark), {word.casefold() for word in words_of(remark)}
    if len(values) != 1:
        return False
    if not said:
        return adds_nothing(remark, q) and not (MOST & set(q.words) and LEAST & set(q.words))
    if _is_attained(remark, values[0], q):
        return True
    if not words <= _REPEATING | {"and", ","} | set(q.words) or (said[0] != remark[0] and remark[0] not in _REPEATING):
        return False
    if len(said) > 1 and "or" in words:
        return False
    a, b = (said[0] if len(said) == 1 else Op("+", tuple(map(bare, said)))), values[0]
    units = {part.unit for tree in (a, b) for part in walk(tree) if isinstance(part, Quantity)}
    pairs = [(a, b)] if len(units) > 1 else [(a, b), (bare(a), bare(b))]
    if any(same(normal(x), normal(y), q) is True for x, y in pairs):
        return True
    x, y = approximate(a, {}), approximate(b, {})
    half = max((10.0**-tree.places / 2 for tree in (a, b) if isinstance(tree, Num) and tree.places), default=0.0)
    return x is not None and y is not None and abs(x - y) <= half


def bare(tree: Tree) -> Tree:
    return mapped(tree, lambda part: part.value if isinstance(part, Quantity) else part)


def _is_attained(remark: Sequence[Piece], value: Tree, q: Question) -> bool:
    """Return whether a remark such as "attained at x = 2" is true of the only formula in its letter."""
    trees, asked = trees_of(remark), " ".join(words_in(q.asked)).casefold().split()
    asks_where = {"which", "where", "that"} & set(asked) or "for what" in " ".join(asked)
    if len(trees) != 1 or not isinstance(trees[0], Relation) or not (MOST | LEAST) & set(q.words) or asks_where:
        return False
    *names, at = trees[0].sides
    if set(trees[0].operators) != {"="} or not {word.casefold() for word in words_of(remark)} <= _ATTAINED:
        return False
    points = {name.name: at for name in names if isinstance(name, Sym)}
    found = [each.sides[-1] if isinstance(each, Relation) else each for each in formulas(q.text)]
    found = [each for each in found if names_in(each) == set(points) and not isinstance(each, Sym)]
    if len(found) != 1 or len(remark) < 2:
        return not found
    x, y = approximate(substituted(found[0], points), {}), approximate(value, {})
    return x is not None and y is not None and abs(x - y) < 1e-9


def _without_known(parts: Sequence[Piece], q: Question) -> Sequence[Piece]:
    """Remove a number with its noun that the last question has too, as in "in 8 years"."""
    asked = _asked_pieces(q) if len(parts) > 1 else ()
    for at, part in enumerate(parts):
        size = 1 if isinstance(part, Quantity) else 2
        known = any(asked[i : i + size] == tuple(parts[at : at + size]) for i in range(len(asked)))
        if known and not isinstance(part, str) and not (at and parts[at - 1] == "of"):
            start = at - 1 if at and str(parts[at - 1]).casefold() in ("in", "after", "for") else at
            return [*parts[:start], *parts[at + size :]]
    return parts


@lru_cache(maxsize=512)
def _asked_pieces(q: Question) -> tuple[Piece, ...]:
    try:
        return pieces(tokens(q.asked.replace("$", " "))) if len(q.asked) < 500 else ()
    except ValueError:  # the braces of a question need not be balanced
        return ()


def root(word: str) -> str:
    """Return a word in lower case without the ending of a plural or of a form of a verb."""
    word = word.casefold().removesuffix("'s")
    word = _PASTS.get(word, word)
    ends = ("ied", "ies", "ing", "ed", "es", "s", "e", "y") if len(word) > 3 else ()
    word = next((word[: -len(end)] for end in ends if word.endswith(end) and len(word) > len(end) + 2), word)
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _roots(words: Iterable[str]) -> set[str]:
    return set(map(root, words))


def _known(texts: Sequence[str], names: Sequence[str]) -> set[str]:
    """Return the roots of the words that the last question has or stands for, without the things it chooses from."""
    known, asked = _roots([*texts, *names]), [text.casefold() for text in texts]
    for alike in _ALIKE:
        known |= _roots(alike) if known & _roots(alike) else set()
    if not _DIVIDED & set(asked) or {"all", "total", "altogether"} & set(asked):
        known |= {"total", "altogether", "all"}
    return known - {root(asked[i + d]) for i in range(1, len(asked) - 1) if asked[i] == "or" for d in (-1, 1)}


def adds_nothing(parts: Sequence[Piece], q: Question) -> bool:
    """Return whether all words around a value are words of the last question, or words that say nothing.

    The words may name the subject of the question first, and have to name what it counts after a number.
    """
    words, texts = [part for part in parts if isinstance(part, str) and part], words_in(q.asked)
    asked = [text.casefold() for text in texts]
    names = [text for before, text in pairwise(texts) if text.istitle() and len(text) > 1 and before not in ".?!"]
    names = names or [name for name in (_subject(q),) if name and _PRONOUNS & set(asked)]
    capitals = [word for word in words if word in names or (word.istitle() and word is not parts[0])]
    if capitals[:1] not in ([], names[:1]) or not set(capitals) <= set(names):
        return False
    known, things = _known(texts, names), _counted(asked)
    place = next((i for i, part in enumerate(parts) if not isinstance(part, str)), len(parts))
    after = [part for part in _words_after(parts, place)[:2] if part not in ("of", "in")]
    if after and after[0].istitle():
        return False
    if noun := next((word for word in after if word.endswith("s") and word not in _VERBS | SAYS_NOTHING), ""):
        if {"percent", "percentage"} & set(asked) or (things and root(noun) not in things):
            return False  # 25 students if the question asks what percent they are, 12 girls if it counts boys
        known |= {root(noun)} & _roots(q.words) if "many" in asked and not things else set()
    for index, part in enumerate(parts):
        word, after = str(part).casefold(), _words_after(parts, index)
        if word == "of" and after and after[0] not in _VERBS:
            if not (thing := _noun_after_of(after, q.words)):
                return False
            known.add(thing)
        compares = word in ("more", "less", "fewer") and not {"many", "much"} & set(takewhile(word.__ne__, asked))
        changes = compares or (word in _NEVER and (word, "than" in asked) != ("than", True))
        if isinstance(part, str) and part and (changes or not (word in SAYS_NOTHING or root(word) in known)):
            return False
    return True


def _words_after(parts: Sequence[Piece], index: int) -> list[str]:
    """Return the words after a piece up to the next formula."""
    return [str(part) for part in takewhile(lambda part: isinstance(part, str), parts[index + 1 :])]


def _noun_after_of(words: Sequence[str], asked: Sequence[str]) -> str:
    """Return the root of the noun after "of" if it follows an "of" in the question too, else ""."""
    noun = next((root(word) for word in words if word not in ("the", "a", "an")), "")
    return noun if any("of" in asked[max(0, i - 3) : i] for i, word in enumerate(asked) if root(word) == noun) else ""


def _subject(q: Question) -> str:
    """Return the only name of a question, or else the noun that it begins with."""
    texts = words_in(q.text)
    names = {text for text in texts if text.istitle() and len(text) > 1 and text.casefold() not in texts} - _OPENINGS
    names -= {"The", "An"}
    first = texts[1] if len(texts) > 1 and texts[0] in ("A", "An", "The") else ""
    return names.pop() if len(names) == 1 else first if not names else ""


def _counted(asked: Sequence[str]) -> set[str]:
    """Return the roots of the words after the last "how many" or "number of"; empty if the verb follows at once."""
    starts = [i for i in range(1, len(asked)) if asked[i - 1 : i + 1] in (["how", "many"], ["number", "of"])]
    if not starts:
        return set()
    rest = list(asked[starts[-1] + 1 :])
    rest = rest[: rest.index("than")] if "than" in rest else rest
    verb = next((i for i, word in enumerate(rest) if word in _VERBS), len(rest))
    predicate = rest[verb + 1 : verb + 2] if rest[verb : verb + 1] in (["is"], ["are"], ["was"], ["were"]) else []
    return _roots([*rest[:verb], *predicate]) if rest[:verb] else set()


def polarity(parts: Sequence[Piece], q: Question) -> str:
    """Return yes, no, true or false if an answer says so, and a rest that does not take it back; else ""."""
    low = [part.casefold() if isinstance(part, str) else "" for part in parts if part not in tuple(",.;:()")]
    if {"or", "but", "yes", "no", "true", "false"} & set(low[1:]):
        return ""
    low = low[: next((i for i, word in enumerate(low) if word in _REASONS), len(low))]
    low = low[:-1] if low[-1:] == ["for"] else low  # for example
    head = {"t": "true", "f": "false"}.get("".join(low[:1]), "".join(low[:1]))
    if head in ("yes", "no", "true", "false"):
        denies, such = bool(_DENIALS & set(low)), head == "no" and low[1:2] == ["such"] and low[-1][:5] == "exist"
        known = _roots([*q.words, *_DENIALS, "always", "such", "possible"])
        fits = such or len(low) == 1 or denies is (head in ("no", "false"))
        return head if fits and all(root(word) in known or word in SAYS_NOTHING for word in low[1:]) else ""
    kept = [word for word in low if word not in SAYS_NOTHING]
    if "possible" in q.words and kept in (["possible"], ["not", "possible"], ["impossible"]):
        return "yes" if kept == ["possible"] else "no"
    return ""
