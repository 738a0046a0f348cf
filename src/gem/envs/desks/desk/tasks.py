"""Tasks of desks: what a task has, and the database and the phrases that its template starts from."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gem.envs.desks.desk.shop import Data, Shop, add_order, generate, item, product_of
from gem.envs.desks.desk.user import CustomerGoal, CustomerWish, Want
from gem.messages import ToolCall

_GREETINGS = ("Hello, I need some help.", "Hi. Can you help me?", "Good morning, I have a request.", None, None)


@dataclass(frozen=True)
class DeskTask:
    """A task.

    Args:
        template: name of its template.
        customer: id of the customer; None if the customer cannot be identified.
        data: the database at the start.
        gold: the calls that change it as they should.
        statements: (field, value) of what must be said; see gem.envs.desks.desk.statements.
        goal: the hidden goal of the customer.
        execute: executes a gold call on a database.
    """

    template: str
    customer: str | None
    data: Data
    gold: Sequence[ToolCall]
    statements: Sequence[tuple[str, str]]
    goal: CustomerGoal
    execute: Callable[[Data, ToolCall], None]

    @cached_property
    def private(self) -> list[str]:
        """Names, addresses and numbers of other customers and what they have, but for this customer's own, sorted."""
        own, others = set[str](), set[str]()
        for number, person in self.data["customers"].items():
            found = own if number == self.customer else others
            found |= {number, person["name"], person["email"], *person["address"].values()}
            found |= {*person.get("orders", ()), *person.get("lines", ()), *person.get("payments", ())}
        for order in self.data.get("orders", {}).values():
            found = own if order["customer"] == self.customer else others
            found |= {*order["address"].values(), *filter(None, [order["tracking"]])}
        return sorted(others - own)

    def goal_data(self) -> Data:
        """Return the database after the gold calls."""
        data = copy.deepcopy(self.data)
        for call in self.gold:
            self.execute(data, call)
        return data


def execute_retail(data: Data, call: ToolCall) -> None:
    """Execute a gold call on the database of a shop."""
    getattr(Shop(data), call.name)(**call.arguments)


def values(call: ToolCall) -> list[str]:
    """Return the values that a message must name before a call: all but the customer's id, as "$12", "3 GB", "on".

    >>> values(ToolCall("return_items", {"order_id": "#W10000", "item_ids": ["P1234"], "refund": 12}))
    ['#W10000', 'P1234', '$12']
    """
    found: list[str] = []
    for name, value in call.arguments.items():
        if name != "customer_id":
            found += [str(v) for v in value] if isinstance(value, list) else [_named(name, value)]
    return found


def _named(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if name == "gigabytes":
        return f"{value} GB"
    return f"${value}" if isinstance(value, int) else str(value)


class BaseDraft:
    """A task in the making: a database with a customer, and helpers to phrase wishes."""

    rng: random.Random
    data: Data
    customer: str
    others: list[str]
    execute: Callable[[Data, ToolCall], None]

    def say(self, *wordings: str) -> str:
        return self.rng.choice(wordings)

    def task(
        self,
        *wishes: CustomerWish,
        gold: Sequence[ToolCall] = (),
        statements: Sequence[tuple[str, str]] = (),
        rule: int = 0,
        unknown: bool = False,
    ) -> DeskTask:
        """Return the task. ``rule``: the rule that forbids the request, 0 if it is allowed."""
        person, rng = self.data["customers"][self.customer], self.rng
        email = person["email"] if rng.random() < 0.5 and not unknown else None
        zip_code = str(int(person["address"]["zip"]) - 7) if unknown else person["address"]["zip"]
        goal = CustomerGoal(person["name"], zip_code, email, rng.choice(_GREETINGS), wishes, rng.randrange(6))
        said = [("rule", str(rule))] if rule else list(statements)
        return DeskTask(
            "", None if unknown else self.customer, self.data, () if rule else gold, said, goal, self.execute
        )


class Draft(BaseDraft):
    """A shop, its customer with some orders, and helpers to phrase wishes."""

    execute = staticmethod(execute_retail)

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.data = rng, generate(rng)
        self.customer, *self.others = rng.sample(list(self.data["customers"]), len(self.data["customers"]))
        self.one, self.two, *rest = rng.sample(list(self.data["products"]), len(self.data["products"]))
        for person in (self.customer, *self.others):
            for _ in range(rng.randint(1, 2)):
                self.add(person, [self.pick(rng.choice(rest))], rng.choice(["pending", "shipped", "delivered"]), 5)

    def add(self, customer: str, items: list[str], status: str, days: int) -> str:
        return add_order(self.rng, self.data, customer, items, status, days)

    def pick(self, product: str, place: int = 0) -> str:
        """Return the id of an item of a product."""
        return str(list(self.data["products"][product]["items"])[place])

    def order(self, status: str = "pending", days: int = 3, *, count: int = 1) -> str:
        """Add the order that the task is about, with an item of the first product, and of the second if count is 2."""
        return self.add(self.customer, [self.pick(p) for p in (self.one, self.two)[:count]], status, days)

    def product(self, item_id: str) -> str:
        return product_of(self.data, item_id)

    def called(self, item_id: str) -> str:
        """Return how people call an item, such as "red Desk Lamp"."""
        return f"{item(self.data, item_id)['colour']} {self.product(item_id)}"

    def about(self, order: str) -> tuple[str, dict[str, str]]:
        """Return words for an order, and the answer to the question for its number."""
        named = self.product(self.data["orders"][order]["items"][0])
        words = self.say(f"order {order}", f"my order with the {named}", "one of my orders")
        known = self.say(f"The order number is {order}.", f"It is {order}.")
        return words, {"order": known if order in words or self.rng.random() < 0.5 else f"The one with the {named}."}


def wish(request: str, details: dict[str, str], call: ToolCall | None = None, **options: Any) -> CustomerWish:
    """Return a wish for a change. The customer does not mind about amounts, which it does not know."""
    wanted = tuple(value for value in values(call) if not value.startswith("$")) if call else ()
    return CustomerWish(request, details, [Want(call.name, wanted)] if call else (), **options)
