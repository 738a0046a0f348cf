"""EndpointPolicy against a fake endpoint."""

from __future__ import annotations

import base64
import io
import json
import threading
from dataclasses import replace

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [eval]")

import gem
from gem.errors import BadValue
from gem.policies import Request
from gem.policies.endpoint import AccessRefused, Endpoint, EndpointPolicy, RequestRefused, Unreachable
from gem.rollout import collect, play_seeds
from gem.testing.fakes.endpoint import Answer, FakeEndpoint, ReceivedRequest
from gem.tools.formats import OpenAIFormat
from gem.tools.function_tool import FunctionTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from gem.trajectory import Turn
from gem.wrappers import ObservationWrapper


def request(observation: object = "obs", slot: int = 0, turns: tuple[Turn, ...] = ()) -> Request:
    return Request(observation, [], (slot, 0, len(turns)), lambda: "left", turns)  # type: ignore[arg-type]


def offline() -> Endpoint:
    return Endpoint("http://127.0.0.1/v1", "m")


def test_a_batch_is_sent_concurrently_and_answered_in_order():
    together = threading.Barrier(3)

    def script(asked: ReceivedRequest) -> Answer:
        together.wait(30)
        return Answer(text=asked.last.upper(), delay=0.1 if asked.last == "a" else 0.0)  # in another order

    with FakeEndpoint(script) as fake, Endpoint(fake.url, "m") as endpoint:
        replies = EndpointPolicy(endpoint).act([request("a"), request("b"), request("c")])
    assert [(reply.text, reply.finish, reply.failure) for reply in replies] == [(text, "stop", None) for text in "ABC"]
    assert fake.most_at_once == 3


def test_the_episode_is_sent_as_a_conversation():
    turns = (Turn("rules", "left"), Turn("wall", "right"))
    assert EndpointPolicy(offline(), system="Play.").messages(request("door", turns=turns)) == [
        {"role": "system", "content": "Play."},
        {"role": "user", "content": "rules"},
        {"role": "assistant", "content": "left"},
        {"role": "user", "content": "wall"},
        {"role": "assistant", "content": "right"},
        {"role": "user", "content": "door"},
    ]


def test_messages_are_sent_unchanged():
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    assert EndpointPolicy(offline()).messages(request(messages)) == messages


