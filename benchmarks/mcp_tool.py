"""Measure MCP calls from many environments: latency, number of servers, and calls lost when a server is killed.

  python benchmarks/mcp_tool.py           1,000 calls from 32 environments, three rounds
  python benchmarks/mcp_tool.py --quick   200 calls from 8, one round

The server is gem.tools.mcp.time_server over stdin and stdout; a shell wrapper counts how often it is started. The
environments are games in make_vec(async_mode=True) with a ToolEnvWrapper each; a slot gets its next call as soon as the
previous one has finished. Latency is the duration of the environment's step, including the time spent waiting for other
environments.

The baseline is the same calls from one environment, one after the other, and a few calls with the scheme of the
published tool, which starts a server per call. Exits with code 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gem
from gem.core import EnvWrapper
from gem.messages import ToolCall
from gem.tools.mcp.tool import MCPTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper
from table import Line, report

GAME = "game:GuessTheNumber-v0"
ARGUMENTS = '{"date": "2024-02-03"}'
CALL = f"<tool_call><tool_name>days_in_month</tool_name><arguments>{ARGUMENTS}</arguments></tool_call>"
ANSWER = "<tool_response>29</tool_response>"
NEW_SERVERS = 5  # calls of the published scheme


@dataclass(frozen=True)
class Scale:
    envs: int = 32
    calls: int = 1000
    rounds: int = 3


@dataclass
class Played:
    """Outcome of the calls. latencies: seconds, of answered calls."""

    seconds: float = 0.0
    answered: int = 0
    failures: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def percentile(self, share: int) -> float:
        return float(np.percentile(1e3 * np.array(self.latencies), share))


class Timed(EnvWrapper):
    """Record the duration of each step."""

    def __init__(self, env: Any, latencies: list[float]) -> None:
        super().__init__(env)
        self.latencies = latencies

    async def astep(self, action: Any) -> Any:
        start = time.perf_counter()
        step = await self.env.astep(action)
        self.latencies.append(time.perf_counter() - start)
        return step

    async def areset(self, seed: int | None = None, **kwargs: Any) -> Any:
        return await self.env.areset(seed=seed, **kwargs)


@contextmanager
def counted(**settings: Any) -> Iterator[tuple[MCPTool, Callable[[], list[int]]]]:
    """Yield a tool, and a function that returns the process ids of all servers started for it."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "started"
        server = f"{shlex.quote(sys.executable)} -m gem.tools.mcp.time_server"
        command = ["sh", "-c", f"echo $$ >> {shlex.quote(str(log))}; exec {server}"]
        with closing(MCPTool({"command": command[0], "args": command[1:]}, **settings)) as tool:
            yield tool, lambda: [int(line) for line in log.read_text().split()]


@contextmanager
def opened(tool: MCPTool, envs: int, played: Played) -> Iterator[Any]:
    """Open the environments, after one call in each."""
    wrappers = [partial(ToolEnvWrapper, tools=[tool], max_tool_uses=10**6), partial(Timed, latencies=played.latencies)]
    with gem.make_vec(GAME, wrappers, async_mode=True, num_envs=envs) as vec:
        vec.reset(seed=0)
        vec.step([CALL] * envs)
        played.latencies.clear()
        yield vec


