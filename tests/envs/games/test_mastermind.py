from itertools import product
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.mastermind import MastermindEnv, Oracle, State, all_codes, pegs
from gem.errors import BadValue

VARIANTS = {
    "": {"code_length": 4, "num_numbers": 6, "max_turns": 20},
    "easy": {"code_length": 2, "num_numbers": 6, "max_turns": 10},
    "hard": {"code_length": 4, "num_numbers": 8, "max_turns": 30},
    "random": {"random_size": True},
}


def with_code(*code, numbers=6, turns=20, **kwargs):
    env = MastermindEnv(len(code), numbers, **kwargs)
    env.reset(seed=0)
    env.state = State(code, numbers, turns)
    return env


@pytest.mark.parametrize(
    ("guess", "code", "answer"),
    [
        ((1, 2, 3, 4), (1, 2, 3, 4), (4, 0)),
        ((4, 3, 2, 1), (1, 2, 3, 4), (0, 4)),
        ((1, 3, 2, 6), (1, 2, 3, 4), (1, 2)),
        ((5, 6, 5, 6), (1, 2, 3, 4), (0, 0)),
        ((1, 1, 2, 2), (1, 2, 3, 4), (1, 1)),  # one 1 and one 2 in the code
        ((2, 2, 1, 1), (1, 1, 2, 2), (0, 4)),
        ((1, 1, 1, 2), (1, 1, 2, 3), (2, 1)),
        ((1,), (1,), (1, 0)),
    ],
)
def test_each_number_of_the_code_accounts_for_one_peg(guess, code, answer):
    assert pegs(guess, code) == answer


def test_pegs_agree_with_a_slow_count():
    codes = list(product((1, 2, 3), repeat=3))
    for guess, code in product(codes, codes):
        black = len([i for i in range(3) if guess[i] == code[i]])
        left = [code[i] for i in range(3) if guess[i] != code[i]]
        white = 0
        for number in [guess[i] for i in range(3) if guess[i] != code[i]]:
            if number in left:
                left.remove(number)
                white += 1
        assert pegs(guess, code) == (black, white)


def test_the_observation_of_a_guess_shows_its_pegs():
    assert with_code(1, 2, 3, 4).step(r"\boxed{1 3 2 6}").observation == "Turn 1: 1 3 2 6: 1 black, 2 white."


def test_only_black_pegs_beyond_the_best_guess_so_far_earn_a_reward():
    env = with_code(1, 2, 3)
    guesses = [r"\boxed{1 3 2}", r"\boxed{3 2 1}", r"\boxed{2 3 1}", r"\boxed{1 2 4}", r"\boxed{1 2 3}"]
    steps = [env.step(guess) for guess in guesses]
    assert [step.reward for step in steps] == pytest.approx([1 / 81, 0, 0, 15 / 81, 65 / 81])
    assert sum(step.reward for step in steps) == 1.0
    assert steps[-1].terminated and steps[-1].info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (r"\boxed{1 2 3}", "wrong_length"),
        (r"\boxed{1234}", "wrong_length"),
        (r"\boxed{0 1 2 3}", "out_of_range"),
        (r"\boxed{1 2 3 7}", "out_of_range"),
        (r"\boxed{6 5 3 4}", "repeated_guess"),
    ],
)
def test_an_invalid_guess_uses_up_the_turn_without_pegs_or_reward(action, reason):
    env = with_code(1, 2, 3, 4)
    env.step(r"\boxed{6 5 3 4}")
    before = env.state
    step = env.step(action)
    assert (step.reward, step.info, step.terminated) == (0.0, {"invalid": reason}, False)
    assert "black" not in step.observation and env.state == before


@pytest.mark.parametrize(
    ("action", "move"),
    [
        (r"\boxed{1 2 3 4}", (1, 2, 3, 4)),
        (r"\boxed{ 1,2, 3 ,4 }", (1, 2, 3, 4)),
        (r"\boxed{1 2} no, \boxed{3 4}", (3, 4)),
        (r"\boxed{3 4} \boxed{the code}", (3, 4)),
        (r"\boxed{007}", (7,)),
        ("1 2 3 4", None),
        ("", None),
        (r"\boxed{}", None),
        (r"\boxed{1 -2}", (1, -2)),
        (r"\boxed{12345}", (12345,)),
        (r"\boxed{1-2}", None),
        (r"\boxed{" + "1 " * 33 + "}", None),
        (r"\boxed{" + "9" * 1_000_000 + "}", None),
        (r"\boxed{1" + " " * 1_000_000 + "x}", None),
        ("\\boxed{\u0661 \u0662}", None),  # Arabic-Indic digits
        ("\x00\ud800", None),
    ],
)
def test_only_the_last_box_of_numbers_is_read(action, move):
    assert MastermindEnv().read(action) == move


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_finds_the_code_and_earns_exactly_one(variant, play):
    env = MastermindEnv(**VARIANTS[variant])
    oracle = Oracle(env)
    for seed in range(200):
        total, step = play(env, oracle.act, seed)
        assert total == 1.0 and step.info["stop_reason"] is StopReason.SOLVED, (seed, env.state.code)


