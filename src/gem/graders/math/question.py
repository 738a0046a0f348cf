"""What a question says about its answer: a percentage, a unit, a rounding, an order, a base or a list of choices."""

from __future__ import annotations

import re
from fractions import Fraction

from gem.graders.math.units import is_listed_unit, parse_unit
from gem.graders.math.values import SCALES, Congruence, Formula, Interval, Number, Value, Word, spelled_number

_PERCENT = re.compile(
    r"(?:(?:what|which|how many|as an?|nearest|find the)(?: [a-z]+)?|in"
    r"|(?:what (?:is|was)|find|calculate|compute|determine|give|state) (?:the|its|his|her|their)(?: [a-z]+)?)"
    r"\s+per ?cent",
    re.IGNORECASE,
)  # matches "what percent", "as a percentage" and "what is the percent increase", but not "20 percent"
_SEVERAL_CHOICES = re.compile(
    r"\bselect\b|multiple.choice|which of the following|all (?:the )?(?:correct|true)", re.IGNORECASE
)
_UNIT = r"(?:square |cubic )?[a-z]+(?:\^\{?[23]\}?)?(?:(?: per |/)[a-z]+(?:\^\{?[23]\}?)?)?"
_COUNTED = re.compile(
    rf"\bhow many (?:more |total |full |whole )?({_UNIT})"
    rf"|\bnumber of ({_UNIT})"
    rf"|\bin (?!\w[\s.,?)]|how\b)({_UNIT})(?=[.,?)]|$| [a-z])"
    rf"|\b(?:convert|express|change)\b[^?]*? (?:to|into|as|in) ({_UNIT})(?=[.,?)]|$)"
    r"|\(((?:in )?[a-zA-Z]{2,}|[a-zA-Z]+/[a-zA-Z]+(?:\^\{?[23]\}?)?)\)"
    r"|\bin ([a-z]+(?:\^\{?[23]\}?)?(?: per |/)[a-z]+(?:\^\{?[23]\}?)?)"
    r"|\bin ((?-i:[msgJNWVAKTCFLM]))"
    r"(?=[.,?)]|$| (?:acting|across|by|exerted|needed|of|on|released|required|through)\b)",
    re.IGNORECASE,
)
_UNIT_NAMES = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"\belectron[- ]volt", "electronvolt"),
        (r"(?:\bdegrees? |°|\^\{?\\circ\}? ?)(?:celsius|C\b)", "celsius"),
        (r"(?:\bdegrees? |°|\^\{?\\circ\}? ?)(?:fahrenheit|F\b)", "fahrenheit"),
        (r"(?:\\mu(?!(?-i:[a-z]))|μ|µ)\s*", "u"),
        (r"(?-i:\\Omega)(?![a-z])|Ω", "ohm"),
    )
)
_THINGS = re.compile(
    r"\b(?:how many|the (?:total )?number of) (?:of (?:the |these |those |his |her |its |their |them )*)?"
    r"(?P<things>[^.,?!;:$]*)",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow many ([^.,?!;:$]*)", re.IGNORECASE)
_ASKED_NAME = re.compile(
    r"\b(?:find|compute|what is|value of|solve for|determine|evaluate|calculate)(?: the (?:\w+ )?value of)?"
    r"\s+\$\s*((?:\\angle\s*)?\\?[a-zA-Z]+(?:_\{?\w+\}?)?(?:\([^()]*\))?)\s*\$",
    re.IGNORECASE,
)
_POSITIVE = re.compile(
    r"\bpositive (?:[a-z]+ )*\$?([a-zA-Z](?:\$?(?:\s*,\s*|\s+and\s+)\$?[a-zA-Z](?![a-z]))*)\$?(?![a-zA-Z])"
    r"|(?<![a-zA-Z\\])([a-zA-Z](?:\s*,\s*[a-zA-Z])*)\s*(?:>|\\gt)\s*\d"
    r"|(?<![\w.-])0\s*(?:<|\\lt)\s*([a-zA-Z](?:\s*(?:<|\\lt|,)\s*[a-zA-Z](?![a-z]))*)"
    r"|\b(?:mass|masse|length|radiu|radius|radii|side|height|width|distance|spring(?: (?:of )?constant)?|gravity"
    r"|acceleration|stiffness|density"
    r"|volume|area|resistance|resistor|capacitance|capacitor|inductance|inductor|frequency|wavelength|tension|thickness"
    r"|diameter|period|speed)s? (?:of )?\$?(?:\\?)([a-zA-Z]|\\(?:lambda|rho|omega))\$?(?![a-zA-Z])"
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|do|does|did|can|could|will|would|should|must|has|have|had|that|which|in|on|at|with)\b"
)
_SENTENCE = re.compile(r"(?:[^.?!]|[.!](?=\d))*\?")
_ROUNDING = re.compile(
    r"\bnearest (?:\w+ )?(?:whole|integer|ten|hundred|thousand|cent|dollar|degree|\$?\d)"  # or tenth, hundredth
    r"|decimal places?\b|significant (?:figure|digit)"
    r"|\brounded\b|\bround (?:your|off|to|up|down|the (?:answer|result)|it)\b",
    re.IGNORECASE,
)
_IS_ROUNDING = re.compile(r"\b(?:round|approximate)s? (?:off )?(?:the number )?[$\\]*-?\d", re.IGNORECASE)
_SUPERLATIVE = (
    r"(?:last|largest|smallest|greatest|least|highest|lowest|tallest|shortest|oldest|youngest|fastest|slowest)"
)
_ORDER = re.compile(
    r"\b(?:(?:in|de)creasing|(?:a|de)scending|alphabetical|numerical|chronological|reverse|correct) order\b"
    r"|\bin (?:this |that |the (?:given |same |listed )?)?order\b(?! (?:to|that|for)\b)"
    rf"|\bfrom (?:the )?[\w ]{{1,30}}\bto (?:the )?{_SUPERLATIVE}\b",
    re.IGNORECASE,
)
_ASKING = (
    r"(?:find|give|determine|compute|calculate|state|report|write(?: down)?|list|name|enter|evaluate|identify|solve for"
    r"|what(?:'s| is| are| were| was)|answer with|as)"
)
_MEMBERS = re.compile(  # nouns whose members have no order: "the roots of f and g"
    r"\b(?:all|every|both|any|which|solutions?|roots?|zeros?|possible|intersections?|points?|numbers|integers|primes|factors"
    r"|divisors|eigenvalues|members|elements|intercepts|critical|common|two|three|four|pairs?|letters?|digits)\b",
    re.IGNORECASE,
)
_OTHER = r"(?:the|its|their|his|her|how|what|which|where|when|find|give|state|determine|compute|calculate)"
_TWO_NAMES = re.compile(
    rf"\b{_ASKING}(?: (?:both|the|two|three|positive|real|unknown|values?|of|numbers|integers|coefficients|constants"
    r"|parameters|variables|unknowns|digits))* *\$?\\?[a-zA-Z](?:_\{{?\w\}}?)?\$?"
    r"(?:, *\$?[a-zA-Z]\$?)*,? *(?:and|,) *\$?\\?[a-zA-Z](?:_\{?\w\}?)?\$?(?![a-zA-Z(])"
    r"|\b[Ss]olve\b.* for \$?[a-z]\$?(?:, \$?[a-z]\$?)*,? and \$?[a-z]\$?(?![a-zA-Z])",
    re.IGNORECASE,
)
_TWO_NOUNS = re.compile(
    rf"\b{_ASKING} (?:both )?(?:the|its|their|his|her)\b(?P<first>[^.?!;]*?),? (?:and|as well as|followed by)"
    r"(?: also)? (?P<second>(?:the |its |their |his |her )?\$?[a-z]+)",
    re.IGNORECASE,
)
_TWO_FORMULAS = re.compile(rf"\b{_ASKING} \$[^$]+\$(?:, *\$[^$]+\$)*,? and \$[^$]+\$", re.IGNORECASE)
_MEMBERS_AT = re.compile(
    r"\b(?:values|points|solutions|roots|numbers|coordinates|integers)\b.*"
    r"\b(?:where|which|such that|that|whose|intersections?|between)\b",
    re.IGNORECASE,
)
_TWO_PEOPLE = re.compile(
    r"\b(?:[Ff]ind|[Gg]ive|[Dd]etermine|[Ww]hat are) the [a-z]+ of (?:[A-Z][a-z]+, )*[A-Z][a-z]+,? and [A-Z][a-z]+"
)
_SEVERAL = re.compile(
    rf"\b(?:and|,) then {_OTHER}\b|\bfirst\b[^.?!]*\b(?:then|second)\b|\band also\b|\bas well as\b|\bfollowed by\b"
    r"|\brespectively\b|\bnumbers? of [a-z]+ and [a-z]+\b|, [a-z]+ first\b|\bordered (?:pair|triple)\b"
    r"|\([a-z]{3,}(?: [a-z]+)?(?:, [a-z]{3,}(?: [a-z]+)?)+\)"
    r"|(?:^|\s)\(?(?:a|i)\) .*\s\(?(?:b|ii)\) "
    r"|\bhow (?:many|much|old|long|far)\b[^.?!]* and (?:how|what)\b|\bhow many [a-z]+ and (?:how many )?[a-z]+\b"
    r"|\bwhat (?:is|are)\b[^.?!]*,? and (?:what|how|where|when)\b",
    re.IGNORECASE,
)
_RESPECTIVELY = re.compile(r"\brespectively\b", re.IGNORECASE)
_PHYSICAL = re.compile(
    r"\b(?:mol|moles?|atoms?|electrons?|protons?|photons?|wavelengths?|orbits?|orbital|half-li(?:fe|ves)|radioactive|AU"
    r"|light-?years?|parsecs?|joules?|newtons?|volts?|pascals?|kelvin|nucle(?:us|i|ar)|capacit(?:or|ance)s?|resist(?:or|ance)s?"
    r"|telescopes?|luminosity|redshift|pH|molarity|pendulum|projectile|ideal gas|blackbody|spring constant"
    r"|speed of light|magnetic field|electric field|[mk]?eV|[MG]eV|kJ|MPa|nm)\b"
)
_IRRATIONAL = re.compile(
    r"\b(?:circ\w+|orbits?|orbital|spher\w+|pendulum|half-li\w+|radioactive|angles?|degrees?|pH|period)\b"
    r"|\\(?:pi|sqrt|ln|log|circ|sin|cos|tan)|\\times\s*10"
)
_BASE = re.compile(r"\bbase\b|\bbinary\b|\bternary\b|\boctal\b|\bhexadecimal\b", re.IGNORECASE)
_INTEGERS = re.compile(
    r"(?:integers?|natural numbers?)\s+\$?([a-zA-Z])\b|\$?([a-zA-Z])\$? is an? (?:[a-z-]+ )?(?:integer|natural number)"
    r"|([a-zA-Z])\s*\\in\s*\\mathbb\s*\{?[NZ]",
)
_DURATION = re.compile(
    r"\bhow long\b|\bhow much time\b|\bduration\b|\bin hours and minutes\b|\bminutes and seconds\b"
    r"|\btime (?:spent|elapsed)\b",
    re.IGNORECASE,
)
_TIME_OF_DAY = re.compile(
    r"\bat what time\b|\bwhen\b|\bratio\b|\bo'clock\b|\bwhat time (?:is|will|was|did|does)\b", re.IGNORECASE
)
_MODULUS = re.compile(r"(?:\bdivided by|\bmodulo|\bmod|\\[bp]?mod)\s*[{$(]*(\d{1,9})(?!\d|\.\d)")
_ASKS_RESIDUE = re.compile(
    r"remainder|modul|\bmod\b|\\[bp]?mod|digit|congruen|residue|\\equiv|≡|\bdivi[ds]", re.IGNORECASE
)
_KIND = re.compile(r"\b(?:(?:what|which) (?:type|kind|sort) of|is the(?=.* or )) ([a-z]+)", re.IGNORECASE)


