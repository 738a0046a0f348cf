"""desk:Retail: solutions, wrong agents, the customer, and the formats of calls."""

from __future__ import annotations

import copy
import json
import pickle
import re

import pytest
from desk_play import IDENTIFY, RETAIL, failed, moves, written

import gem
from gem.envs.desks.desk.retail import DeskEnv, DeskTool, retail
from gem.envs.desks.desk.shop import CONFIRM
from gem.envs.desks.desk.templates import make_task
from gem.envs.desks.desk.user import answer, first_message
from gem.errors import BadValue, EpisodeOver
from gem.testing import check_env

# ---- wrong agents: (check that fails, how a move changes, the tasks where this is wrong)


def refund_too_much(move, task):
    for call in task.gold:
        for name in {"refund", "amount"} & call.arguments.keys():
            amount = call.arguments[name]
            move = move.replace(f'"{name}": {amount}', f'"{name}": {amount + 5}')
            move = move.replace(f"${amount}", f"${amount + 5}")
    return [move]


def list_every_value(move, task):
    if not move.startswith(("I cannot do", "It is")):
        return [move]
    orders = task.data["orders"].values()
    shown = [f"{o['promised']} {o['tracking']} ${o['total']}" for o in orders]
    prices = [f"${i['price']}" for p in task.data["products"].values() for i in p["items"].values()]
    return [" ".join([*shown, *prices, "rules 1, 2, 3, 4, 5, 6, 7 or 8", move])]


def return_everything(move, task):
    for call in task.gold:
        if call.name == "return_items":
            everything = task.data["orders"][call.arguments["order_id"]]["items"]
            move = move.replace(json.dumps(call.arguments["item_ids"]), json.dumps(everything))
    return [move]


WRONG = [
    ("database", refund_too_much, lambda task: task.gold and {"refund", "amount"} & task.gold[0].arguments.keys()),
    ("statements", list_every_value, lambda task: task.statements),
    ("database", return_everything, lambda task: task.template in ("return_one", "return_less_after_all")),
]


@pytest.mark.parametrize(("check", "change", "applies"), WRONG, ids=[change.__name__ for _, change, _ in WRONG])
def test_a_wrong_agent_scores_zero_where_it_is_wrong(check, change, applies):
    seen = 0
    for split, name in RETAIL.names:
        for number in RETAIL.numbered(split, name, 2):
            if applies(make_task(number, split)):
                step = RETAIL.wrong_end(split, number, change)
                assert step.terminated and step.reward == 0.0 and check in failed(step), (name, number, step.info)
                seen += 1
    assert seen >= 4


# ---- what counts


def test_a_look_up_with_a_guessed_address_does_not_identify():
    number = RETAIL.numbered("train", "tracking", 1)[0]
    env, _ = RETAIL.begin("train", number)
    task = env.env.task()
    env.step(written("find_customer_by_email", email=task.data["customers"][task.customer]["email"]))
    info = env.step("Goodbye.").info
    assert "has not said" in info["verifier"] and info["explanation"] == info["verifier"]


def test_a_look_up_of_any_word_does_not_allow_a_refusal():
    env, _ = RETAIL.begin("train", RETAIL.numbered("train", "unknown_customer", 1)[0])
    for move in (IDENTIFY, written("find_customer_by_email", email=""), "I cannot do this: rule 1."):
        env.step(move)
    assert failed(env.step("Goodbye.")) == {"statements", "authentication"}


def test_a_look_up_of_another_name_does_not_allow_a_refusal():
    env, _ = RETAIL.begin("train", RETAIL.numbered("train", "unknown_customer", 1)[0])
    env.step(IDENTIFY)
    word, goal = env.env.state.said[0].split()[0].strip(",."), env.env.task().goal
    for move in (written("find_customer_by_name", name=word, zip=goal.zip), "Rule 1."):
        env.step(move)
    assert failed(env.step("Goodbye.")) == {"statements", "authentication"}


def test_a_yes_to_other_values_is_no_confirmation():
    number = RETAIL.numbered("train", "return_one", 1)[0]

    def change(move, task):
        amount = task.gold[0].arguments["refund"]
        return [move.replace(f"${amount}", "$1")] if "Do you confirm" in move else [move]

    assert failed(RETAIL.wrong_end("train", number, change)) == {"confirmation"}


