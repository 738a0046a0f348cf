r"""Parts of an answer that repeat the question: nouns, remarks, left sides, the names of unknowns.

"20 boys" is 20 if the question is how many boys there are, [ABC] = 84 is 84 if it asks for an area, 3^{20} > 2^{30} is
3^{20} if it asks which is larger. What contradicts the question stays: "12 girls" is not 12 boys.
"""

from __future__ import annotations

import re

from gem.graders.math.question import counted_things, last_question
from gem.graders.math.units import is_listed_unit, parse_unit, stem
from gem.graders.math.values import SCALES, spelled_number

_AMOUNT = re.compile(r"(?P<number>[-+]?(?:[\d.,/ ]*\d|\\frac\{\d+\}\{\d+\}))\s*(?P<noun>[a-z][a-z -]*)", re.IGNORECASE)
_FILLING = re.compile("of|the|such|different|distinct|possible|total|in|altogether|there|are|is|all")
_REMARK = re.compile(r"(?P<said>.*[\w})|])\s*(?:\\text\s*\{\s*)?\((?P<remark>[a-zA-Z\\' ,.;-]+)\)\s*\}?")
_CHANGES = re.compile(
    r"\b(?:not?|never|none|nor|neither|or|but|than|more|less|fewer|least|most|about|over|under|except|only|times|twice|half"
    r"|double|minus|plus|negative|wrong|false|incorrect|if|unless|maybe|perhaps|probably|almost|nearly|another|other|every"
    r"|each|per|mod|modulo|base|north|south|east|west|left|right|up|down|increase|decrease|loss|gain|profit|squared"
    r"|cubed|dozens?|pairs?|percent|yes|no|can't|isn't|up to|as"
    r"|upper|lower|bounds?|parts?|guess|estimate|real|complex|imaginary|minimum|maximum|first|last)\b"
)
_SIGN = re.compile(r"(?P<first>[^<>]+)(?P<sign>[<>])(?P<second>[^<>]+)")
_WHICH = re.compile(r"\bwhich\b[^.?]*\b(?:(?P<more>larger|greater|bigger)|(?P<less>smaller|less))\b", re.IGNORECASE)
_TWINS = re.compile(r"(?P<first>[a-z])=(?P<second>[a-z])=(?P<value>[^=]+)")
_REMAINDER = re.compile(
    r"(?P<left>[^=]+?)\s*(?:\\bmod\s*\{?(?P<modulus>\d+)\}?|\(?\\pmod\{(?P<modulus1>\d+)\}\)?)\s*=(?P<said>\s*\d+)"
)
_RATE = re.compile(
    r"(?P<said>[\d.]+ ?%) ?(?:(?:per|an?|each|every|/) ?(?P<period>year|annum|month|week|day)|p\.a|annually|yearly)"
)
_LABELS = (  # left sides that name what the question asks for, and its words for them
    (r"\[[A-Z]{3,8}\]", r"\barea\b"),
    (r"\\sigma\^2|[sS]\^2|(?:\\text\{)?(?:Var|V|D)\}?\([A-Z]\)", r"\bvariance\b"),
    (r"\\(?:bar|overline)\{[a-zA-Z]\}|\\mu", r"\bmean\b|\baverage\b"),
    (r"P\(.*\)|\\text\{Pr\}\(.*\)", r"\bprobability\b"),
    (r"\|\s*[a-z](?:_\d)?\s*\|", r"\bmodulus\b|\babsolute value\b|\bmagnitude\b"),
    (r"\\\|.*\\\||\|\s*\\(?:vec|overrightarrow)\s*\{\w+\}\s*\|", r"\bnorm\b|\blength\b|\bmagnitude\b"),
)


def without_noun(text: str, question: str) -> str:
    """20 boys: all words are words of what the question counts."""
    match, asked = _AMOUNT.fullmatch(_plain(text)), counted_things(question)
    if match is None or not asked or is_listed_unit(parse_unit(match["noun"]) or "?"):
        return text
    words = [word for word in re.findall("[a-z]+", match["noun"].casefold()) if not _FILLING.fullmatch(word)]
    if re.search(r"\b(?:each|every|per)\b", last_question(question)) and re.search("total|all|alto", match["noun"]):
        return text  # 6 slices in all, if the question is how many each one gets
    things = {stem(word) for word in re.findall("[a-z]+", asked)}
    return match["number"] if words and {stem(word) for word in words} <= things else text


