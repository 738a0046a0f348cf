"""MCPTool with servers that others wrote, from PyPI and npm. Skipped where they cannot be installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from mcp_servers import SERVERS, Server, call_all, install

ALWAYS = "@modelcontextprotocol/server-everything"  # over all transports; others take up to 30 s to install
PARAMS = [pytest.param(each, marks=() if each.package == ALWAYS else pytest.mark.exhaustive) for each in SERVERS]
UNAVAILABLE: dict[bool, str] = {}  # why the first package of a registry (npm or not) could not be installed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the servers; GEM_MCP_SERVERS names one in which they stay installed."""
    return Path(os.environ.get("GEM_MCP_SERVERS") or tmp_path_factory.mktemp("servers"))


@pytest.mark.slow
@pytest.mark.parametrize("server", PARAMS, ids=lambda server: f"{server.package}-{server.transport}")
def test_a_server_answers_as_expected(server: Server, folder: Path, tmp_path: Path) -> None:
    if server.npm not in UNAVAILABLE:
        try:
            install(server, folder)
        except (OSError, subprocess.SubprocessError) as e:
            UNAVAILABLE[server.npm] = str(e)
    if server.npm in UNAVAILABLE:
        pytest.skip(f"cannot be installed: {UNAVAILABLE[server.npm]}")
    assert len(call_all(server, folder, tmp_path)) == len(server.calls)


def test_at_least_ten_packages_and_all_transports_are_covered() -> None:
    assert len({server.package for server in SERVERS}) >= 10
    assert {server.transport for server in SERVERS if server.package == ALWAYS} == {"stdio", "http", "sse"}
