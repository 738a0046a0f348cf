r"""desk:Support: serve a simulated customer of a phone provider, who has tools as well, under a policy.

Action       as in desk:Retail: a message to the customer, or calls of the functions. The customer does on its phone
             what a message asks for ("Please turn airplane mode off") with its own functions, and says what happened.
Observation  the reply of the customer, or the results of the calls; the policy on reset.
Reward       as in desk:Retail, with the same checks. The database includes the phone: steps that were not needed, or
             missing, fail ``database``; steps that change nothing, or come before the policy allows them, ``undone``.
Ends         as in desk:Retail.

>>> env = support(split="train")
>>> observation, info = env.reset(seed=1)
>>> "Policy of the provider" in observation
True
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from gem.envs.desks.desk.phone_requests import LINE, phone_requests, request_of
from gem.envs.desks.desk.provider import PHONE_FUNCTIONS, SUPPORT_POLICY, Phone, Provider
from gem.envs.desks.desk.retail import DeskEnv, DeskTool, changes
from gem.envs.desks.desk.shop import functions
from gem.envs.desks.desk.support_templates import SUPPORT_TEMPLATES, make_support_task
from gem.envs.desks.desk.tasks import DeskTask
from gem.envs.desks.desk.templates import Split
from gem.envs.desks.desk.user import CustomerReply
from gem.messages import ToolCall
from gem.policies.customer import CustomerCall, ModelCustomer
from gem.tools.base_tool import Function
from gem.tools.function_tool import FunctionTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper


class SupportEnv(DeskEnv):
    """The desk without tools; see support() and DeskEnv."""

    policy = SUPPORT_POLICY
    place = "a phone provider"
    open_reads = (*Provider.FINDS, "list_plans")
    reads = (*open_reads, "get_customer", "get_line")
    templates = SUPPORT_TEMPLATES

    def make_task(self, number: int) -> DeskTask:
        return make_support_task(number, self.split)

    def reply(self, message: str) -> CustomerReply:
        """Let the customer do on its phone what the message asks for; else let it answer."""
        steps, line, named = phone_requests(message), self.phone_line(), LINE.findall(message)
        if not steps or (named and line not in named):
            return super().reply(message)
        said = " ".join(map(self._use_phone, steps))
        self._note_status(call.name for call in steps)
        return CustomerReply(said, self.state.mood)

    def _ask(self, customer: ModelCustomer, message: str) -> CustomerReply:
        known = len(self.state.events)
        reply = super()._ask(customer, message)
        self._note_status(event.get("call", "") for event in self.state.events[known:])
        return reply

    def _note_status(self, steps: Iterable[str]) -> None:
        """Note whether the customer has told the status of the phone, which counts from the next message on."""
        if "check_status" in steps:
            self.state = replace(self.state, status_seen=True)

    def customer_tools(self) -> tuple[Sequence[Function], CustomerCall | None]:
        return [function for tool in self._phone[1].values() for function in tool.functions()], self._called

    def _called(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        phone, tools = self._phone
        if name not in tools:
            return f"There is no function {name!r}. There are {', '.join(tools)}.", True
        phone.state = copy.deepcopy(self.state.data["phones"][self.phone_line()])
        result = tools[name].call(call := ToolCall(name, arguments))
        return (self._use_phone(call), False) if result.ok else (result.text, True)

    @cached_property
    def _phone(self) -> tuple[Phone, dict[str, FunctionTool]]:
        """A phone to try calls of the customer on, and its functions, whose schemas are built only once."""
        phone = Phone({})
        return phone, functions(phone)

    def _use_phone(self, call: ToolCall) -> str:
        """Let the customer take a step on its phone. Return what it says about that."""
        before, line = self.state.data, self.phone_line()
        data = copy.deepcopy(before)
        said = str(getattr(Phone(data["phones"][line]), call.name)(**call.arguments))
        if call.name != "check_status":
            self._check_step(call, line, changed=data != before)
            self.note_changes(data, changes(before, data))
        return said

    def _check_step(self, call: ToolCall, line: str, *, changed: bool) -> None:
        """Note what a step on the phone breaks of the policy."""
        if self.state.identified is None:
            self._break("authentication", f"{call.name} on the phone before the customer is identified")
        if not changed:
            self._break("undone", f"{call.name} on the phone changed nothing")
        if call.name == "restart_phone":
            if not {f"lines/{line}/status", f"lines/{line}/sim_days"} & set(self.state.written):
                self._break("undone", "restart_phone before the line was resumed or its SIM was replaced")
        elif call.arguments.get("what") != "roaming" and not self.state.status_seen:
            self._break("undone", f"{call.name} on the phone before its status was seen")

    def phone_line(self) -> str:
        """Return the line whose phone the customer holds: that of the task."""
        data = self.state.data
        lines = next(p["lines"] for p in data["customers"].values() if p["name"] == self.task().goal.name)
        return str(next(line for line in lines if line in data["phones"]))

    def owner(self, arguments: Mapping[str, Any]) -> str | None:
        line = self.state.data["lines"].get(arguments.get("line_id"), {})
        found: str | None = arguments.get("customer_id") or line.get("customer")
        return found

    def asked_of_customer(self, call: ToolCall) -> str | None:
        return request_of(call) if call.name in PHONE_FUNCTIONS else None


class SupportTool(DeskTool):
    """The agent's functions of desk:Support, for ToolEnvWrapper around a SupportEnv."""

    env_class: ClassVar[type[DeskEnv]] = SupportEnv
    shop_class = Provider


def support(
    *, split: Split = "train", max_turns: int = 60, format: str = "tags", user: Mapping[str, Any] | None = None
) -> ToolEnvWrapper:
    """Return desk:Support: a SupportEnv with its tools.

    Args:
        split, max_turns, user: see DeskEnv.
        format: the format of calls, see ToolEnvWrapper; "openai" for native calls.
    """
    env = SupportEnv(split=split, max_turns=max_turns, user=user)
    return ToolEnvWrapper(env, [SupportTool], max_tool_uses=4 * max_turns, format=format, max_messages=max_turns)
