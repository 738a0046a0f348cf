"""Tools for agents: base classes, call formats, Python, search, machines and MCP servers."""

from gem.tools.base_tool import BaseTool, Function
from gem.tools.function_tool import FunctionTool
from gem.tools.lookup_tool import HasTable, LookupTool
from gem.tools.machine.editor import EditorTool
from gem.tools.machine.shell import ShellTool
from gem.tools.mcp.tool import MCPTool
from gem.tools.python.tool import PythonCodeTool
from gem.tools.search.tool import HasSearchIndex, SearchTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

__all__ = [
    "BaseTool",
    "EditorTool",
    "Function",
    "FunctionTool",
    "HasSearchIndex",
    "HasTable",
    "LookupTool",
    "MCPTool",
    "PythonCodeTool",
    "SearchTool",
    "ShellTool",
    "ToolEnvWrapper",
]
