"""Behaviours of the published package and of this one, as tables that scripts/docs.py prints.

The tests of this folder cover them, and those of the modules that they name.
"""

from __future__ import annotations

SAME = [
    "the ids, and the columns and splits of their data sets (`tests/compat/test_published_ids.py` plays all 172)",
    "module paths, names, and the order and names of arguments",
    "`reset`, `step` with five values, `sample_random_action`, `spawn`, `get_state`, `set_state`, `unwrapped`",
    "formats of actions: `\\boxed{}`, `<answer>`, fenced programs, `<python>`, `<search>`, `<tool_call>`",
    "what clients parse in observations: `Code execution result: `, `<information>`, `<tool_response>`",
    "the names of wrappers in the factory, their order, and the keys that they add to `info`",
    "lists and dicts of actions for vectors, `envs`, `num_envs`, and both autoreset modes",
    "the protocol and the options of the search servers, and names such as `server_tool` of MCP tools",
]

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
        "`QaEnv()`: a text of articles only keeps them. `qa:` and `eval:` ids over public data sets: as published, "
        "which is SQuAD's (`reward='squad_em'`)",
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
    (
        "search results",
        "in `<information>` in 0.1.0, bare in later versions; failures were text in the results",
        "in `<information>`, one passage per line; a timeout is said, a failing server raises ToolError",
        "an outage must not look like a result",
    ),
    (
        "indexes of the retrieval server",
        "Pyserini or faiss, with a model in the server",
        "built from the corpus on first use; dense search asks an embeddings endpoint for vectors",
        "no Java, and one server per model",
    ),
    (
        "`python -m gem.tools.mcp_server.time_mcp`",
        "served HTTP by default",
        "stdin and stdout; `--transport streamable-http` serves HTTP",
        "MCP clients start servers by their command",
    ),
    (
        "`info['use_tool']`",
        "True in every step of an environment with tools",
        "True only if the action contained calls",
        "chat templates show tool results by it",
    ),
    (
        "boards of games",
        "in `info['suffix']` alone",
        "in the observation",
        "an agent without wrapper sees the board",
    ),
    (
        "words of Wordle and Hangman",
        "downloaded from NLTK",
        "in the package",
        "environments work without network",
    ),
    (
        "punctuation in exact match",
        "removed: `co-op` equals `coop`",
        "`QaEnv()`: separates words, so `co-op` equals `co op`. `reward='squad_em'` and the ids over public data sets: "
        "removed",
        "`1-2` must not equal `12`",
    ),
    (
        "observation of Geometry3K",
        '`{"problem", "images"}`',
        '`{"text", "images"}`',
        "the same keys in every environment",
    ),
    (
        "prompt templates `qwen3_game`, `qwen3_general`, `code`",
        "a text with the chat markup of Qwen",
        "the same names with words of their own; the markup comes from the tokenizer or the server, other words from a "
        "text file with `{observation}`",
        "one template for all models",
    ),
    (
        "printing",
        "constructors and factories printed",
        "nothing is printed; the logger `gem` reports",
        "a library leaves stdout to the program",
    ),
]

# Where the published package failed, or its behaviour is not documented → what this package does.
OPEN = [
    (
        "`None` for an argument of a game",
        "draws it for every episode, where the `-random` ids draw it; `board_size`, `duplicate_numbers`, "
        "`only_real_words` and Hangman's `hardcore` are never drawn and take no None",
    ),
    ("`SokobanEnv(room_size=)`", "another name of `dim_room`"),
    ("`AgentSelector.next()`", "returns the agents that act next; the published method returned None"),
    ("`AgentSelector.is_last()` in mode parallel", "True, because the last agent acts; the published one was False"),
    ("an agent that leaves on its turn", "its successor acts next, as in PettingZoo; published, one agent was skipped"),
    (
        "`MultiAgentEnv.step(actions)`",
        "takes one action of each active agent, and returns five dicts over all agents that were playing, as in the "
        "parallel API of PettingZoo",
    ),
    (
        "terminations and truncations of agents",
        "are stored, and the agent leaves `agents`, as in PettingZoo; the episode is over when `agents` is empty",
    ),
    ("`rewards` and `infos` after a step", "those of the step; published, zero and empty"),
    ("`MultiAgentEnv.reset(seed)`", "seeds `self.rng`; published, a seed raised AttributeError"),
    ("`shared_memory`", 'a list of {"from", "to", "message"} in the order of sending, empty after a reset'),
    ("`get_state(agent)`", "a Step: observation, sum of rewards, terminated, truncated, info"),
    (
        "`gem.utils.debug`",
        "prints the first observation, then each action with its observation, reward, flags and info",
    ),
    ("`LanguageGameReward`", "rewards of a typical game; each game of this package documents its own"),
]

SWITCHES = {
    "`GEM_END_ON_TRUNCATION=1`": "trainers that watch `terminated` alone",
    "`make(…, end_on_truncation=True)`": "the same for one environment",
    "`GEM_SKIP_BAD_ROWS=1`": "skip malformed rows of data sets",
    "`GEM_DATA=folder`": "local copies of the data sets",
    "`sandbox_type='none'`": "run programs without isolation, as published",
    "`MathEnv(eval=True)`": "the rows in their order; new code writes `shuffle=False`",
    "`MCPTool(…, prefix='collision')`": "names of tools without that of their server, where they are unique",
    "`time_mcp --transport streamable-http`": "serve HTTP, the published default",
    "`use_format_error_reward=False`": "no negative reward for a math answer without a box",
}
