"""Throughput of rollouts with an endpoint that has slow replies and faults, against independent slots.

  python benchmarks/endpoint.py            2,000 episodes per side, a few minutes
  python benchmarks/endpoint.py --quick    300 episodes per side

The endpoint is an imitation in a process of its own: it replies to token prompts with token ids and log-probabilities,
with log-normal latency (median 50 ms, sigma 1), and 2 % each of status 500, time-outs, cut bodies, refusals and reset
connections. Both sides play the same episodes through the same client on 32 slots. Independent slots are 32 asyncio
tasks, each of which plays one episode after the other and records nothing. Every episode of the rollout must have
finished or failed with a cause, and its sequences must contain exactly the tokens and log-probabilities that the
endpoint sent. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gem.conversation import ChatFormat
from gem.core import Env, Step, StopReason
from gem.errors import EndpointError
from gem.messages import user
from gem.policies import Endpoint, EndpointPolicy
from gem.rollout import play_seeds
from gem.testing.fakes.endpoint import FakeEndpoint, FaultyModel
from gem.trajectory import Trajectory
from gem.vector import VectorEnv
from table import Line, report

SLOTS, TIMEOUT, LATENCY, FAULTS = 32, 2.0, 0.05, 0.02
ASSISTANT, END = "\x02", "\x03"


class CharTokenizer:
    """One token per character."""

    chat_template = "see apply_chat_template"
    eos_token, eos_token_id = END, ord(END)

    def apply_chat_template(self, messages: Any, tokenize: bool, add_generation_prompt: bool) -> str:
        said = [
            f"{ASSISTANT}{m['content']}{END}" if m["role"] == "assistant" else f"\x01{m['content']}" for m in messages
        ]
        return "".join(said) + (ASSISTANT if add_generation_prompt else "")

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return list(map(ord, text))

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        return "".join(map(chr, ids))


class TalkEnv(Env):
    """Takes 2 to 6 turns."""

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        self.state = self.rng.randint(2, 6)
        return f"task {seed}", {}

    def step(self, action: str) -> Step:
        self.state -= 1
        info = {"stop_reason": StopReason.SOLVED} if self.state == 0 else {}
        return Step(f"{action}? {self.state} left", float(self.state == 0), terminated=self.state == 0, info=info)


def serve(connection: Any) -> None:
    with FakeEndpoint(FaultyModel(faults=FAULTS, latency=LATENCY)) as fake:
        connection.send(fake.url)
        connection.recv()


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    with Endpoint(ours.recv(), "m", timeout=TIMEOUT, concurrency=SLOTS, backoff=0.05) as client:
        yield client
    ours.send(None)
    server.join(10.0)


def roll_out(client: Endpoint, episodes: int) -> tuple[float, list[Trajectory]]:
    """Return turns per second of rollouts, and the episodes."""
    policy = EndpointPolicy(client, tokenizer=CharTokenizer(), max_tokens=16)
    with VectorEnv.of([TalkEnv] * SLOTS, "disabled") as vec_env:
        started = time.perf_counter()
        played = play_seeds(vec_env, policy, range(episodes))
        seconds = time.perf_counter() - started
    return sum(len(episode.turns) for episode in played) / seconds, played


async def play_independently(client: Endpoint, episodes: int) -> float:
    """Return turns per second of independent slots."""
    seeds, chat = iter(range(episodes)), ChatFormat(CharTokenizer())
    turns = 0

    async def slot() -> None:
        nonlocal turns
        env = TalkEnv()
        for seed in seeds:
            observation, _ = env.reset(seed)
            context = chat.prompt([user(observation)])
            over = False
            while not over:
                try:
                    reply = await client.acomplete(
                        context, max_tokens=16, logprobs=1, return_token_ids=True, stop_token_ids=[chat.eos_id]
                    )
                except EndpointError:
                    break
                turns += 1
                if not reply.sampled_ids:
                    break
                step = env.step(chat.decode(reply.sampled_ids))
                over = step.terminated
                context = chat.extend(context, reply.sampled_ids, step.observation)

    started = time.perf_counter()
    await asyncio.gather(*(slot() for _ in range(SLOTS)))
    return turns / (time.perf_counter() - started)


def inexact(episode: Trajectory) -> bool:
    """Whether the sequences of an episode differ from what the endpoint was sent and replied."""
    turns = [turn for turn in episode.turns if turn.finish != "content_filter"]
    if any((turn.sampled_ids, turn.logprobs) != FaultyModel.reply(turn.prompt_ids) for turn in turns):
        return True
    sequences = episode.sequences()
    sampled = [
        (token, logp)
        for s in sequences
        for token, logp, mask in zip(s.ids_T, s.logprobs_T, s.loss_mask_T, strict=True)
        if mask
    ]
    expected = [row for turn in turns for row in zip(turn.sampled_ids, turn.logprobs, strict=True)]
    last = episode.turns[-1:]
    return sampled != expected or [s.ids_T for s in sequences] != [t.prompt_ids + t.sampled_ids for t in last]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="300 episodes instead of 2,000")
    episodes = 300 if parser.parse_args().quick else 2000
    rounds = 3  # each with its own share of the episodes
    ours, independent, played = [], [], []
    with endpoint() as client:
        for _ in range(rounds):
            independent.append(asyncio.run(play_independently(client, episodes // rounds)))
            rate, some = roll_out(client, -(-episodes // rounds))
            ours.append(rate)
            played += some
    causes = Counter("failed" if episode.failure else str(episode.stop_reason) for episode in played)
    lost = sum(not (episode.terminated or episode.truncated) for episode in played)
    lines = [
        Line("independent slots", independent, "turns/s"),
        Line("rollout", ours, "turns/s"),
        Line("rollout / independent slots", [a / b for a, b in zip(ours, independent, strict=True)], "×", 0.9),
        Line("episodes that neither finished nor failed", [lost], "", each=(0, 0)),
        Line("episodes whose sequences are inexact", [sum(map(inexact, played))], "", each=(0, 0)),
        *(Line(f"episodes that ended as {cause}", [count], "") for cause, count in sorted(causes.items())),
    ]
    return report("Rollouts with an endpoint", f"{len(played):,} episodes, {SLOTS} slots", lines)


if __name__ == "__main__":
    sys.exit(main())
