r"""MCPMark: solve a task with the tools of a real MCP server.

Action       calls of the tools, in a format of ToolEnvWrapper. A reply without a call ends the episode.
Observation  the description of the task on reset; then the results of the calls.
Reward       at the end, 1.0 if verify.py of the task exits with 0, else 0.0.
Ends         terminated with the first reply without a call; truncated after ``max_tool_uses`` + 10 replies with
             calls, where nothing is verified.
Verifier     verify.py runs on a copy of the files in a machine, with a time limit and without a network; for
             PostgreSQL it runs on the host. Exit status 1 is not solved; anything else is repeated. gem's own tasks
             for PostgreSQL are verified by queries. ``info["explanation"]`` says what is wrong.

The server for files is the npm package @modelcontextprotocol/server-filesystem. It runs on the host and may use one
folder, which is filled anew with each episode. The agent sees it as /workspace, so that equal seeds play equally.
The server for PostgreSQL is postgres_server.py, or a command of the user. It connects to a database that is created
for the episode.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gem.core import Env, Info, Step, StopReason, require_text
from gem.envs.computers.mcpmark.checkout import ServiceTask, read_tasks
from gem.envs.computers.mcpmark.filesystem import FolderService
from gem.envs.computers.mcpmark.postgres import DatabaseService, require_driver
from gem.envs.computers.mcpmark.shop import ShopTask, ShopTasks
from gem.errors import BadValue, EpisodeOver
from gem.messages import ToolCall, ToolResult
from gem.sandbox.machine import load_archive, save_archive
from gem.tools.formats import TAGS
from gem.tools.mcp.config import read_servers
from gem.tools.mcp.tool import MCPTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

OWN = str(Path(__file__).parents[1] / "repositories" / "mcpmark")  # tasks of gem
SERVICES: dict[str, type[FolderService] | type[DatabaseService]] = {
    "filesystem": FolderService,
    "postgres": DatabaseService,
}


@dataclass(frozen=True)
class State:
    """An episode: the number of its task, and whether it has ended."""

    number: int
    over: bool = False


class TaskEnv(Env):
    """The tasks without the tools. See the module docstring for the rules.

    Args:
        path: a checkout, optionally with "#" and a filter; see read_tasks().
        states: folder with the first files or dumps of each category. None means ``test_environments`` or
            ``postgres_state`` in the checkout.
        timeout: seconds for verify.py: CPU seconds in a machine, else seconds on the clock.

    Raises:
        BadValue: if there are no such tasks, or their service is not supported.
        MissingData: if the checkout or the first files are missing.
        MissingDependency: if PostgreSQL or the extra [postgres] is needed and not installed.
    """

    state: State

    def __init__(self, path: str = OWN, *, states: str | None = None, timeout: float = 60.0) -> None:
        if not 0 < timeout < math.inf:
            raise BadValue(f"timeout must be a number of seconds above 0, got {timeout}")
        self.tasks, self.timeout = self.read(path, states), timeout
        self.service = SERVICES[self.tasks[0].service]()

    def read(self, path: str, states: str | None) -> Sequence[ServiceTask]:
        """Return the tasks of a checkout, after a check that their first states are there."""
        tasks = read_tasks(path, states)
        for task in tasks:
            task.require_state()
        services = sorted({task.service for task in tasks})
        if len(services) > 1:
            raise BadValue(f"the tasks are of the services {', '.join(services)}; choose one with a filter")
        if services == ["postgres"]:
            require_driver()
        return tasks

    def task(self) -> ServiceTask:
        return self.tasks[self.state.number]

    def reset(self, seed: int | None = None) -> tuple[str, Info]:
        super().reset(seed)
        self.state = State(self.rng.randrange(len(self.tasks)))
        self.service.start(self.task())
        return self.rules(), {"task": self.task().name}

    def step(self, action: str) -> Step:
        require_text(action)
        if not self._runs():
            raise EpisodeOver(f"{self!r} has no running episode; call reset()")
        mismatch = self.service.verify(self.task(), self.timeout)
        self.state = replace(self.state, over=True)
        if mismatch:
            info = {"verifier": mismatch, "explanation": mismatch, "stop_reason": StopReason.LOST}
            return Step("The task is not solved.", 0.0, terminated=True, info=info)
        info = {"explanation": "The verifier found no fault.", "stop_reason": StopReason.SOLVED}
        return Step("The task is solved.", 1.0, terminated=True, info=info)

    def rules(self) -> str:
        return f"{self.task().description}\n\n{self.service.NOTE} When the task is done, reply without calling a tool."

    def sample_random_action(self) -> str:
        return self.action_rng.choice(["Done.", "The task is done."])

    def get_state(self) -> dict[str, Any]:
        """Return the episode, with an archive of what the server works on."""
        state = super().get_state()
        return {**state, "files": save_archive(self.service.save()) if self._runs() else None}

    def set_state(self, state: Mapping[str, Any]) -> None:
        fields = dict(state) if isinstance(state, Mapping) else {}
        saved = fields.pop("files", None)
        archive = None if saved is None else load_archive(saved)
        super().set_state(fields)
        if archive is not None:
            self.service.load(archive)

    def close(self) -> None:
        self.service.close()

    def _runs(self) -> bool:
        return getattr(self, "state", None) is not None and not self.state.over

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "service": self.service.save() if self._runs() else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        archive = state["service"]
        self.service = SERVICES[self.tasks[0].service]()
        if archive is not None:
            self.service.load(archive)


class ShopTaskEnv(TaskEnv):
    """gem's own tasks for PostgreSQL, without the tools.

    Args:
        timeout: seconds for each query of the verifier.

    Raises:
        MissingDependency: if PostgreSQL is not installed.
    """

    def __init__(self, *, timeout: float = 60.0) -> None:
        super().__init__(timeout=timeout)

    def read(self, path: str, states: str | None) -> Sequence[ServiceTask]:
        return ShopTasks()


class ServiceTool(MCPTool):
    """The tools of the server that the environment names, such as TaskEnv, with fixed names for its folder or database.

    Args:
        validate_on_init: has no effect; MCPTool passes it to copies.
    """

    def __init__(self, *, validate_on_init: bool = False) -> None:
        super().__init__({"command": sys.executable}, validate_on_init=False)

    def attach(self, env: Any) -> None:
        self.service = env.unwrapped.service
        self.servers = read_servers(self.service.server())

    def reset(self) -> None:
        servers = read_servers(self.service.server())  # other ones after a close()
        if servers != self.servers:
            self.close()
            self.servers = servers
        super().reset()

    def call(self, call: ToolCall) -> ToolResult:
        return self._shown(call, super().call(self._real(call)))

    async def acall(self, call: ToolCall) -> ToolResult:
        return self._shown(call, await super().acall(self._real(call)))

    def _real(self, call: ToolCall) -> ToolCall:
        return replace(call, arguments=self.service.before_call(dict(call.arguments)))

    def _shown(self, call: ToolCall, result: ToolResult) -> ToolResult:
        return replace(result, text=self.service.after_call(call.name, result.text))


def make_mcpmark(
    path: str = OWN, *, states: str | None = None, timeout: float = 60.0, max_tool_uses: int = 50
) -> ToolEnvWrapper:
    """Return TaskEnv with the tools of its MCP server.

    Args:
        path, states, timeout: see TaskEnv.
        max_tool_uses: calls allowed.

    Raises:
        BadValue, MissingData: see TaskEnv.
        MissingDependency: if the server or the extra [mcp] is not installed.
    """
    return ToolEnvWrapper(TaskEnv(path, states=states, timeout=timeout), [ServiceTool()], max_tool_uses=max_tool_uses)


def make_shop(*, timeout: float = 60.0, max_tool_uses: int = 50) -> ToolEnvWrapper:
    """Return ShopTaskEnv with the tools of its MCP server.

    Args:
        timeout: see ShopTaskEnv.
        max_tool_uses: calls allowed.

    Raises:
        MissingDependency: if PostgreSQL or the extra [mcp] is not installed.
    """
    return ToolEnvWrapper(ShopTaskEnv(timeout=timeout), [ServiceTool()], max_tool_uses=max_tool_uses)


class Oracle:
    """Plays the reference calls of gem's own tasks."""

    def __init__(self, env: TaskEnv) -> None:
        self.env, self._left = env, list[Any]()

    def act(self, observation: str) -> str:
        if observation.startswith(self.env.rules()):
            self._left = reference(self.env.task())
        if not self._left:
            return "Done."
        name, arguments = self._left.pop(0)
        return TAGS.write(ToolCall(name, arguments), [])


def reference(task: ServiceTask) -> list[tuple[str, dict[str, Any]]]:
    """Return the reference calls of a task: (name, arguments). Raises BadValue if the task has none."""
    if isinstance(task, ShopTask):
        return [("execute_sql", {"sql": query}) for query in task.calls]
    try:
        calls = json.loads((task.folder / "reference.json").read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise BadValue(f"the task {task.name} has no reference.json") from e
    return [(name, arguments) for name, arguments in calls]
