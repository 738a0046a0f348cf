"""Show an environment's parameters, rewards and a sample episode.

Prints the description, the parameters with their values, the range of episode rewards, the best possible result if it
is known, and a sample episode. The oracle plays the episode; without an oracle, the actions are random legal ones.

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
SAMPLE_TURNS = 8  # number of turns shown of a long episode, in addition to the last turn
MAX_SAMPLE_TURNS = 1000  # stops episodes of environments without a turn limit
_RUNS = {"inline": "steps take microseconds", "thread": "steps wait for I/O", "process": "steps use the CPU"}


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    id: str = flag(REQUIRED, help="environment id (see `gem list`)", positional=True)
    env_kwargs: dict[str, Any] = flag({}, help="arguments for the environment, e.g. max_turns=5")


def run(config: Config) -> int:
    spec = ENV_REGISTRY[config.id]
    with make(spec.id, **config.env_kwargs) as env:
        game = Game(env, SAMPLE_SEED)
        print(f"{spec.id}\n\n{about(spec)}\n")
        print(*table(summary_rows(spec, env.optimum())), sep="\n")
        print("\nParameters")
        print(*table(parameters(spec, config.env_kwargs)), sep="\n")
        _sample(spec, game)
    return 0


def about(spec: EnvSpec) -> str:
    """Return the docstring of the environment's module up to the first example, or else the spec's description."""
    module = sys.modules.get(getattr(spec.load(), "__module__", ""))
    text = inspect.getdoc(module) if module is not None else None
    return (text or spec.description).partition(">>>")[0].replace("``", "`").strip()


def summary_rows(spec: EnvSpec, optimum: Optimum | None) -> list[tuple[str, str]]:
    least, greatest = spec.reward_range
    best = "unknown"
    if optimum is not None:
        best = f"{optimum.success:.1%} of episodes solved, in {optimum.turns:.3g} turns on average ({optimum.name})"
    player = "none"
    if spec.oracle is not None:
        player = f"{spec.oracle}, reads the {spec.oracle_sees or 'observation'}"
    return [
        ("Needs", f"pip install 'gem-llm[{spec.extra}]'" if spec.extra else "gem-llm only"),
        ("Runs", f"{spec.runs} ({_RUNS[spec.runs]})"),
        ("Episode reward", f"{least:g} to {greatest:g}"),
        ("Best possible", best),
        ("Oracle", player),
    ]


def parameters(spec: EnvSpec, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, value) rows for the parameters. Values from the command line are marked with "(given)"."""
    values = {**describe_parameters(spec), **given}
    shown = {name: "required" if value is inspect.Parameter.empty else repr(value) for name, value in values.items()}
    return [(f"  {name}", value + ("  (given)" if name in given else "")) for name, value in shown.items()]


def _sample(spec: EnvSpec, game: Game) -> None:
    player = "random actions" if spec.oracle is None else "the oracle"
    print(f"\nSample episode, seed {SAMPLE_SEED}, played by {player}\n\n{shown(game.now)}")
    act = _player(spec, game)
    while game.stopped is None and game.turns < MAX_SAMPLE_TURNS:
        try:
            action = act()
        except NotImplementedError:
            print("\n(stopped: this environment cannot sample random actions)")
            return
        game.act(action)
        if game.turns <= SAMPLE_TURNS or game.stopped is not None:
            if game.turns > SAMPLE_TURNS + 1:
                print(f"\n… {game.turns - SAMPLE_TURNS - 1} turns omitted …")
            print(f"\n> {action}\n{shown(game.now)}")
    print(f"\n{game.ending()}")


def _player(spec: EnvSpec, game: Game) -> Callable[[], str]:
    if spec.oracle is None:
        return game.env.sample_random_action
    player = oracle(game.env)
    return lambda: player.act(game.now.observation)
