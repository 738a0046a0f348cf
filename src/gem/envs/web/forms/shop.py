"""Pages of buying: a shop with a cart and a checkout, and a registration in several steps."""

from __future__ import annotations

import copy
import random

from gem.envs.invented import people, user_name
from gem.envs.web.forms.site import Data, FormTask, Site, View, listed
from gem.envs.web.forms.widgets import (
    OFF,
    ON,
    Element,
    button,
    checkbox,
    combobox,
    heading,
    link,
    page,
    row,
    table,
    text,
    textbox,
)

_COLORS = ("Red", "Blue", "Green", "White", "Black")
_THINGS = ("mug", "plate", "bowl", "towel", "candle", "basket", "pillow", "tray")
_DELIVERY = ("Standard", "Express", "Pick-up")
_PER_PAGE = 10
_STREETS = ("Mill Lane", "High Street", "Station Road", "Park Avenue", "Harbor Way")
_OCCASIONS = ("students", "new customers", "teachers", "members")


class CartSite(Site):
    """A shop with a cart and a checkout.

    Level 1: put a product into the cart, which has others. 2: change the cart, order what is in it, or add up its
    prices. 3: change the cart and order it, with a coupon from another page.
    """

    def task(self, rng: random.Random, level: int) -> FormTask:
        names = [f"{color} {thing}" for thing in _THINGS for color in _COLORS]
        products = {name: rng.randint(2, 60) for name in rng.sample(names, 12 * level)}
        put, *others = rng.sample(sorted(products), 5)
        data: Data = {"products": products, "cart": {}, "orders": [], "coupons": {}}
        data["cart"] = {name: rng.randint(1, 4) for name in others[: 1 + level]}
        for occasion in _OCCASIONS:
            data["coupons"][occasion] = f"{rng.choice('ABCDEFGH')}{rng.choice('KLMNP')}{rng.randint(100, 999)}"
        goal, answer = copy.deepcopy(data), None
        removed, changed = others[0], others[1]
        count = rng.choice([n for n in range(2, 9) if n != data["cart"][changed]])
        address, delivery = f"{rng.choice(_STREETS)} {rng.randint(1, 99)}", rng.choice(_DELIVERY[1:])
        occasion, choice = rng.choice(_OCCASIONS), rng.randrange(3)
        plan: list[tuple[str, ...]] = []
        orders: list[str] = []
        if level != 2:
            orders.append(f"put {count} of the product {put} into the cart")
            goal["cart"][put] = count
            plan += [("click", "next")] * (list(products).index(put) // _PER_PAGE)
            plan += [("click", f"add/{put}"), ("click", "cart")]
            plan += [("fill", f"count/{put}", str(count)), ("click", "update")]
        if (level == 2 and choice == 0) or level == 3:
            orders += [f"remove the product {removed} from the cart", f"set the quantity of {changed} to {count}"]
            del goal["cart"][removed]
            goal["cart"][changed] = count
            plan += [("click", "cart"), ("click", f"remove/{removed}"), ("fill", f"count/{changed}", str(count))]
            plan.append(("click", "update"))
        if (level == 2 and choice == 1) or level == 3:
            orders.append(f"order what is in the cart with the delivery {delivery} to the address {address}")
            plan += [("click", "cart"), ("click", "checkout")]
            plan += [("fill", "address", address), ("select", "delivery", delivery)]
            if level == 3:
                orders[-1] += f" and with the coupon for {occasion}"
                plan.append(("fill", "coupon", data["coupons"][occasion]))
            plan.append(("click", "order"))
            order = {"items": goal["cart"], "address": address, "delivery": delivery}
            goal["orders"] = [{**order, "coupon": data["coupons"][occasion] if level == 3 else ""}]
            goal["cart"] = {}
        if level == 2 and choice == 2:
            orders.append("answer with the sum of what the cart costs, as a number")
            answer = str(sum(products[name] * n for name, n in data["cart"].items()))
        instruction = f"Do all of this: {listed(orders)}."
        return FormTask(instruction=instruction, home="shop/1", data=data, goal=goal, answer=answer, plan=tuple(plan))

    def page(self, data: Data, view: View) -> Element:
        links = [link("Shop", "shop/1"), link("Cart", "cart"), link("Coupons", "coupons")]
        name, _, number = view.address.partition("/")
        if name == "coupons":
            rows = [row([f"For {occasion}", code]) for occasion, code in data["coupons"].items()]
            return page("Shop", *links, heading("Coupons"), table("For | Code", *rows))
        if name == "cart":
            rows = []
            for product, n in data["cart"].items():
                key = f"count/{product}"
                box = textbox(f"Quantity of {product}", key, view.get(key, str(n)), "update")
                remove = button(f"Remove {product}", f"remove/{product}")
                rows.append(row([product, f"{data['products'][product]} each"], box, remove))
            ends = [button("Update quantities", "update"), link("Checkout", "checkout")] if rows else [text("Empty.")]
            return page("Shop", *links, heading("Cart"), table("Product | Price", *rows), *ends)
        if name == "checkout":
            return page(
                "Shop",
                *links,
                heading("Checkout"),
                textbox("Address", "address", view.get("address")),
                combobox("Delivery", "delivery", view.get("delivery", _DELIVERY[0]), _DELIVERY),
                textbox("Coupon", "coupon", view.get("coupon")),
                button("Place order", "order"),
            )
        products = list(data["products"].items())
        first = (int(number) - 1) * _PER_PAGE
        rows = [
            row([product, str(price)], button(f"Add {product}", f"add/{product}"))
            for product, price in products[first : first + _PER_PAGE]
        ]
        pages = [button("Previous page", "previous")] if first else []
        pages += [button("Next page", "next")] if first + _PER_PAGE < len(products) else []
        return page("Shop", *links, heading(f"Products, page {number}"), table("Product | Price", *rows), *pages)

    def press(self, data: Data, view: View, key: str) -> View:
        verb, _, name = key.partition("/")
        cart = data["cart"]
        if verb in ("next", "previous"):
            number = int(view.address.removeprefix("shop/"))
            return view.go(f"shop/{number + (1 if verb == 'next' else -1)}")
        if verb == "add":
            cart[name] = cart.get(name, 0) + 1
            return view.say(f"{name} is in the cart.")
        if verb == "remove":
            del cart[name]
            return view.go("cart", "Removed.", keep=True)
        if verb == "update":
            counts = {name: view.get(f"count/{name}", str(n)) for name, n in cart.items()}
            if not all(count.isascii() and count.isdigit() and 0 < int(count[:9]) < 1000 for count in counts.values()):
                return view.say("A quantity is a number from 1 to 999.")
            cart.update({name: int(count[:9]) for name, count in counts.items()})
            return view.go("cart", "Updated.")
        if verb == "order":
            if not cart or not view.get("address"):
                return view.say("The cart or the address is empty.")
            if view.get("coupon") not in ("", *data["coupons"].values()):
                return view.say("There is no such coupon.")
            order = {"items": dict(cart), "address": view.get("address")}
            order.update(delivery=view.get("delivery", _DELIVERY[0]), coupon=view.get("coupon"))
            data["orders"].append(order)
            data["cart"] = {}
            return View("shop/1", message="Thank you for your order.")
        return view.go(key)


_TICKETS = {  # ticket → fields of the second step
    "Student": ("University",),
    "Company": ("Company name", "Purchase number"),
    "Speaker": ("Title of talk", "Minutes"),
}
_MEALS = ("None", "Vegetarian", "Vegan", "Fish")
_WORKSHOPS = ("Statistics", "Writing", "Photography", "Robotics")
_UNIVERSITIES = ("Aldor University", "Brenna College", "Corvale Institute")
_FIRMS = ("Northwind Mills", "Estow Glass", "Dunmere Tools", "Farrow Foods")


class WizardSite(Site):
    """A registration in four steps, the second of which depends on the first.

    Level 1: a student. 2: any ticket, and workshops. 3: a colleague of somebody whose registration has company name and
    purchase number.
    """

    def task(self, rng: random.Random, level: int) -> FormTask:
        new, *names = people(rng, 3 + 2 * level)
        data: Data = {"registrations": [_registration(rng, name, "Company" if level == 3 else "") for name in names]}
        wanted = _registration(rng, new, {1: "Student", 3: "Company"}.get(level, ""))
        if level == 1:
            wanted["Workshops"] = []
        other = rng.choice(data["registrations"])
        fields = _TICKETS[wanted["Ticket"]]
        parts = [f"{name}: {wanted[name]}" for name in ("E-mail", "Ticket", *fields, "Meal")]
        plan: list[tuple[str, ...]] = [("click", "new"), ("fill", "Name", new), ("fill", "E-mail", wanted["E-mail"])]
        if level == 3:
            wanted.update({name: other[name] for name in fields})
            parts[2:4] = [f"company name and purchase number: those of {other['Name']}"]
            number = data["registrations"].index(other)
            plan = [("click", f"show/{number}"), ("click", "list"), *plan]
        plan += [("select", "Ticket", wanted["Ticket"]), ("click", "next")]
        plan += [*(("fill", name, wanted[name]) for name in fields), ("click", "next")]
        plan += [("select", "Meal", wanted["Meal"]), *(("check", name) for name in wanted["Workshops"])]
        plan += [("click", "next"), ("check", "terms"), ("click", "submit")]
        parts.append(f"workshops: {', '.join(wanted['Workshops']) or 'none'}")
        instruction = f"Register {new}. {listed(parts)}. The terms may be accepted."
        goal = {"registrations": [*copy.deepcopy(data["registrations"]), wanted]}
        return FormTask(instruction=instruction, home="list", data=data, goal=goal, plan=tuple(plan))

    def page(self, data: Data, view: View) -> Element:
        name, _, number = view.address.partition("/")
        if name == "list":
            rows = [
                row([entry["Name"], entry["Ticket"]], link("Show", f"show/{n}"))
                for n, entry in enumerate(data["registrations"])
            ]
            return page("Registrations", button("New registration", "new"), table("Name | Ticket", *rows))
        if name == "show":
            entry = data["registrations"][int(number)]
            rows = [row([key, _shown(value)]) for key, value in entry.items()]
            return page("Registration", link("All registrations", "list"), table("Field | Value", *rows))
        buttons = [button("Back", "back"), button("Next", "next"), link("Cancel", "list")]
        title = f"New registration, step {number} of 4"
        ticket = view.get("Ticket", "Student")
        if number == "1":
            boxes = [textbox(name, name, view.get(name), "next") for name in ("Name", "E-mail")]
            return page(title, *boxes, combobox("Ticket", "Ticket", ticket, tuple(_TICKETS)), *buttons[1:])
        if number == "2":
            return page(title, *(textbox(name, name, view.get(name), "next") for name in _TICKETS[ticket]), *buttons)
        if number == "3":
            boxes = [checkbox(name, name, view.get(name, OFF)) for name in _WORKSHOPS]
            meal = combobox("Meal", "Meal", view.get("Meal", _MEALS[0]), _MEALS)
            return page(title, meal, heading("Workshops"), *boxes, *buttons)
        rows = [row([key, _shown(value)]) for key, value in _entered(view).items()]
        terms = checkbox("I accept the terms", "terms", view.get("terms", OFF))
        submit = button("Submit", "submit")
        return page(title, table("Field | Value", *rows), terms, submit, buttons[0], buttons[2])

    def press(self, data: Data, view: View, key: str) -> View:
        number = int(view.address.partition("/")[2] or 0)
        if key == "new":
            return view.go("step/1")
        if key in ("next", "back"):
            entered = _entered(view)
            needed = {1: ("Name", "E-mail"), 2: _TICKETS[entered["Ticket"]]}.get(number, ())
            if key == "next" and not all(entered[name] for name in needed):
                return view.say("Please fill in all fields.")
            return view.go(f"step/{number + (1 if key == 'next' else -1)}", keep=True)
        if key == "submit":
            entered = _entered(view)
            if not view.checked("terms") or not all(entered[name] for name in _TICKETS[entered["Ticket"]]):
                return view.say("Please fill in all fields and accept the terms.")
            data["registrations"].append(entered)
            return View("list", message="Registered.")
        return view.go(key)


def _shown(value: object) -> str:
    return (", ".join(value) or "none") if isinstance(value, list) else str(value)


def _entered(view: View) -> Data:
    """Return the registration that was entered so far."""
    ticket = view.get("Ticket", "Student")
    entered: Data = {"Name": view.get("Name"), "E-mail": view.get("E-mail"), "Ticket": ticket}
    entered.update({name: view.get(name) for name in _TICKETS[ticket]})
    workshops = [name for name in _WORKSHOPS if view.get(name) == ON]
    return {**entered, "Meal": view.get("Meal", _MEALS[0]), "Workshops": workshops}


def _registration(rng: random.Random, name: str, ticket: str) -> Data:
    ticket = ticket or rng.choice(list(_TICKETS))
    entry: Data = {"Name": name, "E-mail": f"{user_name(name)}@example.org", "Ticket": ticket}
    values = {
        "University": rng.choice(_UNIVERSITIES),
        "Company name": rng.choice(_FIRMS),
        "Purchase number": f"PN-{rng.randint(1000, 9999)}",
        "Title of talk": f"{rng.choice(('Notes on', 'Ten years of', 'Against'))} {rng.choice(_WORKSHOPS).lower()}",
        "Minutes": str(rng.choice((20, 30, 45))),
    }
    entry.update({field: values[field] for field in _TICKETS[ticket]})
    chosen = set(rng.sample(_WORKSHOPS, 2))
    return {**entry, "Meal": rng.choice(_MEALS[1:]), "Workshops": [name for name in _WORKSHOPS if name in chosen]}
