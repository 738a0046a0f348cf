r"""Letters of an answer that may have another name: arbitrary constants, and integers such as the k of 2k\pi.

The C of an integral, the constants of a general solution and the integer of a family of angles are read here, as
conditions on families of formulas. `gem.graders.math.families` evaluates these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gem.graders.math.conditions import SameFamily, SameFormula, SameProgressions
from gem.graders.math.read import read
from gem.graders.math.values import Congruence, Formula, Group, Named, Number, Value, latex_of

_DECLARED = (
    r"(?:,|\(|;|\b(?:for|where|with)\b)[\s,]*(?:(?:for|where|with)\b\s*)?(?:any|all|some|every|each|an?|arbitrary|\s)*"
)
_PARAMETER = re.compile(
    rf"[\s,]*{_DECLARED}(?:(?:(?:real |complex )*(?:constants?|numbers?|integers?)\s*)?"
    r"(?P<letter>[a-zA-Z](?:_\{?\d\}?)?)\s*(?:\\in|is in)\s*\\mathbb\s*\{?(?P<set>[NZRC])\}?"
    r"|integers?\s*(?P<integer>[a-z])|(?P<integer1>[a-z])(?:\s*is)?(?: an?)?(?: any| arbitrary)?\s*integer)\s*[).]?$"
)
_CONSTANT = re.compile(
    rf"[\s,]*{_DECLARED}(?:(?:real |complex )*constants?\s*(?P<first>[a-zA-Z](?:_\{{?\d\}}?)?)"
    r"|(?P<last>[a-zA-Z](?:_\{?\d\}?)?)(?:\s*(?:,|and)\s*[a-zA-Z](?:_\{?\d\}?)?)*\s*(?:is|are)?\s*"
    r"(?:an?|any|arbitrary|real|complex|\s)*(?:constants?|numbers?))\s*[).]?$"
)
_LETTERS = re.compile(r"\\[a-zA-Z]+|[a-zA-Z]")
_CONSTANT_AT_END = re.compile(
    r"((?:\\[a-zA-Z]+(?![a-zA-Z])|[^cCkK\\])*)\+\s*(?:[ckCK](?:_\{?[0-9]\}?)?|(?:\\text\{)?const(?:ant)?\.?\}?)"
)
_INTEGRAL = re.compile(r"((?:\\[a-zA-Z]+(?![a-zA-Z])|[^a-zA-Z\\]|[extuyz])*)\+C")
_ASKS_FAMILY = re.compile(
    r"\bgeneral (?:solution|form|term)|\bdifferential equation|\b(?:ODE|recurrence)\b|\\(?:dot|ddot|partial)(?![a-z])"
    r"|\\frac\s*\{d|\bd[yxuvwP]/d[xt]\b|\b[yxuvfwzQPT]'+|\\prime|\barbitrary constants?\b"
    r"|\b(?:all|every) (?:[a-z-]+ ){0,3}(?:functions?|polynomials?|solutions?)\b",
    re.IGNORECASE,
)
_ARBITRARY = re.compile(r"(?:[A-DKMackbd]|\\(?:alpha|beta|lambda)(?![a-z]))(?:_\{?\d\}?)?(?![_'(])")
_COMMAND = re.compile(r"\\(?!alpha|beta|lambda)[a-zA-Z]+")


def same_parameters(answer: str, gold: str, question: str) -> SameFamily | SameFormula | SameProgressions | None:
    """Return the condition that two normalized texts are the same family; None if they are not two families."""
    if (integrals := _integrals(answer, gold)) is not None:
        return SameFormula(*integrals, up_to_constant=True)
    return _progressions(answer, gold) or _families(answer, gold, question)


def parameter_of(text: str) -> tuple[str, str, str]:
    r"""Return a text without the declaration of its parameter, the parameter and its set ("R" for a constant).

    >>> parameter_of(r"2k\pi, k\in\mathbb{Z}"), parameter_of(r"ax\text{ for some constant }a"), parameter_of("2k")
    (('2k\\pi', 'k', 'Z'), ('ax', 'a', 'R'), ('2k', '', ''))
    """
    flat = re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text).strip()
    if (match := _PARAMETER.search(flat)) is not None and match.start():
        letter = match["letter"] or match["integer"] or match["integer1"]
        return flat[: match.start()].strip(" ,"), letter, match["set"] or "Z"
    if (match := _CONSTANT.search(flat)) is not None and match.start():
        return flat[: match.start()].strip(" ,"), match["first"] or match["last"], "R"
    return text, "", ""


def same_parameter(answer: str, gold: str) -> tuple[str, str] | None:
    """Remove the declarations of parameters, and rename that of the answer to that of the reference answer.

    The k of the angles x + 2kπ needs no declaration. Return None if there is no parameter, or the declared sets differ.
    """
    (ours, letter, numbers), (theirs, wanted, gold_numbers) = parameter_of(answer), parameter_of(gold)
    letters, gold_letters = (set(_LETTERS.findall(text)) for text in (ours, theirs))
    periodic = r"\pi" in letters & gold_letters
    only, gold_only = letters - gold_letters, gold_letters - letters
    if len(only) == len(gold_only) == 1 and periodic and only | gold_only <= set("kmn"):
        letter, wanted = letter or min(only), wanted or min(gold_only)
    elif not (letter or wanted):
        return None
    if numbers and gold_numbers and numbers != gold_numbers:
        return None
    wanted = wanted or (min(gold_only) if len(gold_only) == 1 else "")
    if letter and wanted and letter != wanted and wanted not in letters:
        ours = _LETTERS.sub(lambda m: wanted if m.group() == letter else m.group(), ours)
    return ours, theirs


def _progressions(answer: str, gold: str) -> SameProgressions | None:
    r"""Return the condition that two answers are the same numbers for all integers k; None for other answers.

    The parameter must be declared on one side, or both must be multiples of \pi or degrees.
    """
    (ours, letter, numbers), (theirs, wanted, gold_numbers) = parameter_of(answer), parameter_of(gold)
    if not {numbers, gold_numbers} <= {"Z", ""}:
        return None
    periodic = all(re.search(r"\\pi|\\circ", text) for text in (ours, theirs))
    if not (numbers or gold_numbers or periodic or r"\pmod" in answer + gold):
        return None
    found = list(_members(read(ours).value, letter)), list(_members(read(theirs).value, wanted))
    if not all(found) or any(None in each for each in found):
        return None
    return SameProgressions(*(tuple(latex for latex in each if latex is not None) for each in found))


def _members(value: Value, letter: str) -> Iterator[str | None]:
    """Yield the formulas of a value in one integer, renamed to q_1; None for any other part."""
    if isinstance(value, Named) and re.fullmatch(r"\\?[a-zA-Z]+", value.name):
        yield from _members(value.value, letter)
    elif isinstance(value, Group) and value.kind in ("list", "set"):
        for item in value.items:
            yield from _members(item, letter)
    elif isinstance(value, Congruence) and isinstance(value.value, Number) and isinstance(value.modulus, Number):
        if value.name and not re.fullmatch(r"[a-zA-Z](?:_\{?\w\}?)?", value.name):
            yield None  # 2n = 2 (mod 5)
            return
        yield f"{latex_of(value.value)}+{latex_of(value.modulus)}\\cdot q_{{1}}"
    elif isinstance(value, Formula) and value.unit in ("", "degree"):
        letters = set(re.findall(r"(?<![\\a-zA-Z])[a-zA-Z]", re.sub(r"\\[a-zA-Z]+", " ", value.latex)))
        good = len(letters) == 1 and letters <= (set(letter) or set("klmn"))
        factor = r"\frac{\pi}{180}\cdot " if value.unit else ""
        yield factor + f"({_renamed(value.latex, sorted(letters))})" if good else None
    else:
        yield None


def _families(answer: str, gold: str, question: str) -> SameFamily | None:
    """Return the condition that two general solutions are equal; None if the question does not ask for one."""
    if not _ASKS_FAMILY.search(question):
        return None
    ours, theirs = (parameter_of(text)[0] for text in (answer, gold))
    (name, right), (gold_name, gold_right) = _sides(ours), _sides(theirs)
    if name and gold_name and name[0] != gold_name[0]:
        return None
    known = _names(question) | _names(re.sub(r"^.*?\(|\).*", "", name)) | {"e", "i"}
    constants = [_arbitrary(text, known) for text in (right, gold_right)]
    if not constants[1] or len(constants[0]) != len(constants[1]) or re.search(r",|\\text|\\pm", right + gold_right):
        return None
    return SameFamily(*(_renamed(text, each) for text, each in zip((right, gold_right), constants, strict=True)))


def _sides(text: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    return (left.strip(), right.strip()) if equals and "=" not in right else ("", text if not equals else ",")


def _names(text: str) -> set[str]:
    formulas = re.findall(r"\$([^$]*)\$", text) if "$" in text else re.findall(r"\b[a-zA-Z]'*(?![a-zA-Z])", text)
    return {name for formula in formulas for name in _LETTERS.findall(formula)}


def _arbitrary(text: str, known: set[str]) -> list[str]:
    """Return the arbitrary constants in a formula: letters such as C_1, A and k that the question does not have."""
    found = dict.fromkeys(match.group() for match in _ARBITRARY.finditer(_COMMAND.sub(" ", text)))
    if len({name.casefold() for name in found}) < len(found):
        return []  # c_1 and C_1 may be one constant
    return [name for name in found if "_" in name or name not in known]


def _renamed(text: str, names: list[str]) -> str:
    """Rename the letters of a formula to q_1, q_2 and so on."""
    numbers = {name: f" q_{{{number}}}" for number, name in enumerate(names, 1)}
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?:{pattern})(?![_'])|\\[a-zA-Z]+", lambda m: numbers.get(m.group(), m.group()), text)


def _integrals(answer: str, gold: str) -> tuple[str, str] | None:
    """Return two indefinite integrals without their constants, which must be at the end; None for other texts."""
    ours, theirs = _CONSTANT_AT_END.fullmatch(answer.rpartition("=")[2]), _INTEGRAL.fullmatch(gold.rpartition("=")[2])
    return None if ours is None or theirs is None else (ours.group(1), theirs.group(1))
