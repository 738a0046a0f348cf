"""An agent for desk:Retail that sees observations only.

It knows the policy and how customers phrase their wishes, as a person would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from datetime import date
from typing import Any, ClassVar

from gem.envs.desks.desk.shop import COLOURS, CONFIRM, FEE, FREE_DAYS, LAST_DAY, REFUSE, Data
from gem.envs.desks.desk.tasks import values
from gem.messages import ToolCall
from gem.tools.formats import TAGS

Moves = Iterator[str]
_ORDER = re.compile(r"#W\d+")
_ADDRESS = re.compile(r"address is (.+?), (\w+), (\d{5})")
_NAME = re.compile(r"My name is (.+) and my zip code is (\d+)")
_COLOURED = re.compile(rf"\b({'|'.join(COLOURS)}) ((?:[A-Z]\w+ ?)+)")
_WITH = re.compile(r"(?:order|one) with the ((?:[A-Z]\w+ ?)+)")
_IN_COLOUR = re.compile(rf"\bin ({'|'.join(COLOURS)})\b")
_KINDS = {
    "transfer": r"warranty|invoice|complain",
    "fee": r"shipping fee",
    "ask_total": r"\btotal\b",
    "ask_tracking": r"tracking",
    "ask_promised": r"promised",
    "price": r"how much|price",
    "cancel": r"cancel",
    "give_back": r"return|send back",
    "exchange": r"exchange|swap",
    "account": r"account",
    "address": r"address",
    "shipping": r"faster",
    "payment": r"\bpay",
}


class DeskReader:
    """Serves the customer; a method for each kind of request.

    Attributes:
        kinds: what customers want, by words of their request; the first that occurs counts.
        topics: of transfers, by words of the request.
    """

    kinds: ClassVar[dict[str, str]] = _KINDS
    topics: ClassVar[dict[str, str]] = {topic: topic for topic in ("warranty", "invoice", "complaint")}

    def __init__(self, env: object = None) -> None:
        self.moves: Moves = iter(())

    def act(self, observation: Any) -> str:
        self.said = observation.rpartition("Customer: ")[2]
        self.result = _decoded(observation)
        if "Policy of the " in observation:
            self.said = self.said.partition("\n")[0]
            self.items: dict[str, Data] = {}
            self.moves = self.serve()
        return next(self.moves)

    def serve(self) -> Moves:
        yield "Could you tell me your e-mail address, or your full name and zip code?"
        if name := _NAME.search(self.said):
            yield self.call("find_customer_by_name", name=name[1], zip=name[2])
        else:
            yield self.call("find_customer_by_email", email=self.said.split()[-1].rstrip("."))
        if self.result is None:
            yield self.refusal(1)
        else:
            self.customer = self.result["customer_id"]
            yield self.call("get_customer", customer_id=self.customer)
            self.person = self.result
            yield "Thank you. How can I help you?"
            yield from self.fulfil(self.said)
            yield "Is there anything else?"
            if self.said.startswith("Yes."):
                yield from self.fulfil(self.said)
        yield "Goodbye."

    def fulfil(self, request: str) -> Moves:
        self.request = request
        kind = next(name for name, words in self.kinds.items() if re.search(words, request.lower()))
        if kind.startswith("ask_"):
            yield from self.tell(kind.removeprefix("ask_"))
        else:
            yield from getattr(self, kind)()

    # ---- what the agent does

    def call(self, function: str, /, **arguments: Any) -> str:
        return TAGS.write(ToolCall(function, arguments), ())

    def refusal(self, rule: int) -> str:
        return REFUSE.format(rule)

    def change(self, name: str, /, **arguments: Any) -> Moves:
        """Ask the customer to confirm a call, and make it after a yes. Follow the customer if it changes its mind."""
        yield CONFIRM.format(name, ", ".join(values(ToolCall(name, arguments))))
        if self.said.startswith("Yes"):
            yield self.call(name, **arguments)
        elif self.said.startswith("Actually"):
            known = any(re.search(words, self.said.lower()) for words in self.kinds.values())
            yield from self.fulfil(self.said if known else f"{self.request} {self.said}")

    def look(self) -> Moves:
        """Read all products."""
        if self.items:
            return
        yield self.call("list_products")
        for name in self.result:
            yield self.call("get_product", name=name)
            for item, entry in self.result["items"].items():
                self.items[item] = {**entry, "product": name, "final": self.result["final_sale"]}

    def find_order(self) -> Generator[str, None, bool]:
        """Find the order of the request. Return whether it is one of the customer's; refuse if it is not."""
        if not _ORDER.search(self.request) and not _WITH.search(self.request):
            yield "Which order is it? Please give me the order number."
            self.request += f" {self.said}"
        if named := _ORDER.findall(self.request):
            if named[-1] not in self.person["orders"]:
                yield self.refusal(2)
                return False
            yield self.call("get_order", order_id=named[-1])
            self.order_id, self.order = named[-1], self.result
            return True
        yield from self.look()
        product = _WITH.findall(self.request)[-1].strip()
        for number in self.person["orders"]:
            yield self.call("get_order", order_id=number)
            self.order_id, self.order = number, self.result
            if any(self.items[item]["product"] == product for item in self.order["items"]):
                return True
        return False

    def pending(self) -> Generator[str, None, bool]:
        found = yield from self.find_order()
        if found and self.order["status"] != "pending":
            yield self.refusal(3)
        return found and self.order["status"] == "pending"

    def days(self) -> int:
        return (date.fromisoformat(self.order["today"]) - date.fromisoformat(self.order["delivered"])).days

    def named(self) -> list[tuple[str, str]]:
        """Return (color, product) of the items that the request names."""
        return [(colour, product.strip()) for colour, product in _COLOURED.findall(self.request)]

    def item_ids(self) -> list[str]:
        found = self.named()
        return [i for i in self.order["items"] if (self.items[i]["colour"], self.items[i]["product"]) in found]

    # ---- kinds of requests

    def transfer(self) -> Moves:
        topic = next(topic for words, topic in self.topics.items() if words in self.request.lower())
        yield self.call("transfer_to_human", customer_id=self.customer, topic=topic)

    def tell(self, key: str) -> Moves:
        if (yield from self.find_order()):
            yield f"It is {'$' if key == 'total' else ''}{self.order[key]}."

    def price(self) -> Moves:
        yield from self.look()
        colour, product = self.named()[-1]
        found = next(i for i in self.items.values() if (i["colour"], i["product"]) == (colour, product))
        yield f"It is ${found['price']}."

    def fee(self) -> Moves:
        if not (yield from self.find_order()):
            return
        if self.order["delivered"] <= self.order["promised"]:
            yield self.refusal(8)
        else:
            yield from self.change("pay_back_shipping", order_id=self.order_id, amount=self.order["shipping_fee"])

    def cancel(self) -> Moves:
        if (yield from self.pending()):
            if "need it" not in self.request and "needed" not in self.request and "mistake" not in self.request:
                yield "What is the reason?"
                self.request += f" {self.said}"
            reason = "ordered by mistake" if "mistake" in self.request else "no longer needed"
            yield from self.change("cancel_order", order_id=self.order_id, reason=reason)

    def account(self) -> Moves:
        yield from self.move("change_customer_address", customer_id=self.customer)

    def address(self) -> Moves:
        if (yield from self.pending()):
            yield from self.move("change_order_address", order_id=self.order_id)

    def move(self, name: str, **what: str) -> Moves:
        yield "What is the new address?"
        match = _ADDRESS.search(self.said)
        assert match is not None
        yield from self.change(name, **what, street=match[1], city=match[2], zip=match[3])

    def shipping(self) -> Moves:
        if (yield from self.pending()):
            yield "Which shipping method would you like?"
            method = "express" if "express" in self.said.lower() else "standard"
            yield from self.change("change_shipping", order_id=self.order_id, method=method)

    def payment(self) -> Moves:
        if (yield from self.pending()):
            yield "Which payment method would you like?"
            payment = next(i for i, kind in self.person["payments"].items() if kind in self.said)
            yield from self.change("change_payment", order_id=self.order_id, payment_id=payment)

    def give_back(self) -> Moves:
        if not (yield from self.find_order()):
            return
        yield from self.look()
        if not self.named():
            yield "Which items are they?"
            self.request += f" {self.said}"
        ids = self.item_ids()
        late = self.days() > FREE_DAYS
        refund = sum(self.items[i]["price"] for i in ids) - (FEE * len(ids) if late else 0)
        if self.days() > LAST_DAY:
            yield self.refusal(4)
        elif any(self.items[i]["final"] for i in ids):
            yield self.refusal(5)
        else:
            yield from self.change("return_items", order_id=self.order_id, item_ids=ids, refund=refund)

    def exchange(self) -> Moves:
        if not (yield from self.find_order()):
            return
        yield from self.look()
        if len(self.named()) < 2 and not _IN_COLOUR.search(self.request):
            yield "Which color would you like instead?"
            self.request += f" {self.said}"
        (_, product), *others = self.named()
        if others:
            yield self.refusal(6)
            return
        new = (_IN_COLOUR.findall(self.request)[-1], product)
        new_id = next(i for i, entry in self.items.items() if (entry["colour"], entry["product"]) == new)
        if not self.items[new_id]["stock"]:
            yield self.refusal(7)
        else:
            old = self.item_ids()[0]
            yield from self.change("exchange_item", order_id=self.order_id, item_id=old, new_item_id=new_id)


def _decoded(observation: str) -> Any:
    """Return the JSON value in a tool's result, or None."""
    for start in (match.start() for match in re.finditer(r"[{\[]", observation)):
        try:
            return json.JSONDecoder().raw_decode(observation, start)[0]
        except ValueError:
            continue
    return None
