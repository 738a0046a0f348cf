"""Show what is known of one environment, with a sample game.

What it is, its parameters and their values, what an episode can earn, the best that any policy can do where that is
known, and one game: of the oracle's where there is one, else of random legal actions. The game opens with the rules
as the agent reads them.

  gem info game:GuessTheNumber-v0-easy
  gem info game:GuessTheNumber-v0 --env-kwargs max_number=100 max_turns=7
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.cli.list import table
from gem.cli.play import Game, shown
from gem.core import Optimum
from gem.policies import oracle
from gem.registry import ENV_REGISTRY, EnvSpec, describe_parameters, make

SAMPLE_SEED = 0
SAMPLE_TURNS = 8  # shown from the start of a long game, besides its last one
LONGEST_SAMPLE = 1000  # turns, for environments that set no limit
_RUNS = {"inline": "microseconds a step", "thread": "it waits", "process": "it computes"}


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    id: str = flag(REQUIRED, help="environment id (see `gem list`)", positional=True)
    env_kwargs: dict[str, Any] = flag({}, help="arguments of the environment, e.g. max_turns=5")


def run(config: Config) -> int:
    spec = ENV_REGISTRY[config.id]
    with make(spec.id, **config.env_kwargs) as env:
        game = Game(env, SAMPLE_SEED)
        print(f"{spec.id}\n\n{about(spec)}\n")
        print(*table(facts(spec, env.optimum())), sep="\n")
        print("\nParameters")
        print(*table(parameters(spec, config.env_kwargs)), sep="\n")
        _sample(spec, game)
    return 0


def about(spec: EnvSpec) -> str:
    """The docstring of the environment's module, without its examples; the description where it has none."""
    module = sys.modules.get(getattr(spec.load(), "__module__", ""))
    text = inspect.getdoc(module) if module is not None else None
    return (text or spec.description).partition(">>>")[0].replace("``", "`").strip()


def facts(spec: EnvSpec, optimum: Optimum | None) -> list[tuple[str, str]]:
    least, greatest = spec.reward_range
    best = "not known"
    if optimum is not None:
        best = f"{optimum.success:.1%} of episodes won, in {optimum.turns:.3g} turns on average ({optimum.name})"
    player = "none known"
    if spec.oracle is not None:
        player = f"{spec.oracle}, sees the {spec.oracle_sees or 'observation'}"
    return [
        ("Needs", f"pip install 'gem-llm[{spec.extra}]'" if spec.extra else "nothing beyond gem-llm"),
        ("Runs", f"{spec.runs} ({_RUNS[spec.runs]})"),
        ("Episode reward", f"{least:g} to {greatest:g}"),
        ("Best possible", best),
        ("Oracle", player),
    ]


def parameters(spec: EnvSpec, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of each, those from the command line marked."""
    values = {**describe_parameters(spec), **given}
    shown = {name: "required" if value is inspect.Parameter.empty else repr(value) for name, value in values.items()}
    return [(f"  {name}", value + ("  (given)" if name in given else "")) for name, value in shown.items()]


def _sample(spec: EnvSpec, game: Game) -> None:
    player = "random actions" if spec.oracle is None else "the oracle"
    print(f"\nSample game, seed {SAMPLE_SEED}, played by {player}\n\n{shown(game.now)}")
    act = _player(spec, game)
    while game.stopped is None and game.turns < LONGEST_SAMPLE:
        try:
            action = act()
        except NotImplementedError:
            print("\n(no more of it: this environment has no random actions)")
            return
        game.act(action)
        if game.turns <= SAMPLE_TURNS or game.stopped is not None:
            if game.turns > SAMPLE_TURNS + 1:
                print(f"\n… {game.turns - SAMPLE_TURNS - 1} turns left out …")
            print(f"\n> {action}\n{shown(game.now)}")
    print(f"\n{game.ending()}")


def _player(spec: EnvSpec, game: Game) -> Callable[[], str]:
    if spec.oracle is None:
        return game.env.sample_random_action
    player = oracle(game.env)
    return lambda: player.act(game.now.observation)
