"""A model on a GPU, in at most nine minutes: time of a decode step, a rollout, an update and of learning, and memory.

Decode steps are those of 64, 256 and 512 replies of 64 tokens. Besides CausalLMPolicy, whose steps are CUDA graphs,
they are measured without graphs, with `model.generate` of transformers, and with its static cache, which compiles for a
minute or two and is left out if --seconds are nearly over. Rollouts and updates are the last three of five. Learning
ends when a greedy evaluation on GuessTheNumber-easy is won entirely, twice in a row, or after three minutes.

    python benchmarks/gpu.py --model FOLDER
    python benchmarks/gpu.py --tiny --device cpu   # a random model and small batches, to try the script
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from gem.messages import user
from gem.policies import Request
from gem.rl.config import TrainConfig
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.sampling import pad_left
from gem.rl.run.build import build_policy
from gem.rl.run.trainer import Trainer
from table import Line, report

BATCHES, SECONDS_TO_COMPILE, MINUTES_TO_LEARN = 5, 120.0, 3.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model; default: the embedded model")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--tiny", action="store_true", help="few rows, tokens and episodes")
    args = parser.parse_args()
    ends, tokens = time.monotonic() + args.seconds, 8 if args.tiny else 64
    config = TrainConfig(
        model=args.model,
        device=args.device,
        batch=8 if args.tiny else 256,
        minibatch=4 if args.tiny else 64,
        max_new_tokens=8 if args.tiny else 32,
        steps=BATCHES,
        eval_every=BATCHES,
        eval_episodes=8 if args.tiny else 64,
        imitation_steps=2 if args.tiny else None,
        out=tempfile.mkdtemp(),
    )
    policy = build_policy(config)
    lines = decode_steps(policy, [2, 4, 8] if args.tiny else [64, 256, 512], tokens)
    lines += [Line("memory of sampling, peak", [peak_mib(policy)], "MiB")]
    del policy
    lines += rollout_and_update(config)
    lines += learning(replace(config, steps=2 if args.tiny else 200, out=tempfile.mkdtemp()))
    if time.monotonic() + SECONDS_TO_COMPILE < ends:
        lines += static_cache(build_policy(config), 4 if args.tiny else 256, tokens)
    name = torch.cuda.get_device_name() if args.device.startswith("cuda") else args.device
    return report("A model on a GPU", f"{args.model or 'the embedded model'}, {name}, torch {torch.__version__}", lines)


def decode_steps(policy: CausalLMPolicy, sizes: list[int], tokens: int) -> list[Line]:
    graphs, eager = endless(policy, tokens), endless(policy, tokens)
    eager._decode_graphs = lambda: None  # type: ignore[method-assign]
    lines = []
    for rows in sizes:
        first = seconds(policy, lambda rows=rows: graphs.act(asked(graphs, rows)))
        lines.append(Line(f"{rows} rows: first batch, with captures", [first], "s", 5.0, at_most=True))
        own = per_step(policy, tokens, lambda count, rows=rows: act(graphs, rows, count))
        lines.append(Line(f"{rows} rows: CausalLMPolicy", own, "ms per decode step", 10.0, at_most=True))
        plain = per_step(policy, tokens, lambda count, rows=rows: act(eager, rows, count))
        lines.append(Line(f"{rows} rows: without graphs", plain, "ms per decode step"))
        other = per_step(policy, tokens, lambda count, rows=rows: generate(policy, rows, count))
        lines.append(Line(f"{rows} rows: model.generate", other, "ms per decode step"))
    return lines


def static_cache(policy: CausalLMPolicy, rows: int, tokens: int) -> list[Line]:
    def run(count: int) -> Any:
        return generate(policy, rows, count, cache_implementation="static")

    compiling = seconds(policy, lambda: run(tokens))
    lines = [Line(f"{rows} rows: model.generate, static cache, first batch", [compiling], "s")]
    return [
        *lines,
        Line(f"{rows} rows: model.generate, static cache", per_step(policy, tokens, run), "ms per decode step"),
    ]


def rollout_and_update(config: TrainConfig) -> list[Line]:
    with Trainer.start(config) as trainer:
        rows: list[dict[str, Any]] = []
        trainer.run(rows.append)
        peak = peak_mib(trainer.policy)
    last = rows[-3:]
    collect, learn = ([row["time"][f"{part}_seconds"] for row in last] for part in ("collect", "learn"))
    gaps = [1000 * row["sampler_gap"] for row in last if row["sampler_gap"] is not None]
    return [
        Line(f"rollout of {config.batch} episodes", collect, "s", 0.6, at_most=True),
        Line(f"update of {config.batch} episodes", learn, "s", 0.35, at_most=True),
        Line("sampler_gap", gaps, "nats per 1,000 tokens", 10.0, at_most=True),
        Line("memory of training, peak", [peak], "MiB"),
    ]


def learning(config: TrainConfig) -> list[Line]:
    config = replace(config, max_new_tokens=None, eval_every=3, until="greedy=1", minutes=MINUTES_TO_LEARN)
    with Trainer.start(config) as trainer:
        rows: list[dict[str, Any]] = []
        trainer.run(rows.append)
    solved = f"to greedy success 1, {trainer.update} updates" if trainer.reached else "ended before greedy success 1"
    scores = [row["eval"]["greedy"]["success"] for row in rows if "eval" in row]
    return [
        Line(f"learning, with start and warm-up, {solved}", [rows[-1]["time"]["seconds"]], "s", 90.0, at_most=True),
        Line("greedy success of the evaluations", scores, ""),
    ]


def endless(policy: CausalLMPolicy, tokens: int) -> CausalLMPolicy:
    """Return a policy whose replies all have that many tokens, and which keeps no contexts."""
    other = policy.variant(max_new_tokens=tokens)
    other.stop_ids, other._kept.limit = [], 0
    return other


def asked(policy: CausalLMPolicy, rows: int) -> list[Request]:
    ids = policy.chat.prompt([user("Guess a number between 1 and 10.")])
    return [Request("", ids, (slot, 0, 0), str) for slot in range(rows)]


def act(policy: CausalLMPolicy, rows: int, tokens: int) -> None:
    policy.max_new_tokens = tokens
    policy.act(asked(policy, rows))


def generate(policy: CausalLMPolicy, rows: int, tokens: int, **more: Any) -> None:
    ids_BT, attend_BT = pad_left([list(r.prompt_ids) for r in asked(policy, rows)], policy.pad_id)
    ids_BT, attend_BT = ids_BT.to(policy.model.device), attend_BT.to(policy.model.device)
    options = {"do_sample": True, "top_k": 0, "min_new_tokens": tokens, "max_new_tokens": tokens, **more}
    with torch.no_grad(), policy._precision():
        policy.model.generate(input_ids=ids_BT, attention_mask=attend_BT, pad_token_id=policy.pad_id, **options)


def per_step(policy: CausalLMPolicy, tokens: int, run: Callable[[int], Any]) -> list[float]:
    """Return milliseconds per decode step of three runs: the time of all tokens without that of the first."""
    run(tokens)
    runs = [(seconds(policy, lambda: run(tokens)), seconds(policy, lambda: run(1))) for _ in range(3)]
    return [1000 * (whole - first) / (tokens - 1) for whole, first in runs]


def seconds(policy: CausalLMPolicy, run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    if policy.model.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def peak_mib(policy: CausalLMPolicy) -> float:
    return torch.cuda.max_memory_allocated() / 2**20 if policy.model.device.type == "cuda" else 0.0


if __name__ == "__main__":
    sys.exit(main())
