"""NeMo-RL: environments of gem as its Ray actor, and the dataset of their tasks.

NeMo-RL samples, keeps the token ids of a conversation, and hands its text to the actor, which answers with text in the
chat template. Encoding that text again gives the ids of gem for replies that end; a reply that was cut off is not
closed, because the actor is not told. Text of an environment that looks like a control token is changed.

The actor is given batches and keeps the episodes in progress. An episode that it does not have, for example because
another actor started it, is played again from its seed and the replies so far. An episode that fails three times
raises InfraError. NeMo-RL adds up the rewards of turns; it has no advantages of turns. Its GRPO repeats a row for the
members of a group, so that they start from the same state. Images and History are not supported.

NeMo-RL is installed from its repository; the package of this name at the index is empty.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

from gem.conversation import ChatFormat
from gem.conversation.observations import text_messages
from gem.errors import BadValue, InfraError, require
from gem.integrations.shared.tasks import ATTEMPTS, EnvTask, EpisodePool
from gem.integrations.shared.versions import check_framework
from gem.messages import Message
from gem.policies import Reply, Request
from gem.rollout import StepwiseEpisode

check_framework("nemo_rl")
torch: Any = require("torch", extra="train")
ray: Any = require("ray", extra="ray")
interfaces: Any = require("nemo_rl.environments.interfaces", extra="train")
TASK_NAME = "gem"  # key of the actor in NeMo-RL's task_to_env


class GemDataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """Tasks as NeMo-RL's DatumSpec. The environment of a task is built and reset to show its first prompt."""

    def __init__(self, tasks: Sequence[EnvTask], tokenizer: Any) -> None:
        self.tasks, self.chat, self.pool = list(tasks), _chat(tokenizer), EpisodePool()

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, index: int) -> dict[str, Any]:
        task = self.tasks[index]
        episode = self.pool.take(task)
        episode.reset(task.seed)
        try:
            if episode.over:
                raise InfraError(f"{task.env_id} with seed {task.seed} failed: {episode.trajectory.failure}")
            messages = _neutral(self.chat, episode.request)
        finally:
            self.pool.give_back(task, episode)
        ids = torch.tensor(self.chat.prompt(messages))
        content = str(self.chat.template.render(messages))
        return {
            "message_log": [{"role": "user", "content": content, "token_ids": ids}],
            "length": len(ids),
            "extra_env_info": {"task": task.to_json()},
            "loss_multiplier": 1.0,
            "idx": index,
            "task_name": TASK_NAME,
        }


class GemBatchEnvironment(interfaces.EnvironmentInterface):  # type: ignore[misc]
    """Plays the next turn of a batch of episodes. GemActor is its Ray actor.

    Args:
        cfg: "tokenizer", the name or folder of the model's tokenizer; optional "max_open", the number of episodes that
            are kept between turns, by default 4096; and "threads" for environments that wait, by default 32.
    """

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        transformers: Any = require("transformers", extra="train")
        self.chat = _chat(transformers.AutoTokenizer.from_pretrained(cfg["tokenizer"]))
        self.max_open = int(cfg.get("max_open", 4096))
        self.threads = ThreadPoolExecutor(int(cfg.get("threads", 32)))
        self.open: OrderedDict[str, StepwiseEpisode] = OrderedDict()
        self.pool = EpisodePool()

    def step(self, message_log_batch: Sequence[Any], metadata: Sequence[Mapping[str, Any]]) -> Any:
        turns = list(self.threads.map(self._turn, message_log_batch, metadata))
        return interfaces.EnvironmentReturn(
            observations=[{"role": "environment", "content": text} for text, _, _, _ in turns],
            metadata=[kept for _, kept, _, _ in turns],
            next_stop_strings=[None] * len(turns),
            rewards=torch.tensor([reward for _, _, reward, _ in turns], dtype=torch.float32),
            terminateds=torch.tensor([over for _, _, _, over in turns], dtype=torch.bool),
            answers=[None] * len(turns),
        )

    def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, Any]]:
        rewards = batch["total_reward"] if "total_reward" in batch else batch["rewards"]
        return batch, {"mean_return": float(rewards.float().mean())}

    def shutdown(self) -> None:
        """Close all environments."""
        for episode in self.open.values():
            episode.close()
        self.open.clear()
        self.pool.close()
        self.threads.shutdown()

    def _turn(self, log: Sequence[Mapping[str, Any]], kept: Mapping[str, Any]) -> tuple[str, Any, float, bool]:
        """Send the last reply of a conversation. Returns the new text, metadata, the reward, and whether it is over."""
        task = EnvTask.from_row(kept["task"])
        replies = [str(message["content"]) for message in log if message["role"] == "assistant"]
        handle = kept.get("handle") or uuid4().hex
        for _ in range(ATTEMPTS):
            episode = self.open.pop(handle, None)
            if episode is not None and len(episode.trajectory.turns) != len(replies) - 1:
                self.pool.give_back(task, episode)  # it is not at the turn before the last reply
                episode = None
            if episode is None:
                episode = self.pool.take(task)
                episode.reset(task.seed, group_id=task.seed)
            for text in replies[len(episode.trajectory.turns) :]:
                if not episode.over:
                    episode.step(Reply(text))
            played = episode.trajectory
            if played.failure is None and len(played.turns) == len(replies):
                break
            self.pool.give_back(task, episode)
        else:
            raise InfraError(f"{task.env_id} with seed {task.seed} failed {ATTEMPTS} times: {played.failure}")
        reward = played.rewards_K[-1]
        if episode.over:
            self.pool.give_back(task, episode)
            return "", None, reward, True
        self.open[handle] = episode
        while len(self.open) > self.max_open:  # closes the oldest: episodes that NeMo-RL cut off stay open
            self.open.popitem(last=False)[1].close()
        return self._shown(episode.request), {**kept, "handle": handle}, reward, False

    def _shown(self, request: Request) -> str:
        """Return new messages and the header of the next reply in the chat template."""
        rest = (self.chat.template.after_reply(_neutral(self.chat, request)) or "").lstrip()
        end = self.chat.leading_token(rest)  # which the model has sampled
        return rest if end is None else rest.removeprefix(end[0])


GemActor: Any = ray.remote(GemBatchEnvironment)


def _chat(tokenizer: Any) -> ChatFormat:
    chat = ChatFormat(tokenizer)
    if not chat.can_extend:
        raise BadValue("this chat template drops earlier replies, so NeMo-RL cannot extend conversations with it")
    return chat


def _neutral(chat: ChatFormat, request: Request) -> list[Message]:
    messages = text_messages(request.observation, request.role)
    return [{**message, "content": chat.template.neutral(message["content"])} for message in messages]
