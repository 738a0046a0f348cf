"""One policy update: its time, memory and use of the machine's arithmetic, beside a plain training step.

The plain step is ``model(**batch, labels=labels)`` on all sequences at once, padded, with ``backward()`` and AdamW. The
episodes are random legal play. Runs alternate.

    python benchmarks/update.py [MODEL [LORA_RANK]] > benchmarks/results/update.md

MODEL is a folder of a pretrained model; without it, the model is small and randomly initialized.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gem.rl.config import TrainConfig
from gem.rl.data.imitation import RandomTextPolicy
from gem.rl.estimate.batch import collate, pack
from gem.rl.model.loading import find_device, load_pretrained
from gem.rl.model.lora import ALL_LINEAR, add_lora
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.tiny import build_model, build_tokenizer, collect_corpus
from gem.rl.run.learner import Learner
from gem.rollout import collect
from gem.trajectory import Trajectory
from gem.vector import make_vec
from table import Line, ratios, report

RUNS, EPISODES = 3, 32
ENV = "game:GuessTheNumber-v0-easy"
DEVICE = find_device("auto")


def small() -> tuple[Any, Any]:
    """Return a model with random weights, and its tokenizer."""
    corpus = collect_corpus(ENV, seed=0)
    tokenizer = build_tokenizer([*corpus.observations, *corpus.actions])
    return build_model(tokenizer, 0, hidden=256, layers=4), tokenizer


def plain_step(policy: CausalLMPolicy, played: list[Trajectory]) -> Callable[[], None]:
    """Return a training step on the sampled tokens, as transformers computes it."""
    trained = [p for p in policy.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-6)

    def step() -> None:
        mb = collate(pack(played), policy.pad_id).to(policy.model.device)
        labels = mb.ids_BT.masked_fill(mb.mask_BT == 0, -100)
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16, enabled=policy.bf16):
            policy.model(input_ids=mb.ids_BT, attention_mask=mb.attend_BT, labels=labels).loss.backward()
        optimizer.step()
        if not optimizer.state:
            raise AssertionError("nothing was trained")

    return step


def measured(step: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of a step, on a CPU those of one core, and the GiB that it needs besides what is held."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # glibc keeps freed memory, which would count as held
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
        held, started = torch.cuda.memory_allocated(), time.perf_counter()
        step()
        torch.cuda.synchronize()
        return time.perf_counter() - started, (torch.cuda.max_memory_allocated() - held) / 2**30
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    held, started = resident("VmRSS"), time.process_time()
    step()
    return time.process_time() - started, (resident("VmHWM") - held) / 2**30


def resident(name: str) -> int:
    """Return the resident bytes of this process, now (VmRSS) or at the peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 2**10 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def multiplications(bf16: bool) -> float:
    """Return the floating-point operations per second of products of large matrices."""
    size, times = (8192, 20) if DEVICE == "cuda" else (2048, 4)
    a = torch.ones(size, size, device=DEVICE, dtype=torch.bfloat16 if bf16 else torch.float32)

    def multiply() -> None:
        for _ in range(times):
            a @ a

    multiply()
    return 2 * size**3 * times / measured(multiply)[0]


def main() -> int:
    torch.set_num_threads(1)
    model, tokenizer = load_pretrained(sys.argv[1]) if len(sys.argv) > 1 else small()
    rank = int(sys.argv[2]) if len(sys.argv) > 2 else None
    if rank is not None:
        add_lora(model, rank, ALL_LINEAR, seed=0)
    policy = CausalLMPolicy(model.to(DEVICE), tokenizer, max_new_tokens=32, bf16=DEVICE == "cuda")
    with make_vec(ENV, num_envs=EPISODES, seed=1) as vec_env:
        played = collect(vec_env, RandomTextPolicy(policy), episodes=EPISODES)
    tokens = sum(len(s.ids_T) for t in played for s in t.sequences())
    steps: dict[str, Callable[[], Any]] = {"plain step": plain_step(policy, played)}
    for kl in (0.0, 0.05):
        config = TrainConfig(env=ENV, batch=EPISODES, minibatch=EPISODES, kl=kl, learning_rate=1e-6)
        learner = Learner(config, policy)
        learner.begin()
        steps[f"update, kl={kl:g}"] = lambda learner=learner: learner.learn(played, 0)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    peaks = []
    for run in range(RUNS + 1):
        peak = multiplications(policy.bf16)
        results = {}
        for name, step in steps.items():
            model.zero_grad()
            results[name] = measured(step)
        if run:  # the first run warms up
            peaks.append(peak)
            for name, result in results.items():
                found[name].append(result)
    lines = [Line("product of large matrices", [peak / 1e9 for peak in peaks], "GFLOP/s")]
    # Two operations per weight and token forward, four backward; without a gradient of the weights, two backward.
    work = (4 if rank is not None else 6) * tokens * sum(p.numel() for p in model.parameters())
    plain = [seconds for seconds, _ in found["plain step"]]
    for name, values in found.items():
        seconds = [value for value, _ in values]
        lines.append(Line(name, seconds, "s"))
        lines.append(Line(f"{name}: tokens", [tokens / s for s in seconds], "1/s"))
        lines.append(
            Line(f"{name}: arithmetic of all tokens", ratios([work / s for s in seconds], peaks), "of product")
        )
        lines.append(Line(f"{name}: memory besides what is held", [gib for _, gib in values], "GiB"))
        if name != "plain step":
            lines.append(Line(f"{name} / plain step", ratios(seconds, plain), "ratio"))
    name = sys.argv[1].rstrip("/").rpartition("/")[2] if len(sys.argv) > 1 else "random weights"
    kind = "all weights" if rank is None else f"LoRA of rank {rank}"
    what = f"{tokens:,} tokens, {EPISODES} episodes, {name}, {kind}, {DEVICE}, torch {torch.__version__}"
    return report("A policy update", f"{what}, {RUNS} alternating runs", lines)


if __name__ == "__main__":
    sys.exit(main())
