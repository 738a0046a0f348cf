"""desk:Support: solutions, wrong agents, and the customer with its phone. test_retail.py tests what desks share."""

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
from gem.envs.desk.phone_requests import phone_requests, request_of
from gem.envs.desk.provider import PHONE_FUNCTIONS, PLANS
from gem.envs.desk.retail import CHECKS, Oracle, State
from gem.envs.desk.support import SupportTool, support
from gem.envs.desk.support_players import SupportReader
from gem.envs.desk.support_templates import SUPPORT_TEMPLATES, make_support_task
from gem.envs.desk.user import answer, first_message, mentions
from gem.errors import BadValue
from gem.messages import ToolCall
from gem.testing import check_env
from gem.tools.formats import TAGS

SPLITS = list(SUPPORT_TEMPLATES)
NAMES = [(split, name) for split in SPLITS for name in SUPPORT_TEMPLATES[split]]
IDENTIFY = "May I have your e-mail address, or your name and zip code?"
VALUE = re.compile(rf"\bL-\d{{4}}\b|\S+@\S+|\b\d{{5}}\b|\b\d+ GB\b|\b\d{{4}}-\d\d-\d\d\b|\b(?:{'|'.join(PLANS)})\b")
desk = cache(lambda split: support(split=split))


def numbered(split, name, count=3):
    """Return numbers of tasks of a template."""
    place = list(SUPPORT_TEMPLATES[split]).index(name)
    return [place + len(SUPPORT_TEMPLATES[split]) * random.Random(k).randrange(2**30) for k in range(count)]


def begin(split, number):
    """Start the episode of a task. Return the environment and the first observation."""
    env = desk(split)
    observation, _ = env.reset(seed=0)
    task = make_support_task(number, split)
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


def wrong_end(split, number, change):
    """Play the oracle's moves, each replaced by change(move, task), a list of moves. Return the last step."""
    env, _ = begin(split, number)
    task = env.env.task()
    for move in Oracle(env.env)._plan(task):
        for new in change(move, task):
            step = env.step(new)
    return step


def failed(step):
    return {name for name, passed in step.info["checks"].items() if not passed}


