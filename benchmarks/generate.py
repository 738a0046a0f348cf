"""Generated tokens per CPU second: the sampler of gem.rl against model.generate of transformers, side by side.

Both sample at temperature 1 from the same randomly initialized model, with equal prompts, batch and length. End tokens
do not end a reply. Runs alternate.

    python benchmarks/generate.py > benchmarks/results/generate.md
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import torch

from gem.policies import Request
from gem.rl.metrics import peak_memory_mib
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.tiny import build_model, build_tokenizer

RUNS, PROMPT, NEW = 15, 64, 48
SHAPES = {"tiny (hidden 64, 2 layers)": (64, 2, 32), "small (hidden 256, 4 layers)": (256, 4, 16)}


def ours(policy: CausalLMPolicy, prompts: list[list[int]], number: int) -> int:
    replies = policy.act([Request("", ids, (slot, number, 0), str) for slot, ids in enumerate(prompts)])
    return sum(len(reply.sampled_ids) for reply in replies)


@torch.no_grad()
def theirs(model: Any, prompts: list[list[int]], pad_id: int) -> int:
    ids = torch.tensor(prompts)
    out = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        min_new_tokens=NEW,
        max_new_tokens=NEW,
        pad_token_id=pad_id,
        output_logits=True,  # log-probabilities need the logits; gem.rl records them as well
        return_dict_in_generate=True,
    )
    return int(out.sequences[:, ids.shape[1] :].numel())


def main() -> None:
    torch.set_num_threads(1)
    print("Tokens per CPU second, which other processes affect less than those per second; one thread, prompts of")
    print(f"{PROMPT} tokens, {NEW} new tokens, {RUNS} alternating runs.\n")
    print("Command: `python benchmarks/generate.py`\n")
    print("| model | batch | gem.rl: min, median, max | generate: min, median, max | ratio of medians |")
    print("|---|---|---|---|---|")
    for name, (hidden, layers, batch) in SHAPES.items():
        tokenizer = build_tokenizer(["Turn 1: 7 is too low."], vocabulary=512)
        model = build_model(tokenizer, 0, hidden=hidden, layers=layers).eval()
        policy = CausalLMPolicy(model, tokenizer, max_new_tokens=NEW)
        policy.stop_ids = []
        prompts = [[(7 * slot + t) % 200 + 10 for t in range(PROMPT)] for slot in range(batch)]
        rates: dict[str, list[float]] = {"ours": [], "theirs": []}
        for run in range(RUNS + 1):
            for which in rates:
                started = time.process_time()
                count = ours(policy, prompts, run) if which == "ours" else theirs(model, prompts, policy.pad_id)
                if run:  # the first run warms up
                    rates[which].append(count / (time.process_time() - started))
                assert count == batch * NEW
        cells = [f"{min(r):,.0f}, {statistics.median(r):,.0f}, {max(r):,.0f}" for r in rates.values()]
        ratio = statistics.median(rates["ours"]) / statistics.median(rates["theirs"])
        print(f"| {name} | {batch} | {cells[0]} | {cells[1]} | {ratio:.2f} |", flush=True)
    print(f"\n{sys.platform}, torch {torch.__version__}, peak memory {peak_memory_mib():,.0f} MiB.")


if __name__ == "__main__":
    main()
