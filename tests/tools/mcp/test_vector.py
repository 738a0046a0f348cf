"""MCPTool in vector environments: number of servers, and isolation of failures."""

import os
import re
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mcp")

import gem
from gem.tools.mcp.tool import MCPTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

SERVER = Path(__file__).parents[1] / "helpers" / "plain_mcp_server.py"
ENVS, EACH = 8, 13
COUNT = "<tool_call><tool_name>count</tool_name><arguments>{}</arguments></tool_call>"
PID = COUNT.replace("count", "pid")
WAIT = COUNT.replace("count", "wait")


@pytest.fixture
def vec(request, tmp_path):
    """Eight games with one tool each; request.param holds the settings of the tool."""
    tool = MCPTool(
        [sys.executable, str(SERVER), "--log", str(tmp_path / "log")], delay_between_retries=0.0, **request.param
    )
    wrap = partial(ToolEnvWrapper, tools=[tool], max_tool_uses=1000)
    with gem.make_vec("game:GuessTheNumber-v0", [wrap], async_mode=True, num_envs=ENVS) as vec:
        vec.reset()
        yield vec
    tool.close()


def started(tmp_path):
    return [int(line) for line in (tmp_path / "log").read_text().split()]


def play(vec, each, midway=lambda: None):
    """Make ``each`` calls in every slot, one after the other; call midway() when slot 0 has made half of them.

    Returns (slot, observation, reward) of each call.
    """
    left = [each - 1] * ENVS
    seen = []
    vec.send([COUNT] * ENVS)
    while len(seen) < each * ENVS:
        ids, step = vec.recv(min_envs=1)
        seen += zip(ids, step.observations_B, step.rewards_B, strict=True)
        again = [slot for slot in ids if left[slot]]
        for slot in again:
            left[slot] -= 1
        if again:
            vec.send([COUNT] * len(again), ids=again)
        if 0 in again and left[0] == each // 2:
            midway()
    return seen


@pytest.mark.parametrize("vec", [{}], indirect=True)
def test_each_environment_uses_one_server_for_all_calls(vec, tmp_path):
    seen = play(vec, EACH)
    assert len(started(tmp_path)) == ENVS
    for slot in range(ENVS):
        counted = [int(re.search(r"\d+", observation)[0]) for s, observation, _ in seen if s == slot]
        assert counted == list(range(1, len(counted) + 1))


@pytest.mark.parametrize("vec", [{"shared": True}], indirect=True)
def test_shared_tools_start_one_server(vec, tmp_path):
    seen = play(vec, EACH)
    assert len(started(tmp_path)) == 1
    assert sorted(int(re.search(r"\d+", observation)[0]) for _, observation, _ in seen) == list(
        range(1, ENVS * EACH + 1)
    )


@pytest.mark.parametrize("vec", [{}], indirect=True)
def test_killing_a_server_is_seen_in_one_episode(vec, tmp_path):
    play(vec, 1)  # so that all servers run
    killed = int(re.search(r"\d+", vec.step({0: PID}).observations_B[0])[0])
    seen = play(vec, EACH, midway=lambda: os.kill(killed, signal.SIGKILL))
    told = [slot for slot, observation, _ in seen if "Its state is lost" in observation]
    assert len(told) == 1 and len(seen) == ENVS * EACH
    assert len(started(tmp_path)) == ENVS + 1
    stats = vec.stats()["game:GuessTheNumber-v0"]
    assert (stats.failed, stats.episodes) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("vec", [{}, {"shared": True}], indirect=True)
def test_calls_in_flight_return_the_cause_and_the_server_is_restarted(vec, tmp_path):
    play(vec, 1)
    before = started(tmp_path)
    vec.send([WAIT] * ENVS)
    until = time.monotonic() + 60
    while (tmp_path / "log.calls").read_text().split().count("wait") < ENVS:
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(before[0], signal.SIGKILL)
    (tmp_path / "log.go").touch()
    _, step = vec.recv(min_envs=ENVS)
    told = sum("server ended" in observation for observation in step.observations_B)
    assert told == ENVS // len(before)  # one of its own, or all that shared it
    assert sum("done" in observation for observation in step.observations_B) == ENVS - told
    again = play(vec, 1)
    assert not any(np.isnan(reward) for _, _, reward in again)
    assert len(started(tmp_path)) == len(before) + 1
