"""Properties of every game, checked for every id: reading actions, sampling, seeds, saved episodes."""

from __future__ import annotations

import json

import pytest

import gem
from gem.core import StopReason

IDS = [spec.id for spec in gem.list_envs("game:*")]
FIRST = list({env_id.partition("-")[0]: env_id for env_id in reversed(IDS)}.values())  # of each game, one level
SEEDS = range(20)
COUNTED = [i for i in IDS if gem.make(i).instances()]
LONG = 200_000

# Actions that no game reads as a move.
UNREADABLE = ["", "1", "e", "up", r"\boxed{}", r"\boxed{", "\x00\ud800", "9" * 99, "\\boxed{" + "9" * LONG + "}"]
# Further actions that the game of that name does not read.
UNREADABLE_IN = {
    "Bandit": [
        "pull 2",
        r"\boxed{2}",
        r"\boxed{pull}",
        r"\boxed{pull two}",
        "\\boxed{pull \u0663}",
        "\\boxed{pull " + "9" * LONG + "}",
    ],
    "Blackjack": [
        "hit",
        r"\boxed{hit stand}",
        r"\boxed{double}",
        "\\boxed{h\u0131t}",
        "\\boxed{hit" + " " * LONG + "x}",
    ],
    "Crosswords": [
        "0 0 A",
        r"\boxed{0 0}",
        r"\boxed{0 0 AB}",
        r"\boxed{0 0 1}",
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
    "FrozenLake": [r"\boxed{north}", r"\boxed{up up}", "\\boxed{r\u0130ght}", "\\boxed{up" + " " * LONG + "x}"],
    "GuessTheNumber": ["5", r"\boxed{five}", r"\boxed{5"],
    "Hangman": [r"\boxed{3}", "a" * LONG],
    "Mastermind": ["one two"],
    "Minesweeper": [
        "reveal 0 0",
        r"\boxed{reveal 0}",
        r"\boxed{reveal 0 0 0}",
        r"\boxed{0 0}",
        "\\boxed{reveal \u0663 0}",  # an Arabic three
        "\\boxed{reveal 0 \u00b2}",
        "\\boxed{reveal 0 0",
        "\\boxed{reveal 0 " + "9" * LONG + "}",
        "\\boxed{" + "a" * LONG + "}",
        "\\boxed{reveal" + " " * LONG + "}",
    ],
    "Rooms": [
        "forward",
        r"\boxed{up}",
        r"\boxed{forward forward}",
        r"\boxed{pick}",
        "\\boxed{r\u0130ght}",
        "\\boxed{pick" + " " * LONG + "x}",
    ],
    "RushHour": [
        "A up 2",
        r"\boxed{A}",
        r"\boxed{up 2}",
        r"\boxed{A up 0}",
        r"\boxed{Z up 2}",
        "\\boxed{A r\u0130ght}",
        "\\boxed{A up " + "9" * LONG + "}",
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
    "TwentyQuestions": [
        "ask red",
        r"\boxed{red}",
        r"\boxed{ask}",
        r"\boxed{ask red or blue}",
        r"\boxed{tell red}",
        "\\boxed{ask " + "a" * LONG + "}",
    ],
    "WikiGame": ["Nowhere", r"\boxed{ }", "\\boxed{Nowhere", "\\boxed{" + "a" * LONG + "}"],
    "WordSearch": [
        "0 0 0 2",
        r"\boxed{0 0 0}",
        r"\boxed{0 0 0 2 4}",
        r"\boxed{0,,0 0 2}",
        "\\boxed{٠ ٠ ٠ ٢}",
        "\\boxed{0 0 0" + " " * LONG + "}",
        "\\boxed{0 0 0 " + "9" * LONG + "}",
    ],
    "Wordle": ["crane", r"\boxed{12345}", "a" * LONG],
}
# Other ways to write the move at the beginning of the list.
SAME_MOVE = {
    "Bandit": ["pull 2", "Pull 2.", "pull machine 2", r"\text{pull } 2", "pull (2)", "pull: 2"],
    "Blackjack": ["hit", "Hit.", r"\text{HIT}", '"hit"', "**hit**"],
    "Crosswords": ["0 2 E", "(0, 2) e", "0, 2, 'E'.", r"\text{0 2 E}", r"(0,\, 2, \text{E})", r"\mathbf{0 2 e}."],
    "FifteenPuzzle": ["up", "Up.", r"\text{up}", '"up"', "**UP**", r"$\mathrm{Up}$."],
    "Game2048": ["left", "Left.", r"\text{LEFT}", "(left)", r"\textbf{left.}"],
    "FrozenLake": ["down", "Down.", r"\text{down}", "(DOWN)", '"down"'],
    "GuessTheNumber": ["5", "5.", r"\text{5}", "$5$", "(5)", r"\text{\textbf{5}.}", r"\boxed{5}", "+5", "{5}", r"\ 5"],
    "Hangman": ["e", "E.", r"\text{E}", '"e"', "'E'."],
    "Mastermind": ["1 2", "(1, 2)", "[1, 2].", r"\text{1 2}", r"1,\ 2", "1, 2.", r"\{1, 2\}"],
    "Minesweeper": [
        "reveal 0 1",
        "reveal (0, 1)",
        "Reveal(0,1).",
        "reveal: 0, 1",
        r"\text{reveal } 0\ 1",
        "reveal [0][1]",
    ],
    "Rooms": ["pick up", "Pick up.", "pickup", r"\text{pick up}", '"pick up"', r"\text{pick} up"],
    "RushHour": ["X left 1", "x left", "X, left, 1.", "(X left) 1", r"\text{X left 1}", r"\text{X} left"],
    "Sokoban": ["up", "Up.", r"\text{up}", r"\mathtt{up}"],
    "Sudoku": ["1 3 4", "(1, 3, 4)", "[1, 3, 4].", "(1, 3) 4", r"\text{1 3 4}"],
    "TowerofHanoi": ["A C", "A to C", "A -> C", r"A \to C", "(A, C).", "a→c", r"\text{A to C}", r"A \rightarrow C"],
    "TwentyQuestions": ["ask red", "Ask: red.", "ask red?", r"\text{ask red}", 'ask "red"', "ASK RED"],
    "WikiGame": ["No such page", "no such page.", r"\text{No such page}", '"No such page"', "No_such_page"],
    "WordSearch": [
        "0 2 0 6",
        "(0, 2) (0, 6)",
        "(0, 2) to (0, 6).",
        "(0,2), (0,6)",
        "[0, 2] -> [0, 6]",
        r"\text{0 2 0 6}",
    ],
    "Wordle": ["crane", "CRANE.", r"\text{crane}", '"Crane"', "C, R, A, N, E", r"\textbf{CRANE}."],
}
# Readable moves that are illegal in every state.
ILLEGAL = {
    "Bandit": ["pull 0", "choose 0", "pull -1", "choose 99999"],
    "Blackjack": [],
    "Crosswords": ["-1 0 A", "0 -1 A", "99999 0 A"],
    "FifteenPuzzle": [],
    "FrozenLake": [],
    "Game2048": [],
    "GuessTheNumber": ["-3", "99999"],
    "Hangman": ["abcdefghi"],
    "Mastermind": ["-1 2", "0 0 0 0", "1 -2 3 4", "1 2 3 99999"],
    "Minesweeper": ["reveal -1 0", "flag 0 -1", "reveal 99999 0", "open 0 0"],
    "Rooms": ["drop"],
    "RushHour": ["X up", "X down 2", "X right 99"],
    "Sokoban": [],
    "Sudoku": ["-1 2 3", "1 -2 3", "1 2 -3", "99999 2 3", "1 2 99999"],
    "TowerofHanoi": ["A A"],
    "TwentyQuestions": ["ask purple", "guess unicorn", "guess red"],
    "WikiGame": ["No such page", "<PREV_PAGE>", "<MORE_LINKS>"],
    "WordSearch": ["0 0 -1 2", "-1 -1 -1 3", "0 0 0 99999"],
    "Wordle": ["abcdefghi"],
}
# Every episode of this game starts in the same state: Minesweeper places its mines at the first reveal.
SAME_START = "game:Minesweeper"


def name(env_id):
    return env_id.removeprefix("game:").partition("-")[0]


def test_every_game_lists_unreadable_actions():
    assert {name(env_id) for env_id in IDS} == set(UNREADABLE_IN) == set(SAME_MOVE) == set(ILLEGAL)


@pytest.mark.parametrize("env_id", FIRST)
def test_latex_brackets_quotes_arrows_and_a_full_stop_do_not_change_a_move(env_id):
    env = gem.make(env_id)
    env.reset(seed=0)
    moves = {written: env.read(rf"I play \boxed{{{written}}}.") for written in SAME_MOVE[name(env_id)]}
    first = next(iter(moves.values()))
    assert first is not None and moves == dict.fromkeys(moves, first)


@pytest.mark.parametrize("env_id", FIRST)
def test_a_move_in_thoughts_or_before_a_box_that_is_cut_off_is_not_played(env_id):
    env = gem.make(env_id)
    env.reset(seed=0)
    move = env.sample_random_action()
    for reply in (f"<think>{move}</think> Hm.", f"<think>{move}", f"{move}</think> Hm.", rf"{move}, no, \boxed{{"):
        assert env.read(reply) is None, reply
    assert env.read(f"<think>Hm.</think> {move} <think>or") == env.read(move) is not None


@pytest.mark.parametrize("env_id", FIRST)
def test_a_readable_but_illegal_move_is_invalid_and_the_game_continues(env_id):
    for written in ILLEGAL[name(env_id)]:
        env = gem.make(env_id)
        env.reset(seed=0)
        state = env.state
        step = env.step(rf"\boxed{{{written}}}")
        assert (step.reward, step.terminated, step.truncated) == (0.0, False, False), written
        assert step.info["invalid"] != "no_action" and env.state == state, written


@pytest.mark.parametrize("env_id", IDS)
def test_the_rules_card_states_the_turn_limit(env_id):
    env = gem.make(env_id)
    for seed in range(8):
        card, _ = env.reset(seed=seed)
        assert f" {env.turn_limit()} turns" in card or f" {env.turn_limit()} guesses" in card


@pytest.mark.parametrize("env_id", IDS)
def test_the_secret_of_a_lost_game_is_in_the_info_of_the_last_step_only(env_id):
    env = gem.make(env_id)
    for seed in range(5):
        env.reset(seed=seed)
        while not env.over:
            step = env.step(env.sample_random_action())
            assert env.over or "revealed" not in step.info
        lost = step.info["stop_reason"] is not StopReason.SOLVED
        assert step.info.get("revealed", []) == (env.secrets() if lost else [])
        json.dumps(step.info)


@pytest.mark.parametrize("env_id", FIRST)
@pytest.mark.parametrize("on_unreadable", ["end", "continue"])
def test_an_unreadable_action_costs_a_tenth_and_ends_the_episode_if_requested(env_id, on_unreadable):
    env = gem.make(env_id, on_unreadable=on_unreadable)
    for action in UNREADABLE + UNREADABLE_IN[name(env_id)]:
        env.reset(seed=0)
        step = env.step(action)
        ended = on_unreadable == "end"
        assert (step.reward, step.terminated, step.truncated) == (-0.1, ended, False), action[:40]
        revealed = {"revealed": env.secrets()} if env.secrets() else {}
        assert ("explanation" in step.info) is ended and "valid action" in step.info.pop(
            "explanation", "no valid action"
        )
        assert step.info == {
            "invalid": "no_action",
            **({"stop_reason": StopReason.FORMAT, **revealed} if ended else {}),
        }
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
    for seed in range(20):
        assert env.reset(seed=seed) == other.reset(seed=seed)
        assert env.state == other.state
        states.append(repr(env.state))
    assert len(set(states)) > 5 or env_id.startswith(SAME_START)


@pytest.mark.parametrize("env_id", IDS)
def test_a_restored_episode_continues_identically(env_id):
    env, other = gem.make(env_id), gem.make(env_id)
    env.reset(seed=7)
    for _ in range(4):
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


@pytest.mark.slow
@pytest.mark.parametrize("env_id", COUNTED)
def test_as_many_different_episodes_start_as_the_game_says(env_id):
    env = gem.make(env_id)
    starts = {json.dumps(env.get_state()["state"]) for seed in range(12 * env.instances()) if env.reset(seed)}
    assert len(starts) == env.instances()
