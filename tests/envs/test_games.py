"""Properties of every game, checked for every id: reading actions, sampling, seeds, saved episodes."""

from __future__ import annotations

import json

import pytest

import gem
from gem.core import StopReason

IDS = [spec.id for spec in gem.list_envs("game:*")]
SEEDS = range(75)
LONG = 1_000_000

# Actions that no game reads as a move.
UNREADABLE = ["", "1", "e", "up", r"\boxed{}", r"\boxed{", "\x00\ud800", "9" * 99, "\\boxed{" + "9" * LONG + "}"]
# Further actions that the game of that name does not read.
UNREADABLE_IN = {
    "Crosswords": [
        "0 0 A",
        r"\boxed{0 0}",
        r"\boxed{0 0 AB}",
        r"\boxed{0 0 1}",
        r"\boxed{-1 0 A}",
        "\\boxed{0 0 \u212a}",  # the Kelvin sign, which re.IGNORECASE folds to K
        "\\boxed{٠ ٠ A}",
        "\\boxed{0 0" + " " * LONG + "}",
        "\\boxed{" + "9" * LONG + " 0 A}",
    ],
    "FifteenPuzzle": [
        r"\boxed{north}",
        r"\boxed{up up}",
        "\\boxed{r\u0130ght}",  # a capital dotted I
        "\\boxed{up",
        "\\boxed{up" + " " * LONG + "x}",
    ],
    "Game2048": [
        "left",
        r"\boxed{west}",
        r"\boxed{left, up}",
        "\\boxed{r\u0130ght}",
        "\\boxed{left",
        "\\boxed{left" + " " * LONG + "x}",
    ],
    "GuessTheNumber": ["5", r"\boxed{five}", r"\boxed{5"],
    "Hangman": [r"\boxed{3}", "a" * LONG],
    "Mastermind": ["one two"],
    "Minesweeper": [
        "reveal 0 0",
        r"\boxed{reveal 0}",
        r"\boxed{reveal 0 0 0}",
        r"\boxed{reveal -1 0}",
        r"\boxed{0 0}",
        "\\boxed{reveal \u0663 0}",  # an Arabic three
        "\\boxed{reveal 0 \u00b2}",
        "\\boxed{reveal 0 0",
        "\\boxed{reveal 0 " + "9" * LONG + "}",
        "\\boxed{" + "a" * LONG + "}",
        "\\boxed{reveal" + " " * LONG + "}",
    ],
    "Sokoban": [
        r"\boxed{push up}",
        r"\boxed{upp}",
        "\\boxed{r\u0130ght}",
        "\\boxed{up",
        "\\boxed{up" + " " * LONG + "x}",
    ],
    "Sudoku": [
        "1 2 3",
        r"\boxed{1 2}",
        r"\boxed{1 2 3 4}",
        r"\boxed{-1 2 3}",
        r"\boxed{1.0 2 3}",
        r"\boxed{1,,2 3}",
        "\\boxed{١ ٢ ٣}",
        "\\boxed{1 2" + " " * LONG + "}",
        "\\boxed{1 1 " + "9" * LONG + "}",
    ],
    "TowerofHanoi": [
        "A C",
        r"\boxed{A}",
        r"\boxed{A D}",
        r"\boxed{A B C}",
        r"\boxed{A,,C}",
        "\\boxed{A C",
        "\\boxed{\u0410 \u0421}",  # Cyrillic letters that look like A C
        "\\boxed{A" + " " * LONG + "}",
    ],
    "WordSearch": [
        "0 0 0 2",
        r"\boxed{0 0 0}",
        r"\boxed{0 0 0 2 4}",
        r"\boxed{0 0 -1 2}",
        r"\boxed{0,,0 0 2}",
        "\\boxed{٠ ٠ ٠ ٢}",
        "\\boxed{0 0 0" + " " * LONG + "}",
        "\\boxed{0 0 0 " + "9" * LONG + "}",
    ],
    "Wordle": ["crane", r"\boxed{12345}", "a" * LONG],
}
# Every episode of these starts in the same state: Minesweeper places its mines at the first reveal.
SAME_START = ("game:Minesweeper", "game:TowerofHanoi-v0-easy", "game:TowerofHanoi-v0-hard")


def name(env_id):
    return env_id.removeprefix("game:").partition("-")[0]


def test_every_game_lists_unreadable_actions():
    assert {name(env_id) for env_id in IDS} == set(UNREADABLE_IN)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("on_unreadable", ["end", "continue"])
def test_an_unreadable_action_costs_a_tenth_and_ends_the_episode_if_requested(env_id, on_unreadable):
    env = gem.make(env_id, on_unreadable=on_unreadable)
    for action in UNREADABLE + UNREADABLE_IN[name(env_id)]:
        env.reset(seed=0)
        step = env.step(action)
        ended = on_unreadable == "end"
        assert (step.reward, step.terminated, step.truncated) == (-0.1, ended, False), action[:40]
        assert step.info == {"invalid": "no_action", **({"stop_reason": StopReason.FORMAT} if ended else {})}
        assert env.move_format in step.observation and env.turn == 1


@pytest.mark.parametrize("env_id", IDS)
def test_sampled_actions_are_legal_and_their_rewards_stay_in_range(env_id):
    env = gem.make(env_id)
    for seed in SEEDS:
        env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            step = env.step(env.sample_random_action())
            total, over = total + step.reward, step.terminated or step.truncated
            assert "invalid" not in step.info
            assert 0.0 <= total <= 1.0
        assert (total == 1.0) == (step.info["stop_reason"] is StopReason.SOLVED)
        assert env.read(env.sample_random_action()) is not None


@pytest.mark.parametrize("env_id", IDS)
def test_a_seed_determines_the_episode(env_id):
    env, other = gem.make(env_id), gem.make(env_id)
    other.reset(seed=1)
    states = []
    for seed in range(50):
        assert env.reset(seed=seed) == other.reset(seed=seed)
        assert env.state == other.state
        states.append(repr(env.state))
    assert len(set(states)) > 5 or env_id.startswith(SAME_START)


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("turns", [0, 1, 4])
def test_a_restored_episode_continues_identically(env_id, turns):
    env, other = gem.make(env_id), gem.make(env_id)
    env.reset(seed=7)
    for _ in range(turns):
        if not env.over:
            env.step(env.sample_random_action())
    other.set_state(json.loads(json.dumps(env.get_state())))
    assert other.state == env.state and type(other.state) is type(env.state)
    assert other.secrets() == env.secrets() and other.turn_limit() == env.turn_limit()
    for _ in range(30):
        action = env.sample_random_action()
        assert other.sample_random_action() == action
        if env.over:
            break
        assert other.step(action) == env.step(action)
    assert env.reset() == other.reset()
