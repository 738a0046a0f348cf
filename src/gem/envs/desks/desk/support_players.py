"""An agent for desk:Support that sees observations only.

It knows the policy and how customers phrase their wishes, as a person would.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import ClassVar

from gem.envs.desks.desk.phone_requests import request_of
from gem.envs.desks.desk.players import DeskReader, Moves
from gem.envs.desks.desk.provider import MAX_EXTRA, OUTAGE_HOURS, PLANS, SIM_DAYS
from gem.messages import ToolCall

_LINE = re.compile(r"\bL-\d{4}\b")
_PLAN = re.compile(rf"\bplan ({'|'.join(PLANS)})\b")
_GB = re.compile(r"\b(\d+) GB\b")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
# Steps on the phone, by what its status shows when they are needed.
_STEPS = {
    "airplane mode is on": ToolCall("switch", {"what": "airplane_mode", "on": False}),
    "mobile data is off": ToolCall("switch", {"what": "mobile_data", "on": True}),
    "the SIM is loose": ToolCall("seat_sim", {}),
    "access point is wrong": ToolCall("reset_access_point", {}),
}


class SupportReader(DeskReader):
    """Serves the customer of a provider; a method for each kind of request."""

    kinds: ClassVar[dict[str, str]] = {
        "transfer": r"complain|another provider|porting",
        "abroad": r"abroad|another country",
        "repair": r"connection|internet on my phone",
        "tell_used": r"how much data",
        "tell_balance": r"balance",
        "tell_contract": r"contract",
        "tell_price": r"how much is the plan|price",
        "resume": r"resume",
        "extra": r"extra data",
        "plan": r"plan",
        "pause": r"pause",
        "sim": r"sim\b",
        "credit": r"credit",
        "technician": r"technician",
        "account": r"account",
    }
    topics: ClassVar[dict[str, str]] = {"complain": "complaint", "provider": "porting", "porting": "porting"}

    def find_line(self) -> Generator[str, None, bool]:
        """Find the line of the request. Return whether it is one of the customer's; refuse if it is not."""
        if not _LINE.search(self.request):
            yield "Which line is it? Please give me the line number."
            self.request += f" {self.said}"
        self.line_id = _LINE.findall(self.request)[-1]
        if self.line_id not in self.person["lines"]:
            yield self.refusal(2)
            return False
        yield self.call("get_line", line_id=self.line_id)
        self.line = self.result
        return True

    def steps(self, *names: str) -> Moves:
        for name in names:
            yield request_of(ToolCall(name, {}))

    # ---- kinds of requests

    def repair(self) -> Moves:
        if not (yield from self.find_line()):
            return
        yield from self.steps("check_status")
        status = self.said
        for shown, step in _STEPS.items():
            if shown in status:
                yield request_of(step)

    def abroad(self) -> Moves:
        if (yield from self.find_line()):
            yield from self.change("set_roaming", line_id=self.line_id, allowed=True)
            yield request_of(ToolCall("switch", {"what": "roaming", "on": True}))

    def tell_used(self) -> Moves:
        if (yield from self.find_line()):
            yield f"It is {self.line['used']} GB."

    def tell_balance(self) -> Moves:
        if (yield from self.find_line()):
            yield f"It is ${self.line['balance']}."

    def tell_contract(self) -> Moves:
        if (yield from self.find_line()):
            yield f"It is {self.line['contract_end']}."

    def tell_price(self) -> Moves:
        yield self.call("list_plans")
        name = _PLAN.findall(self.request)[-1]
        yield f"It is ${self.result[name]['price']}."

    def resume(self) -> Moves:
        if not (yield from self.find_line()):
            return
        if self.line["balance"]:
            yield self.refusal(3)
            return
        yield from self.change("resume_line", line_id=self.line_id)
        yield from self.steps("restart_phone")

    def plan(self) -> Moves:
        if not (yield from self.find_line()):
            return
        if self.line["contract_end"] >= self.line["today"]:
            yield self.refusal(4)
            return
        if not _PLAN.search(self.request):
            yield "Which plan would you like?"
            self.request += f" {self.said}"
        yield from self.change("change_plan", line_id=self.line_id, plan=_PLAN.findall(self.request)[-1])

    def extra(self) -> Moves:
        if not (yield from self.find_line()):
            return
        if not _GB.search(self.request):
            yield "How many gigabytes would you like?"
            self.request += f" {self.said}"
        gigabytes = int(_GB.findall(self.request)[-1])
        if self.line["extra"] + gigabytes > MAX_EXTRA:
            yield self.refusal(5)
        else:
            yield from self.change("add_data", line_id=self.line_id, gigabytes=gigabytes)

    def pause(self) -> Moves:
        if (yield from self.find_line()):
            yield "Until which date?"
            yield from self.change("pause_line", line_id=self.line_id, until=_DATE.findall(self.said)[-1])

    def sim(self) -> Moves:
        if not (yield from self.find_line()):
            return
        if self.line["sim_days"] < SIM_DAYS:
            yield self.refusal(7)
            return
        yield from self.change("replace_sim", line_id=self.line_id)
        yield from self.steps("restart_phone")

    def credit(self) -> Moves:
        if not (yield from self.find_line()):
            return
        if self.line["outage_hours"] <= OUTAGE_HOURS:
            yield self.refusal(6)
        else:
            yield from self.change("pay_credit", line_id=self.line_id, amount=self.line["outage_credit"])

    def technician(self) -> Moves:
        if not (yield from self.find_line()):
            return
        if self.line["kind"] != "home":
            yield self.refusal(8)
        else:
            yield from self.change("send_technician", line_id=self.line_id)