def play(vec: Any, calls: int, played: Played, midway: Callable[[], None] | None = None) -> None:
    """Make the calls, evenly spread over the slots; call midway() when half of them have returned."""
    envs = len(vec)
    left = [calls // envs + (slot < calls % envs) - 1 for slot in range(envs)]
    back = 0
    start = time.perf_counter()
    vec.send([CALL] * envs)
    while back < calls:
        ids, step = vec.recv(min_envs=1)
        for observation, info in zip(step.observations_B, step.infos_B, strict=True):
            last = info.get("final_info", {})
            if "failure" in last:
                played.failures.append(last["failure"])
            else:
                assert ANSWER in observation, observation
                played.answered += 1
        back += len(ids)
        again = [slot for slot in ids if left[slot]]
        for slot in again:
            left[slot] -= 1
        if again:
            vec.send([CALL] * len(again), ids=again)
        if midway is not None and back >= calls // 2:
            midway = midway()
    played.seconds += time.perf_counter() - start


def one_environment(scale: Scale) -> list[Line]:
    rounds = []
    with counted() as (tool, _):
        for _ in range(scale.rounds):
            played = Played()
            with opened(tool.spawn(), 1, played) as vec:
                play(vec, scale.calls // 4, played)
            rounds.append(played)
    return [
        Line("1 env: p50", [played.percentile(50) for played in rounds], "ms"),
        Line("1 env: calls/s", [played.answered / played.seconds for played in rounds], "calls/s"),
    ]


def many_environments(scale: Scale, *, shared: bool) -> list[Line]:
    name = f"{scale.envs} envs, {'one server' if shared else 'a server each'}"
    rounds, servers = [], []
    for _ in range(scale.rounds):
        played = Played()
        with counted(shared=shared) as (tool, started), opened(tool, scale.envs, played) as vec:
            play(vec, scale.calls, played)
            servers.append(float(len(started())))
        rounds.append(played)
    wanted = 1.0 if shared else float(scale.envs)
    return [
        Line(f"{name}: p50", [played.percentile(50) for played in rounds], "ms"),
        Line(f"{name}: p99", [played.percentile(99) for played in rounds], "ms"),
        Line(f"{name}: calls/s", [played.answered / played.seconds for played in rounds], "calls/s"),
        Line(
            f"{name}: calls answered",
            [float(played.answered) for played in rounds],
            "",
            each=(scale.calls, scale.calls),
        ),
        Line(f"{name}: servers started", servers, "", each=(wanted, wanted)),
    ]


def killed(scale: Scale, *, shared: bool) -> list[Line]:
    """Kill a server when half of the calls have returned."""
    name = f"{'the' if shared else 'one'} server killed" + (", shared" if shared else "")
    failures, others, restarts, after = [], [], [], []
    for _ in range(scale.rounds):
        played, later = Played(), Played()
        with counted(shared=shared) as (tool, started), opened(tool, scale.envs, played) as vec:
            before = started()
            play(vec, scale.calls, played, midway=lambda: os.kill(before[0], signal.SIGKILL))  # noqa: B023
            play(vec, scale.envs, later)
            failures.append(float(len(played.failures)))
            typed = sum("ToolError" in failure and "lost" in failure for failure in played.failures)
            others.append(float(scale.calls - played.answered - typed))
            restarts.append(float(len(started()) - len(before)))
            after.append(float(later.answered))
    most = scale.envs if shared else 1
    return [
        Line(f"{name}: calls failed with ToolError", failures, "", each=(1, most)),
        Line(f"{name}: calls otherwise lost", others, "", each=(0, 0)),
        Line(f"{name}: servers restarted", restarts, "", each=(1, 1)),
        Line(f"{name}: calls answered afterwards, of {scale.envs}", after, "", each=(scale.envs, scale.envs)),
    ]


def server_per_call(scale: Scale) -> list[Line]:
    seconds = []
    with counted() as (tool, _):
        call = ToolCall("days_in_month", {"date": "2024-02-03"})
        for _ in range(NEW_SERVERS):
            tool.close()
            start = time.perf_counter()
            assert re.search("29", tool.call(call).text)
            seconds.append(1e3 * (time.perf_counter() - start))
    return [Line("a new server for each call, 1 env", seconds, "ms")]


PARTS: dict[str, Callable[[Scale], list[Line]]] = {
    "one": one_environment,
    "new": server_per_call,
    "each": partial(many_environments, shared=False),
    "shared": partial(many_environments, shared=True),
    "killed": partial(killed, shared=False),
    "killed shared": partial(killed, shared=True),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help=f"run the parts whose name contains this text: {', '.join(PARTS)}")
    args = parser.parse_args()
    scale = Scale(envs=8, calls=200, rounds=1) if args.quick else Scale()
    lines = [line for name, part in PARTS.items() if args.only in name for line in part(scale)]
    how_much = f"{scale.calls:,} calls from {scale.envs} environments, {scale.rounds} rounds"
    return report("MCP", how_much, lines)


if __name__ == "__main__":
    sys.exit(main())
