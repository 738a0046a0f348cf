"""Tables about the published package: the tests of this folder check them, and scripts/docs.py prints them.

published_surface.txt lists its names and signatures, as recorded at the end of 2025.
"""

from __future__ import annotations

from pathlib import Path

RECORD = Path(__file__).with_name("published_surface.txt")

# Module of the compatibility layer → module that new code should use.
FORWARDED = {
    "gem.utils.constants": "gem.envs",
    "gem.utils.debug": "gem.rollout",
    "gem.utils.math_grader": "gem.graders.math",
    "gem.utils.parsing": "gem.parsing",
    "gem.utils.qa_em": "gem.graders.exact",
    "gem.utils.sandbox": "gem.sandbox",
    "gem.utils.seeding": "gem.seeding",
    "gem.vector.vector_env": "gem.vector",
    "gem.vector.sync_vector_env": "gem.vector",
    "gem.vector.async_vector_env": "gem.vector",
    "gem.wrappers.observation_wrapper": "gem.wrappers",
    "gem.wrappers.episode_tracking_wrapper": "gem.wrappers",
    "gem.envs.game_env.game_2048": "gem.envs.game_env.game2048",
    "gem.envs.game_env.crosswords.crosswords": "gem.envs.game_env.crosswords",
    "gem.envs.game_env.sokoban.sokoban": "gem.envs.game_env.sokoban",
    "gem.envs.multiagent": "gem.multiagent",
    "gem.envs.multiagent.multi_agent_env": "gem.multiagent",
}

# Modules of environments that this version does not have → what they need.
LATER = {
    "gem.envs.game_env.wikigame.backend": "WikiGame",
    "gem.envs.game_env.wikigame.wikigame": "WikiGame",
    "gem.envs.mcpmark": "MCPMark",
    "gem.envs.terminal.docker_env": "tasks of Terminal-Bench",
    "gem.envs.terminal.executor": "tasks of Terminal-Bench",
    "gem.envs.terminal.reward": "tasks of Terminal-Bench",
    "gem.envs.webshop.webshop": "WebShop",
}

_SERVER = "internal to the published server; the command line and the protocol are the interface"
_SANDBOX = "programs are confined instead of searched for words, and are never passed on a command line"
_REWARD = "internal to the published reward; info['reward_parts'] has the parts"
# "module:name" → why this version does not have it. A class stands for its methods.
NOT_PROVIDED = {
    "gem.envs:data_names": "a leftover variable",
    "gem.envs.qa_env:apply_prompt": "the environment formats its prompt itself, so it is never applied twice",
    "gem.envs.game_env.hangman:HangmanEnv.get_current_success_internal_reward": _REWARD,
    "gem.envs.game_env.mastermind:MastermindEnv.get_current_success_internal_reward": _REWARD,
    "gem.envs.game_env.wordle:WordleEnv.get_current_success_internal_reward": _REWARD,
    "gem.envs.game_env.sudoku:SudokuEnv.is_safe": "internal to the published generator of puzzles",
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
        "gem.tools.search_engine.index opens and searches an index in this process",
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
    "`MathEnv(max_turns=…)`, `QaEnv(max_turns=…)`": "an episode has one turn",
    "`QaEnv(load_from_cache_file=…)`": "rows are read without a cache of prompts",
    "`CodeEnv(max_workers=…)`": "the sandbox decides how many tests run at once",
    "`CodeEnv(verbose=…)`": "`info['tests']` has the results",
    "`ToolEnvWrapper.step(verbose=…)`": "the logger of a tool reports its calls",
    "`BaseTool(num_workers=…)`": "the vector environment decides how many calls run at once",
    "`retrieval_server --faiss_gpu`": "indexes are searched on the CPU",
    "`retrieval_server --max_wait_time`": "a batch starts as soon as a worker is idle",
    "`serp_search_server --max_batch_size --num_workers --max_wait_time`": "each query is sent at once",
}

