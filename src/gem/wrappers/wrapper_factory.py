"""Wrappers by name, for configuration files: "python_tool, concat_chat, episode_tracking"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gem._internal.imports import resolve
from gem.errors import UnknownArgument, did_you_mean
from gem.wrappers.episode_tracking import EpisodeTrackingWrapper
from gem.wrappers.observation import ObservationWrapper

_TOOLS = {
    "python": "gem.tools.python.tool:PythonCodeTool",
    "search": "gem.tools.search.tool:SearchTool",
    "lookup": "gem.tools.lookup_tool:LookupTool",
    "shell": "gem.tools.machine.shell:ShellTool",
    "editor": "gem.tools.machine.editor:EditorTool",
}
_MAX_USES = 5  # maximum number of tool calls per episode; the published default


def _with_tool(
    env: Any,
    tool: str,
    tool_arguments: Mapping[str, Any],
    tool_reward: float = 0.0,
    tool_success_reward: float = 0.0,
    max_tool_uses: int = _MAX_USES,
    native: bool = False,
    **options: Any,
) -> Any:
    """Wrap an environment with one new tool. options: further arguments of ToolEnvWrapper."""
    from gem.tools.tool_env_wrapper import ToolEnvWrapper  # here, because tools are slow to import

    instance = resolve(_TOOLS[tool])(**tool_arguments)
    options = {"max_tool_uses": max_tool_uses, **_format_option(native), **options}
    return ToolEnvWrapper(env, [instance], tool_reward, tool_success_reward, **options)


def _format_option(native: bool) -> dict[str, Any]:
    """Return the arguments of ToolEnvWrapper for native calls, whose functions are not in the prompt; none for text."""
    if not native:
        return {}
    from gem.tools.formats import OpenAIFormat

    return {"format": OpenAIFormat(prompt=False)}


_PYTHON: dict[str, Any] = {"tool": "python", "tool_arguments": {}}
_LAST_LINE: dict[str, Any] = {"tool": "python", "tool_arguments": {"keep_error_last_line": True}}
_SEARCH: dict[str, Any] = {"tool": "search", "tool_arguments": {}}

# Maps each name that get_wrapper_fns() accepts to a function that wraps an environment.
WRAPPER_FACTORY: dict[str, Callable[..., Any]] = {
    "python_tool": partial(_with_tool, **_PYTHON, tool_reward=0.05, tool_success_reward=0.25),
    "python_tool_no_int_reward": partial(_with_tool, **_PYTHON),
    "python_tool_no_int_reward_last_line_error": partial(_with_tool, **_LAST_LINE),
    "search_tool": partial(_with_tool, **_SEARCH, tool_reward=0.3),
    "search_tool_no_int_reward": partial(_with_tool, **_SEARCH),
    "lookup_tool": partial(_with_tool, tool="lookup", tool_arguments={}),
    "shell_tool": partial(_with_tool, tool="shell", tool_arguments={}),
    "editor_tool": partial(_with_tool, tool="editor", tool_arguments={}),
    "shell_and_editor_tool": partial(_with_tool, tool="shell", tool_arguments={"editor": True}),
    "concat": ObservationWrapper,
    "concat_with_action": partial(ObservationWrapper, include_action=True),
    "concat_chat": partial(ObservationWrapper, include_action=True, include_chat_template=True),
    "concat_chat_on_reset": partial(ObservationWrapper, include_action=True, apply_chat_template_on_reset=True),
    "episode_tracking": EpisodeTrackingWrapper,
}

TOKENIZER_REQUIRED = ["concat_chat", "concat_chat_on_reset"]


def get_wrapper_fns(wrappers: str, tokenizer: Any = None, *, native_tools: bool = False) -> list[Callable[[Any], Any]]:
    """Return the wrapper functions for a comma-separated list of names, innermost first.

    Each wrapped environment gets its own tool instance. List tools before the wrappers that show the history, so that
    the history includes tool results.

    Args:
        wrappers: e.g. "python_tool, concat, episode_tracking"; whitespace is ignored; empty for no wrapper.
        tokenizer: for the names that render a chat template.
        native_tools: whether tools are called natively, by the ``tool_calls`` of an endpoint, and not in text.

    Raises:
        UnknownArgument: for an unknown name; the message suggests the closest one.

    >>> len(get_wrapper_fns("concat, episode_tracking")), get_wrapper_fns("")
    (2, [])
    """
    names = [name.strip() for name in wrappers.split(",") if name.strip()]
    for name in names:
        if name not in WRAPPER_FACTORY:
            hint = did_you_mean(name, WRAPPER_FACTORY)
            raise UnknownArgument(f"no wrapper {name!r}{hint}  (available: {', '.join(WRAPPER_FACTORY)})")
    return [_wrapper_fn(name, tokenizer, native_tools) for name in names]


def _wrapper_fn(name: str, tokenizer: Any, native_tools: bool) -> Callable[[Any], Any]:
    wrap = WRAPPER_FACTORY[name]
    if name in TOKENIZER_REQUIRED:
        return partial(wrap, tokenizer=tokenizer)
    return partial(wrap, native=True) if native_tools and is_tool(name) else wrap


def is_tool(name: str) -> bool:
    """Return whether the wrapper with this name adds a tool."""
    wrap = WRAPPER_FACTORY[name]
    return isinstance(wrap, partial) and wrap.func is _with_tool


def mcp_wrapper(path: str, *, native: bool = False) -> Callable[[Any], Any]:
    """Return a wrapper that offers the tools of MCP servers. Each wrapped environment has its own sessions.

    Args:
        path: JSON file with the configuration of the servers.
        native: whether the tools are called natively, by the ``tool_calls`` of an endpoint, and not in text.

    Raises:
        BadValue: the configuration cannot be read. The wrapper raises ToolError if a server cannot be reached, and
            MissingDependency without the extra [mcp].
    """
    from gem.tools.mcp.config import read_servers

    read_servers(path)
    return partial(_with_mcp, path=path, native=native)


def _with_mcp(env: Any, *, path: str, native: bool) -> Any:
    from gem.tools.mcp.tool import MCPTool
    from gem.tools.tool_env_wrapper import ToolEnvWrapper

    return ToolEnvWrapper(env, [MCPTool(path)], **_format_option(native))
