"""PythonCodeTool: run Python in the sandbox, as separate scripts or as the cells of a notebook."""

from __future__ import annotations

import random
import re
import textwrap
from dataclasses import replace
from typing import Any

from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.parsing import code_blocks
from gem.sandbox import Limits, Result, Session, Status, get_sandbox
from gem.sandbox.factory import backend_of_published_name
from gem.sandbox.output import Capture
from gem.sandbox.usual_imports import misses_usual_import, with_usual_imports
from gem.tools.base_tool import BaseTool, Function
from gem.tools.formats import TAGS

_INSTRUCTION = (
    "Solve the task step by step. You can run Python: write a {kind} between <python> and </python>{fence}, "
    "and print() what you want to see. {variables} The output is returned to you. "
    "When you know the final answer, give it {how}."
)
_IN_FENCE = ", or in a fenced block that opens with ```python"
_KINDS = {False: "complete script, including its imports,", True: "notebook cell"}
_VARIABLES = {
    False: "Each script runs separately: variables are not kept.",
    True: "Variables are kept from one cell to the next.",
}
_CUT_NOTICE = re.compile(r"\n\[\.\.\. ([0-9]{1,18}) bytes cut \.\.\.\]\n")  # the sandbox's notice of omitted output
_BLANK_OR_COMMENT = re.compile(r"\s*(?:#.*)?")
_EMPTY = ToolResult("The call to python is empty: nothing was run.", ToolErrorType.EMPTY)


