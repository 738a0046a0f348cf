import json
from string import ascii_lowercase
from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.words import lists as words
from gem.envs.games.words.hangman import HangmanEnv, Oracle, State, default_turns, fitting, shown
from gem.errors import BadValue

VARIANTS = {
    "": {"word_length": 5, "max_turns": 15},
    "easy": {"word_length": 3, "max_turns": 10},
    "hard": {"word_length": 7, "max_turns": 20},
    "random": {"random_length": True},
}


def with_secret(secret, **kwargs):
    env = HangmanEnv(len(secret), **kwargs)
    env.reset(seed=0)
    env.state = State(secret)
    return env


def box(guess):
    return rf"\boxed{{{guess}}}"


def test_a_letter_is_shown_wherever_it_occurs():
    assert (shown("level", ""), shown("level", "xl"), shown("level", "vel")) == ("_____", "l___l", "level")


def test_a_correct_letter_earns_its_positions_and_a_wrong_one_is_listed():
    env = with_secret("level")
    wrong, right = env.step(box("s")), env.step(box("L"))
    assert (wrong.reward, wrong.observation) == (0.0, "Turn 1: S is not in the word.\n_ _ _ _ _  wrong: S")
    assert right.reward == pytest.approx(0.5 * (2 / 5) ** 3)
    assert right.observation == "Turn 2: L is in the word.\nL _ _ _ L  wrong: S"


def test_the_game_ends_as_soon_as_all_letters_are_shown():
    env = with_secret("level")
    steps = [env.step(box(letter)) for letter in "elv"]
    assert [step.terminated for step in steps] == [False, False, True]
    assert steps[-1].info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}
    assert sum(step.reward for step in steps) == 1.0


@pytest.mark.parametrize("letters", ["", "l", "le", "xyz", "e"])
def test_naming_the_word_earns_the_rest_of_one(letters):
    env = with_secret("level")
    total = sum(env.step(box(letter)).reward for letter in letters)
    step = env.step(box("Level"))
    assert step.terminated and total + step.reward == 1.0
    assert step.observation.startswith(f"Turn {len(letters) + 1}: LEVEL is the word.\nL E V E L")


def test_a_wrong_word_reveals_and_earns_nothing():
    env = with_secret("level")
    step = env.step(box("lever"))
    assert (step.reward, step.info) == (0.0, {})
    assert step.observation == "Turn 1: LEVER is not the word.\n_ _ _ _ _  wrong: LEVER"


@pytest.mark.parametrize(
    ("guess", "reason"),
    [("l", "repeated_guess"), ("s", "repeated_guess"), ("lever", "repeated_guess"), ("leve", "wrong_length")],
)
def test_an_invalid_guess_uses_up_the_turn_and_earns_nothing(guess, reason):
    env = with_secret("level")
    for before in ("l", "s", "lever"):
        env.step(box(before))
    state = env.state
    step = env.step(box(guess))
    assert (step.reward, step.info, step.terminated) == (0.0, {"invalid": reason}, False)
    assert env.state == state and env.turn == 4


def test_the_board_is_shown_from_the_start_and_after_an_unreadable_turn():
    env = with_secret("level", on_unreadable="continue")
    assert env.reset(seed=0)[0].endswith("\n_ _ _ _ _")
    env.state = State("level", letters="ls")
    assert env.step("L?").observation.endswith("\nL _ _ _ L  wrong: S")


def test_fitting_words_are_consistent_with_the_board():
    assert "level" in fitting("l___l", ("s", "lethl"))
    assert fitting("_____", ("crane",)) == [word for word in words.common(5) if word != "crane"]
    assert all("e" not in word for word in fitting("_____", ("e",)))
    assert "eerie" not in fitting("e___e", ())  # a guessed e would be shown everywhere


