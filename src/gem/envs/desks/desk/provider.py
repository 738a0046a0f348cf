"""The provider of desk:Support: its generated database, the policy, the agent's functions, and the customer's phone.

A database has customers with lines, and a phone for each line. The agent's functions change lines, the customer's own
functions change the phone. They execute every call that is possible, whether or not the policy allows it. Amounts are
whole numbers.
"""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Literal

from gem.envs.desks.desk.shop import CONFIRM, REFUSE, CustomerFunctions, Data, address, new_number
from gem.envs.invented import people
from gem.messages import ToolCall

PLANS = {"Small": (8, 3), "Medium": (15, 10), "Large": (25, 30), "Travel": (35, 40)}  # dollars, gigabytes a month
MAX_EXTRA = 5  # gigabytes that can be added in a month
OUTAGE_HOURS, SIM_DAYS = 24, 90

SUPPORT_POLICY = f"""Policy of the provider
- First identify the customer: find the customer with an e-mail address, or with a name and a zip code, that you were
  told in this conversation. Before this, look up nothing, change nothing and refuse nothing.
- Read and tell only what belongs to this customer: nothing about other customers or their lines.
- Before each change with a function ask the customer to confirm it. Such a message names the function and all values of
  the call but the customer's id (amounts as $12, data as 3 GB, roaming as on or off), separated by commas, and has this
  form and nothing else:
  {CONFIRM.format("add_data", "L-1000, 3 GB")}
  Make the change only if the customer says yes. A transfer needs no confirmation.
- Make only changes that the customer wants, and each of them once: do not try something and change it back.
- You cannot see or change the phone. Ask the customer to check the status of the phone, and then only for steps that
  the status shows to be needed: "please turn airplane mode off", "please turn mobile data on", "please turn roaming on"
  (only abroad), "please seat the SIM", "please reset the access point". These steps need no other confirmation.
- After a line was resumed or its SIM was replaced, ask the customer once to restart the phone, and never otherwise.
- A customer abroad needs roaming on the line (set_roaming) and on the phone.
- Answer a question with its amount, date or data in a message of this form and nothing else: It is $12. Or: It is 3 GB.
  The last message that has such a value counts.
- If a request is not allowed, refuse it with the one rule that forbids it, in a message of this form and nothing else:
  {REFUSE.format(9)} The last message that names a rule counts.
  rule 1: the customer cannot be identified, because no account matches what the customer says.
  rule 2: the line belongs to another customer.
  rule 3: a line that is suspended can be resumed only when its balance is 0.
  rule 4: the plan of a line can be changed only after the end of its contract.
  rule 5: at most {MAX_EXTRA} GB of extra data can be added to a line in a month, with what was added before.
  rule 6: a credit for an outage, the outage_credit of the line, is paid only if it took over {OUTAGE_HOURS} hours.
  rule 7: a SIM can be replaced only if it is at least {SIM_DAYS} days old.
  rule 8: a technician is sent only to lines at home, not to mobile lines.
- Requests about porting a number, a contract of a company or a complaint are transferred to a human, and nothing else.
- At the end ask whether there is anything else, and do that too. Then say goodbye: a message that begins or ends with
  the word goodbye ends the conversation."""


def generate_provider(rng: random.Random) -> Data:
    """Draw a database: plans, and customers without lines."""
    plans = {name: {"price": price + rng.randint(0, 6), "gigabytes": data} for name, (price, data) in PLANS.items()}
    customers: Data = {}
    for number, name in zip(rng.sample(range(1000, 10_000), 4), people(rng, 4), strict=True):
        first, last = name.lower().split()
        email = f"{first}.{last}{rng.randint(1, 99)}@mail.example"
        customers[f"C{number}"] = {"name": name, "email": email, "address": address(rng), "lines": []}
    today = date(2026, 1, 1) + timedelta(days=rng.randint(40, 700))
    return {
        **{"today": today.isoformat(), "plans": plans, "customers": customers, "lines": {}},
        **{"phones": {}, "visits": [], "transfers": []},
    }


def add_line(rng: random.Random, data: Data, customer: str, kind: str = "mobile") -> str:
    """Add a line in good order, with a phone if it is mobile, and return its number."""
    number = f"L-{new_number(rng, range(1000, 10_000), data['lines'])}"
    today = date.fromisoformat(data["today"])
    data["lines"][number] = {
        "customer": customer,
        "kind": kind,
        "plan": rng.choice(["Small", "Medium"]),
        "status": "active",
        "balance": 0,
        "used": rng.randint(1, 40),
        "extra": 0,
        "roaming": False,
        "contract_end": (today - timedelta(days=rng.randint(5, 90))).isoformat(),
        "outage_hours": 0,
        "outage_credit": 0,
        "sim_days": rng.randint(SIM_DAYS + 5, 900),
    }
    if kind == "mobile":
        state = {"airplane_mode": False, "mobile_data": True, "roaming": False, "sim": "seated", "restarts": 0}
        data["phones"][number] = {**state, "access_point": "right"}
    data["customers"][customer]["lines"].append(number)
    return number


