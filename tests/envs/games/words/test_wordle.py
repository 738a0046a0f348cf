from unittest.mock import ANY

import pytest

from gem.core import StopReason
from gem.envs.games.words import lists as words
from gem.envs.games.words.wordle import EXAMPLES, Oracle, State, WordleEnv, marks
from gem.errors import BadValue

VARIANTS = {
    "": {"word_length": 5, "max_turns": 15},
    "easy": {"word_length": 3, "max_turns": 15},
    "hard": {"word_length": 5, "max_turns": 25},
    "random": {"random_length": True, "max_turns": None},
}


def with_secret(secret, **kwargs):
    env = WordleEnv(len(secret), **kwargs)
    env.reset(seed=0)
    env.state = State(secret, "X" * len(secret))
    return env


def box(word):
    return rf"\boxed{{{word}}}"


@pytest.mark.parametrize(
    ("guess", "secret", "found"),
    [
        ("crane", "crane", "GGGGG"),
        ("plumb", "crane", "XXXXX"),
        ("nacre", "crane", "YYYYG"),
        ("speed", "erase", "YXYYX"),  # two e in both
        ("speed", "abide", "XXYXY"),  # one e in the secret: the first e takes it
        ("geese", "crane", "XXXXG"),  # the right e takes it from those before
        ("allay", "llama", "YGYYX"),  # two a, two l
        ("mamma", "maxim", "GGYXX"),
        ("eel", "lee", "YGY"),
    ],
)
def test_each_letter_of_the_secret_accounts_for_one_mark(guess, secret, found):
    assert marks(guess, secret) == found


def test_the_observation_of_a_guess_shows_its_marks():
    env = with_secret("crane")
    assert env.step(box("Nacre")).observation == "Turn 1: NACRE: Y Y Y Y G"


def test_a_position_earns_once_and_the_word_earns_the_rest():
    env = with_secret("crane")
    words_tried = ["crate", "trace", "brand", "crane"]
    steps = [env.step(box(word)) for word in words_tried]
    assert [step.reward for step in steps] == pytest.approx([0.5 * 0.8**4, 0.0, 0.5 * (1 - 0.8**4), 0.5])
    assert sum(step.reward for step in steps) == 1.0
    assert steps[-1].terminated and steps[-1].info == {"stop_reason": StopReason.SOLVED, "explanation": ANY}


@pytest.mark.parametrize(
    ("word", "reason"),
    [("cran", "wrong_length"), ("a" * 32, "wrong_length"), ("qwert", "not_a_word"), ("brand", "repeated_guess")],
)
def test_an_invalid_guess_uses_up_the_turn_without_marks_or_reward(word, reason):
    env = with_secret("crane")
    env.step(box("brand"))
    before = env.state
    step = env.step(box(word))
    assert (step.reward, step.info, step.terminated) == (0.0, {"invalid": reason}, False)
    assert step.observation.startswith(f"Turn 2: {word.upper()} ") and ": G" not in step.observation
    assert env.state == before


def test_the_word_can_still_be_found_on_the_last_turn():
    env = with_secret("crane", max_turns=2)
    env.step(box("brand"))
    step = env.step(box("crane"))
    assert step.terminated and not step.truncated and step.info["stop_reason"] is StopReason.SOLVED


def test_the_turn_limit_truncates_without_revealing_the_secret():
    env = with_secret("crane", max_turns=1)
    step = env.step(box("brand"))
    assert step.truncated and not step.terminated and "CRANE" not in step.observation


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracle_finds_the_word_and_earns_exactly_one(variant, play):
    env = WordleEnv(**VARIANTS[variant])
    oracle = Oracle(env)
    for seed in range(40):
        total, step = play(env, oracle.act, seed)
        assert total == 1.0 and step.info["stop_reason"] is StopReason.SOLVED, (seed, env.state.secret)


@pytest.mark.parametrize("length", words.ACCEPTED_LENGTHS)
def test_no_constant_word_earns_a_quarter(length):
    # Repeats are invalid: a constant guess earns its right positions once, and the rest of 1.0 if it is the word.
    secrets = words.common(length)
    tallies = [
        {letter: [word[i] for word in secrets].count(letter) for letter in set("".join(secrets))} for i in range(length)
    ]
    best = max(
        sum(tally.get(letter, 0) for tally, letter in zip(tallies, word, strict=True))
        for word in words.accepted(length)
    )
    assert 0.5 * best / length / len(secrets) + 0.5 / len(secrets) <= 0.2


def test_a_constant_guess_earns_its_right_positions_once(play):
    env = WordleEnv(word_length=3)
    totals = [play(env, lambda _: box("cat"), seed)[0] for seed in range(300)]
    assert 0 < sum(totals) / 300 <= 0.2 and max(totals) <= 1.0


def test_every_secret_is_a_valid_guess_and_no_rules_card_reveals_it():
    env = WordleEnv()
    for length in words.ACCEPTED_LENGTHS:
        assert set(words.common(length)) <= words.accepted(length)
        assert EXAMPLES[length] in words.accepted(length) - set(words.common(length))
        env.state = State("?" * length, "X" * length)
        assert not [word for word in words.common(length) if word.upper() in env.rules()]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_rules_state_the_length_the_limit_and_a_valid_guess(variant):
    env = WordleEnv(**VARIANTS[variant])
    for seed in range(30):
        card, _ = env.reset(seed=seed)
        length = len(env.state.secret)
        assert f"of {length} letters" in card and f"at most {env.turn_limit()} guesses" in card
        assert env.move_format in card and env.secrets() == [env.state.secret.upper()]
        assert "invalid" not in env.step(env.move_format).info


def test_the_random_variant_draws_the_length_and_allows_five_turns_a_letter():
    env = WordleEnv(**VARIANTS["random"])
    drawn = {(len(env.reset(seed=seed) and env.state.secret), env.turn_limit()) for seed in range(60)}
    assert drawn == {(3, 15), (4, 20), (5, 25)} and env.max_turns == 25


def test_different_seeds_give_different_words():
    one, other = WordleEnv(), WordleEnv()
    assert one.reset(seed=7) == other.reset(seed=7) and one.state == other.state
    assert len({one.reset(seed=seed) and one.state.secret for seed in range(50)}) > 40


@pytest.mark.parametrize(
    "kwargs", [{"word_length": 2}, {"word_length": 6}, {"max_turns": 0}, {"on_unreadable": "ignore"}]
)
def test_values_out_of_range_are_rejected_by_name(kwargs):
    with pytest.raises(BadValue, match=str(next(iter(kwargs)))):
        WordleEnv(**kwargs)