@pytest.mark.parametrize(("variant", "least"), [("", 40), ("easy", 31), ("hard", 40), ("random", 36)])
def test_the_oracle_finds_most_words_and_earns_exactly_one_for_each(variant, least, play):
    # Many words of 3 letters differ in a single letter, so 10 guesses do not suffice for all of them.
    env = HangmanEnv(**VARIANTS[variant])
    oracle = Oracle(env)
    ends = [play(env, oracle.act, seed) for seed in range(40)]
    won = [total for total, step in ends if step.info["stop_reason"] is StopReason.SOLVED]
    assert len(won) >= least and set(won) == {1.0}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_word_can_be_spelled_within_the_limit(variant):
    env = HangmanEnv(**VARIANTS[variant])
    for seed in range(200):
        env.reset(seed=seed)
        letters = dict.fromkeys(env.state.secret)
        assert len(letters) < env.turn_limit()
        assert sum(env.step(box(letter)).reward for letter in letters) == 1.0 and env.over


@pytest.mark.parametrize("length", words.COMMON_LENGTHS)
def test_no_constant_letter_or_word_earns_a_tenth(length):
    # Repeats are invalid: a letter earns its positions once, and the rest of 1.0 if the word has no other letter.
    secrets = words.common(length)
    paid = {x: sum(word.count(x) / length / 2 + (set(word) == {x}) / 2 for word in secrets) for x in ascii_lowercase}
    assert max(paid.values()) / len(secrets) <= 0.1
    assert 1 / len(secrets) <= 0.1  # a word earns only if it is the secret


def test_a_constant_letter_earns_its_positions_once(play):
    env = HangmanEnv(**VARIANTS["easy"])
    totals = [play(env, lambda _: box("e"), seed)[0] for seed in range(300)]
    assert 0 < sum(totals) / 300 <= 0.1


def test_random_actions_stay_legal_until_every_letter_was_tried(play):
    env = HangmanEnv(max_turns=50)
    for seed in range(50):
        assert play(env, lambda _: env.sample_random_action(), seed)[0] == 1.0
        assert env.turn <= 26


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_rules_state_length_limit_and_formats_but_not_the_word(variant):
    env = HangmanEnv(**VARIANTS[variant])
    for seed in range(200):
        card, _ = env.reset(seed=seed)
        length, (secret,) = len(env.state.secret), env.secrets()
        assert f"of {length} letters" in card and f"at most {env.turn_limit()} guesses" in card
        assert env.move_format in card and "whole word" in card and secret not in card
        assert "invalid" not in env.step(env.move_format).info


@pytest.mark.parametrize(("length", "turns"), [(3, 10), (5, 15), (7, 20)])
def test_the_default_limits_are_the_published_ones(length, turns):
    assert default_turns(length) == HangmanEnv(length).max_turns == turns


def test_the_random_variant_draws_the_published_lengths_and_limits():
    env = HangmanEnv(**VARIANTS["random"])
    drawn = {(len(env.reset(seed=seed) and env.state.secret), env.turn_limit()) for seed in range(60)}
    assert drawn == {(3, 10), (5, 15), (7, 20)} and env.max_turns == 20


def test_the_turn_limit_truncates_without_revealing_the_secret():
    env = with_secret("level", max_turns=1)
    step = env.step(box("e"))
    assert step.truncated and not step.terminated and "LEVEL" not in step.observation


def test_the_last_letter_on_the_last_turn_wins():
    env = with_secret("level", max_turns=3)
    steps = [env.step(box(letter)) for letter in "elv"]
    assert steps[-1].terminated and not steps[-1].truncated


def test_different_seeds_give_different_words():
    one, other = HangmanEnv(), HangmanEnv()
    assert one.reset(seed=7) == other.reset(seed=7) and one.state == other.state
    assert len({one.reset(seed=seed) and one.state.secret for seed in range(50)}) > 40


@pytest.mark.parametrize(
    "kwargs", [{"word_length": 2}, {"word_length": 9}, {"max_turns": 0}, {"on_unreadable": "ignore"}]
)
def test_values_out_of_range_are_rejected_by_name(kwargs):
    with pytest.raises(BadValue, match=str(next(iter(kwargs)))):
        HangmanEnv(**kwargs)


def test_a_restored_episode_remembers_the_words_that_were_guessed():
    env, other = with_secret("level"), HangmanEnv()
    env.step(box("lever"))
    other.set_state(json.loads(json.dumps(env.get_state())))
    assert other.state == env.state and other.step(box("lever")).info == {"invalid": "repeated_guess"}
