"""desk:Retail: solutions, wrong agents, the customer, and the formats of calls."""

from __future__ import annotations

import copy
import json
import pickle
import random
import re
from functools import cache

import pytest

import gem
from gem.core import StopReason
from gem.envs.desk.players import DeskReader
from gem.envs.desk.retail import CHECKS, DeskEnv, DeskTool, Oracle, State, retail, stated
from gem.envs.desk.shop import COLOURS, PRODUCTS
from gem.envs.desk.tasks import values
from gem.envs.desk.templates import TEMPLATES, make_task
from gem.envs.desk.user import answer, first_message, mentions
from gem.errors import BadValue, EpisodeOver
from gem.messages import ToolCall
from gem.testing import check_env
from gem.tools.formats import TAGS

SPLITS = list(TEMPLATES)
NAMES = [(split, name) for split in SPLITS for name in TEMPLATES[split]]
IDENTIFY = "May I have your e-mail address, or your name and zip code?"
WORDS = "|".join((*COLOURS, *PRODUCTS, "Express", "gift card", "credit card"))
VALUE = re.compile(rf"#W\d+|\bP\d{{4}}\b|\S+@\S+|\b\d{{5}}\b|\b(?:{WORDS})\b")


def numbered(split, name, count=3):
    """Return numbers of tasks of a template."""
    place = list(TEMPLATES[split]).index(name)
    return [place + len(TEMPLATES[split]) * random.Random(k).randrange(2**30) for k in range(count)]


desk = cache(lambda split: retail(split=split))


def begin(split, number):
    """Start the episode of a task. Return the environment and the first observation."""
    env = desk(split)
    observation, _ = env.reset(seed=0)
    task = make_task(number, split)
    reply = first_message(task.goal)
    env.env.state = State(number, copy.deepcopy(task.data), reply.mood, said=(reply.text,))
    return env, re.sub(r"Customer: .*", lambda _: f"Customer: {reply.text}", observation)


def play(env, player, observation):
    """Play to the end. Return the last step."""
    while True:
        step = env.step(player.act(observation))
        if step.terminated or step.truncated:
            return step
        observation = step.observation


def written(name, **arguments):
    return TAGS.write(ToolCall(name, arguments), ())


def moves(env):
    """Yield the moves of the oracle."""
    return Oracle(env.env)._plan(env.env.task())


def wrong_end(split, number, change):
    """Play the oracle's moves, each replaced by change(move, task), a list of moves. Return the last step."""
    env, _ = begin(split, number)
    task = env.env.task()
    for move in moves(env):
        for new in change(move, task):
            step = env.step(new)
    return task, step


def failed(step):
    return {name for name, passed in step.info["checks"].items() if not passed}


# ---- right agents


@pytest.mark.parametrize(("split", "name"), NAMES)
def test_the_oracle_and_the_reader_solve_every_template(split, name):
    for number in numbered(split, name):
        env, observation = begin(split, number)
        assert env.env.task().template == name
        step = play(env, Oracle(env.env), observation)
        assert step.reward == 1.0 and step.info["stop_reason"] is StopReason.SOLVED, (number, step.info)
        assert step.info["checks"] == dict.fromkeys(CHECKS, True)
        env, observation = begin(split, number)
        step = play(env, DeskReader(), observation)
        assert step.reward == 1.0, (number, step.info)


@pytest.mark.exhaustive
@pytest.mark.parametrize("split", SPLITS)
def test_the_reader_solves_every_task(split):
    env, reader = retail(split=split), DeskReader()
    for seed in range(1000):
        observation, info = env.reset(seed=seed)
        step = play(env, reader, observation)
        assert step.reward == 1.0, (seed, info["template"], step.info)


def test_there_are_two_hundred_tasks_and_no_template_is_in_both_splits():
    assert len(NAMES) >= 20 and not set(TEMPLATES["train"]) & set(TEMPLATES["test"])
    tasks = [make_task(number, split) for split, name in NAMES for number in numbered(split, name, 10)]
    assert len({json.dumps([task.data, task.goal.wishes[0].request]) for task in tasks}) == len(tasks) >= 200


def test_there_are_at_least_ten_functions_with_typed_arguments():
    functions = DeskTool().functions()
    assert len(functions) >= 10
    for function in functions:
        for schema in function.parameters["properties"].values():
            assert "type" in schema or "enum" in schema, function


# ---- wrong agents: (check that fails, how a move changes, the tasks where this is wrong)


def skip_authentication(move, task):
    if move.startswith("May I"):
        return []
    if "find_customer" in move:
        return [written("get_customer", customer_id=task.customer)] if task.customer else []
    return [move]


def skip_confirmation(move, task):
    return [] if "Do you confirm" in move else [move]


