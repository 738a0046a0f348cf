"""EndpointPolicy keeps what a server returns: token ids, log-probabilities, reasoning, usage and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [eval]")

import gem
from gem._internal.http_client import HttpRequest, RequestError
from gem._internal.inbound import Bounds
from gem.core import Env, Step, StopReason
from gem.errors import BadValue
from gem.policies import Endpoint, EndpointPolicy, Request
from gem.policies.completion import Completion, _warn_of_part, parse_completion, with_closing_tag
from gem.rollout import Collector, play_seeds
from gem.testing.fakes.endpoint import Answer, FakeEndpoint, ReceivedRequest
from gem.tools.formats import OpenAIFormat
from gem.tools.function_tool import FunctionTool
from gem.tools.python.tool import PythonCodeTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.trajectory import Trajectory, Turn
from gem.vector import VectorEnv

REQUEST = HttpRequest("POST", "http://127.0.0.1/v1", None, 1.0)
USER, ASSISTANT, END = "\x01", "\x02", "\x03"


class CharTokenizer:
    """One token per character."""

    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = END, ord(END)

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        said = {"user": lambda text: USER + text, "assistant": lambda text: ASSISTANT + text + END}
        text = "".join(said[m["role"]](m["content"]) for m in messages)
        return text + (ASSISTANT if add_generation_prompt else "")

    def encode(self, text, add_special_tokens):
        return [ord(c) for c in text]

    def decode(self, ids, skip_special_tokens):
        return "".join(map(chr, ids))


class WalkEnv(Env):
    """Ends after three steps."""

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        self.state = 0
        return "rules", {}

    def step(self, action: str) -> Step:
        self.state += 1
        return Step(f"{action}, turn {self.state}", 1.0 if self.state == 3 else 0.0, terminated=self.state == 3)


def sampled(text: str, **choice: Any) -> Answer:
    """A completion of a token prompt as vLLM and SGLang return it."""
    ids = [ord(c) for c in text]
    logprobs = {"tokens": list(text), "token_logprobs": [-id / 100 for id in ids]}
    made = {"text": text, "token_ids": ids, "logprobs": logprobs, "finish_reason": "stop", **choice}
    return Answer(body=json.dumps({"choices": [made], "usage": {"completion_tokens": len(ids)}}))


def chat(message: dict[str, Any], **choice: Any) -> Answer:
    made = {"message": {"role": "assistant", **message}, "finish_reason": "stop", **choice}
    return Answer(body=json.dumps({"choices": [made]}))


def walk(script: Any, tokenizer: Any = None, seeds: int = 1, **sampling: Any) -> tuple[list[Any], FakeEndpoint]:
    vec_env = VectorEnv.of([WalkEnv], "disabled")
    with FakeEndpoint(script, strict=True) as fake, Endpoint(fake.url, "m", retries=0) as endpoint, vec_env:
        policy = EndpointPolicy(endpoint, tokenizer=tokenizer, **sampling)
        played = play_seeds(vec_env, policy, range(seeds))
    assert fake.refused == []
    return played, fake


def test_token_prompts_are_sent_and_sequences_are_exact():
    (played,), fake = walk([sampled(f"go{END}"), sampled("cut", finish_reason="length")], CharTokenizer(), max_tokens=9)
    fed = [asked.body["prompt"] for asked in fake.requests]
    assert "".join(map(chr, fed[0])) == f"{USER}rules{ASSISTANT}"
    assert [turn.prompt_ids for turn in played.turns] == fed
    assert [turn.action for turn in played.turns] == ["go", "cut", "cut"]
    assert [turn.finish for turn in played.turns] == ["stop", "length", "length"]
    assert played.turns[0].usage == {"completion_tokens": 3}
    assert (played.model, played.seed, played.group_id) == ("m", 0, 0)
    assert played.sampling == {"max_tokens": 9, "seed": None, "system": None}
    (sequence,) = played.sequences()
    text = "".join(map(chr, sequence.ids_T))
    assert text == f"{USER}rules{ASSISTANT}go{END}{USER}go, turn 1{ASSISTANT}cut{END}{USER}cut, turn 2{ASSISTANT}cut"
    rows = zip(sequence.ids_T, sequence.logprobs_T, sequence.loss_mask_T, strict=True)
    trained = [(id, logp) for id, logp, mask in rows if mask]
    assert trained == [(ord(c), -ord(c) / 100) for c in f"go{END}cutcut"]
    body = fake.requests[0].body
    assert (body["return_token_ids"], body["logprobs"], body["stop_token_ids"]) == (True, 1, [ord(END)])
    assert "messages" not in body and body["max_tokens"] == 9


@pytest.mark.parametrize("missing", [{"token_ids": None}, {"logprobs": None}], ids=["ids", "log-probabilities"])
def test_a_server_without_token_ids_or_log_probabilities_is_an_error(missing):
    with pytest.raises(BadValue, match=r"returned no (token ids|log-probabilities).*vLLM"):
        walk([sampled("go", **missing)], CharTokenizer(), max_tokens=9)


@pytest.mark.parametrize("kwargs", [{}, {"max_tokens": 9, "system": "Play."}], ids=["max_tokens", "system"])
def test_token_prompts_need_max_tokens_and_no_system_message(kwargs):
    with pytest.raises(BadValue, match=r"max_tokens|system"):
        EndpointPolicy(Endpoint("http://127.0.0.1/v1", "m"), tokenizer=CharTokenizer(), **kwargs)


def test_a_context_over_the_limit_truncates_the_episode():
    (played,), _ = walk([sampled(f"go{END}")], CharTokenizer(), max_tokens=9, max_prompt_tokens=20)
    assert (played.stop_reason, len(played.turns)) == ("max_tokens", 1)


def test_chat_completions_with_token_ids_are_kept():
    def script(asked: ReceivedRequest) -> Answer:
        prompt = [ord(c) for message in asked.body["messages"] for c in message["content"]]
        content = [{"token": c, "logprob": -0.5} for c in "go"]
        choice = {"message": {"content": "go"}, "finish_reason": "stop", "token_ids": [103, 111]}
        choice["logprobs"] = {"content": content}
        return Answer(body=json.dumps({"choices": [choice], "prompt_token_ids": prompt}))

    (played,), _ = walk(script, return_token_ids=True, logprobs=True)
    assert "".join(map(chr, played.turns[1].prompt_ids)) == "rulesgogo, turn 1"
    (sequence,) = played.sequences()
    assert sequence.ids_T == [*played.turns[2].prompt_ids, 103, 111]
    assert [logp for logp in sequence.logprobs_T if logp] == [-0.5] * 6


def test_sequences_without_token_ids_or_log_probabilities_are_an_error():
    (played,), _ = walk(["go"])
    with pytest.raises(BadValue, match="turn 0 has no token ids"):
        played.sequences()
    choice = {"message": {"content": "go"}, "token_ids": [103, 111]}
    (played,), _ = walk([Answer(body=json.dumps({"choices": [choice], "prompt_token_ids": [1]}))])
    with pytest.raises(BadValue, match="turn 0 has 2 tokens and 0 log-probabilities"):
        played.sequences()


@pytest.mark.parametrize("collector", [False, True])
@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": None, "refusal": "I can't help."}, "stop", ("I can't help.", "refusal")),
        ({"content": "Take "}, "content_filter", ("Take ", "content_filter")),
        ({"content": None}, "content_filter", ("", "content_filter")),
    ],
    ids=["refusal", "filtered", "withheld"],
)
def test_a_refusal_ends_the_episode_and_is_no_action(message, finish, expected, collector):
    refusal = chat(message, finish_reason=finish)

    def script(asked: ReceivedRequest) -> Answer | str:
        return refusal if len(asked.body["messages"]) == 3 else "go"

    if collector:
        with FakeEndpoint(script) as fake, Endpoint(fake.url, "m") as endpoint, VectorEnv.of([WalkEnv]) as vec_env:
            *_, played = Collector(vec_env).collect(EndpointPolicy(endpoint), episodes=2)
    else:
        (played,), _ = walk(script)
    assert (played.stop_reason, played.truncated, played.failure) == (StopReason.REFUSED, True, None)
    assert [turn.action for turn in played.turns] == ["go", expected[0]]
    assert played.turns[1].finish == expected[1] and played.total_reward == 0.0


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"])
def test_reasoning_goes_back_with_tool_results_only(name):
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 1}'}}
    thought = [{"text": "hm"}] if name in ("reasoning_details", "thinking_blocks") else "hm"

    def script(asked: ReceivedRequest) -> Answer:
        if len(fake.requests) == 1:
            return chat({"content": None, "tool_calls": [call], name: thought})
        return chat({"content": r"\boxed{2}", name: thought})

    def with_tools(env: object) -> ToolEnvWrapper:
        return ToolEnvWrapper(env, tools=[FunctionTool(add)], format=OpenAIFormat(prompt=False))

    vec_env = gem.make_vec("game:GuessTheNumber-v0-hard", [with_tools], num_envs=1, autoreset="disabled")
    with vec_env, FakeEndpoint(script) as fake, Endpoint(fake.url, "m") as endpoint:
        (played,) = play_seeds(vec_env, EndpointPolicy(endpoint), [0])
    after_tool, later = fake.requests[1].body["messages"], fake.requests[2].body["messages"]
    assert after_tool[1][name] == thought and after_tool[1]["tool_calls"] == [call]
    assert name not in later[3] and later[3]["content"] == r"\boxed{2}"  # a user message follows
    assert played.turns[1].message == {"role": "assistant", "content": r"\boxed{2}", name: thought}
    assert played.turns[1].action == r"\boxed{2}" and played.tools[0]["function"]["name"] == "add"
    assert Trajectory.from_json(json.loads(json.dumps(played.to_json()))) == played


def test_reasoning_goes_back_with_tool_results_of_any_role():
    thought = Turn(
        "rules", "<add>1 1</add>", message={"role": "assistant", "content": "<add>1 1</add>", "reasoning": "hm"}
    )
    request = Request("2", [], (0, 0, 1), str, [thought], role="tool")
    for tool_role in ("tool", "user"):
        policy = EndpointPolicy(Endpoint("http://127.0.0.1/v1", "m"), tool_role=tool_role)
        assert [message.get("reasoning") for message in policy.messages(request)] == [None, "hm", None]
    request = Request("go on", [], (0, 0, 2), str, [thought, Turn("2", "3", role="tool")])
    assert [message.get("reasoning") for message in policy.messages(request)] == [None, "hm", None, None, None]
    request = Request("go on", [], (0, 0, 1), str, [thought])
    assert [message.get("reasoning") for message in policy.messages(request)] == [None, None, None]
    assert thought.message is not None and thought.message["reasoning"] == "hm"


@pytest.mark.parametrize(
    ("content", "text", "thinking"),
    [
        # Mistral, https://docs.mistral.ai/studio-api/conversations/reasoning; req_llm 742, mistral client-python 252
        (
            [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "7"}],
            "7",
            "hm",
        ),
        (
            [{"type": "text", "text": "7"}, {"type": "thinking", "thinking": []}, {"type": "text", "text": "5"}],
            "75",
            "",
        ),
        # Claude behind proxies, and Databricks
        ([{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "7"}], "7", "hm"),
        ([{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "7"}], "7", ""),
        ([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, "7"], "7", "hm"),
        ([{"type": "output_text", "text": "7"}], "7", ""),
        ([], "", ""),
        ([{"type": "text"}, {"type": "text", "text": None}, {"type": ["text"]}, {}, None, 3], "", ""),
    ],
)
def test_content_in_parts_is_text_and_reasoning(content, text, thinking):
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    completion = parse_completion(REQUEST, json.dumps({"choices": [choice]}).encode())
    assert (completion.text, completion.reasoning.get("thinking", "")) == (text, thinking)
    assert completion.message == ({"role": "assistant", "content": text, "thinking": thinking} if thinking else None)


def test_parts_of_other_types_are_left_out_with_a_warning_per_type(caplog):
    _warn_of_part.cache_clear()
    parts = [{"type": "tool_use", "id": "t1", "name": "add", "input": {}}, {"type": "text", "text": "7"}]
    body = json.dumps({"choices": [{"message": {"content": parts}}]}).encode()
    for _ in range(3):
        assert parse_completion(REQUEST, body).text == "7"
    assert [record.getMessage() for record in caplog.records] == [
        "parts of the type 'tool_use' in the content of replies are left out"
    ]


def test_reasoning_in_parts_is_recorded_and_not_sent():
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "go"}]
    (played,), fake = walk([chat({"content": parts})])
    assert played.turns[0].message == {"role": "assistant", "content": "go", "thinking": "hm"}
    assert fake.requests[1].body["messages"][1] == {"role": "assistant", "content": "go"}


@pytest.mark.parametrize(
    ("text", "stop", "whole"),
    [
        ("<python>1 + 1", "</python>", "<python>1 + 1</python>"),
        ('<tool_call>{"name": "a"}\n', ["\n\n", "</tool_call>"], '<tool_call>{"name": "a"}\n</tool_call>'),
        ("<function=add>1", ["</function>"], "<function=add>1</function>"),
        ("<python>1</python>", ["</python>"], "<python>1</python>"),
        ("no call", ["</python>"], "no call"),
        ("<python>1</python> <python>2", ["</python>"], "<python>1</python> <python>2</python>"),
        ("Action: add", ["Observation:"], "Action: add"),
        ("text", None, "text"),
        ("```python\nprint(1)\n", ["```"], "```python\nprint(1)\n```"),
        ("```python\nprint(1)", ["</python>", "\n```\n"], "```python\nprint(1)\n```\n"),
        ("```python print(1)", "```", "```python print(1)```"),
        ("~~~py\nx = '~~~'\n", "~~~", "~~~py\nx = '~~~'\n~~~"),
        ("Action: add\nAction Input: ```json\n{}\n", "```", "Action: add\nAction Input: ```json\n{}\n```"),
        ("```python\nprint(1)\n```\nDone.", "```", "```python\nprint(1)\n```\nDone."),
        ("Here it is:\n", "```", "Here it is:\n"),
    ],
)
def test_a_closing_tag_that_a_stop_string_cut_off_is_appended(text, stop, whole):
    assert with_closing_tag(text, stop) == whole


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("tags", "```python\nprint(1 + 1)\n"),
        ("hermes", '```json\n{"name": "python", "arguments": {"code": "print(1 + 1)"}}\n'),
        ("react", 'Action: python\nAction Input: ```json\n{"code": "print(1 + 1)"}\n'),
    ],
)
def test_a_call_whose_code_fence_a_stop_string_cut_off_is_executed(format, text):
    with ToolEnvWrapper(WalkEnv(), tools=[PythonCodeTool], format=format) as env:
        env.reset(seed=0)
        step = env.step(with_closing_tag(text, ["```"]))
        assert step.info["tool_success_counter"] == 1 and "2" in step.observation


def test_a_reply_cut_by_its_token_limit_gets_no_closing_tag():
    answers = [chat({"content": "<a>1"}), chat({"content": "<a>2"}, finish_reason="length")]
    (played,), fake = walk(answers, stop=["</a>"])
    assert [turn.action for turn in played.turns] == ["<a>1</a>", "<a>2", "<a>2"]
    assert fake.requests[1].body["messages"][1]["content"] == "<a>1</a>"


@pytest.mark.parametrize("count", ["ten", None, -1, 1e400, True, [3], 10**300], ids=repr)
def test_a_token_count_that_is_no_count_is_left_out(count):
    usage = {"prompt_tokens": count, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}
    body = json.dumps({"choices": [{"message": {"content": "a"}}], "usage": usage}).encode()
    expected = {"completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}, "cached_tokens": 2}
    assert parse_completion(REQUEST, body).usage == expected


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
@pytest.mark.parametrize("field", ['"tool_calls": [{"arguments": {"n": NUMBER}}]', '"reasoning_details": [NUMBER]'])
def test_a_number_that_json_does_not_have_is_sent_back_as_text(field, number):
    body = f'{{"choices": [{{"message": {{"content": "a", {field}}}}}]}}'.replace("NUMBER", number)
    sent = json.dumps(parse_completion(REQUEST, body.encode()).message, allow_nan=False)
    assert f'"{json.loads(number)}"' in sent


def test_depth_is_the_reply_of_a_model_and_size_is_a_failure(monkeypatch, caplog):
    monkeypatch.setattr("gem.policies.completion._BOUNDS", Bounds(1000, 64, 50))
    deep = f'{{"choices": [{{"message": {{"content": "a", "tool_calls": [{"[" * 65}{"]" * 65}]}}}}]}}'
    assert parse_completion(REQUEST, deep.encode()) == Completion("")
    assert "it counts as an empty reply" in caplog.text
    for more in ([0] * 60, "x" * 1000):
        body = json.dumps({"choices": [{"message": {"content": "a"}, "logprobs": {"token_logprobs": more}}]})
        with pytest.raises(RequestError):
            parse_completion(REQUEST, body.encode())


CHAT_LOGPROBS = {"content": [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -2.5}]}
LLAMA_CPP_LOGPROBS = {"content": [{"id": 5, "token": "a", "logprob": -1}, {"id": 6, "token": "b", "logprob": -2.5}]}
ID_TOKENS = {"tokens": ["token_id:5", "token_id:6"], "token_logprobs": [-1, -2.5]}
IDS = {"token_ids": [5, 6]}
PROMPT = {"prompt_token_ids": [1, 2]}
PAIRS = list(zip(CHAT_LOGPROBS["content"], ID_TOKENS["tokens"], strict=True))
CHAT = {"message": {"content": "ab"}, "logprobs": CHAT_LOGPROBS}


@pytest.mark.parametrize(
    ("choice", "top", "prompt"),
    [
        ({**CHAT, **IDS}, PROMPT, [1, 2]),
        ({**CHAT, **IDS, **PROMPT}, {}, [1, 2]),
        ({**CHAT, "provider_specific_fields": IDS}, PROMPT, [1, 2]),
        ({**CHAT, "provider_specific_fields": {**IDS, **PROMPT}}, {}, [1, 2]),
        ({**CHAT, "provider_specific_fields": IDS}, {"provider_specific_fields": PROMPT}, [1, 2]),
        ({**CHAT, "message": {"content": "ab", "provider_specific_fields": {**IDS, **PROMPT}}}, {}, [1, 2]),
        ({**CHAT, "message": {"content": "ab", **IDS, **PROMPT}}, {}, [1, 2]),
        ({**CHAT, "provider_specific_fields": None, "token_ids": None, "logprobs": LLAMA_CPP_LOGPROBS}, {}, []),
        ({"text": "ab", "logprobs": LLAMA_CPP_LOGPROBS}, {}, []),
        ({"text": "ab", "logprobs": ID_TOKENS}, {}, []),
        ({**CHAT, "logprobs": {"content": [{**e, "token": t} for e, t in PAIRS]}}, {}, []),
    ],
    ids=[
        *("vllm", "sglang", "litellm", "litellm-both", "litellm-top", "litellm-message", "in the message"),
        *("llama.cpp chat", "llama.cpp completion", "tokens that are ids", "chat tokens that are ids"),
    ],
)
def test_token_ids_are_read_where_servers_put_them(choice, top, prompt):
    read = parse_completion(REQUEST, json.dumps({"choices": [choice], **top}).encode())
    assert (read.sampled_ids, read.prompt_ids, read.logprobs, read.text) == ([5, 6], prompt, [-1.0, -2.5], "ab")


@pytest.mark.parametrize("id", ["5", None, True, 5.0])
def test_an_entry_of_log_probabilities_with_another_kind_of_id_has_no_token_id(id):
    entries = [{"id": 5, "token": "a", "logprob": -1.0}, {"id": id, "token": "b", "logprob": -2.5}]
    body = json.dumps({"choices": [{"text": "ab", "logprobs": {"content": entries}}]}).encode()
    assert parse_completion(REQUEST, body).sampled_ids == []


def test_a_server_with_token_ids_in_its_log_probabilities_takes_token_prompts():
    """As llama.cpp does."""
    entries = [{"id": ord(c), "token": c, "logprob": -0.5} for c in f"go{END}"]
    answer = sampled("go", token_ids=None, logprobs={"content": entries})
    (played,), _ = walk([answer], CharTokenizer(), max_tokens=9)
    assert [turn.action for turn in played.turns] == ["go"] * 3
    assert len(played.sequences()) == 1


def test_an_empty_reply_without_its_end_token_is_a_reply():
    empty = sampled("", token_ids=[], logprobs=None)
    (played,), _ = walk([sampled(f"go{END}"), empty], CharTokenizer(), max_tokens=9)
    assert [turn.action for turn in played.turns] == ["go", "", ""] and played.failure is None
    with pytest.raises(BadValue, match="no token ids"):
        walk([empty], CharTokenizer(), max_tokens=9)


@pytest.mark.parametrize(
    ("choice", "top", "advice"),
    [
        (CHAT, PROMPT, "2 log-probabilities and no token ids .*return_token_ids=True"),
        ({**CHAT, **IDS}, {}, "no token ids of its prompt.*tokenizer=…"),
        ({"message": {"content": "ab"}, **IDS}, PROMPT, "2 tokens and 0 log-probabilities; .*logprobs=True"),
        ({"message": {"content": "ab"}}, {}, "no token ids: the policy works with text"),
    ],
)
def test_the_advice_for_training_names_the_option_that_is_missing(choice, top, advice):
    (played,), _ = walk([Answer(body=json.dumps({"choices": [choice], **top}))])
    with pytest.raises(BadValue, match=advice):
        played.sequences()


@pytest.mark.parametrize(
    "choice",
    [
        {"text": "ab", "token_ids": [1, 2], "logprobs": {"token_logprobs": [-1.0]}},
        {"text": "ab", "token_ids": [1, -2]},
        {"text": "ab", "token_ids": ["1"]},
        {"text": "ab", "token_ids": [True]},
        {"text": "ab", "logprobs": {"token_logprobs": [None]}},
        {"text": "ab", "logprobs": {"token_logprobs": [float("nan")]}},
        {"text": 3},
        {"message": {"content": "a", "refusal": 3}},
    ],
    ids=str,
)
def test_a_malformed_completion_is_a_retryable_error(choice):
    with pytest.raises(RequestError) as raised:
        parse_completion(REQUEST, json.dumps({"choices": [choice]}).encode())
    assert raised.value.retryable


@pytest.mark.parametrize(
    "choice",
    [
        {"finish_reason": "error", "error": {"code": 502, "message": "Provider disconnected"}},  # OpenRouter
        {"finish_reason": "abort"},  # vLLM, SGLang
        {"finish_reason": "insufficient_system_resource"},  # DeepSeek
    ],
)
def test_a_reply_that_the_server_broke_off_is_asked_for_again(choice):
    broken = json.dumps({"choices": [{"message": {"content": "half"}, **choice}]})
    with FakeEndpoint([Answer(body=broken), "4"]) as fake, Endpoint(fake.url, "m", backoff=0.0) as endpoint:
        assert endpoint.complete([{"role": "user", "content": "2 + 2?"}]).text == "4"


def test_a_malformed_call_that_a_gateway_reports_as_an_error_is_a_reply_of_the_model():
    choice = {"message": {"content": ""}, "finish_reason": "error", "native_finish_reason": "MALFORMED_FUNCTION_CALL"}
    assert parse_completion(REQUEST, json.dumps({"choices": [choice]}).encode()).text == ""


@pytest.mark.parametrize("finish", ["content_filter: PROHIBITED_CONTENT", "SAFETY", "RECITATION"])
def test_the_content_filter_of_gemini_is_one(finish):
    for message in ({"message": {"content": None}}, {"message": None}, {}):
        body = json.dumps({"choices": [{**message, "finish_reason": finish}]})
        assert parse_completion(REQUEST, body.encode()).finish == "content_filter"


def test_a_chunk_of_a_stream_is_no_empty_reply():
    choice = {"delta": {"content": "4"}, "finish_reason": "stop"}
    with pytest.raises(RequestError, match="not a completion"):
        parse_completion(REQUEST, json.dumps({"choices": [choice]}).encode())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 400, "message": "the prompt is too long"}, 400),
        ({"message": "the prompt is too long"}, 400),
        ({"code": "429", "message": "Rate limit exceeded"}, 429),
        ({"code": 502, "message": "Provider returned error"}, 502),
        ("Unexpected endpoint or method. Returning 200 anyway", 200),  # LM Studio
    ],
)
def test_an_error_with_status_200_has_the_status_that_it_names(error, status):
    with pytest.raises(RequestError) as caught:
        parse_completion(REQUEST, json.dumps({"error": error}).encode())
    assert (caught.value.status, caught.value.retryable) == (status, status != 400)
