"""Configuration of MCP servers: URLs, commands and the JSON of other clients."""

import json
import sys
from pathlib import Path

import pytest

from gem.errors import BadValue
from gem.tools.mcp.config import ServerConfig, read_servers


def one(config):
    (server,) = read_servers(config)
    return server


@pytest.fixture
def write(tmp_path):
    def written(config, name="mcp.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        return path

    return written


@pytest.mark.parametrize(
    "source, transport",
    [
        ("http://localhost:8000/mcp", "http"),
        ("https://example.org/", "http"),
        ("http://localhost:8000/sse", "sse"),
        ("http://localhost:8000/sse/", "sse"),
        ("http://localhost:8000/sse?key=1", "sse"),
        ("http://localhost:8000/mcp?from=/sse/x", "http"),
        ({"url": "http://localhost:8000/sse", "type": "http"}, "http"),
        ({"url": "http://localhost:8000/mcp", "transport": "sse"}, "sse"),
        ({"url": "http://localhost:8000/sse", "transportType": "streamable-http"}, "http"),
    ],
)
def test_the_transport_is_given_or_derived_from_the_url(source, transport):
    assert one(source).transport == transport


def test_a_command_is_a_string_or_a_list():
    expected = ServerConfig("server", "stdio", sys.executable, ("-c", "print('a b')"))
    assert one(f"{sys.executable} -c \"print('a b')\"") == expected
    assert one([sys.executable, "-c", "print('a b')"]) == expected
    assert one({"command": sys.executable, "args": ["-c", "print('a b')"]}) == expected


def test_claude_desktop_configuration_is_read(write):
    config = {"mcpServers": {"files": {"command": sys.executable, "args": ["s.py"], "env": {"A": "1"}}}}
    for source in (write(config), str(write(config))):
        assert one(source) == ServerConfig("files", "stdio", sys.executable, ("s.py",), {"A": "1"})


def test_vs_code_configuration_is_read_relative_to_the_workspace(write, tmp_path):
    env_file = tmp_path / "secrets"
    env_file.write_text("# words\nexport TOKEN='t'\nEMPTY=\n")
    config = {
        "inputs": [],
        "servers": {
            "local": {
                "type": "stdio",
                "command": sys.executable,
                "args": ["${workspaceFolder}/s.py"],
                "envFile": "${workspaceFolder}/secrets",
                "env": {"EMPTY": "no"},
            },
            "web": {"type": "http", "url": "http://localhost:1/mcp", "headers": {"X-A": "b"}},
        },
    }
    local, web = read_servers(write(config, ".vscode/mcp.json"))
    assert local.args == (f"{tmp_path}/s.py",) and local.env == {"TOKEN": "t", "EMPTY": "no"}
    assert web == ServerConfig("web", "http", url="http://localhost:1/mcp", headers={"X-A": "b"})


def test_comments_and_trailing_commas_are_accepted(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(
        """\ufeff{
            // ours: "quoted"
            "servers": {
                "a": {"url": "http://localhost:1/mcp", "headers": {"X": "/* kept */ // \\",} ]"},}, /* not
                "b": {"url": "http://localhost:2/mcp"}, */
            },
        }""",
        encoding="utf-8",
    )
    assert one(path) == ServerConfig("a", "http", url="http://localhost:1/mcp", headers={"X": '/* kept */ // ",} ]'})


def test_unknown_fields_and_disabled_servers_are_ignored():
    servers = read_servers(
        {
            "mcpServers": {
                "on": {"url": "http://localhost:1/mcp", "autoApprove": ["x"], "description": "d", "disabled": False},
                "off": {"command": "no such command", "disabled": True},
            }
        }
    )
    assert [server.name for server in servers] == ["on"]


def test_servers_can_be_given_without_an_enclosing_key():
    servers = read_servers({"a": {"url": "http://localhost:1/mcp"}, "b": {"url": "http://localhost:2/mcp"}})
    assert [server.name for server in servers] == ["a", "b"]


def test_timeouts_are_milliseconds():
    assert one({"url": "http://localhost:1/mcp", "timeout": 1500}).timeout == 1.5


@pytest.mark.parametrize(
    "written, read",
    [
        ("${GEM_A}", "a"),
        ("${env:GEM_A}", "a"),
        ("x${GEM_A}y${GEM_A}", "xaya"),
        ("${GEM_NONE:-d}", "d"),
        ("${GEM_EMPTY:-d}", "d"),
        ("${GEM_A:-d}", "a"),
        ("${GEM_EMPTY}", ""),
        ("$GEM_A", "$GEM_A"),
    ],
)
def test_variables_are_substituted(monkeypatch, written, read):
    monkeypatch.setenv("GEM_A", "a")
    monkeypatch.setenv("GEM_EMPTY", "")
    monkeypatch.delenv("GEM_NONE", raising=False)
    assert one({"url": "http://localhost:1/mcp", "headers": {"X": written}}).headers == {"X": read}
    assert one({"command": sys.executable, "args": [written]}).args == (read,)


@pytest.mark.parametrize(
    "source, said",
    [
        ("", "must be a URL, a command"),
        (3, "got 3"),
        ([], "must be a URL, a command"),
        ("no-such-command --flag", "'no-such-command' is not installed"),
        ("'unclosed", "cannot parse the command"),
        ({"command": "/nowhere/python"}, "is not installed"),
        ({"mcpServers": {}}, "no enabled server"),
        ({"mcpServers": {"a": 3}}, "mcpServers"),
        ({"speed": 3}, "speed"),
        ({"mcpServers": {"a": {}}}, "'command' .*non-empty string"),
        ({"url": "http://localhost:1", "type": "htpp"}, "did you mean 'http'"),
        ({"url": 3}, "'url' .*non-empty string"),
        ({"url": "localhost:8000/mcp"}, "server 'server': .*URL .*like http"),
        ({"mcpServers": {"a": {"url": "http://[/sse"}}}, "server 'a': .*URL .*like http"),
        ("http://", "URL .*like http"),
        ({"url": "http://localhost:1", "timeout": "soon"}, "milliseconds"),
        ({"url": "http://localhost:1", "headers": ["a"]}, "'headers' must map"),
        ({"command": sys.executable, "args": "one word"}, "list of strings"),
        ({"command": sys.executable, "envFile": "/nowhere/at.all"}, "cannot read the envFile"),
        ({"url": "http://localhost:1", "headers": {"A": "${input:token}"}}, r"\$\{input:token\} asks the user"),
        ({"url": "http://localhost:1", "headers": {"A": "${GEM_NONE}"}}, "GEM_NONE is not set"),
    ],
)
def test_invalid_configurations_raise_with_the_value(monkeypatch, source, said):
    monkeypatch.delenv("GEM_NONE", raising=False)
    with pytest.raises(BadValue, match=said):
        read_servers(source)


@pytest.mark.parametrize("content, said", [("{", "is not JSON"), ("[]", "must be an object")])
def test_an_invalid_file_raises_with_its_name(write, content, said):
    with pytest.raises(BadValue, match=rf"mcp\.json.* {said}"):
        read_servers(write(content))


def test_a_missing_file_raises_with_its_name():
    with pytest.raises(BadValue, match=r"cannot read the MCP configuration .*nowhere\.json"):
        read_servers(Path("nowhere.json"))