def refund_too_much(move, task):
    for call in task.gold:
        for name in {"refund", "amount"} & call.arguments.keys():
            amount = call.arguments[name]
            move = move.replace(f'"{name}": {amount}', f'"{name}": {amount + 5}')
            move = move.replace(f"${amount}", f"${amount + 5}")
    return [move]


def say_nothing(move, task):
    return [] if move.startswith(("I cannot do", "It is")) else [move]


def list_every_value(move, task):
    if not move.startswith(("I cannot do", "It is")):
        return [move]
    orders = task.data["orders"].values()
    shown = [f"{o['promised']} {o['tracking']} ${o['total']}" for o in orders]
    prices = [f"${i['price']}" for p in task.data["products"].values() for i in p["items"].values()]
    return [" ".join([*shown, *prices, "rules 1, 2, 3, 4, 5, 6, 7 or 8", move])]


def write_and_undo(move, task):
    if move != "Goodbye.":
        return [move]
    home = task.data["customers"][task.customer]["address"]
    away = {**home, "street": "1 New Street"}
    return [written("change_customer_address", customer_id=task.customer, **to) for to in (away, home)] + [move]


def read_another_customer(move, task):
    other = next(i for i in task.data["customers"] if i != task.customer)
    return [written("get_customer", customer_id=other), move] if move == "Goodbye." else [move]


def tell_of_another_customer(move, task):
    other = next(p for i, p in task.data["customers"].items() if i != task.customer)
    return [f"Others use {other['email']}.", move] if move == "Goodbye." else [move]


def return_everything(move, task):
    for call in task.gold:
        if call.name == "return_items":
            everything = task.data["orders"][call.arguments["order_id"]]["items"]
            move = move.replace(json.dumps(call.arguments["item_ids"]), json.dumps(everything))
    return [move]


def never_act(move, task):
    return [] if any(f"<tool_name>{call.name}" in move for call in task.gold) else [move]


def refuse_everything_at_once(move, task):
    return ["I cannot do that: rule 3.", move] if move == "Goodbye." else []


WRONG = [
    ("authentication", skip_authentication, lambda task: task.customer),
    ("confirmation", skip_confirmation, lambda task: task.gold and task.gold[0].name != "transfer_to_human"),
    ("database", refund_too_much, lambda task: task.gold and {"refund", "amount"} & task.gold[0].arguments.keys()),
    ("statements", say_nothing, lambda task: task.statements),
    ("statements", list_every_value, lambda task: task.statements),
    ("undone", write_and_undo, lambda task: task.customer),
    ("other_customers", read_another_customer, lambda task: task.customer),
    ("other_customers", tell_of_another_customer, lambda task: True),
    ("database", return_everything, lambda task: task.template in ("return_one", "return_less_after_all")),
    ("database", never_act, lambda task: task.gold),
    ("statements", refuse_everything_at_once, lambda task: task.statements),
]


@pytest.mark.parametrize(("check", "change", "applies"), WRONG, ids=[change.__name__ for _, change, _ in WRONG])
def test_a_wrong_agent_scores_zero_where_it_is_wrong(check, change, applies):
    seen = 0
    for split, name in NAMES:
        for number in numbered(split, name, 2):
            if applies(make_task(number, split)):
                _, step = wrong_end(split, number, change)
                assert step.terminated and step.reward == 0.0 and check in failed(step), (name, number, step.info)
                seen += 1
    assert seen >= 4


@pytest.mark.parametrize("said", [f"I cannot do that: rule {n}." for n in range(1, 9)])
def test_refusing_always_scores_on_few_tasks(said):
    solved = 0
    for split, name in NAMES:
        step = wrong_end(split, numbered(split, name, 1)[0], identified_then([said]))[1]
        solved += step.reward
    assert solved <= 0.2 * len(NAMES)


@pytest.mark.parametrize("topic", ["warranty", "invoice", "complaint"])
def test_transferring_always_scores_on_few_tasks(topic):
    solved = 0
    for split, name in NAMES:
        number = numbered(split, name, 1)[0]
        customer = make_task(number, split).customer or "C0"
        end = identified_then([written("transfer_to_human", customer_id=customer, topic=topic)])
        solved += wrong_end(split, number, end)[1].reward
    assert solved <= 0.2 * len(NAMES)


def identified_then(end):
    """Return a change of the oracle's moves that identifies the customer and then plays other moves."""

    def change(move, task):
        if move.startswith("May I") or "find_customer" in move:
            return [move]
        return [*end, move] if move == "Goodbye." else []

    return change


@pytest.mark.parametrize(("split", "name"), NAMES)
def test_doing_nothing_scores_nothing(split, name):
    env, _ = begin(split, numbered(split, name, 1)[0])
    step = env.step("Goodbye.")
    assert step.reward == 0.0 and failed(step) & {"database", "statements"}
    env, _ = begin(split, numbered(split, name, 1)[0])
    steps = [env.step("") for _ in range(60)]
    assert sum(step.reward for step in steps) == 0.0 and steps[-1].truncated