def asks_duration(question: str) -> bool:
    """Return whether the last question is for a span of time, not for a time of day."""
    asked = last_question(question)
    return _DURATION.search(asked) is not None and not _TIME_OF_DAY.search(asked)


def has_other_modulus(value: Value, gold: Value, question: str) -> bool:
    """Return whether an answer is a congruence modulo another number than the only modulus of a question.

    The reference answer is the remainder alone. 9 (mod 7) is not 9, and no answer to a question that is not about
    remainders.
    """
    moduli = set(_MODULUS.findall(question))
    if not isinstance(value, Congruence) or isinstance(gold, Congruence):
        return False
    if not isinstance(gold, Number) or not isinstance(value.modulus, Number):
        letters = isinstance(value.value, Formula) and re.search(
            "[a-zA-Z]", re.sub(r"\\[a-zA-Z]+", "", value.value.latex)
        )
        return isinstance(value.value, (Word, Interval, Formula)) and not letters  # Friday mod 7
    if abs(gold.exact) >= abs(value.modulus.exact) or (question and not _ASKS_RESIDUE.search(question)):
        return True
    return len(moduli) == 1 and value.modulus != Number(Fraction(moduli.pop()))


def asks_percentage(question: str) -> bool:
    return _PERCENT.search(question) is not None


