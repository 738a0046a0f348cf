"""Configuration of a training run. Its fields are the flags of `gem train`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from gem.errors import BadValue, did_you_mean
from gem.rl.advantages import GROUPED, Estimator
from gem.rl.environments import EvalSetting, TrainEnv, as_setting, check_mixture, check_names_differ

if TYPE_CHECKING:
    from gem.rollout import BranchPlan


def _option(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


_CLIP: dict[str, tuple[float | None, float | None]] = {
    "ppo": (0.2, 0.2),
    "gspo": (3e-4, 4e-4),  # arXiv 2507.18071, section 5.1
    "cispo": (None, 4.0),  # weights of at most 5, as in arXiv 2510.13786
}
_BRANCH = ("branch_width", "branch_turns", "branch_every", "branch_train")
TRUNCATED_IS = 2.0  # default with a sampler of another engine
_POSITIVE = (
    "learning_rate",
    "critic_learning_rate",
    "critic_weight",
    "max_grad_norm",
    "temperature",
    "clip",
    "clip_high",
    "loss_constant",
    "truncated_is",
)
_LEAST = {
    **dict.fromkeys(
        ["steps", "batch", "slots", "group_size", "epochs", "minibatch", "micro_batch", "max_new_tokens", "threads"], 1
    ),
    **dict.fromkeys(["eval_every", "eval_episodes", "checkpoint_every"], 1),
    **dict.fromkeys(
        [
            "seed",
            "kl",
            "entropy",
            "eval_temperature",
            "imitation_tokens",
            "imitation_steps",
            "keep_trajectories",
            "critic_warmup",
        ],
        0,
    ),
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Configuration of a training run: advantages of turns, the loss of their tokens, and the training loop.

    The defaults were tuned on game:GuessTheNumber-v0-easy with the embedded model.

    Raises:
        BadValue: for a value out of range.

    Sources: arXiv 2510.01051; those of each algorithm are in gem.rl.advantages and gem.rl.losses.
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
    prompt_template: str | None = _option(
        None, "words around the task: no, qwen3_game, qwen3_general, code, or a text file with {observation}"
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
    advantage: Literal["returns", "rebn", "turn", "grpo", "rloo", "gigpo", "gae", "branch"] = _option(
        "turn",
        "advantages of turns: returns (REINFORCE), rebn (normalized over the batch), turn (the same, with the mean of "
        "the turns with the same index), gae (with a critic), branch (with continuations of episodes from their "
        "states), or, within groups of episodes, grpo, rloo, gigpo",
    )
    gamma: float | None = _option(None, "discount per turn, 0 to 1; default: 0.8, or 1 for grpo and rloo")
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
    epochs: int = _option(3, "passes over each batch")
    minibatch: int = _option(
        64, "sequences per gradient step: episodes, or turns with a wrapper that shows the history"
    )
    micro_batch: int | None = _option(
        None, "sequences per forward and backward pass; the gradient is that of the minibatch; default: --minibatch"
    )
    learning_rate: float = _option(
        1.5e-3, "peak learning rate of AdamW: 10 updates of linear warm-up, then linear decay to a tenth"
    )
    kl: float = _option(
        0.01, "weight of the KL penalty toward the initial policy, in nats; preserves format and exploration"
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

    def __post_init__(self) -> None:
        for field_ in fields(self):
            value = getattr(self, field_.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise BadValue(f"{field_.name} must be finite, got {value}")
            least = _LEAST.get(field_.name)
            if least is not None and value is not None and value < least:
                raise BadValue(f"{field_.name} must be at least {least}, got {value}")
        for name in _POSITIVE:
            value = getattr(self, name)
            if isinstance(value, (int, float)) and not value > 0:
                raise BadValue(f"{name} must be greater than 0, got {value}")
        if not 0.0 < self.eval_share < 1.0:
            raise BadValue(f"eval_share must be between 0 and 1, got {self.eval_share}")
        self._check_environments()
        if self.estimator.name in GROUPED and self.group_size < 2:
            raise BadValue(
                f"advantage={self.advantage!r} compares episodes of a group and needs group_size of at least 2"
            )
        if self.advantage == "branch":
            _ = self.branch_plan  # checks its options
            if self.group_size > 1:
                raise BadValue(f"advantage='branch' forks its own groups; drop group_size={self.group_size}")
        elif unused := [name for name in _BRANCH if getattr(self, name) not in (None, False)]:
            raise BadValue(f"{unused[0]} needs advantage='branch', got {self.advantage!r}")
        if self.critic not in (None, "separate", "shared"):
            raise BadValue(f"critic must be 'separate' or 'shared', got {self.critic!r}")
        if self.critic_weight is not None and self.critic != "shared":
            raise BadValue(f"critic_weight needs critic='shared', got {self.critic!r}")
        for name in ("critic", "critic_learning_rate", "critic_warmup"):
            if getattr(self, name) is not None and self.advantage != "gae":
                raise BadValue(f"{name} needs a critic: advantage='gae', got {self.advantage!r}")
        if self.critic_warmup is not None and self.critic_warmup >= self.steps:
            raise BadValue(f"critic_warmup={self.critic_warmup} leaves no update for the policy, steps is {self.steps}")
        if self.batch % self.group_size:
            raise BadValue(f"batch must be a multiple of group_size, got {self.batch} and {self.group_size}")
        if self.refill_groups and self.group_size < 2:
            raise BadValue("refill_groups needs groups: set group_size to at least 2")
        self._check_loss()
        modes = {"sampled", *(env.mode for env in self.eval_sets)}
        if not set(self.targets) <= modes:
            raise BadValue(f"until={self.until!r} needs evaluations that play so; they are {', '.join(sorted(modes))}")
        self._check_model()
        if self.minibatch > self.batch and not self.branch_train:
            raise BadValue(f"minibatch must not exceed batch, got {self.minibatch} > {self.batch}")

    @property
    def envs(self) -> tuple[TrainEnv, ...]:
        """The environments with a weight above 0, with all settings of the run that they do not replace."""
        given = (TrainEnv(id=self.env),) if isinstance(self.env, str) else self.env
        return tuple(
            replace(
                env,
                kwargs={**self.env_kwargs, **env.kwargs},
                wrappers=self.wrappers if env.wrappers is None else env.wrappers,
                gamma=self.gamma if env.gamma is None else env.gamma,
                prompt_template=env.prompt_template or self.prompt_template,
                max_new_tokens=env.max_new_tokens or self.max_new_tokens,
            )
            for env in given
            if isinstance(env, TrainEnv) and env.weight > 0
        )

    @property
    def eval_sets(self) -> tuple[EvalSetting, ...]:
        """The sets of an evaluation, with all settings of the run that they do not replace."""
        shared = ("id", "name", "kwargs", "wrappers", "prompt_template", "max_turns", "max_context", "max_new_tokens")
        sets = [env for env in self.eval_env if isinstance(env, EvalSetting)]
        if not sets:
            own = {} if self.eval_wrappers is None else {"wrappers": self.eval_wrappers}
            sets = [EvalSetting(**{name: getattr(env, name) for name in shared} | own) for env in self.envs]
        trained = {env.id for env in self.envs}
        default = self.wrappers if self.eval_wrappers is None else self.eval_wrappers
        return tuple(
            replace(
                env,
                kwargs={**(self.env_kwargs if env.id in trained else {}), **env.kwargs},
                wrappers=default if env.wrappers is None else env.wrappers,
                prompt_template=env.prompt_template or self.prompt_template,
                max_new_tokens=env.max_new_tokens or self.max_new_tokens,
                split=self.eval_split if env.split is None else env.split,
                temperature=self.eval_temperature if env.temperature is None else env.temperature,
                episodes=env.episodes or self.eval_episodes,
            )
            for env in sets
        )

    @property
    def title(self) -> str:
        """The names of the environments, for people."""
        return ", ".join(env.label if len(self.envs) > 1 else env.id for env in self.envs)

    def estimator_of(self, env: TrainEnv) -> Estimator:
        """The estimator of advantages of one of self.envs, with its own discount."""
        return replace(self.estimator, gamma=env.gamma)

    @property
    def estimator(self) -> Estimator:
        """The estimator of advantages. Raises BadValue if its options do not fit together."""
        return Estimator(
            name=self.advantage,
            gamma=self.gamma,
            group_scale=self.group_scale,
            leave_one_out=self.leave_one_out,
            batch_scale=self.batch_scale,
            step_weight=self.step_weight,
            gae_lambda=self.gae_lambda,
        )

    @property
    def targets(self) -> dict[str, float]:
        """The success rates of until by mode, "greedy" or "sampled"; empty for None. Raises BadValue if invalid."""
        pairs = [pair.partition("=") for pair in self.until.split(",")] if self.until is not None else []
        try:
            targets = {mode.strip(): float(rate) for mode, _, rate in pairs}
        except ValueError:
            targets = {"": 0.0}
        if not set(targets) <= {"greedy", "sampled"} or not all(0.0 < rate <= 1.0 for rate in targets.values()):
            raise BadValue(
                f"until takes success rates above 0 and up to 1, such as greedy=.99,sampled=.9, got {self.until!r}"
            )
        return targets

    @property
    def branch_plan(self) -> BranchPlan:
        """Which states of an episode have continuations, and how many. Raises BadValue for a value below 1."""
        from gem.rollout import BranchPlan  # imported late: only this advantage needs it

        width = 4 if self.branch_width is None else self.branch_width
        return BranchPlan(
            width=width, turns=self.branch_turns, every=1 if self.branch_every is None else self.branch_every
        )

    @property
    def clip_bounds(self) -> tuple[float | None, float | None]:
        """The lower and upper bound of the probability ratio, as distances from 1; None for no bound."""
        low, high = _CLIP[self.loss]
        if self.clip != "default":
            low = high = self.clip
        return low, high if self.clip_high == "default" else self.clip_high

    def _check_curriculum(self) -> None:
        if not 0.0 <= self.curriculum_minimum <= 1.0:
            raise BadValue(f"curriculum_minimum must be in [0, 1], got {self.curriculum_minimum}")
        if self.curriculum_seeds < 1:
            raise BadValue(f"curriculum_seeds must be at least 1, got {self.curriculum_seeds}")
        if self.curriculum_over is not None and self.curriculum is None:
            raise BadValue("curriculum_over needs curriculum='learnability'")
        if self.curriculum_over == "levels" and len(self.envs) < 2:
            raise BadValue("curriculum_over='levels' needs several environments; repeat --env, or use rows or seeds")
        if self.curriculum is not None and self.refill_groups:
            raise BadValue("refill_groups would hide the groups that a curriculum has to count; drop one of them")

    def _check_environments(self) -> None:
        """Convert env to an id or to a tuple of TrainEnv, and check it."""
        given = [self.env] if isinstance(self.env, (str, Mapping)) else list(self.env)
        envs = tuple(as_setting(env, TrainEnv, f"env {n}") for n, env in enumerate(given, start=1))
        plain = len(envs) == 1 and envs[0] == TrainEnv(id=envs[0].id)
        object.__setattr__(self, "env", envs[0].id if plain else envs)  # the dataclass is frozen
        check_mixture(envs)
        self._check_curriculum()
        sets = tuple(
            as_setting(e, EvalSetting, f"eval_env {number}") for number, e in enumerate(self.eval_env, start=1)
        )
        object.__setattr__(self, "eval_env", sets)
        check_names_differ(sets, "eval_env")
        for env in self.envs:
            self.estimator_of(env)  # checks its gamma
        if self.batch < len(self.envs) * self.group_size:
            raise BadValue(f"batch={self.batch} is too small for {len(self.envs)} environments")

    def _check_model(self) -> None:
        for name in ("lora_rank", "chat_template"):
            if getattr(self, name) is not None and self.model is None:
                raise BadValue(f"{name} needs a model: the embedded one is trained whole and has its own template")
        if self.sampler is None:
            for name in ("sampler_sync", "sampler_model", "sampler_folder"):
                if getattr(self, name) is not None:
                    raise BadValue(f"{name} needs sampler, the URL of a server")
        elif self.sampler_sync not in ("vllm", "sglang"):
            raise BadValue(f"sampler needs sampler_sync vllm or sglang, got {self.sampler_sync!r}")
        elif self.sampler_sync == "vllm" and self.lora_rank is None:
            raise BadValue("sampler_sync='vllm' sends a LoRA adapter: set lora_rank, or use sglang")
        elif self.model is None:
            raise BadValue("sampler needs a model that the server has as well")
        elif self.truncated_is is None:
            object.__setattr__(self, "truncated_is", TRUNCATED_IS)  # the dataclass is frozen
        if self.lora_modules is not None and self.lora_rank is None:
            raise BadValue(f"lora_modules={self.lora_modules!r} needs lora_rank")
        if None not in (self.imitation_tokens, self.imitation_steps):
            raise BadValue("give imitation_tokens or imitation_steps, not both")
        if self.dtype not in ("float32", "bf16"):
            raise BadValue(f"dtype must be float32 or bf16, got {self.dtype!r}")

    def _check_loss(self) -> None:
        for name, choices in (
            ("loss", tuple(_CLIP)),
            ("aggregation", ("constant", "token-mean", "sequence-mean")),
            ("kl_in", ("loss", "reward")),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise BadValue(
                    f"{name} must be one of {', '.join(choices)}, got {value!r}{did_you_mean(value, choices)}"
                )
        if self.clip_bounds == (None, None) and self.epochs > 1:
            raise BadValue(f"epochs={self.epochs} needs a clip range: plain REINFORCE is on-policy for one epoch only")
        if self.dual_clip is not None and (self.loss == "cispo" or not self.dual_clip > 1):
            raise BadValue(
                f"dual_clip needs a loss that clips and a value > 1, got {self.dual_clip} with {self.loss!r}"
            )
        if self.loss_constant is not None and self.aggregation != "constant":
            raise BadValue(f"loss_constant needs aggregation='constant', got {self.aggregation!r}")
        if not self.kl and (self.kl_in != "loss" or self.kl_estimator is not None):
            raise BadValue("kl_in and kl_estimator have no effect with kl=0")
        if self.kl_in == "reward" and self.kl_estimator not in (None, "k1"):
            raise BadValue(
                f"kl_in='reward' needs kl_estimator='k1', got {self.kl_estimator!r}, whose gradient as a reward is not "
                "that of the KL"
            )