class Provider(CustomerFunctions):
    """The agent's functions, on the database ``data``. Functions that write change it in place."""

    def get_customer(self, customer_id: str) -> Data:
        """Show the name, e-mail address, address and lines of a customer."""
        return {"today": self.data["today"], **self._entry("customers", customer_id)}

    def get_line(self, line_id: str) -> Data:
        """Show a line. The number begins with L-."""
        return {"today": self.data["today"], **self._entry("lines", line_id)}

    def list_plans(self) -> Data:
        """Show all plans with their price and gigabytes a month."""
        plans: Data = self.data["plans"]
        return plans

    def change_plan(self, line_id: str, plan: Literal["Small", "Medium", "Large", "Travel"]) -> str:
        """Change the plan of a line."""
        self._entry("lines", line_id)["plan"] = plan
        return "done"

    def add_data(self, line_id: str, gigabytes: int) -> str:
        """Add extra data to a line for this month."""
        self._entry("lines", line_id)["extra"] += gigabytes
        return "done"

    def set_roaming(self, line_id: str, allowed: bool) -> str:
        """Allow a line to be used abroad, or forbid it."""
        self._entry("lines", line_id)["roaming"] = allowed
        return "done"

    def resume_line(self, line_id: str) -> str:
        """Resume a line that is suspended."""
        self._entry("lines", line_id)["status"] = "active"
        return "done"

    def pause_line(self, line_id: str, until: str) -> str:
        """Pause a line until a date, such as 2026-05-31."""
        self._entry("lines", line_id).update(status="paused", until=date.fromisoformat(until).isoformat())
        return "done"

    def replace_sim(self, line_id: str) -> str:
        """Replace the SIM of a line by a new one, which is in the phone at once."""
        self._entry("lines", line_id)["sim_days"] = 0
        return "done"

    def pay_credit(self, line_id: str, amount: int) -> str:
        """Pay a credit for an outage of a line, in dollars."""
        self._entry("lines", line_id)["credit"] = amount
        return "done"

    def send_technician(self, line_id: str) -> str:
        """Send a technician to a line at home."""
        self._entry("lines", line_id)
        self.data["visits"].append(line_id)
        return "done"

    def change_customer_address(self, customer_id: str, street: str, city: str, zip: str) -> str:
        """Change the address of a customer."""
        self._entry("customers", customer_id)["address"] = {"street": street, "city": city, "zip": zip}
        return "done"

    def transfer_to_human(self, customer_id: str, topic: Literal["porting", "company", "complaint"]) -> str:
        """Transfer a customer to a human, who answers after this conversation."""
        self._entry("customers", customer_id)
        self.data["transfers"].append({"customer": customer_id, "topic": topic})
        return "done"


class Phone:
    """The customer's own functions, on its phone. Each returns what the customer says about it.

    Args:
        state: entry of the phone in the database, which the functions change in place.
    """

    def __init__(self, state: Data) -> None:
        self.state = state

    def check_status(self) -> str:
        """Read the status."""
        state = self.state
        shown = [f"{name} is {'on' if state[key] else 'off'}" for key, name in _SWITCHES.items()]
        shown += [f"the SIM is {state['sim']}", f"the access point is {state['access_point']}"]
        return f"My phone shows: {', '.join(shown)}."

    def switch(self, what: Literal["airplane_mode", "mobile_data", "roaming"], on: bool) -> str:
        """Turn something on or off."""
        self.state[what] = on
        return f"I have turned {_SWITCHES[what]} {'on' if on else 'off'}."

    def seat_sim(self) -> str:
        """Take the SIM out and put it in again."""
        self.state["sim"] = "seated"
        return "I have seated the SIM again."

    def reset_access_point(self) -> str:
        """Reset the access point."""
        self.state["access_point"] = "right"
        return "I have reset the access point."

    def restart_phone(self) -> str:
        """Restart the phone."""
        self.state["restarts"] += 1
        return "I have restarted the phone."


_SWITCHES = {"airplane_mode": "airplane mode", "mobile_data": "mobile data", "roaming": "roaming"}
PHONE_FUNCTIONS = ("check_status", "switch", "seat_sim", "reset_access_point", "restart_phone")


def execute_support(data: Data, call: ToolCall) -> None:
    """Execute a gold call of the agent, or of the customer on the phone of a line."""
    if call.name in PHONE_FUNCTIONS:
        arguments = dict(call.arguments)
        getattr(Phone(data["phones"][arguments.pop("line_id")]), call.name)(**arguments)
    else:
        getattr(Provider(data), call.name)(**call.arguments)
