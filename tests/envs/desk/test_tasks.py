"""What holds for the tasks of every desk: solutions, wrong agents, and customers that keep to their goals."""

from __future__ import annotations

import json
import random
import re

import pytest
from desk_play import DESKS, EVERY, IDENTIFY, failed, play, written

from gem.core import StopReason
from gem.envs.desk.provider import PHONE_FUNCTIONS, PLANS
from gem.envs.desk.retail import CHECKS, Oracle
from gem.envs.desk.shop import COLOURS, PRODUCTS
from gem.envs.desk.tasks import values
from gem.envs.desk.user import answer, first_message, mentions
from gem.messages import ToolCall

every_template = pytest.mark.parametrize(
    ("desk", "split", "name"), EVERY, ids=[f"{desk.name}-{split}-{name}" for desk, split, name in EVERY]
)
every_desk = pytest.mark.parametrize("desk", DESKS, ids=[desk.name for desk in DESKS])


@every_template
def test_the_oracle_and_the_reader_solve_every_template(desk, split, name):
    for number in desk.numbered(split, name):
        for player in (lambda env: Oracle(env.env), desk.reader):
            env, observation = desk.begin(split, number)
            assert env.env.task().template == name
            step, _ = play(env, player(env), observation)
            assert step.reward == 1.0 and step.info["stop_reason"] is StopReason.SOLVED, (number, player, step.info)
            assert step.info["checks"] == dict.fromkeys(CHECKS, True)


@pytest.mark.exhaustive
@every_desk
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_reader_solves_every_task(desk, split):
    env, reader = desk.make(split=split), desk.reader()
    for seed in range(1000):
        observation, info = env.reset(seed=seed)
        step, _ = play(env, reader, observation)
        assert step.reward == 1.0, (seed, info["template"], step.info)


@every_desk
def test_there_are_two_hundred_tasks_and_no_template_is_in_both_splits(desk):
    assert len(desk.names) >= 20 and not set(desk.templates["train"]) & set(desk.templates["test"])
    tasks = [desk.make_task(n, split) for split, name in desk.names for n in desk.numbered(split, name, 10)]
    assert len({json.dumps([task.data, task.goal.wishes[0].request]) for task in tasks}) == len(tasks) >= 200


@every_desk
def test_there_are_at_least_ten_functions_with_typed_arguments(desk):
    functions = desk.make().tools[0].functions()
    assert len(functions) >= 10 and not {function.name for function in functions} & set(PHONE_FUNCTIONS)
    for function in functions:
        for schema in function.parameters["properties"].values():
            assert "type" in schema or "enum" in schema, function


def test_values_of_a_call_are_named_as_in_the_policy():
    assert values(ToolCall("pay_back_shipping", {"order_id": "#W10000", "amount": 5})) == ["#W10000", "$5"]


# ---- wrong agents: (check that fails, how a move changes, the tasks where this is wrong)


def own(task):
    """Return the gold calls of the agent that change something for the customer."""
    return [call for call in task.gold if call.name not in (*PHONE_FUNCTIONS, "transfer_to_human")]


def skip_authentication(move, task):
    if move.startswith("May I"):
        return []
    return [written("get_customer", customer_id=task.customer)] if "find_customer" in move else [move]


def skip_confirmation(move, task):
    return [] if "Do you confirm" in move else [move]


def say_nothing(move, task):
    return [] if move.startswith(("I cannot do", "It is")) else [move]


def write_and_undo(move, task):
    home = task.data["customers"][task.customer]["address"]
    calls = [written("change_customer_address", customer_id=task.customer, **{**home, "street": s}) for s in "ab"]
    return [*calls, move] if move == "Goodbye." else [move]


def read_another_customer(move, task):
    other = next(i for i in task.data["customers"] if i != task.customer)
    return [written("get_customer", customer_id=other), move] if move == "Goodbye." else [move]


def tell_of_another_customer(move, task):
    other = next(p for i, p in task.data["customers"].items() if i != task.customer)
    return [f"Others use {other['email']}.", move] if move == "Goodbye." else [move]


def never_act(move, task):
    return [] if any(f"<tool_name>{call.name}" in move for call in task.gold) else [move]


def refuse_everything_at_once(move, task):
    return ["I cannot do that: rule 3.", move] if move == "Goodbye." else []


WRONG = [
    ("authentication", skip_authentication, lambda task: task.customer),
    ("confirmation", skip_confirmation, own),
    ("statements", say_nothing, lambda task: task.statements),
    ("undone", write_and_undo, lambda task: task.customer),
    ("other_customers", read_another_customer, lambda task: task.customer),
    ("other_customers", tell_of_another_customer, lambda task: True),
    ("database", never_act, own),
    ("statements", refuse_everything_at_once, lambda task: task.statements),
]


@every_desk
@pytest.mark.parametrize(("check", "change", "applies"), WRONG, ids=[change.__name__ for _, change, _ in WRONG])
def test_a_wrong_agent_scores_zero_where_it_is_wrong(desk, check, change, applies):
    seen = 0
    for split, name in desk.names:
        for number in desk.numbered(split, name, 2):
            if applies(desk.make_task(number, split)):
                step = desk.wrong_end(split, number, change)
                assert step.terminated and step.reward == 0.0 and check in failed(step), (name, number, step.info)
                seen += 1
    assert seen >= 4


