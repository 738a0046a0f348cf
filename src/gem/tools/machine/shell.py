"""ShellTool: commands in a shell on a machine, for any environment."""

from __future__ import annotations

from dataclasses import replace

from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.sandbox import Limits, Status
from gem.tools.base_tool import Function
from gem.tools.machine import editor as editor_tool
from gem.tools.machine.base import MachineTool


class ShellTool(MachineTool):
    r"""Run commands in a shell that keeps its working directory, variables and files for the episode.

    In an environment with a machine, such as terminal tasks, the commands run on that machine; otherwise on one of the
    tool's own, which starts with the first command and needs sandbox level ns. See gem.sandbox.Machine.

    Args:
        timeout: wall-clock limit in seconds per command. A command that exceeds it has the error "timeout".
        output_bytes: maximum number of bytes of output shown to the agent.
        editor: whether to add the function of EditorTool, for the same files.

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

    def __init__(self, timeout: float = 30, *, output_bytes: int = 8_000, editor: bool = False) -> None:
        super().__init__(Limits(wall_s=timeout, output_bytes=output_bytes))
        self.timeout = timeout
        command = {"type": "string", "description": "bash source; the shell keeps its state between calls"}
        schema = {"type": "object", "properties": {"command": command}, "required": ["command"]}
        function = Function("bash", "Run a command and return its output and exit status.", schema)
        self._functions = [function, editor_tool.FUNCTION] if editor else [function]

    def functions(self) -> list[Function]:
        return self._functions

    def call(self, call: ToolCall) -> ToolResult:
        machine = self.machine()
        if call.name == editor_tool.NAME:
            return editor_tool.edit(machine, call, self.limits.output_bytes)
        result = machine.exec(str(call.arguments["command"]), wall_s=self.timeout)
        text = result.stdout if not result.stdout or result.stdout.endswith("\n") else f"{result.stdout}\n"
        if result.exit_code:
            text += f"exit status {result.exit_code}\n"
        if stopped := replace(result, state_lost=False).stopped(self.limits):
            text += f"{stopped}\n"
        if machine.ended:
            text += "[the machine ended; the next command starts with a new one]\n"
        elif result.state_lost:
            text += "[the shell ended; a new one starts in the same folder with the exported variables]\n"
        error = None
        if not result.ok:
            error = ToolErrorType.TIMEOUT if result.status is Status.TIMEOUT else ToolErrorType.ERROR
        return ToolResult(text, error)
