"""tau2:retail, tau2:airline and tau2:telecom: tau2-bench (arXiv 2506.07982) from ``$GEM_DATA/tau2-bench``.

Functions, databases, tasks, splits, policies and the guidelines of the customer are those of the checkout
(github.com/sierra-research/tau2-bench), whose environment is imported without the parts that call models. It needs
Python >= 3.12 and the libraries of tau2. The reward is the product over the task's reward basis, as published. Gold
actions, those of the customer too, are executed on a database of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from gem._internal.text import indented
from gem.datasets import MissingData
from gem.datasets.rows import Row
from gem.envs.dataset_env import text_in
from gem.envs.desks.tau.checkout import checkout, importing, load
from gem.envs.desks.tau.dialogue import DialogueEnv, DialogueTools, Domain, checked_rows, dialogue
from gem.errors import BadValue, MissingDependency
from gem.graders.judge import Judge
from gem.policies.customer import Event
from gem.policies.endpoint import Endpoint
from gem.tools.base_tool import Function

DOMAINS = ("retail", "airline", "telecom")
MAX_TRANSCRIPT = 400_000  # bytes that the judge reads; a conversation with many results of functions is long
_RUBRIC = (
    "ANSWER is a conversation of an agent (assistant) with a customer (user), and results of functions (tool). "
    "QUESTION is an expectation of the agent. Score 1 if the agent met the expectation, and 0 if it did not."
)
_REQUESTOR: dict[str, Any] = {"agent": "assistant", "customer": "user"}


class Tau2(Domain):
    """A domain of tau2-bench; see Domain.

    Args:
        source: the imported domain.
        split: name of the split.
        judge: grades assertions in natural language; None if no task has them.
    """

    def __init__(self, source: SimpleNamespace, split: str, judge: Judge | None) -> None:
        self.source, self.grader = source, judge
        self.rows = source.rows[split]
        self._first_world = world = source.new_world()
        self.policy = world.get_policy()
        schemas = [tool.openai_schema["function"] for tool in world.get_tools()]
        self.functions = [Function(one["name"], one["description"], one["parameters"]) for one in schemas]

    def world(self, row: Row) -> Any:
        start, world = self._task(row).initial_state, self.source.new_world()
        if start is not None:
            world.set_state(start.initialization_data, start.initialization_actions, [])
        return world

    def call(self, world: Any, by: str, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        call = self.source.message.ToolCall(id="call", name=name, arguments=dict(arguments), requestor=_REQUESTOR[by])
        result = world.get_response(call)
        return str(result.content), bool(result.error)

    def checks(self, row: Row, world: Any, events: Sequence[Event]) -> dict[str, bool]:
        criteria = self._task(row).evaluation_criteria
        if criteria is None:
            return {}
        wanted = {basis.value for basis in criteria.reward_basis}
        checks: dict[str, Callable[[], bool]] = {
            "DB": lambda: self._same_database(row, world, criteria),
            "ENV_ASSERTION": lambda: self._assertions_hold(world, criteria),
            "ACTION": lambda: self._acted(events, criteria),
            "COMMUNICATE": lambda: _said_all(events, criteria.communicate_info or ()),
            "NL_ASSERTION": lambda: self._judged(events, criteria.nl_assertions or ()),
        }
        if unknown := wanted - set(checks):
            raise BadValue(f"tau2 task {row['id']!r} has a reward basis that is not known here: {', '.join(unknown)}")
        return {name: check() for name, check in checks.items() if name in wanted}

    def instruction(self, row: Row) -> str:
        return str(self._task(row).user_scenario)

    def prompt(self, row: Row) -> str:
        guidelines = self.source.guidelines[bool(self.customer_tools(row))].replace("<PERSONA_GUIDELINES>", "")
        return f"{guidelines}\n\n<scenario>\n{self.instruction(row)}\n</scenario>"

    def customer_tools(self, row: Row) -> Sequence[Mapping[str, Any]]:
        world = self._first_world  # schemas do not depend on the state of a world
        if world.user_tools is None:
            return ()
        return [tool.openai_schema for tool in world.get_user_tools(include=self._task(row).user_tools)]

    def needs_judge(self, row: Row) -> bool:
        return needs_judge(row)

    def _task(self, row: Row) -> Any:
        return self.source.tasks.Task.model_validate(row)

    # ---- the parts of the reward

    def _same_database(self, row: Row, world: Any, criteria: Any) -> bool:
        if criteria.actions is None and criteria.env_assertions is None:
            return True
        gold = self.world(row)
        for action in criteria.actions or ():
            with suppress(Exception):  # as published: a gold action that fails changes nothing
                gold.make_tool_call(action.name, requestor=action.requestor, **action.arguments)
        world.sync_tools()
        hashes = [(one.get_db_hash(), one.get_user_db_hash()) for one in (gold, world)]
        return hashes[0] == hashes[1]

    def _assertions_hold(self, world: Any, criteria: Any) -> bool:
        assertions = criteria.env_assertions or ()
        return all([world.run_env_assertion(one, raise_assertion_error=False) for one in assertions])

    def _acted(self, events: Sequence[Event], criteria: Any) -> bool:
        made = [
            self.source.message.ToolCall(id="call", name=e["call"], arguments=e["arguments"])
            for e in events
            if "call" in e
        ]
        return all(any(gold.compare_with_tool_call(call) for call in made) for gold in criteria.actions or ())

    def _judged(self, events: Sequence[Event], assertions: Sequence[str]) -> bool:
        if not assertions:
            return True
        assert self.grader is not None  # tau2() refuses such tasks without a judge
        text = transcript(events)
        return all(self.grader.grade(text, question=assertion).correct for assertion in assertions)


def transcript(events: Sequence[Event]) -> str:
    """Return a conversation as the judge reads it."""
    lines = []
    for event in events:
        if "say" in event:
            lines.append(f"{_REQUESTOR[event['by']]}: {indented(event['say'])}")
        else:
            lines.append(f"{_REQUESTOR[event['by']]} calls {event['call']} {json.dumps(event['arguments'])}")
            lines.append(f"tool: {indented(event['result'])}")
    return "\n".join(lines)


def _check(task: Any, row: Row) -> None:
    """Raise BadValue if a row is no task of tau2, whose class, a pydantic model, is ``task``."""
    text_in(row, "id")
    try:
        task.model_validate(row)
    except ValueError as e:
        first = e.errors()[0]  # type: ignore[attr-defined]
        where = ".".join(map(str, first["loc"]))
        raise BadValue(f"the column {where!r} is no part of a task of tau2: {first['msg']}") from e


def needs_judge(row: Row) -> bool:
    """Return whether the reward of a task depends on assertions in natural language."""
    criteria = row.get("evaluation_criteria") or {}
    return bool(criteria.get("nl_assertions")) and "NL_ASSERTION" in criteria.get("reward_basis", ())


def _said_all(events: Sequence[Event], wanted: Sequence[str]) -> bool:
    said = [event["say"].lower().replace(",", "") for event in events if event["by"] == "agent" and "say" in event]
    return all(any(info.lower() in message for message in said) for info in wanted)


@lru_cache(maxsize=4)
def _source(name: str, folder: str) -> SimpleNamespace:
    """Import a domain. Returns modules, ``new_world``, ``rows`` and the number ``missing`` by split, ``guidelines``."""
    if (version := tuple(sys.version_info)) < (3, 12):
        raise MissingDependency(f"tau2 needs Python >= 3.12; this is {'.'.join(map(str, version[:3]))}")
    root, base = Path(folder), f"tau2.domains.{name}"
    code, data = root / "src" / "tau2", root / "data" / "tau2" / "domains" / name
    try:
        import loguru

        loguru.logger.disable("tau2")
        with importing({"tau2": code, "tau2.domains": code / "domains"}):
            source = load(["tau2.data_model.message", "tau2.data_model.tasks", f"{base}.environment"])
    except ImportError as e:
        raise MissingDependency(f"tau2 needs {e.name}: pip install -e {root}") from e
    source.new_world = _worlds(source.environment, None if name == "telecom" else data / "db.json")
    tasks = {str(task["id"]): task for task in _json(data / "tasks.json")}
    splits = _json(data / "split_tasks.json")
    source.rows = {split: [tasks[task_id] for task_id in ids if task_id in tasks] for split, ids in splits.items()}
    source.missing = {split: len(ids) - len(source.rows[split]) for split, ids in splits.items()}
    guides = root / "data" / "tau2" / "user_simulator"
    names = ("simulation_guidelines.md", "simulation_guidelines_tools.md")
    source.guidelines = [_read(guides / file).decode() for file in names]
    return source


def _worlds(environment: Any, database: Path | None) -> Any:
    """Return a function that builds a new environment of tau2, from a database that is read once."""
    if database is None:  # telecom has two small ones, in TOML
        return environment.get_environment
    kind: Any = next(value for key, value in vars(environment).items() if key.endswith("DB"))
    text = _read(database)
    return lambda: environment.get_environment(db=kind.model_validate_json(text))


def _json(path: Path) -> Any:
    return json.loads(_read(path))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as e:
        raise MissingData(f"the checkout of tau2-bench has no {path}; fetch it whole") from e


def tau2(
    domain: Literal["retail", "airline", "telecom"] = "retail",
    split: str = "base",
    user: str | Mapping[str, Any] | None = None,
    *,
    judge: Mapping[str, Any] | None = None,
    without_judge: bool = False,
    max_turns: int = 100,
    format: str = "tags",
    dataset: Any = None,
    seed: int | None = None,
    shuffle: bool = True,
) -> DialogueTools:
    """Return an environment of tau2-bench.

    Args:
        domain: "retail", "airline" or "telecom".
        split: "base" (all that the published scores count), "train", "test"; for telecom also "small" and "full".
        user: who plays the customer, see DialogueEnv. Customers of telecom use tools, so only a model can play them.
        judge: ``base_url``, ``model`` and other arguments of gem.policies.endpoint.Endpoint for the model that grades
            assertions in natural language.
        without_judge: leave out the tasks with such assertions. Scores then compare with no published ones.
        max_turns: messages of the agent, with and without calls; the published limit is 200 messages of both sides.
        format: the format of calls, see ToolEnvWrapper; "openai" for native calls, as published.
        dataset: rows to use instead of the published ones, each a task as in tasks.json of tau2.
        seed, shuffle: see DatasetEnv.

    Raises:
        MissingData: there is no checkout in $GEM_DATA, or it lacks files.
        MissingDependency: Python is older than 3.12, or a library of tau2 is not installed.
        BadValue: a value out of range, a malformed row, ``user`` is missing, or tasks need a judge and there is none.
    """
    if domain not in DOMAINS:
        raise BadValue(f"tau2 has the domains {', '.join(DOMAINS)}; got {domain!r}")
    folder = checkout("tau2-bench", f"src/tau2/domains/{domain}/environment.py")
    source = _source(domain, str(folder))
    if split not in source.rows or not source.rows[split]:
        raise BadValue(
            f"tau2:{domain} has the splits {', '.join(s for s, r in source.rows.items() if r)}; got {split!r}"
        )
    if source.missing[split]:
        raise MissingData(f"the checkout lacks {source.missing[split]} tasks of the split {split!r} of tau2:{domain}")
    rows = source.rows[split] if dataset is None else checked_rows(dataset, partial(_check, source.tasks.Task))
    judged = sum(map(needs_judge, rows))
    if judged and judge is None and not without_judge:
        raise BadValue(
            f"{judged} of {len(rows)} tasks of tau2:{domain} have assertions in natural language: pass judge="
            '{"base_url": …, "model": …}, or without_judge=True to leave these tasks out'
        )
    kept = [row for row in rows if judge is not None or not needs_judge(row)] if judged else rows
    grader = None if judge is None else Judge(endpoint=Endpoint(**judge), rubric=_RUBRIC, max_bytes=MAX_TRANSCRIPT)
    env = DialogueEnv(Tau2(source, split, grader), user, dataset=kept, seed=seed, shuffle=shuffle)
    return dialogue(env, max_turns, format)
