"""Games between players: rules, episodes, and hidden information."""

import itertools
import json
import random

import pytest

from gem.envs.table.boards.connect_four import ConnectFourEnv
from gem.envs.table.boards.nim import NimEnv
from gem.envs.table.boards.othello import OthelloEnv
from gem.envs.table.boards.tic_tac_toe import TicTacToeEnv
from gem.envs.table.colonel_blotto import ColonelBlottoEnv
from gem.envs.table.dont_say_it import DontSayItEnv
from gem.envs.table.liars_dice import LiarsDiceEnv
from gem.envs.table.negotiation import NegotiationEnv
from gem.envs.table.poker import KuhnPokerEnv, LeducHoldemEnv
from gem.envs.table.prisoners_dilemma import IteratedPrisonersDilemmaEnv
from gem.errors import BadValue

ZERO_SUM = [TicTacToeEnv, NimEnv, ConnectFourEnv, OthelloEnv, KuhnPokerEnv, LeducHoldemEnv, LiarsDiceEnv]
ZERO_SUM += [ColonelBlottoEnv, DontSayItEnv]
GAMES = [*ZERO_SUM, IteratedPrisonersDilemmaEnv, NegotiationEnv]


def play(game, policies, seed):
    """Play an episode and return the sums of rewards by agent, and the infos of the last step."""
    game.reset(seed=seed)
    totals, infos = dict.fromkeys(game.possible_agents, 0.0), {}
    while game.agents:
        agent = game.active_agents()[0]
        _, rewards, _, _, infos = game.step({agent: policies[agent](game)})
        for other, reward in rewards.items():
            totals[other] += reward
    return totals, infos


def at_random(game):
    return game.sample_random_action()


@pytest.mark.parametrize("kind", ZERO_SUM)
def test_random_games_end_with_rewards_that_sum_to_zero(kind):
    for seed in range(30):
        totals, infos = play(kind(), dict.fromkeys(["player_0", "player_1"], at_random), seed)
        assert sum(totals.values()) == pytest.approx(0)
        assert all(-1 <= total <= 1 for total in totals.values())
        assert {info["stop_reason"] for info in infos.values()} <= {"solved", "lost"}


@pytest.mark.parametrize("kind", GAMES)
def test_either_agent_may_move_first(kind):
    game = kind()
    first = {(game.reset(seed=seed), game.active_agents()[0])[1] for seed in range(20)}
    assert first == {"player_0", "player_1"}


@pytest.mark.parametrize("kind", GAMES)
def test_an_episode_can_be_saved_as_json_and_continued(kind):
    game, other = kind(), kind()
    game.reset(seed=3)
    game.step({game.active_agents()[0]: game.sample_random_action()})
    other.set_state(json.loads(json.dumps(game.get_state())))
    while game.agents:
        action = {game.active_agents()[0]: game.sample_random_action()}
        assert other.active_agents() == game.active_agents()
        assert game.step(action) == other.step(action)
    assert other.agents == []


@pytest.mark.parametrize("kind", [ColonelBlottoEnv, IteratedPrisonersDilemmaEnv])
def test_a_choice_is_hidden_until_both_have_chosen(kind):
    seen = set()
    for move in kind().moves(""):
        game = kind()
        game.reset(seed=0)
        first, second = game.state.order
        observations = game.step({first: rf"\boxed{{{move}}}"})[0]
        seen.add((observations[second], game.observe(second)))
    assert len(seen) == 1


def test_a_player_of_a_negotiation_does_not_see_the_values_of_the_other():
    game = NegotiationEnv()
    assert game.view("2 1 1|2 3 3|4 1 1|", 0) == game.view("2 1 1|2 3 3|1 8 0|", 0)
    assert game.view("2 1 1|2 3 3|4 1 1|", 1) == game.view("2 1 1|5 0 0|4 1 1|", 1)


def test_an_illegal_action_can_be_retried_twice_and_the_third_loses():
    game = TicTacToeEnv(on_illegal="retry")
    game.reset(seed=0)
    agent = game.active_agents()[0]
    for _ in range(2):
        assert not any(game.step({agent: "?"})[2].values())
        assert game.active_agents() == [agent]
    game.step({agent: r"\boxed{1}"})
    other = game.active_agents()[0]
    assert other != agent
    for _ in range(3):
        rewards = game.step({other: r"\boxed{1}"})[1]
    assert (game.agents, rewards[other]) == ([], -1.0)


def test_an_illegal_action_can_pass_the_turn():
    game = TicTacToeEnv(on_illegal="skip")
    game.reset(seed=0)
    agent = game.active_agents()[0]
    game.step({agent: "?"})
    assert game.active_agents() != [agent]
    assert game.position == ".........|1"
    with pytest.raises(BadValue, match="a player may not pass"):
        KuhnPokerEnv(on_illegal="skip")


def test_a_turn_limit_is_a_draw():
    game = ConnectFourEnv(max_turns=3)
    totals, infos = play(game, dict.fromkeys(game.possible_agents, at_random), 0)
    assert totals == {"player_0": 0.0, "player_1": 0.0}
    assert {info["stop_reason"] for info in infos.values()} == {"max_turns"}
    assert all(info["outside_limit"] for info in infos.values()), "the rules do not state it"


def test_legal_moves_are_shown_on_request():
    game = OthelloEnv(show_legal=True)
    game.reset(seed=0)
    assert "Legal moves: c2, b3, e4, d5." in game.observe(game.active_agents()[0])


@pytest.mark.parametrize("kind", [KuhnPokerEnv, LeducHoldemEnv, LiarsDiceEnv])
def test_equal_information_looks_equal(kind):
    game, views = kind(), {}

    def visit(position):
        seat = game.to_move(position)
        if seat is None:
            return
        known = (seat, game.information(position, seat))
        assert views.setdefault(known, game.view(position, seat)) == game.view(position, seat)
        for move in game.moves(position):
            visit(game.after(position, move))

    for position in game.deals():
        visit(position)
    assert len(views) == {KuhnPokerEnv: 12, LeducHoldemEnv: 288, LiarsDiceEnv: 1024}[kind]


def test_othello_passes_over_a_player_without_a_move():
    game, rng = OthelloEnv(), random.Random(0)
    passed = 0
    for _ in range(200):
        position = game.deal(rng)
        while (seat := game.to_move(position)) is not None:
            position = game.after(position, rng.choice(game.moves(position)))
            passed += game.to_move(position) == seat
    assert passed > 50
    assert position.count(".") + position.count("X") + position.count("O") == 36


def test_connect_four_finds_every_line_and_no_other():
    game = ConnectFourEnv(rows=4, columns=5, length=3)
    for cells in itertools.combinations(range(20), 3):
        board = "".join("X" if cell in cells else "." for cell in range(20))
        (r0, c0), (r1, c1), (r2, c2) = (divmod(cell, 5) for cell in cells)
        steps = (r1 - r0, c1 - c0), (r2 - r1, c2 - c1)
        line = steps[0] == steps[1] and steps[0] in [(0, 1), (1, 0), (1, 1), (1, -1)]
        assert (game.to_move(f"{board}|1") is None) == line, board
