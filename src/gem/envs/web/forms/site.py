"""What every kind of page has: the saved data, what the browser shows, and tasks on them.

A site renders pages from (data, view) and answers clicks. The fields of a page are drafts in the view until the site
saves them. A task is done if the saved data equal those of its goal: everything else, such as the open page, is free.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gem.envs.web.forms.widgets import OFF, ON, Element

Data = dict[str, Any]  # JSON; keys are str
LEVELS = (1, 2, 3)


@dataclass(frozen=True)
class View:
    """What the browser shows.

    Args:
        address: the open page, such as "orders/2".
        fields: text and options that were entered and not saved yet, by key of the field.
        message: shown once at the top of the page.
        history: addresses before this one, for go_back.
        top: elements above the window.
        focus: key of the element that was used last.
    """

    address: str
    fields: dict[str, str] = field(default_factory=dict)
    message: str = ""
    history: tuple[str, ...] = ()
    top: int = 0
    focus: str = ""

    def get(self, key: str, saved: str = "") -> str:
        """Return what a field shows: what was entered, else the saved value."""
        return self.fields.get(key, saved)

    def checked(self, key: str, saved: bool = False) -> bool:
        return self.get(key, ON if saved else OFF) == ON

    def go(self, address: str, message: str = "", *, keep: bool = False) -> View:
        """Return the view after a page was opened. Entered text is lost unless ``keep``."""
        history = (*self.history, self.address)[-20:] if address != self.address else self.history
        return View(address, self.fields if keep else {}, message, history)

    def say(self, message: str) -> View:
        return replace(self, message=message)


@dataclass(frozen=True, kw_only=True)
class FormTask:
    """A task.

    Args:
        instruction: what to do, and the answer to give if the task is a question.
        home: address of the first page.
        data: saved data at the start.
        goal: saved data at the end; the same as ``data`` for a question alone.
        answer: what ``stop`` has to say; None if it does not matter.
        plan: reference solution: ("click", key), ("fill", key, text), ("select", key, option) or ("check", key).
    """

    instruction: str
    home: str
    data: Data
    goal: Data
    answer: str | None = None
    plan: tuple[tuple[str, ...], ...] = ()


class Site(ABC):
    """A kind of page. Instances have no state."""

    @abstractmethod
    def task(self, rng: random.Random, level: int) -> FormTask:
        """Draw a task. Level 1 is one change on few pages; higher levels have more changes, more rows and look-ups."""

    @abstractmethod
    def page(self, data: Data, view: View) -> Element:
        """Return the open page."""

    @abstractmethod
    def press(self, data: Data, view: View, key: str) -> View:
        """Click a link or button: change the data in place, and return what the browser shows then."""


def same_answer(given: str, answer: str) -> bool:
    """Whether two short answers are the same but for case, spaces, quotes and a full stop at the end."""
    return _plain(given) == _plain(answer)


def _plain(answer: str) -> str:
    return " ".join(answer.casefold().strip(" .'\"`\u2019").split())


def listed(parts: Sequence[str]) -> str:
    """Join parts of an instruction: "a; b; c"."""
    return "; ".join(parts)
