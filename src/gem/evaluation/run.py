"""Run an evaluation: every task times every rollout exactly once, recorded as it ends, resumable at any point."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from itertools import count, takewhile
from typing import Any, cast

from gem._internal.counts import check_count
from gem._internal.text import short_repr
from gem.errors import BadValue, EndpointError, GemError, InfraError
from gem.evaluation.columns import Sample
from gem.evaluation.cost import Price, Spending, known_cost, price_of
from gem.evaluation.logs.run_log import LogKind, RunLog
from gem.evaluation.options import EvalOptions, SampledByTask
from gem.evaluation.records import EvalFolder
from gem.evaluation.report import LATEX, MARKDOWN, REPORT, EnvScore, EvalReport, env_score
from gem.evaluation.tasks import EvalEnv, OracleActions, TaskSet, plan_tasks
from gem.evaluation.versions import versions_of
from gem.policies import Policy, RandomPolicy, ScriptedPolicy
from gem.registry import ENV_REGISTRY
from gem.rollout import play_each
from gem.trajectory import Trajectory
from gem.vector import make_vec

CONSTANT = "constant:"
FIRST_FAILURES = 3  # the run stops if so many samples fail before any other has ended
LAST_FAILURES = 8  # the run stops after so many failed requests in a row, or twice the concurrency if that is more
OUTAGES = ("EndpointError", "AccessRefused", "InvalidReply", "Unreachable")
REFUSED = "RequestRefused"  # a mistake of the caller, unless the server refuses few requests
FUNCTION = "FunctionFailed"  # a mistake of the caller's function, unless it fails for few samples
PROGRESS_S = 1.0  # least seconds between two calls of progress()
_PROGRESS_SHARE = 20  # summarizing takes at most this fraction of the time, 1/20


def evaluate(
    policy: Policy | str | Callable[..., Any],
    envs: str | EvalEnv | TaskSet | Sequence[str | EvalEnv | TaskSet],
    *,
    limit: int = 100,
    rollouts: int = 1,
    concurrency: int = 32,
    wrappers: str = "",
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    retries: int = 2,
    backoff: float = 1.0,
    timeout: float | None = None,
    prompt_template: str | None = None,
    mcp: str | None = None,
    token_limit: int | None = None,
    native_tools: bool = False,
    price: Price | None = None,
    cost_limit: float | None = None,
    log: LogKind | None = None,
    notes: Mapping[str, Any] | None = None,
    progress: Callable[[EvalReport], None] | None = None,
) -> EvalReport:
    """Score a policy on environments.

    Each rollout of each task is played until it has one outcome. A reply cut at its token limit, a full context and a
    refusal are outcomes with a score. Only failures of the machinery have none: they are played again at the end, and
    those that remain are counted apart.

    Args:
        policy: a policy; or "oracle", "random" or "constant:TEXT"; or a function from messages to a reply, which may be
            a coroutine function: see gem.policies.FunctionPolicy.
        envs: ids of environments; or EvalEnv for one with its own limit, wrappers or arguments; or TaskSet for one with
            given tasks.
        limit: maximum number of tasks per environment.
        rollouts: number of times that each task is played.
        concurrency: maximum number of episodes at once.
        wrappers: comma-separated names of wrappers for the environments that name none.
        out: folder for the records and the report; None keeps nothing.
        resume: continue the evaluation in ``out``, and play only what it lacks.
        retries: how often failed samples are played again.
        backoff: seconds to wait before failed samples are played again; doubles each time. Retries of single requests
            are those of Endpoint, which honor Retry-After.
        timeout: seconds for one call of an environment; None sets no limit.
        prompt_template: instructions around the first observation: "qwen3_game", "qwen3_general", "code", "no", or a
            text file with ``{observation}``. Observations that contain the history are each wrapped.
        mcp: JSON file with MCP servers, whose tools are offered in each environment.
        token_limit: maximum number of tokens per episode, of prompts and replies; an episode over it ends as with a
            full context.
        native_tools: call the tools of wrappers natively (``tool_calls``), and not in text. Needs an EndpointPolicy
            that sends messages; the tools of MCP servers are always called so there.
        price: of the model, for the cost; None takes the cost that the endpoint reports, if it does. A resumed run may
            change it.
        cost_limit: US dollars that the run may spend, resumed calls and failed attempts included; None for no limit.
            Requests in flight are finished, and may exceed it.
        log: send the scores so far to "wandb", "tensorboard" or "trackio", or the spans of the episodes to an
            OpenTelemetry collector ("otel"). A service that fails costs one warning, and not the run.
        notes: further facts to record, as JSON data, such as the versions of a server. A resumed run may change them.
        progress: called with the scores so far: at the start, then at most once per second, and at the end.

    Raises:
        BadValue: for arguments out of range, an occupied folder, or a resumed run with other settings.
        InfraError: the first samples failed, at least three and half of those in flight, so nothing was scored or
            written. BadValue if the endpoint refused each of these requests.
        CostLimitReached: the run has spent cost_limit. It can be resumed with a higher one.
        EndpointError: the endpoint failed or refused max(8, 2 * concurrency) samples in a row. The run can be resumed.
        AccessRefused, InvalidReply, Unreachable: the endpoint refused access, replied with something that is no
            completion, or could not be reached, before it answered any request. Nothing was written.
        Exception: any exception of gem.make.
    """
    for name, value, least in (("rollouts", rollouts, 1), ("concurrency", concurrency, 1), ("retries", retries, 0)):
        check_count(name, value, least)
    if resume and out is None:
        raise BadValue("resume needs the folder of the evaluation as out=")
    if isinstance(policy, str) and rollouts > 1:
        raise BadValue(
            f"{rollouts} rollouts of {policy!r} would be equal: the seed of the task decides them; raise limit"
        )
    out = None if out is None else os.fspath(out)
    player, innermost = _player(policy)
    options = EvalOptions(prompt_template=prompt_template, mcp=mcp, token_limit=token_limit, native_tools=native_tools)
    below, above = options.wraps(player)
    listed = _eval_envs(envs, wrappers)
    options.check_used((env.env if isinstance(env, TaskSet) else env).wrappers for env in listed)
    spending = Spending(price, cost_limit)
    budgets = [] if cost_limit is None else [spending]
    inner, tokenizer = [*innermost, *below], getattr(player, "tokenizer", None)
    plan: list[TaskSet] = []
    samples, by_task = 0, False
    for env in listed:
        sampler: Policy = player
        if isinstance(env, EvalEnv):
            env = plan_tasks(env, limit, innermost=inner, tokenizer=tokenizer, native_tools=native_tools)
            if not isinstance(policy, str):
                by_task, ids = True, (task.id for task in env.tasks for _ in range(rollouts))
                sampler = SampledByTask(player, ids, samples)
        samples += len(env.tasks) * rollouts
        limited = options.limited(env.policy or sampler, *budgets)
        plan.append(replace(env, wraps=[*env.wraps, *above], has_tools=bool(below), policy=limited))
    settings = _settings(player, policy, plan, rollouts) | options.settings()
    settings["price"] = None if price is None else asdict(price)
    if by_task:  # in folders without it, the place of a sample decided its seed; a resumed run must not mix both
        settings["policy"]["seeds"] = "by task"
    recorded = settings | {"notes": _json("notes", dict(notes or {}))}
    with ExitStack() as stack:
        logged = None if log is None else stack.enter_context(closing(RunLog(log, out, settings)))
        folder = None if out is None else stack.enter_context(EvalFolder(out, recorded, resume=resume))
        run = EvalRun(plan, rollouts, settings, out, folder, progress, spending, logged)
        if folder is not None and resume:
            run.restore(folder.finished(), folder.failures())
        backend = getattr(player, "backend", None)
        return run.finish(concurrency, timeout, retries, backoff, backend if callable(backend) else dict)


class EvalRun:
    """The samples of an evaluation, numbered by environment, then task, then rollout.

    Args:
        plan: the tasks of each environment, and the policy that plays them.
        out: name of the folder, in messages and in the report.
        folder: gets the records and the report; None keeps nothing.
        spending: the price of the model, and what the policies have spent; None for a run without a model.
        log: gets the episodes and the scores so far; None for no log.
    """

    def __init__(
        self,
        plan: Sequence[TaskSet],
        rollouts: int,
        settings: Mapping[str, Any],
        out: str | None,
        folder: EvalFolder | None = None,
        progress: Callable[[EvalReport], None] | None = None,
        spending: Spending | None = None,
        log: RunLog | None = None,
    ) -> None:
        self.plan, self.settings, self.out, self.folder = plan, settings, out, folder
        self.spending, self.log = spending or Spending(price_of(settings)), log
        self.watchers = [] if progress is None else [progress]
        self.watchers += [] if log is None else [log.write]
        self.lost = 0.0  # dollars of failed attempts, as far as known
        self.attempts_failed = Counter[str]()  # by cause
        number = count()
        # by environment, the task of each sample
        self.tasks = [{next(number): t for t in task_set.tasks for _ in range(rollouts)} for task_set in plan]
        self.samples: dict[int, Sample] = {}
        self.unwritten: list[Trajectory] | None = []  # failures before the first outcome; None after it
        self.failed_in_a_row = 0  # requests; samples that are played again do not count
        self.backend: Mapping[str, str] = {}
        self.started = time.monotonic()
        self.next_progress = self.started + PROGRESS_S

    def restore(self, finished: Iterable[Trajectory], failures: Iterable[Trajectory] = ()) -> None:
        """Take the samples that the folder of the run holds, and what its failed attempts have cost."""
        for trajectory in failures:
            self.lost += self.spending.restore(trajectory)
            self.count_failed(trajectory)
        ids = {number: task.id for tasks in self.tasks for number, task in tasks.items()}
        for trajectory in finished:
            number = trajectory.episode
            if number not in ids or ids[number] != trajectory.group_id:
                raise BadValue(f"{self.out}: the record of sample {number} is of another task")
            if number in self.samples:
                raise BadValue(f"{self.out}: sample {number} is recorded twice")
            self.samples[number] = self.sample(trajectory)
            self.spending.restore(trajectory)
        if self.samples:
            self.unwritten = None

    def finish(
        self,
        concurrency: int,
        timeout: float | None,
        retries: int,
        backoff: float,
        backend: Callable[[], Mapping[str, str]] = dict,
    ) -> EvalReport:
        """Play the missing samples, and the failed ones again, and return the report.

        Args:
            backend: returns EvalReport.backend, once samples have ended.
        """
        self.show()
        try:
            for attempt in range(retries + 1):
                waiting = [self.waiting(i) for i in range(len(self.plan))]
                if not any(waiting):
                    break
                if attempt:
                    time.sleep(backoff * 2 ** (attempt - 1))
                for task_set, episodes in zip(self.plan, waiting, strict=True):
                    self.play(task_set, episodes, concurrency, timeout)
            if self.unwritten:
                raise self.all_failed(self.unwritten)
            self.backend = backend()
        finally:
            report = self.write_report()
        self.show(report)
        return report

    def show(self, report: EvalReport | None = None) -> None:
        """Give the report to the callback and the log."""
        if self.watchers:
            report = report or self.report()
            for watch in self.watchers:
                watch(report)

    def write_report(self) -> EvalReport:
        """Return the report, after writing it to the folder."""
        report = self.report()
        if self.folder is not None:
            self.folder.write(REPORT, json.dumps(report.to_json(), indent=1) + "\n")
            self.folder.write(MARKDOWN, report.to_markdown())
            self.folder.write(LATEX, report.to_latex())
        return report

    def waiting(self, i: int) -> list[Trajectory]:
        """Return an empty trajectory for each of an environment's samples without an outcome."""
        env_id, samples = self.plan[i].env.id, self.samples
        return [
            Trajectory(env_id, episode=number, seed=task.seed, group_id=task.id)
            for number, task in self.tasks[i].items()
            if number not in samples or samples[number].failure is not None
        ]

    def play(self, task_set: TaskSet, episodes: Sequence[Trajectory], concurrency: int, timeout: float | None) -> None:
        for trajectory in play_tasks(task_set, episodes, concurrency, timeout, lambda: self.spending.is_over):
            is_first = trajectory.episode not in self.samples
            self.take(trajectory)
            if self.log is not None:
                self.log.episode(trajectory, task_set.env.label)
            if is_first or trajectory.failure is None:
                self.check_failures(str(trajectory.failure), concurrency, min(concurrency, len(episodes)))
        if self.spending.is_over and any(self.waiting(i) for i in range(len(self.plan))):
            raise self.spending.error(self.how())

    def check_failures(self, failure: str, concurrency: int, in_flight: int) -> None:
        """Raise an exception if all samples so far have failed, or the last ones at the endpoint or in the function."""
        is_outage = failure.startswith(OUTAGES)
        # Requests are refused sooner than others are answered, so that a few are no proof while many are in flight.
        first = FIRST_FAILURES if is_outage else max(FIRST_FAILURES, in_flight // 2)
        if self.unwritten is not None and len(self.unwritten) >= first:
            raise self.all_failed(self.unwritten)
        self.failed_in_a_row = self.failed_in_a_row + 1 if failure.startswith((*OUTAGES, REFUSED, FUNCTION)) else 0
        most = max(LAST_FAILURES, 2 * concurrency)
        if self.failed_in_a_row >= most:
            raise EndpointError(f"stopped, because the last {most} samples failed: {failure}{self.how()}")

    def how(self) -> str:
        """Return how to continue the run, for messages."""
        if self.out is None:
            return ""
        is_kept = self.unwritten is None
        return f"; continue with: gem eval --resume {shlex.quote(self.out)}" if is_kept else "; no sample had ended"

    def take(self, trajectory: Trajectory) -> None:
        """Record an ended episode."""
        if trajectory.failure is not None:
            self.lost += known_cost(trajectory, self.spending.price)
            self.count_failed(trajectory)
        if not self.spending.ended(trajectory):  # by the limit: it was not played to its end, and did not fail
            self.samples[trajectory.episode] = self.sample(trajectory)
        records = [trajectory]
        if self.unwritten is not None:  # nothing is written before the first outcome
            records = [*self.unwritten, trajectory]
            self.unwritten, records = (None, records) if trajectory.failure is None else (records, [])
        if self.folder is not None:
            for record in records:
                self.folder.append(record)
        now = time.monotonic()
        if self.watchers and now >= self.next_progress:
            self.show()
            took = time.monotonic() - now
            self.next_progress = now + took + max(PROGRESS_S, _PROGRESS_SHARE * took)

    def count_failed(self, trajectory: Trajectory) -> None:
        if not self.spending.ended(trajectory):
            self.attempts_failed[str(trajectory.failure)] += 1

    def all_failed(self, failed: Sequence[Trajectory]) -> GemError:
        """Return the exception for a run whose samples all failed. A refused request is a mistake of the caller."""
        if any(map(self.spending.ended, failed)):
            return self.spending.error(self.how())
        causes = [str(trajectory.failure) for trajectory in failed]
        is_outage, is_refused, is_function = (
            all(cause.startswith(kinds) for cause in causes) for kinds in (OUTAGES, REFUSED, FUNCTION)
        )
        kind = BadValue if is_refused else EndpointError if is_outage or is_function else InfraError
        hint = "; check the server and its URL" if is_outage else ""
        count = len({trajectory.episode for trajectory in failed})
        which = f"all of the first {count} samples" if count > 1 else "the first sample"
        return kind(f"{which} failed: {causes[-1]}{hint}")

    def sample(self, trajectory: Trajectory) -> Sample:
        return Sample.of(trajectory, self.spending.price)

    def report(self) -> EvalReport:
        return EvalReport(
            model=str(self.settings["policy"]["model"]),
            envs=[self._env_score(i) for i in range(len(self.plan))],
            settings=self.settings,
            seconds=time.monotonic() - self.started,
            backend=self.backend,
            folder=self.out,
            lost=self.lost,
            attempts_failed=dict(self.attempts_failed.most_common()),
        )

    def _env_score(self, i: int) -> EnvScore:
        env = self.plan[i].env
        has_tools = bool(env.wrappers) or self.plan[i].has_tools  # a tool may add rewards
        samples: dict[str, list[Sample | None]] = {}
        for number, task in self.tasks[i].items():  # equal episodes share an id
            samples.setdefault(task.id, []).append(self.samples.get(number))
        return env_score(
            samples,
            name=env.label,
            id=env.id,
            wrappers=env.wrappers,
            description=self.plan[i].description,
            bounds=None if has_tools else ENV_REGISTRY[env.id].reward_range,
        )


def play_tasks(
    task_set: TaskSet,
    episodes: Sequence[Trajectory],
    concurrency: int,
    timeout: float | None,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Trajectory]:
    """Play episodes of the tasks of an environment with their policy, and yield each when it ends.

    Args:
        is_over: no further episode begins once it returns True.
    """
    if not episodes:
        return
    assert task_set.policy is not None
    # A wrapper may wait, as a tool does, whatever the environment does.
    may_wait = task_set.env.wrappers or task_set.has_tools or timeout is not None
    backend = "thread" if may_wait else "async"
    with make_vec(
        task_set.env.id,
        task_set.wraps,
        num_envs=min(concurrency, len(episodes)),
        backend=backend,
        autoreset="disabled",
        on_failure="restart",
        timeout=timeout,
        **task_set.kwargs,
    ) as vec_env:
        yield from play_each(vec_env, task_set.policy, takewhile(lambda episode: not is_over(), episodes))


def _player(policy: Policy | str | Callable[..., Any]) -> tuple[Policy, list[Callable[[Any], Any]]]:
    """Return a policy, and the wrappers that it needs below all others."""
    if policy == "random":
        return RandomPolicy(), []
    if policy == "oracle":
        return RandomPolicy(), [OracleActions]
    if isinstance(policy, str) and policy.startswith(CONSTANT):
        return ScriptedPolicy([policy.removeprefix(CONSTANT)]), []
    if isinstance(policy, (str, type)) or not (hasattr(policy, "act") or callable(policy)):
        raise BadValue(
            f"policy must be an object with act(requests), a function from messages to a reply, 'oracle', 'random' or "
            f"'constant:TEXT' (--policy also takes module:name of a function), got {short_repr(policy)}"
        )
    if hasattr(policy, "act"):
        return cast(Policy, policy), []
    from gem.policies import FunctionPolicy

    return FunctionPolicy(policy), []


def _eval_envs(
    envs: str | EvalEnv | TaskSet | Sequence[str | EvalEnv | TaskSet], wrappers: str
) -> list[EvalEnv | TaskSet]:
    listed = list(envs) if isinstance(envs, Sequence) and not isinstance(envs, str) else [envs]
    if wrong := [env for env in listed if not isinstance(env, (str, EvalEnv, TaskSet))]:
        raise BadValue(f"an environment must be an id, an EvalEnv or a TaskSet, got {short_repr(wrong[0])}")
    if not isinstance(wrappers, str):
        raise BadValue(f"wrappers must be comma-separated names, got {short_repr(wrappers)}")
    made = [EvalEnv(id=env) if isinstance(env, str) else env for env in listed]
    made = [env if isinstance(env, TaskSet) or env.wrappers else replace(env, wrappers=wrappers) for env in made]
    labels = [(env.env if isinstance(env, TaskSet) else env).label for env in made]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if not made:
        raise BadValue("no environment")
    if twice:
        raise BadValue(f"environments must have different names, got {twice[0]!r} twice; give one a name")
    return made


def _settings(player: Policy, policy: object, plan: Sequence[TaskSet], rollouts: int) -> dict[str, Any]:
    """Return what a resumed run may not change, as JSON data."""
    name = policy if isinstance(policy, str) else getattr(player, "model_name", None) or type(player).__name__
    settings = {
        **describe_plan(plan),
        "policy": {"model": name, "sampling": dict(getattr(player, "settings", {}))},
        "rollouts": rollouts,
    }
    return dict(_json("arguments of environments and sampling options", settings))


def _json(what: str, data: Any) -> Any:
    """Return data as JSON has it. Raises BadValue for anything that JSON cannot hold."""
    try:
        return json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError) as e:
        raise BadValue(f"{what} must be JSON data: {e}") from e


def describe_plan(plan: Sequence[TaskSet]) -> dict[str, Any]:
    """Return what is asked and graded, and by which code, as JSON data."""
    return {
        "gem": sys.modules["gem"].__version__,
        "envs": [
            asdict(task_set.env)
            | {"tasks": len(task_set.tasks), "hash": task_set.hash, "versions": versions_of(task_set.env.id)}
            | ({} if task_set.data is None else {"data": task_set.data})
            for task_set in plan
        ],
    }
