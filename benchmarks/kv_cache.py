"""Sampling in games of several turns, with and without the keys and values of earlier turns.

The model is randomly initialized and samples replies, of which only the end token is left out; the game is played by
random legal actions, so that both ways have the same contexts. Runs alternate.

    python benchmarks/kv_cache.py > benchmarks/results/kv_cache.md
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence

import torch

from gem.policies import Reply, Request
from gem.rl.data.imitation import RandomTextPolicy
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.tiny import build_model, build_tokenizer, collect_corpus
from gem.rollout import collect
from gem.vector import make_vec

RUNS, SLOTS = 3, 32
ENVS = {"game:GuessTheNumber-v0-hard": 8, "game:Wordle-v0": 12}  # tokens of a reply
SHAPES = {"tiny (hidden 64, 2 layers)": (64, 2), "small (hidden 256, 4 layers)": (256, 4)}


class Timed(RandomTextPolicy):
    """Plays random legal actions, and measures the CPU time of sampling replies in the same contexts."""

    def __init__(self, policy: CausalLMPolicy) -> None:
        super().__init__(policy)
        self.policy, self.seconds, self.tokens, self.turns = policy, 0.0, 0, 0

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        started = time.process_time()
        replies = self.policy.act(requests)
        self.seconds += time.process_time() - started
        self.tokens += sum(len(reply.sampled_ids) for reply in replies)
        self.turns += len(requests)
        return super().act(requests)


def main() -> None:
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(ENVS)
    print(f"Sampled tokens per CPU second, one thread, {SLOTS} slots, {RUNS} alternating runs of {SLOTS} episodes.\n")
    print("Command: `python benchmarks/kv_cache.py`\n")
    print("| environment | turns | last prompt | model | kept: min, median, max | not kept | ratio of medians |")
    print("|---|---|---|---|---|---|---|")
    for env_id in names:
        corpus = collect_corpus(env_id, seed=0)
        tokenizer = build_tokenizer([*corpus.observations, *corpus.actions])
        for name, (hidden, layers) in SHAPES.items():
            model = build_model(tokenizer, 0, hidden=hidden, layers=layers, context=8192)
            rates: dict[int, list[float]] = {1024: [], 0: []}
            for run in range(RUNS + 1):
                for mib in rates:
                    player = CausalLMPolicy(model, tokenizer, max_new_tokens=ENVS[env_id], kv_cache_mib=mib)
                    player.stop_ids = []
                    timed = Timed(player)
                    with make_vec(env_id, num_envs=SLOTS, seed=1) as vec_env:
                        played = collect(vec_env, timed, episodes=SLOTS)
                    if run:  # the first run warms up
                        rates[mib].append(timed.tokens / timed.seconds)
            turns = statistics.fmean(len(t.turns) for t in played)
            last = statistics.fmean(len(t.turns[-1].prompt_ids) for t in played)
            cells = [f"{min(r):,.0f}, {statistics.median(r):,.0f}, {max(r):,.0f}" for r in rates.values()]
            ratio = statistics.median(rates[1024]) / statistics.median(rates[0])
            print(
                f"| {env_id} | {turns:.1f} | {last:.0f} | {name} | {cells[0]} | {cells[1]} | {ratio:.2f} |", flush=True
            )
    print(f"\n{sys.platform}, torch {torch.__version__}.")


if __name__ == "__main__":
    main()
