"""An environment and tools that do next to nothing, in a file of their own so that worker processes can import it."""

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
    """Three answers end the episode; each is worth a third."""

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
    """Repeats the code; "fail" fails, "late" times out, "die" is the machinery's failure."""

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
    """As tools of the published package are written."""

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
