"""The settings of a training run: one field each, with its range and the help text of its flag of `gem train`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gem._internal.typed import Count, Natural, Positive, Share, Weight
from gem.rl.environments import EvalSetting, TrainEnv


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


def _options(help: str) -> Any:
    return field(default_factory=dict, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class CriticOptions:
    """How the critic of an advantage that needs values is built and trained.

    Args:
        shared: whether it is a value head on the model itself, whose loss is added to that of the policy, instead of a
            copy of the model with a value head.
        weight: weight of the loss of a shared critic beside that of the policy.
        learning_rate: of the critic, or of the head of a shared one; None for that of the policy.
        warmup: first updates in which only the critic learns, or the head of a shared one.
    """

    shared: bool = False
    weight: Positive = 0.5
    learning_rate: Positive | None = None
    warmup: Natural = 0


@dataclass(frozen=True, kw_only=True)
class SamplerOptions:
    """How the server that samples the training episodes gets the weights.

    Args:
        sync: the kind of server: vllm, which gets the LoRA adapter or else all weights after each update, or sglang,
            which always gets all weights. Both read them from the folder.
        model: name of the model at the server; None for the path of the run's model.
        folder: for the weights that the server loads, which it must be able to read; None for one in the run's.
    """

    sync: Literal["vllm", "sglang"]
    model: str | None = None
    folder: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The fields of TrainConfig, which checks them.

    The defaults were tuned on game:GuessTheNumber-v0-easy: for the embedded model, and with SmolLM2-135M-Instruct for
    models that are loaded.
    """

    env: str | Sequence[str | TrainEnv | Mapping[str, Any]] = _option(
        "game:GuessTheNumber-v0-easy",
        "environment id (see `gem list`), or several with weights, ID=WEIGHT, which are shares of the episodes; tables "
        "[[env]] of --config also have their own settings",
    )
    env_kwargs: dict[str, Any] = _options("environment arguments, e.g. max_number=20")
    wrappers: str = _option("", "comma-separated wrapper names, e.g. concat; without any, the token history is exact")
    mcp: str | None = _option(
        None, "JSON file with MCP servers, whose tools the model may call; each slot has its own session with them"
    )
    prompt_template: str | None = _option(
        None, "instructions around the task: no, qwen3_game, qwen3_general, code, or a text file with {observation}"
    )
    curriculum: Literal["levels", "rows", "seeds"] | None = _option(
        None,
        "choose what to train on by p(1 - p) of its recent success p, among the environments of a mixture (levels), "
        "the rows of data sets, or a fixed pool of 64 seeds; default: by weight, and each row as often",
    )
    self_play: bool = _option(
        False,
        "play games between players, such as board:Nim-v0, with all seats or against --opponents, instead of one seat "
        "against a random player; the evaluation plays random and the best known player",
    )
    opponents: dict[str, Weight] = _options(
        "shares of the games of --self-play by opponent: latest (the policy itself, both of whose seats are trained), "
        "past (its earlier versions, by how often they win), or a player of the game: random, best, or a strength such "
        "as 0.5; default: latest=1",
    )
    model: str | None = _option(
        None,
        "folder or hub id of a causal language model; without weights they are random; default: a tiny model",
    )
    dtype: Literal["float32", "bf16"] | None = _option(
        None,
        "bf16 computes in bfloat16; trained weights stay float32, and with LoRA the frozen ones are bfloat16; default: "
        "bf16 for --model on a GPU, else float32",
    )
    gradient_checkpointing: bool = _option(
        False, "compute activations again in the backward pass: less memory, about a third more time"
    )
    lora_rank: Count | None = _option(None, "train a LoRA adapter of this rank instead of all weights of --model")
    lora_modules: str | None = _option(
        None, "comma-separated names of the linear layers with LoRA, e.g. q_proj,v_proj; default: all but the output"
    )
    sampler: str | None = _option(
        None,
        "URL of an OpenAI-compatible server that samples the training episodes, e.g. http://127.0.0.1:8000/v1; it must "
        "return token ids and log-probabilities; default: sample with the model in this process",
    )
    sampler_options: dict[str, Any] = _options(
        "sync=vllm or sync=sglang, the kind of server, which loads the new weights after each update; model=NAME at "
        "the server [default: --model], folder=PATH that it can read [default: in the run's]",
    )
    chat_template: str | None = _option(None, "file with a Jinja chat template, instead of the one of --model")
    name: str | None = _option(None, "name of the run; default: from environment and seed")
    out: str = _option("runs", "folder for runs")
    seed: Natural = _option(0, "seed of the model, tokenizer, episodes, sampling and minibatches")
    steps: Count = _option(200, "policy updates")
    minutes: Positive | None = _option(
        None, "end the run after about this time, with a last evaluation and a checkpoint; default: after --steps"
    )
    batch: Count = _option(256, "episodes per update")
    slots: Count | None = _option(None, "environments stepped together; default: batch")
    group_size: Count | None = _option(
        None,
        "episodes that start from one state: a row of a data set, or a seed; default: 8 where the advantage compares "
        "them (grpo, rloo, gigpo), else 1",
    )
    refill_groups: bool = _option(
        False, "replace groups whose episodes have equal returns, which teach nothing, by other groups"
    )
    backend: Literal["sync", "async", "thread", "process", "ray"] = _option(
        "async", "vector backend; async follows the environment's spec and uses a plain loop for light environments"
    )
    timeout: Positive | None = _option(None, "seconds for one step or reset of an environment; default: no limit")
    on_failure: Literal["raise", "restart"] = _option(
        "raise", "when an environment crashes or hangs: stop the run, or drop its episode and rebuild it"
    )
    advantage: str | Callable[..., Any] | None = _option(
        None,
        "advantages of turns: returns (REINFORCE), rebn (normalized over the batch), turn (the same, with the mean of "
        "the turns with the same index), gae (with a critic), branch (with continuations of episodes from their "
        "states); within groups of episodes, grpo, rloo, gigpo; with --self-play, seat (minus the moving average of "
        "the seat); or module:function. Default: turn, or seat with --self-play",
    )
    advantage_options: dict[str, Any] = _options(
        "options of the advantage, e.g. group_scale=none or gae_lambda=0.9; docs/algorithms.md lists those of each",
    )
    gamma: Share | None = _option(None, "discount per turn, 0 to 1; default: 0.8; grpo, rloo and seat have none")
    critic_options: dict[str, Any] = _options(
        "gae: shared=true (a value head on the model itself instead of on a copy), weight=X of its loss [0.5], "
        "learning_rate=X [--learning-rate], warmup=N first updates in which only the critic learns [0]",
    )
    loss: str | Callable[..., Any] = _option(
        "ppo",
        "ppo clips the probability ratio of each token, gspo that of each reply; cispo clips the weight of each token, "
        "which keeps its gradient; reinforce clips nothing and needs --epochs 1; or module:function",
    )
    loss_options: dict[str, Any] = _options(
        "options of the loss, e.g. clip_high=0.28 or clip_low=none; docs/algorithms.md lists those of each"
    )
    aggregation: Literal["constant", "token-mean", "sequence-mean"] = _option(
        "token-mean",
        "divisor of the summed token losses: --max-new-tokens per episode, the trained tokens of the batch, or the "
        "length of each reply and the number of replies",
    )
    truncated_is: Positive | None = _option(
        None,
        "score the sampled tokens again before each update, and weight them by the ratio to the sampler's probability, "
        "at most this; default: off, or 2 with --sampler",
    )
    epochs: Count = _option(1, "passes over each batch")
    minibatch: Count = _option(
        64,
        "sequences per gradient step, at most: episodes, or turns with a wrapper that shows the history; a batch is "
        "divided evenly",
    )
    micro_batch: Count | None = _option(
        None,
        "sequences per forward and backward pass; the gradient is that of the minibatch; default: by their length and "
        "the size of the model, at most --minibatch",
    )
    learning_rate: Positive | None = _option(
        None,
        "peak learning rate of AdamW: a linear ramp over the first tenth of the updates, at most 10, then linear decay "
        "to a tenth; default: 5e-5 for a pretrained --model, 2e-4 for its LoRA adapter, else 2e-3",
    )
    kl: Weight = _option(
        0.05, "weight of the KL penalty toward the initial policy, in nats; preserves format and exploration"
    )
    kl_in: Literal["loss", "reward"] = _option(
        "loss", "whether the KL penalty is part of the loss, or of each turn's reward"
    )
    entropy: Weight = _option(0.0, "weight of an entropy bonus, in nats")
    temperature: Positive = _option(1.0, "sampling temperature in training; evaluation uses it besides greedy decoding")
    max_new_tokens: Count | None = _option(
        None,
        "maximum tokens per reply; default: two more than the longest legal action in an environment of few, else 256",
    )
    kv_cache_mib: Natural | None = _option(
        None,
        "MiB of keys and values kept between the turns of episodes, whose contexts then are not computed again; "
        "dropped at every update; 0 keeps none; default: 1024 on a CPU, 0 on a GPU",
    )
    imitation_steps: Natural | None = _option(
        None,
        "steps of the SFT warm-up on random legal actions, for the format; default: until replies can be read, at most "
        "400,000 tokens for the embedded model and 20,000 for --model; none if its replies can be read already, or "
        "an environment of --model samples no actions",
    )
    imitation_rate: Positive | None = _option(
        None,
        "learning rate of the warm-up; default: 3e-5 for a pretrained --model, 2e-4 for its LoRA adapter, else 3e-3",
    )
    eval_every: Count = _option(20, "updates between evaluations")
    eval_episodes: Count | None = _option(
        None,
        "maximum number of episodes per evaluation; of a data set, each row counts once; default: 500, or 64 for "
        "--model",
    )
    eval_env: Sequence[str | EvalSetting | Mapping[str, Any]] = _option(
        (), "environments to evaluate on, each a set in the metrics; default: those of training"
    )
    eval_split: str | None = _option(
        None, "split of the data set to evaluate on; default: a tenth of the rows, which are held back from training"
    )
    eval_temperature: Weight = _option(0.0, "sampling temperature of the evaluation; 0 is greedy")
    until: str | None = _option(
        None,
        "stop early when two evaluations in a row reach these success rates, e.g. greedy=.99,sampled=.9; every "
        "evaluation then plays both ways",
    )
    checkpoint_every: Count = _option(20, "updates between checkpoints")
    keep_trajectories: Natural = _option(4, "episodes of each batch written to trajectories.jsonl")
    log: Literal["tensorboard", "wandb", "trackio"] | None = _option(
        None, "also log the metrics to TensorBoard, Weights & Biases or Trackio; each needs the extra of its name"
    )
    device: str = _option("auto", "torch device of the model, e.g. cpu or cuda; auto takes a GPU if there is one")
    threads: Count | None = _option(
        None,
        "torch threads, which decide the order of sums and so the last digits of a run; default: all cores for "
        "--model, 1 for the embedded model, which more slow down",
    )
