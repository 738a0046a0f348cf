"""Configuration of a training run. Its fields are the flags of `gem train`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from gem.errors import BadValue


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


_LEAST = {
    **dict.fromkeys(["steps", "batch", "slots", "group_size", "epochs", "minibatch", "max_new_tokens", "threads"], 1),
    **dict.fromkeys(["eval_every", "eval_episodes", "checkpoint_every"], 1),
    **dict.fromkeys(["seed", "kl", "entropy", "imitation_steps", "keep_trajectories"], 0),
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Configuration of a training run: turn-level REINFORCE with normalized returns and optional PPO clipping.

    The defaults were tuned on game:GuessTheNumber-v0-easy with the embedded model.

    Raises:
        BadValue: for a value out of range.

    Source: arXiv 2510.01051.
    """

    env: str = _option("game:GuessTheNumber-v0-easy", "environment id (see `gem list`)")
    env_kwargs: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "environment arguments, e.g. max_number=20"}
    )
    wrappers: str = _option("", "comma-separated wrapper names, e.g. concat; without any, the token history is exact")
    model: str | None = _option(
        None,
        "folder or hub id of a causal language model; without weights they are random; default: a tiny model",
    )
    name: str | None = _option(None, "name of the run; default: from environment and seed")
    out: str = _option("runs", "folder for runs")
    seed: int = _option(0, "seed of the model, tokenizer, episodes, sampling and minibatches")
    steps: int = _option(200, "policy updates")
    batch: int = _option(256, "episodes per update")
    slots: int | None = _option(None, "environments stepped together; default: batch")
    group_size: int = _option(1, "how often a row of a data set is asked, by neighbouring slots, before the next row")
    backend: Literal["sync", "async", "thread", "process", "ray"] = _option(
        "async", "vector backend; async follows the environment's spec and uses a plain loop for light environments"
    )
    timeout: float | None = _option(None, "seconds for one step or reset of an environment; default: no limit")
    on_failure: Literal["raise", "restart"] = _option(
        "raise", "when an environment crashes or hangs: stop the run, or drop its episode and rebuild it"
    )
    gamma: float = _option(0.8, "discount per turn, 0 to 1")
    baseline: Literal["batch", "turn"] = _option(
        "turn",
        "baseline of returns: the mean of the batch (ReBN), or of the turns with the same index in the batch",
    )
    clip: float | None = _option(
        0.2, "PPO clip range of the probability ratio; none selects plain REINFORCE, which needs --epochs 1"
    )
    epochs: int = _option(3, "passes over each batch")
    minibatch: int = _option(
        64, "sequences per gradient step: episodes, or turns with a wrapper that shows the history"
    )
    learning_rate: float = _option(
        1.5e-3, "peak learning rate of AdamW: 10 updates of linear warm-up, then linear decay to a tenth"
    )
    kl: float = _option(
        0.03, "weight of the KL penalty toward the initial policy, in nats; preserves format and exploration"
    )
    entropy: float = _option(0.0, "weight of an entropy bonus, in nats")
    max_grad_norm: float = _option(1.0, "maximum gradient norm; larger gradients are scaled down")
    temperature: float = _option(1.0, "sampling temperature in training; evaluation uses it besides greedy decoding")
    max_new_tokens: int | None = _option(
        None, "maximum tokens per reply; default: 256, or two more than the longest legal action for the embedded model"
    )
    imitation_steps: int | None = _option(
        None,
        "SFT warm-up steps on random legal actions, for the format; default: 200 for the embedded model, else 0",
    )
    eval_every: int = _option(20, "updates between evaluations")
    eval_episodes: int = _option(500, "maximum number of episodes per evaluation; of a data set, each row counts once")
    eval_split: str | None = _option(
        None, "split of the data set to evaluate on; default: rows held back from training"
    )
    eval_share: float = _option(0.1, "share of the rows of a data set that is held back for evaluation, 0 to 1")
    checkpoint_every: int = _option(20, "updates between checkpoints")
    keep_trajectories: int = _option(4, "episodes of each batch written to trajectories.jsonl")
    device: str = _option("cpu", "torch device of the model, e.g. cuda")
    threads: int = _option(1, "torch threads; more than one slows down small models")

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
        if not 0.0 < self.eval_share < 1.0:
            raise BadValue(f"eval_share must be between 0 and 1, got {self.eval_share}")
        if self.baseline not in ("batch", "turn"):
            raise BadValue(f"baseline must be 'batch' or 'turn', got {self.baseline!r}")
        if self.clip is None and self.epochs > 1:
            raise BadValue(f"epochs={self.epochs} needs a clip range: plain REINFORCE is on-policy for one epoch only")
        if "seed" in self.env_kwargs:
            raise BadValue("env_kwargs must not contain seed: each slot derives its seed from that of the run")
        if self.minibatch > self.batch:
            raise BadValue(f"minibatch must not exceed batch, got {self.minibatch} > {self.batch}")
