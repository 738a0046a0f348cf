"""The best known players are as good as they are said to be."""

import itertools
import random

from gem.envs.table.boards.connect_four import ConnectFourEnv
from gem.envs.table.boards.nim import NimEnv
from gem.envs.table.boards.search import Search
from gem.envs.table.boards.tic_tac_toe import TicTacToeEnv
from gem.envs.table.players import best_in_nim, search


def tree_value(game, position, known):
    """The first seat's reward under best play, by visiting the whole game tree."""
    if position not in known:
        mover = game.to_move(position)
        if mover is None:
            known[position] = game.scores(position)[0]
        else:
            values = [tree_value(game, game.after(position, move), known) for move in game.moves(position)]
            known[position] = max(values) if mover == 0 else min(values)
    return known[position]


def test_the_best_moves_in_tic_tac_toe_are_those_of_the_whole_game_tree():
    game, known = TicTacToeEnv(), {}
    assert tree_value(game, game.deal(random.Random(0)), known) == 0
    player = search(game)
    for position in known:
        moves = game.moves(position)
        if not moves:
            continue
        best = [move for move in moves if known[game.after(position, move)] == known[position]]
        assert player.best(position) == best
    assert len(known) == 5478


def test_the_best_moves_in_nim_are_those_of_the_whole_game_tree():
    game, known = NimEnv(), {}
    for heaps in itertools.product(range(1, 5), repeat=3):
        tree_value(game, f"{','.join(map(str, heaps))}|0", known)
    for position in known:
        moves = game.moves(position)
        if moves:
            best = [move for move in moves if known[game.after(position, move)] == known[position]]
            assert sorted(best_in_nim(position)) == sorted(best)


def test_the_search_agrees_with_the_whole_game_tree_of_a_small_connect_four():
    game, known = ConnectFourEnv(3, 4, 3), {}
    start = game.deal(random.Random(0))
    expected = tree_value(game, start, known)
    player = Search(game)
    assert player.value(start) == expected
    for position in random.Random(0).sample(sorted(known), 100):
        assert player.value(position) == known[position]
