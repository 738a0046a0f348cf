"""An agent for web:Forms that reads observations only, in the format "axtree". benchmarks/forms.py measures it.

It knows how tasks are phrased and what the pages are for, as a person would.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from datetime import date, timedelta
from typing import Any, NamedTuple

Moves = Iterator[str]
_LINE = re.compile(
    r"(?P<indent> *)(?:\[(?P<number>\d+)\] )?(?P<role>\w+) '(?P<name>[^']*)'"
    r"(?: value='(?P<value>[^']*)')?(?: checked=(?P<checked>true|false))?"
)


class Seen(NamedTuple):
    """An element as it is shown. ``row`` is the row of the table that it is in, or its own."""

    number: str
    role: str
    name: str
    value: str
    checked: str
    row: str


def read_page(observation: str) -> list[Seen]:
    """Return the elements of an observation in the format "axtree"."""
    found, row = [], ""
    for line in observation[observation.index("RootWebArea '") :].split("\n"):
        if match := _LINE.match(line):
            part = {name: value or "" for name, value in match.groupdict().items()}
            if part["role"] == "row":
                row = part["name"]
            elif len(part["indent"]) <= 2:
                row = ""
            found.append(Seen(part["number"], part["role"], part["name"], part["value"], part["checked"], row))
    return found


class PageReader:
    """Reads pages in the format "axtree", and finds elements, rows and buttons on them."""

    def read(self, observation: str) -> None:
        self.page, self.more = read_page(observation), "scroll to see the others" in observation

    def use(self, verb: str, name: str, *words: str, row: str = "") -> Moves:
        """Yield the moves to act on the element with a name, in the row that begins like this; scroll to find it."""
        for move in ("scroll [down]", "scroll [down]", "scroll [down]", "scroll [up]", "scroll [up]", "scroll [up]"):
            found = [e for e in self.page if e.number and e.name == name and f"{e.row} | ".startswith(row)]
            if found:
                yield " ".join([verb, f"[{found[0].number}]", *(f"[{word}]" for word in words)])
                return
            yield move

    def click(self, name: str, *, row: str = "") -> Moves:
        yield from self.use("click", name, row=row)

    def write(self, **fields: str) -> Moves:
        for name, value in fields.items():
            yield from self.use("type", name.replace("_", " "), value)

    def rows(self, more: str = "") -> Moves:
        """Yield the moves to read all rows of a table, and leave the rows in self.table.

        Args:
            more: button that opens the next page.
        """
        self.table: list[list[str]] = []
        self._before: list[str] | None = None
        while True:
            shown = [e.row.split(" | ") for e in self.page if e.role == "row"]
            self.table += [cells for cells in shown if cells not in self.table]
            if self.more and not self._at_end():
                yield "scroll [down]"
            elif more and any(e.name == more for e in self.page):
                yield from self.click(more)
                self._before = None
            else:
                return

    def _at_end(self) -> bool:
        """Whether the window has not moved since the last look."""
        numbers = [e.number for e in self.page]
        before, self._before = self._before, numbers
        return before == numbers

    def seek(self, start: str, more: str = "") -> Generator[str, None, bool]:
        """Yield the moves to a row that begins like this, and return whether there is one.

        Args:
            more: button that opens the next page.
        """
        self._before = None
        while not any(f"{e.row} | ".startswith(start) for e in self.page if e.row):
            if self.more and not self._at_end():
                yield "scroll [down]"
            elif more and self.has(more):
                yield from self.click(more)
                self._before = None
            else:
                return False
        return True

    def has(self, name: str) -> bool:
        return any(e.name == name for e in self.page)


class Reader(PageReader):
    """Reads the task and the pages; a method for each kind of page."""

    def __init__(self, env: object = None) -> None:
        self.moves: Moves = iter(())

    def act(self, observation: Any) -> str:
        self.read(observation)
        if observation.startswith("Task: "):
            self.task: str = observation.removeprefix("Task: ").partition("\n")[0]
            self.moves = _SOLVERS[self.page[0].name](self)
        return rf"\boxed{{{next(self.moves, 'stop []')}}}"

    # ---- kinds of pages

    def login(self) -> Moves:
        orders = self.task.removeprefix("Do all of this: ").removesuffix(".").split("; ")
        answer = ""
        if match := re.fullmatch(r"sign in as the user (\S+) with the password (\S+)", orders[0]):
            user, password = match.groups()
        else:
            match = re.fullmatch(r"sign in as (.+), whose .* with the password (\S+)", orders[0])
            assert match is not None
            name, password = match.groups()
            yield from self.click("Directory")
            yield from self.rows()
            user = next(cells[1] for cells in self.table if cells[0] == name)
            yield from self.click("Sign in")
        yield from self.write(User_name=user, Password=password)
        if "tick Keep me signed in" in orders:
            yield from self.click("Keep me signed in")
        yield from self.click("Sign in")
        for order in orders[1:]:
            if order.startswith("answer"):
                answer = next(e.value for e in self.page if e.name == "E-mail address")
            elif order.startswith("change the e-mail address"):
                yield from self.use("type", "E-mail address", order.split()[-1])
                yield from self.click("Save")
            elif order.startswith("change the password"):
                yield from self.click("Change password")
                new = order.split()[-1]
                yield from self.write(Current_password=password, New_password=new, Repeat_new_password=new)
                yield from self.click("Change password")
                yield from self.click("Account")
            elif order == "sign out":
                yield from self.click("Sign out")
        yield f"stop [{answer}]"

    def settings(self) -> Moves:
        orders = self.task.removeprefix("Change these settings: ").removesuffix(".").split("; ")
        wanted = {}
        for order in orders:
            if match := re.fullmatch(r"set (.+?) to that of the office in (.+)", order):
                yield from self.click("Offices")
                yield from self.rows()
                wanted[match[1]] = next(cells[1] for cells in self.table if cells[0] == match[2])
            elif match := re.fullmatch(r"set (.+) to (.+)", order):
                wanted[match[1]] = match[2]
            elif match := re.fullmatch(r"turn (?:on|off) (.+)", order):
                wanted[match[1]] = ""
        for tab in ("Profile", "General", "Notifications", "Privacy", "Editor"):
            yield from self.click(tab)
            here = [e for e in self.page if e.number and e.name in wanted]
            for element in here:
                verb = {"textbox": "type", "combobox": "select", "checkbox": "click"}[element.role]
                value = wanted[element.name]
                yield from self.use(verb, element.name, *([value] if value else []))
            if here:
                yield from self.click("Save")

    def orders(self) -> Moves:
        if match := re.fullmatch(r"Set the status of order (\d+) to (\w+)\.", self.task):
            yield from self._edit_order(match[1], match[2], "")
            return
        customer = re.search(r"orders? of (\w+ \w+) ", self.task)[1]  # type: ignore[index]
        yield from self._search(customer)
        yield from self.rows("Next page")
        table = [cells for cells in self.table if cells[1] == customer]
        if match := re.search(r"for the item (\w+)", self.task):
            number = next(cells[0] for cells in table if cells[2] == match[1])
            if self.task.startswith("Delete"):
                yield from self._search(customer)
                yield from self.seek(f"{number} | ", "Next page")
                yield from self.click("Delete", row=f"{number} | ")
                yield from self.click("Delete")
            else:
                yield from self._edit_order(number, self.task.split()[-1].removesuffix("."), "", customer)
            return
        status = re.search(r"the status (\w+)", self.task)[1]  # type: ignore[index]
        table = [cells for cells in table if cells[4] == status]
        if self.task.startswith("How many"):
            yield f"stop [{len(table)}]"
        elif self.task.startswith("What"):
            yield f"stop [{sum(int(cells[3]) for cells in table)}]"
        else:
            new, note = re.search(r"the status to (\w+) and the note to: (.+)\.", self.task).groups()  # type: ignore[union-attr]
            for cells in table:
                yield from self._edit_order(cells[0], new, note, customer)

    def _search(self, customer: str) -> Moves:
        yield from self.use("type", "Search customers", customer)
        yield from self.click("Search")

    def _edit_order(self, number: str, status: str, note: str, customer: str = "") -> Moves:
        if customer:
            yield from self._search(customer)
        yield from self.seek(f"{number} | ", "Next page")
        yield from self.click("Edit", row=f"{number} | ")
        yield from self.use("select", "Status", status)
        if note:
            yield from self.write(Note=note)
        yield from self.click("Save")

    def files(self) -> Moves:
        if match := re.fullmatch(r"Rename the file (\S+) to (\S+)\.", self.task):
            name = yield from self._open_folder(match[1])
            yield from self.click("Rename", row=f"{name} | ")
            yield from self.use("type", "New name", match[2])
            yield from self.click("Save")
        elif match := re.fullmatch(r"Delete the file (\S+)\.", self.task):
            yield from self._delete_file(match[1])
        elif match := re.fullmatch(r"Move the file (\S+) into the folder (\S+)\.", self.task):
            name = yield from self._open_folder(match[1])
            yield from self._move_file(name, match[2])
        elif match := re.fullmatch(r"How many KB has the file (\S+)\? .*", self.task):
            name = yield from self._open_folder(match[1])
            yield from self.rows()
            size = next(cells[1] for cells in self.table if cells[0] == name)
            yield f"stop [{size.split()[0]}]"
        else:
            match = re.fullmatch(
                r"Make the folder (\S+), move all (\w+) files of \S+ into it, and delete the file (\S+)\.", self.task
            )
            assert match is not None
            new = yield from self._open_folder(match[1])
            yield from self.click("New folder")
            yield from self.write(Name=new)
            yield from self.click("Create")
            yield from self.rows()
            for name in [cells[0] for cells in self.table if cells[0].endswith(f".{match[2]}")]:
                yield from self._move_file(name, match[1])
            yield from self._delete_file(match[3])

    def _open_folder(self, path: str) -> Generator[str, None, str]:
        """Yield the moves to the folder that a path is in; return the last part of the path."""
        while self.has("Up"):
            yield from self.click("Up")
        *folders, name = path.split("/")[1:]
        for folder in folders:
            yield from self.click("Open", row=f"{folder} | ")
        return name

    def _move_file(self, name: str, target: str) -> Moves:
        yield from self.click("Move", row=f"{name} | ")
        yield from self.use("select", "Into", target)
        yield from self.click("Move")

    def _delete_file(self, path: str) -> Moves:
        name = yield from self._open_folder(path)
        yield from self.click("Delete", row=f"{name} | ")
        yield from self.click("Delete")

    def cart(self) -> Moves:
        for order in self._orders():
            if match := re.fullmatch(r"put (\d+) of the product (.+) into the cart", order):
                yield from self.click("Shop")
                yield from self.seek(f"{match[2]} | ", "Next page")
                yield from self.click(f"Add {match[2]}")
                yield from self._set_quantity(match[2], match[1])
            elif match := re.fullmatch(r"set the quantity of (.+) to (\d+)", order):
                yield from self._set_quantity(match[1], match[2])
            elif match := re.fullmatch(r"remove the product (.+) from the cart", order):
                yield from self.click("Cart")
                yield from self.click(f"Remove {match[1]}")
            elif match := re.fullmatch(
                r"order .* with the delivery (\S+) to the address (.+?)(?: and with the coupon for (.+))?", order
            ):
                code = ""
                if match[3]:
                    yield from self.click("Coupons")
                    yield from self.rows()
                    code = next(cells[1] for cells in self.table if cells[0] == f"For {match[3]}")
                yield from self.click("Cart")
                yield from self.click("Checkout")
                yield from self.write(Address=match[2])
                yield from self.use("select", "Delivery", match[1])
                if code:
                    yield from self.write(Coupon=code)
                yield from self.click("Place order")
            else:
                yield from self.click("Cart")
                boxes = [e for e in self.page if e.role == "textbox"]
                prices = [int(e.row.split(" | ")[1].split()[0]) for e in boxes]
                yield f"stop [{sum(int(e.value) * price for e, price in zip(boxes, prices, strict=True))}]"

    def _orders(self) -> list[str]:
        """Return the parts of a task that begins with "Do all of this: "."""
        return self.task.removeprefix("Do all of this: ").removesuffix(".").split("; ")

    def _set_quantity(self, product: str, count: str) -> Moves:
        yield from self.click("Cart")
        yield from self.use("type", f"Quantity of {product}", count)
        yield from self.click("Update quantities")

    def wizard(self) -> Moves:
        match = re.fullmatch(r"Register (.+?)\. (E-mail: .+)\. The terms may be accepted\.", self.task)
        assert match is not None
        values = dict(part.split(": ", 1) for part in match[2].split("; "))
        if other := values.pop("company name and purchase number", "").removeprefix("those of "):
            yield from self.click("Show", row=f"{other} | ")
            yield from self.rows()
            values.update(
                {cells[0]: cells[1] for cells in self.table if cells[0] not in (*values, "Name", "Workshops")}
            )
            yield from self.click("All registrations")
        yield from self.click("New registration")
        yield from self.write(Name=match[1])
        yield from self.use("type", "E-mail", values["E-mail"])
        yield from self.use("select", "Ticket", values["Ticket"])
        yield from self.click("Next")
        for name in [e.name for e in self.page if e.role == "textbox"]:
            yield from self.use("type", name, values[name])
        yield from self.click("Next")
        yield from self.use("select", "Meal", values["Meal"])
        for name in values["workshops"].split(", "):
            if name != "none":
                yield from self.click(name)
        yield from self.click("Next")
        yield from self.click("I accept the terms")
        yield from self.click("Submit")

    def mailbox(self) -> Moves:
        named = r"the mail (.+?) of (\w+ \w+)"
        for order in self._orders():
            if match := re.fullmatch(
                rf"reply to {named} with the code in {named}, which is in the folder (\w+)", order
            ):
                yield from self._open_mail(match[5], match[4], match[3])
                yield from self._reply(match[2], match[1], self._code())
            elif match := re.fullmatch(rf'reply to {named} with the text "(.+)"', order):
                yield from self._reply(match[2], match[1], match[3])
            elif match := re.fullmatch(rf"move {named} to the folder (\w+)", order):
                yield from self._open_mail("Inbox", match[2], match[1])
                yield from self._move_mail(match[3])
            elif match := re.fullmatch(r"move all mails of (.+) in the Inbox to the folder (\w+)", order):
                while (yield from self._open_mail("Inbox", match[1])):
                    yield from self._move_mail(match[2])
            elif match := re.fullmatch(rf"star {named}", order):
                yield from self._open_mail("Inbox", match[2], match[1])
                yield from self.click("Star")
                yield from self.click("Save")
            elif match := re.fullmatch(rf"answer with the code in {named}", order):
                yield from self._open_mail("Inbox", match[2], match[1])
                yield f"stop [{self._code()}]"

    def _code(self) -> str:
        return next(e.name.split()[3].removesuffix(".") for e in self.page if e.name.startswith("The code is "))

    def _open_mail(self, folder: str, sender: str, title: str = "") -> Generator[str, None, bool]:
        start = f"{sender} | {title} | " if title else f"{sender} | "
        yield from self.click(folder)
        if not (yield from self.seek(start, "Older")):
            return False
        yield from self.click("Open", row=start)
        return True

    def _move_mail(self, folder: str) -> Moves:
        yield from self.use("select", "Folder", folder)
        yield from self.click("Save")

    def _reply(self, sender: str, title: str, words: str) -> Moves:
        yield from self._open_mail("Inbox", sender, title)
        yield from self.click("Reply")
        yield from self.write(Text=words)
        yield from self.click("Send")

    def calendar(self) -> Moves:
        self.task = self.task.removesuffix(" Dates are written as year-month-day.")
        for order in self._orders():
            if match := re.fullmatch(r"book the (.+) for (.+) from (\S+) to (\S+)", order):
                yield from self.click("New booking")
                yield from self.write(Booked_by=match[2])
                yield from self.use("select", "Room", match[1])
                yield from self._choose_day("From", match[3])
                yield from self._choose_day("To", match[4])
                yield from self.click("Save")
                continue
            name = re.search(r"the booking of (\w+ \w+)", order)[1]  # type: ignore[index]
            yield from self.rows()
            first, last = next(cells[2].split(" to ") for cells in self.table if cells[0] == name)
            if order.startswith("answer"):
                yield f"stop [{(date.fromisoformat(last) - date.fromisoformat(first)).days + 1}]"
            elif order.startswith("cancel"):
                yield from self.click("Cancel booking", row=f"{name} | ")
                yield from self.click("Cancel booking")
            else:
                days = timedelta(days=int(re.search(r"by (\d+) days", order)[1]))  # type: ignore[index]
                yield from self.click("Change", row=f"{name} | ")
                yield from self._choose_day("To", str(date.fromisoformat(last) + days))
                yield from self._choose_day("From", str(date.fromisoformat(first) + days))
                yield from self.click("Save")

    def _choose_day(self, end: str, day: str) -> Moves:
        yield from self.click(next(e.name for e in self.page if e.number and e.name.startswith(f"{end}: ")))
        while True:
            shown = next(e.name for e in self.page if e.role == "heading").removeprefix(f"{end}: ")
            if shown == day[:7]:
                break
            yield from self.click("Next month" if shown < day[:7] else "Previous month")
        yield from self.click(str(int(day[8:])))


_SOLVERS = {  # by the title of the first page
    "Sign in": Reader.login,
    "Settings": Reader.settings,
    "Orders": Reader.orders,
    "Files": Reader.files,
    "Shop": Reader.cart,
    "Registrations": Reader.wizard,
    "Mail": Reader.mailbox,
    "Bookings": Reader.calendar,
}
