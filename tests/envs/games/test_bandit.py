import pytest

import gem
from gem.core import StopReason
from gem.envs.games.bandit import BanditEnv, Oracle
from gem.errors import BadValue


def test_one_machine_is_better_than_all_others_by_the_gap():
    env = BanditEnv(machines=6, gap=0.3)
    best = set()
    for seed in range(50):
        env.reset(seed=seed)
        chances = sorted(env.state.chances)
        assert chances[-1] - chances[-2] >= 0.3 - 1e-9 and chances[0] > 0
        best.add(env.state.best)
    assert best == set(range(6))


@pytest.mark.parametrize("gap", [0.001, 0.00123, 0.0099, 1 / 3, 0.9999])
def test_small_and_odd_gaps_are_kept_and_have_one_best_machine(gap):
    env = BanditEnv(machines=20, gap=gap)
    for seed in range(200):
        env.reset(seed=seed)
        *_, second, best = sorted(env.state.chances)
        assert best - second >= gap - 1e-12
        assert len(env.secrets()) == 20 and env.secrets().count(max(env.secrets())) == 1


def test_machines_pay_with_their_probabilities():
    env = BanditEnv(machines=2, gap=0.4, max_turns=2000)
    env.reset(seed=0)
    for turn in range(1600):
        env.step(rf"\boxed{{pull {turn % 2 + 1}}}")
    for chance, pulls, paid in zip(env.state.chances, env.state.pulls, env.state.paid, strict=True):
        assert pulls == 800 and abs(paid / pulls - chance) < 4 * (0.25 / 800) ** 0.5


def test_choosing_ends_the_game():
    env = BanditEnv()
    env.reset(seed=0)
    best = env.state.best + 1
    step = env.step(rf"\boxed{{choose {best}}}")
    assert (step.reward, step.terminated, step.info["stop_reason"]) == (1.0, True, StopReason.SOLVED)
    env.reset(seed=0)
    step = env.step(rf"\boxed{{choose {best % 5 + 1}}}")
    assert (step.reward, step.terminated, step.info["stop_reason"]) == (0.0, True, StopReason.LOST)
    assert step.info["revealed"] == [f"{chance:.4f}" for chance in env.state.chances]


def test_the_board_counts_pulls_payments_and_turns():
    env = BanditEnv(machines=2, max_turns=3)
    env.reset(seed=0)
    pays = "pays." in env.step(r"\boxed{pull 2}").observation
    assert env.board() == f"machine 1: 0 of 0 pulls paid\nmachine 2: {int(pays)} of 1 pulls paid\nTurns left: 2"
    env.step(r"\boxed{pull 2}")
    step = env.step(r"\boxed{pull 2}")
    assert step.truncated and step.reward == 0.0


def test_the_oracle_pulls_every_machine_and_chooses_in_the_last_turn(play):
    env = BanditEnv(machines=4, gap=0.6, max_turns=20)
    won = 0
    for seed in range(20):
        oracle, actions = Oracle(env), []

        def act(observation, oracle=oracle, actions=actions):
            actions.append(oracle.act(observation))
            return actions[-1]

        total, _ = play(env, act, seed)
        won += total == 1.0
        assert sorted(actions[:4]) == [rf"\boxed{{pull {n}}}" for n in range(1, 5)]
        assert len(actions) == 20 and "choose" in actions[-1]
    assert won >= 17


@pytest.mark.parametrize(
    "bad", [{"machines": 1}, {"machines": 21}, {"gap": 0.0}, {"gap": 0.0009}, {"gap": 1.0}, {"max_turns": 0}]
)
def test_wrong_arguments_are_named(bad):
    with pytest.raises(BadValue, match=next(iter(bad))):
        BanditEnv(**bad)


def test_turns_without_a_pull_count_as_well():
    with gem.make("game:Bandit-v0", on_unreadable="continue") as env:
        first, _ = env.reset(seed=0)
        texts = [first, *(env.step(action).observation for action in (r"\boxed{pull 99}", "hm", r"\boxed{pull 1}"))]
    left = [int(text.rpartition("Turns left: ")[2].split()[0]) for text in texts]
    assert left == [left[0], left[0] - 1, left[0] - 2, left[0] - 3]
