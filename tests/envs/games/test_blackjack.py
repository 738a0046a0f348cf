import random
from itertools import product

import pytest

from gem.core import StopReason
from gem.envs.games.blackjack import CARDS, BlackjackEnv, Oracle, State, best_share, dealers_hand, total
from gem.errors import BadValue


@pytest.mark.parametrize(
    ("hand", "counted"),
    [
        (("A", "K"), (21, True)),
        (("A", "A"), (12, True)),
        (("A", "6", "9"), (16, False)),
        (("10", "Q", "2"), (22, False)),
    ],
)
def test_an_ace_counts_eleven_where_that_is_not_over_21(hand, counted):
    assert total(hand) == counted


def test_the_dealer_draws_up_to_17():
    rng = random.Random(0)
    for _ in range(300):
        hand = dealers_hand(rng.choice(CARDS), rng)
        assert total(hand)[0] >= 17 and (len(hand) == 2 or total(hand[:-1])[0] < 17)


def test_a_tie_counts_for_nobody():
    env = BlackjackEnv(hands=1)
    for seed in range(200):
        env.reset(seed=seed)
        env.state = State(("K", "Q"), "10")
        line = env.step(r"\boxed{stand}").observation
        if "tie" in line:
            assert not env.over and (env.state.won, env.state.lost) == (0, 0)
            return
    raise AssertionError("no tie in 200 hands")


def test_the_match_ends_when_a_side_has_its_hands():
    env = BlackjackEnv(hands=2)
    ends = set()
    for seed in range(40):
        env.reset(seed=seed)
        while not env.over:
            step = env.step(r"\boxed{stand}")
        ends.add((step.info["stop_reason"], step.reward))
        assert 2 in (env.state.won, env.state.lost) and env.state.won + env.state.lost <= 3
    assert ends == {(StopReason.SOLVED, 1.0), (StopReason.LOST, 0.0)}


def test_the_best_share_of_hands_is_that_of_simulated_play():
    rng, won, lost = random.Random(1), 0, 0
    env = BlackjackEnv()
    oracle = Oracle(env)
    while won + lost < 4000:
        hand, dealer = (rng.choice(CARDS), rng.choice(CARDS)), rng.choice(CARDS)
        env.state = State(hand, dealer)
        while total(env.state.hand)[0] <= 21 and "hit" in oracle.act(env.board()):
            env.state = State((*env.state.hand, rng.choice(CARDS)), dealer)
        mine, theirs = total(env.state.hand)[0], total(dealers_hand(dealer, rng))[0]
        won += mine <= 21 and (theirs > 21 or mine > theirs)
        lost += mine > 21 or mine < theirs <= 21
    assert abs(won / (won + lost) - best_share()) < 4 * (0.25 / 4000) ** 0.5


def test_the_oracle_hits_low_hands_and_stands_on_high_ones():
    oracle, env = Oracle(BlackjackEnv()), BlackjackEnv()
    for first, second, dealer in product(CARDS, CARDS, CARDS):
        env.state = State((first, second), dealer)
        points, soft = total((first, second))
        if points <= 11 or (not soft and points >= 17):
            assert ("hit" in oracle.act(env.board())) == (points <= 11)


@pytest.mark.parametrize("bad", [{"hands": 0}, {"hands": 21}, {"max_turns": 0}])
def test_wrong_arguments_are_named(bad):
    with pytest.raises(BadValue, match=next(iter(bad))):
        BlackjackEnv(**bad)
