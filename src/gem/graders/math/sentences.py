"""Sentences that say one number or name: "Ines has 31 stamps" is 31 if the question asks how many stamps she has.

Every word has to be a word of the last question or one without a meaning of its own. Words that change the meaning,
such as "more" and "each", have to be in the last question too, and the subject of the sentence has to be its subject.
"""

from __future__ import annotations

import re

from gem.graders.math.question import asks_percentage, counted_things, last_question
from gem.graders.math.read import ParsedAnswer, read
from gem.graders.math.units import UNITS, parse_unit, stem
from gem.graders.math.values import SCALES, Clock, Group, Interval, Number, Value, Word, spelled_number

_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
_AMOUNT = r"[-+]?\\?[$€£¥]?\d[\d,]*(?:\.\d+|/\d+| \d+/\d+)?\\?%?|[-+]?\d*\\frac\{\d+\}\{\d+\}|\d*\\sqrt\{\d+\}|\d*\\pi"
_SENTENCE = re.compile(rf"(?P<before>[^\d\\+*/=<>^_-]*?)(?P<number>{_AMOUNT})(?P<after>[^\d\\+*=<>^-]*)")
_WORDED = re.compile(r"(?P<before>[a-zA-Z][a-zA-Z ]*[a-zA-Z]) ?(?P<said>[(\[].*)")
_FILLING = re.compile(
    "an?|the|its?|this|that|s?he|they|there|we|you|i|is|are|was|were|be|ha[sd]|have|will|would|can|of|in|on|at|to|by|for"
    "|with|who|which|what|value|result|total|number|answer|altogether|now|so|then|gets?|got|needs?|takes?|his|her|their"
    "|(?:it|s?he|they|we|that|there)'(?:s|ll|re)|exactly"
)
_TOTAL = re.compile(r"\b(?:in all|in total|altogether|total|all together)\b", re.IGNORECASE)
_CHANGING = re.compile(  # words that change the meaning of a sentence with the right number or name
    "not?|never|none|nor|neither|or|and|but|than|more|less|fewer|least|most|about|over|under|between|except|only|up|times"
    "|twice|half|double|minus|plus|wrong|false|incorrect|if|unless|maybe|perhaps|probably|isn't|almost|nearly|(?:an)?other"
    "|every|each|per|apiece|all|total|altogether"
)
_DIVIDED = re.compile(
    r"\b(?:each|every|per|apiece|average|mean|difference|left|remain\w*|more|fewer|less)\b", re.IGNORECASE
)
_RATE = re.compile(r"(?:/ ?|(?<=[\w}]) ?\b(?:per|an?|each|every) )(?P<of>[a-z]+)\b", re.IGNORECASE)
_COMPARED = re.compile(r"\b(more|less|fewer) ([a-z]+)")
_AFTERNOON = re.compile(r"\b(?:afternoon|evening|tonight|p\.?m\b)", re.IGNORECASE)
_MORNING = re.compile(r"\b(?:morning|a\.m\b|AM\b)")
_ALTERNATIVES = re.compile(r"(\w+),? or (?:an? |the )?(\w+)")
_ALIKE = (  # words of which each says what the others ask for
    "cost costs price spend pay charge", "earn make", "need require", "left remain", "old age", "weigh weight",
    "long length", "tall high height", "far distance", "fast speed", "long take time last",
)  # fmt: skip
_MOST = ("most", "greatest", "largest", "highest", "fastest", "tallest", "biggest", "oldest", "longest")
_LEAST = ("least", "smallest", "lowest", "slowest", "shortest", "youngest", "fewest")
_PRONOUN = re.compile(r"\b(?:s?he|her|his|him|it|its)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![$\\\w])[A-Z][a-z]+(?!\w)")
_NOT_NAMES = re.compile(
    "An?|The|If|How|What|Which|When|Where|Who|Why|In|On|At|Of|For|From|To|By|It|Its|She|He|They|There|This|That|These|Each"
    "|Every|One|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten|Find|Give|After|Before|Then|His|Her|Their|Some|All|Both|As"
    "|During|Suppose|Let|Today|Yesterday|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|Only|Half|Last|Next"
)
_PAST = {
    past: verb
    for verb, pasts in {
        "buy": "bought", "sell": "sold", "eat": "ate eaten", "give": "gave given", "make": "made", "pay": "paid",
        "spend": "spent", "drive": "drove driven", "run": "ran", "take": "took taken", "get": "got", "leave": "left",
        "lose": "lost", "win": "won", "sleep": "slept", "write": "wrote written", "swim": "swam", "ride": "rode",
        "fly": "flew flown", "grow": "grew grown", "catch": "caught", "bring": "brought", "draw": "drew drawn",
        "break": "broke broken", "build": "built", "keep": "kept", "drink": "drank", "find": "found", "do": "did done",
    }.items()
    for past in pasts.split()
}  # fmt: skip


