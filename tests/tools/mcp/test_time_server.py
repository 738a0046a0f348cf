"""The example MCP server: its tools and transports."""

import asyncio
import contextlib
import re
import socket
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

pytest.importorskip("mcp")

import gem
from gem.errors import ToolError
from gem.messages import ToolCall, ToolErrorType
from gem.tools.mcp import time_server as time_mcp
from gem.tools.mcp.tool import MCPTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

SERVER = [sys.executable, "-m", "gem.tools.mcp.time_server"]
NAMES = ["convert_time", "current_time", "days_in_month", "get_timestamp", "get_week_year", "relative_time"]


@pytest.fixture
def port():
    """A port that servers of this test can use, one after the other, and nothing else gets."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


@contextlib.contextmanager
def running(transport, port, *options):
    command = [*SERVER, "--transport", transport, "--port", str(port), *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def over_stdio():
    with contextlib.closing(MCPTool(SERVER)) as tool:
        yield tool


def ask(tool, name, **arguments):
    result = tool.call(ToolCall(name, arguments))
    return replace(result, text=inside(result.text))


def inside(text):
    return re.fullmatch("<tool_response>(.*)</tool_response>", text, re.DOTALL)[1]


@pytest.mark.slow
@pytest.mark.parametrize("transport, path, options", [("http", "time", ["--path", "/time"]), ("sse", "sse", [])])
def test_the_server_is_reached_over_each_transport_unless_it_is_unavailable(transport, path, options, port):
    tool = MCPTool(
        f"http://127.0.0.1:{port}/{path}",
        headers={"X-Env": "1"},
        auth="token",
        shared=True,
        validate_on_init=False,
        max_retries=1,
        delay_between_retries=0.05,
    )
    with contextlib.closing(tool):
        with running(transport, port, "--host", "127.0.0.1", "--log-level", "info", *options):
            assert [function.name for function in tool.functions()] == NAMES

            async def many():
                calls = [ToolCall("days_in_month", {"date": f"2023-{month:02}-01"}) for month in range(1, 13)]
                return [inside(result.text) for result in await asyncio.gather(*(tool.acall(call) for call in calls))]

            assert asyncio.run(many()) == ["31", "28", "31", "30", "31", "30", "31", "31", "30", "31", "30", "31"]
        with pytest.raises(ToolError, match=r"could not connect|was lost"):
            ask(tool, "days_in_month", date="2024-02-11")
        with running(transport, port, *options):
            assert ask(tool, "days_in_month", date="2024-02-11").text == "29"


@pytest.mark.slow
def test_an_http_session_unknown_to_the_server_is_reopened(port):
    tool = MCPTool(f"http://127.0.0.1:{port}/mcp", protocol="legacy", validate_on_init=False, max_retries=1)
    with contextlib.closing(tool):
        with running("http", port):
            assert ask(tool, "days_in_month", date="2024-02-11").ok
        with running("http", port):
            result = ask(tool, "days_in_month", date="2024-02-11")
            assert not result.ok and "Its state is lost" in result.text
            assert ask(tool, "days_in_month", date="2024-02-11").ok


@pytest.mark.slow
def test_the_server_ends_silently_with_its_client():
    done = subprocess.run(SERVER, input=b"", capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "name, arguments, answer",
    [
        ("days_in_month", {"date": "2023-02-01"}, "28"),
        ("days_in_month", {"date": "2023-04-05T10:00:00+02:00"}, "30"),
        ("get_timestamp", {"time": "1970-01-01T00:00:01"}, "1000"),
        ("get_timestamp", {"time": "1970-01-01T01:00:00+01:00"}, "0"),
        ("get_timestamp", {"time": "1970-01-01T00:00:00Z"}, "0"),
        ("relative_time", {"time": "1970-01-01"}, "years ago"),
        ("get_week_year", {"date": "2024-12-30"}, '"iso_year": 2025'),
        ("get_week_year", {"date": "2023-01-01"}, '"iso_week": 52'),
        ("get_week_year", {"date": "2023-01-08"}, '"week": 2,'),
        (
            "convert_time",
            {"sourceTimezone": "UTC", "targetTimezone": "Asia/Tokyo", "time": "2025-03-23T12:30:00"},
            "2025-03-23T21:30:00+09:00",
        ),
        (
            "convert_time",
            {"sourceTimezone": "America/New_York", "targetTimezone": "Europe/London", "time": "2025-03-20T12:00"},
            '"difference_hours": 4.0',  # one of them has summer time already
        ),
    ],
)
def test_tools_return_the_expected_text(over_stdio, name, arguments, answer):
    result = ask(over_stdio, name, **arguments)
    assert result.ok and answer in result.text


@pytest.mark.parametrize(
    "name, arguments, said",
    [
        ("days_in_month", {"date": "soon"}, "cannot parse the time 'soon'"),
        ("current_time", {"timezone": "Mars/Olympus"}, "unknown time zone 'Mars/Olympus'"),
        ("current_time", {"timezone": "../etc/passwd"}, "unknown time zone"),
        ("convert_time", {"time": "2025-01-01"}, "sourceTimezone"),
        ("relative_time", {"time": 3}, "time"),
    ],
)
def test_invalid_arguments_are_explained(over_stdio, name, arguments, said):
    result = ask(over_stdio, name, **arguments)
    assert result.error is ToolErrorType.ERROR and said in result.text


def test_a_misspelled_argument_is_refused_and_earns_no_reward(over_stdio):
    env = gem.make("game:GuessTheNumber-v0")
    with ToolEnvWrapper(env, tools=[over_stdio.spawn()], tool_success_reward=0.25) as env:
        env.reset(seed=0)
        arguments = '<arguments>{"time_zone": "Asia/Tokyo"}</arguments>'
        step = env.step(f"<tool_call><tool_name>current_time</tool_name>{arguments}</tool_call>")
        assert re.search("'time_zone'.*'timezone'", step.observation)
        assert (step.reward, step.info["tool_faults"]) == (0.0, {"bad_arguments": 1})


def test_the_current_time_is_returned():
    before = datetime.now(tz=timezone.utc).replace(microsecond=0)
    told = datetime.fromisoformat(time_mcp.current_time()["utc"]).replace(tzinfo=timezone.utc)
    assert before <= told <= before + timedelta(seconds=60)


def test_the_published_format_of_a_time_and_that_of_strftime_are_accepted():
    assert re.fullmatch(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", time_mcp.current_time("YYYY/MM/DD HH:mm:ss")["utc"])
    told = time_mcp.current_time("%H:%M", "Asia/Tokyo")
    assert re.fullmatch(r"\d\d:\d\d", told["local"]) and told["timezone"] == "Asia/Tokyo"


def test_the_published_name_of_the_server_is_app():
    assert time_mcp.app is time_mcp.app and time_mcp.app.name == "time_mcp"
    assert not hasattr(time_mcp, "ap")


@pytest.mark.parametrize(
    "seconds, words",
    [(0, "now"), (-1, "1 second ago"), (59, "in 59 seconds"), (-7200, "2 hours ago"), (86_400 * 365, "in 1 year")],
)
def test_distances_are_given_in_their_largest_unit(seconds, words):
    assert time_mcp.say_distance(timedelta(seconds=seconds)) == words
