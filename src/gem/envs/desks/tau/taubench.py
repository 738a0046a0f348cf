"""taubench:retail and taubench:airline: TAU-bench (arXiv 2406.12045) from ``$GEM_DATA/tau-bench``.

Functions, data, tasks, policy and the prompt of the customer are those of the checkout (github.com/sierra-research/
tau-bench). The reward is computed here, as published: 1 if the database equals that after the gold actions, and each
required output was said, compared in lower case without commas. Gold actions are executed on a fresh database.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, Literal

from gem._internal.text import short_repr
from gem.datasets.rows import Row
from gem.envs.dataset_env import text_in
from gem.envs.desks.tau.checkout import checkout, importing, load, module_of
from gem.envs.desks.tau.dialogue import DialogueEnv, DialogueTools, Domain, checked_rows, dialogue
from gem.errors import BadValue
from gem.policies.customer import Event
from gem.tools.base_tool import Function

_SPLITS = {"retail": ("test", "train", "dev"), "airline": ("test",)}
_TASKS = {"retail": "TASKS_{}", "airline": "TASKS"}  # names of the lists of tasks
_TRANSFER = "transfer_to_human_agents"  # ends the conversation, and is left out when gold actions are executed


class TauBench(Domain):
    """A domain of TAU-bench; see Domain."""

    def __init__(self, name: str, folder: str, split: str) -> None:
        modules = _modules(name, folder, split)
        self._tools = {tool.get_info()["function"]["name"]: tool for tool in modules.tools.ALL_TOOLS}
        infos = [tool.get_info()["function"] for tool in self._tools.values()]
        self.functions = [Function(info["name"], info["description"], info["parameters"]) for info in infos]
        self.policy = modules.wiki.WIKI
        self._prompt = modules.user.LLMUserSimulationEnv.build_system_prompt
        self._digests: dict[str, bytes] = {}
        self._data = pickle.dumps(modules.data.load_data())  # loads a copy faster than copy.deepcopy
        tasks = getattr(vars(modules)[f"tasks_{split}"], _TASKS[name].format(split.upper()))
        self.rows = [_row(f"{split}-{number}", task) for number, task in enumerate(tasks)]

    def world(self, row: Row) -> Any:
        return pickle.loads(self._data)

    def call(self, world: Any, by: str, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        try:
            result = str(self._tools[name].invoke(data=world, **json.loads(json.dumps(arguments))))
        except Exception as e:  # as published: the function's error is its result
            result = f"Error: {e}"
        return result, result.startswith("Error")

    def checks(self, row: Row, world: Any, events: Sequence[Event]) -> dict[str, bool]:
        said = [event["say"].lower().replace(",", "") for event in events if event["by"] == "agent" and "say" in event]
        stated = all(any(output.lower() in message for message in said) for output in row["outputs"])
        return {"database": _digest(world) == self._gold(row), "statements": stated}

    def check(self, row: Row) -> None:
        """Raise BadValue if a row is no task of this domain."""
        text_in(row, "id")
        text_in(row, "instruction")
        for action in _list_in(row, "actions"):
            if not isinstance(action, Mapping) or not isinstance(action.get("kwargs"), Mapping):
                raise BadValue(
                    f"the column 'actions' must hold {{'name': …, 'kwargs': {{…}}}}, got {short_repr(action)}"
                )
            if action.get("name") not in self._tools:
                known = ", ".join(self._tools)
                raise BadValue(f"the column 'actions' names no function: {action.get('name')!r}; there are {known}")
        for output in _list_in(row, "outputs"):
            if not isinstance(output, str):
                raise BadValue(f"the column 'outputs' must hold texts, got {short_repr(output)}")

    def _gold(self, row: Row) -> bytes:
        """Return the digest of the database after the gold actions. It does not change, so it is computed once."""
        key = json.dumps(row["actions"], sort_keys=True)
        if key not in self._digests:
            gold = self.world(row)
            for action in row["actions"]:
                if action["name"] != _TRANSFER and action["name"] in self._tools:
                    self.call(gold, "agent", action["name"], action["kwargs"])
            self._digests[key] = _digest(gold)
        return self._digests[key]

    def instruction(self, row: Row) -> str:
        return str(row["instruction"])

    def prompt(self, row: Row) -> str:
        return str(self._prompt(None, row["instruction"]))

    def ends(self, function: str) -> bool:
        return function == _TRANSFER


def _row(task_id: str, task: Any) -> Row:
    actions = [{"name": action.name, "kwargs": action.kwargs} for action in task.actions]
    return {"id": task_id, "instruction": task.instruction, "actions": actions, "outputs": list(task.outputs)}


def _list_in(row: Row, column: str) -> list[Any]:
    value = row.get(column)
    if not isinstance(value, list):
        columns = "" if column in row else f"; the row has {', '.join(map(repr, row))}"
        raise BadValue(f"the column {column!r} must be a list, got {short_repr(value)}{columns}")
    return value


def _digest(data: Any) -> bytes:
    """Return a hash that is equal for equal data, and for which 1 and 1.0 differ, as in the published hash."""
    return sha256(json.dumps(data, sort_keys=True).encode()).digest()


def _modules(name: str, folder: str, split: str) -> SimpleNamespace:
    """Import the modules of a domain. Those that call models are imported with a stand-in for the client."""
    root = checkout("tau-bench", f"tau_bench/envs/{name}/wiki.md") / "tau_bench"
    packages = {"tau_bench": root, "tau_bench.envs": root / "envs", f"tau_bench.envs.{name}": root / "envs" / name}
    types = module_of("tau_bench.types", Action=SimpleNamespace, Task=SimpleNamespace)
    client = module_of("litellm", completion=None)
    base = f"tau_bench.envs.{name}"
    with importing(packages, tau_bench__types=types, litellm=client):
        return load(
            [f"{base}.{part}" for part in ("tools", "data", "wiki", f"tasks_{split}")] + ["tau_bench.envs.user"]
        )


@lru_cache(maxsize=8)
def _domain(name: str, folder: str, split: str) -> TauBench:
    return TauBench(name, folder, split)


def taubench(
    domain: Literal["retail", "airline"] = "retail",
    split: str = "test",
    user: str | Mapping[str, Any] | None = None,
    *,
    max_turns: int = 30,
    format: str = "tags",
    dataset: Any = None,
    seed: int | None = None,
    shuffle: bool = True,
) -> DialogueTools:
    """Return an environment of TAU-bench.

    Args:
        domain: "retail" or "airline".
        split: "test"; for retail also "train" or "dev".
        user: who plays the customer, see DialogueEnv.
        max_turns: messages of the agent, with and without calls; 30 in the published benchmark.
        format: the format of calls, see ToolEnvWrapper; "openai" for native calls, as published.
        dataset: rows to use instead of the published ones, with columns ``id``, ``instruction``, ``actions``, a list
            of {"name": …, "kwargs": …}, and ``outputs``, a list of texts.
        seed, shuffle: see DatasetEnv.

    Raises:
        MissingData: there is no checkout in $GEM_DATA.
        BadValue: a value out of range, a malformed row, or ``user`` is missing.
    """
    if split not in _SPLITS.get(domain, ()):
        raise BadValue(f"taubench:{domain} has the splits {', '.join(_SPLITS.get(domain, ()))}; got {split!r}")
    folder = checkout("tau-bench", f"tau_bench/envs/{domain}/wiki.md")
    tasks = _domain(domain, str(folder), split)
    rows = None if dataset is None else checked_rows(dataset, tasks.check)
    env = DialogueEnv(tasks, user, dataset=rows, seed=seed, shuffle=shuffle)
    return dialogue(env, max_turns, format)
