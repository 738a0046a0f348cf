"""Tools take nothing away: with a tool, each oracle reaches the score that it reaches without a tool."""

from __future__ import annotations

import base64
import copy
import pickle
import sys
from functools import cache

import pytest
from fake_tools import Old
from plain_mcp_server import PIXEL

import gem
from gem.errors import MissingDependency
from gem.policies import oracle
from gem.registry import ENV_REGISTRY
from gem.tools.function_tool import FunctionTool
from gem.tools.mcp.tool import MCPTool
from gem.tools.python.tool import PythonCodeTool
from gem.tools.search.index import LexicalIndex
from gem.tools.search.tool import SearchTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

# One id per environment class, the first with an oracle.
IDS = (
    [f"game:{name}-v0" for name in ("GuessTheNumber", "Mastermind", "Wordle", "Hangman", "Sudoku", "TowerofHanoi")]
    + ["game:Crosswords-v0-easy", "game:WordSearch-v0-easy", "game:Minesweeper-v0", "game:FifteenPuzzle-v0-easy"]
    + ["game:Game2048-v0-easy", "game:Sokoban-v0-easy", "game:WikiGame-v0-easy", "code:Mini", "qa:Facts"]
    + ["qa:Encyclopedia", "math:Arithmetic", "logic:Rules", "game:Rooms-v0-easy", "game:TwentyQuestions-v0"]
    + ["vision:Geometry", "rg:ab", "math:GSM8K", "math:Geometry3K", "tool:Lookup", "terminal:Files", "board:Nim-v0"]
    + ["webshop:Mini", "web:Forms", "desk:Retail", "desk:Support", "swe:Mini", "mcpmark:Files", "mcpmark:Postgres"]
    + ["game:Blackjack-v0-easy", "game:Bandit-v0", "game:FrozenLake-v0", "game:RushHour-v0-easy"]
)
ROW = {"problem": "What is $1+1$?", "answer": "2"}
IMAGE = base64.b64decode(PIXEL)
OF_ROWS = {"math:GSM8K": ROW, "math:Geometry3K": {**ROW, "images": [IMAGE]}}  # in place of a download


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def tagged(name, arguments):
    return f"<tool_call><tool_name>{name}</tool_name><arguments>{arguments}</arguments></tool_call>"


# Maps a name to (a function that builds the tool, a call of the tool).
TOOLS = {
    "python": (PythonCodeTool, "<python>print(1)</python>"),
    "notebook": (lambda: PythonCodeTool(stateful=True), "<python>x = 1</python>"),
    "search": (lambda: SearchTool(index=LexicalIndex.of([{"id": "1", "contents": "a\nb"}])), "<search>b</search>"),
    "function": (lambda: FunctionTool(double), tagged("double", '{"number": 2}')),
    "mcp": (lambda: time_server().spawn(), tagged("days_in_month", '{"date": "2024-02-03"}')),
    "published": (Old, "<old>x</old>"),
}
TOGETHER = [name for name in TOOLS if name != "notebook"]  # it has the tag of python


@cache
def time_server():
    pytest.importorskip("mcp")
    return MCPTool([sys.executable, "-m", "gem.tools.mcp.time_server"], shared=True)


@pytest.fixture(scope="module", autouse=True)
def servers_end():
    yield
    if time_server.cache_info().currsize:
        time_server().close()


def play(env, tooled=None, calls=()):
    """Return the oracle's total reward on seed 0, after some calls of tools."""
    observation, _ = env.reset(seed=0)  # oracles read the observation without the instructions of a tool
    if tooled is not None:
        env = tooled
        env.reset(seed=0)
    for call in calls:
        step = env.step(call)
        assert step.info["use_tool"] and not step.info["tool_faults"], step
    player, total = oracle(env), 0.0
    while True:
        observation, reward, terminated, truncated, _ = env.step(player.act(observation))
        total += reward
        if terminated or truncated:
            return total


def check(env_id, names):
    """Compare the scores with tools, used up and not, to the score without."""
    rows = {"dataset_name": "", "dataset": [OF_ROWS[env_id]]} if env_id in OF_ROWS else {}
    tools, calls = zip(*map(TOOLS.get, names), strict=True)
    try:
        env = gem.make(env_id, **rows)
        alone = play(env)
    except MissingDependency as e:
        pytest.skip(str(e))
    with ToolEnvWrapper(env, tools=tools, max_tool_uses=len(tools)) as tooled:
        assert play(env, tooled, calls) == play(env, tooled) == alone > 0


def test_every_environment_class_is_covered():
    covered = {ENV_REGISTRY[env_id].entry_point for env_id in IDS}
    built_in = {spec.entry_point for spec in ENV_REGISTRY.values() if str(spec.entry_point).startswith("gem.envs.")}
    # Environments of published data, which no test has. webshop:Mini is a subclass of that of the published WebShop.
    of_data = {spec.entry_point for spec in ENV_REGISTRY.values() if "$GEM_DATA" in spec.description}
    assert built_in - covered == of_data


@pytest.mark.parametrize("env_id", [pytest.param(i, marks=pytest.mark.slow if "Postgres" in i else ()) for i in IDS])
def test_the_oracle_reaches_the_same_score_with_tools(env_id):
    check(env_id, TOGETHER)


@pytest.mark.parametrize("name", TOOLS)
def test_the_oracle_of_code_reaches_the_same_score_with_each_tool(name):
    check("code:Mini", [name])


def test_a_copy_of_the_wrapper_reads_the_same_messages():
    with ToolEnvWrapper(gem.make("code:Mini"), tools=[PythonCodeTool]) as env:
        env.reset(seed=0)
        answer = oracle(env).act("")
        assert copy.deepcopy(env).step(answer).reward == 1.0


def test_the_wrapper_can_be_pickled_in_an_episode():
    with ToolEnvWrapper(gem.make("tool:Lookup"), tools=[FunctionTool(double)]) as env:
        env.reset(seed=0)
        env.step(tagged("double", '{"number": 2}'))
        copied = pickle.loads(pickle.dumps(env))
        assert "8" in copied.step(tagged("double", '{"number": 4}')).observation
        assert copied.step(oracle(env).act("")).reward == 1.0


@pytest.mark.parametrize("kind", ["code", "boxed", "tag", "plain"])
def test_answers_of_every_format_reach_the_environment(kind):
    pytest.importorskip("sympy", reason="needs the extra [math]")
    with ToolEnvWrapper(gem.make("math:Arithmetic", answer_format=kind), tools=[PythonCodeTool]) as env:
        prompt, _ = env.reset(seed=0)
        answer = env.format.write(env.answer)
        assert env.step(answer.replace("```\n", "```python\n", 1)).reward == 1.0
    assert ("```python" in prompt) == (kind != "code")
