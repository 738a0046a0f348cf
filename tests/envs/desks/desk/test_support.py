"""desk:Support: wrong agents, and the customer with its phone. test_tasks.py tests what the desks share."""

from __future__ import annotations

import pickle

import pytest
from desk_play import SUPPORT, failed

import gem
from gem.envs.desks.desk.phone_requests import phone_requests, request_of
from gem.envs.desks.desk.provider import PHONE_FUNCTIONS
from gem.envs.desks.desk.support import SupportTool
from gem.envs.desks.desk.support_templates import make_support_task
from gem.errors import BadValue
from gem.testing import check_env

# ---- wrong agents: (check that fails, how a move changes, the tasks where this is wrong)


def of_phone(task):
    return [call for call in task.gold if call.name in PHONE_FUNCTIONS]


def pay_too_much(move, task):
    amount = task.gold[0].arguments["amount"]
    return [move.replace(f'"amount": {amount}', f'"amount": {amount + 5}').replace(f"${amount}", f"${amount + 5}")]


def list_every_value(move, task):
    if not move.startswith(("I cannot do", "It is")):
        return [move]
    shown = " ".join(f"{o['contract_end']} {o['used']} GB ${o['balance']}" for o in task.data["lines"].values())
    prices = " ".join(f"${plan['price']}" for plan in task.data["plans"].values())
    return [f"{shown} 77 GB {prices} rules 1, 2, 3, 4, 5, 6, 7 or 8. {move}"]


def never_ask_for_the_phone(move, task):
    return [] if phone_requests(move) else [move]


def restart_always(move, task):
    return ["Please restart the phone.", move] if move == "Goodbye." else [move]


def try_every_step(move, task):
    steps = ["Please turn airplane mode on.", "Please turn airplane mode off."]
    return [*steps, move] if move == "Goodbye." else [move]


WRONG = [
    ("database", pay_too_much, lambda task: task.template == "credit"),
    ("statements", list_every_value, lambda task: task.statements),
    ("database", never_ask_for_the_phone, of_phone),
    ("database", restart_always, lambda task: True),
    ("undone", try_every_step, lambda task: True),
]


@pytest.mark.parametrize(("check", "change", "applies"), WRONG, ids=[change.__name__ for _, change, _ in WRONG])
def test_a_wrong_agent_scores_zero_where_it_is_wrong(check, change, applies):
    seen = 0
    for split, name in SUPPORT.names:
        for number in SUPPORT.numbered(split, name, 2):
            if applies(make_support_task(number, split)):
                step = SUPPORT.wrong_end(split, number, change)
                assert step.terminated and step.reward == 0.0 and check in failed(step), (name, number, step.info)
                seen += 1
    assert seen >= 2


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
    for split, name in SUPPORT.names:
        if name in names:
            step = SUPPORT.wrong_end(split, SUPPORT.numbered(split, name, 1)[0], change)
            assert step.reward == 0.0 and failed(step) == {check}, (name, step.info)


def test_a_step_for_another_line_is_not_done():
    env, _ = SUPPORT.begin("train", SUPPORT.numbered("train", "airplane_mode", 1)[0])
    env.step("Please turn airplane mode off on line L-0000.")
    assert env.env.state.data == env.env.task().data


def test_the_amount_of_data_used_cannot_be_guessed():
    tasks = [make_support_task(number, "train") for number in SUPPORT.numbered("train", "data_used", 60)]
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
    env, _ = SUPPORT.begin("train", SUPPORT.numbered("train", "airplane_mode", 1)[0])
    assert "airplane mode is on" in env.step("Please check the status of the phone.").observation
    for twin in (env.spawn(same_state=True), pickle.loads(pickle.dumps(env))):
        assert "turned airplane mode off" in twin.step("Please turn airplane mode off.").observation
        assert "airplane mode is off" in twin.step("Please check the status of the phone.").observation
    assert "airplane mode is on" in env.step("Please check the status of the phone.").observation


# ---- the environment


@pytest.mark.slow
def test_check_env_passes():
    report = check_env("desk:Support", episodes=1, seeds=2)
    assert report.ok, str(report)


def test_an_evaluation_gives_pass_hat_k_by_task():
    pytest.importorskip("aiohttp")
    from gem.evaluation import EvalEnv, evaluate
    from gem.policies import Endpoint, EndpointPolicy
    from gem.testing.fakes.endpoint import FakeEndpoint

    seen, readers = [], []

    def agent(request):  # solves each task the first time that it is asked
        roles, last = [m["role"] for m in request.body["messages"]], request.body["messages"][-1]["content"]
        if "assistant" not in roles:
            readers.append(None if last in seen else SUPPORT.reader())
            seen.append(last)
        return readers[-1].act(last) if readers[-1] else "Goodbye."

    with FakeEndpoint(agent) as fake:
        report = evaluate(
            EndpointPolicy(Endpoint(fake.url, "m")), [EvalEnv(id="desk:Support")], limit=3, rollouts=3, concurrency=1
        )
    scores = report["desk:Support"]
    assert (scores.done, scores.failed, len(scores.tasks)) == (9, 0, 3)
    assert all(sorted(task["scores"]) == [0.0, 0.0, 1.0] for task in scores.tasks.values())
    assert scores.pass_hat[2].value == scores.pass_hat[3].value == 0.0 and scores.pass_at[3].value == 1.0


def test_native_calls_work():
    env = gem.make("desk:Support", format="openai")
    _, info = env.reset(seed=1)
    assert len(info["tools"]) >= 10


def test_a_tool_of_another_desk_is_refused():
    with pytest.raises(BadValue, match="SupportTool needs a SupportEnv"):
        SupportTool().attach(gem.make("desk:Retail"))
