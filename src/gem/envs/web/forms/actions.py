r"""Actions on web pages, as agents for WebArena and for BrowserGym write them.

>>> read_action("I sign in: ```type [3] [ann] [1]```")
Action(verb='fill', number=3, text='ann', enter=True)
>>> read_action("fill('3', 'it\\'s')").text, read_action(r"\boxed{stop [42]}").verb, read_action("well")
("it's", 'stop', None)
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gem.parsing import last_boxed, outside_thinking

_LONGEST = 20_000  # characters of a reply, from its end, in which an action outside a box is looked for
_PLAIN = r"\[((?:[^\[\]\n]|\[[^\[\]\n]*\])*)\]"  # text in brackets, which may itself have brackets in pairs
_QUOTED = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_NUMBER = r"\[(\d{1,6})\]"
_WEBARENA = "|".join(
    [
        rf"(?P<verb1>click|hover|check|uncheck|clear) ?{_NUMBER}",
        rf"(?P<verb2>type|select) ?{_NUMBER} ?{_PLAIN}(?: ?\[(?:press_enter_after=)?([01])\])?",
        r"(?P<verb3>scroll) ?\[?(?:direction=)?(up|down)\]?",
        rf"(?P<verb4>stop)(?: ?{_PLAIN})?",
        rf"(?P<verb5>press) ?{_PLAIN}",
    ]
)
_CALL = rf"(?P<name>[a-z_]{{4,20}})\(((?:[^'\"()\n]|{_QUOTED})*)\)"
_VALUE = re.compile(rf"{_QUOTED}|[-+.\w]+")
_ACTION = re.compile(rf"\b(?:{_WEBARENA}|{_CALL}|(?P<back>go_back)|(?P<noop>noop))")
_BOXED = re.compile(rf"\s*(?:{_ACTION.pattern})\s*")
_VERBS = ("verb1", "verb2", "verb3", "verb4", "verb5")  # groups of the names of WebArena's actions
# Names of BrowserGym's actions, with the number of their arguments.
_CALLS = {
    "click": ("click", 1),
    "dblclick": ("click", 1),
    "hover": ("hover", 1),
    "check": ("check", 1),
    "uncheck": ("uncheck", 1),
    "clear": ("clear", 1),
    "fill": ("fill", 2),
    "select_option": ("select", 2),
    "press": ("press", 2),
    "keyboard_press": ("keyboard", 1),
    "scroll": ("scroll", 2),
    "send_msg_to_user": ("stop", 1),
    "report_infeasible": ("stop", 1),
    "go_back": ("back", 0),
    "noop": ("noop", 0),
}


class Action(NamedTuple):
    """An action.

    Args:
        verb: click, hover, check, uncheck, clear, fill, select, press, scroll, stop, back or noop.
        number: of the element; None for actions on the page.
        text: what is typed, the option, the key, "up" or "down", or the answer.
        enter: press Enter after typing.
    """

    verb: str
    number: int | None = None
    text: str = ""
    enter: bool = False


def read_action(reply: str) -> Action | None:
    """Return the last action of a reply, None without one. If actions stand in boxes, only those count."""
    reply = outside_thinking(reply)
    content = last_boxed(reply, _BOXED)
    match = None if content is None else _ACTION.fullmatch(content.strip())
    if match is not None and (action := _action(match)):
        return action
    found = (_action(match) for match in reversed(list(_ACTION.finditer(reply[-_LONGEST:]))))
    return next((action for action in found if action), None)


def _action(match: re.Match[str]) -> Action | None:
    if match["name"]:
        return _called(match["name"], match[match.re.groupindex["name"] + 1])
    if match["back"] or match["noop"]:
        return Action("back" if match["back"] else "noop")
    verb = next(group for group in _VERBS if match[group])
    groups = match.groups()[match.re.groupindex[verb] :]
    name = match[verb]
    if verb == "verb1":
        return Action(name, int(groups[0]))
    if verb == "verb2":
        return Action("fill" if name == "type" else name, int(groups[0]), groups[1], groups[2] == "1")
    return Action("keyboard" if name == "press" else name, text=(groups[0] or "").strip())


def _called(name: str, inside: str) -> Action | None:
    if name not in _CALLS:
        return None
    values = [_unquoted(value) for value in _VALUE.findall(inside)]
    verb, count = _CALLS[name]
    if len(values) != count:
        return None
    if verb == "scroll":
        return Action(verb, text="up" if values[1].startswith("-") else "down")
    if verb in ("stop", "keyboard"):
        return Action(verb, text=values[0].strip())
    if not values:
        return Action(verb)
    number = values[0].strip("[] ")
    if not re.fullmatch(r"[0-9]{1,6}", number):
        return None
    return Action(verb, int(number), values[1] if count == 2 else "")


def _unquoted(value: str) -> str:
    """Return the text of a string or number of a call."""
    if value[0] not in "'\"":
        return value
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), value[1:-1])