def without_remark(text: str, question: str) -> str:
    """T (natural log), or words that the question says: no number, unit, negation, or thing that is not asked for."""
    match = _REMARK.fullmatch(text)
    if match is None or "(" not in match.group() or not re.search(r"[\d\\]|[a-zA-Z]", match["said"]):
        return text
    words = [word.strip("\\,.;") for word in match["remark"].casefold().split()]
    if any(map(_changes, words)):
        return text
    if words[:1] == ["natural"] and words[1].startswith("log"):
        return re.sub(r"\\log(?![a-z_])", r"\\ln", match["said"])
    if len([word for word in words if len(word) > 2]) < 2:
        return text  # a product of variables
    things = {stem(word) for word in ["how", "many", "the", *counted_things(question).split()]}
    known = {stem(word) for word in re.findall(r"[a-z]{3,}", question.casefold())}
    stems = {stem(word) for word in words if len(word) > 2}
    if not stems <= known | {"the"} or (counted_things(question) and not stems <= things):
        return text  # it says what the question does not say, or counts something else
    return match["said"].removesuffix(r"\text{").strip()


def _changes(word: str) -> bool:
    """Return whether a word of a remark changes the value before it."""
    measured = is_listed_unit(parse_unit(word) or "?")
    return measured or _CHANGES.search(word) is not None or word in SCALES or spelled_number(word) is not None


def without_label(text: str, question: str) -> str:
    """[ABC] = 84 if the question asks for an area."""
    left, _, right = text.partition("=")
    asked = last_question(question)
    points = re.fullmatch(r"\[([A-Z]+)\]", left.strip())
    if points is not None and not set(points.group(1)) <= set("".join(re.findall("[A-Z]{3,}", question))):
        return text  # the area of another triangle
    named = any(re.fullmatch(form, left.strip()) and re.search(words, asked, re.IGNORECASE) for form, words in _LABELS)
    return right.strip() if named and right else text


def larger_of_two(text: str, question: str) -> str:
    """A > B if the question asks which of A and B is larger."""
    match, asked = _SIGN.fullmatch(text), _WHICH.search(question)
    if match is None or asked is None:
        return text
    squeezed = re.sub(r"[\s{}]", "", question)
    sides = match["first"].strip(), match["second"].strip()
    if not all(re.sub(r"[\s{}]", "", side) in squeezed for side in sides):
        return text
    return sides[(match["sign"] == "<") == (asked["more"] is not None)]


def equal_unknowns(text: str, question: str) -> str:
    """M = n = 2 for the pair (m, n)."""
    match = _TWINS.fullmatch(text.replace(" ", ""))
    if match is None or not re.search(rf"\(\s*{match['first']}\s*,\s*{match['second']}\s*\)", question):
        return text
    return f"({match['value']}, {match['value']})"


def dimensions(text: str, question: str) -> str:
    r"""7 \times 3 for the two sides of a rectangle."""
    if not re.search(r"\bdimensions\b", question) or re.search(r"\bmatri|\bvector|\bspace\b", question):
        return text
    parts = re.split(r"\\cdot(?![a-z])|\bby\b", _plain(text))
    return ", ".join(part.strip() for part in parts) if 1 < len(parts) < 4 and all(map(str.strip, parts)) else text


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text)).strip(" .")


def remainder(text: str, question: str) -> str:
    r"""2^{2024} \bmod 7 = 4 is 4: the question has the power and the modulus."""
    match = _REMAINDER.fullmatch(text)
    if match is None:
        return text
    left, modulus = re.sub(r"[\s{}()]", "", match["left"]), match["modulus"] or match["modulus1"]
    known = left in re.sub(r"[\s{}()]", "", question) and re.search(rf"(?<![\d.^]){modulus}(?!\d|\.\d)", question)
    return match["said"].strip() if known else text


def rate(text: str, question: str) -> str:
    """12% per year is 12% if the question asks for a rate per year."""
    match = _RATE.fullmatch(_plain(text))
    if match is None:
        return text
    name = match["period"] if match["period"] in ("month", "week", "day") else "year"
    periods = {"year": r"\b(?:annum|annual|year)", "month": r"\bmonth", "week": r"\bweek", "day": r"\b(?:day|daily)"}
    asked = {each for each, words in periods.items() if re.search(words, last_question(question), re.IGNORECASE)}
    known = name in asked or (not asked and re.search(periods[name], question, re.IGNORECASE))
    return match["said"].strip() if known else text


RULES = (without_noun, without_remark, without_label, larger_of_two, equal_unknowns, dimensions, remainder, rate)