def test_native_tool_calls_and_their_results_are_messages():
    def script(asked: ReceivedRequest) -> Answer:
        if asked.last == "2":
            return Answer(text=r"\boxed{2}")
        call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 1}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return Answer(body=json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    def with_tools(env: object) -> ToolEnvWrapper:
        return ToolEnvWrapper(env, tools=[FunctionTool(add)], format=OpenAIFormat(prompt=False))

    vec_env = gem.make_vec("game:GuessTheNumber-v0", [with_tools], num_envs=1, autoreset="disabled")
    with vec_env, FakeEndpoint(script) as fake, Endpoint(fake.url, "m") as endpoint:
        (played,) = play_seeds(vec_env, EndpointPolicy(endpoint), [0])
    first, second = fake.requests[:2]
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["add"]
    rules, calls, answer = second.body["messages"]
    assert rules == first.body["messages"][0] and calls["tool_calls"][0]["id"] == "c1"
    assert answer == {"role": "tool", "tool_call_id": "c1", "content": "2"}
    assert played.failure is None and played.turns[1].action == r"\boxed{2}"


def test_images_are_sent_with_their_text():
    image = pytest.importorskip("PIL.Image", reason="needs the extra [vision]")
    picture = image.new("RGB", (2, 1), (255, 0, 0))
    (message,) = EndpointPolicy(offline()).messages(request({"text": "what colour?", "images": [picture]}))
    shown, text = message["content"]
    assert text == {"type": "text", "text": "what colour?"}
    kind, _, data = shown["image_url"]["url"].partition(",")
    assert kind == "data:image/png;base64"
    with image.open(io.BytesIO(base64.b64decode(data))) as read:
        assert read.getpixel((1, 0)) == (255, 0, 0)
    assert EndpointPolicy(offline()).messages(request({"text": "b", "images": []})) == [
        {"role": "user", "content": "b"}
    ]


@pytest.mark.parametrize("observation", [3, {"pixels": 1}, ["a"], {"text": "a", "images": ["path.png"]}])
def test_an_observation_that_cannot_be_sent_is_refused(observation):
    with pytest.raises(BadValue, match=r"should be a PIL image|takes text"):
        EndpointPolicy(offline()).messages(request(observation))


def test_each_turn_of_each_slot_has_its_own_seed():
    def seeds() -> list[int]:
        with FakeEndpoint(["x"]) as fake, Endpoint(fake.url, "m", concurrency=1) as endpoint:
            policy = EndpointPolicy(endpoint, seed=3, temperature=1.0)
            policy.act([request(slot=0), request(slot=1), request(turns=(Turn("a", "b"),))])
        assert {asked.body["temperature"] for asked in fake.requests} == {1.0}
        return [asked.body["seed"] for asked in fake.requests]

    assert seeds() == seeds() and len(set(seeds())) == 3


def test_a_failed_request_does_not_affect_the_others():
    def script(asked: ReceivedRequest) -> Answer:
        return {"long": Answer(status=400), "down": Answer(status=503)}.get(asked.last, Answer(text="left"))

    with FakeEndpoint(script) as fake, Endpoint(fake.url, "m", retries=0) as endpoint:
        replies = EndpointPolicy(endpoint).act([request("a"), request("long"), request("down"), request("b")])
    assert [reply.text for reply in replies] == ["left", "", "", "left"]
    assert [bool(reply.failure) for reply in replies] == [False, True, True, False]
    assert "400" in str(replies[1].failure) and "503" in str(replies[2].failure)


@pytest.mark.parametrize("status", [301, 308, 401, 403, 404, 405])
def test_an_endpoint_that_refuses_access_to_the_first_request_is_an_error(status):
    with FakeEndpoint([Answer(status=status)]) as fake, Endpoint(fake.url, "m", retries=0) as endpoint:
        for count in (1, 3):
            with pytest.raises(AccessRefused, match=str(status)):
                EndpointPolicy(endpoint).act([request("a")] * count)
        with (
            pytest.raises(AccessRefused, match=str(status)),
            gem.make_vec("game:GuessTheNumber-v0-easy", num_envs=3, autoreset="disabled") as vec_env,
        ):
            play_seeds(vec_env, EndpointPolicy(endpoint), seeds=range(5))


@pytest.mark.parametrize("fault", [Answer(status=500), Answer(drop=True), Answer(status=401)], ids=str)
@pytest.mark.parametrize("slots", [1, 4])
def test_an_endpoint_that_dies_loses_no_finished_episode(fault, slots):
    """The rest is failed with its cause, and can be played later."""

    def script(asked: ReceivedRequest) -> Answer | str:
        return bisect(asked) if len(fake.requests) < 20 else fault

    with (
        FakeEndpoint(script) as fake,
        Endpoint(fake.url, "m", retries=1, backoff=0.0) as endpoint,
        gem.make_vec("game:GuessTheNumber-v0-easy", num_envs=slots, autoreset="disabled") as vec_env,
    ):
        policy = EndpointPolicy(endpoint)
        played = play_seeds(vec_env, policy, range(30))
        assert [episode.seed for episode in played] == list(range(30))
        finished = [episode for episode in played if episode.failure is None]
        assert 4 <= len(finished) < 12 and {episode.total_reward for episode in finished} == {1.0}
        causes = {str(episode.failure) for episode in played if episode not in finished}
        assert all(cause.split(":")[0] in ("EndpointError", "AccessRefused") for cause in causes)
        fake.requests.clear()
        fake._script = bisect
        again = play_seeds(vec_env, policy, range(30), previous=played)
    assert [episode.total_reward for episode in again] == [1.0] * 30
    assert all(again[i] is episode for i, episode in enumerate(played) if episode.failure is None)


def test_a_refusal_of_the_only_request_fails_that_request():
    with FakeEndpoint([Answer(status=400)]) as fake, Endpoint(fake.url, "m") as endpoint:
        (reply,) = EndpointPolicy(endpoint).act([request("a")])
        with pytest.raises(RequestRefused):
            endpoint.complete([{"role": "user", "content": "a"}])
    assert reply.failure and not reply.text


def refused(text: str, status: int = 400) -> Answer:
    return Answer(status=status, body=json.dumps({"error": {"message": text}}))


LATER = (Turn("rules", "left"),)
TOTAL = (
    "This model's maximum context length is 4096 tokens. However, you requested {0} tokens ({1} in the messages, {2} "
)
TOTAL += "in the completion)."


@pytest.mark.parametrize("turns", [(), LATER], ids=["first", "later"])
def test_a_prompt_above_the_context_is_an_overflow_in_the_words_of_the_server(turns):
    with FakeEndpoint([refused(TOTAL.format(5100, 5000, 100))]) as fake, Endpoint(fake.url, "m") as endpoint:
        (reply,) = EndpointPolicy(endpoint, max_tokens=100).act([request(turns=turns)])
    assert (reply.finish, reply.failure) == ("context_overflow", None)
    assert "maximum context length is 4096" in str(reply.explanation) and len(fake.requests) == 1


def test_max_tokens_above_the_context_is_a_mistake_of_the_caller_at_the_first_request():
    says = (
        "'max_tokens' is too large: 8192. This model's maximum context length is 4096 tokens and your request has 20 "
    )
    with (
        FakeEndpoint([refused(says + "input tokens (8192 > 4096 - 20).")]) as fake,
        Endpoint(fake.url, "m") as endpoint,
        pytest.raises(BadValue, match=r"max_tokens=8192.*lower it \(--max-tokens\).*4096"),
    ):
        EndpointPolicy(endpoint, max_tokens=8192).act([request()])
    assert len(fake.requests) == 1


def test_max_tokens_that_leaves_no_room_fails_a_first_prompt_and_fills_the_context_of_a_later_one():
    too_much = refused(TOTAL.format(4196, 196, 4000))
    with FakeEndpoint([too_much]) as fake, Endpoint(fake.url, "m") as endpoint:
        policy = EndpointPolicy(endpoint, max_tokens=4000)
        first, later = policy.act([request()]) + policy.act([request(turns=LATER)])
    assert first.finish is None and str(first.failure).startswith("RequestRefused: max_tokens=4000 leaves no room")
    assert (later.finish, later.failure) == ("context_overflow", None)


@pytest.mark.parametrize("status", [400, 403])
def test_a_content_filter_is_a_refusal_of_the_model_whatever_its_status(status):
    with (
        FakeEndpoint([refused("Content violates usage guidelines.", status)]) as fake,
        Endpoint(fake.url, "m") as endpoint,
    ):
        (reply,) = EndpointPolicy(endpoint).act([request()])
    assert (reply.finish, reply.failure) == ("content_filter", None) and "usage guidelines" in str(reply.explanation)


@pytest.mark.parametrize(
    ("error", "text", "finish"),
    [
        (
            {"message": "?", "code": "tool_use_failed", "failed_generation": "<function=add{bad"},
            "<function=add{bad",
            "stop",
        ),
        (
            {"message": "Could not finish the message because max_tokens or model output limit was reached."},
            "",
            "length",
        ),
    ],
)
def test_a_reply_of_the_model_that_the_server_refuses_is_its_action(error, text, finish):
    answer = Answer(status=400, body=json.dumps({"error": error}))
    with FakeEndpoint([answer]) as fake, Endpoint(fake.url, "m") as endpoint:
        (reply,) = EndpointPolicy(endpoint, max_tokens=50).act([request()])
    assert (reply.text, reply.finish, reply.failure) == (text, finish, None)


def test_a_server_that_is_not_there_is_an_error_of_the_first_request():
    with FakeEndpoint(["x"]) as fake:
        url = fake.url
    with Endpoint(url, "m", backoff=0.0) as endpoint, pytest.raises(Unreachable, match="check the URL"):
        EndpointPolicy(endpoint).act([request("a"), request("b")])


def test_a_server_that_refuses_token_ids_is_an_error_of_the_first_request():
    with FakeEndpoint([refused("Input should be a string", 422)]) as fake, Endpoint(fake.url, "m") as endpoint:
        policy = EndpointPolicy(endpoint, tokenizer=Letters(), max_tokens=5)
        with pytest.raises(BadValue, match=r"refused a prompt of token ids.*vLLM.*should be a string"):
            policy.act([replace(request(), prompt_ids=[1, 2])])


def test_a_prompt_longer_than_the_context_that_the_server_named_is_not_sent():
    with FakeEndpoint([refused("限制 300，长度 500，总共 505")]) as fake, Endpoint(fake.url, "m") as endpoint:
        policy = EndpointPolicy(endpoint, tokenizer=Letters(), max_tokens=5)
        (unknown,) = policy.act([replace(request(turns=LATER), prompt_ids=[1] * 500)])
        assert unknown.finish == "context_overflow" and policy._longest is None
        fake._script = [refused("maximum context length is 300 tokens, got 500")]
        policy.act([replace(request(turns=LATER), prompt_ids=[1] * 500)])
        asked = len(fake.requests)
        (known,) = policy.act([replace(request(turns=LATER), prompt_ids=[1] * 301)])
    assert (known.finish, known.explanation is None, len(fake.requests)) == ("context_overflow", False, asked)


class Letters:
    """One token per character."""

    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = "\x03", 3

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        return "".join(f"\x01{m['content']}\x03" for m in messages) + ("\x02" if add_generation_prompt else "")

    def encode(self, text, add_special_tokens):
        return [ord(c) for c in text]

    def decode(self, ids, skip_special_tokens):
        return "".join(map(chr, ids))


def test_a_refused_request_ends_only_its_episode():
    refused = []

    def script(asked: ReceivedRequest) -> Answer | str:
        if not refused:
            refused.append(asked)
            return Answer(status=400)
        return bisect(asked)

    with (
        FakeEndpoint(script) as fake,
        Endpoint(fake.url, "m", concurrency=1) as endpoint,
        gem.make_vec("game:GuessTheNumber-v0-easy", num_envs=3, autoreset="disabled") as vec_env,
    ):
        episodes = play_seeds(vec_env, EndpointPolicy(endpoint), seeds=range(5))
    assert [episode.failure is not None for episode in episodes].count(True) == 1
    assert [episode.total_reward for episode in episodes if episode.failure is None] == [1.0] * 4


def test_the_package_exports_the_endpoint_names():
    import gem.policies

    assert gem.policies.Endpoint is Endpoint and gem.policies.EndpointPolicy is EndpointPolicy
    with pytest.raises(AttributeError, match="Nobody"):
        gem.policies.Nobody  # noqa: B018


def test_no_requests_give_no_replies():
    assert EndpointPolicy(offline()).act([]) == []


def bisect(asked: ReceivedRequest) -> str:
    """Return the next guess of a bisection; it wins only if the whole history is sent."""
    low, high = 1, 10
    messages = asked.body["messages"]
    for reply, hint in zip(messages[1::2], messages[2::2], strict=True):
        guess = int(reply["content"].removeprefix(r"\boxed{").rstrip("}"))
        low, high = (guess + 1, high) if "too low" in hint["content"] else (low, guess - 1)
    return rf"\boxed{{{(low + high) // 2}}}"


def test_a_model_with_the_history_wins_a_game_over_several_turns():
    with (
        FakeEndpoint(bisect) as fake,
        Endpoint(fake.url, "m") as endpoint,
        gem.make_vec("game:GuessTheNumber-v0-easy", num_envs=3, seed=0) as vec_env,
    ):
        episodes = collect(vec_env, EndpointPolicy(endpoint), episodes=6)
    assert [sum(turn.reward or 0 for turn in episode.turns) for episode in episodes] == [1.0] * 6
    assert max(len(episode.turns) for episode in episodes) > 1


def test_an_observation_with_the_history_is_sent_alone():
    with (
        FakeEndpoint([r"\boxed{1}"]) as fake,
        Endpoint(fake.url, "m") as endpoint,
        gem.make_vec("game:GuessTheNumber-v0-easy", num_envs=1, seed=0, wrappers=[ObservationWrapper]) as vec_env,
    ):
        collect(vec_env, EndpointPolicy(endpoint), episodes=1)
    assert {len(asked.body["messages"]) for asked in fake.requests} == {1} and len(fake.requests) > 1
