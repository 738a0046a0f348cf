"""Tools for agents: base classes, call formats, Python, search, machines and MCP servers.

At the top is what all tools share. Where code runs is in sandbox, and what a task allows is up to its environment.
Importing this package imports no tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem._internal.imports import lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base_tool": "BaseTool Function",
        "function_tool": "FunctionTool",
        "lookup_tool": "HasTable LookupTool",
        "machine.editor": "EditorTool",
        "machine.shell": "ShellTool",
        "mcp.tool": "MCPTool",
        "python.tool": "PythonCodeTool",
        "search.tool": "HasSearchIndex SearchTool",
        "tool_env_wrapper": "ToolEnvWrapper",
    },
)