def said_value(answer: ParsedAnswer, gold: ParsedAnswer, question: str) -> Value | None:
    """Return the number or the name that a sentence in the words of the question says; None for other answers."""
    text = re.sub(r"\s+", " ", re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", answer.clean)).strip(" .")
    word = re.sub(r"\s+", " ", re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", gold.clean)).strip(" .")
    if isinstance(gold.value, Word) and gold.value.text in text.casefold():
        word = gold.value.text
    if isinstance(gold.value, Word) or (word.isalpha() and re.search(rf"(?<![$\w]){word}(?!\w)", question)):
        if len(word) == 1:
            return None
        named = re.split(rf"(?<!\w){re.escape(word)}(?!\w)", text, flags=re.IGNORECASE)
        others = _WORD.findall(" ".join(named)[1:])  # the first word of a sentence has a capital
        if len(named) != 2 or any(word[0].isupper() for word in others):
            return None
        return gold.value if _adds_nothing(" ".join(named), question) else None
    worded = _WORDED.fullmatch(text)
    if worded is not None and isinstance(gold.value, (Interval, Group)) and _adds_nothing(worded["before"], question):
        return read(worded["said"]).value
    if isinstance(answer.value, Clock):
        return _hour(answer.value, gold.value, text, question)
    return _amount(text, question) if question else None


def _amount(text: str, question: str) -> Value | None:
    """Return the number with its unit that a sentence says; None for other text."""
    asked = last_question(question)
    text = _in_digits(_without_phrases(text, asked))
    rates = {_root(rate["of"].casefold()) for rate in _RATE.finditer(asked)}
    plain = _RATE.sub(lambda m: "" if _root(m["of"].casefold()) in rates else m.group(), text)
    match = _SENTENCE.fullmatch(plain.strip())
    if match is None or (not f"{match['before']}{match['after']}".strip() and plain == text):
        return None
    unit, _, after = match["after"].strip().partition(" ")
    if unit[:1].isupper() or unit == "of" or len(unit) == 1 or _is_foot_or_inch(match["after"], asked):
        return None  # 20 A, 5 Ben, 1/2 of the boys, 6 n, 3''
    if unit and asks_percentage(asked) and not re.match(r"per ?cent|higher|lower|of", match["after"].strip()):
        return None  # 25 students, if the question is what percent they are
    things = counted_things(question)
    if things and unit.endswith("s") and stem(unit) not in {stem(word) for word in things.split()} and unit in asked:
        return None  # 18 girls, if the question is how many boys there are if 12 are girls
    if any(f"{more} {of}" not in asked.casefold() for more, of in _COMPARED.findall(text.casefold())):
        return None  # 14 more boys, if the question is how many more girls than boys there are
    listed = parse_unit(unit) in UNITS
    amount = read(f"{match['number']} {unit if listed else ''}".strip()).value
    rest = f"{match['before']} {after if listed else match['after']}"
    return amount if _adds_nothing(rest, question) else None


def _is_foot_or_inch(after: str, asked: str) -> bool:
    return after.startswith("'") and not re.search(r"\barc[- ]?(?:second|minute)", asked, re.IGNORECASE)


def _hour(clock: Clock, gold: Value, text: str, question: str) -> Value | None:
    """Return 5 for 5 p.m. if the question asks for an hour in the afternoon and the reference answer is a number."""
    asked = last_question(question)
    half = _AFTERNOON if re.search(r"p\.? ?m", text, re.IGNORECASE) else _MORNING
    other = _MORNING if half is _AFTERNOON else _AFTERNOON
    hours, rest = divmod(clock.seconds, 3600)
    if not isinstance(gold, Number) or gold.unit or rest or not half.search(asked) or other.search(asked):
        return None
    if not re.search(r"\b(?:what|which) (?:hour|time)|\bwhen\b|\bo'clock\b", asked, re.IGNORECASE):
        return None
    return read(str((hours - 1) % 12 + 1)).value


def _without_phrases(text: str, asked: str) -> str:
    """Remove a number with its noun ("in 8 years") that the last question has too, if there is another number."""
    for phrase in re.findall(r"(?:\b(?:in|after|for|the) )?\b\d+ [a-z]+\b,?", text, re.IGNORECASE):
        rest = text.replace(phrase, " ", 1)
        known = re.search(rf"(?<![\w.]){re.escape(phrase.rstrip(','))}\b", asked, re.IGNORECASE)
        if known is not None and re.search(r"\d", rest):
            text = re.sub(r"\s+", " ", rest).strip()
    return text


def _in_digits(text: str) -> str:
    """Write the only number word of a text without digits as digits; "one" is no number here."""
    words = [word for word in _WORD.findall(text) if spelled_number(word) is not None and word.casefold() != "one"]
    if len(words) != 1 or re.search(r"\d", text) or " " not in text:
        return text
    return re.sub(rf"\b{words[0]}\b", str(spelled_number(words[0])), text)


def _adds_nothing(text: str, question: str) -> bool:
    """Return whether all words of a text are words of the question or words without a meaning of their own.

    The alternatives of the question, as in "Ann or Ben", have a meaning of their own, and so do its names except for
    the first, which is the subject. The last question may name its subject by a pronoun, if the
    whole has one name only.
    """
    asked = last_question(question)
    names = [word for word in _WORD.findall(asked.strip()[1:]) if word[0].isupper()]
    subject = _named_by_pronoun(question, asked) if not names else ""
    names = names or [subject]
    asked = asked.casefold()
    known = {_root(word) for word in [*_WORD.findall(asked), subject.casefold()]}
    alternatives = {word for pair in _ALTERNATIVES.findall(asked) for word in _WORD.findall(" ".join(pair))}
    for same, opposite in ((_MOST, _LEAST), (_LEAST, _MOST)):
        if known & {_root(word) for word in same} and not known & {_root(word) for word in opposite}:
            known |= {_root(word) for word in same}
    for alike in _ALIKE:
        roots = {_root(word) for word in alike.split()}
        known |= roots if known & roots else set()
    known |= {"o'clock"} if re.search(r"\b(?:what|which) (?:hour|time)\b", asked) else set()
    if _TOTAL.search(asked) or not _DIVIDED.search(asked):
        text = _TOTAL.sub(" ", text)
    subjects = [word for word in _WORD.findall(text) if word in names]
    return (
        subjects[:1] in ([], names[:1])
        and not re.search(r"[^\w\s'.,:]|\d", text)
        and all(
            (_FILLING.fullmatch(word) and not _CHANGING.fullmatch(word))
            or (
                _root(word) in known
                and word not in alternatives
                and (not _CHANGING.fullmatch(word) or _is_asked(word, asked))
                and word not in SCALES
                and (spelled_number(word) is None or (word == "one" and "each one" in text.casefold()))
            )
            for word in _WORD.findall(text.casefold())
        )
    )


def _is_asked(word: str, asked: str) -> bool:
    """Return whether a word that changes the meaning is part of what the last question asks for."""
    if word in ("more", "less", "fewer", "times"):
        return re.search(rf"\bhow (?:many|much) {word}\b|\bhow (?:many|much) (?:\w+ )?\w+ {word}\b", asked) is not None
    return word in ("than", "each", "every", "all") and re.search(rf"\b{word}\b", asked) is not None


def _named_by_pronoun(question: str, asked: str) -> str:
    """Return the only name of a question, or else the noun that it begins with, if the last question has a pronoun."""
    if not _PRONOUN.search(asked):
        return ""
    names = {name for name in _NAME.findall(question) if not _NOT_NAMES.fullmatch(name)}
    if len(names) == 1:
        return str(names.pop())
    first = re.match(r"(?:A|An|The) ([a-z]+)\b", question)
    return str(first.group(1)) if first is not None and not names else ""


def _root(word: str) -> str:
    verb: str = _PAST.get(word, word)
    return re.sub(r"(?:ied|ies|ing|ed|es|s|e|y)$", "", verb) if len(verb) > 3 else verb
