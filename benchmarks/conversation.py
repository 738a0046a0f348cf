"""Memory and CPU time of long conversations: contexts are stored as differences, and a turn costs its new tokens.

  python benchmarks/conversation.py            1,000 turns, one minute
  python benchmarks/conversation.py --quick    200 turns

One episode with a reply and an observation of about 100 tokens each is played under an append-only chat template, with
a policy that samples given tokens. Each run has its own process. Two costs grow with the whole history by their nature
and are stated apart: a template that renders every prompt from scratch (a fifth of the turns), and the request body of
an endpoint, which contains the whole conversation. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gem.conversation import ChatFormat
from gem.core import Env, Step
from gem.policies import Reply, Request
from gem.rollout import play_seeds
from gem.vector import VectorEnv
from table import Line, ratios, report

ASSISTANT, END = "\x02", "\x03"
WORDS = "the number that you are looking for is higher than the one that you have just guessed, so try again. "


class CharTokenizer:
    """One token per character. A stand-in for a tokenizer with an append-only template, whose own time is small."""

    eos_token, eos_token_id = END, ord(END)

    def __init__(self, whole: bool) -> None:
        self.chat_template, self.whole = "see apply_chat_template", whole

    def apply_chat_template(self, messages: Any, tokenize: bool, add_generation_prompt: bool) -> str:
        parts = [
            f"{ASSISTANT}{message['content']}{END}" if message["role"] == "assistant" else f"\x01{message['content']}"
            for message in messages
        ]
        if self.whole:  # numbers the messages, and does not end replies with a token
            parts = [f"{i}{part.removesuffix(END)}" for i, part in enumerate(parts)]
        return "".join(parts) + (ASSISTANT if add_generation_prompt else "")

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return list(map(ord, text))

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        return "".join(map(chr, ids))


class TalkEnv(Env):
    def __init__(self, turns: int) -> None:
        self.turns = turns

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        self.state = 0
        return "rules", {}

    def step(self, action: str) -> Step:
        self.state += 1
        return Step(f"{self.state}: {WORDS}", terminated=self.state == self.turns)


class GivenPolicy:
    max_prompt_tokens, version = None, 0

    def __init__(self, whole: bool) -> None:
        self.chat = ChatFormat(CharTokenizer(whole))

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        replies = []
        for request in requests:
            ids = [0x1000 + i % 500 for i in range(request.key[2], request.key[2] + 99)] + [ord(END)]
            replies.append(Reply("reply", ids, [-0.5 - i for i in range(100)], "stop"))
        return replies


class MessagesPolicy:
    """Builds the body of the request that a chat endpoint gets."""

    chat, max_prompt_tokens, version = None, None, 0

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        from gem.conversation.history import conversation
        from gem.conversation.observations import as_messages

        for request in requests:
            json.dumps(conversation(request.turns, as_messages(request.observation), request.dropped))
        return [Reply(WORDS) for _ in requests]


POLICIES: dict[str, Callable[[], Any]] = {
    "append-only template": lambda: GivenPolicy(False),
    "template rendered from scratch": lambda: GivenPolicy(True),
    "request body of messages": MessagesPolicy,
}


def play(turns: int, case: str) -> tuple[float, float]:
    """Return the CPU seconds of one episode, with packing and writing it, and the growth of resident memory in MB."""
    policy = POLICIES[case]()
    play_seeds(VectorEnv.of([lambda: TalkEnv(3)], "disabled"), policy, [0])
    gc.collect()
    before, started = resident(), time.process_time()
    (episode,) = play_seeds(VectorEnv.of([lambda: TalkEnv(turns)], "disabled"), policy, [0])
    grown = resident() - before
    if policy.chat is not None:
        episode.sequences()
        episode.to_json()
    assert len(episode.turns) == turns
    return time.process_time() - started, grown


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 turns instead of 1,000")
    most = 200 if parser.parse_args().quick else 1000
    lines = []
    for case in POLICIES:
        turns = most // 5 if case == "template rendered from scratch" else most
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:  # memory of other runs
            runs = [[fresh.submit(play, length, case).result() for length in (turns // 2, turns)] for _ in range(3)]
        seconds = [whole for _, (whole, _) in runs]
        is_target = case == "append-only template"
        lines += [
            Line(f"{case}: {turns:,} turns", seconds, "s of CPU"),
            Line(
                f"{case}: {turns:,} turns / {turns // 2} turns",
                ratios(seconds, [half for (half, _), _ in runs]),
                "×",
                2.4 if is_target else 0.0,
                True,
            ),
            Line(f"{case}: memory", [grown for _, (_, grown) in runs], "MB", 60.0 if is_target else 0.0, True),
        ]
    return report("Long conversations", "3 rounds", lines)


if __name__ == "__main__":
    sys.exit(main())
