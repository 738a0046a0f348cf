"""The shop of desk:Retail: its generated database, the policy, and the functions that the agent can call.

The functions execute every call that is possible, whether or not the policy allows it. Amounts are whole dollars, dates
are ISO dates.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from datetime import date, timedelta
from typing import Any, Literal

from gem.envs.invented import people
from gem.tools.function_tool import FunctionTool

Data = dict[str, Any]  # JSON; keys are str
PRODUCTS = ("Desk Lamp", "Wall Clock", "Hiking Boots", "Rain Jacket", "Water Bottle", "Tea Kettle", "Backpack", "Radio")
COLOURS = ("red", "blue", "green", "black", "white")
CITIES = ("Estow", "Marlow", "Tarn", "Ulby", "Wick")
STREETS = ("Oak Street", "Mill Lane", "Park Road", "Hill Row")
FEE = 5  # dollars per item that is returned late
FREE_DAYS, LAST_DAY = 14, 30  # days after delivery: returns are free, returns are possible
# Forms of messages: a call to confirm with its values, and a refusal with the number of a rule.
CONFIRM = "I would call {} with {}. Do you confirm this?"
REFUSE = "I cannot do this: rule {}."

POLICY = f"""Policy of the shop
- First identify the customer: find the customer with an e-mail address, or with a name and a zip code, that you were
  told in this conversation. Before this, look up nothing, change nothing and refuse nothing.
- Read and tell only what belongs to this customer: nothing about other customers, their orders or addresses.
- Before each change ask the customer to confirm it. Such a message names the function and all values of the call but
  the customer's id, separated by commas, and has this form and nothing else:
  {CONFIRM.format("cancel_order", "#W10000, no longer needed")}
  Make the change only if the customer says yes. A transfer needs no confirmation.
- Make only changes that the customer wants, and each of them once: do not try something and change it back.
- Answer a question with its amount, date or tracking number in a message of this form and nothing else: It is $12.
  The last message that has such a value counts.
- If a request is not allowed, refuse it with the one rule that forbids it, in a message of this form and nothing else:
  {REFUSE.format(9)} The last message that names a rule counts.
  rule 1: the customer cannot be identified, because no account matches what the customer says.
  rule 2: the order belongs to another customer.
  rule 3: an order can be cancelled, or get another address, shipping or payment, only while its status is pending.
  rule 4: items can be returned or exchanged until {LAST_DAY} days after the delivery.
  rule 5: products on final sale cannot be returned or exchanged.
  rule 6: an item can be exchanged only for an item of the same product.
  rule 7: an item can be exchanged only for an item that is in stock.
  rule 8: the shipping fee is paid back only if the order was delivered after the promised date.
