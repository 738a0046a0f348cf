"""Wrappers by name, for configuration files: "python_tool, concat_chat, episode_tracking"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from gem.errors import UnknownArgument, did_you_mean
from gem.registry import ENV_REGISTRY, resolve
from gem.wrappers.episode_tracking import EpisodeTrackingWrapper
from gem.wrappers.observation import ObservationWrapper

_MAX_USES = 5  # maximum number of tool calls per episode; the published default


def tool_wrapper(
    tool: str | Callable[..., Any], arguments: Mapping[str, Any] | None = None, **options: Any
) -> Callable[..., Any]:
    """Return a wrapper that offers a tool, as an entry of WRAPPER_FACTORY.

    Args:
        tool: a subclass of BaseTool or another callable that returns a tool, or "module:name" of one, which is imported
            when it is used. Each wrapped environment gets a tool of its own.
        arguments: of the tool.
        options: of ToolEnvWrapper. The default of max_tool_uses is 5, as published.
    """
    return partial(_with_tool, tool=tool, arguments=arguments or {}, options={"max_tool_uses": _MAX_USES, **options})


def _with_tool(
    env: Any,
    *,
    tool: str | Callable[..., Any],
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
    native: bool = False,
    **more: Any,
) -> Any:
    from gem.tools.tool_env_wrapper import ToolEnvWrapper  # here, because tools are slow to import

    instance = (resolve(tool) if isinstance(tool, str) else tool)(**arguments)
    return ToolEnvWrapper(env, [instance], **{**options, **_format_option(native), **more})


def _format_option(native: bool) -> dict[str, Any]:
    """Return the arguments of ToolEnvWrapper for native calls, whose functions are not in the prompt; none for text."""
    if not native:
        return {}
    from gem.tools.formats import OpenAIFormat

    return {"format": OpenAIFormat(prompt=False)}


_PYTHON = "gem.tools.python.tool:PythonCodeTool"
_SEARCH = "gem.tools.search.tool:SearchTool"
_SHELL = "gem.tools.machine.shell:ShellTool"

# Maps each name that get_wrapper_fns() accepts to a function that wraps an environment. Other packages add their own,
# those of tools with tool_wrapper().
WRAPPER_FACTORY: dict[str, Callable[..., Any]] = {
    "python_tool": tool_wrapper(_PYTHON, tool_reward=0.05, tool_success_reward=0.25),
    "python_tool_no_int_reward": tool_wrapper(_PYTHON),
    "python_tool_no_int_reward_last_line_error": tool_wrapper(_PYTHON, {"keep_error_last_line": True}),
    "search_tool": tool_wrapper(_SEARCH, tool_reward=0.3),
    "search_tool_no_int_reward": tool_wrapper(_SEARCH),
    "lookup_tool": tool_wrapper("gem.tools.lookup_tool:LookupTool"),
    "shell_tool": tool_wrapper(_SHELL),
    "editor_tool": tool_wrapper("gem.tools.machine.editor:EditorTool"),
    "shell_and_editor_tool": tool_wrapper(_SHELL, {"editor": True}),
    "concat": ObservationWrapper,
    "concat_with_action": partial(ObservationWrapper, include_action=True),
    "concat_chat": partial(ObservationWrapper, include_action=True, include_chat_template=True),
    "concat_chat_on_reset": partial(ObservationWrapper, include_action=True, apply_chat_template_on_reset=True),
    "episode_tracking": EpisodeTrackingWrapper,
}

TOKENIZER_REQUIRED = ["concat_chat", "concat_chat_on_reset"]
ENV_REGISTRY.watch(WRAPPER_FACTORY)


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
    names = wrapper_names(wrappers)
    if not set(names) <= set(WRAPPER_FACTORY):
        ENV_REGISTRY.load_plugins()
    for name in names:
        if name not in WRAPPER_FACTORY:
            hint = did_you_mean(name, WRAPPER_FACTORY)
            raise UnknownArgument(f"no wrapper {name!r}{hint}  (available: {', '.join(WRAPPER_FACTORY)})")
    return [_wrapper_fn(name, tokenizer, native_tools) for name in names]


def wrapper_names(wrappers: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in wrappers.split(",") if name.strip()]


def has_tool(wrappers: str) -> bool:
    """Return whether a wrapper in a comma-separated list adds a tool."""
    return any(map(is_tool, wrapper_names(wrappers)))


def _wrapper_fn(name: str, tokenizer: Any, native_tools: bool) -> Callable[[Any], Any]:
    wrap = WRAPPER_FACTORY[name]
    if name in TOKENIZER_REQUIRED:
        return partial(wrap, tokenizer=tokenizer)
    return partial(wrap, native=True) if native_tools and is_tool(name) else wrap


def is_tool(name: str) -> bool:
    """Return whether there is a wrapper with this name, and it adds a tool."""
    if name not in WRAPPER_FACTORY:
        ENV_REGISTRY.load_plugins()
    wrap = WRAPPER_FACTORY.get(name)
    return isinstance(wrap, partial) and wrap.func is _with_tool


def mcp_wrapper(path: str, *, native: bool = False) -> Callable[[Any], Any]:
    """Return a wrapper that offers the tools of MCP servers. The wrapped environments share one listing of the tools.

    The first environment connects to list them. Each other one has its own sessions, which start at its first call.

    Args:
        path: JSON file with the configuration of the servers.
        native: whether the tools are called natively, by the ``tool_calls`` of an endpoint, and not in text.

    Raises:
        BadValue: the configuration cannot be read. The wrapper raises ToolError if a server cannot be reached.
        MissingDependency: without the extra [mcp].
    """
    from gem.tools.mcp.tool import MCPTool

    return partial(_with_mcp, tool=MCPTool(path, validate_on_init=False), native=native)


def _with_mcp(env: Any, *, tool: Any, native: bool) -> Any:
    from gem.tools.tool_env_wrapper import ToolEnvWrapper

    tool.functions()  # before the wrapper takes the tool, or one with the same listing
    return ToolEnvWrapper(env, [tool], **_format_option(native))
