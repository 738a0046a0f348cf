"""Specifications of the games of one player, and of a seat of the games between players.

Like gem.envs.catalog, of which this is a part, it imports no environment.
"""

from __future__ import annotations

from typing import Any, Literal

from gem.envs.spec_defaults import BASELINE, built_in
from gem.registry import EnvSpec


def _game(
    name: str,
    module: str,
    variants: dict[str, dict[str, Any]],
    text: str,
    *,
    oracle_sees: Literal["observation", "state"] = "observation",
    baseline: float = BASELINE,
) -> list[EnvSpec]:
    """Return the specs of one game. ``variants`` maps id suffixes ("" for no suffix) to constructor arguments."""
    return [
        built_in(
            f"game:{name}-v0{variant and '-' + variant}",
            f"games.{module}:{name}Env",
            kwargs,
            text,
            oracle=f"games.{module}:Oracle",
            oracle_sees=oracle_sees,
            baseline=baseline,
            stored_scores="games.baselines:describe",
        )
        for variant, kwargs in variants.items()
    ]


def _table_game(env_id: str, entry: str, text: str, *, baseline: float = BASELINE, **options: Any) -> EnvSpec:
    """Return the spec of a game between players. ``options`` are arguments of its class."""
    return built_in(
        env_id,
        "table.make:table_game",
        {"game": f"gem.envs.table.{entry}", "options": options},
        f"{text} One seat against a random player; opponent=None is the game for all players.",
        oracle="table.players:Oracle",
        oracle_wins=False,
        baseline=baseline,
        lowest=-1.0,
        stored_scores="table.random_play:describe",
    )


