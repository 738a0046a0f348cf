"""Configuration of a training run. Its fields are the flags of `gem train`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from gem.errors import BadValue, did_you_mean
from gem.rl.environments import EnvSetting, EvalSetting, TrainEnv, as_setting, check_mixture, check_names_differ
from gem.rl.estimate.advantages import GROUPED, Estimator
from gem.rl.options import TrainOptions

if TYPE_CHECKING:
    from gem.rollout import BranchPlan


_CLIP: dict[str, tuple[float | None, float | None]] = {
    "ppo": (0.2, 0.2),
    "gspo": (3e-4, 4e-4),  # arXiv 2507.18071, section 5.1
    "cispo": (None, 4.0),  # weights of at most 5, as in arXiv 2510.13786
}
_EXAMINERS = "random", "best"  # opponents of the evaluations of self-play
LATEST, PAST = "latest", "past"  # opponents of self-play besides the players of a game
_BRANCH = ("branch_width", "branch_turns", "branch_every", "branch_train")
_CURRICULUM = ("curriculum_over", "curriculum_seeds", "curriculum_minimum")
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
    **dict.fromkeys(["eval_every", "eval_episodes", "checkpoint_every", "past_every", "past_kept", "lora_rank"], 1),
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
            "kv_cache_mib",
        ],
        0,
    ),
}


def opponent_value(name: str) -> str | float:
    """Return the value of a game's argument ``opponent`` that the name of an opponent stands for."""
    try:
        return float(name)
    except ValueError:
        return name


@dataclass(frozen=True, kw_only=True)
class TrainConfig(TrainOptions):
    """Configuration of a training run: advantages of turns, the loss of their tokens, and the training loop.

    Raises:
        BadValue: for a value out of range, or settings that do not fit together.

    Sources: arXiv 2510.01051; those of each algorithm are in gem.rl.estimate.advantages and gem.rl.estimate.losses.
    """

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
        object.__setattr__(self, "advantage", self.advantage or ("seat" if self.self_play else "turn"))  # it is frozen
        self._check_environments()
        self._check_self_play()
        if self.estimator.name in GROUPED and self.group_size < 2:
            raise BadValue(
                f"advantage={self.advantage!r} compares episodes of a group and needs group_size of at least 2"
            )
        if self.advantage == "branch":
            _ = self.branch_plan  # checks its options
            if self.group_size > 1:
                raise BadValue(f"advantage='branch' forks its own groups; drop group_size={self.group_size}")
        elif unused := self._changed(_BRANCH):
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
                mcp=self.mcp if env.mcp is None else env.mcp,
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
        shared = [f.name for f in fields(EnvSetting)]
        sets = [env for env in self.eval_env if isinstance(env, EvalSetting)]
        if not sets:
            own = {} if self.eval_wrappers is None else {"wrappers": self.eval_wrappers}
            sets = [EvalSetting(**{name: getattr(env, name) for name in shared} | own) for env in self.envs]
        if self.self_play and not self.eval_env:
            sets = [
                replace(env, name=f"{env.label} against {opponent}", kwargs={**env.kwargs, "opponent": opponent})
                for env in sets
                for opponent in _EXAMINERS
            ]
        trained = {env.id for env in self.envs}
        default = self.wrappers if self.eval_wrappers is None else self.eval_wrappers
        return tuple(
            replace(
                env,
                kwargs={**(self.env_kwargs if env.id in trained else {}), **env.kwargs},
                wrappers=default if env.wrappers is None else env.wrappers,
                mcp=self.mcp if env.mcp is None else env.mcp,
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
            name=self.advantage or "turn",
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

    @property
    def opponent_weights(self) -> dict[str, float]:
        """The shares of the games of self-play by opponent, without those of 0."""
        return {name: weight for name, weight in self.opponents.items() if weight} or {LATEST: 1.0}

    def _changed(self, names: Sequence[str]) -> list[str]:
        """Return the names of the options that differ from their defaults."""
        return [f.name for f in fields(self) if f.name in names and getattr(self, f.name) != f.default]

    def _check_self_play(self) -> None:
        if PAST not in self.opponent_weights and (unused := self._changed(("past_every", "past_kept"))):
            raise BadValue(f"{unused[0]} needs opponents with {PAST}, such as latest=.8 {PAST}=.2")
        if not self.self_play:
            if self.opponents or self.advantage == "seat":
                name = "opponents" if self.opponents else "advantage='seat'"
                raise BadValue(f"{name} needs self_play")
            return
        for name, weight in self.opponents.items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < math.inf:
                raise BadValue(f"opponents takes shares of the games, such as latest=.8 past=.2, got {name}={weight!r}")
        if self.opponents and not any(self.opponents.values()):
            raise BadValue("the shares of opponents need a positive sum")
        for name in ("curriculum", "refill_groups", "sampler", "wrappers", "mcp", "prompt_template"):
            if getattr(self, name):
                raise BadValue(f"{name} has no effect on self_play; drop one of them")
        if self.group_size > 1 or self.advantage in (*GROUPED, "branch"):
            raise BadValue(f"self_play has no groups of equal episodes, got {self.advantage!r}; use seat, turn or gae")
        for env in self.envs:
            if "opponent" in env.kwargs or env.max_turns is not None or env.wrappers or env.mcp:
                raise BadValue(f"self_play plays {env.id} itself: drop its opponent, max_turns, wrappers and mcp")

    def _check_curriculum(self) -> None:
        if not 0.0 <= self.curriculum_minimum <= 1.0:
            raise BadValue(f"curriculum_minimum must be in [0, 1], got {self.curriculum_minimum}")
        if self.curriculum_seeds < 1:
            raise BadValue(f"curriculum_seeds must be at least 1, got {self.curriculum_seeds}")
        if self.curriculum is None and (unused := self._changed(_CURRICULUM)):
            raise BadValue(f"{unused[0]} needs curriculum='learnability'")
        check_pool(self, self.curriculum_over or ("levels" if len(self.envs) > 1 else "seeds"))
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
        low, high = self.clip_bounds
        if low is not None and low >= 1:
            raise BadValue(
                f"clip={low:g} bounds nothing from below, because a ratio is at least 0; give a value below 1, or none "
                f"with clip_high={'none' if high is None else format(high, 'g')}"
            )
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


def check_pool(config: TrainConfig, over: str) -> None:
    """Raise BadValue if the size of a pool of seeds is set for a curriculum over levels or rows."""
    if over != "seeds" and config.curriculum_seeds != TrainConfig.curriculum_seeds:
        raise BadValue(f"curriculum_seeds={config.curriculum_seeds} needs curriculum_over='seeds', got {over!r}")