def asks_for_choices(question: str) -> bool:
    """Return whether several choices may be right."""
    return _SEVERAL_CHOICES.search(question) is not None


def asks_for(question: str, latex: str) -> bool:
    """Return whether a question names a formula that is not part of a longer formula."""
    text = r"\s*".join(map(re.escape, re.sub(r"\s", "", latex)))
    plain = re.sub(r"\\(?:bar|overline)\s*\{?(\w)\}?", r"\\overline{\1}", question)
    plain = re.sub(r"\\left|\\right", "", plain).replace("$", "|")
    return re.search(rf"(?<![\w^)}}*/+=-])(?<![+=-] ){text}(?!\s*[\w^({{*/+=-])", plain) is not None


def asked_unit(question: str) -> str | None:
    """Return the unit in which the last question counts, as in "how many minutes"; None if it has none or several."""
    asked = question[question.rfind(last_question(question)) :]  # with the sentences after it
    asked = re.sub(r"\\(?:text|mathrm)\{([^{}]*)\}|[$~]|\\[,; ]", r"\1", asked)
    for pattern, name in _UNIT_NAMES:
        asked = pattern.sub(name, asked)
    texts = ["".join(found).removeprefix("in ") for found in _COUNTED.findall(asked)]
    units = {unit for text in texts if (unit := _unit_of(text)) is not None}
    if (
        not units
        and re.search(r"\bhow old\b", asked, re.IGNORECASE)
        and not re.search(r"\b(?:month|week|day)s\b", question)
    ):
        return "year"
    return units.pop() if len(units) == 1 else None


