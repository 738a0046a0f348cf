"""Specifications of the built-in environments. Importing this module does not import any environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from gem.envs.reasoning_gym_specs import reasoning_gym_specs
from gem.registry import EnvSpec

FORMAT_ERROR = -0.1
BASELINE = 0.25  # maximum mean reward of policies that ignore the task; the oracle earns 1.0


def _game(
    name: str,
    module: str,
    variants: dict[str, dict[str, Any]],
    description: str,
    oracle_sees: Literal["observation", "state"],
    baseline: float = BASELINE,
) -> list[EnvSpec]:
    """Return the specs of one game. ``variants`` maps id suffixes ("" for no suffix) to constructor arguments.

    Args:
        baseline: maximum mean reward of policies that ignore the task.
    """
    return [
        EnvSpec(
            id=f"game:{name}-v0{variant and '-' + variant}",
            entry_point=f"gem.envs.game_env.{module}:{name}Env",
            kwargs=kwargs,
            reward_range=(FORMAT_ERROR, 1.0),
            oracle=f"gem.envs.game_env.{module}:Oracle",
            oracle_sees=oracle_sees,
            baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], baseline),
            stored_scores="gem.envs.game_env.baselines:describe",
            description=description,
        )
        for variant, kwargs in variants.items()
    ]


def _shipped(
    env_id: str,
    entry: str,
    oracle: str,
    text: str,
    *,
    baseline: float = BASELINE,
    lowest: float = FORMAT_ERROR,
    extra: str | None = None,
    runs: Literal["inline", "thread"] = "inline",
    **kwargs: Any,
) -> EnvSpec:
    """Return the spec of an environment with built-in tasks. Its oracle reads the answers from the environment.

    Args:
        baseline: maximum mean reward of policies that ignore the task.
        lowest: minimum reward of an episode.
    """
    return EnvSpec(
        id=env_id,
        entry_point=f"gem.envs.{entry}",
        kwargs=kwargs,
        extra=extra,
        runs=runs,
        reward_range=(lowest, 1.0),
        oracle=f"gem.envs.{oracle}",
        oracle_sees="state",
        baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], baseline),
        description=text,
    )


def _generated(
    env_id: str, entry: str, kwargs: dict[str, Any], baseline: float, extra: str | None, text: str
) -> EnvSpec:
    """Return the spec of a family of questions generated from a seed."""
    return _shipped(
        env_id, f"generated:{entry}", "answer_format:AnswerOracle", text, baseline=baseline, extra=extra, **kwargs
    )


def _data(
    family: str,
    module: str,
    entry: str,
    names: dict[str, tuple[str, str]],
    text: str,
    *,
    extra: str = "data",
    **kwargs: Any,
) -> list[EnvSpec]:
    """Return the specs of environments with datasets from the Hugging Face Hub, which the extra [data] loads.

    ``names`` maps the second part of each id to (dataset, split). The oracle replies with the gold answer. Code
    environments have no oracle, because their tasks have tests instead of a gold answer.
    """
    answered = module != "code_env"
    return [
        EnvSpec(
            id=f"{family}:{name}",
            entry_point=f"gem.envs.{module}:{entry}",
            kwargs={"dataset_name": dataset, "split": split, **kwargs},
            extra=extra,
            runs="thread",
            reward_range=(FORMAT_ERROR, 1.0),
            oracle="gem.envs.answer_format:AnswerOracle" if answered else None,
            oracle_sees="state" if answered else None,
            description=f"{text} Dataset {dataset}, split {split}.",
        )
        for name, (dataset, split) in names.items()
    ]


def _table_game(env_id: str, entry: str, text: str, *, baseline: float = BASELINE, **options: Any) -> EnvSpec:
    """Return the spec of a game between players. ``options`` are arguments of its class."""
    return EnvSpec(
        id=env_id,
        entry_point="gem.envs.table.make:table_game",
        kwargs={"game": f"gem.envs.table.{entry}", "options": options},
        reward_range=(-1.0, 1.0),
        oracle="gem.envs.table.players:Oracle",
        oracle_sees="state",
        oracle_wins=False,
        baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], baseline),
        stored_scores="gem.envs.table.random_play:describe",
        description=f"{text} One seat against a random player; opponent=None is the game for all players.",
    )


WEBSHOP_REWARDS = (16 * FORMAT_ERROR, 1.0)  # 15 actions that cannot be read are tolerated

_MCPMARK = EnvSpec(
    id="mcpmark:Files",
    entry_point="gem.envs.mcpmark.mcpmark_env:make_mcpmark",
    extra="mcp",
    runs="thread",
    reward_range=(0.0, 1.0),
    oracle="gem.envs.mcpmark.mcpmark_env:Oracle",
    oracle_sees="state",
    baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], 0.0),
    description="Change files with the tools of an MCP server, which npm installs. Needs sandbox level ns.",
)

SPECS: list[EnvSpec] = [
    *_game(
        "GuessTheNumber",
        "guess_the_number",
        {
            "": {"min_number": 1, "max_number": 20, "max_turns": 10},
            "easy": {"min_number": 1, "max_number": 10, "max_turns": 4},
            "hard": {"min_number": 1, "max_number": 50, "max_turns": 7},
            "hard-no-max-turn": {"min_number": 1, "max_number": 50, "max_turns": 50},
            "random": {"random_range": True, "max_turns": None},
        },
        "Find a secret integer from the hints 'too low' and 'too high'.",
        oracle_sees="observation",
    ),
    EnvSpec(
        id="tool:Lookup",
        entry_point="gem.envs.lookup:LookupEnv",
        reward_range=(FORMAT_ERROR, 1.0),
        oracle="gem.envs.lookup:Oracle",
        oracle_sees="state",
        baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], BASELINE),
        description="Say which digit is in a drawer, which only the tool of --wrappers lookup_tool shows.",
    ),
    _table_game("board:TicTacToe-v0", "tic_tac_toe:TicTacToeEnv", "Three in a row."),
    _table_game("board:Nim-v0", "nim:NimEnv", "Take the last object from three heaps."),
    # A column of one's own four discs often beats a random player.
    _table_game("board:ConnectFour-v0", "connect_four:ConnectFourEnv", "Four discs in a line.", baseline=0.6),
    _table_game(
        "board:ConnectFour-v0-small",
        "connect_four:ConnectFourEnv",
        "Three discs in a line on 4 × 4.",
        rows=4,
        columns=4,
        length=3,
    ),
    _table_game("board:Othello-v0", "othello:OthelloEnv", "Turn over discs on 6 × 6."),
    _table_game("cards:KuhnPoker-v0", "poker:KuhnPokerEnv", "Poker with three cards."),
    _table_game("cards:LeducHoldem-v0", "poker:LeducHoldemEnv", "Poker with six cards and two rounds."),
    _table_game("cards:LiarsDice-v0", "liars_dice:LiarsDiceEnv", "Bid on hidden dice, one each.", baseline=0.4),
    _table_game(
        "cards:LiarsDice-v0-two-dice",
        "liars_dice:LiarsDiceEnv",
        "Bid on hidden dice, two each with six faces.",
        baseline=0.4,
        dice=2,
        faces=6,
    ),
    _table_game(
        "talk:ColonelBlotto-v0", "colonel_blotto:ColonelBlottoEnv", "Divide troops among fields.", baseline=0.4
    ),
    # To defect in every round is the best answer to a random player.
    _table_game(
        "talk:IteratedPrisonersDilemma-v0",
        "prisoners_dilemma:IteratedPrisonersDilemmaEnv",
        "Cooperate or defect, eight times.",
        baseline=0.65,
    ),
    _table_game("talk:DontSayIt-v0", "dont_say_it:DontSayItEnv", "Make the other say a secret word.", baseline=0.4),
    _table_game("talk:SealedAuction-v0", "sealed_auction:SealedAuctionEnv", "Bid for items; three players."),
    _table_game("talk:Negotiation-v0", "negotiation:NegotiationEnv", "Divide items of private value.", baseline=0.6),
    *_game(
        "Mastermind",
        "mastermind",
        {
            "": {"code_length": 4, "num_numbers": 6, "max_turns": 20},
            "easy": {"code_length": 2, "num_numbers": 6, "max_turns": 10},
            "hard": {"code_length": 4, "num_numbers": 8, "max_turns": 30},
            "random": {"random_size": True},
        },
        "Find a secret code of numbers from black and white pegs.",
        oracle_sees="observation",
    ),
    *_game(
        "Wordle",
        "wordle",
        {
            "": {"word_length": 5, "max_turns": 15},
            "easy": {"word_length": 3, "max_turns": 15},
            "hard": {"word_length": 5, "max_turns": 25},
            "random": {"random_length": True, "max_turns": None},
        },
        "Find a secret word; each guess is marked letter by letter.",
        oracle_sees="observation",
    ),
    *_game(
        "Hangman",
        "hangman",
        {
            "": {"word_length": 5, "max_turns": 15},
            "easy": {"word_length": 3, "max_turns": 10},
            "hard": {"word_length": 7, "max_turns": 20},
            "random": {"random_length": True},
        },
        "Find a secret word, letter by letter or as a whole.",
        oracle_sees="observation",
    ),
    *_game(
        "Sudoku",
        "sudoku",
        {
            "": {"scale": 9, "clues": 50, "max_turns": 50},
            "easy": {"scale": 4, "clues": 10, "max_turns": 15},
            "easy-v2": {"scale": 4, "clues": 10, "max_turns": 15},
            "hard": {"scale": 9, "clues": 50, "max_turns": 50},
            "random": {"random_level": True},
        },
        "Fill the grid so that every row, column and box holds each digit once.",
        oracle_sees="observation",
    ),
    *_game(
        "TowerofHanoi",
        "tower_of_hanoi",
        {
            "": {"num_disks": 4, "max_turns": 20, "random_start": True},
            "easy": {"num_disks": 3, "max_turns": 10, "random_start": True},
            "hard": {"num_disks": 5, "max_turns": 35, "random_start": True},
            "random": {"random_level": True, "random_start": True},
        },
        "Move every disk to peg C, never a larger one onto a smaller one.",
        oracle_sees="observation",
    ),
    *_game(
        "Crosswords",
        "crosswords",
        {
            "easy": {"num_words": 3, "max_turns": 30},
            "hard": {"num_words": 3, "hardcore": True, "max_turns": 40},
            "random": {"random_level": True},
        },
        "Fill a small grid of crossing words from their clues.",
        oracle_sees="state",
    ),
    *_game(
        "WordSearch",
        "word_search",
        {
            "easy": {"num_words": 5, "max_turns": 20},
            "hard": {"num_words": 5, "hardcore": True, "max_turns": 20},
            "random": {"random_level": True},
        },
        "Find the listed words hidden in a grid of letters.",
        oracle_sees="observation",
    ),
    *_game(
        "Minesweeper",
        "minesweeper",
        {
            "": {"rows": 8, "cols": 8, "num_mines": 10, "max_turns": 100},
            "very-easy": {"rows": 5, "cols": 5, "num_mines": 3, "max_turns": 25},
            "easy": {"rows": 5, "cols": 5, "num_mines": 5, "max_turns": 25},
            "hard": {"rows": 8, "cols": 8, "num_mines": 12, "max_turns": 64},
            "random": {"random_size": True, "max_turns": None},
        },
        "Open every cell that has no mine.",
        oracle_sees="observation",
    ),
    *_game(
        "FifteenPuzzle",
        "fifteen_puzzle",
        {
            "": {"num_rows": 3, "max_turns": 20, "mc_rand_moves": 12},
            "easy": {"num_rows": 2, "max_turns": 10},
            "hard": {"num_rows": 4, "max_turns": 50},
            "random": {"random_size": True, "max_turns": 50},
        },
        "Slide the tiles of a square board into order.",
        oracle_sees="observation",
    ),
    *_game(
        "Game2048",
        "game2048",
        {
            "": {"target_tile": 64, "max_turns": 50},
            "easy": {"target_tile": 64, "max_turns": 50},
            "hard": {"target_tile": 512, "max_turns": 400},
            "extreme-hard": {"target_tile": 2048, "max_turns": 1600},
            "random": {"random_target": True, "max_turns": 50},
        },
        "Slide and merge tiles until one shows the target.",
        oracle_sees="observation",
    ),
    *_game(
        "Sokoban",
        "sokoban",
        {
            "easy": {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 20},
            "hard": {"dim_room": (8, 8), "num_boxes": 4, "max_turns": 50},
            "random": {"random_size": True, "max_turns": 50},
        },
        "Push every box onto a target.",
        oracle_sees="state",
    ),
    *_game(
        "WikiGame",
        "wikigame",
        {
            "easy": {"level": 1, "max_turns": 30},
            "hard": {"level": 3, "max_turns": 15},
        },
        "Go from one page of an encyclopedia to another by following links.",
        oracle_sees="state",
    ),
    *_game(
        "Blackjack",
        "blackjack",
        {"": {"hands": 3}, "easy": {"hands": 1}, "hard": {"hands": 7}},
        "Win a number of hands before the dealer does.",
        oracle_sees="observation",
        baseline=0.5,  # to stand on every hand
    ),
    *_game(
        "Bandit",
        "bandit",
        {
            "": {"machines": 5, "gap": 0.4, "max_turns": 40},
            "easy": {"machines": 5, "gap": 0.6, "max_turns": 30},
            "hard": {"machines": 8, "gap": 0.3, "max_turns": 80},
        },
        "Find the slot machine that pays most often, with a limited number of pulls.",
        oracle_sees="observation",
    ),
    *_game(
        "FrozenLake",
        "frozen_lake",
        {
            "": {"size": 6, "holes": 0.25, "slip": 0.2},
            "easy": {"size": 4, "holes": 0.25, "slip": 0.0},
            "hard": {"size": 8, "holes": 0.2, "slip": 0.5},
        },
        "Cross a lake with holes, on ice that may be slippery.",
        oracle_sees="observation",
    ),
    *_game(
        "RushHour",
        "rush_hour",
        {
            "": {"least_moves": 6, "most_moves": 9, "max_turns": 20},
            "easy": {"least_moves": 3, "most_moves": 5, "max_turns": 10},
            "hard": {"least_moves": 10, "most_moves": 14, "max_turns": 30},
        },
        "Move cars out of the way of the red one.",
        oracle_sees="observation",
    ),
    *_game(
        "TwentyQuestions",
        "twenty_questions",
        {
            "": {"objects": 30, "attributes": 4, "slack": 2},
            "easy": {"objects": 12, "attributes": 3, "slack": 4},
            "hard": {"objects": 64, "attributes": 5, "slack": 0},
        },
        "Find the secret one of a list of objects by asking about their attributes.",
        oracle_sees="observation",
    ),
    _shipped(
        "code:Warmup-v0",
        "code_env:CodeEnv",
        "code_solutions:CodeOracle",
        "Ten small built-in programming tasks, graded by hidden tests.",
        runs="thread",
        dataset_name="gem:code/warmup.jsonl",
    ),
    *(
        _shipped(
            f"terminal:{family}",
            "terminal.terminal_env:TerminalEnv",
            "terminal.terminal_env:reference_agent",
            f"Tasks in a shell on an isolated machine, generated from a seed: {about}. Needs sandbox level ns.",
            runs="thread",
            family=family,
        )
        for family, about in (
            ("Files", "find, move, rename and remove files"),
            ("Text", "grep, sed, awk, sort and join"),
            ("Data", "CSV, JSON and SQLite"),
            ("Git", "lost commits, bisection, squashing and merging"),
            ("Logs", "counts, slow requests, sessions and windows of time"),
            ("Processes", "parallel jobs, signals, locks and a service"),
            ("Build", "Makefiles and build scripts, checked with other inputs"),
            ("Archive", "archives, backups and checksums"),
            ("Mixed", "several of these in one task"),
        )
    ),
    _shipped(
        "swe:Mini",
        "swe.swe_env:MiniEnv",
        "swe.swe_env:Oracle",
        "Repair a fault in a small repository that an issue describes. Needs sandbox level ns and python3.",
        runs="thread",
    ),
    _shipped(
        "web:Forms",
        "web.forms:FormsEnv",
        "web.forms:Oracle",
        "Use web pages with forms: reach a goal and change nothing else.",
        lowest=0.0,
    ),
    EnvSpec(
        id="desk:Retail",
        entry_point="gem.envs.desk.retail:retail",
        reward_range=(0.0, 1.0),
        oracle="gem.envs.desk.retail:Oracle",
        oracle_sees="state",
        baseline_scores={"constant": 0.0, "echo": 0.0, "repeat-last": 0.0},
        description="Serve a simulated customer of a shop with 15 tools, under a policy.",
    ),
    EnvSpec(
        id="desk:Support",
        entry_point="gem.envs.desk.support:support",
        reward_range=(0.0, 1.0),
        oracle="gem.envs.desk.retail:Oracle",
        oracle_sees="state",
        baseline_scores={"constant": 0.0, "echo": 0.0, "repeat-last": 0.0},
        description="Serve a simulated customer of a phone provider, who has tools as well, under a policy.",
    ),
    *(
        EnvSpec(
            id=f"{bench}:{domain}",
            entry_point=f"gem.envs.tau.{bench}:{bench}",
            kwargs={"domain": domain},
            runs="thread",
            reward_range=(0.0, 1.0),
            description=f"Serve customers of {source}, from a checkout in $GEM_DATA.",
        )
        for bench, source, domains in (
            ("taubench", "TAU-bench", ("retail", "airline")),
            ("tau2", "tau2-bench", ("retail", "airline", "telecom")),
        )
        for domain in domains
    ),
    EnvSpec(
        id="webshop:Mini",
        entry_point="gem.envs.webshop.webshop:MiniWebshopEnv",
        reward_range=WEBSHOP_REWARDS,
        oracle="gem.envs.webshop.players:Oracle",
        oracle_sees="state",
        baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], BASELINE),
        stored_scores="gem.envs.webshop.players:describe",
        description="Buy a product that meets an instruction in a generated shop of 20,000 products.",
    ),
    *(
        EnvSpec(
            id=f"webshop:{split}-{mode}",
            entry_point="gem.envs.webshop.webshop:WebshopEnv",
            kwargs={
                **{"observation_mode": mode, "split": split, "max_turns": 15},
                **{"error_tolerance": 15, "format_error_reward": FORMAT_ERROR},
            },
            extra="webshop",
            reward_range=WEBSHOP_REWARDS,
            description="Buy a product that meets an instruction in the published shop; needs its data in $GEM_DATA.",
        )
        for split in ("train", "test")
        for mode in ("html", "text", "text_rich")
    ),
    _shipped(
        "code:Mini",
        "code_env:CodeEnv",
        "code_solutions:CodeOracle",
        "62 small built-in programming tasks, graded by hidden tests.",
        runs="thread",
        dataset_name="gem:code/mini.jsonl",
    ),
    _shipped(
        "qa:Facts",
        "qa_env:QaEnv",
        "answer_format:AnswerOracle",
        "450 questions about a fictional world; answering them requires searching its documents.",
        dataset_name="gem:facts/questions.jsonl",
    ),
    _shipped(
        "qa:Encyclopedia",
        "encyclopedia_qa:EncyclopediaQaEnv",
        "answer_format:AnswerOracle",
        "Multi-hop questions about invented encyclopedias; answering them requires searching their pages.",
    ),
    _generated("math:Arithmetic", "MathFamilyEnv", {"family": "arithmetic"}, BASELINE, "math", "Exact arithmetic."),
    _generated("math:Algebra", "MathFamilyEnv", {"family": "algebra"}, BASELINE, "math", "Equations and polynomials."),
    _generated("math:NumberTheory", "MathFamilyEnv", {"family": "number_theory"}, BASELINE, "math", "Number theory."),
    _generated(
        "math:Geometry", "MathFamilyEnv", {"family": "geometry"}, BASELINE, "math", "Lengths, areas and angles."
    ),
    _generated(
        "logic:Rules", "LogicRulesEnv", {}, 0.65, None, "Decide whether a statement follows from facts and rules."
    ),
    _generated(
        "vision:Geometry",
        "VisionFamilyEnv",
        {"family": "geometry"},
        BASELINE,
        "math,vision",
        "Questions about labeled geometric figures.",
    ),
    _generated(
        "vision:Charts",
        "VisionFamilyEnv",
        {"family": "charts"},
        BASELINE,
        "math,vision",
        "Questions about charts and tables.",
    ),
    *_data(
        "math",
        "math_env",
        "MathEnv",
        {
            "ASDiv2K": ("axon-rl/ASDIV-2k", "train"),
            "GSM8K": ("axon-rl/GSM-8k", "train"),
            "Math12K": ("axon-rl/MATH-12k", "train"),
            "Math8K-3to5": ("axon-rl/MATH-lvl3to5-8k", "train"),
            "Orz57K": ("axon-rl/ORZ-57k", "train"),
            "DeepScaleR40K": ("axon-rl/DeepScaleR-40K", "train"),
        },
        "Math questions.",
        extra="data,math",
    ),
    *_data(
        "math",
        "math_visual_env",
        "MathVisualEnv",
        {"Geometry3K": ("axon-rl/geometry3k", "train")},
        "Geometry questions with figures.",
        extra="data,math,vision",
    ),
    *_data(
        "code",
        "code_env",
        "CodeEnv",
        {
            "CodeContest": ("axon-rl/CodeContest", "train"),
            "Taco8k": ("axon-rl/TACO-8k", "train"),
            "PrimeIntellect15k": ("axon-rl/PrimeIntellect-15k", "train"),
        },
        "Programming tasks, graded by hidden tests.",
    ),
    *_data(
        "qa",
        "qa_env",
        "QaEnv",
        {
            "NaturalQuestions": ("axon-rl/NaturalQuestions", "train"),
            "HotpotQA": ("axon-rl/HotpotQA", "train"),
        },
        "Short-answer questions.",
        question_key="problem",
    ),
    *_data(
        "logic",
        "qa_env",
        "QaEnv",
        {f"RuleTaker-d{depth}": (f"axon-rl/RuleTaker-d{depth}-70k", "train") for depth in (0, 1, 2, 3, 5)},
        "Decide whether a statement follows from facts and rules.",
        extract_boxed=True,
    ),
    *_data(
        "eval",
        "math_env",
        "MathEnv",
        {
            "MATH500": ("axon-rl/math-eval", "math"),
            "AMC": ("axon-rl/math-eval", "amc"),
            "OlympiadBench": ("axon-rl/math-eval", "olympiad_bench"),
            "Minerva": ("axon-rl/math-eval", "minerva"),
            "AIME24": ("axon-rl/math-eval", "aime24"),
        },
        "Math questions for evaluation.",
        extra="data,math",
    ),
    *_data(
        "eval",
        "code_env",
        "CodeEnv",
        {"CodeContest": ("axon-rl/CodeContest", "test")},
        "Programming tasks for evaluation.",
    ),
    *_data(
        "eval",
        "qa_env",
        "QaEnv",
        {
            "QaOpen": ("google-research-datasets/nq_open", "validation"),
            "2Wiki": ("axon-rl/search-eval", "2wiki"),
            "PopQA": ("axon-rl/search-eval", "popqa"),
            "TriviaQA": ("axon-rl/search-eval", "tq"),
            "HotpotQA": ("axon-rl/search-eval", "hotpotqa"),
            "Bamboogle": ("axon-rl/search-eval", "bamboogle"),
            "NaturalQuestions": ("axon-rl/search-eval", "nq"),
            "Musique": ("axon-rl/search-eval", "musique"),
        },
        "Short-answer questions for evaluation.",
    ),
    _MCPMARK,
    *reasoning_gym_specs((FORMAT_ERROR, 1.0)),
]

# Family → (parameter, spec) of ids whose second part is a path or another name, which is the value of the parameter.
PATH_SPECS: dict[str, tuple[str, EnvSpec]] = {
    "mcpmark": (
        "path",
        replace(_MCPMARK, id="mcpmark:PATH", oracle=None, description="Tasks of MCPMark in a checkout."),
    ),
    **{
        family: (
            "path",
            EnvSpec(
                id=f"{family}:PATH",
                entry_point=f"gem.envs.containers.{module}",
                runs="thread",
                reward_range=(0.0, 1.0),
                oracle="gem.envs.containers.container_env:Oracle",
                oracle_sees="state",
                baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], 0.0),
                description=f"Tasks in folders of {name}, played in containers. Needs podman or docker.",
            ),
        )
        for family, module, name in (
            ("harbor", "harbor:HarborEnv", "Harbor"),
            ("terminalbench", "terminal_bench:TerminalBenchEnv", "Terminal-Bench"),
        )
    },
    **{
        family: (
            "dataset_name",
            EnvSpec(
                id=f"{family}:PATH",
                entry_point="gem.envs.swe.row_env:SweRowsEnv",
                runs="thread",
                reward_range=(0.0, 1.0),
                oracle="gem.envs.swe.row_env:Oracle",
                oracle_sees="state",
                baseline_scores=dict.fromkeys(["constant", "echo", "repeat-last"], BASELINE),
                description=f"Issues of repositories, from rows as of {name}. Needs git at level ns, or images.",
            ),
        )
        for family, name in (("swebench", "SWE-bench"), ("swegym", "SWE-Gym"))
    },
}
