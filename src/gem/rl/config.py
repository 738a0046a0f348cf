"""Configuration of a training run. Its fields are the flags of `gem train`."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gem._internal.typed import check_fields
from gem._internal.worker_process import usable_cpus
from gem.errors import BadValue
from gem.rl.choices import Choice, checked_options, choose
from gem.rl.environments import EnvSetting, EvalSetting, TrainEnv, as_settings, check_mixture, check_names_differ
from gem.rl.estimate.advantages import ADVANTAGES
from gem.rl.estimate.losses import LOSSES
from gem.rl.options import CriticOptions, SamplerOptions, TrainOptions

if TYPE_CHECKING:
    from gem.rollout import BranchPlan

_EXAMINERS = "random", "best"  # opponents of the evaluations of self-play
CHOICES = "advantage", "loss"  # fields that name a function
LATEST, PAST = "latest", "past"  # opponents of self-play besides the players of a game
GROUP_SIZE = 8  # default of the advantages that compare the episodes of a group
TRUNCATED_IS = 2.0  # default with a sampler of another engine


class Rates(NamedTuple):
    """Peak learning rates: of the policy, and of the warm-up."""

    policy: float
    warm_up: float


# Larger ones of the warm-up destroy what a pretrained model knows: at 3e-3, SmolLM2's loss rose from 0.9 to 10 nats.
NEW_RATES, WHOLE_RATES, LORA_RATES = Rates(2e-3, 3e-3), Rates(5e-5, 3e-5), Rates(2e-4, 2e-4)


WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf", ".h5", ".msgpack", ".ckpt")  # in the names of files


def has_no_weights(model: Path) -> bool:
    """Return whether a folder describes a model and has no weights, so that they are drawn from a seed.

    An index of weights, or a part of a download, shows that they are lost.
    """
    traces = (mark in file.name for file in model.glob("*") for mark in WEIGHTS)
    with suppress(OSError):  # of a name that no file can have
        return (model / "config.json").is_file() and not any(traces)
    return False


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
        BadValue: for a value of the wrong type or out of range, or settings that do not fit together.
        UnknownArgument: for an option that the advantage, the loss, the critic or the sampler does not have.

    Sources: arXiv 2510.01051; those of each algorithm are in gem.rl.estimate.advantages and gem.rl.estimate.losses.
    """

    def __post_init__(self) -> None:
        check_fields(self, leave=("env", "eval_env", *CHOICES))
        self._check_environments()
        self._check_advantage()
        self._check_self_play()
        self._check_loss()
        self._check_model()
        self._check_sizes()

    @cached_property
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

    @cached_property
    def eval_sets(self) -> tuple[EvalSetting, ...]:
        """The sets of an evaluation, with all settings of the run that they do not replace."""
        shared = [f.name for f in fields(EnvSetting)]
        sets = [env for env in self.eval_env if isinstance(env, EvalSetting)]
        if not sets:
            sets = [EvalSetting(**{name: getattr(env, name) for name in shared}) for env in self.envs]
        if self.self_play and not self.eval_env:
            sets = [
                replace(env, name=f"{env.label} against {opponent}", kwargs={**env.kwargs, "opponent": opponent})
                for env in sets
                for opponent in _EXAMINERS
            ]
        trained = {env.id for env in self.envs}
        return tuple(
            replace(
                env,
                kwargs={**(self.env_kwargs if env.id in trained else {}), **env.kwargs},
                wrappers=self.wrappers if env.wrappers is None else env.wrappers,
                mcp=self.mcp if env.mcp is None else env.mcp,
                prompt_template=env.prompt_template or self.prompt_template,
                max_new_tokens=env.max_new_tokens or self.max_new_tokens,
                split=self.eval_split if env.split is None else env.split,
                temperature=self.eval_temperature if env.temperature is None else env.temperature,
                episodes=env.episodes or self.eval_episodes or (500 if self.model is None else 64),
            )
            for env in sets
        )

    @property
    def title(self) -> str:
        """The names of the environments, for people."""
        return ", ".join(env.label if len(self.envs) > 1 else env.id for env in self.envs)

    @cached_property
    def estimators(self) -> tuple[Choice, ...]:
        """The advantage of each of self.envs, with its own discount."""
        return tuple(self._estimator(env.gamma) for env in self.envs)

    @cached_property
    def estimator(self) -> Choice:
        """The advantage, with the discount of the run."""
        return self._estimator(self.gamma)

    @cached_property
    def objective(self) -> Choice:
        """The loss."""
        return choose("loss", self.loss, LOSSES, self.loss_options)

    @cached_property
    def critic(self) -> CriticOptions | None:
        """The settings of the critic; None if the advantage needs none."""
        if "values" not in self.estimator.needs:
            return None
        return CriticOptions(**checked_options("critic_options", CriticOptions, self.critic_options))

    @cached_property
    def branch_plan(self) -> BranchPlan | None:
        """Which states of an episode have continuations, and how many; None if the advantage needs none."""
        from gem.rollout import BranchPlan  # imported late: only this advantage needs it

        if "branches" not in self.estimator.needs:
            return None
        value = self.estimator.value
        return BranchPlan(width=value("width", 4), turns=value("turns"), every=value("every", 1))

    @property
    def trains_branches(self) -> bool:
        """Whether the continuations of episodes are trained on as well."""
        return bool(self.estimator.value("train", False)) and self.branch_plan is not None

    @cached_property
    def sampling(self) -> SamplerOptions | None:
        """The settings of the server that samples; None without one."""
        if self.sampler is None:
            return None
        if "sync" not in self.sampler_options:
            raise BadValue("sampler needs sampler_options with sync='vllm' or sync='sglang'")
        return SamplerOptions(**checked_options("sampler_options", SamplerOptions, self.sampler_options))

    @cached_property
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
    def groups(self) -> int:
        """Episodes that start from one state; 1 for no groups."""
        return self.group_size or 1

    @cached_property
    def pretrained(self) -> bool:
        """Whether the model has weights to start from."""
        return self.model is not None and not has_no_weights(Path(self.model))

    @property
    def rates(self) -> Rates:
        """The peak learning rates."""
        pretrained = WHOLE_RATES if self.lora_rank is None else LORA_RATES
        default = pretrained if self.pretrained else NEW_RATES
        return Rates(self.learning_rate or default.policy, self.imitation_rate or default.warm_up)

    @property
    def torch_threads(self) -> int:
        """The number of threads of PyTorch."""
        return self.threads or (1 if self.model is None else usable_cpus())

    @property
    def opponent_weights(self) -> dict[str, float]:
        """The shares of the games of self-play by opponent, without those of 0."""
        return {name: weight for name, weight in self.opponents.items() if weight} or {LATEST: 1.0}

    def saved(self) -> dict[str, Any]:
        """Return all settings as plain data, with the defaults that depend on other settings or on the machine."""
        advantage, loss = self.estimator, self.objective
        options = {name: value for name, value in advantage.saved().items() if name != "gamma"}
        gamma = advantage.value("gamma", self.gamma)
        settings = {"gamma": gamma, "advantage_options": options, "loss_options": loss.saved()}
        numbers = {"learning_rate": self.rates.policy, "imitation_rate": self.rates.warm_up}
        return asdict(self) | settings | numbers | {"threads": self.torch_threads}

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen

    def _estimator(self, gamma: float | None) -> Choice:
        assert self.advantage is not None
        if "gamma" in self.advantage_options:
            raise BadValue("advantage_options must not contain gamma, which is an option of its own")
        chosen = choose("advantage", self.advantage, ADVANTAGES, self.advantage_options)
        if gamma is None and chosen.value("gamma") is Parameter.empty:
            raise BadValue(f"advantage={chosen.name!r} has no default of gamma: give one")
        if gamma is None or (gamma == 1.0 and not chosen.takes("gamma")):
            return chosen
        if not chosen.takes("gamma"):
            raise BadValue(f"gamma={gamma} has no effect with advantage={chosen.name!r}, which has no discount")
        return replace(chosen, options={**chosen.options, "gamma": gamma})

    def _check_environments(self) -> None:
        """Convert env to an id or to a tuple of TrainEnv, and check it."""
        envs = as_settings(self.env, TrainEnv, "env")
        plain = len(envs) == 1 and envs[0] == TrainEnv(id=envs[0].id) and "=" not in envs[0].id
        self._set("env", envs[0].id if plain else envs)
        check_mixture(envs)
        sets = as_settings(self.eval_env, EvalSetting, "eval_env")
        self._set("eval_env", sets)
        check_names_differ(sets, "eval_env")
        if self.curriculum == "levels" and len(self.envs) < 2:
            raise BadValue("curriculum='levels' needs several environments; repeat --env, or use rows or seeds")
        if self.curriculum is not None and self.refill_groups:
            raise BadValue("refill_groups would hide the groups that a curriculum has to count; drop one of them")

    def _check_advantage(self) -> None:
        if self.advantage is None or self.advantage == "none":
            self._set("advantage", "seat" if self.self_play else "turn")
        self._set("advantage", self.estimator.name)
        for estimator in (self.estimator, *self.estimators):
            if estimator.name in ADVANTAGES:
                estimator([])  # which refuses options that do not fit together
        needs = self.estimator.needs
        if self.group_size is None:
            self._set("group_size", GROUP_SIZE if "groups" in needs else 1)
        if "groups" in needs and self.groups < 2:
            raise BadValue(f"advantage={self.advantage!r} compares episodes of a group: group_size must be at least 2")
        if "branches" in needs and self.groups > 1:
            raise BadValue(f"advantage={self.advantage!r} forks its own groups; drop group_size={self.group_size}")
        if "values" not in needs and self.critic_options:
            raise BadValue(f"critic_options need a critic, as of advantage='gae', got {self.advantage!r}")
        if self.critic is not None:
            if "weight" in self.critic_options and not self.critic.shared:
                raise BadValue("critic_options: weight needs shared=true; a critic of its own has a loss of its own")
            if self.critic.warmup >= self.steps:
                raise BadValue(
                    f"critic_options: warmup={self.critic.warmup} leaves no update for the policy of steps={self.steps}"
                )

    def _check_self_play(self) -> None:
        needs = self.estimator.needs
        if not self.self_play:
            if self.opponents or "seats" in needs:
                raise BadValue(f"{'opponents' if self.opponents else f'advantage={self.advantage!r}'} needs self_play")
            return
        if self.opponents and not any(self.opponents.values()):
            raise BadValue("the shares of opponents need a positive sum")
        for name in ("curriculum", "refill_groups", "sampler", "wrappers", "mcp", "prompt_template"):
            if getattr(self, name):
                raise BadValue(f"{name} has no effect on self_play; drop one of them")
        if self.groups > 1 or needs & {"groups", "branches"}:
            raise BadValue(
                f"self_play has no groups of equal episodes, got advantage={self.advantage!r} and "
                f"group_size={self.group_size}; use seat, turn or gae"
            )
        for env in self.envs:
            if "opponent" in env.kwargs or env.max_turns is not None or env.wrappers or env.mcp:
                raise BadValue(f"self_play plays {env.id} itself: drop its opponent, max_turns, wrappers and mcp")

    def _check_loss(self) -> None:
        loss = self.objective
        self._set("loss", loss.name)
        clips = [name for name in ("clip_low", "clip_high") if loss.takes(name)]
        if self.epochs > 1 and loss.name in LOSSES and all(loss.value(name) is None for name in clips):
            raise BadValue(f"epochs={self.epochs} needs a clip range: plain REINFORCE is on-policy for one epoch only")
        if self.kl_in == "reward" and not self.kl:
            raise BadValue("kl_in has no effect with kl=0")

    def _check_model(self) -> None:
        for name in ("lora_rank", "chat_template"):
            if getattr(self, name) is not None and self.model is None:
                raise BadValue(f"{name} needs a model: the embedded one is trained whole and has its own template")
        if self.sampling is None:
            if self.sampler_options:
                raise BadValue("sampler_options need sampler, the URL of a server")
        elif self.model is None:
            raise BadValue("sampler needs a model that the server has as well")
        elif self.truncated_is is None:
            self._set("truncated_is", TRUNCATED_IS)
        if self.lora_modules is not None and self.lora_rank is None:
            raise BadValue(f"lora_modules={self.lora_modules!r} needs lora_rank")
        for name in ("model", "sampler", "device", "out"):
            if getattr(self, name) == "":
                raise BadValue(f"{name} must not be empty; leave it out for its default")
        if self.name is not None and (self.name in ("", ".", "..") or not re.fullmatch(r"[^/\\\x00-\x1f]*", self.name)):
            raise BadValue(f"name must be the name of a folder in {self.out}, got {self.name!r}; --out chooses another")

    def _check_sizes(self) -> None:
        if self.batch % self.groups:
            raise BadValue(f"batch must be a multiple of group_size, got {self.batch} and {self.group_size}")
        if self.batch < len(self.envs) * self.groups:
            raise BadValue(f"batch={self.batch} is too small for {len(self.envs)} environments")
        if self.refill_groups and self.groups < 2:
            raise BadValue("refill_groups needs groups: set group_size to at least 2")
        if self.micro_batch is not None and self.micro_batch > self.minibatch:
            raise BadValue(f"micro_batch must not exceed minibatch, got {self.micro_batch} > {self.minibatch}")
        modes = {"sampled", *(env.mode for env in self.eval_sets)}
        if not set(self.targets) <= modes:
            raise BadValue(f"until={self.until!r} needs evaluations that play so; they are {', '.join(sorted(modes))}")
