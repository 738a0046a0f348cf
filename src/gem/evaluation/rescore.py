"""Grade the recorded transcripts of an evaluation again, without asking the model.

The recorded actions are played in the environments of today: the same tasks, tools and graders. What follows from the
model (texts, tokens, refusals, cut replies) is kept; rewards, reasons and ends are new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

from gem._internal.folders import check_own
from gem._internal.inbound import shaped
from gem.core import StopReason
from gem.errors import BadValue
from gem.evaluation.records import SETTINGS, TRAJECTORIES, EvalFolder, read_records, read_settings
from gem.evaluation.report import EvalReport
from gem.evaluation.run import EvalRun, describe_plan, play_tasks
from gem.evaluation.tasks import EvalEnv, TaskSet, plan_tasks
from gem.policies import Reply, Request
from gem.registry import register_class
from gem.trajectory import Trajectory

_SHOWN = ("id", "kwargs", "wrappers")
_NEEDED = {*_SHOWN, "name", "limit", "tasks", "hash"}  # of an environment in eval.json
OVER = "the episode goes on after its recorded actions"


class Change(NamedTuple):
    """A sample whose outcome differs.

    Args:
        env: name of the environment.
        sample: number of the sample, which is the ``episode`` of its trajectory.
        before, after: score and stop reason.
        action: the last action that was played.
    """

    env: str
    sample: int
    before: tuple[float, str | None]
    after: tuple[float, str | None]
    action: str


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """The result of rescore().

    Args:
        before, after: the report before, and now.
        changes: the samples with another score or another end.
        failed: number of sample → why it could not be played again; such a sample keeps its score.
    """

    before: EvalReport
    after: EvalReport
    changes: Sequence[Change]
    failed: Mapping[int, str]


def rescore(
    path: str,
    *,
    out: str | None = None,
    concurrency: int = 32,
    timeout: float | None = None,
    trust: bool = False,
) -> Rescored:
    """Play the recorded actions of an evaluation again, and grade them as the environments do now.

    Args:
        path: folder of the evaluation, which is left as it is.
        out: folder for the new records and report; None keeps nothing.
        concurrency: maximum number of episodes at once.
        timeout: seconds for one call of an environment; None sets no limit.
        trust: play environments with the arguments and actions of a folder that this user has not made on this machine.

    Raises:
        BadValue: the folder is no evaluation or has no sample, ``out`` is occupied, the tasks have changed, or the
            folder is not trusted.
    """
    settings = read_settings(path)
    recorded = {trajectory.episode: trajectory for trajectory in read_records(path)}
    if not recorded:
        raise BadValue(f"{path} has no finished sample to grade again")
    if "mcp" in settings:
        raise BadValue(f"{path} used MCP servers, whose calls cannot be repeated; evaluate again")
    # The arguments of an environment may name code to import, or a sandbox that isolates nothing.
    envs = settings.get("envs")
    if not isinstance(envs, list) or not all(isinstance(env, dict) and env.keys() >= _NEEDED for env in envs):
        raise BadValue(f"{path} has no environments to grade again, as those of a tournament have none")
    with shaped(path, "an evaluation"):
        rollouts, _ = index(settings["rollouts"]), settings["policy"]["model"]
        if not 1 <= rollouts * max(index(env["tasks"]) for env in envs) <= 1_000_000:  # all samples are listed
            raise ValueError(f"{rollouts} rollouts of each task")
    chosen = {f"environment {number}": {name: env[name] for name in _SHOWN} for number, env in enumerate(envs, start=1)}
    check_own(Path(path) / SETTINGS, {**chosen, "actions": TRAJECTORIES}, trust)
    for entry in envs:
        register_class(str(entry["id"]))
    native = settings.get("native_tools", False)
    policy = _Recorded(recorded)
    plan = [replace(_plan(path, entry, native), policy=policy) for entry in settings["envs"]]
    before = EvalRun(plan, rollouts, settings, path)
    before.restore(recorded.values())
    now = {**settings, **describe_plan(plan), "rescored": {"from": str(path), "gem": settings.get("gem")}}
    changes, failed = list[Change](), dict[int, str]()
    with nullcontext() if out is None else EvalFolder(out, now) as folder:
        after = EvalRun(plan, rollouts, now, out, folder)
        for i, task_set in enumerate(plan):
            episodes = [episode for episode in after.waiting(i) if episode.episode in recorded]
            for played in play_tasks(task_set, episodes, concurrency, timeout):
                old = recorded[played.episode]
                if played.failure is not None:
                    failed[old.episode] = played.failure
                new = old if played.failure is not None else _graded(old, played)
                after.take(new)
                if _outcome(new) != _outcome(old):
                    changes.append(
                        Change(task_set.env.label, old.episode, _outcome(old), _outcome(new), new.turns[-1].action)
                    )
        report = after.write_report()
    changes.sort(key=lambda change: change.sample)
    return Rescored(before=before.report(), after=report, changes=changes, failed=failed)


class _Recorded:
    """A policy that repeats the replies of recorded episodes."""

    chat, max_prompt_tokens, version = None, None, 0

    def __init__(self, recorded: Mapping[int, Trajectory]) -> None:
        self.recorded = recorded

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        return [self._reply(*request.key[1:]) for request in requests]

    def _reply(self, episode: int, turn: int) -> Reply:
        trajectory = self.recorded[episode]
        if turn < len(trajectory.turns):
            said = trajectory.turns[turn]
            return Reply(said.action, finish=said.finish, message=said.message, model=said.model)
        if trajectory.stop_reason == StopReason.MAX_TOKENS:  # the next context would have been too long
            return Reply("", finish="context_overflow")
        return Reply("", failure=OVER)


def _plan(path: str, entry: Mapping[str, Any], native_tools: bool) -> TaskSet:
    """Return the tasks of a recorded environment. Raises BadValue if they have changed."""
    env = EvalEnv(**{field.name: entry[field.name] for field in fields(EvalEnv)})
    plan = plan_tasks(replace(env, limit=entry["tasks"]), entry["tasks"], native_tools=native_tools)
    plan = replace(plan, env=env)
    if plan.hash != entry["hash"]:
        raise BadValue(
            f"{path}: the tasks of {env.label} cannot be asked again: their hash was {entry['hash']}, now "
            f"{plan.hash}; the data has changed, or they are those of a training run"
        )
    return plan


_FROM_ENV = ("reward", "reward_parts", "invalid", "tool_calls", "explanation", "checks")  # fields of a turn


def _graded(old: Trajectory, played: Trajectory) -> Trajectory:
    """Return the recorded episode with the rewards and the end of the played one."""
    turns = [
        replace(said, **{name: getattr(new, name) for name in _FROM_ENV})
        for said, new in zip(old.turns, played.turns, strict=False)
    ]
    return replace(
        old,
        turns=turns,
        final_observation=played.final_observation,
        terminated=played.terminated,
        truncated=played.truncated,
        stop_reason=played.stop_reason,
    )


def _outcome(trajectory: Trajectory) -> tuple[float, str | None]:
    return trajectory.total_reward, trajectory.stop_reason
