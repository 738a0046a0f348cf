"""Constructors of the games take the published arguments, by position and by name."""

from __future__ import annotations

import pytest

import gem
from gem.errors import BadValue

# class → published arguments by position, and attributes that they set
POSITIONS = {
    "crosswords:CrosswordsEnv": ((True, 40, 3), {"hardcore": True, "max_turns": 40, "num_words": 3}),
    "fifteen_puzzle:FifteenPuzzleEnv": ((30, 3, "monte_carlo", 100), {"max_turns": 30, "num_rows": 3}),
    "game_2048:Game2048Env": ((128, 60, 4), {"target_tile": 128, "max_turns": 60}),
    "guess_the_number:GuessTheNumberEnv": ((2, 9, 4), {"min_number": 2, "max_number": 9, "max_turns": 4}),
    "hangman:HangmanEnv": ((5, True, 12), {"lengths": (5,), "hardcore": True, "max_turns": 12}),
    "mastermind:MastermindEnv": ((3, 6, True, 8), {"duplicate_numbers": True, "max_turns": 8}),
    "minesweeper:MinesweeperEnv": ((5, 6, 4, 9), {"size": (5, 6, 4), "max_turns": 9}),
    "sokoban:SokobanEnv": (((7, 7), 30, 2), {"dim_room": (7, 7), "max_turns": 30, "num_boxes": 2}),
    "sudoku:SudokuEnv": ((10, 15, 4), {"clues": 10, "max_turns": 15, "scale": 4}),
    "tower_of_hanoi:TowerofHanoiEnv": ((4, 20), {"num_disks": 4, "max_turns": 20}),
    "word_search:WordSearchEnv": ((True, 12, 4), {"hardcore": True, "max_turns": 12, "num_words": 4}),
    "wikigame:WikiGameEnv": (
        (9, "gem", None, (5, "words"), "freenav"),
        {"max_turns": 9, "backend": "gem", "page_summary_length": (5, "words"), "variant": "freenav"},
    ),
    "wordle:WordleEnv": ((4, False, 9), {"lengths": (4,), "only_real_words": False, "max_turns": 9}),
}
# class → arguments of the published -random ids
RANDOM = {
    "crosswords:CrosswordsEnv": {"hardcore": None, "num_words": None, "max_turns": None},
    "fifteen_puzzle:FifteenPuzzleEnv": {"num_rows": None, "max_turns": None},
    "game_2048:Game2048Env": {"target_tile": None, "max_turns": None},
    "guess_the_number:GuessTheNumberEnv": {"min_number": None, "max_number": None, "max_turns": None},
    "hangman:HangmanEnv": {"word_length": None, "max_turns": None},
    "mastermind:MastermindEnv": {"code_length": None, "num_numbers": None, "max_turns": None},
    "minesweeper:MinesweeperEnv": {"rows": None, "cols": None, "num_mines": None, "max_turns": None},
    "sokoban:SokobanEnv": {"dim_room": None, "num_boxes": None, "max_turns": None},
    "sudoku:SudokuEnv": {"scale": None, "clues": None, "max_turns": None},
    "tower_of_hanoi:TowerofHanoiEnv": {"num_disks": None, "max_turns": None},
    "word_search:WordSearchEnv": {"hardcore": None, "num_words": None, "max_turns": None},
    "wordle:WordleEnv": {"word_length": None, "max_turns": None},
}


def load(name):
    return gem.registry.resolve(f"gem.envs.game_env.{name}")


@pytest.mark.parametrize("name", POSITIONS)
def test_published_arguments_work_by_position(name):
    arguments, attributes = POSITIONS[name]
    env = load(name)(*arguments)
    assert {attribute: getattr(env, attribute) for attribute in attributes} == attributes
    env.reset(seed=1)
    env.step(env.sample_random_action())
    assert env.get_task_suffix() == env.board()
    assert env.spawn(same_state=True).get_state() == env.get_state()


@pytest.mark.parametrize("name", RANDOM)
def test_none_stands_for_a_random_task(name):
    env = load(name)(**RANDOM[name])
    assert len({str(env.reset(seed=seed)) for seed in range(5)}) > 1
    family = load(name).__name__.removesuffix("Env")
    made = gem.make(f"game:{family}-v0-random", **RANDOM[name])
    assert made.reset(seed=1)[0] == gem.make(f"game:{family}-v0-random", max_turns=None).reset(seed=1)[0]


def test_without_real_words_any_letters_are_a_guess():
    for real, invalid in ((True, "not_a_word"), (False, None)):
        env = load("wordle:WordleEnv")(5, real)
        env.reset(seed=1)
        assert env.step(r"\boxed{zzzzz}")[4].get("invalid") == invalid


def test_hardcore_hangman_draws_rare_words_too():
    env = load("hangman:HangmanEnv")(5, True)
    words = {env.reset(seed=seed) and env.state.secret for seed in range(40)}
    easy = load("hangman:HangmanEnv")(5)
    assert not words <= {easy.reset(seed=seed) and easy.state.secret for seed in range(2000)}


def test_a_published_number_of_random_moves_never_makes_a_board_unsolvable_in_time():
    assert load("fifteen_puzzle:FifteenPuzzleEnv")(20, 3, mc_rand_moves=100).shuffle_moves == 15
    assert [gem.make("game:FifteenPuzzle-v0", max_turns=turns).shuffle_moves for turns in (20, 10)] == [12, 7]
    assert "pure_random" in load("fifteen_puzzle:FifteenPuzzleEnv").VALID_INITIALIZATION_ALGOS


def test_room_size_is_another_name_of_the_room_of_sokoban():
    env = gem.make("game:Sokoban-v0-easy", room_size=(7, 7))
    assert env.reset(seed=1) == gem.make("game:Sokoban-v0-easy", dim_room=(7, 7)).reset(seed=1)
    assert env.dim_room == (7, 7)
    assert env.spawn(same_state=True).get_state() == env.get_state()
    with pytest.raises(BadValue, match="dim_room"):
        gem.make("game:Sokoban-v0-easy", room_size=(7, 70))


def test_another_board_size_than_that_of_the_original_game_is_refused():
    with pytest.raises(BadValue, match="board_size must be 4"):
        load("game_2048:Game2048Env")(64, 50, 5)


def test_a_random_move_of_one_kind_can_be_drawn():
    env = load("minesweeper:MinesweeperEnv")()
    env.reset(seed=1)
    assert "flag" in env.sample_random_action("flag") and "reveal" in env.sample_random_action("reveal")
