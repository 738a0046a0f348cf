"""Whatever a model or its server writes costs at most the episode in which it was written, and never the run."""

from __future__ import annotations

import json
import re
import zlib

import pytest

from gem.evaluation import EvalEnv, evaluate
from gem.policies import EndpointPolicy
from gem.policies.endpoint import Endpoint
from gem.testing.fakes.endpoint import Answer, FakeEndpoint
from gem.trajectory import read_jsonl

DEEP = "[" * 350 + "]" * 350
CALL = json.dumps('{"code": "print(1)"}')


def reply(content="null", calls=None, usage='{"prompt_tokens": 1, "completion_tokens": 1}', more=""):
    """Return a response as JSON text; the arguments are JSON text too, so that they may be what json cannot write."""
    calls = "" if calls is None else f', "tool_calls": {calls}'
    message = f'{{"role": "assistant", "content": {content}{calls}{more}}}'
    return f'{{"model": "m", "choices": [{{"message": {message}, "finish_reason": "stop"}}], "usage": {usage}}}'


def call(arguments=CALL, id='"c"', name='"python"'):
    return f'[{{"id": {id}, "type": "function", "function": {{"name": {name}, "arguments": {arguments}}}}}]'


def in_text(arguments):
    return json.dumps(f'<tool_call>{{"name": "python", "arguments": {arguments}}}</tool_call>')


HOSTILE = {
    "a call in the text with 350 brackets": reply(in_text(f'{{"code": {DEEP}}}')),
    "a call in the text that never closes": reply(in_text('{"code": ' + "[" * 100_000)),
    "arguments as text with 350 brackets": reply(calls=call(json.dumps(f'{{"code": {DEEP}}}'))),
    "arguments as an object with 350 brackets": reply(calls=call(f'{{"code": {DEEP}}}')),
    "arguments of many brackets": reply(calls=call(json.dumps('{"code": [' + "[]," * 200_000 + "1]}"))),
    "arguments that are NaN": reply(calls=call("NaN")),
    "a lone surrogate in the text": reply('"\\ud800 \\\\boxed{1}"'),
    "a lone surrogate in the arguments": reply(calls=call(json.dumps('{"code": "\\ud800"}'))),
    "a lone surrogate in an id": reply(calls=call(id='"\\udfff"')),
    "a lone surrogate in the reasoning": reply('"1"', more=', "reasoning_content": "\\ud800"'),
    "an id of 4,000 digits": reply(calls=call(id="1" * 4000)),
    "an id of 5,000 digits": reply(calls=call(id="1" * 5000)),
    "an id of 3 MB": reply(calls=call(id=f'"{"x" * 3_000_000}"')),
    "an id that is infinite": reply(calls=call(id="1e999")),
    "a name of 3 MB": reply(calls=call(name=f'"{"x" * 3_000_000}"')),
    "5,000 calls": reply(calls="[" + ",".join([call()[1:-1]] * 5000) + "]"),
    "calls that are no objects": reply(calls='[null, 1, "x", []]'),
    "a deep usage": reply('"1"', usage=f'{{"prompt_tokens": 1, "details": {DEEP}}}'),
    "a usage of text": reply('"1"', usage='{"prompt_tokens": "many", "completion_tokens": "1"}'),
    "a usage without bounds": reply(
        '"1"', usage='{"prompt_tokens": NaN, "completion_tokens": 1e999, "cost": Infinity}'
    ),
    "a usage of 4,000 digits": reply('"1"', usage=f'{{"prompt_tokens": {"9" * 4000}, "cached": {"9" * 4000}}}'),
    "a deep reasoning": reply('"1"', more=f', "reasoning_details": {DEEP}'),
    "a reasoning that is a number": reply('"1"', more=', "reasoning_content": 1e999'),
    "a text of brackets": reply(json.dumps("[" * 1_000_000)),
    "a text of tags": reply(json.dumps('<tool_call>{"name":' * 20_000)),
}


@pytest.mark.parametrize("native", [False, True], ids=["in text", "native"])
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_reply_is_scored_as_a_wrong_one_and_the_other_sample_goes_on(body, native, tmp_path):
    first = []

    def script(request):
        key = json.dumps(request.body["messages"][:2])  # the task
        first.append(key)
        return Answer(body=body) if key == first[0] else Answer(text="\\boxed{1}")

    with FakeEndpoint(script, strict=True) as server:
        report = evaluate(
            EndpointPolicy(Endpoint(server.url, "m", retries=0)),
            [EvalEnv(id="math:Arithmetic", wrappers="python_tool_no_int_reward", limit=2)],
            out=str(tmp_path / "run"),
            concurrency=1,
            native_tools=native,
        )
    assert server.refused == []
    records = list(read_jsonl(tmp_path / "run" / "trajectories.jsonl"))
    assert report.complete
    assert [record.failure for record in records] == [None, None]
    assert max(record.total_reward for record in records) <= 0.0


def test_broken_calls_cost_the_model_as_much_at_a_strict_server_as_at_another():
    """Half of the replies have broken JSON."""
    broken = ['{"code": "print(1)', "[1]", '{}""', "print(1)"]

    def script(request):
        task, *answered = [message["content"] for message in request.body["messages"]]
        number = zlib.crc32(task.encode())
        if not answered and number % 2:
            return Answer(body=reply(calls=call(json.dumps(broken[number // 2 % 4]))))
        found = re.search(r"remainder when \$(\d+)\$ is divided by \$(\d+)\$", task)
        return f"\\boxed{{{int(found[1]) % int(found[2]) if found else 7}}}"

    scores = []
    for strict in (True, False):
        with FakeEndpoint(script, strict=strict) as server, Endpoint(server.url, "m", retries=0) as endpoint:
            env = EvalEnv(id="math:Arithmetic", wrappers="python_tool_no_int_reward", limit=40)
            scores += evaluate(EndpointPolicy(endpoint), [env], native_tools=True).envs
        assert server.refused == [] and 55 < len(server.requests) < 65
    assert [(score.done, score.failed) for score in scores] == [(40, 0)] * 2
    assert scores[0].score == scores[1].score and 0 < scores[0].score.value < 0.5