def test_a_yes_before_a_change_of_mind_does_not_count():
    for name in ("cancel_other_after_all", "exchange_other_color_after_all"):
        number = RETAIL.numbered("test", name, 1)[0]
        env, _ = RETAIL.begin("test", number)
        first, *_ = (move for move in moves(env) if "Do you confirm" in move)
        said = env.step(first).observation
        assert said.startswith("Customer: Actually") and env.env.state.agreed == ()


def test_what_stands_before_the_end_of_thinking_is_not_said():
    env, _ = RETAIL.begin("train", RETAIL.numbered("train", "cancel", 1)[0])
    step = env.step(f"<think>Goodbye is for later.</think> {IDENTIFY}")
    assert (not step.terminated and "@" in step.observation) or "zip code is" in step.observation


def test_thinking_that_was_cut_off_is_not_said():
    env, _ = RETAIL.begin("train", RETAIL.numbered("train", "cancel", 1)[0])
    step = env.step("<think>I must not say goodbye yet")
    assert step.info["invalid"] == "no_action" and not step.terminated


def test_a_write_without_a_yes_counts_even_if_it_changes_nothing():
    def change(move, task):
        home = task.data["customers"][task.customer]["address"]
        call = written("change_customer_address", customer_id=task.customer, **home)
        return [call, move] if move == "Goodbye." else [move]

    assert failed(RETAIL.wrong_end("train", RETAIL.numbered("train", "tracking", 1)[0], change)) == {
        "confirmation",
        "undone",
    }


def test_a_very_long_message_is_not_read():
    env, _ = RETAIL.begin("train", RETAIL.numbered("train", "cancel", 1)[0])
    step = env.step("Goodbye. " * 1000)
    assert step.info["invalid"] == "too_long" and not step.terminated


def test_goodbye_inside_a_message_does_not_end_the_conversation():
    env, _ = RETAIL.begin("train", RETAIL.numbered("train", "cancel", 1)[0])
    assert not env.step("Before we say goodbye, is there anything else?").terminated
    assert env.spawn(same_state=True).step("Goodbye, and thank you.").terminated
    assert env.step("Thank you and good-bye!").terminated


# ---- the customer


def test_the_customer_has_several_wordings_and_is_sometimes_vague():
    goals = [make_task(number, "train").goal for number in range(0, 2000, 20)]  # of one template
    assert len({re.sub(r"#W\d+|with the [\w ]+", "", goal.wishes[0].request) for goal in goals}) >= 4
    assert {goal.opening is None for goal in goals} == {True, False}
    assert {goal.email is None for goal in goals} == {True, False}


def test_the_customer_agrees_to_no_other_change_of_the_same_order():
    goal = make_task(RETAIL.numbered("test", "pay_back", 1)[0], "test").goal
    (want,) = goal.wishes[0].wants
    mood, order = first_message(goal).mood, want.values[0]
    assert not answer(goal, mood, CONFIRM.format("cancel_order", order)).agrees
    assert not answer(goal, mood, CONFIRM.format(want.function, f"{order}, express")).agrees
    assert answer(goal, mood, CONFIRM.format(want.function, f"{order}, $5")).agrees


def test_a_customer_with_a_question_agrees_to_no_change():
    goal = make_task(RETAIL.numbered("train", "total", 1)[0], "train").goal
    reply = answer(goal, first_message(goal).mood, CONFIRM.format("cancel_order", "#W10000"))
    assert not reply.agrees and "do not want to change" in reply.text


# ---- the environment


@pytest.mark.slow
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
    env, _ = RETAIL.begin("train", RETAIL.numbered("train", "shipping", 1)[0])
    env.step(next(moves(env)))
    _, *start, change, _, end = list(moves(env))
    for twin in (env.spawn(same_state=True), pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        for move in start:
            twin.step(move)
        assert twin.step(change).observation.strip().endswith("done")
        assert env.env.state.data == env.env.task().data != twin.env.state.data
        assert twin.step(end).reward == 1.0


def test_the_desk_needs_no_threads():
    with gem.make_vec("desk:Retail", async_mode=True) as vec_env:
        assert vec_env.is_inline


def test_an_unknown_split_and_a_tool_of_another_environment_are_refused():
    with pytest.raises(BadValue, match="split"):
        gem.make("desk:Retail", split="dev")
    with pytest.raises(BadValue, match="max_turns"):
        gem.make("desk:Retail", max_turns=0)
    with pytest.raises(BadValue, match="DeskEnv"):
        DeskTool().attach(gem.make("tool:Lookup"))
    with pytest.raises(EpisodeOver):
        DeskEnv().step("Hello.")
