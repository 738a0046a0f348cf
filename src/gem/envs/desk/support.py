r"""desk:Support: serve a simulated customer of a phone provider, who has tools as well, under a policy.

Action       as in desk:Retail: a message to the customer, or calls of the functions. The customer does on its phone
             what a message asks for ("Please turn airplane mode off") with its own functions, and says what happened.
Observation  the reply of the customer, or the results of the calls; the policy on reset.
Reward       as in desk:Retail, with the same checks. The database includes the phone: steps that were not needed, or
             missing, fail ``database``.
Ends         as in desk:Retail.

>>> env = support(split="train")
>>> observation, info = env.reset(seed=1)
>>> "Policy of the provider" in observation
True
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

from gem.envs.desk.phone_requests import phone_requests, request_of
from gem.envs.desk.provider import PHONE_FUNCTIONS, SUPPORT_POLICY, Phone, Provider
from gem.envs.desk.retail import DeskEnv, DeskTool, changes
from gem.envs.desk.support_templates import SUPPORT_TEMPLATES, make_support_task
from gem.envs.desk.tasks import DeskTask
from gem.envs.desk.templates import Split
from gem.envs.desk.user import CustomerReply
from gem.messages import ToolCall
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
        steps = phone_requests(message)
        if not steps:
            return super().reply(message)
        before = self.state.data
        data = copy.deepcopy(before)
        phone = Phone(data, self.phone_line())
        said = [getattr(phone, call.name)(**call.arguments) for call in steps]
        self.note_changes(data, changes(before, data))
        return CustomerReply(" ".join(said), self.state.mood)

    def phone_line(self) -> str:
        """Return the line whose phone the customer holds: that of the task."""
        data = self.state.data
        lines = next(p["lines"] for p in data["customers"].values() if p["name"] == self.task().goal.name)
        return str(next(line for line in lines if line in data["phones"]))

    def owner(self, arguments: Mapping[str, Any]) -> str | None:
        line = self.state.data["lines"].get(arguments.get("line_id"), {})
        found: str | None = arguments.get("customer_id") or line.get("customer")
        return found

    def private(self, mine: str | None) -> list[str]:
        return [number for number, line in self.state.data["lines"].items() if line["customer"] != mine]

    def asked_of_customer(self, call: ToolCall) -> str | None:
        return request_of(call) if call.name in PHONE_FUNCTIONS else None


class SupportTool(DeskTool):
    """The agent's functions of desk:Support, for ToolEnvWrapper around a SupportEnv."""

    env_class: ClassVar[type[DeskEnv]] = SupportEnv
    shop_class = Provider


def support(*, split: Split = "train", max_turns: int = 60, format: str = "tags") -> ToolEnvWrapper:
    """Return desk:Support: a SupportEnv with its tools.

    Args:
        split, max_turns: see DeskEnv.
        format: the format of calls, see ToolEnvWrapper; "openai" for native calls.
    """
    env = SupportEnv(split=split, max_turns=max_turns)
    return ToolEnvWrapper(env, [SupportTool], max_tool_uses=4 * max_turns, format=format, max_messages=max_turns)
