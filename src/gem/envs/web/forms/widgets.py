r"""Pages as trees of elements, and their two formats: an accessibility tree, and simplified HTML.

Elements that can be acted on have a number in brackets, counted in the order of the page.

>>> root = page("Sign in", textbox("User name", "user", "ann"), button("Sign in", "enter"))
>>> print(PageWindow(root).as_tree())
RootWebArea 'Sign in'
  [1] textbox 'User name' value='ann'
  [2] button 'Sign in'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from gem.envs.web.text import plain_text

ON, OFF = "true", "false"  # values of checkboxes


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a page.

    Args:
        role: its accessibility role.
        name: its accessible name, or its text.
        key: what the site calls it; "" if it cannot be acted on.
        value: text of a textbox, chosen option of a combobox, ON or OFF of a checkbox; None for other roles.
        options: those of a combobox.
        enter: key of the button that Enter presses in this textbox; "" for none.
        children: elements inside.
    """

    role: str
    name: str = ""
    key: str = ""
    value: str | None = None
    options: tuple[str, ...] = ()
    enter: str = ""
    children: tuple[Element, ...] = ()


def page(title: str, *children: Element) -> Element:
    return Element("RootWebArea", title, children=children)


def heading(name: str) -> Element:
    return Element("heading", name)


def text(name: str) -> Element:
    return Element("StaticText", name)


def alert(name: str) -> Element:
    return Element("alert", name)


def link(name: str, key: str) -> Element:
    return Element("link", name, key)


def button(name: str, key: str) -> Element:
    return Element("button", name, key)


def textbox(name: str, key: str, value: str, enter: str = "") -> Element:
    return Element("textbox", name, key, value, enter=enter)


def checkbox(name: str, key: str, value: str) -> Element:
    return Element("checkbox", name, key, value)


def combobox(name: str, key: str, value: str, options: Sequence[str]) -> Element:
    return Element("combobox", name, key, value, tuple(options))


def table(name: str, *rows: Element) -> Element:
    return Element("table", name, children=rows)


def row(cells: Sequence[str], *actions: Element) -> Element:
    """A row of a table: cells of text, and links or fields after them."""
    return Element("row", " | ".join(cells), children=actions)


def _walk(element: Element, depth: int = 0) -> Iterator[tuple[int, Element]]:
    yield depth, element
    for child in element.children:
        yield from _walk(child, depth + 1)


class PageWindow:
    """What a browser shows of a page.

    Args:
        root: the page.
        top: number of elements above the window.
        height: number of elements in the window, the title apart; None for all.
    """

    def __init__(self, root: Element, *, top: int = 0, height: int | None = None) -> None:
        elements = list(_walk(root))[1:]
        self.root, self.total = root, len(elements)
        self.top = 0 if height is None else max(min(top, self.total - height), 0)
        self.end = self.total if height is None else min(self.top + height, self.total)
        self._window = elements[self.top : self.end]
        first = 1 + sum(bool(element.key) for _, element in elements[: self.top])
        acting = [element for _, element in self._window if element.key]
        self.elements = dict(enumerate(acting, first))  # by number

    def shown(self) -> list[Element]:
        """Return the elements in the window, in the order of the page."""
        return [element for _, element in self._window]

    def as_tree(self) -> str:
        lines = [f"RootWebArea {_quoted(self.root.name)}"]
        number = min(self.elements, default=1)
        for depth, element in self._window:
            label = f"[{number}] " if element.key else ""
            number += bool(element.key)
            lines.append(f"{'  ' * depth}{label}{_described(element)}")
        return "\n".join([*lines, *self._position()])

    def as_html(self) -> str:
        """Return the page as HTML. Elements that can be acted on have their number as id; parents may be cut off."""
        shown = {id(element) for _, element in self._window}
        numbers = {id(element): number for number, element in self.elements.items()}
        body = "\n".join(_html(child, numbers, shown) for child in self.root.children if _any(child, shown))
        title = f"<h1>{_escaped(self.root.name)}</h1>"
        return "\n".join([title, *([body] if body else []), *self._position()])

    def _position(self) -> list[str]:
        if self.end - self.top == self.total:
            return []
        return [f"(elements {self.top + 1} to {self.end} of {self.total}; scroll to see the others)"]


def _quoted(value: str) -> str:
    return "'" + plain_text(value).replace("'", "\u2019") + "'"


def _described(element: Element) -> str:
    line = f"{element.role} {_quoted(element.name)}"
    if element.role == "checkbox":
        return f"{line} checked={element.value}"
    if element.value is not None:
        line = f"{line} value={_quoted(element.value)}"
    return f"{line} options={', '.join(map(_quoted, element.options))}" if element.options else line


def _escaped(value: str) -> str:
    return escape(plain_text(value))


def _any(element: Element, shown: set[int]) -> bool:
    return id(element) in shown or any(_any(child, shown) for child in element.children)


def _html(element: Element, numbers: dict[int, int], shown: set[int]) -> str:
    name, value = _escaped(element.name), _escaped(element.value or "")
    number = f' id="{numbers[id(element)]}"' if id(element) in numbers else ""
    inside = [_html(child, numbers, shown) for child in element.children if _any(child, shown)]
    if element.role == "row":
        cells = "".join(f"<td>{cell}</td>" for cell in [*name.split(" | "), *inside])
        return f"<tr>{cells}</tr>"
    if element.role == "table":
        return "\n".join([f"<table><caption>{name}</caption>", *inside, "</table>"])
    if element.role == "checkbox":
        checked = " checked" if element.value == ON else ""
        return f'<label><input type="checkbox"{number}{checked}>{name}</label>'
    if element.role == "textbox":
        return f'<label>{name} <input{number} value="{value}"></label>'
    if element.role == "combobox":
        options = "".join(
            f"<option{' selected' if option == element.value else ''}>{_escaped(option)}</option>"
            for option in element.options
        )
        return f"<label>{name} <select{number}>{options}</select></label>"
    tag, close = {
        "heading": ("h2", "h2"),
        "link": (f'a href="#"{number}', "a"),
        "button": (f"button{number}", "button"),
        "alert": ('p role="alert"', "p"),
    }.get(element.role, ("p", "p"))
    return f"<{tag}>{name}</{close}>"
