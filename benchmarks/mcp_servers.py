"""Third-party MCP servers that MCPTool is tested with: their packages, command lines and calls.

The servers are installed into a folder, on the first run:

    python benchmarks/mcp_servers.py DIR    # installs with pip and npm; writes benchmarks/results/mcp_servers.md

tests/tools/mcp/test_servers.py makes the same calls.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gem.messages import ToolCall, ToolErrorType, ToolResult
from gem.tools.mcp.tool import MCPTool

RESULTS = Path(__file__).parent / "results" / "mcp_servers.md"


@dataclass(frozen=True)
class Server:
    """A server of a package registry.

    Args:
        package: name on PyPI or npm.
        npm: whether the package is from npm.
        command: the program and its arguments; "{tmp}" is a new folder, "{port}" a free port.
        calls: (tool, arguments, pattern that the text of the result contains, whether the result is an error).
        path: path of the URL, for a server over HTTP; None for stdio.
        env: environment variables of the server.
    """

    package: str
    command: tuple[str, ...]
    calls: tuple[tuple[str, dict[str, Any], str, bool], ...]
    npm: bool = False
    path: str | None = None
    env: dict[str, str] = field(default_factory=dict)

    @property
    def transport(self) -> str:
        return "stdio" if self.path is None else "sse" if self.path.endswith("sse") else "http"

    def program(self, folder: Path) -> Path:
        return folder / ("npm/node_modules/.bin" if self.npm else f"{self.package}/bin") / self.command[0]

    def version(self, folder: Path) -> str:
        if self.npm:
            return str(json.loads((folder / "npm/node_modules" / self.package / "package.json").read_text())["version"])
        [info] = (folder / self.package).glob(f"lib/python*/site-packages/{self.package.replace('-', '_')}-*.dist-info")
        return info.name.removesuffix(".dist-info").rpartition("-")[2]


_OLD_SDK = ("mcp-server-sqlite", "mcp-text-editor")
_EVERYTHING = (
    ("echo", {"message": "hello"}, "hello", False),
    ("get-sum", {"a": 2, "b": 40}, "42", False),
    ("get-tiny-image", {}, "image", False),
    ("get-sum", {"a": "2", "b": 40}, "not of type 'number'|Expected|expected", True),
)
_EVERYTHING_NAME = "@modelcontextprotocol/server-everything"
SERVERS = (
    Server(
        "mcp-server-time",
        ("mcp-server-time", "--local-timezone=UTC"),
        (
            ("get_current_time", {"timezone": "Asia/Tokyo"}, r"\+09:00", False),
            (
                "convert_time",
                {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
                "9.0h",
                False,
            ),
            ("get_current_time", {"timezone": "Mars/Base"}, "Invalid timezone", True),
        ),
    ),
    Server(
        "mcp-server-fetch",
        ("mcp-server-fetch", "--ignore-robots-txt"),
        (("fetch", {"url": "http://127.0.0.1:9/"}, "Refused to fetch|Failed to fetch", True),),
    ),
    Server(
        "mcp-server-git",
        ("mcp-server-git",),
        (
            ("git_status", {"repo_path": "{tmp}/missing"}, "", True),
            ("git_status", {"repo_path": "{tmp}"}, "No commits yet|nothing to commit", False),
        ),
    ),
    Server(
        "mcp-server-sqlite",
        ("mcp-server-sqlite", "--db-path", "{tmp}/base.db"),
        (
            ("create_table", {"query": "CREATE TABLE t (a INTEGER)"}, "created", False),
            ("write_query", {"query": "INSERT INTO t VALUES (42)"}, "affected", False),
            ("read_query", {"query": "SELECT a FROM t"}, "42", False),
        ),
    ),
    Server(
        "mcp-server-calculator",
        ("mcp-server-calculator",),
        (("calculate", {"expression": "6 * 7"}, "42", False),),
    ),
    Server(
        "mcp-text-editor",
        ("mcp-text-editor",),
        (
            (
                "get_text_file_contents",
                {"files": [{"file_path": "{tmp}/a.txt", "ranges": [{"start": 1}]}]},
                "two",
                False,
            ),
        ),
    ),
    Server(
        "excel-mcp-server",
        ("excel-mcp-server", "stdio"),
        (
            ("create_workbook", {"path": "{tmp}/a.xlsx"}, "a.xlsx", False),
            ("write_range", {"path": "{tmp}/a.xlsx", "sheet": "Sheet1", "at": "A1", "rows": [["a", 42]]}, "", False),
            ("read_range", {"path": "{tmp}/a.xlsx", "sheet": "Sheet1"}, "42", False),
        ),
    ),
    Server(_EVERYTHING_NAME, ("mcp-server-everything", "stdio"), _EVERYTHING, npm=True),
    Server(
        _EVERYTHING_NAME,
        ("mcp-server-everything", "streamableHttp"),
        _EVERYTHING,
        npm=True,
        path="/mcp",
        env={"PORT": "{port}"},
    ),
    Server(
        _EVERYTHING_NAME, ("mcp-server-everything", "sse"), _EVERYTHING, npm=True, path="/sse", env={"PORT": "{port}"}
    ),
    Server(
        "@modelcontextprotocol/server-filesystem",
        ("mcp-server-filesystem", "{tmp}"),
        (
            ("write_file", {"path": "{tmp}/a.txt", "content": "hello"}, "wrote", False),
            ("read_text_file", {"path": "{tmp}/a.txt"}, "hello", False),
            ("read_text_file", {"path": "/etc/hostname"}, "denied", True),
        ),
        npm=True,
    ),
    Server(
        "@modelcontextprotocol/server-memory",
        ("mcp-server-memory",),
        (
            (
                "create_entities",
                {"entities": [{"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}]},
                "Ada",
                False,
            ),
            ("search_nodes", {"query": "programs"}, "Ada", False),
        ),
        npm=True,
        env={"MEMORY_FILE_PATH": "{tmp}/memory.json"},
    ),
    Server(
        "@modelcontextprotocol/server-sequential-thinking",
        ("mcp-server-sequential-thinking",),
        (
            (
                "sequentialthinking",
                {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
                "thoughtNumber",
                False,
            ),
        ),
        npm=True,
    ),
)


def install(server: Server, folder: Path) -> None:
    """Install a server, unless it is: from PyPI into a virtual environment of its own, from npm with the others.

    Raises:
        OSError, subprocess.SubprocessError: the server cannot be installed, for example without a network.
    """
    if server.program(folder).exists():
        return
    if server.npm:
        (folder / "npm").mkdir(parents=True, exist_ok=True)
        options = ["--silent", "--fetch-retries", "0", "--prefix", str(folder / "npm")]
        subprocess.run(["npm", "install", *options, server.package], check=True, timeout=300)
        return
    subprocess.run([sys.executable, "-m", "venv", folder / server.package], check=True)
    # The servers in _OLD_SDK do not start with version 2 of the SDK.
    packages = [server.package, *(["mcp<2"] if server.package in _OLD_SDK else [])]
    pip = [folder / server.package / "bin/pip", "install", "--quiet", "--retries", "0", "--timeout", "10"]
    subprocess.run([*pip, *packages], check=True, timeout=300)


def call_all(server: Server, folder: Path, tmp: Path) -> list[ToolResult]:
    """Start a server, make its calls and return the results. Raises AssertionError for an unexpected result."""

    def filled(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("{tmp}", str(tmp)).replace("{port}", str(port)))

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(server.program(folder)), *filled(server.command[1:])]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp), **filled(server.env)}
    (tmp / "a.txt").write_text("one\ntwo\n")
    subprocess.run(["git", "init", "-q", tmp], check=True)  # the server for git needs a repository
    with contextlib.ExitStack() as stack:
        source: Any = {"command": command[0], "args": command[1:], "env": env}
        if server.path is not None:
            stack.enter_context(_listening(command, env, port))
            source = f"http://127.0.0.1:{port}{server.path}"
        tool = stack.enter_context(contextlib.closing(MCPTool(source)))
        validators = {function.name: tool.argument_validator(function) for function in tool.functions()}
        results = []
        for name, arguments, pattern, fails in server.calls:
            arguments = filled(arguments)
            refusal = validators[name](arguments)
            result = (
                ToolResult(refusal, ToolErrorType.BAD_ARGUMENTS) if refusal else tool.call(ToolCall(name, arguments))
            )
            assert re.search(pattern, result.text) and result.ok != fails, (server.package, name, result)
            results.append(result)
        return results


@contextlib.contextmanager
def _listening(command: list[str], env: dict[str, str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None and time.monotonic() < until, "the server does not listen"
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    rows = []
    for server in SERVERS:
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory() as tmp:
            try:
                install(server, args.folder)
                results = call_all(server, args.folder, Path(tmp))
                answered = f"{len(results)} of {len(server.calls)}"
            except Exception as e:
                answered = f"failed: {type(e).__name__}: {str(e)[:300]}"
        registry = "npm" if server.npm else "PyPI"
        called = ", ".join(dict.fromkeys(f"`{name}`" for name, *_ in server.calls))
        seconds = time.perf_counter() - begin
        rows.append(
            [
                server.package,
                server.version(args.folder),
                registry,
                server.transport,
                called,
                answered,
                f"{seconds:.1f}",
            ]
        )
        print(*rows[-1], flush=True)
    head = ["package", "version", "registry", "transport", "tools called", "calls answered as expected", "seconds"]
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    RESULTS.write_text(
        "# Third-party MCP servers\n\n`python benchmarks/mcp_servers.py DIR`, on Python "
        f"{platform.python_version()}, SDK {_sdk_version()}. Seconds include the start of the server.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def _sdk_version() -> str:
    from importlib.metadata import version

    return version("mcp")


if __name__ == "__main__":
    main()
