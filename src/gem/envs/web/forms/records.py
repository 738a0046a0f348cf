"""Pages of records: orders in a table with pages and a search field, and files in folders."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence

from gem.envs.invented import people
from gem.envs.web.forms.site import Data, FormTask, Site, View
from gem.envs.web.forms.widgets import Element, button, combobox, heading, link, page, row, table, text, textbox

_ITEMS = ("Desk", "Lamp", "Chair", "Shelf", "Rug", "Clock", "Mirror", "Vase")
_STATUS = ("New", "Paid", "Shipped", "Returned")
_PER_PAGE = 8


class TableSite(Site):
    """Orders in a table with paging and search.

    Level 1: set the status of an order, given by number. 2: the same for an order given by customer and item; or
    delete it; or count orders. 3: set the status and the note of all orders of a customer that have a certain status;
    or add up what they cost.
    """

    def task(self, rng: random.Random, level: int) -> FormTask:
        customers = people(rng, 3 + 2 * level)
        numbers = [str(number) for number in sorted(rng.sample(range(1000, 9999), 12 * level + 2))]
        orders: Data = {}
        pairs = [(customer, item) for customer in customers for item in _ITEMS]
        for number, (customer, item) in zip(numbers, rng.sample(pairs, min(len(pairs), len(numbers))), strict=False):
            total = rng.randint(5, 400)
            status = rng.choice(_STATUS)
            orders[number] = {"customer": customer, "item": item, "total": total, "status": status, "note": ""}
        data: Data = {"orders": orders}
        goal = copy.deepcopy(data)
        number = rng.choice(sorted(orders))
        order = orders[number]
        customer, old = order["customer"], order["status"]
        new = rng.choice([status for status in _STATUS if status != old])
        same = [n for n, o in orders.items() if o["customer"] == customer and o["status"] == old]
        answer, kind = None, rng.randrange(3)
        plan: list[tuple[str, ...]] = []
        if level == 1:
            instruction = f"Set the status of order {number} to {new}."
            goal["orders"][number]["status"] = new
            plan = [*_found(orders, "", [number]), *_edited(number, new)]
        elif level == 2 and kind == 0:
            instruction = f"Set the status of the order of {customer} for the item {order['item']} to {new}."
            goal["orders"][number]["status"] = new
            plan = [*_searched(customer), *_found(orders, customer, [number]), *_edited(number, new)]
        elif level == 2 and kind == 1:
            instruction = f"Delete the order of {customer} for the item {order['item']}."
            del goal["orders"][number]
            clicks = [("click", f"delete/{number}"), ("click", "confirm")]
            plan = [*_searched(customer), *_found(orders, customer, [number]), *clicks]
        elif level == 2:
            instruction = f"How many orders of {customer} have the status {old}? Answer with the number."
            answer, plan = str(len(same)), _searched(customer)
        elif kind == 0:
            instruction = (
                f"What do the orders of {customer} with the status {old} cost together? Answer with the number."
            )
            answer, plan = str(sum(orders[n]["total"] for n in same)), _searched(customer)
        else:
            note = f"{rng.choice(['call', 'mail', 'visit'])} {rng.choice(['today', 'tomorrow', 'on Friday'])}"
            instruction = (
                f"In all orders of {customer} with the status {old}, set the status to {new} and the note to: {note}."
            )
            for n in same:
                goal["orders"][n].update(status=new, note=note)
                plan += [*_searched(customer), *_found(orders, customer, [n]), *_edited(n, new, note)]
        return FormTask(
            instruction=instruction, home="orders/1/", data=data, goal=goal, answer=answer, plan=tuple(plan)
        )

    def page(self, data: Data, view: View) -> Element:
        name, _, rest = view.address.partition("/")
        if name == "orders":
            return self._list(data, view, *rest.split("/", 1))
        order = data["orders"][rest]
        title = f"Order {rest}: {order['item']} for {order['customer']}"
        if name == "delete":
            return page("Delete order", heading(title), button("Delete", "confirm"), button("Cancel", "cancel"))
        return page(
            "Edit order",
            heading(title),
            combobox("Status", "status", view.get("status", order["status"]), _STATUS),
            textbox("Note", "note", view.get("note", order["note"]), "save"),
            button("Save", "save"),
            button("Cancel", "cancel"),
        )

    def _list(self, data: Data, view: View, number: str, query: str) -> Element:
        found, first = _matching(data["orders"], query), (int(number) - 1) * _PER_PAGE
        rows = []
        for n in found[first : first + _PER_PAGE]:
            order = data["orders"][n]
            cells = [n, order["customer"], order["item"], str(order["total"]), order["status"]]
            rows.append(row(cells, link("Edit", f"edit/{n}"), button("Delete", f"delete/{n}")))
        pages = [button("Previous page", "previous")] if first else []
        pages += [button("Next page", "next")] if first + _PER_PAGE < len(found) else []
        return page(
            "Orders",
            textbox("Search customers", "query", view.get("query", query), "search"),
            button("Search", "search"),
            text(f"{len(found)} orders, page {number}"),
            table("Number | Customer | Item | Total | Status", *rows),
            *pages,
        )

    def press(self, data: Data, view: View, key: str) -> View:
        rest = view.address.partition("/")[2]
        if key in ("previous", "next"):
            number, query = rest.split("/", 1)
            return view.go(f"orders/{int(number) + (1 if key == 'next' else -1)}/{query}")
        if key == "search":
            return view.go(f"orders/1/{view.get('query', rest.split('/', 1)[1])}")
        if key == "confirm":
            del data["orders"][rest]
            return View("orders/1/", message=f"Order {rest} has been deleted.")  # there is no way back to its page
        if key == "save":
            data["orders"][rest].update({field: view.fields[field] for field in view.fields})
            return view.go("orders/1/", "Saved.")
        return view.go("orders/1/" if key == "cancel" else key)


def _matching(orders: Data, query: str) -> list[str]:
    return [number for number, order in orders.items() if query.casefold() in order["customer"].casefold()]


def _searched(customer: str) -> list[tuple[str, ...]]:
    return [("fill", "query", customer), ("click", "search")]


def _found(orders: Data, query: str, numbers: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the clicks from the first page of the results to the page with the order."""
    return [("click", "next")] * (_matching(orders, query).index(numbers[0]) // _PER_PAGE)


def _edited(number: str, status: str, note: str = "") -> list[tuple[str, ...]]:
    fields = [("select", "status", status), *([("fill", "note", note)] if note else [])]
    return [("click", f"edit/{number}"), *fields, ("click", "save")]


_WORDS = ["report", "budget", "notes", "plan", "draft", "letter", "photo", "minutes", "invoice", "survey"]
_FOLDERS = ["archive", "drafts", "finance", "images", "letters", "projects"]
_ENDINGS = ("txt", "csv", "png", "pdf")


class FilesSite(Site):
    """Files in folders: open, rename, move, delete, and new folders.

    Level 1: rename or delete a file. 2: move a file into another folder, or report the size of one. 3: make a folder,
    move all files of an ending into it, and delete a file.
    """

    def task(self, rng: random.Random, level: int) -> FormTask:
        folders = rng.sample(_FOLDERS, 2 + level)
        paths = {f"/{folder}": "folder" for folder in folders}
        if level > 1:
            paths[f"/{folders[0]}/old"] = "folder"
        for parent in ["", *paths]:
            for name in rng.sample(_WORDS, 2 + level):
                paths[f"{parent}/{name}.{rng.choice(_ENDINGS)}"] = f"{rng.randint(2, 900)} KB"
        data: Data = {"files": dict(sorted(paths.items()))}
        goal = copy.deepcopy(data)
        files = goal["files"]
        path = rng.choice([path for path, kind in paths.items() if kind != "folder" and path.count("/") > 1])
        parent, name = _split(path)
        opened, answer = _opened(parent), None
        plan: list[tuple[str, ...]] = []
        coin = rng.random() < 0.5
        if level == 1 and coin:
            new = f"{rng.choice(_WORDS)}-{rng.randint(2, 99)}.{name.rpartition('.')[2]}"
            instruction = f"Rename the file {path} to {new}."
            files[f"{parent}/{new}"] = files.pop(path)
            plan = [*opened, ("click", f"rename{path}"), ("fill", "name", new), ("click", "save")]
        elif level == 1:
            instruction = f"Delete the file {path}."
            del files[path]
            plan = [*opened, ("click", f"delete{path}"), ("click", "confirm")]
        elif level == 2 and coin:
            free = [f for f, kind in paths.items() if kind == "folder" and f != parent and f"{f}/{name}" not in paths]
            target = rng.choice(free)
            instruction = f"Move the file {path} into the folder {target}."
            files[f"{target}/{name}"] = files.pop(path)
            plan = [*opened, *_moved(path, target)]
        elif level == 2:
            instruction = f"How many KB has the file {path}? Answer with the number."
            answer, plan = paths[path].split()[0], opened
        else:
            ending, new = name.rpartition(".")[2], f"{rng.choice(_WORDS)}-{rng.randint(2, 99)}"
            here = [p for p in paths if _split(p)[0] == parent and p.endswith(f".{ending}")]
            other = rng.choice([p for p in paths if p.count("/") == 1 and paths[p] != "folder"])
            instruction = (
                f"Make the folder {parent}/{new}, move all {ending} files of {parent} into it, and delete the file "
                f"{other}."
            )
            files[f"{parent}/{new}"] = "folder"
            plan = [*opened, ("click", "new"), ("fill", "name", new), ("click", "create")]
            for p in here:
                files[f"{parent}/{new}/{_split(p)[1]}"] = files.pop(p)
                plan += _moved(p, f"{parent}/{new}")
            del files[other]
            plan += [("click", "up")] * len(opened) + [("click", f"delete{other}"), ("click", "confirm")]
        return FormTask(instruction=instruction, home="open", data=data, goal=goal, answer=answer, plan=tuple(plan))

    def page(self, data: Data, view: View) -> Element:
        files = data["files"]
        verb, _, rest = view.address.partition("/")
        path = f"/{rest}" if rest else ""
        if verb == "open":
            inside = [p for p in sorted(files) if _split(p)[0] == path]
            rows = []
            for p in inside:
                opens = [link("Open", f"open{p}")] if files[p] == "folder" else []
                actions = [button(verb.title(), f"{verb}{p}") for verb in ("rename", "move", "delete")]
                rows.append(row([_split(p)[1], files[p]], *opens, *actions))
            up = [link("Up", "up")] if path else []
            return page(
                "Files", heading(f"Folder {path or '/'}"), *up, button("New folder", "new"), table("Name | Size", *rows)
            )
        cancel = button("Cancel", "cancel")
        if verb == "new":
            return page(
                "New folder", textbox("Name", "name", view.get("name"), "create"), button("Create", "create"), cancel
            )
        if verb == "rename":
            box = textbox("New name", "name", view.get("name", _split(path)[1]), "save")
            return page("Rename", heading(path), box, button("Save", "save"), cancel)
        if verb == "move":
            targets = ["/", *(p for p in sorted(files) if files[p] == "folder" and not _inside(p, path))]
            box = combobox("Into", "into", view.get("into", _split(path)[0] or "/"), targets)
            return page("Move", heading(path), box, button("Move", "put"), cancel)
        return page("Delete", heading(f"Delete {path}?"), button("Delete", "confirm"), cancel)

    def press(self, data: Data, view: View, key: str) -> View:
        files, (verb, _, rest) = data["files"], view.address.partition("/")
        path = f"/{rest}" if rest else ""
        parent = path if verb in ("open", "new") else _split(path)[0]
        if key in ("up", "cancel"):
            return view.go(f"open{_split(path)[0] if key == 'up' else parent}")
        if key == "new":
            return view.go(f"new{path}")
        if key == "confirm":
            for p in [p for p in files if _inside(p, path)]:
                del files[p]
            return View(f"open{parent}", message="Deleted.")
        if key in ("create", "save", "put"):
            name = view.get("name", _split(path)[1]) if key != "put" else _split(path)[1]
            target = view.get("into", parent).removesuffix("/") if key == "put" else parent
            new = f"{target}/{name}"
            if not name or "/" in name or new in files:
                return view.say("The name is empty, taken or has a slash.")
            if key == "create":
                files[new] = "folder"
            for p in [p for p in files if key != "create" and _inside(p, path)]:
                files[new + p[len(path) :]] = files.pop(p)
            return View(f"open{parent}", message="Done.")
        return view.go(key)


def _split(path: str) -> tuple[str, str]:
    parent, _, name = path.rpartition("/")
    return parent, name


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _opened(folder: str) -> list[tuple[str, ...]]:
    """Return the clicks from the top folder to this one."""
    parts = folder.split("/")[1:]
    return [("click", f"open/{'/'.join(parts[: n + 1])}") for n in range(len(parts))]


def _moved(path: str, target: str) -> list[tuple[str, ...]]:
    return [("click", f"move{path}"), ("select", "into", target), ("click", "put")]
