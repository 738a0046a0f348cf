"""Tables of the published names: the tests of this folder check them, and scripts/docs.py prints them.

published_surface.txt lists its names and signatures, as recorded at the end of 2025.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import reduce
from pathlib import Path
from typing import Any

from gem._published import PUBLISHED

RECORD = Path(__file__).with_name("published_surface.txt")

# Modules of the compatibility layer → module that new code should use. gem._published has the other published paths.
FORWARDED = {
    "gem.utils.constants": "gem.envs",
    "gem.utils.debug": "gem.rollout",
    "gem.utils.math_grader": "gem.graders.math",
    "gem.utils.parsing": "gem.parsing",
    "gem.utils.qa_em": "gem.graders.exact",
    "gem.utils.sandbox": "gem.sandbox",
    "gem.utils.seeding": "gem.seeding",
    **PUBLISHED,
    **dict.fromkeys(
        ["gem.vector.async_vector_env", "gem.vector.sync_vector_env", "gem.vector.vector_env"], "gem.vector"
    ),
    **dict.fromkeys(["gem.wrappers.episode_tracking_wrapper", "gem.wrappers.observation_wrapper"], "gem.wrappers"),
    **{
        path: "gem.tools"
        for path, home in PUBLISHED.items()
        if home.startswith("gem.tools.") and home.endswith(".tool")
    },
}

# Modules whose environments are made from ids instead → the ids.
BY_ID = {
    "gem.envs.mcpmark": "`mcpmark:PATH`",
    "gem.envs.terminal.docker_env": "`terminalbench:PATH`",
    "gem.envs.terminal.executor": "`terminalbench:PATH`",
    "gem.envs.terminal.reward": "`terminalbench:PATH`",
}

_SERVER = "internal to the published server; the command line and the protocol are the interface"
_SANDBOX = "programs are confined instead of searched for words, and are never passed on a command line"
_NO_HTML = "pages are rendered in each format directly, without parsing HTML"
_REWARD = "internal to the published reward; info['reward_parts'] has the parts"
# "module:name" → why this version does not have it. A class stands for its methods.
NOT_PROVIDED = {
    "gem.envs:data_names": "a leftover variable",
    "gem.envs.qa_env:apply_prompt": "the environment formats its prompt itself, so it is never applied twice",
    "gem.envs.game_env.hangman:HangmanEnv.get_current_success_internal_reward": _REWARD,
    "gem.envs.game_env.mastermind:MastermindEnv.get_current_success_internal_reward": _REWARD,
    "gem.envs.game_env.wordle:WordleEnv.get_current_success_internal_reward": _REWARD,
    "gem.envs.game_env.sudoku:SudokuEnv.is_safe": "internal to the published generator of puzzles",
    "gem.envs.webshop.webshop:WebshopEnv.state": "state is the episode; observation is the page",
    "gem.envs.webshop.webshop:WebshopEnv.get_image": "the picture features of products are not among the data",
    "gem.envs.webshop.webshop:WebshopEnv.convert_html_to_text": _NO_HTML,
    "gem.envs.webshop.webshop:tag_visible": _NO_HTML,
    "gem.utils.math_grader:run_with_timeout_signal": "grading is bounded by killable worker processes, not by signals",
    "gem.utils.sandbox:CLI_ARG_SIZE_LIMIT": _SANDBOX,
    "gem.utils.sandbox:ERROR_MSG_PREFIX": _SANDBOX,
    "gem.utils.sandbox:check_forbidden_imports": _SANDBOX,
    "gem.utils.sandbox:subprocess_run": _SANDBOX,
    "gem.vector.async_vector_env:step_reset_env": "internal to the published loop over threads",
    **dict.fromkeys(
        (
            f"gem.tools.search_engine.google_search_server:{name}"
            for name in ("parse_snippet", "sanitize_search_query", "filter_links", "fetch", "fetch_all")
        ),
        _SERVER,
    ),
    **dict.fromkeys(
        (
            f"gem.tools.search_engine.{server}_search_server:{name}"
            for server in ("google", "serp")
            for name in ("OnlineSearchEngine", "SearchRequest", "SearchResponse", "Config", "SearchWorker")
        ),
        _SERVER,
    ),
    **dict.fromkeys(
        (
            f"gem.tools.search_engine.retrieval_server:{name}"
            for name in ("load_corpus", "read_jsonl", "load_docs", "load_model", "pooling", "Config", "QueryRequest")
        ),
        _SERVER,
    ),
    "gem.tools.search_engine.retrieval_server:RetrievalResponse": _SERVER,
    "gem.tools.search_engine.retrieval_server:RetrievalWorker": _SERVER,
    **dict.fromkeys(
        (
            f"gem.tools.search_engine.retrieval_server:{name}"
            for name in ("BaseRetriever", "BM25Retriever", "DenseRetriever", "get_retriever")
        ),
        "gem.tools.search.index opens and searches an index in this process",
    ),
}

# "module:name" → why it does not take the published arguments.
ARGUMENTS_DIFFER = {
    "gem.tools.search_engine.retrieval_server:Encoder": _SERVER,
    "gem.vector.vector_env:VectorEnv": "the base class of all backends; SyncVectorEnv and AsyncVectorEnv take them",
}

# Arguments and options without effect → why. Of classes, they are their ignored_kwargs.
IGNORED = {
    "`MathEnv(use_mp=…)`, `MathVisualEnv(use_mp=…)`": "expensive comparisons always run in worker processes",
    "`MathEnv(max_turns=…)`, `MathVisualEnv(max_turns=…)`, `QaEnv(max_turns=…)`": "an episode has one turn",
    "`QaEnv(load_from_cache_file=…)`": "rows are read without a cache of prompts",
    "`CodeEnv(max_workers=…)`": "the sandbox decides how many tests run at once",
    "`CodeEnv(verbose=…)`": "`info['tests']` has the results",
    "`ToolEnvWrapper.step(verbose=…)`": "the logger of a tool reports its calls",
    "`BaseTool(num_workers=…)`": "the vector environment decides how many calls run at once",
    "`retrieval_server --faiss_gpu`": "indexes are searched on the CPU",
    "`retrieval_server --max_wait_time`": "a batch starts as soon as a worker is idle",
    "`serp_search_server --max_batch_size --num_workers --max_wait_time`": "each query is sent at once",
}

_LEVEL = "the limit fits the level or the size"
_SEED = "a run without a seed is not silently the same every time; pass `seed=`"
# "module:callable" → {argument: why its default is another one}. The ids set all of these themselves.
DEFAULTS_DIFFER = {
    "gem.envs.code_env:CodeEnv": {"seed": _SEED, "sandbox_type": "programs are confined"},
    "gem.envs.game_env.crosswords.crosswords:CrosswordsEnv": {"max_turns": _LEVEL, "num_words": "that of the easy id"},
    "gem.envs.game_env.fifteen_puzzle:FifteenPuzzleEnv": {
        "num_rows": "that of the plain id; `init_algo='pure_random'` alone needs `num_rows=2` or `max_turns=31`",
        "mc_rand_moves": "three quarters of the limit, so that every board can be solved in time",
    },
    "gem.envs.game_env.game_2048:Game2048Env": {"target_tile": "that of the plain id", "max_turns": _LEVEL},
    "gem.envs.game_env.guess_the_number:GuessTheNumberEnv": {"max_turns": "that of the plain id"},
    "gem.envs.game_env.hangman:HangmanEnv": {"max_turns": _LEVEL},
    "gem.envs.game_env.mastermind:MastermindEnv": {"max_turns": _LEVEL},
    "gem.envs.game_env.minesweeper:MinesweeperEnv": {"max_turns": _LEVEL},
    "gem.envs.game_env.sokoban.sokoban:SokobanEnv": {
        "max_turns": "that of the easy id",
        "num_boxes": "that of the easy id",
    },
    "gem.envs.game_env.sudoku:SudokuEnv": {"clues": "the published number for the scale", "max_turns": _LEVEL},
    "gem.envs.game_env.tower_of_hanoi:TowerofHanoiEnv": {"max_turns": _LEVEL},
    "gem.envs.game_env.word_search:WordSearchEnv": {"max_turns": _LEVEL},
    "gem.envs.game_env.wordle:WordleEnv": {"max_turns": "that of the plain id"},
    "gem.envs.game_env.wikigame.wikigame:WikiGameEnv": {"backend": "works without a network"},
    "gem.envs.math_env:MathEnv": {"use_format_error_reward": "the reward of the games", "seed": _SEED},
    "gem.envs.math_visual_env:MathVisualEnv": {"seed": _SEED},
    "gem.envs.qa_env:QaEnv": {"seed": _SEED},
    "gem.envs.reasoning_gym:ReasoningGymEnv": {"seed": _SEED},
    "gem.tools.python_code_tool:PythonCodeTool": {"sandbox_type": "programs are confined"},
}


def defaults() -> list[tuple[str, str, str, str]]:
    """Return (argument, published default, default here, why) of each argument in DEFAULTS_DIFFER."""
    published = {line.partition("(")[0]: line for line in RECORD.read_text(encoding="utf-8").splitlines()}
    rows = []
    for name, arguments in DEFAULTS_DIFFER.items():
        theirs, ours = defaults_in(published[name]), inspect.signature(found(name)).parameters
        short = name.partition(":")[2]
        rows += [(f"`{short}({a}=)`", f"`{theirs[a]}`", f"`{ours[a].default!r}`", why) for a, why in arguments.items()]
    return rows


def found(name: str) -> Any:
    """Return the object "module:path" of this package."""
    module, _, path = name.partition(":")
    return reduce(getattr, path.split("."), importlib.import_module(module))


def defaults_in(line: str) -> dict[str, str]:
    """Return the defaults in a line of the record, as source text."""
    function = ast.parse(f"def f({line.partition('(')[2]}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    names = [argument.arg for argument in function.args.args]
    values = function.args.defaults
    return dict(zip(names[len(names) - len(values) :], map(ast.unparse, values), strict=True))
