"""A reader of the encyclopedia: it knows how questions and articles are phrased, but no facts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gem.envs.web.wiki import questions as q

Search = Callable[[str], list[tuple[str, str]]]  # query → (title, text) of pages

SENTENCES = {
    "capital": r"whose capital is (.+?)\.",
    "river": r"on the (River .+?)\.",
    "twin": r"Its twin town is (.+?)\.",
    "source": r"It rises on (.+?) and crosses",
    "climber": r"first climbed by (.+?) in \d+",
    "climbed": r"first climbed by .+? in (\d+)",
    "birthplace": r"\) was an? .+?, born in (.+?)\.",
    "teacher": r"was a pupil of (.+?)\.",
    "school": r"went to the (.+?)\.",
    "place": r"is an? \w+ in (.+?)\.|was an? [a-z ]+ at (.+?) in \d+\.",
    "founder": r"It was founded by (.+?) in \d+",
    "founded": r"It was founded (?:by .+? )?in (\d+)",
    "author": r" by (.+?), completed in",
    "setting": r"Its setting is (.+?)\.",
    "leader": r"in \d+\. (.+?) took the lead\.",
    "population": r"has ([\d,]+) inhabitants",
    "length": r"([\d,]+) km long",
    "height": r"([\d,]+) m high",
    "born": r"^[^.]*?\((\d+)-\d+\)",
    "died": r"^[^.]*?\(\d+-(\d+)\)",
    "year": r"completed in (\d+)|was an? [a-z ]+ at .+? in (\d+)\.",
}
LISTS = {
    "river": r"The towns on its banks are (.+?)\.",
    "birthplace": r"The people born in .+? are (.+?)\.",
    "author": r"Works: (.+?)\.",
}


class Unknown(Exception):
    """The pages that were found do not say it."""


def answer(question: str, search: Search) -> str:
    """Answer a question by searching for the pages that it needs. Raises Unknown."""
    for relation, form in q._COUNTS.items():
        if found := matched(form, question):
            items = read(LISTS[relation], entity(found[0], search), search)
            return str(len(re.split(r", | and ", items)))
    for relation, form in q._NUMBERS.items():
        if found := matched(form, question):
            return read(SENTENCES[relation], entity(found[0], search), search)
    return entity(re.sub(r"^(Who|What) is (.+)\?$", r"\2", question), search)


def entity(phrase: str, search: Search) -> str:
    """Return the title that a phrase of the question stands for."""
    for relation, form in q._NOUNS.items():
        if found := matched(form, phrase):
            return read(SENTENCES[relation], entity(found[0], search), search)
    for relation, forms in q._COMPARED.items():
        for form, choose in zip(forms, (min, max), strict=True):
            if found := matched(form, phrase):
                titles = [entity(side, search) for side in found]
                return choose(titles, key=lambda t: int(read(SENTENCES[relation], t, search)))
    return phrase.strip('"').removeprefix("the ")


def matched(form: str, text: str) -> tuple[Any, ...] | None:
    found = re.fullmatch(re.escape(form).replace(r"\{\}", "(.+)"), text)
    return found and found.groups()


def read(pattern: str, title: str, search: Search) -> str:
    """Read a sentence of the page with a title or a former name."""
    for query in (title, f"{title} {title} is was", f"{title} town founded under the name of {title}"):
        for name, text in search(query):
            if (name.casefold() == title.casefold() or f"under the name of {title} and" in text) and (
                found := re.search(pattern, text)
            ):
                value: str = next(group for group in found.groups() if group)
                return value.replace(",", "") if value[0].isdigit() else value
    raise Unknown(title)


def documents(observation: str) -> list[tuple[str, str]]:
    """Return the titles and texts in a result of the search tool."""
    return re.findall(r'^Doc \d+\(Title: "(.+?)"\) (.+)$', observation, re.MULTILINE)