@pytest.mark.parametrize(("split", "name"), NAMES)
def test_the_oracle_and_the_reader_solve_every_template(split, name):
    for number in numbered(split, name):
        for player in (lambda env: Oracle(env.env), SupportReader):
            env, observation = begin(split, number)
            assert env.env.task().template == name
            step = play(env, player(env), observation)
            assert step.reward == 1.0 and step.info["stop_reason"] is StopReason.SOLVED, (number, player, step.info)
            assert step.info["checks"] == dict.fromkeys(CHECKS, True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("split", SPLITS)
def test_the_reader_solves_every_task(split):
    env, reader = support(split=split), SupportReader()
    for seed in range(1000):
        observation, info = env.reset(seed=seed)
        step = play(env, reader, observation)
        assert step.reward == 1.0, (seed, info["template"], step.info)


def test_there_are_two_hundred_tasks_and_no_template_is_in_both_splits():
    assert len(NAMES) >= 20 and not set(SUPPORT_TEMPLATES["train"]) & set(SUPPORT_TEMPLATES["test"])
    tasks = [make_support_task(number, split) for split, name in NAMES for number in numbered(split, name, 10)]
    assert len({json.dumps([task.data, task.goal.wishes[0].request]) for task in tasks}) == len(tasks) >= 200


def test_there_are_at_least_ten_functions_with_typed_arguments():
    functions = SupportTool().functions()
    assert len(functions) >= 10 and not {function.name for function in functions} & set(PHONE_FUNCTIONS)
    for function in functions:
        for schema in function.parameters["properties"].values():
            assert "type" in schema or "enum" in schema, function


# ---- wrong agents: (check that fails, how a move changes, the tasks where this is wrong)


def of_phone(task):
    return [call for call in task.gold if call.name in PHONE_FUNCTIONS]


def own(task):
    return [call for call in task.gold if call.name not in (*PHONE_FUNCTIONS, "transfer_to_human")]


def skip_authentication(move, task):
    if move.startswith("May I"):
        return []
    return [written("get_customer", customer_id=task.customer)] if "find_customer" in move else [move]


def skip_confirmation(move, task):
    return [] if "Do you confirm" in move else [move]


def pay_too_much(move, task):
    amount = task.gold[0].arguments["amount"]
    return [move.replace(f'"amount": {amount}', f'"amount": {amount + 5}').replace(f"${amount}", f"${amount + 5}")]


def say_nothing(move, task):
    return [] if move.startswith(("I cannot do", "It is")) else [move]


def list_every_value(move, task):
    if not move.startswith(("I cannot do", "It is")):
        return [move]
    shown = " ".join(f"{o['contract_end']} {o['used']} GB ${o['balance']}" for o in task.data["lines"].values())
    prices = " ".join(f"${plan['price']}" for plan in task.data["plans"].values())
    return [f"{shown} 77 GB {prices} rules 1, 2, 3, 4, 5, 6, 7 or 8. {move}"]


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


def never_ask_for_the_phone(move, task):
    return [] if phone_requests(move) else [move]


def restart_always(move, task):
    return ["Please restart the phone.", move] if move == "Goodbye." else [move]


def try_every_step(move, task):
    steps = ["Please turn airplane mode on.", "Please turn airplane mode off."]
    return [*steps, move] if move == "Goodbye." else [move]


def never_act(move, task):
    return [] if any(f"<tool_name>{call.name}" in move for call in task.gold) else [move]


def refuse_everything_at_once(move, task):
    return ["I cannot do that: rule 3.", move] if move == "Goodbye." else []


WRONG = [
    ("authentication", skip_authentication, lambda task: task.customer),
    ("confirmation", skip_confirmation, own),
    ("database", pay_too_much, lambda task: task.template == "credit"),
    ("statements", say_nothing, lambda task: task.statements),
    ("statements", list_every_value, lambda task: task.statements),
    ("undone", write_and_undo, lambda task: task.customer),
    ("other_customers", read_another_customer, lambda task: task.customer),
    ("other_customers", tell_of_another_customer, lambda task: True),
    ("database", never_ask_for_the_phone, of_phone),
    ("database", restart_always, lambda task: True),
    ("undone", try_every_step, lambda task: True),
    ("database", never_act, own),
    ("statements", refuse_everything_at_once, lambda task: task.statements),
]


@pytest.mark.parametrize(("check", "change", "applies"), WRONG, ids=[change.__name__ for _, change, _ in WRONG])
def test_a_wrong_agent_scores_zero_where_it_is_wrong(check, change, applies):
    seen = 0
    for split, name in NAMES:
        for number in numbered(split, name, 2):
            if applies(make_support_task(number, split)):
                step = wrong_end(split, number, change)
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


ALWAYS = [*(refusing(number) for number in range(1, 9)), *map(transferring, ("porting", "company", "complaint"))]


@pytest.mark.parametrize("end", ALWAYS)
def test_refusing_or_transferring_always_scores_on_few_tasks(end):
    ends = [wrong_end(split, numbered(split, name, 1)[0], identified_then(end)) for split, name in NAMES]
    assert sum(step.reward for step in ends) <= 0.2 * len(NAMES)


@pytest.mark.parametrize(("split", "name"), NAMES)
def test_doing_nothing_scores_nothing(split, name):
    env, _ = begin(split, numbered(split, name, 1)[0])
    step = env.step("Goodbye.")
    assert step.reward == 0.0 and failed(step) & {"database", "statements"}


# ---- steps on the phone that the policy does not allow

STATUS = "Please check the status of the phone."
BROKEN = ("airplane_mode", "mobile_data", "loose_sim", "access_point", "two_faults")


def begins_with_the_phone(move, task):
    steps = [STATUS, *(request_of(call) for call in of_phone(task) if call.name != "check_status")]
    return [*steps, move] if move.startswith("May I") else [] if phone_requests(move) else [move]


def asks_for_no_status(move, task):
    return [] if move == STATUS else [move]


def asks_for_status_and_step_at_once(move, task):
    return [] if move == STATUS else [f"{STATUS} {move}"] if phone_requests(move) else [move]


def takes_a_step_that_changes_nothing(move, task):
    return ["Please turn airplane mode off.", move] if move == "Goodbye." else [move]


def restarts_first(move, task):
    if phone_requests(move):
        return []
    return ["Please restart the phone.", move] if "Do you confirm" in move else [move]


@pytest.mark.parametrize(
    ("check", "change", "names"),
    [
        ("authentication", begins_with_the_phone, BROKEN),
        ("undone", asks_for_no_status, BROKEN),
        ("undone", asks_for_status_and_step_at_once, BROKEN),
        ("undone", takes_a_step_that_changes_nothing, BROKEN),
        ("undone", restarts_first, ("resume", "new_sim", "resume_and_contract")),
    ],
)
def test_a_step_on_the_phone_counts_only_when_the_policy_allows_it(check, change, names):
    for split, name in NAMES:
        if name in names:
            step = wrong_end(split, numbered(split, name, 1)[0], change)
            assert step.reward == 0.0 and failed(step) == {check}, (name, step.info)


def test_a_step_for_another_line_is_not_done():
    env, _ = begin("train", numbered("train", "airplane_mode", 1)[0])
    env.step("Please turn airplane mode off on line L-0000.")
    assert env.env.state.data == env.env.task().data


def test_the_amount_of_data_used_cannot_be_guessed():
    tasks = [make_support_task(number, "train") for number in numbered("train", "data_used", 60)]
    assert len({str(task.statements) for task in tasks}) > 20


# ---- the customer and its phone


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        ("Please turn airplane mode off.", [("switch", {"what": "airplane_mode", "on": False})]),
        ("Could you switch on mobile data?", [("switch", {"what": "mobile_data", "on": True})]),
        ("Can you please restart your phone?", [("restart_phone", {})]),
        ("Please check the status of the phone.", [("check_status", {})]),
        ("Please take out the SIM and put it back.", [("seat_sim", {})]),
        ("Please reset the APN.", [("reset_access_point", {})]),
        ("Please restart the phone of line L-3976.", [("restart_phone", {})]),
        ("Please disable airplane mode.", [("switch", {"what": "airplane_mode", "on": False})]),
        ("Could you activate data roaming?", [("switch", {"what": "roaming", "on": True})]),
        (
            "Please turn airplane mode off and mobile data on.",
            [("switch", {"what": "airplane_mode", "on": False}), ("switch", {"what": "mobile_data", "on": True})],
        ),
        ("Please do this:\n1. Turn off **airplane mode**", [("switch", {"what": "airplane_mode", "on": False})]),
        ("Please make sure airplane mode is off.", [("switch", {"what": "airplane_mode", "on": False})]),
        ("Could you check your phone's status and tell me if airplane mode is on?", [("check_status", {})]),
        (
            "Can you check the status of the phone: airplane mode on or off, mobile data on or off?",
            [("check_status", {})],
        ),
        ("Thanks. Could you tell me what your phone shows?", [("check_status", {})]),
        ("Could you tell me whether airplane mode is on?", []),
        ("Is airplane mode on? Please tell me.", []),
        ("Airplane mode is on, please turn it off.", []),
        ("Please do not restart the phone yet.", []),
        ("Please don't restart the phone.", []),
        ("Please restart the phone later.", []),
        ("Please wait. If mobile data is off, turn mobile data on.", []),
        ("Please give me your e-mail address so that I can check the status of your account.", []),
        ("Please wait while I check the status of the phone.", []),
        ("Please tell me the status of your order.", []),
        ("I turned airplane mode off.", []),
        ("I would call set_roaming with L-1234, roaming on. Could you confirm?", []),
    ],
)
def test_the_customer_does_what_a_message_asks_for(message, calls):
    assert [(call.name, call.arguments) for call in phone_requests(message)] == calls


