"""A minimal environment and minimal tools, in a module that worker processes can import."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gem.core import Env, Step
from gem.errors import EpisodeOver, ToolError
from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.base_tool import BaseTool, Function

CODE = {
    "type": "object",
    "properties": {"code": {"type": "string"}},
    "required": ["code"],
    "additionalProperties": False,
}
QUERY = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "topk": {"type": "integer"}},
    "required": ["query"],
}


@dataclass(frozen=True)
class Said:
    actions: list[str]


class Echo(Env):
    """The episode ends after three answers; each has reward 1/3."""

    def reset(self, seed=None):
        super().reset(seed)
        self.state = Said([])
        return "Question?", {"suffix": "Your turn."}

    def step(self, action):
        if len(self.state.actions) == 3:
            raise EpisodeOver("over")
        self.state = replace(self.state, actions=[*self.state.actions, action])
        return Step(f"heard {action}", 1 / 3, terminated=len(self.state.actions) == 3)


class Python(BaseTool):
    """Repeat the code; "fail" is an error, "late" a time-out, "die" an infrastructure failure."""

    tool_type, tag, tag_argument, fences = "python_code", "python", "code", ("python",)

    def __init__(self):
        super().__init__()
        self.ran, self.resets, self.closed = [], 0, 0

    def functions(self):
        return [Function("python", "Run Python.", CODE)]

    def call(self, call):
        code = call.arguments["code"].strip()
        if code == "die":
            raise ToolError("the server is gone")
        self.ran.append(code)
        fault = {"fail": ToolErrorType.ERROR, "late": ToolErrorType.TIMEOUT}.get(code)
        return ToolResult(f"ran {code}", fault)

    def reset(self):
        self.ran, self.resets = [], self.resets + 1

    def close(self):
        self.closed += 1

    def own_state(self):
        return {"ran": list(self.ran)}

    def set_own_state(self, state):
        self.ran = list(state["ran"])


class Search(Python):
    tool_type, tag, tag_argument, fences = "search", "search", "query", ()

    def functions(self):
        return [Function("search", "Search.", QUERY)]

    def call(self, call):
        return super().call(ToolCall("search", {"code": call.arguments["query"]}))


class Old(BaseTool):
    """A tool in the style of the published package."""

    tool_type = "old"

    def __init__(self, num_workers=1):
        super().__init__(num_workers)
        self.seen = []

    def instruction_string(self):
        return "Write <old>x</old>."

    def execute_action(self, action):
        self.seen.append(action)
        start, end = action.find("<old>"), action.find("</old>")
        if start < 0 or end < 0:
            return False, True, "", ""
        inside = action[start + 5 : end]
        return True, inside == "fail", f"old {inside}", action[: end + 6]