# (topic, published, here, why)
STRICTER = [
    (
        "unknown arguments",
        "swallowed: `make(id, max_turn=1)` played the default number of turns",
        "an error that suggests the closest name",
        "a misspelled setting trains another task",
    ),
    (
        "slow answers in math",
        "one answer such as `9**9**9` kept the grader busy, and the correct answers after it scored 0",
        "the worker is killed; GraderError, never a reward",
        "an outage must not be a wrong answer",
    ),
    (
        "units in math",
        "`10 miles` earned 1.0 for `10 km`, `y=5` for `x=5`, `(1,234)` for `1234`",
        "0.0",
        "wrong answers earned full reward",
    ),
    (
        "empty tool calls",
        "`<python></python>` earned 0.05 + 0.25 with `python_tool`",
        "a refused call without reward",
        "a policy learns to repeat it",
    ),
    (
        "GuessTheNumber at the turn limit",
        "the distance to the secret was paid: always guessing 25 earned 0.744",
        "0.0 without a hit",
        "a constant policy must not earn more than chance",
    ),
    (
        "TowerofHanoi",
        "`A A` was a legal move that changed nothing and kept 0.333 at the limit",
        "an invalid move",
        "doing nothing must not be a good policy",
    ),
    (
        "exact match",
        "`the` equalled `a`, because articles vanish",
        "a text of articles only keeps them",
        "an empty answer must not be right",
    ),
    (
        "programs",
        "run without isolation; scored 0 if the text held a forbidden word, even in a comment",
        "`sandbox_type='auto'`: confined; any text is allowed. `'none'` still works, with one warning",
        "model-written code could read the trainer's files",
    ),
    (
        "steps after the end",
        "accepted",
        "EpisodeOver",
        "such a reward belongs to no episode. In math and QA, assign `env.answer` to grade one row",
    ),
    (
        "turn limits and single turns",
        "`terminated` and `truncated` both True",
        "only the one that holds; `info['stop_reason']` says which limit",
        "value estimation needs to know. `GEM_END_ON_TRUNCATION=1` also sets `terminated`",
    ),
    (
        "random numbers",
        "`reset(seed)` seeded the streams of the whole process",
        "each environment has its own stream; only classes outside gem still get the global seed",
        "one environment changed the episodes of the others",
    ),
]

DIFFERENT = [
    ("Minesweeper", "won if every mine was flagged", "won if every safe cell is revealed", "as in the usual game"),
    (
        "FifteenPuzzle",
        "half of the boards had no solution",
        "every board has one within the limit",
        "no reward to learn",
    ),
    (
        "progress in Game2048, Mastermind, Wordle, Hangman, Sudoku, Minesweeper",
        "paid in equal parts",
        "rewards sum to a power of the progress, see docs/design/games.md; a won game returns 1.0",
        "random legal moves earned .28 to .67 in games that they did not win",
    ),
    (
        "TowerofHanoi",
        "starts from the full tower",
        "starts from a random legal position, unless `random_start=False`",
        "a fixed sequence of moves won every episode",
    ),
    (
        "Game2048-v0-hard and -extreme-hard",
        "512 in 50 turns, 2048 in 100",
        "400 and 1,600 turns",
        "a move adds at most 4 to the tiles",
    ),
    (
        "a game that is not won",
        "the secret stayed hidden",
        "`info['revealed']` of the last step",
        "readable transcripts",
    ),
    (
        "prompts of math, QA and rg tasks",
        "did not say how to answer",
        "state the answer format",
        "only `\\boxed{}` counted",
    ),
    ("`terminated` observation", "the constant TERMINAL_STATE", "the verdict", "readable transcripts"),
    (
        "MathEnv without an answer",
        "0.0, or -0.1 with `use_format_error_reward=True`",
        "-0.1, or 0.0 with `use_format_error_reward=False`",
        "the reward of the games",
    ),
    ("MathEnv `eval=True`", "no shuffling", "`shuffle=False`", "says what it does"),
    (
        "PythonCodeTool, search and MCP sessions",
        "a new process per call",
        "warm workers and sessions; a tool belongs to one environment",
        "speed, and servers keep their state",
    ),
    (
        "rerun after a NameError",
        "replaced the error; needed pandas",
        "only for the usual modules, and only its success counts",
        "the agent sees its own error",
    ),
    (
        "observations of a vector's last step",
        "lost",
        "`info['final_obs']` and `info['final_info']`",
        "loggers need them",
    ),
]

SWITCHES = {
    "`GEM_END_ON_TRUNCATION=1`": "trainers that watch `terminated` alone",
    "`make(…, end_on_truncation=True)`": "the same for one environment",
    "`GEM_SKIP_BAD_ROWS=1`": "skip malformed rows of data sets",
    "`GEM_DATA=folder`": "local copies of the data sets",
    "`sandbox_type='none'`": "run programs without isolation, as published",
    "`use_format_error_reward=False`": "no negative reward for a math answer without a box",
}
