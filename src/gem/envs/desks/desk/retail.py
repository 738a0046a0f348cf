r"""desk:Retail: serve a simulated customer of a shop with tools, under a policy.

Action       a message to the customer, or calls of the functions in the format of ToolEnvWrapper, such as
             ``<tool_call><tool_name>get_order</tool_name><arguments>{"order_id": "#W10000"}</arguments></tool_call>``;
             native calls with ``format="openai"``. A message with calls is not shown to the customer, nor is what
             stands before ``</think>`` or after a ``<think>`` that is not closed.
Observation  the reply of the customer, or the results of the calls; the policy on reset.
Reward       1.0 on goodbye if all checks pass, else 0.0: the database equals that after the gold calls (``database``),
             the required statements were made (``statements``), and the policy was followed (``authentication``,
             ``confirmation``, ``other_customers``, ``undone``). ``info["checks"]`` has each check, and
             ``info["explanation"]`` says what is wrong.
Ends         terminated by a message that begins or ends with the word goodbye; truncated after ``max_turns`` messages,
             without a reward.

>>> env = retail(split="train")
>>> observation, info = env.reset(seed=1)
>>> step = env.step("Goodbye.")
>>> step.reward, step.info["checks"]["authentication"]
(0.0, True)
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from gem._internal.counts import check_count
from gem._internal.text import indented
from gem.core import Env, Info, Step, StopReason, require_text, unwrapped
from gem.envs.desks.desk.model_customer import agrees, customer_prompt
from gem.envs.desks.desk.shop import CONFIRM, POLICY, Data, Shop, functions, leaves
from gem.envs.desks.desk.statements import FORMS, Proposal, has_value, proposed, refuses, stated
from gem.envs.desks.desk.tasks import DeskTask, values
from gem.envs.desks.desk.templates import TEMPLATES, Split, make_task
from gem.envs.desks.desk.user import CustomerReply, Mood, answer, first_message, mentions
from gem.envs.invented import first_difference
from gem.errors import BadValue, EpisodeOver
from gem.messages import ToolCall, ToolResult, without_thinking
from gem.policies.customer import CustomerCall, Event, ModelCustomer
from gem.tools.base_tool import BaseTool, Function
from gem.tools.formats import TAGS, openai_schemas
from gem.tools.tool_env_wrapper import ToolEnvWrapper

CHECKS = ("database", "statements", "authentication", "confirmation", "other_customers", "undone")
MAX_MESSAGE = 4_000  # characters of a message to the customer
_GOODBYE = re.compile(r"^\W*good-?bye\b|\bgood-?bye\W*$", re.IGNORECASE)
OPEN_READS = (*Shop.FINDS, "list_products", "get_product")  # for these, the customer need not have been found
READS = (*OPEN_READS, "get_customer", "get_order")
_SAMPLES = ("May I have your e-mail address, or your name and zip code?", "How can I help you?", "Anything else?")


@dataclass(frozen=True)
class State:
    """An episode.

    Args:
        number: the number that the task is generated from.
        data: the database.
        mood: of the customer.
        said: what the customer has said.
        told: the agent's messages after the first look-up of the customer; statements in earlier ones do not count.
        agreed: the agent's messages to which the customer said yes, since it last changed its mind.
        looked_up: whether the agent has looked up the customer with values that the customer has said.
        identified: id of the customer that it found.
        written: paths of the values that calls have changed.
        status_seen: whether the customer has said the status of its phone, in desk:Support.
        broken: what was wrong first, by check.
        events: the conversation as a model that plays the customer knows it; empty for a scripted customer.
        turns: messages to the customer.
    """

    number: int
    data: Data
    mood: Mood = field(default_factory=Mood)
    said: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()
    looked_up: bool = False
    identified: str | None = None
    written: tuple[str, ...] = ()
    status_seen: bool = False
    broken: dict[str, str] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    turns: int = 0
    over: bool = False


class DeskEnv(Env):
    """The desk without tools; see retail() and the module docstring.

    Args:
        split: "train" or "test": which templates the tasks come from.
        max_turns: messages allowed, with and without calls; ToolEnvWrapper counts them.
        user: ``base_url``, ``model`` and other settings of a ModelCustomer that plays the customers; None for the
            scripted customer.

    Raises:
        BadValue: a value out of range, or an invalid setting of ``user``.
    """

    state: State
    policy: ClassVar[str] = POLICY
    place: ClassVar[str] = "a shop"
    open_reads: ClassVar[Sequence[str]] = OPEN_READS
    reads: ClassVar[Sequence[str]] = READS
    templates: ClassVar[Mapping[Split, Mapping[str, Any]]] = TEMPLATES

    def __init__(self, *, split: Split = "train", max_turns: int = 60, user: Mapping[str, Any] | None = None) -> None:
        if split not in self.templates:
            raise BadValue(f"split must be 'train' or 'test', got {split!r}")
        check_count("max_turns", max_turns)
        self.split, self.max_turns = split, max_turns
        self.customer = None if user is None else ModelCustomer(user)
        self.waits_for_io = self.customer is not None  # ToolEnvWrapper then steps on a thread
        self._made: tuple[int, DeskTask] | None = None

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        super().reset(seed)
        number = self.rng.getrandbits(48)
        self.state = State(number, {})
        reply = first_message(self.task().goal)
        self.state = State(number, copy.deepcopy(self.task().data), reply.mood, said=(reply.text,))
        rules = (
            f"You work at the desk of {self.place} and talk to a customer. Each of your messages is either for the "
            "customer or calls functions. Dates are written like 2026-05-31 and amounts like $12. You have "
            f"{self.max_turns} turns; the reward is 1 or 0.\n\n{self.policy}\n"
        )
        return f"{rules}\nCustomer: {reply.text}\n", {"template": self.task().template}

    def task(self) -> DeskTask:
        """Return the task of the episode, which its number determines."""
        number = self.state.number
        if self._made is None or self._made[0] != number:
            self._made = number, self.make_task(number)
        return self._made[1]

    def make_task(self, number: int) -> DeskTask:
        """Return the task with a number."""
        return make_task(number, self.split)

    def step(self, action: str) -> Step:
        require_text(action)
        if not hasattr(self, "state") or self.state.over:
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")
        message = without_thinking(action)
        if not message:
            return Step("The customer waits for a message.", info={"invalid": "no_action"})
        if len(message) > MAX_MESSAGE:
            line = f"The message is too long for the customer: at most {MAX_MESSAGE} characters."
            return Step(line, info={"invalid": "too_long"})
        before = state = self.state
        self._check_message(message)
        told = (*state.told, message) if state.looked_up else state.told
        self.state = replace(self.state, told=told, turns=state.turns + 1)
        if _GOODBYE.search(message):
            return self._end()
        try:
            reply = self.reply(message) if self.customer is None else self._ask(self.customer, message)
        except BaseException:  # the step may be repeated
            self.state = before
            raise
        state = self.state
        agreed = (*state.agreed, message) if reply.agrees else state.agreed
        if reply.mood.wish != state.mood.wish and self.task().goal.wishes[reply.mood.wish].after == "proposal":
            agreed = ()
        self.state = replace(state, mood=reply.mood, said=(*state.said, reply.text), agreed=agreed)
        return Step(f"Customer: {reply.text}")

    def reply(self, message: str) -> CustomerReply:
        """Return the customer's reply. The customer may change its part of the database."""
        return answer(self.task().goal, self.state.mood, message)

    def _ask(self, customer: ModelCustomer, message: str) -> CustomerReply:
        """Return the reply of the model that plays the customer. Its line breaks are indented, as in every message."""
        (tools, call), state = self.customer_tools(), self.state
        events = state.events or ({"by": "customer", "say": state.said[0]},)
        events = (*events, {"by": "agent", "say": message})
        prompt = customer_prompt(self.task().goal, phone=bool(tools))
        new = customer.turn(prompt, events, openai_schemas(tools), call)
        self.state = replace(self.state, events=(*events, *new))
        said = indented(new[-1]["say"])
        return CustomerReply(said, state.mood, agrees(said))

    def customer_tools(self) -> tuple[Sequence[Function], CustomerCall | None]:
        """Return the functions of a customer that a model plays, and what executes a call; see ModelCustomer.turn()."""
        return (), None

    # ---- functions

    def call(self, call: ToolCall, shop: Any, tools: dict[str, Any]) -> ToolResult:
        """Execute a call on the database, and note what it breaks of the policy."""
        before = self.state.data
        shop.data = before if call.name in self.reads else copy.deepcopy(before)
        result: ToolResult = tools[call.name].call(call)
        if call.name in Shop.FINDS:
            self._look_up(call, result)
        elif call.name not in self.open_reads:
            self._check_access(call)
        elif not self.state.looked_up:
            self._break("authentication", f"{call.name} before looking up the customer")
        changed = changes(before, shop.data) if result.ok and call.name not in self.reads else []
        free = (*self.reads, "transfer_to_human")
        if result.ok and call.name not in free and not self._agreed(call):
            self._break("confirmation", f"{call.name} without a yes to {', '.join(values(call))}")
        if result.ok and call.name not in self.reads and not changed:
            self._break("undone", f"{call.name} changed nothing")
        self.note_changes(shop.data, changed)
        return result

    def note_changes(self, data: Data, changed: Sequence[str]) -> None:
        """Take over a changed database."""
        for path in changed:
            if path in self.state.written:
                self._break("undone", f"{path} was changed twice")
        self.state = replace(self.state, data=data, written=(*self.state.written, *changed))

    def _look_up(self, call: ToolCall, result: ToolResult) -> None:
        said, goal = "\n".join(self.state.said), self.task().goal
        given = [str(value).strip().lower() for value in call.arguments.values()]
        if not all(mentions(said, value) for value in given):
            return self._break("authentication", f"{call.name} with values that the customer has not said")
        found = json.loads(result.text)["customer_id"] if result.ok else self.state.identified
        tried = goal.email in given or {goal.name.lower(), goal.zip} <= set(given)  # not any words that it has said
        self.state = replace(self.state, looked_up=self.state.looked_up or tried, identified=found)

    def _check_access(self, call: ToolCall) -> None:
        if self.state.identified is None:
            self._break("authentication", f"{call.name} before the customer is identified")
        owner, data = self.owner(call.arguments), self.state.data
        if owner in data["customers"] and owner != self.task().customer:
            self._break("other_customers", f"{call.name} of another customer")

    def owner(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the id of the customer that the arguments of a call belong to, or None."""
        order = self.state.data["orders"].get(arguments.get("order_id"), {})
        found: str | None = arguments.get("customer_id") or order.get("customer")
        return found

    def _agreed(self, call: ToolCall) -> bool:
        return Proposal.of(call.name, values(call)) in map(proposed, self.state.agreed)

    def _check_message(self, message: str) -> None:
        # What the customer says, or would say if asked.
        answers = [text for wish in self.task().goal.wishes for text in wish.details.values()]
        told, known = _plain(message), _plain("\n".join([*self.state.said, *answers]))
        for value in self.task().private:
            plain = _plain(value)
            if mentions(told, plain) and not mentions(known, plain):
                self._break("other_customers", f"the agent said {value}")
        if not self.state.looked_up and has_value(message, "rule"):
            self._break("authentication", "the agent named a rule before looking up the customer")

    def _break(self, check: str, what: str) -> None:
        self.state = replace(self.state, broken={check: what, **self.state.broken})

    def asked_of_customer(self, call: ToolCall) -> str | None:
        """Return how to ask the customer for a gold call of its own, None for a call of the agent."""
        return None

    # ---- the end

    def _end(self) -> Step:
        self.state = replace(self.state, over=True)
        wrong = self.wrong()
        info: Info = {"stop_reason": StopReason.LOST if wrong else StopReason.SOLVED}
        info["checks"] = {name: name not in wrong for name in CHECKS}
        info["explanation"] = "All checks passed."
        if wrong:
            info["verifier"] = info["explanation"] = "; ".join(f"{name}: {what}" for name, what in wrong.items())
        return Step("The conversation is over.", 0.0 if wrong else 1.0, terminated=True, info=info)

    def wrong(self) -> dict[str, str]:
        """Return what is wrong at the end, by check."""
        task, wrong = self.task(), dict(self.state.broken)
        if difference := first_difference(self.state.data, task.goal_data()):
            wrong["database"] = difference
        if "rule" not in dict(task.statements) and any(map(refuses, self.state.told)):
            wrong["statements"] = "a request that is allowed was refused"
        for name, value in task.statements:
            if not stated(self.state.told, name, value):
                wrong["statements"] = f"the {name} {value} was not said last, in the form of the policy"
        return wrong

    def sample_random_action(self) -> str:
        return self.action_rng.choice(_SAMPLES)

    def close(self) -> None:
        if self.customer is not None:
            self.customer.close()


def _plain(text: str) -> str:
    """Return a text without what numbers and names may be written with or without.

    >>> _plain("Order #W10000 of Ann  Lee, line L-1234")
    'order w10000 of ann lee, line l1234'
    """
    return " ".join(re.sub(r"[#-]", "", text.lower()).split())


def changes(before: Data, after: Data) -> list[str]:
    """Return the paths of the values that differ."""
    old, new = dict(leaves(before)), dict(leaves(after))
    return [path for path in {**old, **new} if old.get(path) != new.get(path)]


class DeskTool(BaseTool):
    """The functions of the desk's shop, for ToolEnvWrapper around a DeskEnv."""

    tool_type = "desk"
    env_class: ClassVar[type[DeskEnv]] = DeskEnv
    shop_class: ClassVar[type[Any]] = Shop

    def __init__(self) -> None:
        super().__init__()
        self._shop = self.shop_class({})
        self._tools = functions(self._shop)
        self._env: Any = None

    def attach(self, env: Any) -> None:
        self._env = unwrapped(env)
        if not isinstance(self._env, self.env_class):
            raise BadValue(f"{type(self).__name__} needs a {self.env_class.__name__}, got {env!r}")
        self.inline = not self._env.waits_for_io

    def functions(self) -> list[Function]:
        return [function for tool in self._tools.values() for function in tool.functions()]

    def call(self, call: ToolCall) -> ToolResult:
        result: ToolResult = self._env.call(call, self._shop, self._tools)
        return result


def retail(
    *, split: Split = "train", max_turns: int = 60, format: str = "tags", user: Mapping[str, Any] | None = None
) -> ToolEnvWrapper:
    """Return desk:Retail: a DeskEnv with its tools.

    Args:
        split, max_turns, user: see DeskEnv.
        format: the format of calls, see ToolEnvWrapper; "openai" for native calls.
    """
    env = DeskEnv(split=split, max_turns=max_turns, user=user)
    return ToolEnvWrapper(env, [DeskTool], max_tool_uses=4 * max_turns, format=format, max_messages=max_turns)


class Oracle:
    """Does what the task wants, which it reads from the environment."""

    def __init__(self, env: DeskEnv) -> None:
        self.env, self._moves = env, iter(())  # type: Any, Iterator[str]

    def act(self, observation: Any) -> str:
        if self.env.state.turns == 0:
            self._moves = self._plan(self.env.task())
        return next(self._moves)

    def _plan(self, task: DeskTask) -> Iterator[str]:
        yield "May I have your e-mail address, or your name and zip code? And how can I help you?"
        goal = task.goal
        by_email = goal.email is not None and goal.email in "\n".join(self.env.state.said)
        found = {"email": goal.email} if by_email else {"name": goal.name, "zip": goal.zip}
        yield TAGS.write(ToolCall(Shop.FINDS[not by_email], found), ())
        for wish in goal.wishes if task.gold else ():  # a customer that changes its mind does so at a proposal
            if wish.wants and goal.wishes[-1].after == "proposal":
                name, named = wish.wants[0]
                yield CONFIRM.format(name, ", ".join(named))
        for call in task.gold:
            if call.name != "transfer_to_human" and self.env.asked_of_customer(call) is None:
                yield CONFIRM.format(call.name, ", ".join(values(call)))
            yield self.env.asked_of_customer(call) or TAGS.write(call, ())
        statements = [FORMS[name].format(value) for name, value in task.statements]
        last = ["Is there anything else?"]
        yield from (*last, *statements) if goal.wishes[-1].after == "more" else (*statements, *last)
        yield "Goodbye."
