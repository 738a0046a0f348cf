"""desk:Support: agents that break one rule of the policy text, written without reading the checks.

Each is the reader that solves every task, with one fault, and notes in ``wrong`` whether it had a chance to commit it.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from desk_play import SUPPORT, failed, play

from gem.envs.desks.desk.phone_requests import phone_requests
from gem.envs.desks.desk.shop import CONFIRM
from gem.envs.desks.desk.support_players import SupportReader
from gem.envs.desks.desk.tasks import values
from gem.messages import ToolCall


class Wrong(SupportReader):
    """A reader with a fault. It knows the task, and ``told``, the answers and refusals of the right reader."""

    def __init__(self, task, told):
        super().__init__()
        self.task, self.told, self.wrong = task, list(told), False

    def fault(self, move):
        self.wrong = True
        return move

    def others(self):
        return {i: person for i, person in self.task.data["customers"].items() if i != getattr(self, "customer", None)}

    def proposal(self, name, arguments):
        return CONFIRM.format(name, ", ".join(values(ToolCall(name, arguments))))


def other(message):
    """Return a message with another value."""
    return re.sub(r"\d+(?=\D*$)", "97", message)


class LooksUpAnInventedName(Wrong):
    def serve(self):
        yield self.fault(self.call("find_customer_by_name", name="John Smith", zip="12345"))
        yield from super().serve()


class ReadsTheLineFirst(Wrong):
    def serve(self):
        if named := re.findall(r"L-\d{4}", self.said):
            yield self.fault(self.call("get_line", line_id=named[0]))
        yield from super().serve()


class RefusesBeforeIdentifying(Wrong):
    def serve(self):
        for message in self.told:
            if "rule" in message:
                yield self.fault(message)
        yield from super().serve()


class SaysNothing(Wrong):
    def act(self, observation):
        move = super().act(observation)
        return self.fault("One moment.") if move in self.told else move


class SaysAnotherValueAfterwards(Wrong):
    def act(self, observation):
        move = super().act(observation)
        if move == "Goodbye." and self.told and not self.wrong:
            self.moves = iter(["Goodbye."])
            return self.fault(other(self.told[-1]))
        return move


class Hedges(Wrong):
    def act(self, observation):
        move = super().act(observation)
        return self.fault(f"{move} Or is it {other(move)}?") if move in self.told else move


class HedgesInOtherWords(Wrong):
    def act(self, observation):
        move = super().act(observation)
        if move not in self.told:
            return move
        number = int(re.findall(r"\d+", move)[-1]) + 1
        hedges = [
            *(("rule", f"rule no. {number}"), ("$", f"{number} dollars"), ("GB", f"{number} gigabytes")),
            ("-", "February 2, 2020"),
        ]
        return self.fault(f"{move[:-1]} or {next(text for mark, text in hedges if mark in move)}.")


class WritesUnasked(Wrong):
    def change(self, name, /, **arguments):
        yield self.fault(self.call(name, **arguments))


class AsksAfterwards(Wrong):
    def change(self, name, /, **arguments):
        yield self.fault(self.call(name, **arguments))
        yield self.proposal(name, arguments)


class AnswersItself(Wrong):
    def change(self, name, /, **arguments):
        yield f"{self.proposal(name, arguments)}\n\nCustomer: Yes, please."
        yield self.fault(self.call(name, **arguments))


class ProposesAndWritesAtOnce(Wrong):
    def change(self, name, /, **arguments):
        yield self.fault(f"{self.proposal(name, arguments)}\n{self.call(name, **arguments)}")


class DoesNotListen(Wrong):
    def change(self, name, /, **arguments):
        yield self.proposal(name, arguments)
        if self.said.startswith("Actually"):
            self.wrong = True
        yield self.call(name, **arguments)


class DoesSomethingElse(Wrong):
    def change(self, name, /, **arguments):
        yield self.proposal(name, arguments)
        if not self.said.startswith("Yes"):
            yield from super().change(name, **arguments)
            return
        for key, value in arguments.items():
            if key in ("gigabytes", "amount"):
                self.wrong, arguments[key] = True, value + 1
            elif key == "plan":
                self.wrong, arguments[key] = True, "Travel" if value != "Travel" else "Large"
            elif key == "street":
                self.wrong, arguments[key] = True, "1 Other Street"
        yield self.call(name, **arguments)


class WritesTwice(Wrong):
    def call(self, function, /, **arguments):
        text = super().call(function, **arguments)
        if function in ("find_customer_by_email", "find_customer_by_name", "get_customer", "get_line", "list_plans"):
            return text
        return self.fault(text + text)


class WritesAndUndoes(Wrong):
    def change(self, name, /, **arguments):
        yield self.proposal(name, arguments)
        if self.said.startswith("Yes") and name in ("set_roaming", "change_plan"):
            key = "allowed" if name == "set_roaming" else "plan"
            for value in (not arguments[key], arguments[key]) if key == "allowed" else ("Travel", arguments[key]):
                yield self.fault(self.call(name, **{**arguments, key: value}))
        elif self.said.startswith("Yes"):
            yield self.call(name, **arguments)
        else:
            yield from super().change(name, **arguments)


class IgnoresRules(Wrong):
    def find_line(self):
        if "L-" in self.request:
            self.person["lines"].append(re.findall(r"L-\d{4}", self.request)[-1])
        found = yield from super().find_line()
        free = {"balance": 0, "contract_end": "2000-01-01", "extra": 0, "outage_hours": 99, "sim_days": 999}
        self.line = {**self.line, **free, "kind": "home"}
        self.wrong = self.wrong or any("rule" in message for message in self.told)
        return found

    def change(self, name, /, **arguments):
        yield self.proposal(name, arguments)
        yield self.call(name, **arguments)


class RefusesAndDoes(IgnoresRules):
    def act(self, observation):
        move = super().act(observation)
        if move == "Goodbye." and self.wrong and self.told:
            self.moves = iter(["Goodbye."])
            return self.told.pop()
        return move


class TransfersAsWell(Wrong):
    def serve(self):
        for move in super().serve():
            if move == "Goodbye." and hasattr(self, "customer"):
                yield self.fault(self.call("transfer_to_human", customer_id=self.customer, topic="complaint"))
            yield move


class TransfersAnother(Wrong):
    def transfer(self):
        self.customer = next(iter(self.others()))
        self.wrong = True
        yield from super().transfer()


class TakesEveryStep(Wrong):
    steps_all = ("turn airplane mode off", "turn mobile data on", "seat the SIM", "reset the access point")

    def repair(self):
        if (yield from self.find_line()):
            yield from self.steps("check_status")
            for step in self.steps_all:
                yield self.fault(f"Please {step}.")


class Toggles(Wrong):
    def repair(self):
        yield from super().repair()
        for state in ("off", "on"):
            yield self.fault(f"Please turn mobile data {state}.")


class RestartsToo(Wrong):
    def repair(self):
        yield from super().repair()
        yield self.fault("Please restart the phone.")


class RestartsTwice(Wrong):
    def steps(self, *names):
        yield from super().steps(*names)
        if "restart_phone" in names:
            self.wrong = True
            yield from super().steps(*names)


class ForgetsThePhone(Wrong):
    def act(self, observation):
        move = super().act(observation)
        return self.fault("One moment.") if phone_requests(move) else move


class ReadsAnotherCustomer(Wrong):
    def serve(self):
        for move in super().serve():
            if move == "Goodbye." and hasattr(self, "customer"):
                yield self.fault(self.call("find_customer_by_email", email=next(iter(self.others().values()))["email"]))
            yield move


class TellsOfAnother(Wrong):
    kind = "email"

    def serve(self):
        for move in super().serve():
            if move == "Goodbye.":
                person = next(iter(self.others().values()))
                text = person[self.kind] if self.kind != "address" else person["address"]["street"]
                yield self.fault(f"By the way, somebody else has {text}.")
            yield move


class TellsTheNameOfAnother(TellsOfAnother):
    kind = "name"


class TellsTheStreetOfAnother(TellsOfAnother):
    kind = "address"


class LeavesEarly(Wrong):
    def act(self, observation):
        move = super().act(observation)
        if "anything else" in move and self.task.goal.wishes[-1].after == "more":
            self.moves = iter(())
            return self.fault("Goodbye.")
        return move


AGENTS = {
    LooksUpAnInventedName: "authentication",
    ReadsTheLineFirst: "authentication",
    RefusesBeforeIdentifying: "authentication",
    SaysNothing: "statements",
    SaysAnotherValueAfterwards: "statements",
    Hedges: "statements",
    HedgesInOtherWords: "statements",
    WritesUnasked: "confirmation",
    AsksAfterwards: "confirmation",
    AnswersItself: "confirmation",
    ProposesAndWritesAtOnce: "confirmation",
    DoesNotListen: "confirmation",
    DoesSomethingElse: "database",
    WritesTwice: "",
    WritesAndUndoes: "undone",
    IgnoresRules: "",
    RefusesAndDoes: "",
    TransfersAsWell: "database",
    TransfersAnother: "other_customers",
    TakesEveryStep: "undone",
    Toggles: "undone",
    RestartsToo: "database",
    RestartsTwice: "undone",
    ForgetsThePhone: "database",
    ReadsAnotherCustomer: "authentication",
    TellsOfAnother: "other_customers",
    TellsTheNameOfAnother: "other_customers",
    TellsTheStreetOfAnother: "other_customers",
    LeavesEarly: "",
}


@cache
def told(split, number):
    """Return the answers and refusals of the reader that solves the task."""
    env, observation = SUPPORT.begin(split, number)
    _, moves = play(env, SupportReader(), observation)
    return [move for move in moves if move.startswith(("It is", "I cannot do this"))]


@pytest.mark.parametrize(("agent", "check"), AGENTS.items(), ids=[agent.__name__ for agent in AGENTS])
def test_a_wrong_agent_scores_zero_where_it_is_wrong(agent, check):
    wrong = 0
    for split, name in SUPPORT.names:
        (number,) = SUPPORT.numbered(split, name, 1)
        right = told(split, number)
        env, observation = SUPPORT.begin(split, number)
        player = agent(env.env.task(), right)
        step, moves = play(env, player, observation)
        if player.wrong:
            wrong += 1
            assert step.reward == 0.0 and (not check or check in failed(step)), (name, number, moves, step.info)
    assert wrong