def test_the_phone_is_part_of_the_state_and_forks_have_one_of_their_own():
    env, _ = begin("train", numbered("train", "airplane_mode", 1)[0])
    assert "airplane mode is on" in env.step("Please check the status of the phone.").observation
    for twin in (env.spawn(same_state=True), pickle.loads(pickle.dumps(env))):
        assert "turned airplane mode off" in twin.step("Please turn airplane mode off.").observation
        assert "airplane mode is off" in twin.step("Please check the status of the phone.").observation
    assert "airplane mode is on" in env.step("Please check the status of the phone.").observation


def check_dialogue(split, number):
    """Talk to a customer with messages drawn at random. Check by rule that it never contradicts its goal."""
    rng, task = random.Random(number), make_support_task(number, split)
    goal, lines = task.goal, list(task.data["lines"])
    pool = [IDENTIFY, "How can I help you?", "Which line is it?", "Which plan?", "How many gigabytes?", "Until when?"]
    pool += ["What is the address?", "Rule 3.", "Is there anything else?", "One moment.", "Why?", "I cannot do that."]
    reply = first_message(goal)
    for _ in range(12):
        message = rng.choice(pool)
        if rng.random() < 0.4:
            wants = [want for wish in goal.wishes for want in wish.wants]
            named = rng.choice(wants) if wants and rng.random() < 0.7 else None
            words = list(named.values) if named else [rng.choice(lines), rng.choice(list(PLANS))]
            words += rng.sample(lines, rng.choice([0, 0, 1]))
            action = named.function if named and rng.random() < 0.7 else rng.choice(["resume", "pause", "change plan"])
            message = f"I would {action} {', '.join(words)}. Do you confirm this?"
        before = reply.mood
        reply = answer(goal, reply.mood, message)
        wish = goal.wishes[reply.mood.wish]
        said = " ".join([wish.request, wish.said, *wish.details.values()])
        allowed = {*VALUE.findall(said), goal.zip, *([f"{goal.email}."] if goal.email else [])}
        assert set(VALUE.findall(reply.text)) <= allowed, (split, number, message, reply.text)
        if reply.agrees:
            right = [want for want in wish.wants if all(mentions(message, value) for value in want.values)]
            wanted = {value for want in right for value in want.values}
            assert before.wish == reply.mood.wish and right and set(re.findall(r"\bL-\d{4}\b", message)) <= wanted
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


# ---- the environment


def test_check_env_passes():
    report = check_env("desk:Support", episodes=2, seeds=2)
    assert report.ok, str(report)


def test_native_calls_work():
    env = gem.make("desk:Support", format="openai")
    _, info = env.reset(seed=1)
    assert len(info["tools"]) >= 10


def test_a_tool_of_another_desk_is_refused():
    with pytest.raises(BadValue, match="SupportTool needs a SupportEnv"):
        SupportTool().attach(gem.make("desk:Retail"))
