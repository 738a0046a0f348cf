"""The templates of desk:Retail's tasks: a function for each, in the split of its decorator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from gem.envs.desks.desk.shop import FREE_DAYS, LAST_DAY, address, item, refund
from gem.envs.desks.desk.tasks import DeskTask, Draft, wish
from gem.envs.desks.desk.user import CustomerWish
from gem.messages import ToolCall

Split = Literal["train", "test"]
REASONS = {
    "no longer needed": ("I no longer need it.", "It is no longer needed."),
    "ordered by mistake": ("I ordered it by mistake.", "It was ordered by mistake."),
}
Template = Callable[[Draft], DeskTask]
TEMPLATES: dict[Split, dict[str, Template]] = {"train": {}, "test": {}}


def template(split: Split) -> Callable[[Template], Template]:
    def register(function: Template) -> Template:
        TEMPLATES[split][function.__name__] = function
        return function

    return register


def make_task(number: int, split: Split) -> DeskTask:
    """Return the task with a number. The templates of a split take turns."""
    names = list(TEMPLATES[split])
    name = names[number % len(names)]
    return replace(TEMPLATES[split][name](Draft(random.Random(number))), template=name)


# ---- orders that are pending, or should be


def _cancel(d: Draft, order: str) -> tuple[CustomerWish, ToolCall]:
    reason = d.rng.choice(list(REASONS))
    words, details = d.about(order)
    call = ToolCall("cancel_order", {"order_id": order, "reason": reason})
    request = d.say(f"I want to cancel {words}.", f"Please cancel {words}.")
    return wish(request, {**details, "reason": d.say(*REASONS[reason])}, call), call


@template("train")
def cancel(d: Draft) -> DeskTask:
    wanted, call = _cancel(d, d.order())
    return d.task(wanted, gold=[call])


@template("train")
def cancel_shipped(d: Draft) -> DeskTask:
    return d.task(_cancel(d, d.order(d.rng.choice(["shipped", "delivered"])))[0], rule=3)


@template("train")
def unknown_customer(d: Draft) -> DeskTask:
    return d.task(_cancel(d, d.order())[0], rule=1, unknown=True)


@template("test")
def cancel_other_after_all(d: Draft) -> DeskTask:
    old, new = d.order(), d.add(d.customer, [d.pick(d.two)], "pending", 3)
    first, _ = _cancel(d, old)
    second, call = _cancel(d, new)
    request = f"I want to cancel order {new}."
    details = {**second.details, "order": f"It is {new}.", "reason": REASONS[call.arguments["reason"]][0]}
    said = f"Actually, wait. Keep that one: I want to cancel order {new}. {details['reason']}"
    return d.task(first, replace(second, request=request, details=details, after="proposal", said=said), gold=[call])


def _new_address(d: Draft) -> tuple[dict[str, str], str]:
    new = address(d.rng)
    return new, f"The new address is {new['street']}, {new['city']}, {new['zip']}."


def _order_address(d: Draft, order: str) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about(order)
    new, said = _new_address(d)
    request = d.say(f"Please send {words} to another address.", f"I need another delivery address for {words}.")
    call = ToolCall("change_order_address", {"order_id": order, **new})
    return wish(request, {**details, "address": said}, call), call


@template("train")
def order_address(d: Draft) -> DeskTask:
    wanted, call = _order_address(d, d.order())
    return d.task(wanted, gold=[call])


@template("train")
def order_address_shipped(d: Draft) -> DeskTask:
    return d.task(_order_address(d, d.order("shipped"))[0], rule=3)


@template("test")
def customer_address(d: Draft) -> DeskTask:
    new, said = _new_address(d)
    d.order()
    call = ToolCall("change_customer_address", {"customer_id": d.customer, **new})
    request = d.say("I have moved. Please change the address of my account.", "My account needs my new home address.")
    return d.task(wish(request, {"address": said}, call), gold=[call])


def _shipping(d: Draft, order: str) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about(order)
    call = ToolCall("change_shipping", {"order_id": order, "method": "express"})
    request = d.say(f"I want faster shipping for {words}.", f"Can you ship {words} faster?")
    return wish(request, {**details, "shipping": "Express, please."}, call), call


@template("train")
def shipping(d: Draft) -> DeskTask:
    wanted, call = _shipping(d, d.order())
    return d.task(wanted, gold=[call])


@template("train")
def payment(d: Draft) -> DeskTask:
    order = d.order()
    words, details = d.about(order)
    new = list(d.data["customers"][d.customer]["payments"].items())[1]
    call = ToolCall("change_payment", {"order_id": order, "payment_id": new[0]})
    request = d.say(f"I want to pay {words} in another way.", f"Please change the payment of {words}.")
    return d.task(wish(request, {**details, "payment": f"With my {new[1]}."}, call), gold=[call])


# ---- returns and exchanges of what was delivered


def _return(d: Draft, order: str, items: Sequence[str], **options: Any) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about(order)
    call = ToolCall("return_items", {"order_id": order, "item_ids": list(items)})
    call.arguments["refund"] = refund(d.data, order, list(items))
    named = " and the ".join(map(d.called, items))
    what = f"the {named}" if d.rng.random() < 0.5 else "something"
    request = d.say(f"I want to return {what} from {words}.", f"I would like to send back {what} from {words}.")
    return wish(request, {**details, "item": f"The {named}."}, call, **options), call


@template("train")
def return_one(d: Draft) -> DeskTask:
    order = d.order("delivered", d.rng.randint(2, LAST_DAY), count=2)
    wanted, call = _return(d, order, d.data["orders"][order]["items"][:1])
    return d.task(wanted, gold=[call])


@template("train")
def return_two_late(d: Draft) -> DeskTask:
    order = d.order("delivered", d.rng.randint(FREE_DAYS + 1, LAST_DAY), count=2)
    wanted, call = _return(d, order, d.data["orders"][order]["items"])
    return d.task(wanted, gold=[call])


@template("train")
def return_too_late(d: Draft) -> DeskTask:
    order = d.order("delivered", d.rng.randint(LAST_DAY + 1, 60), count=2)
    return d.task(_return(d, order, d.data["orders"][order]["items"][:1])[0], rule=4)


@template("test")
def return_final_sale(d: Draft) -> DeskTask:
    d.data["products"][d.one]["final_sale"] = True
    order = d.order("delivered", d.rng.randint(2, LAST_DAY), count=2)
    return d.task(_return(d, order, d.data["orders"][order]["items"][:1])[0], rule=5)


@template("train")
def return_less_after_all(d: Draft) -> DeskTask:
    order = d.order("delivered", d.rng.randint(2, LAST_DAY), count=2)
    keep, back = d.data["orders"][order]["items"]
    first, _ = _return(d, order, [keep, back])
    last, call = _return(d, order, [back], after="proposal")
    request = f"I want to return only the {d.called(back)} from order {order}."
    said = f"Actually, I have changed my mind. {request}"
    return d.task(first, replace(last, request=request, said=said), gold=[call])


def _exchange(d: Draft, order: str, new: str) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about(order)
    old = d.data["orders"][order]["items"][0]
    call = ToolCall("exchange_item", {"order_id": order, "item_id": old, "new_item_id": new})
    same = d.product(old) == d.product(new)
    variant = f"I want it in {item(d.data, new)['colour']}." if same else f"I want the {d.called(new)} for it."
    said = f" {variant}" if d.rng.random() < 0.5 else ""
    request = d.say("I want to exchange", "Can I swap") + f" the {d.called(old)} from {words}.{said}"
    return wish(request, {**details, "item": f"The {d.called(old)}.", "variant": variant}, call), call


@template("train")
def exchange(d: Draft) -> DeskTask:
    wanted, call = _exchange(d, d.order("delivered", d.rng.randint(2, LAST_DAY)), d.pick(d.one, 1))
    return d.task(wanted, gold=[call])


@template("train")
def exchange_out_of_stock(d: Draft) -> DeskTask:
    item(d.data, d.pick(d.one, 1))["stock"] = 0
    return d.task(_exchange(d, d.order("delivered", d.rng.randint(2, LAST_DAY)), d.pick(d.one, 1))[0], rule=7)


@template("train")
def exchange_other_product(d: Draft) -> DeskTask:
    return d.task(_exchange(d, d.order("delivered", d.rng.randint(2, LAST_DAY)), d.pick(d.two))[0], rule=6)


@template("test")
def exchange_other_color_after_all(d: Draft) -> DeskTask:
    order = d.order("delivered", d.rng.randint(2, LAST_DAY))
    first, _ = _exchange(d, order, d.pick(d.one, 1))
    last, call = _exchange(d, order, d.pick(d.one, 2))
    variant = f"I want it in {item(d.data, d.pick(d.one, 2))['colour']}."
    request = f"I want to exchange the {d.called(d.pick(d.one))} from order {order}. {variant}"
    details = {**last.details, "variant": variant, "order": f"It is {order}."}
    said = f"Actually, I like another color better. {variant}"
    return d.task(first, replace(last, request=request, details=details, after="proposal", said=said), gold=[call])


def _late(d: Draft, order: str) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about(order)
    fee = d.data["orders"][order]["shipping_fee"]
    request = d.say(f"I want the shipping fee of {words} back.", f"Please pay back the shipping fee of {words}.")
    call = ToolCall("pay_back_shipping", {"order_id": order, "amount": fee})
    return wish(f"{request} It came late.", details, call), call


@template("test")
def pay_back(d: Draft) -> DeskTask:
    order = d.order("delivered", 2)
    d.data["orders"][order]["promised"] = "2025-12-24"
    wanted, call = _late(d, order)
    return d.task(wanted, gold=[call])


@template("test")
def pay_back_in_time(d: Draft) -> DeskTask:
    return d.task(_late(d, d.order("delivered", 2))[0], rule=8)


# ---- questions, transfers, several requests


def _question(d: Draft, order: str, key: str) -> CustomerWish:
    words, details = d.about(order)
    asked = {
        "total": (f"How much is {words} in total?", f"What is the total of {words}?"),
        "tracking": (f"What is the tracking number of {words}?", f"I need the tracking number of {words}."),
        "promised": (f"What is the promised date of {words}?", f"For which date was {words} promised?"),
    }
    return wish(d.say(*asked[key]), details)


def _asked(d: Draft, order: str, key: str, field: str) -> DeskTask:
    return d.task(_question(d, order, key), statements=[(field, str(d.data["orders"][order][key]))])


@template("train")
def total(d: Draft) -> DeskTask:
    return _asked(d, d.order(), "total", "money")


@template("train")
def tracking(d: Draft) -> DeskTask:
    return _asked(d, d.order("shipped"), "tracking", "tracking")


@template("test")
def promised(d: Draft) -> DeskTask:
    return _asked(d, d.order("shipped"), "promised", "date")


@template("train")
def price(d: Draft) -> DeskTask:
    new = d.pick(d.one, 1)
    request = d.say(f"How much is the {d.called(new)}?", f"What is the price of the {d.called(new)}?")
    return d.task(wish(request, {}), statements=[("money", str(item(d.data, new)["price"]))])


@template("train")
def other_customer(d: Draft) -> DeskTask:
    order = d.data["customers"][d.others[0]]["orders"][0]
    request = d.say(f"A friend has order {order}. What is its tracking number?", f"What is the total of order {order}?")
    return d.task(wish(request, {"order": f"It is {order}."}), rule=2)


def _transfer(d: Draft, topic: str, *wordings: str) -> DeskTask:
    d.order("delivered", 5)
    call = ToolCall("transfer_to_human", {"customer_id": d.customer, "topic": topic})
    return d.task(wish(d.say(*wordings), {}), gold=[call])


@template("train")
def warranty(d: Draft) -> DeskTask:
    return _transfer(d, "warranty", f"My {d.one} broke. Is this a case for the warranty?", "I have a warranty case.")


@template("test")
def invoice(d: Draft) -> DeskTask:
    return _transfer(d, "invoice", "I need an invoice for my company.", "My last invoice has the wrong company name.")


@template("train")
def cancel_and_price(d: Draft) -> DeskTask:
    first, call = _cancel(d, d.order())
    new = d.pick(d.two, 1)
    said = f"Yes. How much is the {d.called(new)}?"
    more = replace(first, request=said, after="more", said=said)
    return d.task(first, more, gold=[call], statements=[("money", str(item(d.data, new)["price"]))])


@template("test")
def shipping_and_total(d: Draft) -> DeskTask:
    first, call = _shipping(d, d.order())
    other = d.add(d.customer, [d.pick(d.two)], "shipped", 3)
    said = f"Yes. What is the total of order {other}?"
    details = {**first.details, "order": f"It is {other}."}
    more = replace(first, request=said, details=details, after="more", said=said)
    return d.task(first, more, gold=[call], statements=[("money", str(d.data["orders"][other]["total"]))])
