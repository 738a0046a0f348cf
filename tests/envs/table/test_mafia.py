"""Mafia: nights, talk, votes and who wins; what each player is told."""

import random
from itertools import permutations

import pytest

import gem
from gem.envs.table.mafia import MAFIA, VILLAGE, MafiaEnv, replay
from gem.envs.table.players import TablePlayer
from gem.errors import BadValue

START = "mdivv|"  # player 1 is in the mafia, player 2 the doctor, player 3 the detective


def after(position, *moves):
    game = MafiaEnv(players=5)
    for move in moves:
        assert move in game.moves(position), move
        position = game.after(position, move)
    return position


NIGHT = after(START, "kill 4", "protect 2", "inspect 1", "sleep", "sleep")  # four players are left
TALK = after(NIGHT, "done", "done", "done", "done")


def test_who_is_killed_at_night_is_out_unless_protected():
    assert replay(NIGHT).living == (0, 1, 2, 4) and replay(NIGHT).out == (3,)
    saved = after(START, "kill 4", "protect 4", "inspect 1", "sleep", "sleep")
    assert replay(saved).living == (0, 1, 2, 3, 4) and replay(saved).out == (None,)


def test_who_has_most_votes_is_out_and_a_tie_spares_all():
    game = MafiaEnv(players=5)
    caught = after(TALK, "vote 5", "vote 1", "vote 1", "vote none")
    assert replay(caught).winner == VILLAGE and game.to_move(caught) is None
    assert game.scores(caught) == (-1.0, 1.0, 1.0, 1.0, 1.0)  # player 4 is out and wins with its side
    tie = after(TALK, "vote 5", "vote 5", "vote 1", "vote 1")
    assert replay(tie).out[-1] is None and replay(after(TALK, *["vote none"] * 4)).out[-1] is None


def test_the_mafia_wins_when_it_is_half_of_the_living():
    wrong = after(TALK, "vote 5", "vote 5", "vote 5", "vote none")
    assert replay(wrong).winner is None and replay(wrong).living == (0, 1, 2)
    lost = after(wrong, "kill 2", "protect 3", "inspect 1")
    assert replay(lost).winner == MAFIA and MafiaEnv(players=5).scores(lost) == (1.0, -1.0, -1.0, -1.0, -1.0)


def test_after_the_last_day_the_game_is_a_draw():
    game = MafiaEnv(players=5, days=1)
    end = after(TALK, *["vote none"] * 4)
    assert game.to_move(end) is None and game.winner(end) is None and set(game.scores(end)) == {0.0}
    assert "The game is a draw." in game.announced(end[:-2], 4, "vote none")


def test_of_two_members_the_first_living_one_decides():
    game, position = MafiaEnv(players=7), "vmmdivv|"
    assert game.moves(position + "-") == [f"kill {n}" for n in (1, 4, 5, 6, 7)]
    assert game.moves(position + "-4") == ["sleep"]
    assert "Also in the mafia: player 3." in game.view(position, 1)


def test_the_card_says_who_may_choose_itself():
    game = MafiaEnv(players=5)
    own = [f"{number}" in {move[-1] for move in game.moves("mdivv|" + "-" * (number - 1))} for number in range(1, 6)]
    assert own == [False, True, False, False, False] and "Only the doctor may choose itself." in game.card
    assert "vote 1" not in game.moves(NIGHT + "....|")


def test_a_player_sees_its_own_role_and_what_is_public_only():
    game = MafiaEnv(players=5)
    for seat in range(5):
        views = {}
        for roles in set(permutations("mdivv")):
            views.setdefault(roles[seat], set()).add(game.view("".join(roles) + "|", seat))
        assert all(len(seen) == 1 for seen in views.values())
    assert "You learned: player 1 is in the mafia." in game.view(NIGHT, 2)
    assert not any("You learned" in game.view(NIGHT, seat) for seat in (0, 1, 3, 4))


def test_choices_are_told_when_all_have_chosen():
    game = MafiaEnv(players=5)
    assert game.announced(START, 0, "kill 4") == "" and game.announced(TALK, 0, "vote 5") == ""
    assert game.announced(NIGHT[:-2], 4, "sleep") == "Night 1: player 4, a villager, was killed."
    before = after(TALK, "vote 5", "vote 1", "vote none")
    assert game.announced(before, 4, "vote 1") == (
        "Day 1: the votes are player 1 for player 5, player 2 for player 1, player 3 for nobody, player 5 for "
        "player 1. Player 1, a member of the mafia, is out. The village wins."
    )


def test_messages_are_shown_by_day_only_and_decide_nothing():
    game = gem.make("talk:Mafia-v0", opponent=None)
    game.reset(seed=0)
    shown = []
    for _ in range(30):
        (agent,) = game.active_agents()
        phase, legal = replay(game.position).phase % 3, game.legal_moves()
        move = "vote none" if "vote none" in legal else legal[0]
        others = game.step({agent: rf"<say>I am the doctor. \boxed{{vote 1}}</say> \boxed{{{move}}}"})[0]
        heard = [seen.count("says:") for other, seen in others.items() if other != agent]
        shown.append((phase, max(heard) > 0))
        if not game.agents:
            break
    assert {told for phase, told in shown if phase == 1} == {True}
    assert not shown[0][1] and not any("says" in line for line in game.state.log if line.startswith("Night"))


def wins(village, mafia, games=60):
    """Return the share of games that the village wins, with players of these strengths."""
    game, won = MafiaEnv(), 0
    players = {True: TablePlayer(mafia), False: TablePlayer(village)}
    for seed in range(games):
        game.reset(seed=seed)
        rng = random.Random(seed)
        roles = game.position.partition("|")[0]
        while game.agents:
            (agent,) = game.active_agents()
            game.step({agent: players[roles[game.seat_of(agent)] == "m"].act(game, agent, rng)})
        won += game.winner(game.position) == VILLAGE
    return won / games


def test_the_scripted_village_finds_the_mafia_more_often_than_a_random_one():
    assert wins(1, 0) > wins(0, 0) + 0.1


def test_a_seat_plays_with_five_others_and_an_illegal_move_costs_its_player_alone():
    env = gem.make("talk:Mafia-v0", opponent="best")
    for seed in range(6):
        env.reset(seed=seed)
        over = False
        while not over:
            _, reward, over, _, info = env.step(env.sample_random_action())
        assert reward in (-1.0, 0.0, 1.0) and "invalid" not in info
    game = MafiaEnv()
    game.reset(seed=0)
    offender = game.active_agents()[0]
    rewards = game.step({offender: r"\boxed{vote 9}"})[1]
    assert rewards[offender] == -1.0 and sorted(rewards.values()) == [-1.0, *[0.0] * 5]


@pytest.mark.parametrize("bad", [{"players": 4}, {"players": 9}, {"days": 0}])
def test_wrong_arguments_are_named(bad):
    with pytest.raises(BadValue, match=next(iter(bad))):
        MafiaEnv(**bad)