def asked_scale(question: str) -> Fraction:
    """Return 1000 for "in thousands of dollars", and so on; 1 for other questions."""
    found = re.search(r"\bin (hundred|thousand|million|billion)s of\b", question, re.IGNORECASE)
    return Fraction(1) if found is None else SCALES[found.group(1).lower()]


def _unit_of(text: str) -> str | None:
    """Return the listed unit that a text names; symbols with a capital, such as MPa and mA, are units here."""
    for said in (text, rf"\text{{{text}}}") if re.search("[A-Z]", text) else (text,):
        unit = parse_unit(said)
        if unit is not None and is_listed_unit(unit):
            return unit
    return None


def last_question(question: str) -> str:
    """Return the last sentence with a question mark, or the whole text if it has none."""
    sentences: list[str] = _SENTENCE.findall(question)
    return sentences[-1] if sentences else question


def counted_things(question: str) -> str:
    """Return the words after the last "how many" or "number of", such as "cups of water"; "" if there are none."""
    found = _THINGS.findall(question)
    if not found:
        return ""
    things, *rest = _VERB.split(found[-1].casefold().partition(" than ")[0], maxsplit=1)
    verb = _VERB.search(found[-1].casefold())
    is_predicate = rest and verb is not None and verb.group() in ("is", "are", "was", "were")
    predicate = rest[0].split()[:1] if is_predicate else []  # how many students are girls
    return " ".join([*things.split(), *predicate]) if things.strip() else ""


def counts_things(question: str) -> bool:
    """Return whether the last question is "how many" of something that is not a unit, such as marbles."""
    found = _HOW_MANY.findall(last_question(question))
    if not found:
        return False
    words = re.findall(r"[a-z]+", _VERB.split(found[-1].casefold(), maxsplit=1)[0])
    units = [parse_unit(word) for word in words]
    return bool(words) and not any(unit is not None and is_listed_unit(unit) for unit in units)


