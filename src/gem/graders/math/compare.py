"""Compare an answer with a reference answer: choose how both are read, with regard to the question.

`gem.graders.math.equal` compares the values that are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from gem.graders.math.choices import choice_of, listed_choices, names_another, small_choice
from gem.graders.math.conditions import AllOf, AnyOf, SameFormula
from gem.graders.math.equal import ROUNDING, Verdict, all_of, any_of, same_step, same_values
from gem.graders.math.form import has_asked_form
from gem.graders.math.lines import same_parametric_line
from gem.graders.math.notation import same_notation
from gem.graders.math.parameters import same_parameter, same_parameters
from gem.graders.math.quantities import (
    as_durations,
    has_possible_units,
    has_unit,
    in_asked_unit,
    is_measured,
    with_known_units,
)
from gem.graders.math.question import (
    asked_base,
    asked_kind,
    asks_base,
    asks_duration,
    asks_for,
    asks_for_choices,
    asks_order,
    asks_percentage,
    asks_rounding,
    asks_several,
    counted_things,
    counts_things,
    has_other_modulus,
    integers_in,
    is_irrational,
    is_other_name,
    is_physical,
    is_rounding,
    positives_in,
    significant_digits,
)
from gem.graders.math.read import ParsedAnswer, read
from gem.graders.math.readings import interpretations
from gem.graders.math.restrictions import attained_value, without_remark_on_domain
from gem.graders.math.rewrite import rewrite
from gem.graders.math.scalars import half_digit
from gem.graders.math.units import dimensions_of, is_listed_unit
from gem.graders.math.values import (
    Chain,
    Formula,
    Group,
    InBase,
    Named,
    Number,
    Relation,
    Value,
    Word,
)

_RESTRICTIONS = {
    "yes": {"no", "not", "unless", "except", "but", "only", "if", "sometimes"},
    "no": {"yes", "unless", "except"},
}
_POSSIBLE = re.compile(
    r"(?:(?:it|this) is )?(?:(?P<no>not possible|impossible)|possible)"
    r"|(?:(?:it|this) )?(?:(?P<never>cannot|can't)|can) be done"
)
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DATE = re.compile(
    rf"(?:on |the )?(?:(?P<first>{_MONTH})\.?\s+(?P<after>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"|(?P<before>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?"
    rf"(?P<second>{_MONTH}))(?:,?\s*(?P<year>\d{{4}}))?",
    re.IGNORECASE,
)
_PERMUTATIONS = re.compile(
    r"(?P<said>.+?)[\s,]*(?:\\text\s*\{\s*)?,?\s*(?:and |with |up to |or )(?:all |any )*(?:its |their |of its )*"
    r"(?P<cyclic>cyclic )?(?:permutations?|reorderings?)(?: thereof)?\s*\}?"
)
_ASKS_NOTATION = re.compile(r"\b(?:notation|standard form|write|express|convert|exact)\b", re.IGNORECASE)
_COMMAND = re.compile(r"\\[a-zA-Z]+")


_DERIVATIVE = re.compile(r"(?:[fghy]'+(?:\([a-z]\))?|\\frac\{d(?:\^\d)?[a-zA-Z]?\}\{d[a-z](?:\^\d)?\})\s*=")
_ASKS_DERIVATIVE = re.compile(
    r"'|\\prime|\\frac\{d|\bd[a-z]/d[a-z]\b|deriv|differenti|\b(?:slope|rate|velocity|speed|acceleration|marginal)\b",
    re.IGNORECASE,
)


def compare(answer: ParsedAnswer, gold: ParsedAnswer, question: str = "") -> Verdict:
    """Return whether an answer equals a reference answer, or the condition under which they are equal.

    Args:
        question: the text of the question; a word in it ("apples") may be a unit of the answer.
    """
    if _join_units(answer.clean) == _join_units(gold.clean):
        return True
    if (dates := (_date(answer.clean), _date(gold.clean))) != (None, None):
        return dates[0] == dates[1]
    if (
        (said := _answer_yes_or_no(gold.clean))
        and gold.value == Word(said)
        and (found := _answer_yes_or_no(answer.clean) or _says_possible(answer.clean, question))
    ):
        return found == said
    if isinstance(gold.value, InBase) and asks_base(question):
        if gold.value.base > 10 and (same := same_notation(answer.clean, gold.clean, question)) is not None:
            return same
        written = answer.value
        return (
            written.digits == gold.value.digits and written.base == gold.value.base
            if isinstance(written, InBase)
            else answer.clean == gold.value.digits
        )
    if isinstance(answer.value, InBase) and asked_base(question) not in (None, answer.value.base, 10):
        return False  # 231_4 for 231 in base 5
    if isinstance(answer.value, InBase) and not isinstance(gold.value, InBase) and question and not asks_base(question):
        return same_values(Number(Fraction(int(answer.value.digits, answer.value.base))), gold.value)  # 24_7 is 18
    if question and _DERIVATIVE.match(answer.clean) and not _ASKS_DERIVATIVE.search(f"{question} {gold.clean}"):
        return False  # f'(x) = 2x for a question about f
    if (
        isinstance(answer.value, Named)
        and not isinstance(gold.value, Named)
        and is_other_name(answer.value.name, question)
    ):
        return False
    said = without_remark_on_domain(answer.clean, gold.clean, question)
    if said != answer.clean:
        place = attained_value(answer.clean, question)
        attained = True if place is None else same_values(read(place[0]).value, read(place[1]).value)
        return all_of((attained, compare(read(said), gold, question)))
    if has_other_modulus(answer.value, gold.value, question):
        return False
    if (lines := same_parametric_line(answer.clean, gold.clean, question)) is not None:
        return lines
    if (decided := same_notation(answer.clean, gold.clean, question)) is not None:
        return decided
    if (texts := _without_shared_marks(answer.clean, gold.clean, question)) is not None:
        return compare(read(texts[0]), read(texts[1]), question)
    rewritten = rewrite(answer.clean, question), rewrite(gold.clean, question)
    if rewritten != (answer.clean, gold.clean):
        return compare(read(rewritten[0]), read(rewritten[1]), question)
    if asks_for_choices(question) and re.fullmatch("A?B?C?D?E?", gold.clean) and len(gold.clean) > 1:
        letters = re.sub(r"\\text|\band\b|[^a-zA-Z]", "", answer.clean)
        return "".join(sorted(letters)) == gold.clean
    family = same_parameters(answer.clean, gold.clean, question)
    if isinstance(family, SameFormula):
        return family
    if (texts := same_parameter(answer.clean, gold.clean)) is not None:
        return any_of((compare(read(texts[0]), read(texts[1]), question), family or False))
    if family is not None:
        return any_of((_compare_readings(answer, gold, question), family))
    return _compare_readings(answer, gold, question)


def _compare_readings(answer: ParsedAnswer, gold: ParsedAnswer, question: str) -> Verdict:
    if (chosen := _same_choice(answer, gold, question)) is not None:
        return chosen
    if not has_asked_form(answer.clean, gold.clean, question):
        return False
    context = f"{gold.text} {counted_things(question) or question}"
    pairs = [(with_known_units(_asked(a, question), context), g) for a, g in interpretations(answer, gold, question)]
    if asks_duration(question):
        pairs = [as_durations(a, g, answer.clean, gold.clean, question) for a, g in pairs]
    if noun := asked_kind(question):
        pairs = [(_without_noun(a, noun), _without_noun(g, noun)) for a, g in pairs]
    pairs = [(a, g) for a, g in pairs if has_unit(g) or has_possible_units(a, question)]
    pairs = [(in_asked_unit(g, a, question), in_asked_unit(a, g, question)) for a, g in pairs]
    if counts_things(question):
        pairs = [(a, g) for a, g in pairs if not is_measured(a) or is_measured(g)]
    if asks_percentage(question):
        bare = [(_without_percent(a), _without_percent(g)) for a, g in pairs]
        pairs = [(a, g) for a, g in pairs if not (_is_large(a) or _is_large(g))] + bare
        pairs = [(a, g) for a, g in pairs if has_unit(g) or not has_unit(_without_percent(a)) or isinstance(g, Group)]
    if asks_order(question) or asks_several(question):
        pairs = [(_as_ordered(a, question), _as_ordered(g, question)) for a, g in pairs]
    verdicts: list[Verdict] = [same_values(a, g) for a, g in pairs]
    verdicts += [_identity(a, g) for a, g in pairs]
    if not is_rounding(question) and (asks_rounding(question) or _is_measurement(pairs, gold.clean, question)):
        verdicts += [_rounded(a, g, gold.clean, question) for a, g in pairs]
    letters, positive = integers_in(question), " ".join(positives_in(question))
    return any_of(
        _over_integers(verdict, letters, positive) if letters or positive else verdict for verdict in verdicts
    )


def _without_shared_marks(answer: str, gold: str, question: str) -> tuple[str, str] | None:
    r"""Remove "and permutations" from both texts, or degrees from one of two formulas in degrees; else return None."""
    found = [_PERMUTATIONS.fullmatch(text) for text in (answer, gold)]
    if found[0] is not None and found[1] is not None and found[0]["cyclic"] == found[1]["cyclic"]:
        return found[0]["said"], found[1]["said"]
    marked = [r"\circ" in text for text in (answer, gold)]
    if marked[0] is marked[1] or not re.search(r"\bdegrees?\b|\bangle|\\angle|\\circ", question):
        return None
    if any(re.search(r"\\(?:pi|sin|cos|tan|arc)|radian", text) for text in (answer, gold)):
        return None
    letters = [
        re.search(r"[a-zA-Z]", _COMMAND.sub(lambda m: "" if m.group() == r"\circ" else "a", t)) for t in (answer, gold)
    ]
    if None in letters or re.search(r"\bradian", question):
        return None
    plain = [re.sub(r"\^\s*\\circ\s*", "", text) for text in (answer, gold)]
    return None if any(r"\circ" in text for text in plain) else (plain[0], plain[1])


def _same_choice(answer: ParsedAnswer, gold: ParsedAnswer, question: str) -> Verdict | None:
    """Compare two answers of which at least one names a choice; return None if neither does.

    The text of a choice that the question lists stands for its letter.
    """
    listed, wanted = listed_choices(question), choice_of(gold.clean)
    chosen = choice_of(answer.value.text if isinstance(answer.value, Word) else answer.clean) or choice_of(answer.clean)
    if wanted is None:
        text = listed.get(chosen[0]) if chosen is not None else None
        if chosen is None or not text or (len(gold.clean) == 1 and gold.clean.isalpha()):
            return None
        right = compare(read(text), gold)
        return right if not chosen[1] else all_of((right, compare(read(chosen[1]), read(text))))
    letter, text = wanted[0], listed.get(wanted[0], wanted[1])
    if (not re.fullmatch("[A-Z]", gold.clean) or letter in listed) and (small := small_choice(answer.clean)):
        return small == letter
    if chosen is not None:
        value = read(chosen[1]).value if chosen[1] and text else None
        if chosen[0] != letter or names_another(chosen[1], f"{text} {gold.clean}"):
            return False
        is_value = value is not None and re.search(r"[a-z]{3}", _COMMAND.sub("", chosen[1])) is None
        if is_value and not isinstance(value, Word):
            return compare(read(chosen[1]), read(text))
        return value is None or value not in [read(listed[other]).value for other in listed if other != letter]
    return compare(answer, read(text), "" if choice_of(text) else question) if text else None


def _asked(value: Value, question: str) -> Value:
    """Return the right side of an equation such as m + n = 5 if the question asks for its left side."""
    if isinstance(value, Chain):
        return replace(value, values=tuple(_asked(each, question) for each in value.values))
    if not isinstance(value, Relation) or value.operator != "=" or not isinstance(value.left, Formula):
        return value
    return value.right if asks_for(question, value.left.latex) else value


def _without_noun(value: Value, noun: str) -> Value:
    return Word(value.text.removesuffix(f" {noun}")) if isinstance(value, Word) else value


def _as_ordered(value: Value, question: str) -> Value:
    """Order a list. Values with names have the order in which the question lists the names, as in q, p."""
    if not isinstance(value, Group) or value.kind != "list":
        return value
    named = {item.name: item for item in value.items if isinstance(item, Named)}
    if len(named) == len(value.items):
        listed = re.search(
            r"(?<![a-zA-Z])" + r"\$?(?:\s*,\s*|\s+and\s+)\$?".join(["([a-zA-Z])"] * len(named)) + "(?![a-zA-Z])",
            question,
        )
        if listed is None or sorted(listed.groups()) != sorted(named):
            return value
        return Group("tuple", tuple(named[name].value for name in listed.groups()))
    return replace(value, kind="tuple")


def _is_measurement(pairs: Sequence[tuple[Value, Value]], gold: str, question: str) -> bool:
    """Return whether a reference answer is rounded because it has a unit of physics, such as eV, not cm or dollars.

    Two digits are rounded only if the question of physics needs pi, a root, an exponential or an angle, or if they
    have a power of ten that the question does not ask for.
    """
    digits = len(re.sub(r"(?:\\cdot|e).*|\D", "", gold).lstrip("0"))
    if digits > 1 and re.search(r"\d\s*(?:\\cdot 10\^|e[-+\d])", gold) and not _ASKS_NOTATION.search(question):
        return True
    if is_physical(question):
        return digits > 2 or (digits == 2 and is_irrational(question))
    units = [value.unit for pair in pairs for value in pair if isinstance(value, Number) and is_listed_unit(value.unit)]
    everyday = {"length", "mass", "time", "months", "dollars", "euros", "angle", "angle in pi", "yen", "rupees"}
    measured = [dict(dimensions_of(unit)[0]) for unit in units if unit]
    physical = any(len(dims) > 1 or not set(dims) <= everyday or min(dims.values()) < 0 for dims in measured if dims)
    return physical and len(re.sub(r"\\cdot.*|\D", "", gold).lstrip("0")) > 2


def _identity(a: Value, g: Value) -> Verdict:
    """Return whether an answer is a true equation whose right side is the reference answer, as in (a-b)/(a-b) = 1."""
    if not isinstance(a, Relation) or a.operator != "=" or not isinstance(g, (Number, Formula)):
        return False
    if not isinstance(a.left, Formula) or a.left.unit or not isinstance(a.right, (Number, Formula)):
        return False
    return all_of((same_values(a.left, a.right), same_values(a.right, g)))


def _rounded(a: Value, g: Value, gold: str, question: str) -> Verdict:
    """Return whether an answer, rounded to the digits of a decimal reference answer, equals it."""
    a = a.value if isinstance(a, Named) else a
    half = half_digit(gold) if re.search(r"\d\.\d|\de", gold) else Fraction(0)
    if not half and gold.isdigit() and significant_digits(question) == len(gold):
        half = Fraction(1, 4)  # 41.9 for 42 with two significant figures, but not 41.6, which may be another value
    return half > 0 and same_step(a, g, half * (1 - ROUNDING))


def _over_integers(verdict: Verdict, letters: str, positive: str) -> Verdict:
    """Restrict letters in the formulas of a verdict to integers and to positive numbers."""
    if isinstance(verdict, SameFormula):
        return replace(verdict, integers=letters, positive=positive)
    if isinstance(verdict, AllOf):
        return all_of(_over_integers(each, letters, positive) for each in verdict.conditions)
    if isinstance(verdict, AnyOf):
        return any_of(_over_integers(each, letters, positive) for each in verdict.conditions)
    return verdict


def _answer_yes_or_no(text: str) -> str:
    """Return "yes" or "no" for an answer that begins with this word and does not restrict it; "" for other text."""
    words = re.findall("[a-z]+", text.replace(r"\text", "").casefold())
    if not words or words[0] not in ("yes", "no"):
        return ""
    return "" if _RESTRICTIONS[words[0]] & set(words[1:]) else words[0]


def _says_possible(text: str, question: str) -> str:
    """Return "yes" or "no" for "it is possible" and "impossible" if the question asks about it; else ""."""
    match = _POSSIBLE.fullmatch(re.sub(r"\\text|[{}.]", "", text).strip().casefold())
    if match is None or not re.search(r"\b(?:is it possible|can|could)\b", question, re.IGNORECASE):
        return ""
    return "no" if match["no"] or match["never"] else "yes"


def _is_large(value: Value) -> bool:
    """Return whether a number without a unit is over one, and so a number of percent if the question asks for one."""
    return isinstance(value, Number) and not value.unit and abs(value.exact) > 1


def _without_percent(value: Value) -> Value:
    return replace(value, unit="") if isinstance(value, (Number, Formula)) and value.unit == "%" else value


def _date(text: str) -> tuple[str, int, str] | None:
    """Return the month, the day and the year ("" if it is missing) of a date; None for other text.

    >>> _date("March 5, 2020"), _date("5th of march")
    (('mar', 5, '2020'), ('mar', 5, ''))
    """
    if (match := _DATE.fullmatch(re.sub(r"\\text|[{}]", "", text).strip())) is None:
        return None
    month, day = match["first"] or match["second"], match["after"] or match["before"]
    return month[:3].lower(), int(day), match["year"] or ""


def _join_units(cleaned: str) -> str:
    """Remove the space between a number and its unit."""
    return re.sub(r"(?<=\d) (?=[a-zA-Z])", "", cleaned)
