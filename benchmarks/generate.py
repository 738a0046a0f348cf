"""Sampling replies in a game beside `model.generate` of transformers, from the same prompts.

Prompts are those of the first three turns of episodes with random legal actions, a batch per turn. Replies are sampled
at temperature 1; after one token of eight they end, so that they have about seven tokens, and at most 16. Runs
alternate; times are CPU seconds of one thread. CausalLMPolicy is measured with and without contexts that are kept
between turns.

    python benchmarks/generate.py > benchmarks/results/generate.md
    python benchmarks/generate.py --model FOLDER --rows 4 --repeats 3
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import torch
import transformers

from gem.policies import Request
from gem.rl.data.imitation import RandomTextPolicy
from gem.rl.model.loading import load_pretrained
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.sampling import pad_left
from gem.rl.model.tiny import build_tokenizer, collect_corpus
from gem.rollout import collect
from gem.vector import make_vec
from table import Line, ratios, report

ENV, TURNS, LONGEST, AIM = "game:GuessTheNumber-v0-hard", 3, 16, 1.3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model; default: a random Llama of a fifth of SmolLM2-135M's size")
    parser.add_argument("--rows", type=int, nargs="+", default=[4, 64])
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = load_pretrained(args.model) if args.model else small_llama()
    end_by_token(model, CausalLMPolicy(model, tokenizer, max_new_tokens=LONGEST).chat.eos_id)
    lines = []
    for rows in args.rows:
        turns = play(CausalLMPolicy(model, tokenizer, max_new_tokens=LONGEST), rows)
        kinds: dict[str, list[float]] = {"model.generate": [], "kept": [], "not kept": []}
        for repeat in range(args.repeats + 1):
            for kind, found in kinds.items():
                kept = 1024 if kind == "kept" else 0
                policy = CausalLMPolicy(model, tokenizer, max_new_tokens=LONGEST, seed=repeat, kv_cache_mib=kept)
                sample = by_generate if kind == "model.generate" else by_policy
                started = time.process_time()
                tokens = sum(sample(policy, requests) for requests in turns)
                if repeat:  # the first run warms up
                    found.append(tokens / (time.process_time() - started))
        baseline = kinds["model.generate"]
        lines.append(Line(f"{rows} rows: model.generate", baseline, "tokens per CPU s"))
        for kind in ("not kept", "kept"):
            lines.append(Line(f"{rows} rows: CausalLMPolicy, contexts {kind}", kinds[kind], "tokens per CPU s"))
            lines.append(Line(f"{rows} rows, contexts {kind}: ratio", ratios(kinds[kind], baseline), "", aim=AIM))
    size = sum(p.numel() for p in model.parameters()) / 1e6
    return report(
        "Sampling replies in a game", f"{size:.0f} M parameters, {ENV}, {args.repeats} alternating runs", lines
    )


def small_llama() -> tuple[Any, Any]:
    corpus = collect_corpus(ENV, seed=0)
    tokenizer = build_tokenizer([*corpus.observations, *corpus.actions], vocabulary=320)  # the rules are 67 tokens
    config = transformers.LlamaConfig(
        vocab_size=16384,
        hidden_size=384,
        intermediate_size=1024,
        num_hidden_layers=12,
        num_attention_heads=6,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).eval(), tokenizer


def end_by_token(model: Any, end: int) -> None:
    """Let a reply end after the tokens whose id is a multiple of 8, and only there."""

    def hook(module: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        ends = kwargs["input_ids"][:, -1] % 8 == 0
        out.logits[:, -1, end] = torch.where(ends, 1e4, -1e4).to(out.logits.dtype)

    model.register_forward_hook(hook, with_kwargs=True)


def play(policy: CausalLMPolicy, rows: int) -> list[list[Request]]:
    """Play episodes with random legal actions. Returns the requests of each turn."""
    with make_vec(ENV, num_envs=rows, seed=1) as vec_env:
        episodes = collect(vec_env, RandomTextPolicy(policy), episodes=rows)
    return [
        [Request("", e.turns[t].prompt_ids, (i, 0, t), str) for i, e in enumerate(episodes) if len(e.turns) > t]
        for t in range(TURNS)
    ]


def by_policy(policy: CausalLMPolicy, requests: list[Request]) -> int:
    """Return the number of sampled tokens."""
    return sum(len(reply.sampled_ids) for reply in policy.act(requests))


def by_generate(policy: CausalLMPolicy, requests: list[Request]) -> int:
    """Return the number of sampled tokens."""
    ids_BT, attend_BT = pad_left([list(r.prompt_ids) for r in requests], policy.pad_id)
    options = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": LONGEST}
    ends = {"eos_token_id": policy.stop_ids, "pad_token_id": policy.pad_id}
    drawn_BT = policy.model.generate(input_ids=ids_BT, attention_mask=attend_BT, **options, **ends)[
        :, ids_BT.shape[1] :
    ]
    end_BT = torch.isin(drawn_BT, torch.tensor(policy.stop_ids)).long()
    return int((end_BT.cumsum(-1) - end_BT == 0).sum())


if __name__ == "__main__":
    sys.exit(main())
