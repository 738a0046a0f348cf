"""What holds for the tasks of every desk: solutions, wrong agents, and customers that keep to their goals."""

from __future__ import annotations

import json
import random
import re

import pytest
from desk_play import DESKS, EVERY, IDENTIFY, RETAIL, SUPPORT, failed, play, written

from gem.core import StopReason
from gem.envs.desks.desk.provider import PHONE_FUNCTIONS, PLANS
from gem.envs.desks.desk.retail import CHECKS, Oracle
from gem.envs.desks.desk.shop import COLOURS, CONFIRM, PRODUCTS
from gem.envs.desks.desk.tasks import values
from gem.envs.desks.desk.user import answer, first_message, mentions
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


def tell_of_another_customer_in_other_spelling(move, task):
    other = next(p for i, p in task.data["customers"].items() if i != task.customer)
    number = (other.get("orders") or other.get("lines"))[0]
    spelled = [f"Another customer is {other['name'].replace(' ', '  ')}.", f"Others have {re.sub('[#-]', '', number)}."]
    return [spelled[len(task.template) % 2], move] if move == "Goodbye." else [move]


def look_at_the_offers_first(move, task):
    offers = "list_products" if "products" in task.data else "list_plans"
    return [written(offers), move] if move == IDENTIFY + " And how can I help you?" else [move]


def tell_where_another_customer_lives(move, task):
    own = task.data["customers"].get(task.customer, {"address": {"city": ""}})["address"]["city"]
    homes = [p["address"] for i, p in task.data["customers"].items() if i != task.customer]
    home = next((h for h in homes if h["city"] != own), homes[0])
    part = ("street", "zip", "city")[len(task.template) % (2 if home["city"] == own else 3)]
    return [f"Another customer lives here: {home[part]}.", move] if move == "Goodbye." else [move]


def deny_the_statement(move, task):
    return [move.replace("It is", "It is not").replace("cannot do this:", "can do this, in spite of")]


def claim_that_it_is_done(move, task):
    return [f"I have done what you asked for. {move}"] if move.startswith(("I cannot do", "It is")) else [move]


def add_to_the_statement(move, task):
    return [f"{move} Or a little more."] if move.startswith(("I cannot do", "It is")) else [move]


def refuse_what_is_done(move, task):
    return ["I cannot do this: rule 3.", move] if "Do you confirm" in move else [move]


def ask_for_the_opposite(move, task):
    return [move.replace("would call", "would not call")]


def ask_for_a_choice(move, task):
    return [move.replace(". Do you confirm", ", or $500. Do you confirm")]


def ask_for_another_change_as_well(move, task):
    return [move.replace(". Do you confirm", ", and something else. Do you confirm")]


def ask_in_a_free_form(move, task):
    return [move.replace("I would call", "Shall I call").replace(". Do you confirm this?", "?")]


def never_act(move, task):
    return [] if any(f"<tool_name>{call.name}" in move for call in task.gold) else [move]


def refuse_everything_at_once(move, task):
    return ["I cannot do that: rule 3.", move] if move == "Goodbye." else []


OF_OTHERS = ("other_customer", "line_of_another")  # the customer names what belongs to another one

WRONG = [
    ("authentication", skip_authentication, lambda task: task.customer),
    ("confirmation", skip_confirmation, own),
    ("statements", say_nothing, lambda task: task.statements),
    ("undone", write_and_undo, lambda task: task.customer),
    ("other_customers", read_another_customer, lambda task: task.customer),
    ("other_customers", tell_of_another_customer, lambda task: True),
    ("other_customers", tell_of_another_customer_in_other_spelling, lambda task: task.template not in OF_OTHERS),
    ("other_customers", tell_where_another_customer_lives, lambda task: True),
    ("statements", deny_the_statement, lambda task: task.statements),
    ("statements", claim_that_it_is_done, lambda task: task.statements),
    ("statements", add_to_the_statement, lambda task: task.statements),
    ("statements", refuse_what_is_done, own),
    ("confirmation", ask_for_the_opposite, own),
    ("confirmation", ask_for_a_choice, own),
    ("confirmation", ask_for_another_change_as_well, own),
    ("confirmation", ask_in_a_free_form, own),
    ("authentication", look_at_the_offers_first, lambda task: True),
    ("database", never_act, own),
    ("statements", refuse_everything_at_once, lambda task: task.statements),
]


@every_desk
@pytest.mark.parametrize(("check", "change", "applies"), WRONG, ids=[change.__name__ for _, change, _ in WRONG])
def test_a_wrong_agent_scores_zero_where_it_is_wrong(desk, check, change, applies):
    seen = 0
    for split, name in desk.names:
        for number in desk.numbered(split, name, 1):
            if applies(desk.make_task(number, split)):
                step = desk.wrong_end(split, number, change)
                assert step.terminated and step.reward == 0.0 and check in failed(step), (name, number, step.info)
                seen += 1
    assert seen >= 2


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
            message = CONFIRM.format(action, ", ".join(words))
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