# ---- what counts


def test_a_look_up_with_a_guessed_address_does_not_identify():
    number = numbered("train", "tracking", 1)[0]
    env, _ = begin("train", number)
    task = env.env.task()
    env.step(written("find_customer_by_email", email=task.data["customers"][task.customer]["email"]))
    assert "has not said" in env.step("Goodbye.").info["verifier"]


def test_a_look_up_of_any_word_does_not_allow_a_refusal():
    env, _ = begin("train", numbered("train", "unknown_customer", 1)[0])
    for move in (IDENTIFY, written("find_customer_by_email", email=""), "I cannot do this: rule 1."):
        env.step(move)
    assert failed(env.step("Goodbye.")) == {"statements"}


def test_a_yes_to_other_values_is_no_confirmation():
    number = numbered("train", "return_one", 1)[0]

    def change(move, task):
        amount = task.gold[0].arguments["refund"]
        return [move.replace(f"${amount}", "$1")] if "Do you confirm" in move else [move]

    assert failed(wrong_end("train", number, change)[1]) == {"confirmation"}


def test_a_yes_before_a_change_of_mind_does_not_count():
    for name in ("cancel_other_after_all", "exchange_other_color_after_all"):
        number = numbered("test", name, 1)[0]
        env, _ = begin("test", number)
        first, *_ = (move for move in moves(env) if "Do you confirm" in move)
        said = env.step(first).observation
        assert said.startswith("Customer: Actually") and env.env.state.agreed == ()


@pytest.mark.parametrize(
    ("messages", "name", "value", "counts"),
    [
        (["It is $12."], "money", "12", True),
        (["It is $12.00, which is $12."], "money", "12", True),
        (["It is $12 or $13."], "money", "12", False),
        (["It is $13.", "Sorry, it is $12."], "money", "12", True),
        (["It is $12.", "It is $13."], "money", "12", False),
        (["Rule 4 forbids it."], "rule", "4", True),
        (["Rules 1 to 8 forbid it; rule 4."], "rule", "4", False),
        (["rule 4, 5"], "rule", "4", False),
        (["Delivered 5 days ago, so rule 4."], "rule", "4", True),
        (["It was 2026-05-04."], "date", "2026-05-04", True),
        (["trk1234567"], "tracking", "TRK1234567", True),
        ([], "money", "12", False),
    ],
)
def test_a_statement_counts_only_without_other_values(messages, name, value, counts):
    assert stated(tuple(messages), name, value) is counts


def test_what_stands_before_the_end_of_thinking_is_not_said():
    env, _ = begin("train", numbered("train", "cancel", 1)[0])
    step = env.step(f"<think>Goodbye is for later.</think> {IDENTIFY}")
    assert (not step.terminated and "@" in step.observation) or "zip code is" in step.observation


def test_thinking_that_was_cut_off_is_not_said():
    env, _ = begin("train", numbered("train", "cancel", 1)[0])
    step = env.step("<think>I must not say goodbye yet")
    assert step.info["invalid"] == "no_action" and not step.terminated


def test_a_write_without_a_yes_counts_even_if_it_changes_nothing():
    def change(move, task):
        home = task.data["customers"][task.customer]["address"]
        call = written("change_customer_address", customer_id=task.customer, **home)
        return [call, move] if move == "Goodbye." else [move]

    assert failed(wrong_end("train", numbered("train", "tracking", 1)[0], change)[1]) == {"confirmation"}


def test_a_very_long_message_is_not_read():
    env, _ = begin("train", numbered("train", "cancel", 1)[0])
    step = env.step("Goodbye. " * 1000)
    assert step.info["invalid"] == "too_long" and not step.terminated


# ---- the customer


