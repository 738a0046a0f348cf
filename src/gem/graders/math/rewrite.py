r"""Writings of an answer that depend on the question, rewritten to the writing that the reader knows.

"13/20 of the students" is 13/20 if the question asks for a fraction of students, "3 < \pi < 4" is the list "3, \pi, 4"
if it asks for an order, and "+2.6%" is "2.6% increase" if it asks for a change. Each rule is for one class of writing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gem.graders.math import labels as math_labels
from gem.graders.math import repeats as math_repeats
from gem.graders.math.question import asks_order
from gem.graders.math.working import without_working

_PORTION = re.compile(r"(?P<part>[\d.,/]+%?|\\frac\{\d+\}\{\d+\})\s*of (?:the |an? |all |all the )?(?P<what>[a-z ]+)")
_ASKS_PORTION = re.compile(
    r"\b(?:fraction|proportion|part|portion|percentage|percent)\b(?: of (?:the |an? |all |all the )?(?P<what>[a-z]+))?",
    re.IGNORECASE,
)
_ONLY = re.compile(r"only (?P<after>[a-zA-Z]? ?=? ?[-+]?[\d\\].*)|(?P<before>.*[\d})])\s*only")
_REMARK = re.compile(
    r"(?P<said>undefined|does not exist|dne|no solutions?|none|diverges)\s*\((?P<remark>[a-z ]+)\)", re.IGNORECASE
)
_INCLUDING = re.compile(r"(?P<said>.*\bmultiples of \d+)\s*\(including (?:0|zero|negatives?|and|numbers|ones|[, ])+\)")
_TAKES_BACK = re.compile(r"\b(?:not?|or|but|unless|if|except|infinit[a-z]*|zero|maybe|wrong)\b")
_UPWARD = re.compile(
    r"\b(?:increasing|ascending) order\b"
    r"|\bfrom (?:the )?(?:least|smallest|lowest|shortest|youngest|slowest|lightest)\b",
    re.IGNORECASE,
)
_DOWNWARD = re.compile(
    r"\b(?:decreasing|descending) order\b"
    r"|\bfrom (?:the )?(?:greatest|largest|highest|tallest|oldest|fastest|heaviest)\b",
    re.IGNORECASE,
)
_ASKS_CHANGE = re.compile(r"\bpercent(?:age)? (?:change|increase|decrease)\b|\bchange in per ?cent", re.IGNORECASE)
_ASKS_DIRECTION = re.compile(r"\bpercent(?:age)? (increase|decrease)\b", re.IGNORECASE)
_AMOUNT = r"(?P<{}>\d+(?:\.\d+)?) ?(?:%|percent)"
_CHANGE = re.compile(
    rf"(?:an? )?{_AMOUNT.format('first')} (?P<after>increase|decrease|rise|fall|drop|gain|loss|higher|lower|more|less)"
    rf"|(?:an? |it )?(?P<before>increased?s?|decreased?s?|rises?|falls?|up|down) (?:of |by )?{_AMOUNT.format('last')}",
    re.IGNORECASE,
)
_DOWN = ("de", "fa", "dr", "lo", "le", "do")  # the first letters of decrease, fall, drop, loss, lower, less, down
_CHOOSE = re.compile(
    r"(?:\{\})?_(?:\{(?P<n>\d+)\}|(?P<n1>\d)) ?C_(?:\{(?P<k>\d+)\}|(?P<k1>\d))"
    r"|(?:\{\})?\^(?:\{(?P<above>\d+)\}|(?P<above1>\d)) ?C_(?:\{(?P<k2>\d+)\}|(?P<k3>\d))"
    r"|(?<![\w}])(?P<n4>\d+)\s*(?:\\text\{\s*)?choose\s*\}?\s*(?P<k6>\d+)"
    r"|(?<![\w}^])(?:\\text\{\s*)?C\}?(?:_(?:\{(?P<n5>\d+)\}|(?P<n6>\d))\^(?:\{(?P<k7>\d+)\}|(?P<k8>\d))"
    r"|\^(?:\{(?P<a2>\d+)\}|(?P<a3>\d))_(?:\{(?P<b2>\d+)\}|(?P<b3>\d)))"
    r"|(?<![\w}])(?P<n2>\d+)C(?P<k4>\d+)|(?<![a-zA-Z])C\((?P<n3>\d+), ?(?P<k5>\d+)\)"
)
_IS_A = re.compile(r"(?:\\pi_\d|H_\d|H\^\d)\([^()]*\)\s*\\cong\s*(?P<group>[^=]*)")
_QUOTIENT = re.compile(
    r"(?:(?:the )?quotient(?: is| of)?[:=]? ?)?(?P<quotient>[^,a-zA-Z]*[a-z][^,a-zA-Z]*(?:[a-z][^,a-zA-Z]*)*?)"
    r" ?(?:,| with| and)+ (?:an? |the )?remainder(?: is| of)?[:=]? ?(?P<remainder>[^,]+)"
)
_ASKS_POSITIVE = re.compile(
    r"\bpositive integers?\b|\bnatural numbers?\b|\\(?:ge|geq)(?:slant)? ?1\b|[a-z] ?>= ?1\b", re.IGNORECASE
)
_DIVISIBLE = re.compile(
    r"(?:all )?(?:positive )?(?:integers? )?[a-z]? ?(?:that are |is |are )?(?:divisible by|multiples of) (\d+)"
)
_POSITIVE_SET = re.compile(r"\\mathbb\{Z\}_\{?>0\}?|\\mathbb\{N\}, [a-z] ?\\ge ?1$")
_BUILT = re.compile(r"\\?\{\s*(\d+[a-z])\s*(?::|\\mid|\|)\s*([a-z]\s*\\in\s*\\mathbb\{Z\})\s*\\?\}")
_CONSTANT = re.compile(r"(?<![a-zA-Z\\])[cCkK]_\{?(\d)\}?")
_POLYNOMIAL = re.compile(r"\b(?:minimal|characteristic|minimum) polynomial\b", re.IGNORECASE)
_LETTER = re.compile(r"\\lambda(?![a-z])|(?<![a-zA-Z\\])[a-zA-Z](?![a-zA-Z])")


_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    *("twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"),
)
_ASKS_PLACE = re.compile(
    r"\b(?:which|what) (?:[a-z]+ )?(?:term|place|position|day|row|column|quadrant|floor|number|year|digit|step)\b"
    r"|\b(?:place|position|rank(?:ed)?)\b|\bwhich\b[^.?]*\bterm\b",
    re.IGNORECASE,
)
_ORDINAL = re.compile(
    r"(?:the |in |it is )*(?:(?P<number>\d+)\s*\^?\s*\{?\s*(?:st|nd|rd|th)\s*\}?|(?P<word>[a-z]+(?:th|st|nd|rd)))"
    r"(?: (?P<noun>[a-z]+))?"
)
_PART = r"(?:\d+(?:\.\d+)?|\\frac\{\d+\}\{\d+\}|\\sqrt\{\d+\})"
_ENGINEERING = re.compile(
    rf"-?\s*{_PART}\s*[+-]\s*(?:{_PART}?\s*j|j\s*{_PART})|-?(?:{_PART}?\s*j|j\s*{_PART})\s*[+-]\s*{_PART}"
)
_WINS = re.compile(
    r"(?i:player )?(?P<who>[A-Z][a-z]*)"
    r"(?: (?:always |can |will )*(?:wins?|has (?:a|the) winning strategy|(?:can )?forces? a win))?"
)
_ASKS_CHEMICAL = re.compile(
    r"\b(?:compound|molecule|molecular|chemical|empirical|formula|oxide|gas|ion)\b", re.IGNORECASE
)
_CHEMICAL = re.compile(
    r"(?=.*\d|.*[a-z])(?:(?:A[cglmrstu]|B[aeihkr]?|C[adeflmorsu]?|F[er]?|G[ade]|H[efgo]?|I[nr]?|K[r]?|L[aiu]|M[gno]|N[abeio]?"
    r"|O|P[bdt]?|R[bn]|S[bceinr]?|T[i]|U|V|W|Xe|Z[nr])\d{0,2}|\((?=[A-Z])|\)\d{0,2})+"
)
_ARRANGED = re.compile(
    r"P\((\d+), ?(\d+)\)|(?:\{\})?[_^]\{?(\d+)\}? ?P_\{?(\d+)\}?|(?:\\text\{\s*)?[AP]\}?_\{?(\d+)\}?\^\{?(\d+)\}?"
)
_OUT_OF = re.compile(r"(\d+) (?:out of|in) (?:every )?(\d+)")
_CONCLUSION = re.compile(
    r".*[,;.\s}](?:\\text\s*\{\s*)?(?:so|thus|hence|therefore|giving|which gives)\b[\s,}]*(?P<said>.+)"
)
_WHERE = re.compile(
    r"[\s,]*(?:\\text\{\s*,?\s*(?:for|where|with)(?: (?:all|any))?\s*\}|(?<=[\d\s)}])\b(?:for|where|with)\b)\s*"
    r"(?=[a-z]\s*(?:[<>]|\\(?:ge|le|ne)(?![a-z])|=\s*\d))"
)


_LINES = re.compile(
    r"(?:\\\{)?\s*\\begin\{(?P<kind>cases|aligned|array)\}(?:\{[lcr]*\})?(?P<rows>.*)\\end\{(?P=kind)\}"
)
_FIRST_TERM = re.compile(
    r"(?P<name>[a-zA-Z])_\{?(?P<index>[01])\}? ?= ?(?P<first>[^,=]+?)"
    r" ?(?:,|;|and)+ ?(?P=name)_\{?n\}? ?= ?(?P<rest>[^=,]+?)"
    r" ?(?:[,(]|\b(?:for|when|if|where)\b)[ ,(]*(?:all )?n ?\\ge ?(?P<start>[12])\)?"
)


def rewrite(text: str, question: str) -> str:
    """Return a normalized text in the writing that the reader knows; the text itself if no rule is for it."""
    for rule in _RULES:
        text = rule(text, question)
    return text


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text)).strip(" .")


def _portion(text: str, question: str) -> str:
    """13/20 of the students: the words after "of" are words of the question, and those after its "fraction of"."""
    match, asked = _PORTION.fullmatch(_plain(text)), _ASKS_PORTION.search(question)
    if match is None or asked is None:
        return text
    words = match["what"].split()
    known = re.findall("[a-z]+", question.casefold())
    whole = asked["what"]
    right = all(word in known for word in words) and (whole is None or whole.lower() in (*words, "its", "them"))
    return match["part"] if right else text


def _only(text: str, question: str) -> str:
    match = _ONLY.fullmatch(_plain(text))
    return text if match is None else match["after"] or match["before"]


def _remark(text: str, question: str) -> str:
    match = _REMARK.fullmatch(_plain(text)) or _INCLUDING.fullmatch(_plain(text))
    if match is None or _TAKES_BACK.search(match.groupdict().get("remark") or ""):
        return text
    return match["said"]


def _chain_as_list(text: str, question: str) -> str:
    """3 < 4 < 5 in the direction of the order that the question asks for."""
    if not asks_order(question):
        return text
    for sign, direction in (("<", _UPWARD), (">", _DOWNWARD)):
        parts = text.split(sign)
        if direction.search(question) and len(parts) > 1 and all(p.strip() for p in parts):
            return (
                text if re.search(r"[<>=,]|\\[lg]e(?![a-z])", "".join(parts)) else ", ".join(p.strip() for p in parts)
            )
    return text


def _change(text: str, question: str) -> str:
    """2.6% increase and +2.6% are 2.6%, and 5% decrease is -5%, if the question asks for a percent change."""
    if not _ASKS_CHANGE.search(question):
        return text
    match = _CHANGE.fullmatch(_plain(text))
    if match is None:
        return text
    down = (match["after"] or match["before"]).lower()[:2] in _DOWN
    asked = _ASKS_DIRECTION.search(question)
    if asked is not None and down != (asked.group(1).lower() == "decrease"):
        return text
    sign = "-" if down and asked is None else ""
    return f"{sign}{match['first'] or match['last']}%"


def _choose(text: str, question: str) -> str:
    r"""{}_{11}C_4, 11C4 and C(11, 4) are \binom{11}{4}."""

    def binomial(match: re.Match[str]) -> str:
        top, bottom = (number for number in match.groups() if number is not None)
        if match["a2"] or match["a3"]:  # C^2_6
            top, bottom = bottom, top
        return rf"\binom{{{top}}}{{{bottom}}}" if int(top) <= 3000 else match.group()

    counts = re.search(r"\bhow many\b|\bnumber of\b|\bchoos|\bprobab|\bselect|\bcoefficient|\bways\b", question, re.I)
    if counts and "C_n" not in question:
        text = re.sub(r"(?<![\w}^])(?:\\text\{\s*)?C\}?_n\^(\d|[kmr])(?!\w)", r"\\binom{n}{\1}", text)
    return _CHOOSE.sub(binomial, text) if counts else text  # C(5, 2) may be a point


def _arrangements(text: str, question: str) -> str:
    """P(10, 3) is 10!/7! if the question asks for arrangements."""
    match = _ARRANGED.fullmatch(text)
    if match is None or not re.search(r"\barrang|\bpermut|\bways\b|\bhow many\b", question, re.IGNORECASE):
        return text
    size, places = int(match[1] or match[3] or match[5]), int(match[2] or match[4] or match[6])
    return rf"\frac{{{size}!}}{{{size - places}!}}" if places <= size <= 3000 else text


def _ordinal(text: str, question: str) -> str:
    r"""5th, 5^{\text{th}} and fifth are 5 if the question asks for a place."""
    if not _ASKS_PLACE.search(question):
        return text
    match = _ORDINAL.fullmatch(_plain(text).casefold())
    if match is None or (match["noun"] and match["noun"] not in question.casefold()):
        return text
    word = match["word"]
    return match["number"] or str(_ORDINALS.index(word) + 1) if word is None or word in _ORDINALS else text


def _imaginary(text: str, question: str) -> str:
    """3 + 4j is 3 + 4i: a number and a multiple of j, which is not a vector."""
    match = _ENGINEERING.fullmatch(text)
    return text if match is None else re.sub(r"(?<![a-zA-Z\\])j(?![a-zA-Z])", "i", text)


def _wins(text: str, question: str) -> str:
    """Alice wins, and player A has a winning strategy, name a player if the question asks who wins."""
    match = _WINS.fullmatch(_plain(text))
    return match["who"] if match is not None and re.search(r"\bwho\b|\bwhich (?:player|of)", question, re.I) else text


def _chemical(text: str, question: str) -> str:
    r"""\text{Fe}_2\text{O}_3 and CO2 are chemical formulas without marks: Fe2O3, CO2."""
    flat = re.sub(r"\\(?:text|ce)|[{}_\s]", "", text)
    return rf"\text{{{flat}}}" if _ASKS_CHEMICAL.search(question) and _CHEMICAL.fullmatch(flat) else text


def _where(text: str, question: str) -> str:
    r"""The words "for" and "where" before a condition are a comma."""
    return _WHERE.sub(", ", text)


def _out_of(text: str, question: str) -> str:
    """3 out of 8 and 3 in 8 are 3/8 if the question asks for a probability or a part."""
    match = _OUT_OF.fullmatch(_plain(text))
    asked = re.search(r"\bprobab|\bchance|\bfraction|\bproportion|\blikel", question, re.IGNORECASE)
    return rf"\frac{{{match[1]}}}{{{match[2]}}}" if match is not None and asked else text


def _conclusion(text: str, question: str) -> str:
    """The result of a = 3, b = 4, so a + b = 7 is what follows "so"."""
    match = _CONCLUSION.fullmatch(text)
    return text if match is None else match["said"].removesuffix("}") if "{" not in match["said"] else match["said"]


def _truth(text: str, question: str) -> str:
    """T and F are true and false, if these are the alternatives."""
    asked = re.search(r"\btrue or false\b", question, re.IGNORECASE)
    return {"T": "true", "F": "false"}.get(_plain(text), text) if asked else text


def _limit(text: str, question: str) -> str:
    """The limit of what converges to 2 is 2."""
    return re.sub(r"^(?:it |the \w+ )?converges to ", "", _plain(text)) if "converges to" in text.casefold() else text


def _isomorphic(text: str, question: str) -> str:
    match = _IS_A.fullmatch(text)
    return text if match is None else match["group"].strip()


def _quotient(text: str, question: str) -> str:
    r"""X + 1 with remainder 4 is (x + 1, 4) if the question asks for a quotient and a remainder."""
    if not re.search(r"\bquotient\b.*\bremainder\b", question, re.IGNORECASE):
        return text
    match = _QUOTIENT.fullmatch(_plain(text))
    return text if match is None else f"({match['quotient'].strip()}, {match['remainder'].strip()})"


def _multiples(text: str, question: str) -> str:
    """Positive multiples are multiples, and k may be any positive integer, if the question is about these."""
    text = _BUILT.sub(r"\1, \2", text)
    if not _ASKS_POSITIVE.search(question):
        return text
    if re.search(r"\b(?:odd|even)\b", text):
        return text.replace("positive ", "")
    match = _DIVISIBLE.fullmatch(_plain(text))
    return _POSITIVE_SET.sub(r"\\mathbb{Z}^+", text) if match is None else f"multiples of {match.group(1)}"


def _constants(text: str, question: str) -> str:
    """The constants of a general solution are C_1, C_2 and so on."""
    if not re.search(r"\bgeneral solution\b", question, re.IGNORECASE) or len(set(_CONSTANT.findall(text))) < 2:
        return text
    names = set(match.group() for match in _CONSTANT.finditer(text))
    return _CONSTANT.sub(r"C_\1", text) if len(names) == len(set(_CONSTANT.findall(text))) else text


def _indeterminate(text: str, question: str) -> str:
    """The only letter of a minimal or characteristic polynomial is x."""
    letters = set(_LETTER.findall(text.rpartition("=")[2]))
    return _LETTER.sub("x", text.rpartition("=")[2]) if _POLYNOMIAL.search(question) and len(letters) == 1 else text


def _system(text: str, question: str) -> str:
    """Lines x = 3 and y = 1 under a brace are x = 3, y = 1, or (1, 3) if the question has (y, x)."""
    match = _LINES.fullmatch(text)
    rows = [] if match is None else [row.replace("&", "").strip(" ,;") for row in match["rows"].split(r"\\")]
    pairs = [row.partition("=") for row in rows if row]
    names = [name.strip() for name, _, _ in pairs]
    if len(set(names)) < max(len(names), 2) or not all(re.fullmatch(r"[a-zA-Z]", name) for name in names):
        return text
    if any(not right.strip() or re.search(r"[=<>,]", right) for _, _, right in pairs):
        return text
    values = {name.strip(): right.strip() for name, _, right in pairs}
    order = re.search(r"\(\s*" + r"\s*,\s*".join(["([a-zA-Z])"] * len(names)) + r"\s*\)", question)
    if order is not None and sorted(order.groups()) == sorted(names):
        return "(" + ", ".join(values[name] for name in order.groups()) + ")"
    return ", ".join(f"{name}={right}" for name, right in values.items())


def _first_term(text: str, question: str) -> str:
    r"""A_1 = 3 and a_n = 2n for n \ge 2 is a sequence in cases."""
    match = _FIRST_TERM.fullmatch(_plain(text))
    if match is None or int(match["start"]) != int(match["index"]) + 1:
        return text
    cases = rf"{match['first']},&n={match['index']}\\{match['rest']},&n\ge {match['start']}"
    return rf"{match['name']}_n=\begin{{cases}}{cases}\end{{cases}}"


def _quantified(text: str, question: str) -> str:
    r"""The colon or comma after \exists x or \forall x has no meaning."""
    return re.sub(r"(\\(?:exists|forall)\s*[a-z])\s*(?:[:,]|\\text\{\s*such that\s*\})?\s*", r"\1 ", text)


_RULES: tuple[Callable[[str, str], str], ...] = (
    _only,
    _portion,
    _remark,
    _chain_as_list,
    _change,
    _choose,
    _out_of,
    _conclusion,
    _arrangements,
    _truth,
    _limit,
    _ordinal,
    _imaginary,
    _wins,
    _chemical,
    _where,
    _isomorphic,
    _quotient,
    _multiples,
    _constants,
    _indeterminate,
    _quantified,
    _system,
    _first_term,
    without_working,
    *math_labels.RULES,
    *math_repeats.RULES,
)
