"""Agents for webshop:Mini that see observations only, in the format text_rich. benchmarks/webshop.py measures them."""

from __future__ import annotations

import re

from gem.envs.web.webshop.players import boxed
from gem.envs.web.webshop.rewards import plain

_INSTRUCTION = re.compile(r"Instruction: ?\n(.+?)\n")
_WISH = re.compile(
    r"(?:i am looking for|find me|i want to buy) (?P<kind>.+?)(?: that come with|,| with) (?P<rest>.+), and price "
    r"lower than (?P<price>[\d.]+) dollars"
)
_RESULT = re.compile(r"\[(?:clicked )?button\] (\w{10}) \[(?:clicked )?button_\]\n(.+)\n\$([\d.]+)")
_OPTION = re.compile(r"^  \[(?:clicked )?button\] (.+) \[(?:clicked )?button_\]$", re.MULTILINE)


class Shopper:
    """Reads the instruction and the pages, as a person would; it sees observations only.

    It searches for kind, features and options. It opens results whose title has the kind and whose price is within the
    limit, clicks the options, reads Description and Features, and buys the first product that has all.
    """

    def __init__(self, env: object = None) -> None: ...

    def act(self, observation: str) -> str:
        if observation.startswith("You are in a web shop"):
            self._start(observation)
            return boxed(f"search[{' '.join([self.kind, *self.features, *self.options.values()])}]")
        if "Page " in observation and "(Total results" in observation:
            return self._results(observation)
        if "[button] Buy Now [button_]" in observation:
            return self._item(observation)
        self.read += plain(observation.partition("< Prev [button_]\n")[2].partition("Admissible actions")[0]) + " "
        return boxed("click[< Prev]")

    def _start(self, observation: str) -> None:
        wish = _WISH.fullmatch(_INSTRUCTION.search(observation)[1])  # type: ignore[index]
        parts = wish["rest"].split(", ")  # type: ignore[index]
        self.kind, self.limit = wish["kind"], float(wish["price"])  # type: ignore[index]
        self.options = dict(part.split(": ", 1) for part in parts if ": " in part)
        self.features = [f for part in parts if ": " not in part for f in part.split(" and ")]
        # "plug and play" is one feature: a feature has at least two words.
        for place in range(len(self.features) - 1, 0, -1):
            if " " not in self.features[place] and " " not in self.features[place - 1]:
                self.features[place - 1 : place + 1] = [f"{self.features[place - 1]} and {self.features[place]}"]
        self.seen: set[str] = set()
        self.read = ""

    def _results(self, observation: str) -> str:
        for asin, title, price in _RESULT.findall(observation):
            if asin not in self.seen and self.kind in title.lower() and float(price) <= self.limit:
                self.seen.add(asin)
                self.read, self.pages = "", ["Features", "Description"]
                self.to_choose = list(self.options.values())
                return boxed(f"click[{asin}]")
        return boxed("click[Next >]")

    def _item(self, observation: str) -> str:
        values = set(_OPTION.findall(observation))
        if any(value not in values for value in self.options.values()):
            return boxed("click[< Prev]")
        if self.pages:
            page = self.pages.pop(0)
            if page == "Features" or any(plain(feature) not in self.read for feature in self.features):
                found = sum(plain(feature) in self.read for feature in self.features)
                # Description has one feature at most.
                if page == "Features" or found >= len(self.features) - 1:
                    return boxed(f"click[{page}]")
        if any(plain(feature) not in self.read for feature in self.features):
            return boxed("click[< Prev]")
        if self.to_choose:
            return boxed(f"click[{self.to_choose.pop(0)}]")
        return boxed("click[Buy Now]")


class FirstHit:
    """Searches for the whole instruction and buys the first result.

    Args:
        choose: also click the options of the product that the instruction names.
    """

    def __init__(self, env: object = None, *, choose: bool = False) -> None:
        self.choose = choose

    def act(self, observation: str) -> str:
        instruction = _INSTRUCTION.search(observation)[1]  # type: ignore[index]
        if observation.startswith("You are in a web shop"):
            self.clicked: set[str] = set()
            return boxed(f"search[{self.query(instruction)}]")
        if found := _RESULT.findall(observation):
            return boxed(f"click[{found[0][0]}]")
        for value in _OPTION.findall(observation) if self.choose else ():
            if f": {value}," in instruction and value not in self.clicked:
                self.clicked.add(value)
                return boxed(f"click[{value}]")
        return boxed("click[Buy Now]")

    def query(self, instruction: str) -> str:
        return instruction


class RightKind(FirstHit):
    """Buys any product of the right kind: the first result of a search for the kind alone."""

    def query(self, instruction: str) -> str:
        return _WISH.fullmatch(instruction)["kind"]  # type: ignore[index]