class PythonCodeTool(BaseTool):
    r"""Run Python code written by the agent in a sandbox; see gem.sandbox.

    All tools of a process with the same sandbox_type share one sandbox. A notebook session belongs to one tool. A
    script that used a module such as math without importing it runs again with the usual imports.

    Args:
        timeout: wall-clock limit in seconds per script or cell. If the code exceeds it, the result has the error
            "timeout".
        sandbox_type: a backend of gem.sandbox, such as "bwrap"; "auto" selects the local sandbox; "none" disables
            isolation and warns once.
        keep_error_last_line: if the code fails, show only the last line of stderr.
        stateful: run each call as a notebook cell that keeps variables for the following calls of the episode. The
            variables are lost if the interpreter crashes, or if code that timed out cannot be interrupted. The result
            of the call then reports the loss.
        memory_bytes: memory limit of a script, or of the interpreter of a session.
        output_bytes: maximum number of bytes of stdout, and of stderr, shown to the agent. Longer output is
            truncated in the middle.

    Raises:
        BadValue: sandbox_type is unknown, or a limit is not positive.
        SandboxError: raised by a call if the sandbox fails, or if "auto" finds no isolation on this machine.

    >>> PythonCodeTool().execute_action("<python>print(6 * 7)</python> so it is")
    (True, False, 'Code execution result: 42\n\n', '<python>print(6 * 7)</python>')
    """

    tool_type = "python_code"
    tag = "python"
    tag_argument = "code"
    fences: tuple[str, ...] = ("python", "py", "python3")

    def __init__(
        self,
        timeout: float = 5,
        sandbox_type: str = "auto",
        keep_error_last_line: bool = False,
        *,
        stateful: bool = False,
        memory_bytes: int = 1 << 30,
        output_bytes: int = 8_000,
    ) -> None:
        super().__init__()
        self._backend = backend_of_published_name(sandbox_type)
        self.timeout, self.sandbox_type, self.keep_error_last_line = timeout, sandbox_type, keep_error_last_line
        self.stateful = stateful
        limits = Limits(wall_s=timeout, memory_bytes=memory_bytes, output_bytes=output_bytes)
        # The sandbox kills a program whose output is many times the sandbox's limit. To avoid this for a small
        # output_bytes, the sandbox's limit is at least the default.
        self.limits = replace(limits, output_bytes=max(output_bytes, Limits.output_bytes))
        self.output_bytes = output_bytes
        kind = "a notebook cell; variables are kept between cells" if stateful else "a complete Python script"
        code = {"type": "string", "description": f"{kind}; print() what you want to see"}
        schema = {"type": "object", "properties": {"code": code}, "required": ["code"], "additionalProperties": False}
        description = "Run a notebook cell" if stateful else "Run a complete Python script"
        self._functions = [Function("python", f"{description} and return its output.", schema)]
        self._session: Session | None = None
        self._cells: list[str] = []  # cells of the episode, executed again after a restore
        self._pending_cells: list[str] = []  # restored cells that the new session has not executed yet

    def functions(self) -> list[Function]:
        return self._functions

    def random_arguments(self, function: Function, rng: random.Random) -> dict[str, Any]:
        return {"code": f"print({rng.randint(0, 9)} {rng.choice('+-*')} {rng.randint(0, 9)})"}

    def call(self, call: ToolCall) -> ToolResult:
        code = extract_code(call.arguments["code"])
        if _is_blank(code):
            return _EMPTY
        sandbox = get_sandbox(self._backend)
        if not self.stateful:
            result = sandbox.run(code, limits=self.limits)
            if misses_usual_import(result):
                again = sandbox.run(with_usual_imports(code), limits=self.limits)
                result = again if again.ok else result
            return self._to_result(result)
        if self._session is None:
            self._session = sandbox.session(limits=self.limits)
        while self._pending_cells:
            self._session.run(self._pending_cells.pop(0))
        result = self._session.run(code)
        self._cells = [] if result.state_lost else [*self._cells, code]
        return self._to_result(result)

    def reset(self) -> None:
        self._cells, self._pending_cells = [], []
        self.close()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def own_state(self) -> Any:
        return {"cells": list(self._cells)} if self.stateful else None

    def set_own_state(self, state: Any) -> None:
        """Restore the cells of a session. The next call first executes these cells again and discards their output."""
        cells = [] if state is None else [str(cell) for cell in state["cells"]]
        self.reset()
        self._cells, self._pending_cells = cells, list(cells)

    def instruction_string(self) -> str:
        kind, variables = _KINDS[self.stateful], _VARIABLES[self.stateful]
        fence, how = _IN_FENCE, r"without any code, in \boxed{} if the task asks for it"
        if not self.fences:
            fence, how = "", "in the form that the task asks for, without a call"
        return _INSTRUCTION.format(kind=kind, variables=variables, fence=fence, how=how)

    def _parse_action(self, action: str) -> tuple[str, str, bool]:
        """Parse the code that a message contains.

        Returns:
            (code of the first call, action up to the end of the last call, True); ("", "", False) if the action
            contains no code.

        This method is part of the interface of the published package.
        """
        message = TAGS.read(action, [self])
        first = next((call for call in message.calls if isinstance(call, ToolCall)), None)
        if first is None or "code" not in first.arguments:
            return "", "", False
        return extract_code(str(first.arguments["code"])), message.parsed, True

    def _to_result(self, result: Result) -> ToolResult:
        stdout, stderr = shorten_output(result.stdout, self.output_bytes), result.stderr
        if result.ok and not stderr and not result.state_lost:
            return ToolResult(f"Code execution result: {stdout}\n")
        stderr = shorten_output(stderr, self.output_bytes)
        if self.keep_error_last_line and not result.ok:
            stderr = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
        stopped = result.stopped(self.limits)
        if result.state_lost:
            stopped = f"{stopped} [all variables are lost; the next cell starts a new interpreter]".lstrip()
        elif stopped and self.stateful:
            stopped = stopped.replace("[killed: ", "[") + " [variables are kept]"  # the interpreter was not killed
        stderr = "\n".join(part.rstrip("\n") for part in (stderr, stopped) if part)
        error = None
        if not result.ok:
            error = ToolErrorType.TIMEOUT if result.status is Status.TIMEOUT else ToolErrorType.ERROR
        output = f"{stdout}\n{stderr}" if stderr else stdout
        return ToolResult(f"Code execution result: {output}\n", error)


def extract_code(text: str) -> str:
    """Return the code in the text of a call: remove an enclosing code fence and the common indentation."""
    if text and not text[0].isspace() and text[0] not in "`~":
        return text
    stripped = text.strip()
    blocks = code_blocks(stripped) if stripped.startswith(("```", "~~~")) else []
    if len(blocks) == 1 and blocks[0].end == len(stripped):
        text = blocks[0].code
    first = next((line for line in text.splitlines() if line.strip()), "")
    return textwrap.dedent(text) if first[:1].isspace() else text


def shorten_output(text: str, limit: int) -> str:
    """Shorten a text to ``limit`` bytes of UTF-8, plus a notice in the middle with the number of bytes cut."""
    if 4 * len(text) <= limit:
        return text
    kept = Capture(limit)
    kept.add(text.encode("utf-8", "replace"))
    if not kept.truncated:
        return text
    if notice := _CUT_NOTICE.search(text):
        kept.total += int(notice[1]) - len(notice[0])
    return kept.text()


def _is_blank(code: str) -> bool:
    return all(_BLANK_OR_COMMENT.fullmatch(line) for line in code.splitlines())
