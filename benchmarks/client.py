"""CPU time of the client of model endpoints per request, against a bare aiohttp loop.

  python benchmarks/client.py            5 repeats of 4,000 requests per client
  python benchmarks/client.py --quick    2 repeats of 1,000 requests

512 requests are in flight. The endpoint is an imitation in a process of its own that replies after 50 ms; only the CPU
time of the client's process counts. The bare loop posts the same bytes over one aiohttp session and parses the JSON.
"endpoint" is Endpoint.submit(), with its retries, limits and checks; "evaluation" is gem.evaluate() of an environment
with one turn, with the conversation, the environment, the record on disk and the report. Exit code 1 if the endpoint
takes more than twice the CPU time of the bare loop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from typing import Any

import aiohttp

import gem
from gem.core import Env, Step, StopReason
from gem.policies import Endpoint, EndpointPolicy
from gem.testing.fakes.endpoint import Answer, FakeEndpoint
from table import Line, ratios, report

IN_FLIGHT, LATENCY_S = 512, 0.05
MESSAGES = [{"role": "user", "content": "What is 6 times 7? " * 20}]


class OneTurn(Env):
    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        return MESSAGES[0]["content"], {}

    def step(self, action: str) -> Step:
        return Step("", 1.0, True, False, {"stop_reason": StopReason.SOLVED})


def serve(connection: Any) -> None:
    with FakeEndpoint([Answer(text="42", delay=LATENCY_S)]) as server:
        connection.send(server.url)
        connection.recv()


def bare(url: str, count: int) -> float:
    async def run() -> None:
        body = json.dumps({"model": "m", "messages": MESSAGES}).encode()
        semaphore = asyncio.Semaphore(IN_FLIGHT)
        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def post() -> None:
                headers = {"Content-Type": "application/json"}
                async with semaphore, session.post(url + "/chat/completions", data=body, headers=headers) as reply:
                    assert json.loads(await reply.read())["choices"]

            await asyncio.gather(*(post() for _ in range(count)))

    started = time.process_time()
    asyncio.run(run())
    return 1e3 * (time.process_time() - started) / count


def endpoint(url: str, count: int) -> float:
    started = time.process_time()
    with Endpoint(url, "m", concurrency=IN_FLIGHT) as client:
        for future in [client.submit(MESSAGES) for _ in range(count)]:
            assert future.result().text == "42"
    return 1e3 * (time.process_time() - started) / count


def evaluation(url: str, count: int) -> float:
    started = time.process_time()
    with Endpoint(url, "m", concurrency=IN_FLIGHT) as client, tempfile.TemporaryDirectory() as folder:
        policy = EndpointPolicy(client)
        scores = gem.evaluate(policy, "bench:OneTurn", limit=count, concurrency=IN_FLIGHT, out=f"{folder}/run").envs[0]
        assert scores.done == count
    return 1e3 * (time.process_time() - started) / count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    repeats, count = (2, 1000) if parser.parse_args().quick else (5, 4000)
    gem.register("bench:OneTurn", OneTurn)
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True).start()
    url = ours.recv()
    sides = {"bare aiohttp loop": bare, "endpoint": endpoint, "evaluation": evaluation}
    values: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            values[name].append(side(url, count))
    lines = [Line(name, found, "CPU ms/request") for name, found in values.items()]
    own, loop = values["endpoint"], values["bare aiohttp loop"]
    lines.append(Line("endpoint / bare loop", ratios(own, loop), "ratio", aim=2.0, at_most=True))
    lines.append(Line("evaluation / bare loop", ratios(values["evaluation"], loop), "ratio"))
    return report("CPU time of the client of model endpoints", f"{repeats} × {count:,} requests, 512 in flight", lines)


if __name__ == "__main__":
    sys.exit(main())
