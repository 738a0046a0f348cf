"""Evaluations of a real model on real servers: nothing is lost between the server's replies and the records.

Opt-in, because the servers take gigabytes: `make test-servers` installs them and sets GEM_SERVERS.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(
        "GEM_SERVERS" not in os.environ, reason="needs GEM_SERVERS, the folder that make test-servers fills"
    ),
    pytest.mark.slow,
]
aiohttp = pytest.importorskip("aiohttp")

from aiohttp import web  # noqa: E402
from programs import (  # noqa: E402
    CONTEXT,
    MODEL,
    ModelServer,
    free_port,
    litellm,
    llama_cpp,
    openai_replies,
    transformers_serve,
    vllm,
)

import gem  # noqa: E402
from gem.errors import BadValue, EndpointError  # noqa: E402
from gem.policies import AccessRefused, Endpoint, EndpointPolicy  # noqa: E402
from gem.testing.fakes.endpoint import LocalServer  # noqa: E402
from gem.trajectory import read_jsonl  # noqa: E402

ONE_SERVER = {"llama.cpp": llama_cpp, "vLLM": vllm, "transformers": transformers_serve}
NAMES = [*ONE_SERVER, "LiteLLM"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Iterator[Any]:
    """Return a function from a server's name to the server, which is started when it is first asked for.

    One runs at a time, besides LiteLLM, which needs vLLM behind it: two cores are too few for all of them.
    """
    open_servers: dict[str, tuple[Any, ModelServer]] = {}

    def start(name: str) -> ModelServer:
        needed = {"vLLM", "LiteLLM"} if name in ("vLLM", "LiteLLM") else {name}
        for other in [name for name in open_servers if name not in needed]:
            open_servers.pop(other)[0].__exit__(None, None, None)
        if name not in open_servers:
            folder = tmp_path_factory.mktemp("server")
            running = litellm(folder, start("vLLM")) if name == "LiteLLM" else ONE_SERVER[name](folder)
            open_servers[name] = running, running.__enter__()
        return open_servers[name][1]

    yield start
    for running, _ in reversed(open_servers.values()):
        running.__exit__(None, None, None)


@dataclass
class Recorder:
    """A proxy that keeps what passes: the bodies of requests and of their answers, in the order of the answers."""

    server: ModelServer
    exchanges: list[tuple[dict[str, Any], int, dict[str, Any]]] = field(default_factory=list)

    def __enter__(self) -> Recorder:
        routes = {("POST", f"/v1/{path}"): partial(self._pass, path) for path in ("chat/completions", "completions")}
        self._proxy = LocalServer(web, routes)
        self.url = self._proxy.url + "/v1"
        return self

    def __exit__(self, *exception: object) -> None:
        self._proxy.close()

    async def _pass(self, path: str, request: Any) -> Any:
        body = await request.read()
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{self.server.url}/{path}", data=body, headers=headers) as answer,
        ):
            text = await answer.read()
            self.exchanges.append((json.loads(body), answer.status, json.loads(text)))
            kept = {name: value for name, value in answer.headers.items() if "retry" in name.lower()}
            return web.Response(body=text, status=answer.status, headers=kept, content_type="application/json")


def endpoint(server: ModelServer, url: str | None = None, **options: Any) -> Endpoint:
    return Endpoint(url or server.url, server.model, api_key_env=server.api_key_env, concurrency=1, **options)


@pytest.fixture(scope="session")
def tokenizer():
    return pytest.importorskip("transformers").AutoTokenizer.from_pretrained(MODEL)


@pytest.mark.parametrize("name", NAMES)
def test_records_are_what_the_server_said_and_what_openai_s_client_gets(name, servers, tmp_path):
    server = servers(name)
    with Recorder(server) as proxy, endpoint(server, proxy.url) as client:
        policy = EndpointPolicy(client, temperature=0, max_tokens=12)
        envs = ["qa:Facts", "game:GuessTheNumber-v0-easy"]
        gem.evaluate(policy, envs, limit=3, concurrency=1, out=str(tmp_path / "run"))
    turns = [turn for episode in read_jsonl(tmp_path / "run" / "trajectories.jsonl") for turn in episode.turns]
    said = {json.dumps(body["messages"]): reply for body, status, reply in proxy.exchanges if status == 200}
    assert len(turns) == len(proxy.exchanges) >= 6
    for turn, (_, status, reply) in zip(turns, proxy.exchanges, strict=True):
        assert status == 200 and turn.action == reply["choices"][0]["message"]["content"]
        assert turn.usage["prompt_tokens"] == reply["usage"]["prompt_tokens"]
        assert turn.usage["completion_tokens"] == reply["usage"]["completion_tokens"]
    again = openai_replies(server, [body for body, _, _ in proxy.exchanges])
    for (body, _, _), theirs in zip(proxy.exchanges, again, strict=True):
        ours = said[json.dumps(body["messages"])]
        assert theirs["choices"][0]["message"]["content"] == ours["choices"][0]["message"]["content"]
        assert theirs["usage"]["completion_tokens"] == ours["usage"]["completion_tokens"]


@pytest.mark.parametrize("name", ["vLLM", "llama.cpp"])
def test_token_prompts_give_the_ids_of_the_tokenizer_and_text_without_stop_tokens(name, servers, tokenizer, tmp_path):
    server = servers(name)
    with endpoint(server) as client:
        policy = EndpointPolicy(client, tokenizer=tokenizer, temperature=0, max_tokens=12)
        gem.evaluate(policy, "qa:Facts", limit=3, concurrency=1, out=str(tmp_path / "run"))
    for episode in read_jsonl(tmp_path / "run" / "trajectories.jsonl"):
        (turn,) = episode.turns
        assert len(turn.sampled_ids) == len(turn.logprobs) > 0
        assert tokenizer.decode(turn.sampled_ids, skip_special_tokens=True) == turn.action
        assert "<|im_end|>" not in turn.action


def test_ids_of_vllm_are_read_behind_litellm(servers):
    with endpoint(servers("LiteLLM")) as client:
        options = {"return_token_ids": True, "logprobs": True, "max_tokens": 4, "temperature": 0}
        completion = client.submit([{"role": "user", "content": "Say hi."}], **options).result()
    assert len(completion.sampled_ids) == len(completion.logprobs) == 4


@pytest.mark.parametrize("name", ["LiteLLM", "transformers"])
def test_a_server_that_refuses_prompts_of_ids_stops_the_run_at_once(name, servers, tokenizer):
    server = servers(name)
    with Recorder(server) as proxy, endpoint(server, proxy.url, retries=2) as client:
        policy = EndpointPolicy(client, tokenizer=tokenizer, temperature=0, max_tokens=8)
        with pytest.raises((BadValue, EndpointError)):
            gem.evaluate(policy, "qa:Facts", limit=20, concurrency=4)
    assert len(proxy.exchanges) <= 12, "four at once, each with two retries where the status is 500"


@pytest.mark.parametrize("name", ["llama.cpp", "vLLM", "LiteLLM"])
def test_a_prompt_over_the_context_is_a_full_context_and_a_score(name, servers):
    server = servers(name)
    with endpoint(server) as client:
        policy = EndpointPolicy(client, system="word " * (CONTEXT + 200), max_tokens=8)
        score = gem.evaluate(policy, "qa:Facts", limit=3, concurrency=1)
    assert score.envs[0].overflowed == 3 and score.envs[0].failed == 0
    assert any("context" in note for note in score.notes()), score.notes()


@pytest.mark.parametrize("name", ["vLLM", "LiteLLM"])
def test_a_limit_of_tokens_above_the_context_is_the_caller_s_error(name, servers):
    server = servers(name)
    with (
        Recorder(server) as proxy,
        endpoint(server, proxy.url) as client,
        pytest.raises(BadValue, match="max_tokens"),
    ):
        gem.evaluate(EndpointPolicy(client, max_tokens=50_000), "qa:Facts", limit=20, concurrency=1)
    assert len(proxy.exchanges) == 1


@pytest.mark.parametrize("name", ["vLLM", "LiteLLM"])
def test_a_wrong_model_is_refused_at_the_first_request(name, servers):
    server = servers(name)
    with (
        Recorder(server) as proxy,
        Endpoint(proxy.url, "no-such-model", api_key_env=server.api_key_env) as client,
        pytest.raises((AccessRefused, BadValue)),
    ):
        gem.evaluate(EndpointPolicy(client), "qa:Facts", limit=20, concurrency=1)
    assert len(proxy.exchanges) == 1


def test_a_wrong_key_stops_the_run(servers, monkeypatch):
    server = servers("LiteLLM")
    monkeypatch.setenv("WRONG_KEY", "sk-wrong")
    with (
        Recorder(server) as proxy,
        Endpoint(proxy.url, server.model, api_key_env="WRONG_KEY") as client,
        pytest.raises((AccessRefused, BadValue)),  # without a database, LiteLLM answers 400 for a wrong key
    ):
        gem.evaluate(EndpointPolicy(client), "qa:Facts", limit=20, concurrency=1)
    assert len(proxy.exchanges) <= 3


def test_a_server_that_is_not_there_stops_the_run_and_is_named():
    url = f"http://127.0.0.1:{free_port()}/v1"
    with Endpoint(url, "smollm2") as client, pytest.raises(EndpointError, match=r"127\.0\.0\.1"):
        gem.evaluate(EndpointPolicy(client), "qa:Facts", limit=20)


def test_a_limit_of_requests_per_minute_is_waited_out(servers, tmp_path):
    behind = servers("vLLM")
    with (
        litellm(tmp_path, behind, requests_per_minute=8) as server,
        Recorder(server) as proxy,
        Endpoint(proxy.url, server.model, api_key_env=server.api_key_env) as client,
    ):
        policy = EndpointPolicy(client, temperature=0, max_tokens=8)
        score = gem.evaluate(policy, "qa:Facts", limit=12, concurrency=4).envs[0]
    assert any(status == 429 for _, status, _ in proxy.exchanges), "the limit was reached"
    assert (score.done, score.failed) == (12, 0)


def test_the_same_tasks_get_the_same_seeds_whatever_the_limit(servers):
    server = servers("vLLM")
    replies = []
    for limit in (3, 6):
        with Recorder(server) as proxy, endpoint(server, proxy.url) as client:
            policy = EndpointPolicy(client, temperature=1.0, max_tokens=8, seed=0)
            gem.evaluate(policy, ["qa:Facts", "logic:Rules"], limit=limit, concurrency=1)
        replies.append(
            {
                json.dumps(body["messages"]): (body["seed"], reply["choices"][0]["message"]["content"])
                for body, _, reply in proxy.exchanges
            }
        )
    few, many = replies
    assert len(few) == 6 and few.items() <= many.items()


@pytest.mark.parametrize("name", ["llama.cpp", "transformers"])  # vLLM wants to know how to read calls, or refuses
def test_native_tools_of_a_model_that_calls_none_are_noted(name, servers):
    server = servers(name)
    with endpoint(server) as client:
        policy = EndpointPolicy(client, temperature=0, max_tokens=8)
        env = gem.evaluation.EvalEnv(id="qa:Facts", wrappers="python_tool")
        report = gem.evaluate(policy, env, limit=3, concurrency=1, native_tools=True)
    assert report.envs[0].failed == 0
    assert any("tool" in note and "call" in note for note in report.notes()), report.notes()
