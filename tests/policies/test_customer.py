"""Model customers: what is asked of the endpoint, and which replies are failures."""

from __future__ import annotations

import json

import pytest

from gem.errors import BadValue, EndpointError
from gem.policies.customer import ModelCustomer


@pytest.fixture
def fakes():
    pytest.importorskip("aiohttp")
    from gem.testing.fakes import endpoint as fakes

    return fakes


def customer(fake):
    return ModelCustomer({"base_url": fake.url, "model": "m", "retries": 0, "temperature": 0.5})


def test_a_customer_without_a_model_is_refused():
    with pytest.raises(BadValue, match="a model customer needs model"):
        ModelCustomer({"base_url": "http://127.0.0.1:1/v1"})


def test_the_request_has_the_prompt_the_conversation_and_the_sampling_options(fakes):
    with fakes.FakeEndpoint(["My name is Ada."]) as fake:
        conversation = [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Your name?"}]
        reply = customer(fake).reply("You are Ada.", conversation)
    assert reply.text == "My name is Ada."
    (request,) = fake.requests
    assert request.body["temperature"] == 0.5 and "tools" not in request.body
    assert request.body["messages"][0] == {"role": "system", "content": "You are Ada."}
    assert request.body["messages"][2:] == conversation


def test_a_customer_may_call_its_own_tools(fakes):
    calls = [{"id": "1", "type": "function", "function": {"name": "reboot", "arguments": "{}"}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    schema = {"type": "function", "function": {"name": "reboot", "description": "", "parameters": {}}}
    with fakes.FakeEndpoint([fakes.Answer(body=body)]) as fake:
        assert customer(fake).reply("", [], [schema]).tool_calls == calls
    assert fake.requests[0].body["tools"] == [schema]


@pytest.mark.parametrize("kind", ["empty", "cut off", "filtered", "down"])
def test_a_reply_that_is_no_message_is_a_failure(fakes, kind):
    answers = {
        "empty": fakes.Answer(text=" "),
        "cut off": fakes.Answer(text="I want", finish="length"),
        "filtered": fakes.Answer(text="I want", finish="content_filter"),
        "down": fakes.Answer(status=500, body="down"),
    }
    with fakes.FakeEndpoint([answers[kind]]) as fake, pytest.raises(EndpointError):
        customer(fake).reply("", [])