- The refund of a return is the sum of the prices, less ${FEE} per item if it was delivered over {FREE_DAYS} days ago.
- Requests about a warranty, an invoice or a complaint are transferred to a human, and nothing else is.
- At the end ask whether there is anything else, and do that too. Then say goodbye: a message that begins or ends with
  the word goodbye ends the conversation."""


def generate(rng: random.Random) -> Data:
    """Draw a database: products, and customers without orders."""
    numbers = iter(rng.sample(range(1000, 10_000), 200))
    products: Data = {}
    for name in rng.sample(PRODUCTS, 6):
        price = rng.randint(15, 90)
        items = {
            f"P{next(numbers)}": {"colour": colour, "price": price + rng.randint(0, 9), "stock": rng.randint(1, 20)}
            for colour in rng.sample(COLOURS, 3)
        }
        products[name] = {"final_sale": False, "items": items}
    customers: Data = {}
    for name in people(rng, 4):
        first, last = name.lower().split()
        payments = {f"card-{rng.randint(100, 999)}": "credit card", f"gift-{rng.randint(100, 999)}": "gift card"}
        home = address(rng)
        customers[f"C{next(numbers)}"] = {
            "name": name,
            "email": f"{first}.{last}{rng.randint(1, 99)}@mail.example",
            "address": home,
            "payments": payments,
            "orders": [],
        }
    today = date(2026, 1, 1) + timedelta(days=rng.randint(40, 700))
    return {"today": today.isoformat(), "products": products, "customers": customers, "orders": {}, "transfers": []}


def address(rng: random.Random) -> Data:
    """Draw an address."""
    street = f"{rng.randint(1, 99)} {rng.choice(STREETS)}"
    return {"street": street, "city": rng.choice(CITIES), "zip": str(rng.randint(10_000, 99_999))}


def new_number(rng: random.Random, numbers: range, names: Collection[str]) -> int:
    """Draw one of the numbers that no name has. Names are two characters and a number."""
    number = rng.choice(numbers[: -len(names)] if names else numbers)
    for taken in sorted(int(name[2:]) for name in names):
        number += taken <= number  # it counts the numbers that are not taken
    return number


def add_order(rng: random.Random, data: Data, customer: str, items: list[str], status: str, days: int) -> str:
    """Add an order to the database and return its number.

    Args:
        days: since the delivery, or since the order if it is not delivered.
    """
    number = f"#W{new_number(rng, range(10_000, 11_000), data['orders'])}"
    today = date.fromisoformat(data["today"])
    delivered = today - timedelta(days=days) if status == "delivered" else None
    promised = (delivered or today) + timedelta(days=rng.randint(1, 5))
    person = data["customers"][customer]
    data["orders"][number] = {
        "customer": customer,
        "status": status,
        "items": items,
        "total": sum(item(data, i)["price"] for i in items) + (fee := rng.randint(4, 12)),
        "shipping": "standard",
        "shipping_fee": fee,
        "payment": next(iter(person["payments"])),
        "address": dict(person["address"]),
        "promised": promised.isoformat(),
        "delivered": delivered and delivered.isoformat(),
        "tracking": None if status == "pending" else f"TRK{rng.randint(10**6, 10**7 - 1)}",
    }
    person["orders"].append(number)
    return number


def product_of(data: Data, item_id: str) -> str:
    """Return the name of the product that an item belongs to. Raises ValueError if there is no such item."""
    for name, product in data["products"].items():
        if item_id in product["items"]:
            return str(name)
    raise ValueError(f"there is no item {item_id}")


def item(data: Data, item_id: str) -> Data:
    """Return the entry of an item. Raises ValueError if there is no such item."""
    entry: Data = data["products"][product_of(data, item_id)]["items"][item_id]
    return entry


def refund(data: Data, order_id: str, items: list[str]) -> int:
    """Return what the policy pays for a return, in dollars."""
    delivered = date.fromisoformat(data["orders"][order_id]["delivered"])
    late = (date.fromisoformat(data["today"]) - delivered).days > FREE_DAYS
    return int(sum(item(data, i)["price"] for i in items) - (FEE * len(items) if late else 0))


class CustomerFunctions:
    """The functions that all desks have, on the database ``data``."""

    FINDS = ("find_customer_by_email", "find_customer_by_name")

    def __init__(self, data: Data) -> None:
        self.data = data

    def find_customer_by_email(self, email: str) -> Data:
        """Find a customer by e-mail address."""
        return self._found(lambda person: person["email"] == email.strip().lower())

    def find_customer_by_name(self, name: str, zip: str) -> Data:
        """Find a customer by first and last name and zip code."""
        wanted = (" ".join(name.split()).lower(), zip.strip())
        return self._found(lambda person: (person["name"].lower(), person["address"]["zip"]) == wanted)

    def _entry(self, table: str, key: str) -> Data:
        if key not in self.data[table]:
            raise ValueError(f"there is no {table.removesuffix('s')} {key!r}")
        entry: Data = self.data[table][key]
        return entry

    def _found(self, test: Callable[[Data], bool]) -> Data:
        for customer_id, person in self.data["customers"].items():
            if test(person):
                return {"customer_id": customer_id}
        raise ValueError("no such customer")


class Shop(CustomerFunctions):
    """The functions of the desk, on the database ``data``. Functions that write change it in place."""

    def get_customer(self, customer_id: str) -> Data:
        """Show the name, e-mail address, address, payment methods and orders of a customer."""
        return {"today": self.data["today"], **self._entry("customers", customer_id)}

    def get_order(self, order_id: str) -> Data:
        """Show an order. The number begins with #W."""
        return {"today": self.data["today"], **self._entry("orders", order_id)}

    def list_products(self) -> list[str]:
        """List the names of all products."""
        return list(self.data["products"])

    def get_product(self, name: str) -> Data:
        """Show the items of a product with color, price and stock, and whether it is on final sale."""
        return self._entry("products", name)

    def cancel_order(self, order_id: str, reason: Literal["no longer needed", "ordered by mistake"]) -> str:
        """Cancel an order."""
        self._entry("orders", order_id).update(status="cancelled", reason=reason)
        return "done"

    def return_items(self, order_id: str, item_ids: list[str], refund: int) -> str:
        """Accept the return of items of an order, for a refund in dollars."""
        order = self._entry("orders", order_id)
        self._require_items(order, item_ids)
        order.update(status="return requested", returned=sorted(item_ids), refund=refund)
        return "done"

    def exchange_item(self, order_id: str, item_id: str, new_item_id: str) -> str:
        """Exchange an item of an order for another item."""
        order = self._entry("orders", order_id)
        self._require_items(order, [item_id])
        product_of(self.data, new_item_id)
        order.update(status="exchange requested", exchange={"from": item_id, "to": new_item_id})
        return "done"

    def change_order_address(self, order_id: str, street: str, city: str, zip: str) -> str:
        """Send an order to another address."""
        self._entry("orders", order_id)["address"] = {"street": street, "city": city, "zip": zip}
        return "done"

    def change_shipping(self, order_id: str, method: Literal["standard", "express"]) -> str:
        """Change how an order is shipped."""
        self._entry("orders", order_id)["shipping"] = method
        return "done"

    def change_payment(self, order_id: str, payment_id: str) -> str:
        """Pay an order with another payment method of the customer."""
        order = self._entry("orders", order_id)
        if payment_id not in self.data["customers"][order["customer"]]["payments"]:
            raise ValueError(f"the customer has no payment method {payment_id}")
        order["payment"] = payment_id
        return "done"

    def change_customer_address(self, customer_id: str, street: str, city: str, zip: str) -> str:
        """Change the address of a customer. Orders keep theirs."""
        self._entry("customers", customer_id)["address"] = {"street": street, "city": city, "zip": zip}
        return "done"

    def pay_back_shipping(self, order_id: str, amount: int) -> str:
        """Pay back the shipping fee of an order, in dollars."""
        self._entry("orders", order_id)["paid_back"] = amount
        return "done"

    def transfer_to_human(self, customer_id: str, topic: Literal["warranty", "invoice", "complaint"]) -> str:
        """Transfer a customer to a human, who answers after this conversation."""
        self._entry("customers", customer_id)
        self.data["transfers"].append({"customer": customer_id, "topic": topic})
        return "done"

    def _require_items(self, order: Data, item_ids: list[str]) -> None:
        if not item_ids or len(set(item_ids)) < len(item_ids) or not set(item_ids) <= set(order["items"]):
            raise ValueError(f"item_ids must be different items of the order: {', '.join(order['items'])}")


def functions(shop: Any) -> dict[str, FunctionTool]:
    """Return the functions of a desk's database as tools, by name."""
    defined = [name for one in reversed(type(shop).__mro__) for name in vars(one)]  # those of the base class first
    names = [name for name in defined if not name.startswith("_") and name.islower()]
    return {name: FunctionTool(getattr(shop, name)) for name in names}


def leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of each value of a database, such as ("orders/#W10000/status", "pending")."""
    if not isinstance(data, (dict, list)):
        yield path, data
        return
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield from leaves(value, f"{path}/{key}" if path else str(key))
