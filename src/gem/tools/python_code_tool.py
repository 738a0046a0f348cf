"""Python for the agent: programs that run in the sandbox, alone or as the cells of a notebook."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from typing import Any

from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.parsing import code_blocks
from gem.sandbox import Limits, Result, Sandbox, Session, Status, get_sandbox
from gem.sandbox.choose import backend_of
from gem.sandbox.streams import Capture
from gem.tools.base_tool import BaseTool, Function

_INSTRUCTION = (
    "Solve the task step by step. You can run Python: write a {kind} between <python> and </python>, or in a fenced "
    "block that opens with ```python, and print() what you want to see. {lasting} The output comes back to you. When "
    "you know the final answer, give it without any code{boxed}."
)
_KINDS = {False: "complete script, with its imports,", True: "cell of a notebook"}
_LASTING = {
    False: "Every script runs by itself: nothing is left of the ones before.",
    True: "Variables are kept from one cell to the next.",
}
_CUT = re.compile(r"\n\[\.\.\. ([0-9]{1,18}) bytes cut \.\.\.\]\n")
_COMMENT = re.compile(r"\s*(?:#.*)?")


class PythonCodeTool(BaseTool):
    r"""Runs Python that the agent writes, contained; see gem.sandbox.

    Args:
        timeout: seconds of wall clock for a program or a cell. Overrunning is an answer, with a fault.
        sandbox_type: "auto" is the best that holds on this machine; "none" runs code uncontained, with one warning;
            "bwrap", or the name of another backend of gem.sandbox.
        keep_error_last_line: show only the last line of what a failed program wrote to stderr.
        stateful: keep the variables from call to call, for the length of an episode. A crash, and a time-out that an
            interrupt does not end, lose them; the agent is told.
        memory_bytes: of a program; in a session, of the interpreter.
        output_bytes: of stdout and of stderr that the agent is shown; what is cut from the middle is counted there.

    All tools of a process share one sandbox; a session belongs to one tool. Raises BadValue for an unknown sandbox_type
    and limits that are not above zero. Calls raise SandboxError when the machinery failed.

    >>> PythonCodeTool().execute_action("<python>print(6 * 7)</python> so it is")
    (True, False, 'Code execution result: 42\n\n', '<python>print(6 * 7)</python>')
    """

    tool_type = "python_code"
    tag = "python"
    tag_argument = "code"
    fences = ("python", "py", "python3")

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
        backend_of(sandbox_type)
        self.timeout, self.sandbox_type, self.keep_error_last_line = timeout, sandbox_type, keep_error_last_line
        self.stateful = stateful
        shown = Limits(wall_s=timeout, memory_bytes=memory_bytes, output_bytes=output_bytes)
        # More is taken from the sandbox than is shown, for it stops a program that writes many times its limit.
        self.limits = replace(shown, output_bytes=max(output_bytes, Limits.output_bytes))
        self.output_bytes = output_bytes
        self._session: Session | None = None
        self._cells: list[str] = []  # run in this session; a fork of the episode runs them again
        self._unrun: list[str] = []  # of those, the ones that its new session has not run yet

    def functions(self) -> list[Function]:
        kind = "a cell of a notebook, which keeps its variables" if self.stateful else "a complete Python script"
        code = {"type": "string", "description": f"{kind}; print() what you want to see"}
        schema = {"type": "object", "properties": {"code": code}, "required": ["code"], "additionalProperties": False}
        return [Function("python", f"Run {kind}, and get its output.", schema)]

    def call(self, call: ToolCall) -> ToolResult:
        code = script_of(call.arguments["code"])
        if _asks_nothing(code):
            return _NOTHING
        if not self.stateful:
            return self._shown(self._sandbox().run(code, limits=self.limits))
        session = self._live_session()
        while self._unrun:
            session.run(self._unrun.pop(0))
        return self._shown(self._kept(code, session.run(code)))

    async def acall(self, call: ToolCall) -> ToolResult:
        code = script_of(call.arguments["code"])
        if _asks_nothing(code) or self.stateful:
            return await super().acall(call)  # a session's cells wait for one another anyway
        return self._shown(await self._sandbox().arun(code, limits=self.limits))

    def reset(self) -> None:
        self._cells, self._unrun = [], []
        self.close()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def own_state(self) -> Any:
        return {"cells": list(self._cells)} if self.stateful else None

    def set_own_state(self, state: Any) -> None:
        """A session cannot be copied: the next call first runs the cells of the episode again, and shows nothing."""
        cells = [] if state is None else [str(cell) for cell in state["cells"]]
        self.reset()
        self._cells, self._unrun = cells, list(cells)

    def instruction_string(self) -> str:
        return _INSTRUCTION.format(
            kind=_KINDS[self.stateful], lasting=_LASTING[self.stateful], boxed=r", in \boxed{} where you are asked to"
        )

    def _parse_action(self, action: str) -> tuple[str, str, bool]:
        """(code, the action up to the end of the call, whether there is one), as published code asks for it."""
        from gem.tools.formats import TAGS

        reading = TAGS.read(action, [self])
        first = next((call for call in reading.calls if isinstance(call, ToolCall)), None)
        if first is None or "code" not in first.arguments:
            return "", "", False
        return script_of(str(first.arguments["code"])), reading.parsed, True

    def _sandbox(self) -> Sandbox:
        return get_sandbox(backend_of(self.sandbox_type))

    def _live_session(self) -> Session:
        if self._session is None:
            self._session = self._sandbox().session(limits=self.limits)
        return self._session

    def _kept(self, code: str, result: Result) -> Result:
        """Remember a cell whose variables live on."""
        self._cells = [] if result.state_lost else [*self._cells, code]
        return result

    def _shown(self, result: Result) -> ToolResult:
        printed, errors = shortened(result.stdout, self.output_bytes), shortened(result.stderr, self.output_bytes)
        if self.keep_error_last_line and not result.ok:
            errors = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
        errors = "\n".join(part.rstrip("\n") for part in (errors, self._stopped(result)) if part)
        shown = f"{printed}\n{errors}" if errors else printed
        fault = None if result.ok else ToolErrorType.TIMEOUT if result.status is Status.TIMEOUT else ToolErrorType.ERROR
        return ToolResult(f"Code execution result: {shown}\n", fault)

    def _stopped(self, result: Result) -> str:
        """A line on what ended code that did not end by itself, and on what became of the variables."""
        stopped = result.stopped(self.limits)
        if result.state_lost:
            return " ".join(part for part in (stopped, "[all variables are lost; the next cell starts anew]") if part)
        return f"{stopped} [variables are kept]" if stopped and self.stateful else stopped


def script_of(text: str) -> str:
    """The program that stands between tags: without a fence around it, and without an indentation of the whole."""
    stripped = text.strip()
    blocks = code_blocks(stripped) if stripped.startswith(("```", "~~~")) else []
    if len(blocks) == 1 and blocks[0].end == len(stripped):
        text = blocks[0].code
    first = next((line for line in text.splitlines() if line.strip()), "")
    return textwrap.dedent(text) if first[:1].isspace() else text


def shortened(text: str, most: int) -> str:
    """A text of at most that many bytes, a line in its middle that counts the bytes cut apart."""
    kept = Capture(most)
    kept.add(text.encode("utf-8", "replace"))
    if not kept.truncated:
        return text
    if before := _CUT.search(text):  # by the sandbox
        kept.total += int(before[1]) - len(before[0])
    return kept.text()


def _asks_nothing(code: str) -> bool:
    return all(_COMMENT.fullmatch(line) for line in code.splitlines())


_NOTHING = ToolResult("The call of python is empty: nothing was run.", ToolErrorType.EMPTY)
