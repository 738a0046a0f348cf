"""EditorTool: view, create and edit text files on a machine, for any environment."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.sandbox import Limits, Machine
from gem.tools.base_tool import Function
from gem.tools.machine.base import MachineTool

NAME = "str_replace_based_edit_tool"
CONTEXT = 4  # lines shown around an edit
# Writing in place keeps the mode and the links of a file, and sets the time on which make relies.
_WRITE = 'exec 2>&1; mkdir -p -- "${1%/*}/" && cat > "$1"'
_LIST = (
    'cd -- "$1" 2>&1 && find . -mindepth 1 -maxdepth 2 -name ".*" -prune -o -type d -printf "%P/\\n" -o -printf "%P\\n"'
)

_REQUIRED = {"create": ["file_text"], "str_replace": ["old_str"], "insert": ["insert_line", "insert_text"]}
_PROPERTIES: dict[str, Any] = {
    "command": {
        "type": "string",
        "enum": ["view", "create", "str_replace", "insert"],
        "description": "view a file or folder; create or overwrite a file; replace a text that occurs once; insert",
    },
    "path": {"type": "string", "description": "file or folder; a relative path starts at the working directory"},
    "view_range": {
        "type": "array",
        "items": {"type": "integer"},
        "description": "view: first and last line, from 1; -1 is the last line of the file",
    },
    "file_text": {"type": "string", "description": "create: content of the file"},
    "old_str": {"type": "string", "description": "str_replace: the text to replace, with its whitespace"},
    "new_str": {"type": "string", "description": "str_replace: the new text; without it, old_str is deleted"},
    "insert_line": {"type": "integer", "description": "insert: line after which to insert; 0 is the start"},
    "insert_text": {"type": "string", "description": "insert: the new lines"},
}
FUNCTION = Function(
    NAME,
    "View, create and edit text files.",
    {"type": "object", "properties": _PROPERTIES, "required": ["command", "path"], "additionalProperties": False},
)


class EditorTool(MachineTool):
    r"""View, create and edit text files on a machine, with the function that text-editor tools of models have.

    The commands are view, create, str_replace and insert. ShellTool(editor=True) has a shell on the same machine. In an
    environment with a machine, such as terminal tasks, the tool edits the files of that machine; otherwise it has one
    of its own, which starts empty with each episode and needs sandbox level ns. Edits keep the mode of a file, and the
    bytes of a file that is not UTF-8.

    Args:
        output_bytes: maximum number of characters of a file shown to the agent.

    Raises:
        BadValue: output_bytes is not positive.
        SandboxError: raised by a call if the sandbox fails or this machine cannot isolate a shell.

    >>> from gem.messages import ToolCall
    >>> tool = EditorTool()
    >>> name, path = "str_replace_based_edit_tool", "notes.txt"
    >>> print(tool.call(ToolCall(name, {"command": "create", "path": path, "file_text": "one\ntwo\n"})).text)
    Wrote /home/user/notes.txt.
    >>> edit = {"command": "str_replace", "path": path, "old_str": "two", "new_str": "2"}
    >>> print(tool.call(ToolCall(name, edit)).text)
    Edited /home/user/notes.txt:
         1  one
         2  2
    >>> tool.close()
    """

    tool_type = "editor"

    def __init__(self, *, output_bytes: int = 16_000) -> None:
        super().__init__(Limits(output_bytes=output_bytes))

    def functions(self) -> list[Function]:
        return [FUNCTION]

    def call(self, call: ToolCall) -> ToolResult:
        return edit(self.machine(), call, self.limits.output_bytes)


class _Refused(Exception):
    """An edit that is not possible. The text is shown to the agent."""


def edit(machine: Machine, call: ToolCall, limit: int) -> ToolResult:
    """Execute a call of the editor.

    Args:
        machine: the machine with the files.
        call: a call with valid types of arguments.
        limit: maximum number of characters of the result.

    Raises:
        SandboxError: if the sandbox fails.
    """
    given = dict(call.arguments)
    command, path = given["command"], str(given["path"])
    if command == "insert" and "insert_text" not in given and "new_str" in given:
        given["insert_text"] = given["new_str"]  # older text-editor tools
    if missing := [name for name in _REQUIRED.get(command, []) if name not in given]:
        return ToolResult(f"{command} needs {' and '.join(missing)}.", ToolErrorType.BAD_ARGUMENTS)
    if not path.strip() or "\0" in path:
        return ToolResult("path must name a file or folder.", ToolErrorType.BAD_ARGUMENTS)
    path = posixpath.normpath(posixpath.join(machine.folder, path))
    try:
        if command == "view":
            text = _view(machine, path, given.get("view_range"))
        elif command == "create":
            _write(machine, path, given["file_text"])
            text = f"Wrote {path}."
        elif command == "str_replace":
            text = _replace(machine, path, given["old_str"], given.get("new_str", ""))
        else:
            text = _insert(machine, path, given["insert_line"], given["insert_text"])
    except OSError as e:
        return ToolResult(f"{path}: {e.strerror or e}", ToolErrorType.ERROR)
    except _Refused as e:
        return ToolResult(str(e), ToolErrorType.ERROR)
    return ToolResult(_cut(text.encode("utf-8", "replace").decode(), limit))


def _view(machine: Machine, path: str, view_range: Sequence[int] | None) -> str:
    try:
        text = _read(machine, path)
    except IsADirectoryError:
        result = machine.run(["/bin/bash", "-c", _LIST, "bash", path])
        if not result.ok:
            raise _Refused(result.stdout.strip() or result.stopped(Limits())) from None
        return "\n".join([f"{path}/", *sorted(result.stdout.splitlines())])
    lines = _lines(text)
    if view_range is None:
        return _numbered(lines, 1, len(lines)) or f"{path} is empty."
    if len(view_range) != 2:
        raise _Refused(f"view_range must be two line numbers, got {list(view_range)}.")
    first, last = view_range[0], len(lines) if view_range[1] == -1 else view_range[1]
    if not 1 <= first <= last or first > len(lines):
        raise _Refused(f"view_range {list(view_range)} is not within the {len(lines)} lines of {path}.")
    return _numbered(lines, first, last)


def _replace(machine: Machine, path: str, old: str, new: str) -> str:
    text = _read(machine, path)
    if not old:
        raise _Refused("old_str must not be empty.")
    count = text.count(old)
    if count != 1:
        found = "does not occur" if not count else f"occurs {count} times; add lines around it to make it unique"
        raise _Refused(f"Nothing was replaced: old_str {found} in {path}.")
    start = text.index(old)
    _write(machine, path, text[:start] + new + text[start + len(old) :])
    first = text.count("\n", 0, start) + 1
    return _edited(path, text[:start] + new + text[start + len(old) :], first, first + new.count("\n"))


def _insert(machine: Machine, path: str, line: int, new: str) -> str:
    text = _read(machine, path)
    lines, added = _lines(text), _lines(new)
    if not 0 <= line <= len(lines):
        raise _Refused(f"insert_line must be from 0 to {len(lines)}, the number of lines of {path}, got {line}.")
    changed = "\n".join([*lines[:line], *added, *lines[line:]])
    if text.endswith("\n") or line == len(lines):
        changed += "\n"
    _write(machine, path, changed)
    return _edited(path, changed, line + 1, line + len(added))


def _edited(path: str, text: str, first: int, last: int) -> str:
    lines = _lines(text)
    around = _numbered(lines, max(1, first - CONTEXT), min(len(lines), last + CONTEXT))
    return f"Edited {path}:\n{around}" if around else f"Edited {path}; it is empty."


def _read(machine: Machine, path: str) -> str:
    return machine.read(path).decode("utf-8", "surrogateescape")


def _write(machine: Machine, path: str, text: str) -> None:
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _Refused("The text has characters that UTF-8 cannot encode.") from None
    result = machine.run(["/bin/bash", "-c", _WRITE, "bash", path], stdin=data)
    if not result.ok:
        reason = result.stdout.strip().rpartition("line 1: ")[2]
        raise _Refused(reason or result.stopped(Limits()) or f"{path} was not written.")


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{number:6}  {lines[number - 1]}" for number in range(first, min(last, len(lines)) + 1))


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    note = f"[{len(text) - 2 * half} characters cut; view the rest with view_range]"
    return f"{text[:half]}\n{note}\n{text[-half:]}"
