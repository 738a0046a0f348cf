"""ShellTool: commands in a shell on a machine, for any environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gem.errors import SandboxError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.sandbox import Limits, Machine, Status, get_sandbox
from gem.sandbox.zygote import ZygoteSandbox
from gem.tools.base_tool import BaseTool, Function


class ShellTool(BaseTool):
    r"""Run commands in a shell that keeps its working directory, variables and files for the episode.

    The machine starts with the first command. It needs sandbox level ns; see gem.sandbox.Machine.

    Args:
        timeout: wall-clock limit in seconds per command. A command that exceeds it has the error "timeout".
        output_bytes: maximum number of bytes of output shown to the agent.

    Raises:
        BadValue: a limit is not positive.
        SandboxError: raised by a call if the sandbox fails or this machine cannot isolate a shell.

    >>> tool = ShellTool()
    >>> _, _, shown, _ = tool.execute_action("<bash>cd /tmp; pwd; false</bash>")
    >>> shown
    '/tmp\nexit status 1\n'
    >>> tool.close()
    """

    tool_type = "shell"
    tag = "bash"
    tag_argument = "command"

    def __init__(self, timeout: float = 30, *, output_bytes: int = 8_000) -> None:
        super().__init__()
        self.timeout = timeout
        self.limits = Limits(wall_s=timeout, output_bytes=output_bytes)
        command = {"type": "string", "description": "bash source; the shell keeps its state between calls"}
        schema = {"type": "object", "properties": {"command": command}, "required": ["command"]}
        function = Function("bash", "Run a command and return its output and exit status.", schema)
        self._functions = [function]
        self._machine: Machine | None = None
        self._saved: Mapping[str, Any] | None = None

    def functions(self) -> list[Function]:
        return self._functions

    def call(self, call: ToolCall) -> ToolResult:
        if self._machine is None or self._machine.ended:
            sandbox = get_sandbox()
            if not isinstance(sandbox, ZygoteSandbox):
                raise SandboxError("a shell needs the local sandbox")
            self._machine = sandbox.machine(limits=self.limits, state=self._saved)
            self._saved = None
        result = self._machine.exec(str(call.arguments["command"]))
        text = result.stdout if not result.stdout or result.stdout.endswith("\n") else f"{result.stdout}\n"
        if result.exit_code:
            text += f"exit status {result.exit_code}\n"
        if stopped := replace(result, state_lost=False).stopped(self.limits):
            text += f"{stopped}\n"
        if self._machine.ended:
            text += "[the machine ended; the next command starts with a new one]\n"
        elif result.state_lost:
            text += "[the shell ended; a new one starts in the same folder with the exported variables]\n"
        error = None
        if not result.ok:
            error = ToolErrorType.TIMEOUT if result.status is Status.TIMEOUT else ToolErrorType.ERROR
        return ToolResult(text, error)

    def reset(self) -> None:
        self._saved = None
        self.close()

    def close(self) -> None:
        machine, self._machine = self._machine, None
        if machine is not None:
            machine.close()

    def own_state(self) -> Any:
        """Return the state of the machine. Raises BadValue while background processes run."""
        alive = self._machine is not None and not self._machine.ended
        return self._machine.get_state() if alive and self._machine is not None else self._saved

    def set_own_state(self, state: Any) -> None:
        self.reset()
        self._saved = state
