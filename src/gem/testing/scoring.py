"""What a policy earns: playing it over many episodes, and a program that does so again."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gem.core import StopReason
from gem.testing.lab import Lab, Player, literal
from gem.testing.plain import text_of
from gem.testing.plays import LIMIT_TURNS, Choose, always, by_oracle

STEPS = 8_000  # that measuring one policy may take, so that long games do not take minutes …
LEAST_EPISODES = 10  # … though never fewer episodes than this


@dataclass(frozen=True)
class Strategy:
    """A policy that needs no model.

    Args:
        choose: gives a player the function from observations to actions.
        action: what it answers, as Python over ``observation``.
        before: a line of Python that prepares it, after every reset.
    """

    choose: Callable[[Player], Choose]
    action: str
    before: str = ""


@dataclass(frozen=True)
class Episode:
    """How one episode went. total: of its rewards; solved: None where it gives no stop_reason."""

    total: float
    turns: int
    solved: bool | None


@dataclass(frozen=True)
class Measured:
    """What a strategy earned in episodes on the seeds 0, 1, 2, …"""

    strategy: Strategy
    episodes: list[Episode]

    @property
    def mean(self) -> float:
        return statistics.fmean(e.total for e in self.episodes)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if len(self.episodes) < 2:
            return 0.0
        return statistics.stdev(e.total for e in self.episodes) / math.sqrt(len(self.episodes))

    @property
    def solved(self) -> float:
        """The share of episodes that were won."""
        return statistics.fmean(bool(e.solved) for e in self.episodes)

    @property
    def turns(self) -> float:
        """Mean turns of the episodes won; NaN where none was."""
        won = [e.turns for e in self.episodes if e.solved]
        return statistics.fmean(won) if won else math.nan

    def __str__(self) -> str:
        return f"mean reward {self.mean:.3f} ± {self.error:.3f} over {len(self.episodes)} episodes"


def constant(action: str) -> Strategy:
    return Strategy(always(action), literal(action))


def echo() -> Strategy:
    return Strategy(lambda player: text_of, "observation")


def repeat_last() -> Strategy:
    """A random first action, and what it said last from then on."""

    def choose(player: Player) -> Choose:
        action = player.sample()
        return lambda observation: action

    return Strategy(choose, "action", "action = env.sample_random_action()")


def oracle(name: str) -> Strategy:
    """name: "module:function", as a spec has it."""
    return Strategy(by_oracle, "oracle.act(observation)", f"oracle = gem.registry.resolve({name!r})(env.unwrapped)")


def measure(lab: Lab, strategy: Strategy, *, episodes: int, steps: int = STEPS, seconds: float = math.inf) -> Measured:
    """Play a strategy on the seeds 0, 1, 2, … until the episodes are played.

    steps, seconds: when either is used up, no more than LEAST_EPISODES are played.
    """
    played: list[Episode] = []
    stop = time.perf_counter() + seconds
    while len(played) < episodes:
        if len(played) >= LEAST_EPISODES and (steps <= 0 or time.perf_counter() > stop):
            break
        played.append(episode(lab, strategy, seed=len(played)))
        steps -= played[-1].turns
    return Measured(strategy, played)


def episode(lab: Lab, strategy: Strategy, seed: int) -> Episode:
    lab.scene()
    player, observation = lab.start(seed)
    act, total, reason = strategy.choose(player), 0.0, None
    while not player.over and player.turn < LIMIT_TURNS:
        observation, reward, _, _, info = player.step(act(observation))
        total, reason = total + reward, info.get("stop_reason")
    return Episode(total, player.turn, None if reason is None else reason == StopReason.SOLVED)


def program(lab: Lab, strategy: Strategy, seeds: Sequence[int]) -> list[str]:
    """The lines of a program that plays the strategy and prints the mean reward and each episode's."""
    return [
        *dict.fromkeys(["import gem", *lab.subject.setup]),
        f"env = {lab.subject.code}",
        "returns = []",
        f"for seed in {seeds}:",
        "    observation, info = env.reset(seed=seed)",
        *([f"    {strategy.before}"] if strategy.before else []),
        "    total, over = 0.0, False",
        "    while not over:",
        f"        observation, reward, terminated, truncated, info = env.step({strategy.action})",
        "        total, over = total + reward, terminated or truncated",
        "    returns.append(total)",
        "print(sum(returns) / len(returns), returns)",
    ]
