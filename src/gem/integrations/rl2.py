"""RL2: a ``generate`` function that plays environments of gem.

A file with ``from gem.integrations.rl2 import generate`` is the ``rollout.env_path``. The columns of the dataset row
name the task, so that the samples of a group start from the same state. gem plays the episode and hands over the
sampled tokens with a reward per turn, and a sequence for each context that does not extend the one before.

The estimator ``gae`` of RL2 uses the rewards of turns, discounted per token; ``reinforce`` adds them up. The metric
``rewards``, by which RL2 filters groups, is the reward of the episode. A request that RL2 interrupts
(``partial_rollout``) is continued with the next call. RL2 cannot drop a sample: an episode that fails three times
raises InfraError, and one whose first prompt is over the limit raises BadValue. Environments are text only.

RL2 is installed from its repository; the package index has an older interface (rl-square).
"""

from __future__ import annotations

import asyncio
from typing import Any

from gem.errors import MissingDependency, require
from gem.integrations.shared.sequences import pack_episode
from gem.integrations.shared.tasks import EnvTask, shared_pool
from gem.integrations.shared.versions import check_framework, frameworks
from gem.policies import Reply, Request
from gem.trajectory import Trajectory

check_framework("rl2")
communication: Any = require("RL2.utils.communication", extra="train")
rl: Any = require("RL2.datasets.rl", extra="train")
if not hasattr(rl, "Sample"):
    install = frameworks()["rl2"]["install"]
    raise MissingDependency(f"this RL2 has no Sample; the commit 9161ede is supported; {install}")
Status: Any = rl.Sample.Status


async def generate(config: Any, tokenizer: Any, router_url: str, sample: Any) -> None:
    """Play the episode of a sample, or go on with it, and fill in its sequences.

    The status of the sample becomes DONE; or ABORTED if RL2 interrupted the engine.
    """
    if sample.status is Status.DONE:
        return
    episode = _interrupted.pop(id(sample), None) or _Episode(config, tokenizer, sample)
    sample.status = Status.RUNNING
    if await episode.resume(router_url):
        _fill(sample, episode.task.result())
    else:
        sample.status, _interrupted[id(sample)] = Status.ABORTED, episode


class _Episode:
    """An episode that is played in a task of its own, which outlives an interrupted call of generate()."""

    def __init__(self, config: Any, tokenizer: Any, sample: Any) -> None:
        self.settings = {name: value for name, value in config.sampling_params.items() if value is not None}
        self.sample, self.pool = sample, shared_pool(tokenizer)
        self.go, self.interrupted = asyncio.Event(), asyncio.Event()
        self.task = asyncio.ensure_future(self.pool.play(EnvTask.from_row(sample.sample), self.reply))

    async def resume(self, router_url: str) -> bool:
        """Let the episode go on. Returns whether it has ended, as opposed to a request that was interrupted."""
        self.url = router_url
        self.interrupted.clear()
        self.go.set()
        waiting = asyncio.ensure_future(self.interrupted.wait())
        await asyncio.wait({self.task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return self.task.done()

    async def reply(self, request: Request) -> Reply:
        sampled, logprobs, limit = list[int](), list[float](), self.settings.get("max_new_tokens")
        while True:
            await self.go.wait()
            settings = {**self.settings, "no_stop_trim": True}
            if limit is not None:
                settings["max_new_tokens"] = limit - len(sampled)
            ids = [*request.prompt_ids, *sampled]
            body = {"input_ids": ids, "sampling_params": settings, "return_logprob": True}
            meta = (await communication.async_request(self.url, "generate", json=body))["meta_info"]
            for logprob, token, *_ in meta.get("output_token_logprobs") or ():
                sampled.append(token)
                logprobs.append(logprob)
            finish = meta["finish_reason"]["type"]
            if finish != "abort":
                break
            self.go.clear()
            self.interrupted.set()
        self.sample.metrics["response_length"].append(len(sampled))
        self.sample.metrics["length_clip_ratio"].append(finish == "length")
        chat: Any = self.pool.chat
        return Reply(chat.decode(sampled), sampled, logprobs, finish)


def _fill(sample: Any, played: Trajectory) -> None:
    for s in pack_episode(played).sequences:
        actions = [token if trained else 0 for token, trained in zip(s.ids_T, s.mask_T, strict=True)]
        names = ("states", "actions", "action_mask", "logps", "rewards")
        fields = (s.ids_T, actions, s.mask_T, s.logprobs_T, s.rewards_T)
        sample.state_dicts.append(dict(zip(names, fields, strict=True)))
    sample.turn, sample.status = len(played.turns), Status.DONE
    sample.state_text = str(played.turns[-1].observation)
    sample.action_text = played.turns[-1].action
    sample.metrics["turns"].append(sample.turn)
    sample.metrics["rewards"].append(played.total_reward)
    sample.metrics["solved"].append(played.solved)


_interrupted: dict[int, _Episode] = {}  # by the id of the sample, which RL2 keeps until the episode ends