# Other wordings of questions of the reader: the first, the last, and others by what it asks; {0} is an order or a line.
IDENTITIES = ("I can help with {0}. May I have your e-mail address, or your name and zip code?",)
IDENTITIES += ("You wrote about {0}. To verify who you are, could you confirm your e-mail, or your name and zip code?",)
CLOSINGS = ("Your request about {0} is confirmed. Would you like help with anything else?",)
CLOSINGS += ("Done with {0}. May I do anything else for you?", "{0} is done. Is that all for today?")
DETAILS = {
    "What is the reason?": "May I ask why you want to cancel {0}?",
    "What is the new address?": "May I have the new address for {0}?",
    "Which shipping method would you like?": "Which shipping would you like for {0}?",
    "Which payment method would you like?": "Would you like another payment method for {0}, and which?",
    "Which plan would you like?": "Which plan would you like for {0}?",
    "How many gigabytes would you like?": "How many gigabytes would you like on {0}?",
    "Until which date?": "Until which date would you like to pause {0}?",
    "Which order is it? Please give me the order number.": "Which of your orders is it?",
    "Which line is it? Please give me the line number.": "Which of your lines is it?",
}


def reworded(move, said, rng):
    """Return a move of the reader in other words, which name the order or line that the customer has named."""
    named = (re.findall(r"#W\d+|L-\d{4}", said) or ["your account"])[-1]
    if move.startswith("Could you tell me your e-mail"):
        return rng.choice(IDENTITIES).format(named)
    if move == "Is there anything else?":
        return rng.choice(CLOSINGS).format(named)
    return DETAILS[move].format(named) if move in DETAILS else move


@every_template
def test_other_wordings_solve_every_template(desk, split, name):
    for number in desk.numbered(split, name):
        (env, observation), player, rng = desk.begin(split, number), desk.reader(), random.Random(number)
        said, step = "", None
        while step is None or not step.terminated:
            said += "".join(re.findall("Customer: .*", observation))
            step = env.step(reworded(player.act(observation), said, rng))
            observation = step.observation
        assert step.reward == 1.0, step.info


def talkative(move):
    """Return a move of the reader with talk around it, and with the fixed forms in other spellings."""
    if match := re.fullmatch(r"I would call (\w+) with (.*)\. Do you confirm this\?", move):
        values = ", ".join(reversed(match[2].split(", ")))
        return [
            "I have looked at this, and it is possible.",
            f"I would call {match[1]} with {values}.\nDo you confirm this?",
        ]
    if move.startswith("I cannot do"):
        return ["I am sorry, but there is a rule for this.", move, "I cannot make an exception.", move.upper()]
    if move.startswith("It is"):
        return ["Here is what I found.", move, "I hope that this helps."]
    if move == "Is there anything else?":
        return ["Before we say goodbye to each other: is there anything else?"]
    return ["Goodbye, and have a nice day!"] if move == "Goodbye." else [move]


@every_template
def test_talk_around_the_fixed_forms_solves_every_template(desk, split, name):
    for number in desk.numbered(split, name, 2):
        (env, observation), player, step = desk.begin(split, number), desk.reader(), None
        while step is None or not step.terminated:
            for move in talkative(player.act(observation)):
                step = env.step(move)
            observation = step.observation
        assert step.reward == 1.0, (number, step.info)


@pytest.mark.parametrize(
    ("desk", "split", "name"), [(RETAIL, "test", "customer_address"), (SUPPORT, "train", "account_address")]
)
def test_the_former_address_of_the_customer_may_be_told(desk, split, name):
    def change(move, task):
        home = task.data["customers"][task.customer]["address"]
        return [f"You have moved from {home['street']}, {home['city']}.", move] if move == "Goodbye." else [move]

    for number in desk.numbered(split, name, 10):
        step = desk.wrong_end(split, number, change)
        assert step.reward == 1.0, (number, step.info)


def test_a_question_that_names_an_order_is_no_proposal():
    """The customer agrees to nothing when it is asked who it is, or for anything else."""
    task = RETAIL.make_task(RETAIL.numbered("train", "cancel_and_price", 1)[0], "train")
    order, reason = values(task.gold[0])
    mood = first_message(task.goal).mood
    for message in (
        f"I can cancel order {order} ({reason}). May I have your e-mail address, or your name and zip code?",
        f"The cancellation of order {order} ({reason}) is confirmed. Would you like help with anything else?",
    ):
        reply = answer(task.goal, mood, message)
        assert not reply.agrees and re.search(r"@|zip code|How much is", reply.text), reply.text


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