def identified_then(end):
    """Return a change of the oracle's moves that identifies the customer and then plays another move."""

    def change(move, task):
        if move.startswith("May I") or "find_customer" in move:
            return [move]
        return [end(task), move] if move == "Goodbye." else []

    return change


def refusing(number):
    return lambda task: f"I cannot do that: rule {number}."


def transferring(topic):
    return lambda task: written("transfer_to_human", customer_id=task.customer or "C0", topic=topic)


@every_desk
@pytest.mark.parametrize("place", range(11))
def test_always_refusing_or_transferring_scores_on_few_tasks(desk, place):
    end = [*map(refusing, range(1, 9)), *map(transferring, desk.topics)][place]
    ends = [desk.wrong_end(split, desk.numbered(split, name, 1)[0], identified_then(end)) for split, name in desk.names]
    assert sum(step.reward for step in ends) <= 0.2 * len(desk.names)


@every_template
def test_doing_nothing_scores_nothing(desk, split, name):
    number = desk.numbered(split, name, 1)[0]
    env, _ = desk.begin(split, number)
    step = env.step("Goodbye.")
    assert step.reward == 0.0 and failed(step) & {"database", "statements"}
    env, _ = desk.begin(split, number)
    steps = [env.step("") for _ in range(60)]
    assert sum(step.reward for step in steps) == 0.0 and steps[-1].truncated


# ---- customers: a pattern of the values, things of the database that a message may name, actions, questions

_WORDS = "|".join((*COLOURS, *PRODUCTS, "Express", "gift card", "credit card"))
TALK = {
    "Retail": (
        re.compile(rf"#W\d+|\bP\d{{4}}\b|\S+@\S+|\b\d{{5}}\b|\b(?:{_WORDS})\b"),
        lambda data: [list(data["orders"]), [i for p in data["products"].values() for i in p["items"]]],
        ("cancel", "return", "exchange"),
        (
            "Which order is it?",
            "Which items are they?",
            "Which color instead?",
            "Which payment method?",
            "What reason?",
            "",
        ),
    ),
    "Support": (
        re.compile(rf"\bL-\d{{4}}\b|\S+@\S+|\b\d{{5}}\b|\b\d+ GB\b|\b\d{{4}}-\d\d-\d\d\b|\b(?:{'|'.join(PLANS)})\b"),
        lambda data: [list(PLANS), list(data["lines"])],
        ("resume", "pause", "change plan"),
        ("Which line is it?", "Which plan?", "How many gigabytes?", "Until when?"),
    ),
}
QUESTIONS = (IDENTIFY, "How can I help you?", "What is the address?", "Rule 3.", "Is there anything else?")
QUESTIONS += ("One moment.", "Why?", "I am sorry, I cannot do that.")


def check_dialogue(desk, split, number):
    """Talk to a customer with messages drawn at random. Check by rule that it never contradicts its goal."""
    rng, task = random.Random(number), desk.make_task(number, split)
    pattern, things, actions, questions = TALK[desk.name]
    goal, (some, others) = task.goal, things(task.data)
    reply = first_message(goal)
    for _ in range(12):
        message = rng.choice((*QUESTIONS, *questions))
        if rng.random() < 0.4:
            wants = [want for wish in goal.wishes for want in wish.wants]
            named = rng.choice(wants) if wants and rng.random() < 0.7 else None
            words = list(named.values) if named else [rng.choice(some), rng.choice(others)]
            words += rng.sample(others, rng.choice([0, 0, 1]))
            action = named.function if named and rng.random() < 0.7 else rng.choice(actions)
            message = f"I would {action} {', '.join(words)}. Do you confirm this?"
        before = reply.mood
        reply = answer(goal, reply.mood, message)
        wish = goal.wishes[reply.mood.wish]
        said = " ".join([wish.request, wish.said, *wish.details.values()])
        allowed = {*pattern.findall(said), goal.zip, *([f"{goal.email}."] if goal.email else [])}
        assert set(pattern.findall(reply.text)) <= allowed, (split, number, message, reply.text)
        assert reply.agrees == reply.text.startswith(("Yes, please", "Yes, go", "Yes, that"))
        if reply.agrees:
            right = [want for want in wish.wants if all(mentions(message, value) for value in want.values)]
            wanted = {value for want in right for value in want.values}
            assert before.wish == reply.mood.wish and right
            assert set(re.findall(r"#W\d+|\bP\d{4}\b|\bL-\d{4}\b", message)) <= wanted
        assert reply.mood.wish >= before.wish


@every_desk
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_customer_never_contradicts_its_goal(desk, split):
    for number in range(40):
        check_dialogue(desk, split, number)


@pytest.mark.exhaustive
@every_desk
def test_a_thousand_dialogues_contradict_no_goal(desk):
    for number in range(500):
        check_dialogue(desk, "train", number)
        check_dialogue(desk, "test", number)
