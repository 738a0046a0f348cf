"""Throughput of what the adapters play episodes with, against that of gem.rollout, with a slow engine.

  python benchmarks/integrations.py           5 rounds, about a minute
  python benchmarks/integrations.py --quick   2 rounds

All play the same episodes of GuessTheNumber, with 64 requests in flight to a stand-in for an engine, which replies with
token ids after 20 ms and runs any number of requests at once. gem.rollout asks it from 64 slots. EpisodePool asks it
from 64 tasks of the event loop, each of which plays one episode after the other, as the adapters for RL2, slime, verl,
AReaL and OpenRLHF do; play_tasks() from 64 slots, as those for TRL and Oat do. Wall-clock time; ratios are paired by
round. Exit code 1 if the aim is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Any

from gem.conversation import ChatFormat
from gem.integrations.shared.tasks import EnvTask, EpisodePool, make_tasks, play_tasks
from gem.policies import Reply, Request
from gem.rollout import play_seeds
from gem.trajectory import Trajectory
from gem.vector import VectorEnv
from table import Line, ratios, report

IN_FLIGHT, SECONDS, EPISODES = 64, 0.02, 1024


class CharTokenizer:
    """One token per character."""

    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = "\x03", 3

    def apply_chat_template(self, messages: Any, tokenize: bool, add_generation_prompt: bool) -> str:
        said = [f"\x02{m['content']}\x03" if m["role"] == "assistant" else f"\x01{m['content']}" for m in messages]
        return "".join(said) + ("\x02" if add_generation_prompt else "")

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return list(map(ord, text))

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        return "".join(map(chr, ids))


def guess(request: Request) -> Reply:
    """A guess that depends on the episode and the turn only."""
    text = rf"\boxed{{{request.key[1] * 7 % 10 + 1 if not request.key[2] else request.key[2] * 3 % 10 + 1}}}"
    ids = [*map(ord, text), CharTokenizer.eos_token_id]
    return Reply(text, ids, [-0.5] * len(ids))


class SlowEngine:
    """A policy whose replies take SECONDS each, in an event loop of its own. It counts the requests in flight."""

    version, max_prompt_tokens = 0, None

    def __init__(self) -> None:
        self.chat, self.loop, self.flying, self.most = ChatFormat(CharTokenizer()), asyncio.new_event_loop(), 0, 0
        self.thread = Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [future.result() for future in list(map(self.submit, requests))]

    def submit(self, request: Request) -> Future[Reply]:
        return asyncio.run_coroutine_threadsafe(self.reply(request), self.loop)

    async def reply(self, request: Request) -> Reply:
        self.flying += 1
        self.most = max(self.most, self.flying)
        await asyncio.sleep(SECONDS)
        self.flying -= 1
        return guess(request)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


def by_rollout(engine: SlowEngine, tasks: list[EnvTask]) -> list[Trajectory]:
    with VectorEnv.of([tasks[0].build] * IN_FLIGHT, "disabled") as vec_env:
        return play_seeds(vec_env, engine, [task.seed for task in tasks])


def by_batch(engine: SlowEngine, tasks: list[EnvTask]) -> list[Trajectory]:
    played, failed = play_tasks(tasks, engine, max_slots=IN_FLIGHT)
    assert not failed
    return played


def by_pool(engine: SlowEngine, tasks: list[EnvTask]) -> list[Trajectory]:
    """The engine is in the event loop of the episodes, as those of the frameworks are."""
    pool, waiting, played = EpisodePool(CharTokenizer()), iter(enumerate(tasks)), dict[int, Trajectory]()
    flying = 0

    async def reply(request: Request) -> Reply:
        nonlocal flying
        flying += 1
        engine.most = max(engine.most, flying)
        await asyncio.sleep(SECONDS)
        flying -= 1
        return guess(request)

    async def slot() -> None:
        for i, task in waiting:
            played[i] = await pool.play(task, reply)

    async def slots() -> None:
        await asyncio.gather(*(slot() for _ in range(IN_FLIGHT)))

    asyncio.run(slots())
    pool.close()
    return [played[i] for i in range(len(tasks))]


SIDES = {"gem.rollout": by_rollout, "EpisodePool": by_pool, "play_tasks, for TRL": by_batch}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 rounds instead of 5")
    rounds = 2 if parser.parse_args().quick else 5
    rates: dict[str, list[float]] = {name: [] for name in SIDES}
    tasks = make_tasks("game:GuessTheNumber-v0-easy", EPISODES)
    for number in range(rounds):
        for name in sorted(SIDES, reverse=bool(number % 2)):
            engine = SlowEngine()
            started = time.perf_counter()
            played = SIDES[name](engine, tasks)
            rates[name].append(sum(len(episode.turns) for episode in played) / (time.perf_counter() - started))
            engine.close()
            assert engine.most == IN_FLIGHT, f"{name} had {engine.most} requests in flight"
            assert [episode.seed for episode in played] == [task.seed for task in tasks]
    lines = [Line(name, values, "turns/s") for name, values in rates.items()]
    base = rates["gem.rollout"]
    lines += [Line(f"{n} / gem.rollout", ratios(v, base), "×", 0.95) for n, v in rates.items() if n != "gem.rollout"]
    what = f"{EPISODES:,} episodes a round, {IN_FLIGHT} requests in flight, {1000 * SECONDS:g} ms each"
    return report("Adapters with a slow engine", what, lines)


if __name__ == "__main__":
    sys.exit(main())
