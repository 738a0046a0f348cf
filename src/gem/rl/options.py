"""The settings of a training run, one field each, with the help texts of the flags of `gem train`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gem.rl.environments import EvalSetting, TrainEnv


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The fields of TrainConfig, which checks them.

    The defaults were tuned on game:GuessTheNumber-v0-easy with the embedded model.
    """

    env: str | Sequence[str | TrainEnv | Mapping[str, Any]] = _option(
        "game:GuessTheNumber-v0-easy",
        "environment id (see `gem list`), or several with weights, ID=WEIGHT, which are shares of the episodes; tables "
        "[[env]] of --config also have their own settings",
    )
    env_kwargs: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "environment arguments, e.g. max_number=20"}
    )
    wrappers: str = _option("", "comma-separated wrapper names, e.g. concat; without any, the token history is exact")
    mcp: str | None = _option(
        None, "JSON file with MCP servers, whose tools the model may call; each slot has its own session with them"
    )
    prompt_template: str | None = _option(
        None, "instructions around the task: no, qwen3_game, qwen3_general, code, or a text file with {observation}"
    )
    curriculum: Literal["learnability"] | None = _option(
        None, "choose what to train on by p(1 - p) of its recent success p; default: by weight, and each row as often"
    )
    curriculum_over: Literal["levels", "rows", "seeds"] | None = _option(
        None,
        "what a curriculum chooses among: levels, the environments of a mixture; rows of data sets; or seeds, a fixed "
        "pool. Default: levels of a mixture, else rows or seeds",
    )
    curriculum_seeds: int = _option(64, "size of the pool of seeds of a curriculum")
    curriculum_minimum: float = _option(
        0.2, "share that a curriculum divides equally among all items, 0 to 1; the rest goes by p(1 - p)"
    )
    self_play: bool = _option(
        False,
        "play games between players, such as board:Nim-v0, with all seats or against --opponents, instead of one seat "
        "against a random player; the evaluation plays random and the best known player",
    )
    opponents: dict[str, float] = field(
        default_factory=dict,
        metadata={
            "help": "shares of the games of --self-play by opponent: latest (the policy itself, both of whose seats "
            "are trained), past (its earlier versions, by how often they win), or a player of the game: random, "
            "best, or a strength such as 0.5; default: latest=1"
        },
    )
    past_every: int = _option(10, "updates between the versions that the opponent past chooses from")
    past_kept: int = _option(8, "number of these versions; each holds a copy of the trained weights in memory")
    model: str | None = _option(
        None,
        "folder or hub id of a causal language model; without weights they are random; default: a tiny model",
    )
    dtype: Literal["float32", "bf16"] = _option(
        "float32", "bf16 computes in bfloat16; trained weights stay float32, and with LoRA the frozen ones are bfloat16"
    )
    gradient_checkpointing: bool = _option(
        False, "compute activations again in the backward pass: less memory, about a third more time"
    )
    lora_rank: int | None = _option(None, "train a LoRA adapter of this rank instead of all weights of --model")
    lora_modules: str | None = _option(
        None, "comma-separated names of the linear layers with LoRA, e.g. q_proj,v_proj; default: all but the output"
    )
    sampler: str | None = _option(
        None,
        "URL of an OpenAI-compatible server that samples the training episodes, e.g. http://127.0.0.1:8000/v1; it must "
        "return token ids and log-probabilities; default: sample with the model in this process",
    )
    sampler_sync: Literal["vllm", "sglang"] | None = _option(
        None, "how the server gets the new weights after each update: vllm (a LoRA adapter) or sglang (from disk)"
    )
    sampler_model: str | None = _option(None, "name of the model at the server; default: --model")
    sampler_folder: str | None = _option(
        None, "folder for the weights that the server loads, which it must be able to read; default: in the run's"
    )
    chat_template: str | None = _option(None, "file with a Jinja chat template, instead of the one of --model")
    name: str | None = _option(None, "name of the run; default: from environment and seed")
    out: str = _option("runs", "folder for runs")
    seed: int = _option(0, "seed of the model, tokenizer, episodes, sampling and minibatches")
    steps: int = _option(200, "policy updates")
    batch: int = _option(256, "episodes per update")
    slots: int | None = _option(None, "environments stepped together; default: batch")
    group_size: int = _option(
        1,
        "episodes that start from one state: a row of a data set, or a seed; grpo, rloo and gigpo compare them",
    )
    refill_groups: bool = _option(
        False, "replace groups whose episodes have equal returns, which teach nothing, by other groups"
    )
    backend: Literal["sync", "async", "thread", "process", "ray"] = _option(
        "async", "vector backend; async follows the environment's spec and uses a plain loop for light environments"
    )
    timeout: float | None = _option(None, "seconds for one step or reset of an environment; default: no limit")
    on_failure: Literal["raise", "restart"] = _option(
        "raise", "when an environment crashes or hangs: stop the run, or drop its episode and rebuild it"
    )
    advantage: Literal["returns", "rebn", "turn", "grpo", "rloo", "gigpo", "gae", "branch", "seat"] | None = _option(
        None,
        "advantages of turns: returns (REINFORCE), rebn (normalized over the batch), turn (the same, with the mean of "
        "the turns with the same index), gae (with a critic), branch (with continuations of episodes from their "
        "states), or, within groups of episodes, grpo, rloo, gigpo; with --self-play also seat (minus the moving "
        "average of the seat). Default: turn, or seat with --self-play",
    )
    gamma: float | None = _option(None, "discount per turn, 0 to 1; default: 0.8, or 1 for grpo, rloo and seat")
    group_scale: Literal["std", "none"] | None = _option(
        None, "whether grpo and gigpo divide by the standard deviation of each group; default: std"
    )
    leave_one_out: bool = _option(False, "leave the episode itself out of the baseline of turn or grpo")
    batch_scale: Literal["std", "none"] | None = _option(
        None,
        "whether advantages are divided by their root mean square over the batch; default: std with rebn and turn, "
        "else none",
    )
    step_weight: float | None = _option(
        None, "gigpo: weight of comparing turns from equal states; default: 1, beside that of episodes"
    )
    gae_lambda: float | None = _option(None, "gae: 1 trusts the rewards, 0 the critic; default: 0.95")
    branch_width: int | None = _option(
        None, "branch: continuations that estimate the value of a state; default: 4; --batch does not count them"
    )
    branch_turns: int | None = _option(
        None, "branch: maximum number of states of an episode with continuations; default: all"
    )
    branch_every: int | None = _option(
        None, "branch: distance in turns between states with continuations; default: 1; the first state has some"
    )
    branch_train: bool = _option(
        False, "branch: also train on the continuations, weighted so that each state keeps its share under the policy"
    )
    critic: Literal["separate", "shared"] | None = _option(
        None,
        "gae: a copy of the model with a value head, or a value head on the model itself, whose loss is added to that "
        "of the policy; default: separate",
    )
    critic_weight: float | None = _option(None, "gae: weight of the loss of a shared critic; default: 0.5")
    critic_learning_rate: float | None = _option(
        None, "gae: learning rate of the critic, or of the head of a shared one; default: --learning-rate"
    )
    critic_warmup: int | None = _option(
        None, "gae: first updates in which only the critic learns, or the head of a shared one; default: 0"
    )
    loss: Literal["ppo", "gspo", "cispo"] = _option(
        "ppo",
        "ppo clips the probability ratio of each token, gspo that of each reply; cispo clips the weight of each token, "
        "which keeps its gradient",
    )
    clip: Literal["default"] | float | None = _option(
        "default",
        "lower bound of the ratio, as a distance from 1, and the upper one without --clip-high; none: no bound. "
        "Default: 0.2 for ppo, 3e-4 for gspo, none for cispo. Without any bound, the gradient is that of plain "
        "REINFORCE, which needs --epochs 1",
    )
    clip_high: Literal["default"] | float | None = _option(
        "default",
        "upper bound of the ratio. Default: --clip, or without it 0.2 for ppo, 4e-4 for gspo, 4 for cispo",
    )
    dual_clip: float | None = _option(
        None, "maximum loss of a token with a negative advantage, as a multiple of that at ratio 1; default: no limit"
    )
    aggregation: Literal["constant", "token-mean", "sequence-mean"] = _option(
        "token-mean",
        "divisor of the summed token losses: --loss-constant per episode, the trained tokens of the batch, or the "
        "length of each reply and the number of replies",
    )
    loss_constant: float | None = _option(
        None, "tokens per episode of --aggregation constant; default: --max-new-tokens"
    )
    truncated_is: float | None = _option(
        None,
        "score the sampled tokens again before each update, and weight them by the ratio to the sampler's probability, "
        "at most this; default: off, or 2 with --sampler",
    )
    epochs: int = _option(1, "passes over each batch")
    minibatch: int = _option(
        64, "sequences per gradient step: episodes, or turns with a wrapper that shows the history"
    )
    micro_batch: int | None = _option(
        None, "sequences per forward and backward pass; the gradient is that of the minibatch; default: --minibatch"
    )
    learning_rate: float = _option(
        2e-3, "peak learning rate of AdamW: 10 updates of linear warm-up, then linear decay to a tenth"
    )
    kl: float = _option(
        0.05, "weight of the KL penalty toward the initial policy, in nats; preserves format and exploration"
    )
    kl_in: Literal["loss", "reward"] = _option(
        "loss", "whether the KL penalty is part of the loss, or of each turn's reward"
    )
    kl_estimator: Literal["k1", "k2", "k3"] | None = _option(
        None, "estimator of the KL; in the loss, all have the same gradient; default: k3 in the loss, k1 in the reward"
    )
    entropy: float = _option(0.0, "weight of an entropy bonus, in nats")
    max_grad_norm: float = _option(1.0, "maximum gradient norm; larger gradients are scaled down")
    temperature: float = _option(1.0, "sampling temperature in training; evaluation uses it besides greedy decoding")
    max_new_tokens: int | None = _option(
        None, "maximum tokens per reply; default: 256, or two more than the longest legal action for the embedded model"
    )
    kv_cache_mib: int = _option(
        1024,
        "MiB of keys and values kept between the turns of episodes, whose contexts then are not computed again; "
        "dropped at every update; 0 keeps none",
    )
    imitation_tokens: int | None = _option(
        None,
        "budget of the SFT warm-up on random legal actions, for the format, in tokens including prompts; it ends early "
        "when 98 % of the replies can be read; default: 400,000 for the embedded model, else 0",
    )
    imitation_steps: int | None = _option(None, "exact number of warm-up steps, instead of a budget in tokens")
    eval_every: int = _option(20, "updates between evaluations")
    eval_episodes: int = _option(500, "maximum number of episodes per evaluation; of a data set, each row counts once")
    eval_env: Sequence[str | EvalSetting | Mapping[str, Any]] = field(
        default_factory=list,
        metadata={"help": "environments to evaluate on, each a set in the metrics; default: those of training"},
    )
    eval_split: str | None = _option(
        None, "split of the data set to evaluate on; default: rows held back from training"
    )
    eval_wrappers: str | None = _option(None, "wrappers of the evaluation; default: --wrappers")
    eval_temperature: float = _option(0.0, "sampling temperature of the evaluation; 0 is greedy")
    eval_share: float = _option(0.1, "share of the rows of a data set that is held back for evaluation, 0 to 1")
    until: str | None = _option(
        None,
        "stop early when two evaluations in a row reach these success rates, e.g. greedy=.99,sampled=.9; every "
        "evaluation then plays both ways",
    )
    checkpoint_every: int = _option(20, "updates between checkpoints")
    keep_trajectories: int = _option(4, "episodes of each batch written to trajectories.jsonl")
    log: Literal["tensorboard", "wandb", "trackio"] | None = _option(
        None, "also log the metrics to TensorBoard, Weights & Biases or Trackio; each needs the extra of its name"
    )
    device: str = _option("cpu", "torch device of the model, e.g. cuda; auto takes a GPU if there is one")
    threads: int = _option(1, "torch threads; more than one slows down small models")
