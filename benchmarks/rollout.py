"""The cost of collecting episodes, as a multiple of a hand-written loop over the same environments.

  python benchmarks/rollout.py             60 rounds, less than a minute
  python benchmarks/rollout.py --quick     10 rounds
  python benchmarks/rollout.py --games     games of two seats against slots of one agent, 5 rounds, 3 minutes

Each round times, in turn: a loop that steps the environments and resets those that ended; a loop that also queries a
policy and records its turns; the vector environment alone; and the collector. All play the same script on 64 slots.
Times are CPU times, and ratios are paired by round, so that other load on the machine affects both sides alike. Exit
code 1 if a target is missed.

--games: a stand-in for an engine takes a time in proportion to the number of tokens of a reply, which is drawn. In
turn, it plays both seats of 128 games of TicTacToe (play_games), and 128 slots with one seat each (play_each).
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count
from threading import Thread
from typing import Any

import gem
from gem.policies import Reply, Request, ScriptedPolicy
from gem.rollout import Collector, Match, play_games
from gem.rollout.play import play_each
from gem.trajectory import Trajectory, Turn
from gem.wrappers import get_wrapper_fns
from table import Line, ratios, report

SLOTS, STEPS = 64, 28  # steps per slot and measurement, which is a batch of the collector
GUESSES = [rf"\boxed{{{n}}}" for n in (25, 12, 37, 6, 44, 18, 31)]
CODES = [rf"\boxed{{{code}}}" for code in ("1234", "2345", "3456", "4561", "5612", "6123")]
WORDS = [rf"\boxed{{{word}}}" for word in ("crane", "slate", "pound", "might", "jumpy", "black")]
CASES = {  # name: environment, wrappers, script
    "GuessTheNumber": ("game:GuessTheNumber-v0", "", GUESSES),
    "GuessTheNumber, concat": ("game:GuessTheNumber-v0", "concat", GUESSES),
    "Mastermind": ("game:Mastermind-v0", "", CODES),
    "Wordle": ("game:Wordle-v0", "", WORDS),
}


def make_envs(env_id: str, wrappers: str) -> list[Any]:
    envs: list[Any] = []
    for seed in range(SLOTS):
        env: Any = gem.make(env_id, seed=seed)
        for wrap in get_wrapper_fns(wrappers):
            env = wrap(env)
        env.reset()
        envs.append(env)
    return envs


def raw_loop(env_id: str, wrappers: str, script: list[str]) -> Callable[[], int]:
    envs, turns, last = make_envs(env_id, wrappers), [0] * SLOTS, len(script) - 1

    def step() -> int:
        for slot, env in enumerate(envs):
            _, _, terminated, truncated, _ = env.step(script[min(turns[slot], last)])
            turns[slot] += 1
            if terminated or truncated:
                turns[slot] = 0
                env.reset()
        return SLOTS

    return step


def recording_loop(env_id: str, wrappers: str, script: list[str]) -> Callable[[], int]:
    """A loop that does by hand what the collector does for a text policy: one act() per step, and one Turn per slot."""
    envs, policy = make_envs(env_id, wrappers), ScriptedPolicy(script)
    observations: list[Any] = [env.reset()[0] for env in envs]
    episodes: list[list[Turn]] = [[] for _ in envs]

    def step() -> int:
        replies = policy.act(
            [
                Request(o, [], (i, 0, len(t)), str, t)
                for i, (o, t) in enumerate(zip(observations, episodes, strict=True))
            ]
        )
        for slot, (env, reply) in enumerate(zip(envs, replies, strict=True)):
            observation, reward, terminated, truncated, _ = env.step(reply.text)
            episodes[slot].append(Turn(observations[slot], reply.text, reward=reward))
            observations[slot] = observation
            if terminated or truncated:
                observations[slot], _ = env.reset()
                episodes[slot] = []
        return SLOTS

    return step


def vector_loop(env_id: str, wrappers: str, script: list[str]) -> Callable[[], int]:
    vec_env = gem.make_vec(env_id, get_wrapper_fns(wrappers), [{"seed": seed} for seed in range(SLOTS)], backend="sync")
    vec_env.reset()
    turns, last = [0] * SLOTS, len(script) - 1

    def step() -> int:
        result = vec_env.step([script[min(turn, last)] for turn in turns])
        for slot, ended in enumerate((result.terminated_B | result.truncated_B).tolist()):
            turns[slot] = 0 if ended else turns[slot] + 1
        return SLOTS

    return step


def collector_loop(env_id: str, wrappers: str, script: list[str]) -> Callable[[], int]:
    vec_env = gem.make_vec(env_id, get_wrapper_fns(wrappers), [{"seed": seed} for seed in range(SLOTS)], backend="sync")
    collector, policy = Collector(vec_env), ScriptedPolicy(script)

    def step() -> int:
        return sum(len(episode.turns) for episode in collector.collect(policy, transitions=SLOTS * STEPS))

    return step


def measure(case: str, rounds: int) -> list[Line]:
    loops = {
        "raw loop": raw_loop,
        "recording loop": recording_loop,
        "vector": vector_loop,
        "collector": collector_loop,
    }
    steps = {name: make(*CASES[case]) for name, make in loops.items()}
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, step in steps.items():
            start, done = time.process_time(), 0
            while done < STEPS * SLOTS:
                done += step()
            seconds[name].append(1e6 * (time.process_time() - start) / done)
    raw = seconds["raw loop"]
    return [
        Line(f"{case}: raw loop", raw, "µs of CPU per step"),
        Line(f"{case}: vector / raw loop", ratios(seconds["vector"], raw), "×"),
        Line(f"{case}: collector / raw loop", ratios(seconds["collector"], raw), "×", 2.0, True),
        Line(f"{case}: collector / recording loop", ratios(seconds["collector"], seconds["recording loop"]), "×"),
    ]


class Engine:
    """A policy with submit() that plays random legal moves, and takes TOKEN_SECONDS for each token of a reply."""

    chat = max_prompt_tokens = None
    version = 0

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.tokens = self.flying = self.replies = 0
        self.area = 0.0  # requests in flight times seconds
        self.since = time.perf_counter()

    def act(self, requests: list[Request]) -> list[Reply]:
        return [future.result() for future in list(map(self.submit, requests))]

    def submit(self, request: Request) -> Future[Reply]:
        tokens = random.Random(repr(request.key)).randint(*TOKENS)
        return asyncio.run_coroutine_threadsafe(self.reply(request.sample_random_action(), tokens), self.loop)

    async def reply(self, text: str, tokens: int) -> Reply:
        self.count(1)
        await asyncio.sleep(tokens * TOKEN_SECONDS)
        self.count(-1)
        self.tokens += tokens
        self.replies += 1
        return Reply(text)

    def count(self, change: int) -> None:
        now = time.perf_counter()
        self.area += self.flying * (now - self.since)
        self.since, self.flying = now, self.flying + change

    def measure(self, played: Iterator[Any]) -> dict[str, float]:
        """Let an endless iterator play for ROUND_SECONDS after a start."""
        started = None
        for _ in played:
            now = time.perf_counter()
            if started is None:  # the first has ended: all have begun
                started, cpu = now, time.process_time()
                self.tokens, self.area, self.since, self.replies = 0, 0.0, now, 0
            elif now - started >= ROUND_SECONDS:
                break
        assert started is not None
        seconds = time.perf_counter() - started
        found = {"tokens/s": self.tokens / seconds, "in flight": self.area / seconds}
        found["µs"] = 1e6 * (time.process_time() - cpu) / self.replies
        played.close()  # type: ignore[attr-defined]
        asyncio.run_coroutine_threadsafe(self.cancel_all(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        return found

    async def cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


TOKENS, TOKEN_SECONDS, ROUND_SECONDS, AT_ONCE = (4, 60), 0.05, 10.0, 128
TWO_SEATS = "board:TicTacToe-v0"


def games_of_two_seats() -> dict[str, float]:
    engine = Engine()
    matches = (Match(n, n, {"player_0": engine, "player_1": engine}) for n in count())
    return engine.measure(play_games(lambda: gem.make(TWO_SEATS, opponent=None), matches, concurrency=AT_ONCE))


def slots_of_one_agent() -> dict[str, float]:
    engine = Engine()
    with gem.make_vec([TWO_SEATS] * AT_ONCE, autoreset="disabled", backend="sync") as vec_env:
        episodes = (Trajectory(None, episode=n, seed=n) for n in range(10**5))
        return engine.measure(play_each(vec_env, engine, episodes))


def compare_games(rounds: int) -> int:
    sides = {"games of two seats": games_of_two_seats, "slots of one agent": slots_of_one_agent}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in sorted(sides, reverse=bool(number % 2)):
            found[name].append(sides[name]())
    values = {(name, key): [each[key] for each in rows] for name, rows in found.items() for key in rows[0]}
    games, slots = sides
    lines = [Line(f"{name}: {key}", row, "") for (name, key), row in values.items() if key != "µs"]
    lines += [Line(f"{name}: CPU per turn", values[name, "µs"], "µs") for name in sides]
    lines.append(
        Line("games / slots, tokens/s", ratios(values[games, "tokens/s"], values[slots, "tokens/s"]), "×", 0.9)
    )
    return report("Games of two seats, one policy", f"{rounds} rounds of {ROUND_SECONDS:g} s, {AT_ONCE} at once", lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 rounds instead of 60")
    parser.add_argument("--games", action="store_true", help="compare games of two seats with slots of one agent")
    args = parser.parse_args()
    if args.games:
        return compare_games(2 if args.quick else 5)
    rounds = 10 if args.quick else 60
    return report("Rollout", f"{rounds} rounds", [line for case in CASES for line in measure(case, rounds)])


if __name__ == "__main__":
    sys.exit(main())
