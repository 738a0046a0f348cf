"""Options of evaluate(): prompt templates, MCP tools and the token budget."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gem.errors import BadValue
from gem.evaluation import evaluate
from gem.evaluation.options import EvalOptions
from gem.policies import Reply, Request
from gem.trajectory import read_jsonl

SERVER = Path(__file__).parent.parent / "tools" / "helpers" / "plain_mcp_server.py"
GAME = "game:GuessTheNumber-v0-easy"


class Spender:
    """Replies with a guess that costs 10 tokens of prompt and 5 of reply."""

    chat, max_prompt_tokens, version = None, None, 0

    def act(self, requests):
        return [Reply("\\boxed{1}", usage={"prompt_tokens": 10, "completion_tokens": 5}) for _ in requests]


def played(folder: Path):
    return {t.episode: t for t in read_jsonl(folder / "trajectories.jsonl")}


@pytest.mark.parametrize(("limit", "turns"), [(1, 1), (15, 1), (16, 2), (31, 3)])
def test_an_episode_over_its_token_budget_ends_as_with_a_full_context(limit, turns, tmp_path):
    report = evaluate(Spender(), GAME, limit=10, token_limit=limit, out=str(tmp_path / "run"))
    cut = [t for t in played(tmp_path / "run").values() if t.stop_reason == "max_tokens"]
    assert cut and all(len(t.turns) == turns + 1 and t.turns[-1].finish == "context_overflow" for t in cut)
    assert report[GAME].overflowed == len(cut) and report[GAME].failed == 0
    assert report.settings["token_limit"] == limit


def test_the_token_budget_reads_the_usage_of_every_server():
    class Claude(Spender):
        def act(self, requests):
            return [Reply("\\boxed{1}", usage={"input_tokens": 10, "output_tokens": 5}) for _ in requests]

    report = evaluate(Claude(), GAME, limit=10, token_limit=1)
    assert report[GAME].overflowed > 0 and report[GAME].tokens_in > 0


def test_a_prompt_that_does_not_fit_the_context_of_a_model_ends_its_episode_only():
    class Local(Spender):
        chat, max_prompt_tokens = object(), 3

        def act(self, requests):
            assert all(len(request.prompt_ids) <= 3 for request in requests)  # a model would raise
            return super().act(requests)

    requests = [Request("q", [1] * length, (0, length, 0), str) for length in (2, 4, 3)]
    replies = EvalOptions().limited(Local()).act(requests)
    assert [reply.finish for reply in replies] == [None, "context_overflow", None]


def test_a_template_is_around_the_first_observation_or_around_each_that_has_the_history(tmp_path):
    for name, wrappers, wrapped in (("a", "", [True, False]), ("b", "concat", [True, True])):
        evaluate(Spender(), GAME, limit=6, wrappers=wrappers, prompt_template="qwen3_game", out=str(tmp_path / name))
        longest = max(played(tmp_path / name).values(), key=lambda t: len(t.turns))
        assert ["reason step by step" in str(turn.observation) for turn in longest.turns[:2]] == wrapped
        assert str(longest.turns[1].observation).count("reason step by step") == wrapped[1]


def test_a_changed_template_file_is_refused_on_resume(tmp_path):
    file, settings = tmp_path / "mine.txt", {"envs": GAME, "limit": 2, "out": str(tmp_path / "run")}
    file.write_text("Task: {observation}")
    evaluate("random", **settings, prompt_template=str(file))
    assert str(played(tmp_path / "run")[0].turns[0].observation).startswith("Task: ")
    file.write_text("Do this: {observation}")
    with pytest.raises(BadValue, match=r"prompt_template\.hash was"):
        evaluate("random", **settings, prompt_template=str(file), resume=True)
    with pytest.raises(BadValue, match=r"prompt_template was .*, now null"):
        evaluate("random", **settings, resume=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt_template": "qwen3_gam"}, "did you mean 'qwen3_game'"),
        ({"prompt_template": __file__}, "{observation} exactly once"),
        ({"token_limit": 0}, "token_limit .*at least 1.*got 0"),
        ({"native_tools": True, "wrappers": "python_tool"}, "native_tools .*endpoint"),
    ],
)
def test_unusable_options_are_refused(options, message):
    with pytest.raises(BadValue, match=message):
        evaluate("random", GAME, limit=1, **options)


def test_the_tools_of_mcp_servers_are_offered_and_called(tmp_path):
    pytest.importorskip("mcp")
    server = {"command": sys.executable, "args": [str(SERVER), "--tools", "echo"]}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"time": server}}))
    arguments = '<arguments>{"n": 29}</arguments>'
    call = f"<tool_call><tool_name>echo</tool_name>{arguments}</tool_call>"

    class Caller(Spender):
        def act(self, requests):
            return [Reply(call if request.key[2] == 0 else "\\boxed{3}") for request in requests]

    report = evaluate(Caller(), GAME, limit=2, mcp=str(config), out=str(tmp_path / "run"))
    first = played(tmp_path / "run")[0]
    assert "echo" in str(first.turns[0].observation) and "29" in str(first.turns[1].observation)
    assert report.settings["mcp"]["file"] == str(config) and report[GAME].failed == 0
    assert EvalOptions(mcp=str(config)).settings() == {"mcp": report.settings["mcp"]}


@pytest.mark.parametrize(("calls", "servers"), [(False, 1), (True, 12)])
def test_a_server_of_tools_starts_when_a_slot_calls_it_first(calls, servers, tmp_path):
    pytest.importorskip("mcp")
    log, config = tmp_path / "log", tmp_path / "mcp.json"
    server = {"command": sys.executable, "args": [str(SERVER), "--tools", "pid", "--log", str(log)]}
    config.write_text(json.dumps({"mcpServers": {"one": server}}))

    class Caller(Spender):
        def act(self, requests):
            call = "<tool_call><tool_name>pid</tool_name></tool_call>"
            return [Reply(call if calls and request.key[2] == 0 else "\\boxed{3}") for request in requests]

    report = evaluate(Caller(), [GAME, "qa:Facts"], limit=6, concurrency=6, mcp=str(config))
    assert [env.failed for env in report.envs] == [0, 0]
    assert len(log.read_text().split()) == servers


def test_an_endpoint_calls_the_tools_of_mcp_servers_natively(tmp_path, capsys):
    pytest.importorskip("mcp")
    pytest.importorskip("aiohttp")
    from gem.cli import main
    from gem.testing.fakes.endpoint import Answer, FakeEndpoint

    server = {"command": sys.executable, "args": [str(SERVER), "--tools", "echo"]}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"time": server}}))
    function = {"name": "echo", "arguments": json.dumps({"n": 29})}
    call = {"id": "call-1", "type": "function", "function": function}

    def model(request):
        """Call the tool, and answer with a guess once it has responded."""
        last = request.body["messages"][-1]
        if last["role"] != "tool":
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            return Answer(body=json.dumps({"model": "m-2026-01-02", "choices": [choice]}))
        (called,) = request.body["messages"][-2]["tool_calls"]
        assert called["function"] == function and last["tool_call_id"] == called["id"]
        return "\\boxed{9}" if "29" in str(last["content"]) else "the tool said nothing"

    with FakeEndpoint(model, strict=True) as endpoint:
        flags = ["--model", "m", "--base-url", endpoint.url, "--env", GAME, "--limit", "3", "--mcp", str(config)]
        assert main(["eval", *flags, "--out", str(tmp_path / "run")]) == 0
        offered = endpoint.requests[0].body["tools"]
    assert "echo" in [tool["function"]["name"] for tool in offered]
    episodes = played(tmp_path / "run")
    assert len(episodes) == 3
    for episode in episodes.values():
        assert episode.turns[0].tool_calls[0]["name"] == "echo"
        assert episode.turns[0].tool_calls[0]["fault"] is None and episode.turns[0].invalid is None
        assert episode.turns[1].action == "\\boxed{9}" and episode.turns[1].role == "tool"
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["served"] == ["m", "m-2026-01-02"]
    assert "model: m, m-2026-01-02." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("calls", [False, True])
def test_a_server_that_never_calls_a_native_tool_is_told_of_in_the_report(calls):
    pytest.importorskip("aiohttp")
    from gem.policies import Endpoint, EndpointPolicy
    from gem.testing.fakes.endpoint import Answer, FakeEndpoint

    def model(request):
        if not calls or request.body["messages"][-1]["role"] == "tool":
            return "\\boxed{9}"
        function = {"name": "python", "arguments": "{"}  # cannot be read, but is a call
        message = {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}
        return Answer(body=json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))

    with FakeEndpoint(model) as endpoint:
        policy = EndpointPolicy(Endpoint(endpoint.url, "m"))
        report = evaluate(policy, GAME, limit=4, wrappers="python_tool", native_tools=True)
    assert (report[GAME + "+python_tool"].calls > 0) is calls
    noted = [note for note in report.notes() if "no tool was called in 4 samples" in note]
    assert len(noted) == (not calls) and all("chat template" in note for note in noted)


@pytest.mark.parametrize("with_mcp", [False, True])
def test_the_tools_of_wrappers_are_called_natively_on_request_beside_those_of_mcp_servers(with_mcp, tmp_path, capsys):
    pytest.importorskip("aiohttp")
    from gem.cli import main
    from gem.testing.fakes.endpoint import Answer, FakeEndpoint

    called = {"python": {"code": "print(4 + 5)"}, "echo": {"n": 29}}
    if with_mcp:
        pytest.importorskip("mcp")
        server = {"command": sys.executable, "args": [str(SERVER), "--tools", "echo"]}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"time": server}}))
    names = list(called)[: 1 + with_mcp]

    def model(request):
        """Call each function once, and then answer."""
        results = [message for message in request.body["messages"] if message["role"] == "tool"]
        if len(results) == len(names):
            return "\\boxed{9}"
        name = names[len(results)]
        function = {"name": name, "arguments": json.dumps(called[name])}
        message = {"content": None, "tool_calls": [{"id": name, "type": "function", "function": function}]}
        return Answer(body=json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))

    run, flags = str(tmp_path / "run"), ["--wrappers", "python_tool", "--native-tools"]
    flags += ["--mcp", str(tmp_path / "mcp.json")] if with_mcp else []
    with FakeEndpoint(model) as endpoint:
        where = ["--model", "m", "--base-url", endpoint.url, "--env", GAME, "--limit", "2", "--out", run]
        assert main(["eval", *where, *flags]) == 0
        first = endpoint.requests[0].body
    assert set(names) <= {tool["function"]["name"] for tool in first["tools"]}
    assert "python" not in first["messages"][0]["content"]  # the functions are not listed twice
    for episode in played(tmp_path / "run").values():
        calls = [call for turn in episode.turns for call in turn.tool_calls]
        assert [(call["name"], call["fault"]) for call in calls] == [(name, None) for name in names]
        assert "result: 9" in str(episode.turns[1].observation) and episode.turns[-1].action == "\\boxed{9}"
        assert episode.turns[0].reward == pytest.approx(0.3)  # of the wrapper python_tool
    assert json.loads((tmp_path / "run" / "eval.json").read_text())["native_tools"] is True
    capsys.readouterr()
    if not with_mcp:
        assert main(["eval", "rescore", run]) == 0
        assert "0 samples of 2 changed" in capsys.readouterr().out