@pytest.mark.parametrize(("length", "numbers", "worst"), [(2, 4, 3), (2, 6, 5), (4, 6, 6)])
def test_the_stated_bound_holds_for_every_code(length, numbers, worst):
    env = MastermindEnv(length, numbers)
    oracle, turns = Oracle(env), []
    for code in all_codes(length, numbers, duplicates=False):
        observation, _ = env.reset(seed=0)
        env.state = State(code, numbers, 20)
        while not env.over:
            observation = env.step(oracle.act(observation)).observation
        turns.append(env.turn)
    assert max(turns) == worst


def test_the_oracle_finds_codes_with_repeats(play):
    env = MastermindEnv(3, 4, duplicate_numbers=True)
    oracle = Oracle(env)
    assert all(play(env, oracle.act, seed)[0] == 1.0 for seed in range(200))


@pytest.mark.parametrize(("length", "numbers"), [(2, 4), (2, 6), (4, 6)])
def test_no_constant_guess_earns_more_than_a_quarter(length, numbers):
    codes = list(all_codes(length, numbers, duplicates=False))
    totals = [
        sum(pegs(guess, code)[0] for code in codes) / length / len(codes)
        for guess in product(*[range(1, numbers + 1)] * length)
    ]
    assert max(totals) <= 0.25


def test_a_constant_guess_earns_little(play):
    env = MastermindEnv()
    totals = [play(env, lambda _: r"\boxed{1 2 3 4}", seed)[0] for seed in range(300)]
    assert 0.0 < sum(totals) / 300 <= 0.05


def test_random_actions_stay_legal_until_every_code_was_guessed(play):
    env = MastermindEnv(1, 2)
    for seed in range(20):
        assert play(env, lambda _: env.sample_random_action(), seed)[0] == 1.0
        assert env.turn <= 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_codes_have_different_numbers_and_the_rules_state_all_but_the_code(variant):
    env = MastermindEnv(**VARIANTS[variant])
    for seed in range(200):
        card, _ = env.reset(seed=seed)
        code, numbers = env.state.code, env.state.numbers
        assert len(set(code)) == len(code) and min(code) >= 1 and max(code) <= numbers
        assert f"row of {len(code)} different numbers from 1 to {numbers}" in card
        assert f"at most {env.turn_limit()} guesses" in card and env.move_format in card
        assert env.secrets() == [" ".join(map(str, code))] and env.secrets()[0] not in card
        assert "invalid" not in env.step(env.move_format).info


def test_codes_repeat_numbers_only_if_requested():
    env = MastermindEnv(4, 2, duplicate_numbers=True)
    card, _ = env.reset(seed=0)
    assert "different" not in card and len(set(env.state.code)) < 4


def test_the_random_variant_draws_the_published_sizes_and_their_limits():
    env = MastermindEnv(**VARIANTS["random"])
    drawn = {(len(env.reset(seed=seed) and env.state.code), env.state.numbers, env.turn_limit()) for seed in range(60)}
    assert drawn == {(2, 4, 10), (4, 6, 20), (4, 8, 30)} and env.max_turns == 30


def test_a_given_limit_applies_to_every_drawn_size():
    env = MastermindEnv(random_size=True, max_turns=5)
    assert {env.reset(seed=seed) and env.turn_limit() for seed in range(20)} == {5}


def test_the_turn_limit_truncates_without_revealing_the_secret():
    env = with_code(1, 2, 3, 4, turns=1)
    step = env.step(r"\boxed{1 2 4 3}")
    assert step.truncated and not step.terminated and step.info["stop_reason"] is StopReason.MAX_TURNS
    assert env.secrets()[0] not in step.observation


def test_different_seeds_give_different_codes():
    one, other = MastermindEnv(), MastermindEnv()
    assert one.reset(seed=7) == other.reset(seed=7) and one.state == other.state
    assert len({one.reset(seed=seed) and one.state.code for seed in range(50)}) > 30


def test_an_unreadable_action_shows_the_format_and_can_be_tolerated():
    step = with_code(1, 2).step("one two")
    assert (step.reward, step.terminated, step.info["stop_reason"]) == (-0.1, True, StopReason.FORMAT)
    assert r"\boxed{1 1}" in step.observation
    patient = with_code(1, 2, on_unreadable="continue")
    assert patient.step("one two").terminated is False and patient.step(r"\boxed{1 2}").reward == 1.0


@pytest.mark.parametrize(
    "kwargs",
    [
        {"code_length": 0},
        {"code_length": 9},
        {"num_numbers": 3},
        {"num_numbers": 21},
        {"num_numbers": 1, "duplicate_numbers": True},
        {"max_turns": 0},
        {"on_unreadable": "ignore"},
    ],
)
def test_values_out_of_range_are_rejected_by_name(kwargs):
    with pytest.raises(BadValue, match=str(next(iter(kwargs)))):
        MastermindEnv(**kwargs)