def is_other_name(name: str, question: str) -> bool:
    """Return whether a name in the question is not the one that it asks for, such as S_9 if it asks for S_{10}."""
    asked = {_bare(each) for each in _ASKED_NAME.findall(question)}
    if len(asked) != 1 or (name := _bare(name)) in asked:
        return False
    wanted = asked.pop()
    if all(each.startswith(r"\angle") for each in (name, wanted)):
        name, wanted = (each.removeprefix(r"\angle") for each in (name, wanted))
        return name not in (wanted, wanted[::-1], wanted[len(wanted) // 2]) and name[len(name) // 2] != wanted
    if all(re.fullmatch("[A-Z]{2,3}", each) for each in (name, wanted)):
        return len(name) == len(wanted) and name not in (wanted, wanted[::-1])
    if "_" in name or "(" in name:
        return re.split("[_(]", name)[0] == re.split("[_(]", wanted)[0]
    letters = {
        _bare(each) for found in re.findall(r"\$([^$]*)\$", question) for each in re.findall(r"\\?[a-zA-Z]+", found)
    }
    return len(name) == len(wanted) == 1 and name in letters


def _bare(name: str) -> str:
    return re.sub(r"[{}\s$]", "", name)


def positives_in(question: str) -> list[str]:
    """Return the letters that a question says are positive, or are such a quantity, as masses and lengths are."""
    found = ["".join(each) for each in _POSITIVE.findall(question)]
    letters = [letter for text in found for letter in re.findall(r"[a-zA-Z]+", re.sub(r"\band\b", " ", text))]
    return [*letters, "c"] if re.search(r"\bLorentz\b|\brelativ|\bspeed of light\b", question) else letters


def is_physical(question: str) -> bool:
    """Return whether a question is about physics, chemistry or astronomy, whose reference answers are rounded."""
    return (
        _PHYSICAL.search(question) is not None
        and re.search(r"\d|\bpH\b|\b(?:wavelength|mass|photon|electron)\b", question) is not None
    )


def is_irrational(question: str) -> bool:
    """Return whether a quantity of physics follows with pi, a root, an exponential or an angle."""
    return _IRRATIONAL.search(question) is not None


def asks_rounding(question: str) -> bool:
    return _ROUNDING.search(question) is not None


def significant_digits(question: str) -> int | None:
    """Return the number of significant figures that a question asks for, or None."""
    found = re.search(r"\b(\w+) significant (?:figure|digit)", question, re.IGNORECASE)
    if found is None or found.group(1).isdigit():
        return None if found is None else int(found.group(1))
    number = spelled_number(found.group(1))
    return None if number is None else int(number)


def is_rounding(question: str) -> bool:
    """Return whether to round a given number is the task itself, so that more digits than asked for are wrong."""
    return _IS_ROUNDING.search(question) is not None


def asks_order(question: str) -> bool:
    """Return whether the order of a list matters, as in "from first to last" or "in increasing order"."""
    return _ORDER.search(question) is not None or _RESPECTIVELY.search(last_question(question)) is not None


def asks_several(question: str) -> bool:
    """Return whether a question asks for different quantities, as in "the sum and the product", not for one kind.

    The order of an answer without brackets is then the order of the question.
    """
    if (
        _SEVERAL.search(question)
        or question.count("?") > 1
        or _TWO_NAMES.search(question)
        or _TWO_PEOPLE.search(question)
        or _TWO_FORMULAS.search(question)
    ):
        return True
    for found in _TWO_NOUNS.finditer(question):
        of = re.search(r"\b(?:of|where|for|at|between|that|such|whose|to|with|in|on)\b", found["first"])
        articled = re.match(r"(?:the|its|their|his|her) ", found["second"], re.IGNORECASE)
        if _MEMBERS_AT.search(found["first"]):
            continue
        if of is None or (articled and not _MEMBERS.search(found["first"][: of.start()])):
            return True
    return False


def asks_base(question: str) -> bool:
    return _BASE.search(question) is not None


def asked_base(question: str) -> int | None:
    """Return the base to which a question converts a number, or None."""
    found = re.findall(r"\b(?:to|in|into) base[- ]?(?:\$|_|\{)*(\w+)", question, re.IGNORECASE)
    number = None if not found else int(found[-1]) if found[-1].isdigit() else spelled_number(found[-1])
    return None if number is None else int(number)


def integers_in(question: str) -> str:
    """Return the letters that a question says are integers."""
    return "".join(letter for found in _INTEGERS.findall(question) for letter in found)


def asked_kind(question: str) -> str:
    """Return the noun after "what type of", such as "triangle"; "" if the question has no such phrase."""
    match = _KIND.search(question)
    return "" if match is None else match.group(1).lower()
