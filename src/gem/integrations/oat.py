"""Oat: actors that play environments of gem, and learners with an advantage per turn.

GemActor and GemLearner train each turn as a datum whose reward is the discounted return from it on; ReBN normalizes the
returns over all devices. GemMultiTurnActor and GemMultiTurnLearner hand over episodes as transitions, for a critic of
turns or for returns. The prompts of a run are tasks; each is played ``num_samples`` times, all in one batch.

Oat cannot express: a sequence of several turns (each turn is a datum with its whole context), a value after a limit
outside the task (the last transition is always done), images. Evaluation (``eval_steps``) is not supported.
PPOMultiTurnLearner trains ``rollout_batch_size_per_device`` random turns of each batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from gem.conversation import ChatFormat
from gem.errors import BadValue, require
from gem.integrations.shared.sequences import PackedEpisode, count, pack_batch, turn_returns
from gem.integrations.shared.tasks import EnvTask, make_tasks, play_tasks
from gem.integrations.shared.versions import check_framework
from gem.policies import Reply, Request

check_framework("oat")
_ppo: Any = require("oat.algorithms.ppo", extra="train")
_turns: Any = require("oat.algorithms.ppo_multiturn", extra="train")
_types: Any = require("oat.types", extra="train")


@dataclass
class GemArgs(_ppo.PPOArgs):  # type: ignore[misc]
    """Arguments of a run: those of PPOArgs, and the tasks. See gem.integrations.shared.tasks.make_tasks().

    Args:
        turns_per_sample: GemActor hands over exactly this many turns per sample, and drops further ones. Needed with
            several actors, whose learners have to agree. 0 hands over all turns.
        max_envs: maximum number of environments of an actor.
    """

    env_id: str = field(default="game:GuessTheNumber-v0-easy", metadata={"help": "an id of `gem list`"})
    wrappers: str = field(default="", metadata={"help": "such as python_tool,concat_chat"})
    num_tasks: int = field(default=1024, metadata={"help": "tasks, each with its own seed"})
    turns_per_sample: int = field(default=0, metadata={"help": "0 hands over all turns"})
    max_envs: int = field(default=256, metadata={"help": "environments of an actor"})


class EnginePolicy:
    """The engine of an actor as a policy of gem.

    Args:
        actor: an actor of Oat whose init() was called.
    """

    version = 0

    def __init__(self, actor: Any) -> None:
        args = actor.args
        self.actor, self.chat = actor, ChatFormat(actor.tokenizer)
        self.sampling = copy(actor.sampling_params)
        self.sampling.n = 1
        longest = args.max_model_len
        self.max_prompt_tokens = args.prompt_max_length if longest is None else longest - args.generate_max_length

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        outputs = self.actor.generate([list(request.prompt_ids) for request in requests], self.sampling)
        return [self._reply(output.outputs[0]) for output in outputs]

    def _reply(self, sampled: Any) -> Reply:
        ids = list(sampled.token_ids)
        logprobs = [step[token].logprob for token, step in zip(ids, sampled.logprobs, strict=True)]
        return Reply(self.chat.decode(ids), ids, logprobs, sampled.finish_reason)


class _Player:
    """Plays the prompts of a batch. Comes before an actor of Oat in the order of bases."""

    args: Any
    tokenizer: Any
    ipc_client: Any

    def play(self, prompts: Sequence[str]) -> tuple[list[PackedEpisode], dict[str, float]]:
        """Play each task ``num_samples`` times. Returns the episodes that can be trained, and metrics.

        Raises:
            BadValue: no episode can be trained.
        """
        tasks = [EnvTask.from_row(prompt) for prompt in prompts for _ in range(self.args.num_samples)]
        policy = EnginePolicy(self)
        played, failed = play_tasks(tasks, policy, self.tokenizer, max_slots=self.args.max_envs)
        batch = pack_batch(played)
        packed = [episode for episode in batch if episode is not None]
        if not packed:
            raise BadValue(f"none of {len(batch)} episodes has a sampled token; {failed} attempts failed")
        rewards = [episode.trajectory.total_reward for episode in packed]
        solved = [float(episode.trajectory.solved) for episode in packed]
        metrics = {"episode_reward": sum(rewards) / len(packed), "solved": sum(solved) / len(packed), "failed": failed}
        return packed, {f"actor/{name}": float(n) for name, n in {**metrics, **count(batch)}.items()}


class GemActor(_Player, _ppo.PPOActor):  # type: ignore[misc]
    """Hands over a TransitionData per turn: its tokens, and on the last one the discounted return."""

    def step(self, prompts: list[str], formatted_prompts: list[str], references: Any = None) -> Any:
        episodes, info = self.play(prompts)
        data = [datum for episode in episodes for datum in _datums(episode, self.args.gamma, info)]
        data = fill(data, len(prompts) * self.args.num_samples, self.args.turns_per_sample)
        return self.ipc_client.serialize_ipc(data)


class GemMultiTurnActor(_Player, _turns.PPOMultiTurnActor):  # type: ignore[misc]
    """Hands over episodes as lists of Transition, with the reward of each turn."""

    _prompts: Sequence[str] = ()

    def step(self, prompts: Any = None, formatted_prompts: Any = None, references: Any = None) -> Any:
        self._prompts = prompts
        return super().step(prompts, formatted_prompts, references)

    def collect_experience(self) -> tuple[list[list[Any]], dict[str, float]]:
        episodes, metrics = self.play(self._prompts)
        return [_transitions(episode) for episode in episodes], metrics


class _Tasks:
    """Makes the prompts of a run from its arguments. Comes before a learner of Oat in the order of bases."""

    def prepare_data(self, strategy: Any, tokenizer: Any) -> None:
        args = strategy.args
        if args.eval_steps > 0:
            raise BadValue(f"eval_steps {args.eval_steps} is not supported; set it to -1")
        tasks = make_tasks(args.env_id, args.num_tasks, seed=args.seed, wrappers=args.wrappers)
        self.prompts_dataset = [(task.env_id, task.to_json(), "") for task in tasks]
        size = args.rollout_batch_size_per_device
        self.prompts_dataloader = strategy.setup_dataloader(self.prompts_dataset, size, pin_memory=True)
        self.eval_prompts_dataset = self.eval_prompts_dataloader = None
        self.pi_buffer: deque[Any] = deque()  # Oat clears it; its limit would silently drop turns


class GemLearner(_Tasks, _ppo.PPOLearner):  # type: ignore[misc]
    """Trains on the returns of turns, normalized over the turns of all devices (ReBN). Has no critic."""

    def _init(self, args: Any, actors: Any) -> None:
        if args.critic_type == "ppo":
            raise BadValue("GemLearner has no critic; set critic_type to grpo or drgrpo, or use GemMultiTurnLearner")
        super()._init(args, actors)

    def learning_step(self, trajectory: dict[str, Any]) -> Any:
        self._trained = trajectory["loss_masks"]
        return super().learning_step(trajectory)

    def compute_monte_carlo_advantages(self, rewards: Any, response_masks: Any) -> Any:
        returns = rewards.sum(-1)
        return normalize_all(self.strategy, returns, returns.new_tensor(self._trained))


class GemMultiTurnLearner(_Tasks, _turns.PPOMultiTurnLearner):  # type: ignore[misc]
    """Reads the value of a state at its last token, where Oat reads the first; ``whiten_adv`` takes two passes."""

    def _init(self, args: Any, actors: Any) -> None:
        super()._init(args, actors)
        if self.critic is not None:  # Oat reads position 0 of one state without padding
            self.critic.register_forward_hook(lambda module, inputs, values: values.flip(1))

    def learning_step(self, trajectory: dict[str, Any]) -> Any:
        if self.args.whiten_adv:
            advantages = trajectory["attention_mask"].new_tensor([float(a) for a in trajectory["advantages"]])
            whitened = normalize_all(self.strategy, advantages, advantages.new_ones(len(advantages)))
            trajectory = {**trajectory, "advantages": whitened.tolist()}
        return super().learning_step(trajectory)


def normalize_all(strategy: Any, values_N: Any, trained_N: Any) -> Any:
    """Return (value - mean) / std over the trained turns of all devices, in float64; 0 for others and constant batches.

    Args:
        strategy: of the learner, for its all_reduce().
        values_N, trained_N: tensors; trained_N is 1 for turns that are trained.
    """
    values, trained = values_N.double(), trained_N.double()
    number = strategy.all_reduce(trained.sum(), op="sum")
    mean = strategy.all_reduce((values * trained).sum(), op="sum") / number
    centered = (values - mean) * trained
    std = (strategy.all_reduce((centered**2).sum(), op="sum") / number).sqrt()
    largest = strategy.all_reduce((values * trained).abs().max(), op="max")
    return (centered / std if std > 1e-12 * largest else centered * 0).to(values_N.dtype)


def fill(data: Sequence[Any], samples: int, turns_per_sample: int = 0) -> list[Any]:
    """Return a multiple of ``samples`` datums: all of them and copies that are not trained, or an exact number.

    Args:
        turns_per_sample: the multiple; further datums are left out at regular distances. 0 takes all datums.
    """
    wanted = samples * (turns_per_sample or -(-len(data) // samples))
    kept = [data[i * len(data) // wanted] for i in range(wanted)] if len(data) > wanted else list(data)
    shortest = min(kept, key=lambda datum: len(datum.prompt_ids) + len(datum.response_ids))
    return kept + [replace(shortest, loss_mask=False)] * (wanted - len(kept))


def _datums(episode: PackedEpisode, gamma: float, info: dict[str, float]) -> list[Any]:
    trajectory = episode.trajectory
    return [
        _types.TransitionData(
            prompt=str(turn.observation),
            prompt_ids=list(turn.context),
            response=turn.action,
            response_ids=list(turn.sampled_ids),
            response_logprobs=list(turn.logprobs),
            rewards=[0.0] * (len(turn.sampled_ids) - 1) + [value],
            info=info,
        )
        for turn, value in zip(trajectory.turns, turn_returns(trajectory, gamma).tolist(), strict=True)
        if turn.sampled_ids
    ]


def _transitions(episode: PackedEpisode) -> list[Any]:
    turns = [turn for turn in episode.trajectory.turns if turn.sampled_ids]
    return [
        _types.Transition(
            obs=str(turn.observation),
            action=turn.action,
            rewards=turn.reward,
            done=k == len(turns) - 1,
            prompt=str(turn.observation),
            prompt_ids=list(turn.context),
            response=turn.action,
            response_ids=list(turn.sampled_ids),
            response_logprobs=list(turn.logprobs),
            response_is_truncated=turn.finish == "length",
            action_is_formatted=turn.invalid is None,
            info={},
        )
        for k, turn in enumerate(turns)
    ]
