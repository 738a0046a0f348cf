"""What a training run is told. The command line's flags are these fields."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from gem.errors import BadValue


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


_LEAST = {
    **dict.fromkeys(["steps", "batch", "slots", "epochs", "minibatch", "max_new_tokens", "threads"], 1),
    **dict.fromkeys(["eval_every", "eval_episodes", "checkpoint_every"], 1),
    **dict.fromkeys(["seed", "kl", "entropy", "imitation_steps", "keep_trajectories"], 0),
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """A training run: REINFORCE over turns with batch-normalised returns (after arXiv 2510.01051), clipped for reuse.

    The defaults are those of the demonstration, found on game:GuessTheNumber-v0-easy with the embedded model.
    Raises BadValue for a value out of its range, naming it.
    """

    env: str = _option("game:GuessTheNumber-v0-easy", "environment id (see `gem list`)")
    env_kwargs: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "arguments of the environment, e.g. max_number=20"}
    )
    wrappers: str = _option("", "comma-separated wrapper names, e.g. concat; none keeps the token history exact")
    model: str | None = _option(
        None,
        "folder (without weights: random ones) or hub id of a causal language model; none builds a tiny one",
    )
    name: str | None = _option(None, "name of the run; by default made from environment and seed")
    out: str = _option("runs", "folder that runs are written to")
    seed: int = _option(0, "of everything: model, tokenizer, episodes, sampling, minibatches")
    steps: int = _option(200, "policy updates")
    batch: int = _option(256, "episodes per update")
    slots: int | None = _option(None, "environments stepped together; by default as many as batch")
    backend: Literal["sync", "async", "thread", "process", "ray"] = _option(
        "async", "what steps them; async is where each environment's spec says, and the plain loop for light ones"
    )
    timeout: float | None = _option(None, "seconds for one step or reset of an environment; none waits for ever")
    on_failure: Literal["raise", "restart"] = _option(
        "raise", "of an environment that crashes or hangs: stop, or drop its episode and build it anew"
    )
    gamma: float = _option(0.8, "discount per turn, 0 to 1")
    baseline: Literal["batch", "turn"] = _option(
        "turn",
        "what a return is compared with: the mean of the batch (ReBN), or of the batch's turns of the same index",
    )
    clip: float | None = _option(0.2, "PPO clip range of the probability ratio; none is plain REINFORCE, for 1 epoch")
    epochs: int = _option(3, "passes over each batch")
    minibatch: int = _option(64, "sequences per gradient step: episodes, or turns where a wrapper shows the history")
    learning_rate: float = _option(1.5e-3, "peak of AdamW; reached after 10 updates, falling linearly to a tenth of it")
    kl: float = _option(
        0.03, "weight of the divergence from the policy at the start, in nats: keeps the format and goes on exploring"
    )
    entropy: float = _option(0.0, "weight of an entropy bonus, in nats")
    max_grad_norm: float = _option(1.0, "gradients are scaled down to this norm")
    temperature: float = _option(1.0, "of sampling while training; evaluation reports greedy play and this")
    max_new_tokens: int | None = _option(
        None, "tokens per reply; by default 256, or two more than the longest legal action for the embedded model"
    )
    imitation_steps: int | None = _option(
        None,
        "warm-up on random legal play, which teaches the format alone; by default 200 for the embedded model, else 0",
    )
    eval_every: int = _option(20, "updates between evaluations on held-out seeds")
    eval_episodes: int = _option(500, "held-out seeds, each played once")
    checkpoint_every: int = _option(20, "updates between checkpoints")
    keep_trajectories: int = _option(4, "episodes of each batch written to trajectories.jsonl")
    device: str = _option("cpu", "torch device of the model, e.g. cuda")
    threads: int = _option(1, "torch threads; more than one slows small models down")

    def __post_init__(self) -> None:
        for field_ in fields(self):
            value = getattr(self, field_.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise BadValue(f"{field_.name} must be finite, got {value}")
            least = _LEAST.get(field_.name)
            if least is not None and value is not None and value < least:
                raise BadValue(f"{field_.name} must be at least {least}, got {value}")
        for name in ("learning_rate", "max_grad_norm", "temperature", "clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise BadValue(f"{name} must be greater than 0, got {value}")
        if not 0.0 <= self.gamma <= 1.0:
            raise BadValue(f"gamma must be in [0, 1], got {self.gamma}")
        if self.baseline not in ("batch", "turn"):
            raise BadValue(f"baseline must be 'batch' or 'turn', got {self.baseline!r}")
        if self.clip is None and self.epochs > 1:
            raise BadValue(f"epochs={self.epochs} needs a clip range: plain REINFORCE is on-policy for one pass only")
        if "seed" in self.env_kwargs:
            raise BadValue("env_kwargs takes no seed: every slot gets its own from the run's seed")
        if self.minibatch > self.batch:
            raise BadValue(f"minibatch must not exceed batch, got {self.minibatch} > {self.batch}")