def check_dialogue(split, number):
    """Talk to a customer with messages drawn at random. Check by rule that it never contradicts its goal."""
    rng, task = random.Random(number), make_task(number, split)
    goal, data = task.goal, task.data
    items = [i for product in data["products"].values() for i in product["items"]]
    pool = [IDENTIFY, "How can I help you?", "Which order is it?", "Which items are they?", "Which color instead?"]
    pool += ["What is the reason?", "What is the address?", "Which payment method?", "Which shipping?", "Rule 3."]
    pool += ["Is there anything else?", "One moment.", "Why?", "I am sorry, I cannot do that.", ""]
    reply = first_message(goal)
    for _ in range(12):
        message = rng.choice(pool)
        if rng.random() < 0.4:
            wants = [want for wish in goal.wishes for want in wish.wants]
            named = rng.choice(wants) if wants and rng.random() < 0.7 else None
            words = list(named.values) if named else [rng.choice(list(data["orders"])), rng.choice(items)]
            words += rng.sample(items, rng.choice([0, 0, 1]))
            action = named.function if named and rng.random() < 0.7 else rng.choice(["cancel", "return", "exchange"])
            message = f"I would {action} {', '.join(words)}. Do you confirm this?"
        before = reply.mood
        reply = answer(goal, reply.mood, message)
        wish = goal.wishes[reply.mood.wish]
        own = " ".join([wish.request, wish.said, *wish.details.values()])
        allowed = {*VALUE.findall(own), goal.zip, *([f"{goal.email}."] if goal.email else [])}
        assert set(VALUE.findall(reply.text)) <= allowed, (split, number, message, reply.text)
        assert reply.agrees == reply.text.startswith(("Yes, please", "Yes, go", "Yes, that"))
        if reply.agrees:
            assert before.wish == reply.mood.wish
            right = [want for want in wish.wants if all(mentions(message, value) for value in want.values)]
            wanted = {value for want in right for value in want.values}
            assert right and set(re.findall(r"#W\d+|\bP\d{4}\b", message)) <= wanted
        assert reply.mood.wish >= before.wish


@pytest.mark.parametrize("split", SPLITS)
def test_the_customer_never_contradicts_its_goal(split):
    for number in range(40):
        check_dialogue(split, number)


@pytest.mark.exhaustive
def test_a_thousand_dialogues_contradict_no_goal():
    for number in range(500):
        check_dialogue("train", number)
        check_dialogue("test", number)


def test_the_customer_has_several_wordings_and_is_sometimes_vague():
    goals = [make_task(number, "train").goal for number in range(0, 2000, 20)]  # of one template
    assert len({re.sub(r"#W\d+|with the [\w ]+", "", goal.wishes[0].request) for goal in goals}) >= 4
    assert {goal.opening is None for goal in goals} == {True, False}
    assert {goal.email is None for goal in goals} == {True, False}


def test_the_customer_agrees_to_no_other_change_of_the_same_order():
    goal = make_task(numbered("test", "pay_back", 1)[0], "test").goal
    (want,) = goal.wishes[0].wants
    mood = first_message(goal).mood
    assert not answer(goal, mood, f"I would cancel {want.values[0]}. Do you confirm?").agrees
    assert answer(goal, mood, f"I would pay back the fee of {want.values[0]}. Do you confirm?").agrees


def test_a_customer_with_a_question_agrees_to_no_change():
    goal = make_task(numbered("train", "total", 1)[0], "train").goal
    reply = answer(goal, first_message(goal).mood, "I would cancel #W10000. Do you confirm?")
    assert not reply.agrees and "do not want to change" in reply.text


# ---- the environment


def test_check_env_passes():
    report = check_env("desk:Retail", episodes=2, seeds=2)
    assert report.ok, str(report)


def test_native_calls_work():
    env = gem.make("desk:Retail", format="openai")
    _, info = env.reset(seed=1)
    assert len(info["tools"]) >= 10
    function = {"name": "list_products", "arguments": "{}"}
    call = {"id": "a", "type": "function", "function": function}
    step = env.step({"role": "assistant", "content": "", "tool_calls": [call]})
    assert step.observation[0]["role"] == "tool" and "[" in step.observation[0]["content"]


def test_invalid_arguments_reach_no_function():
    env = retail()
    env.reset(seed=1)
    before = env.get_state()["env"]
    step = env.step(written("cancel_order", order_id="#W10000", reason="bored"))
    assert step.info["invalid"] == "bad_arguments" and env.get_state()["env"] == before


def test_a_fork_and_a_pickle_continue_with_a_database_of_their_own():
    env, _ = begin("train", numbered("train", "shipping", 1)[0])
    env.step(next(moves(env)))
    _, *start, change, _, end = list(moves(env))
    for twin in (env.spawn(same_state=True), pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        for move in start:
            twin.step(move)
        assert twin.step(change).observation.strip().endswith("done")
        assert env.env.state.data == env.env.task().data != twin.env.state.data
        assert twin.step(end).reward == 1.0


def test_an_unknown_split_and_a_tool_of_another_environment_are_refused():
    with pytest.raises(BadValue, match="split"):
        gem.make("desk:Retail", split="dev")
    with pytest.raises(BadValue, match="max_turns"):
        gem.make("desk:Retail", max_turns=0)
    with pytest.raises(BadValue, match="DeskEnv"):
        DeskTool().attach(gem.make("tool:Lookup"))
    with pytest.raises(EpisodeOver):
        DeskEnv().step("Hello.")


def test_values_of_a_call_are_named_as_in_the_policy():
    assert values(ToolCall("pay_back_shipping", {"order_id": "#W10000", "amount": 5})) == ["#W10000", "$5"]
