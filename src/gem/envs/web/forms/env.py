r"""Web pages with forms: reach a goal by clicking, typing and choosing, and change nothing else.

Action       one action per turn, in ``\boxed{…}``, in a code block or bare; the last one counts. As for WebArena:
             click [12], type [12] [text] (a third [1] presses Enter), select [12] [option], scroll [down], go_back,
             press [Enter], stop [answer]. Or as for BrowserGym: click('12'), fill('12', 'text'),
             select_option('12', 'option'), check('12'), scroll(0, 200), go_back(), send_msg_to_user('answer').
Observation  the page: an accessibility tree with numbers in brackets (``format="axtree"``), or simplified HTML with
             the numbers as ids. A long page is shown in a window of ``height`` elements. Typing replaces the text.
Reward       1.0 on stop if the saved data are exactly as the task asks, nothing else has changed, and a question is
             answered; else 0.0. A reply without an action changes nothing.
Ends         terminated on stop; truncated after ``max_turns`` replies, without a reward. ``info["explanation"]`` says
             what is wrong.
Kinds        login, settings, table, files, cart, wizard, mailbox, calendar; see docs/forms.md.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

from gem._internal.counts import check_count
from gem.core import Info, Step, StopReason
from gem.envs.game import GameEnv, Outcome
from gem.envs.invented import first_difference
from gem.envs.web.forms.accounts import LoginSite, SettingsSite
from gem.envs.web.forms.actions import Action, read_action
from gem.envs.web.forms.office import CalendarSite, MailboxSite
from gem.envs.web.forms.records import FilesSite, TableSite
from gem.envs.web.forms.shop import CartSite, WizardSite
from gem.envs.web.forms.site import LEVELS, Data, FormTask, Site, View, same_answer
from gem.envs.web.forms.widgets import OFF, ON, Element, PageWindow, alert
from gem.errors import BadValue, did_you_mean

SITES: dict[str, Callable[[], Site]] = {
    "login": LoginSite,
    "settings": SettingsSite,
    "table": TableSite,
    "files": FilesSite,
    "cart": CartSite,
    "wizard": WizardSite,
    "mailbox": MailboxSite,
    "calendar": CalendarSite,
}
FORMATS = ("axtree", "html")


@dataclass(frozen=True)
class State:
    """An episode: the number that its task is generated from, the saved data, and what the browser shows."""

    number: int
    data: Data
    view: View


class FormsEnv(GameEnv):
    """See the module docstring for the rules.

    Args:
        kind: one of the kinds of pages; None draws one per episode.
        level: 1 to 3; see docs/forms.md.
        format: "axtree" or "html".
        height: elements of a page that are shown at once; None for all.
        max_turns: replies allowed.

    Raises:
        BadValue: a value out of range.
    """

    state: State
    move_format = r"\boxed{click [12]}"

    def __init__(
        self,
        *,
        kind: str | None = None,
        level: int = 2,
        format: Literal["axtree", "html"] = "axtree",
        height: int | None = 40,
        max_turns: int = 60,
    ) -> None:
        super().__init__(max_turns=max_turns, on_unreadable="continue")
        if kind is not None and kind not in SITES:
            raise BadValue(f"no kind {kind!r}{did_you_mean(kind, SITES)}  (available: {', '.join(SITES)})")
        check_count("level", level, 1, max(LEVELS))
        if format not in FORMATS:
            raise BadValue(f"format must be 'axtree' or 'html', got {format!r}")
        check_count("height", height, 4, optional=True)
        self.kinds = [kind] if kind else list(SITES)
        self.level, self.format, self.height = level, format, height
        self._made: tuple[int, Site, FormTask] | None = None

    # ---- episodes

    def start(self) -> State:
        number = self.rng.getrandbits(48)
        task = self._task(number)[1]
        return State(number, copy.deepcopy(task.data), View(task.home))

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        observation, info = super().reset(seed)
        return observation, {**info, "kind": self.kind()}

    def _task(self, number: int) -> tuple[Site, FormTask]:
        if self._made is None or self._made[0] != number:
            site = SITES[self.kinds[number % len(self.kinds)]]()
            self._made = number, site, site.task(random.Random(number), self.level)
        return self._made[1], self._made[2]

    def task(self) -> FormTask:
        """Return the task of the episode, which its number determines."""
        return self._task(self.state.number)[1]

    def site(self) -> Site:
        return self._task(self.state.number)[0]

    def kind(self) -> str:
        """Return the kind of pages of the episode."""
        return self.kinds[self.state.number % len(self.kinds)]

    def rules(self) -> str:
        return (
            f"Task: {self.task().instruction}\n\n"
            "You use a web page. Do what the task asks and change nothing else; what is not saved does not count. "
            "Answer with one action per turn, in a box, such as \\boxed{click [12]}:\n"
            "click [number], type [number] [text] to replace the text of a textbox, select [number] [option] in a "
            "combobox, scroll [down] or scroll [up], go_back, and stop [answer] when the task is done. "
            "The actions click('12'), fill('12', 'text'), select_option('12', 'option') and send_msg_to_user('answer') "
            f"work as well. You have {self.max_turns} turns; the reward is 1 or 0.\n"
        )

    # ---- pages

    def window(self) -> PageWindow:
        """Return what the browser shows."""
        root, view = self.site().page(self.state.data, self.state.view), self.state.view
        if view.message:
            root = replace(root, children=(alert(view.message), *root.children))
        return PageWindow(root, top=view.top, height=self.height)

    def board(self) -> str:
        return self.window().as_tree() if self.format == "axtree" else self.window().as_html()

    def render_html(self) -> str:
        """Return what the browser shows as an HTML document, for people."""
        window = self.window()
        head = f'<meta charset="utf-8"><title>{escape(window.root.name)}</title>'
        return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>\n{window.as_html()}\n</body></html>'

    # ---- actions

    def read(self, action: str) -> Action | None:
        return read_action(action)

    def play(self, move: Action) -> Outcome:
        if move.verb == "stop":
            return self._stop(move.text)
        view = replace(self.state.view, message="")
        if move.number is None:
            return self._on_page(move, view)
        element = self.window().elements.get(move.number)
        if element is None:
            return Outcome(f"the page shows no element [{move.number}]; nothing changed.", invalid="unknown_element")
        return self._on_element(move, element, replace(view, focus=element.key))

    def _unreadable(self) -> Outcome:
        return Outcome(f"no action found; use the format {self.move_format}.", invalid="no_action")

    def _stop(self, answer: str) -> Outcome:
        wrong, task = first_difference(self.state.data, self.task().goal), self.task()
        if not wrong and task.answer is not None and not same_answer(answer, task.answer):
            wrong = "the answer is wrong"
        self._wrong = wrong
        return Outcome("the end.", 0.0 if wrong else 1.0, StopReason.LOST if wrong else StopReason.SOLVED)

    def step(self, action: str) -> Step:
        self._wrong = ""
        step = super().step(action)
        if self._wrong:
            step.info["verifier"] = step.info["explanation"] = self._wrong
        elif step.terminated:
            step.info["explanation"] = "The data and the answer are those that the task asks for."
        return step

    def _on_page(self, move: Action, view: View) -> Outcome:
        if move.verb == "keyboard":
            found = [e for e in self.window().elements.values() if e.key == view.focus]
            return self._pressed(found[0], move.text, view) if found else Outcome("nothing has the focus.")
        if move.verb == "back" and view.history:
            view = View(view.history[-1], history=view.history[:-1])
        elif move.verb == "scroll" and self.height is not None:
            window = self.window()
            step = max(self.height - 2, 1) * (-1 if move.text == "up" else 1)
            view = replace(view, top=max(min(window.top + step, window.total - self.height), 0))
        return self._show_view(view)

    def _on_element(self, move: Action, element: Element, view: View) -> Outcome:
        role, text = element.role, move.text
        if move.verb == "hover":
            return self._show_view(view)
        if move.verb == "press":
            return self._pressed(element, text, view)
        if move.verb == "click" and role in ("link", "button"):
            return self._click(element.key, view)
        if move.verb in ("click", "check", "uncheck") and role == "checkbox":
            value = {"check": ON, "uncheck": OFF}.get(move.verb, OFF if element.value == ON else ON)
            return self._enter(element.key, value, view)
        if move.verb == "click":
            return self._show_view(view)
        if move.verb in ("fill", "clear") and role == "textbox":
            outcome = self._enter(element.key, "" if move.verb == "clear" else " ".join(text.split()), view)
            return self._pressed(element, "Enter", self.state.view) if move.enter else outcome
        if move.verb == "select" and role == "combobox":
            named = [option for option in element.options if option.casefold() == text.strip().casefold()]
            if not named:
                return Outcome("there is no such option; nothing changed.", invalid="unknown_option")
            return self._enter(element.key, named[0], view)
        return Outcome(f"a {role} has no such action; nothing changed.", invalid="wrong_role")

    def _pressed(self, element: Element, key: str, view: View) -> Outcome:
        if key.casefold() != "enter":
            return self._show_view(view)
        if element.role in ("link", "button"):
            return self._click(element.key, view)
        return self._click(element.enter, view) if element.enter else self._show_view(view)

    def _enter(self, key: str, value: str, view: View) -> Outcome:
        return self._show_view(replace(view, fields={**view.fields, key: value}))

    def _click(self, key: str, view: View) -> Outcome:
        data = copy.deepcopy(self.state.data)
        view = self.site().press(data, view, key)
        self.state = replace(self.state, data=data)
        return self._show_view(view)

    def _show_view(self, view: View) -> Outcome:
        self.state = replace(self.state, view=view)
        return Outcome("ok.")

    def sample_random_action(self) -> str:
        elements = self.window().elements
        if not elements or self.action_rng.random() < 0.1:
            return rf"\boxed{{{self.action_rng.choice(['scroll [down]', 'go_back', 'stop []'])}}}"
        number, element = self.action_rng.choice(sorted(elements.items(), key=lambda item: item[0]))
        if element.role == "textbox":
            return rf"\boxed{{type [{number}] [{self.action_rng.choice(['Ann', '7', 'a b'])}]}}"
        if element.role == "combobox":
            return rf"\boxed{{select [{number}] [{self.action_rng.choice(element.options)}]}}"
        return rf"\boxed{{click [{number}]}}"


class Oracle:
    """Plays the reference solution of the task, which it reads from the environment."""

    def __init__(self, env: FormsEnv) -> None:
        self.env, self.number, self.done = env, -1, 0

    def act(self, observation: Any) -> str:
        if self.env.state.number != self.number:
            self.number, self.done = self.env.state.number, 0
        task = self.env.task()
        if self.done == len(task.plan):
            return rf"\boxed{{stop [{task.answer or ''}]}}"
        verb, key, *value = task.plan[self.done]
        numbers = [number for number, element in self.env.window().elements.items() if element.key == key]
        if not numbers:  # outside the window
            window = self.env.window()
            return rf"\boxed{{scroll [{'down' if window.end < window.total else 'up'}]}}"
        self.done += 1
        words = [verb if verb != "fill" else "type", f"[{numbers[0]}]", *(f"[{text}]" for text in value)]
        return rf"\boxed{{{' '.join(words)}}}"