GAMES: list[EnvSpec] = [
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
    ),
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
    ),
    *_game(
        "Wordle",
        "words.wordle",
        {
            "": {"word_length": 5, "max_turns": 15},
            "easy": {"word_length": 3, "max_turns": 15},
            "hard": {"word_length": 5, "max_turns": 25},
            "random": {"random_length": True, "max_turns": None},
        },
        "Find a secret word; each guess is marked letter by letter.",
    ),
    *_game(
        "Hangman",
        "words.hangman",
        {
            "": {"word_length": 5, "max_turns": 15},
            "easy": {"word_length": 3, "max_turns": 10},
            "hard": {"word_length": 7, "max_turns": 20},
            "random": {"random_length": True},
        },
        "Find a secret word, letter by letter or as a whole.",
    ),
    *_game(
        "Sudoku",
        "grids.sudoku",
        {
            "": {"scale": 9, "clues": 50, "max_turns": 50},
            "easy": {"scale": 4, "clues": 10, "max_turns": 15},
            "easy-v2": {"scale": 4, "clues": 10, "max_turns": 15},
            "hard": {"scale": 9, "clues": 50, "max_turns": 50},
            "random": {"random_level": True},
        },
        "Fill the grid so that every row, column and box holds each digit once.",
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
    ),
    *_game(
        "Crosswords",
        "words.crosswords",
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
        "words.word_search",
        {
            "easy": {"num_words": 5, "max_turns": 20},
            "hard": {"num_words": 5, "hardcore": True, "max_turns": 20},
            "random": {"random_level": True},
        },
        "Find the listed words hidden in a grid of letters.",
    ),
    *_game(
        "Minesweeper",
        "grids.minesweeper",
        {
            "": {"rows": 8, "cols": 8, "num_mines": 10, "max_turns": 100},
            "very-easy": {"rows": 5, "cols": 5, "num_mines": 3, "max_turns": 25},
            "easy": {"rows": 5, "cols": 5, "num_mines": 5, "max_turns": 25},
            "hard": {"rows": 8, "cols": 8, "num_mines": 12, "max_turns": 64},
            "random": {"random_size": True, "max_turns": None},
        },
        "Open every cell that has no mine.",
    ),
    *_game(
        "FifteenPuzzle",
        "grids.fifteen_puzzle",
        {
            "": {"num_rows": 3, "max_turns": 20, "mc_rand_moves": 12},
            "easy": {"num_rows": 2, "max_turns": 10},
            "hard": {"num_rows": 4, "max_turns": 50},
            "random": {"random_size": True, "max_turns": 50},
        },
        "Slide the tiles of a square board into order.",
    ),
    *_game(
        "Game2048",
        "grids.game2048",
        {
            "": {"target_tile": 64, "max_turns": 50},
            "easy": {"target_tile": 64, "max_turns": 50},
            "hard": {"target_tile": 512, "max_turns": 400},
            "extreme-hard": {"target_tile": 2048, "max_turns": 1600},
            "random": {"random_target": True, "max_turns": 50},
        },
        "Slide and merge tiles until one shows the target.",
    ),
    *_game(
        "Sokoban",
        "grids.sokoban",
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
        "words.wikigame",
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
    ),
    *_game(
        "FrozenLake",
        "grids.frozen_lake",
        {
            "": {"size": 6, "holes": 0.25, "slip": 0.2},
            "easy": {"size": 4, "holes": 0.25, "slip": 0.0},
            "hard": {"size": 8, "holes": 0.2, "slip": 0.5},
        },
        "Cross a lake with holes, on ice that may be slippery.",
    ),
    *_game(
        "RushHour",
        "grids.rush_hour",
        {
            "": {"least_moves": 6, "most_moves": 9, "max_turns": 20},
            "easy": {"least_moves": 3, "most_moves": 5, "max_turns": 10},
            "hard": {"least_moves": 10, "most_moves": 14, "max_turns": 30},
        },
        "Move cars out of the way of the red one.",
    ),
    *_game(
        "Rooms",
        "grids.rooms",
        {
            "": {
                **{"rows": 2, "columns": 2, "size": 3, "objects": 4, "locked": 1},
                **{"least_moves": 12, "max_turns": 80},
            },
            "easy": {
                **{"rows": 1, "columns": 2, "size": 3, "objects": 3, "locked": 0},
                **{"tasks": ("go to", "pick up", "open"), "least_moves": 5, "max_turns": 30},
            },
            "hard": {
                **{"rows": 3, "columns": 3, "size": 4, "objects": 7, "locked": 2},
                **{"least_moves": 24, "max_turns": 200},
            },
        },
        "Follow an instruction in rooms with doors, keys and objects, of which only what is ahead is seen.",
        oracle_sees="state",
    ),
    *_game(
        "TwentyQuestions",
        "words.twenty_questions",
        {
            "": {"objects": 30, "attributes": 4, "slack": 2},
            "easy": {"objects": 12, "attributes": 3, "slack": 4},
            "hard": {"objects": 64, "attributes": 5, "slack": 0},
        },
        "Find the secret one of a list of objects by asking about their attributes.",
    ),
]

TABLE_GAMES: list[EnvSpec] = [
    _table_game("board:TicTacToe-v0", "boards.tic_tac_toe:TicTacToeEnv", "Three in a row."),
    _table_game("board:Nim-v0", "boards.nim:NimEnv", "Take the last object from three heaps."),
    # A column of one's own four discs often beats a random player.
    _table_game("board:ConnectFour-v0", "boards.connect_four:ConnectFourEnv", "Four discs in a line.", baseline=0.6),
    _table_game(
        "board:ConnectFour-v0-small",
        "boards.connect_four:ConnectFourEnv",
        "Three discs in a line on 4 × 4.",
        rows=4,
        columns=4,
        length=3,
    ),
    _table_game("board:Othello-v0", "boards.othello:OthelloEnv", "Turn over discs on 6 × 6."),
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
    _table_game("talk:Mafia-v0", "mafia:MafiaEnv", "Find a hidden minority by votes; six players."),
    _table_game("talk:Negotiation-v0", "negotiation:NegotiationEnv", "Divide items of private value.", baseline=0.6),
]
