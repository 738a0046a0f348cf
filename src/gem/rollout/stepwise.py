"""Play one episode whose replies come from outside, such as the loop or the engine of a training framework.

StepwiseEpisode is advanced by its caller, one reply at a time. play_episode() advances it with a coroutine. Contexts,
limits, failures and the record are those of Collector and play_seeds().
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

from gem.conversation import ChatFormat
from gem.conversation.history import FULL_HISTORY, History
from gem.core import Step, StopReason
from gem.errors import EpisodeOver
from gem.policies import Reply, Request
from gem.rollout.episode import ActiveEpisode, EnvView, ReplyBatch
from gem.rollout.scheduler import ENDINGS
from gem.trajectory import Trajectory
from gem.vector.slots import Slot

_THREADS = 64  # of the pool that steps environments which wait or compute


class StepwiseEpisode:
    """An episode that its caller advances with reset() and step(). Can be reset any number of times.

    Failures of the environment do not raise: they end the episode as failed, see Trajectory.failure. An environment
    that raised an unexpected exception is built again.

    Args:
        build: builds the environment; called once, and again after a failure.
        chat: encodes the conversation as tokens; None for an engine that takes text or messages.
        max_prompt_tokens: maximum length of a context; a longer one truncates the episode. None for no limit.
        history: limits on the part of the episode that is shown.
        inline: whether calls of the environment take microseconds. If not, play_episode() calls it on a thread.

    Attributes:
        trajectory: the record so far; complete if over is true.
        over: whether the episode has ended. True before the first reset().
        version: number of policy updates, which the caller may set before step().
    """

    def __init__(
        self,
        build: Callable[[], Any],
        *,
        chat: ChatFormat | None = None,
        max_prompt_tokens: int | None = None,
        history: History = FULL_HISTORY,
        inline: bool = True,
    ) -> None:
        self._slot = Slot(0, build, same_step=False, on_failure="restart")
        self._policy = _Limits(chat, max_prompt_tokens)
        self.history, self.inline, self.version = history, inline, 0
        self.trajectory, self.over = Trajectory(), True
        self._asked = 0.0

    @property
    def env(self) -> Any:
        """The environment."""
        return self._slot.env

    def reset(self, seed: int | None = None, *, group_id: Any = None, episode: int = 0, **kwargs: Any) -> None:
        """Start an episode.

        Args:
            seed: of the environment; None continues its sequence of episodes.
            group_id, episode: see Trajectory. Replies are sampled from the stream of (slot 0, episode, turn).
            kwargs: passed to the environment's reset().

        Raises:
            CallerError: the environment refused the seed or the arguments.
        """
        metadata = self._slot.metadata
        self.trajectory = Trajectory(metadata.env_id, seed=seed, group_id=group_id, episode=episode)
        observation, info = self._slot.reset(seed, kwargs)
        self.over, self._active = False, ActiveEpisode(self.trajectory, observation, info)
        if "failure" in info:
            self._end(StopReason.FAILED, info["failure"])
        else:
            self._view = EnvView(self.env.sample_random_action, metadata.shows_prompt, metadata.shows_history)
            self._prepare()

    @property
    def request(self) -> Request:
        """What the engine is asked next. Raises EpisodeOver if the episode has ended."""
        if self.over:
            raise EpisodeOver("the episode is over; call reset()")
        return self._active.request(self._policy, self._view)

    def step(self, reply: Reply) -> None:
        """Record a reply and send its action to the environment.

        A reply with a failure ends the episode as failed; a refusal or an overflow ends it as truncated.

        Raises:
            CallerError: the environment refused the action.
            EpisodeOver: the episode has ended.
        """
        if self.over:
            raise EpisodeOver("the episode is over; call reset()")
        now = time.perf_counter()
        active, waited = self._active, now - self._asked
        if reply.failure:
            return self._end(StopReason.FAILED, reply.failure)
        if reply.finish in ENDINGS:
            active.record(reply, self.version, 0.0, {}, {"policy": waited, "env": 0.0})
            return self._end(ENDINGS[reply.finish], explanation=reply.explanation)
        active.reply, active.batch = reply, ReplyBatch(self.version, waited, now)
        step: Step = self._slot.step(reply.text)
        seconds = {"policy": waited, "env": time.perf_counter() - now}
        active.record(reply, self.version, step.reward, step.info, seconds)
        if step.terminated or step.truncated:
            active.finish(step.observation, step.info, step.terminated, step.truncated)
            self.over = True
        else:
            active.observe(step.observation, step.info)
            self._prepare()
        return None

    def fail(self, why: str) -> None:
        """End the episode as failed, for example because the engine is down."""
        if not self.over:
            self._end(StopReason.FAILED, why)

    def close(self) -> None:
        """Close the environment."""
        self._slot.close()

    def _prepare(self) -> None:
        active = self._active
        active.prepare(self._policy, self.history, self._view)
        self._asked = time.perf_counter()
        limit = self._policy.max_prompt_tokens
        if active.exceeded is None and limit is not None and len(active.prompt_ids) > limit:  # the first prompt
            active.exceeded = StopReason.MAX_TOKENS
        if active.exceeded is not None:
            self._end(active.exceeded)

    def _end(self, reason: StopReason, failure: str | None = None, explanation: str | None = None) -> None:
        self._active.truncate(reason, failure, explanation)
        self.over = True


async def play_episode(
    stepwise: StepwiseEpisode, /, reply: Callable[[Request], Awaitable[Reply]], seed: int | None = None, **options: Any
) -> Trajectory:
    """Play one episode in the event loop of the caller, and return its record.

    Any number of episodes run at once, and none waits for another. Environments that are not inline are called on
    threads.

    Args:
        reply: asks the engine. An exception is raised to the caller, and ends the episode as failed.
        seed, options: see StepwiseEpisode.reset().
    """

    async def call(function: Callable[[], None]) -> None:
        if stepwise.inline:
            function()
        else:
            await asyncio.get_running_loop().run_in_executor(_threads(), function)

    await call(partial(stepwise.reset, seed, **options))
    while not stepwise.over:
        try:
            replied = await reply(stepwise.request)
        except BaseException as e:
            stepwise.fail(f"{type(e).__name__}: {e}")
            raise
        await call(partial(stepwise.step, replied))
    return stepwise.trajectory


class _Limits:
    """The attributes of a policy that a context depends on."""

    version = 0

    def __init__(self, chat: ChatFormat | None, max_prompt_tokens: int | None) -> None:
        self.chat, self.max_prompt_tokens = chat, max_prompt_tokens

    def act(self, requests: Any) -> list[Reply]:
        raise NotImplementedError("replies come from outside")


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="gem-episode")
