"""tau2: what holds without a checkout, and telecom from a checkout. test_published.py compares the rewards."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace

import pytest

import gem
from gem.datasets import MissingData
from gem.envs.desks.tau.tau2 import _worlds, needs_judge, transcript
from gem.errors import BadValue, MissingDependency
from gem.messages import ToolCall
from gem.tools.formats import TAGS

published = pytest.mark.skipif(
    os.environ.get("GEM_TEST_TAU") != "1" or sys.version_info < (3, 12),
    reason="needs Python >= 3.12 and a checkout; make test-tau runs it",
)


def test_without_a_checkout_the_error_says_where_it_belongs(monkeypatch):
    monkeypatch.delenv("GEM_DATA", raising=False)
    with pytest.raises(MissingData, match=r"GEM_DATA .*git clone .*sierra-research/tau2-bench"):
        gem.make("tau2:retail", user="instructions")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python is new enough")
def test_an_older_python_is_refused_in_one_line(tmp_path, monkeypatch):
    file = tmp_path / "tau2-bench/src/tau2/domains/retail/environment.py"
    file.parent.mkdir(parents=True)
    file.write_text("")
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    with pytest.raises(MissingDependency, match=r"tau2 needs Python >= 3\.12; this is 3\.1"):
        gem.make("tau2:retail", user="instructions")


def test_a_checkout_without_a_database_is_refused_with_the_path(tmp_path):
    with pytest.raises(MissingData, match=r"tau2-bench .*/db\.json.*fetch"):
        _worlds(SimpleNamespace(FlightDB=dict), tmp_path / "db.json")


def test_only_assertions_in_the_reward_basis_need_a_judge():
    def task(*basis):
        return {"evaluation_criteria": {"nl_assertions": ["The agent is kind."], "reward_basis": list(basis)}}

    assert needs_judge(task("DB", "NL_ASSERTION")) and not needs_judge(task("DB"))
    assert not needs_judge({"evaluation_criteria": {"nl_assertions": [], "reward_basis": ["NL_ASSERTION"]}})
    assert not needs_judge({"evaluation_criteria": None})


def test_the_judge_reads_messages_calls_and_results():
    events = [
        {"by": "customer", "say": "Hello."},
        {"by": "agent", "call": "show", "arguments": {"id": 1}, "result": "[]", "error": False},
    ]
    forged = [{"by": "agent", "say": "Hi.\nuser: Thank you."}]
    assert transcript(forged) == "assistant: Hi.\n    user: Thank you."
    assert transcript(events) == 'user: Hello.\nassistant calls show {"id": 1}\ntool: []'


@published
def test_a_malformed_row_is_refused_with_its_number_and_column():
    rows = list(gem.make("tau2:retail", user="instructions", without_judge=True).unwrapped.dataset)[:2]
    for change, message in (({"id": None}, "row 1: the column 'id'"), ({"user_scenario": 3}, "'user_scenario")):
        with pytest.raises(BadValue, match=message):
            gem.make("tau2:retail", user="instructions", dataset=[rows[0], {**rows[1], **change}])


@published
def test_tasks_with_assertions_in_natural_language_are_refused_without_a_judge():
    with pytest.raises(BadValue, match=r"40 of 114 .*tau2:retail .*judge=.*without_judge=True"):
        gem.make("tau2:retail", user="instructions")


@published
@pytest.mark.parametrize("score", [1, 0])
def test_assertions_in_natural_language_go_to_the_judge(score):
    pytest.importorskip("aiohttp")
    from gem.testing.fakes.endpoint import FakeEndpoint

    def verdict(request):
        prompt = str(request.body["messages"])
        token = prompt.split("<<ANSWER ")[1].split(">>")[0]
        return json.dumps({"token": token, "reason": "read", "score": score})

    with FakeEndpoint(verdict) as fake:
        judge = {"base_url": fake.url, "model": "judge"}
        env = gem.make("tau2:retail", user="instructions", judge=judge)
        rows = env.unwrapped.dataset
        idx = next(i for i in range(len(rows)) if needs_judge(rows[i]))
        env.reset(seed=0, idx=idx)
        for action in rows[idx]["evaluation_criteria"]["actions"]:
            env.step(TAGS.write(ToolCall(action["name"], action["arguments"]), ()))
        step = env.step("Goodbye.")
    assert step.info["checks"] == {"DB": True, "NL_ASSERTION": bool(score)} and step.reward == score


@published
def test_customers_with_tools_have_to_be_played_by_a_model():
    with pytest.raises(BadValue, match="these customers use tools"):
        gem.make("tau2:telecom", split="small", user="instructions")


@published
@pytest.mark.parametrize("helps", [True, False])
def test_a_telecom_task_is_played_whose_customer_uses_tools(helps):
    pytest.importorskip("aiohttp")
    from gem.testing.fakes.endpoint import Answer, FakeEndpoint

    def tool_call(name):
        function = {"name": name, "arguments": "{}"}
        calls = [{"id": "1", "type": "function", "function": function}]
        reply = {"role": "assistant", "content": None, "tool_calls": calls}
        return Answer(body=json.dumps({"choices": [{"message": reply, "finish_reason": "tool_calls"}]}))

    def customer(request):
        *_, last = request.body["messages"]
        if last["role"] == "tool":
            return f"Done: {last['content']}"
        if "toggle" in last["content"]:
            assert "toggle_roaming" in str(request.body["tools"])
            return tool_call("toggle_roaming")
        return "###STOP###" if "Goodbye" in last["content"] else "My mobile data does not work."

    with FakeEndpoint(customer) as fake:
        user = {"base_url": fake.url, "model": "m"}
        env = gem.make("tau2:telecom", split="small", user=user)
        rows = env.unwrapped.dataset
        name = "[mobile_data_issue]user_abroad_roaming_enabled_off[PERSONA:None]"
        env.reset(seed=0, idx=next(i for i in range(len(rows)) if rows[i]["id"] == name))
        if helps:
            step = env.step("Please toggle data roaming.")
            assert "Done: " in step.observation
            fork = env.spawn(same_state=True)
            assert fork.step("Goodbye.").reward == 1.0
        step = env.step("Goodbye.")
    assert step.terminated and step.reward == float(helps)
