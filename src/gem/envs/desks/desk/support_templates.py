"""The templates of desk:Support's tasks: a function for each, in the split of its decorator."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from gem.envs.desks.desk.provider import MAX_EXTRA, OUTAGE_HOURS, SIM_DAYS, add_line, execute_support, generate_provider
from gem.envs.desks.desk.shop import address
from gem.envs.desks.desk.tasks import BaseDraft, DeskTask, wish
from gem.envs.desks.desk.templates import Split
from gem.envs.desks.desk.user import CustomerWish
from gem.messages import ToolCall

SupportTemplate = Callable[["SupportDraft"], DeskTask]
SUPPORT_TEMPLATES: dict[Split, dict[str, SupportTemplate]] = {"train": {}, "test": {}}


class SupportDraft(BaseDraft):
    """A task in the making: a provider, its customer with a mobile line and perhaps another, and other customers."""

    execute = staticmethod(execute_support)

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.data = rng, generate_provider(rng)
        self.customer, *self.others = rng.sample(list(self.data["customers"]), len(self.data["customers"]))
        self.line = add_line(rng, self.data, self.customer)
        for person in (self.customer, *self.others):
            for _ in range(rng.randint(1, 2)):
                add_line(rng, self.data, person, rng.choice(["mobile", "home"]))
        self.entry, self.phone = self.data["lines"][self.line], self.data["phones"][self.line]

    def about(self, line: str = "") -> tuple[str, dict[str, str]]:
        """Return words for the line, and the answer to the question for its number."""
        known = {"line": self.say(f"It is {line or self.line}.", f"The number is {line or self.line}.")}
        return self.say(f"line {line or self.line}", "one of my lines"), known

    def call(self, name: str, /, **arguments: Any) -> ToolCall:
        return ToolCall(name, {"line_id": self.line, **arguments})

    def phone_call(self, name: str, /, **arguments: Any) -> ToolCall:
        return self.call(name, **arguments)


def support_template(split: Split) -> Callable[[SupportTemplate], SupportTemplate]:
    def register(function: SupportTemplate) -> SupportTemplate:
        SUPPORT_TEMPLATES[split][function.__name__] = function
        return function

    return register


def make_support_task(number: int, split: Split) -> DeskTask:
    """Return the task with a number. The templates of a split take turns."""
    names = list(SUPPORT_TEMPLATES[split])
    name = names[number % len(names)]
    return replace(SUPPORT_TEMPLATES[split][name](SupportDraft(random.Random(number))), template=name)


# ---- phones without a connection


def _broken(d: SupportDraft, *steps: ToolCall) -> DeskTask:
    words, details = d.about()
    request = d.say(f"My phone has no connection on {words}.", f"The internet on my phone with {words} does not work.")
    return d.task(wish(request, details), gold=[d.phone_call("check_status"), *steps])


@support_template("train")
def airplane_mode(d: SupportDraft) -> DeskTask:
    d.phone["airplane_mode"] = True
    return _broken(d, d.phone_call("switch", what="airplane_mode", on=False))


@support_template("train")
def mobile_data(d: SupportDraft) -> DeskTask:
    d.phone["mobile_data"] = False
    return _broken(d, d.phone_call("switch", what="mobile_data", on=True))


@support_template("train")
def loose_sim(d: SupportDraft) -> DeskTask:
    d.phone["sim"] = "loose"
    return _broken(d, d.phone_call("seat_sim"))


@support_template("test")
def access_point(d: SupportDraft) -> DeskTask:
    d.phone["access_point"] = "wrong"
    return _broken(d, d.phone_call("reset_access_point"))


@support_template("test")
def two_faults(d: SupportDraft) -> DeskTask:
    d.phone.update(airplane_mode=True, sim="loose")
    return _broken(d, d.phone_call("switch", what="airplane_mode", on=False), d.phone_call("seat_sim"))


@support_template("train")
def abroad(d: SupportDraft) -> DeskTask:
    words, details = d.about()
    call = d.call("set_roaming", allowed=True)
    request = d.say(f"I am abroad, and {words} does not work.", f"I am in another country and have no data on {words}.")
    return d.task(wish(request, details, call), gold=[call, d.phone_call("switch", what="roaming", on=True)])


# ---- changes of a line


def _resume(d: SupportDraft, balance: int) -> tuple[CustomerWish, ToolCall]:
    d.entry.update(status="suspended", balance=balance)
    words, details = d.about()
    call = d.call("resume_line")
    return wish(d.say(f"Please resume {words}, it is suspended.", f"I want to resume {words}."), details, call), call


@support_template("train")
def resume(d: SupportDraft) -> DeskTask:
    wanted, call = _resume(d, 0)
    return d.task(wanted, gold=[call, d.phone_call("restart_phone")])


@support_template("train")
def resume_unpaid(d: SupportDraft) -> DeskTask:
    return d.task(_resume(d, d.rng.randint(5, 60))[0], rule=3)


def _plan(d: SupportDraft, plan: str, **options: Any) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about()
    call = d.call("change_plan", plan=plan)
    what = d.say(f"the plan {plan}", "another plan")
    request = d.say(f"I would like {what} for {words}.", f"Please give me {what} on {words}.")
    return wish(request, {**details, "plan": f"The plan {plan}, please."}, call, **options), call


@support_template("train")
def plan(d: SupportDraft) -> DeskTask:
    wanted, call = _plan(d, "Large")
    return d.task(wanted, gold=[call])


@support_template("train")
def plan_in_contract(d: SupportDraft) -> DeskTask:
    end = date.fromisoformat(d.data["today"]) + timedelta(days=d.rng.randint(5, 300))
    d.entry["contract_end"] = end.isoformat()
    return d.task(_plan(d, d.rng.choice(["Large", "Travel"]))[0], rule=4)


@support_template("test")
def plan_other_after_all(d: SupportDraft) -> DeskTask:
    first, _ = _plan(d, "Large")
    last, call = _plan(d, "Travel", after="proposal")
    request = f"I would like the plan Travel for line {d.line}."
    details = {"line": f"It is {d.line}.", "plan": "The plan Travel, please."}
    said = f"Actually, I have changed my mind. {request}"
    return d.task(first, replace(last, request=request, details=details, said=said), gold=[call])


def _data(d: SupportDraft, gigabytes: int, **options: Any) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about()
    call = d.call("add_data", gigabytes=gigabytes)
    what = d.say(f"{gigabytes} GB of extra data", "extra data")
    request = d.say(f"I need {what} on {words}.", f"Please add {what} to {words}.")
    return wish(request, {**details, "gigabytes": f"{gigabytes} GB, please."}, call, **options), call


@support_template("train")
def extra_data(d: SupportDraft) -> DeskTask:
    wanted, call = _data(d, d.rng.randint(1, MAX_EXTRA))
    return d.task(wanted, gold=[call])


@support_template("train")
def too_much_data(d: SupportDraft) -> DeskTask:
    d.entry["extra"] = d.rng.randint(2, MAX_EXTRA)
    return d.task(_data(d, MAX_EXTRA + 1 - d.rng.randint(1, 2))[0], rule=5)


@support_template("train")
def less_data_after_all(d: SupportDraft) -> DeskTask:
    first, _ = _data(d, 4)
    last, call = _data(d, 2, after="proposal")
    request = f"I need only 2 GB of extra data on line {d.line}."
    details = {"line": f"It is {d.line}.", "gigabytes": "2 GB, please."}
    said = f"Actually, that is too much. {request}"
    return d.task(first, replace(last, request=request, details=details, said=said), gold=[call])


@support_template("test")
def pause(d: SupportDraft) -> DeskTask:
    words, details = d.about()
    until = (date.fromisoformat(d.data["today"]) + timedelta(days=d.rng.randint(10, 80))).isoformat()
    call = d.call("pause_line", until=until)
    request = d.say(f"I want to pause {words}.", f"Please pause {words} for a while.")
    return d.task(wish(request, {**details, "date": f"Until {until}."}, call), gold=[call])


def _sim(d: SupportDraft) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about()
    call = d.call("replace_sim")
    return wish(d.say(f"I need a new SIM for {words}.", f"Please replace the SIM of {words}."), details, call), call


@support_template("train")
def new_sim(d: SupportDraft) -> DeskTask:
    wanted, call = _sim(d)
    return d.task(wanted, gold=[call, d.phone_call("restart_phone")])


@support_template("train")
def new_sim_again(d: SupportDraft) -> DeskTask:
    d.entry["sim_days"] = d.rng.randint(1, SIM_DAYS - 1)
    return d.task(_sim(d)[0], rule=7)


def _credit(d: SupportDraft, hours: int) -> tuple[CustomerWish, ToolCall]:
    d.entry.update(outage_hours=hours, outage_credit=d.rng.randint(3, 20))
    words, details = d.about()
    call = d.call("pay_credit", amount=d.entry["outage_credit"])
    request = d.say(f"I want a credit for the outage of {words}.", f"There was an outage of {words}. I want a credit.")
    return wish(request, details, call), call


@support_template("train")
def credit(d: SupportDraft) -> DeskTask:
    wanted, call = _credit(d, d.rng.randint(OUTAGE_HOURS + 1, 90))
    return d.task(wanted, gold=[call])


@support_template("train")
def credit_short_outage(d: SupportDraft) -> DeskTask:
    return d.task(_credit(d, d.rng.randint(1, OUTAGE_HOURS))[0], rule=6)


def _technician(d: SupportDraft, line: str) -> tuple[CustomerWish, ToolCall]:
    words, details = d.about(line)
    call = ToolCall("send_technician", {"line_id": line})
    request = d.say(f"Please send a technician for {words}.", f"I want a technician to look at {words}.")
    return wish(request, details, call), call


@support_template("test")
def technician(d: SupportDraft) -> DeskTask:
    wanted, call = _technician(d, add_line(d.rng, d.data, d.customer, "home"))
    return d.task(wanted, gold=[call])


@support_template("test")
def technician_for_a_phone(d: SupportDraft) -> DeskTask:
    return d.task(_technician(d, d.line)[0], rule=8)


@support_template("train")
def account_address(d: SupportDraft) -> DeskTask:
    new = address(d.rng)
    said = f"The new address is {new['street']}, {new['city']}, {new['zip']}."
    call = ToolCall("change_customer_address", {"customer_id": d.customer, **new})
    request = d.say("I have moved. Please change the address of my account.", "My account needs my new home address.")
    return d.task(wish(request, {"address": said}, call), gold=[call])


# ---- questions, refusals, transfers, several requests


def _asked(d: SupportDraft, field: str, value: Any, *wordings: str) -> DeskTask:
    words, details = d.about()
    request = d.say(*wordings).format(words)
    return d.task(wish(request, details), statements=[(field, str(value))])


@support_template("train")
def data_used(d: SupportDraft) -> DeskTask:
    return _asked(d, "gigabytes", d.entry["used"], "How much data was used on {}?", "How much data did I use on {}?")


@support_template("train")
def balance(d: SupportDraft) -> DeskTask:
    d.entry["balance"] = d.rng.randint(3, 60)
    return _asked(d, "money", d.entry["balance"], "What is the balance of {}?", "What do I owe you, the balance of {}?")


@support_template("test")
def contract_end(d: SupportDraft) -> DeskTask:
    return _asked(d, "date", d.entry["contract_end"], "When does the contract of {} end?", "The contract end of {}?")


@support_template("train")
def plan_price(d: SupportDraft) -> DeskTask:
    name = d.rng.choice(["Large", "Travel"])
    request = d.say(f"How much is the plan {name}?", f"What is the price of the plan {name}?")
    return d.task(wish(request, {}), statements=[("money", str(d.data["plans"][name]["price"]))])


@support_template("train")
def unknown_support_customer(d: SupportDraft) -> DeskTask:
    return d.task(_plan(d, "Large")[0], rule=1, unknown=True)


@support_template("train")
def line_of_another(d: SupportDraft) -> DeskTask:
    line = d.data["customers"][d.others[0]]["lines"][0]
    request = d.say(f"My friend has line {line}. How much data was used?", f"What is the balance of line {line}?")
    return d.task(wish(request, {"line": f"It is {line}."}), rule=2)


def _transfer(d: SupportDraft, topic: str, *wordings: str) -> DeskTask:
    call = ToolCall("transfer_to_human", {"customer_id": d.customer, "topic": topic})
    return d.task(wish(d.say(*wordings), {}), gold=[call])


@support_template("train")
def complaint(d: SupportDraft) -> DeskTask:
    return _transfer(d, "complaint", "I want to make a complaint.", "I have a complaint about a shop of yours.")


@support_template("test")
def porting(d: SupportDraft) -> DeskTask:
    return _transfer(
        d, "porting", "I want to take my number to another provider.", "Porting my number, how is it done?"
    )


@support_template("train")
def data_and_price(d: SupportDraft) -> DeskTask:
    first, call = _data(d, d.rng.randint(1, MAX_EXTRA))
    said = "Yes. How much is the plan Travel?"
    more = replace(first, request=said, after="more", said=said)
    return d.task(first, more, gold=[call], statements=[("money", str(d.data["plans"]["Travel"]["price"]))])


@support_template("test")
def resume_and_contract(d: SupportDraft) -> DeskTask:
    first, call = _resume(d, 0)
    said = f"Yes. When does the contract of line {d.line} end?"
    more = replace(first, request=said, after="more", said=said)
    gold = [call, d.phone_call("restart_phone")]
    return d.task(first, more, gold=gold, statements=[("date", d.entry["contract_end"])])
