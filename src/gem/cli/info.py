"""Show an environment's parameters, rewards and a sample episode.

Prints the description, the parameters with their values, the range of episode rewards, the best possible result if it
is known, stored scores of simple players, and a sample episode. The oracle plays the episode; without an oracle, the
actions are random legal ones. Without the data of a dataset, everything but the episode is shown.

  gem info game:GuessTheNumber-v0-easy
  gem info game:GuessTheNumber-v0 --env-kwargs max_number=100 max_turns=7
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gem._internal.text import clip
from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.cli.list import record
from gem.cli.output import MAX_TEXT, print_json, table, wrap_for
from gem.cli.play import Game, shown
from gem.core import Optimum
from gem.datasets import MissingData
from gem.errors import install_command
from gem.evaluation.exchange.reference import ReferenceScore, reference_scores
from gem.evaluation.report import plain_data
from gem.policies import oracle
from gem.registry import ENV_REGISTRY, EnvSpec, describe_parameters, make, resolve

SAMPLE_SEED = 0
SAMPLE_TURNS = 8  # number of turns shown of a long episode, in addition to the last turn
MAX_SAMPLE_TURNS = 1000  # stops episodes of environments without a turn limit
_RUNS = {"inline": "steps take microseconds", "thread": "steps wait for I/O", "process": "steps use the CPU"}


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    env_fields = ("id",)
    id: str = flag(REQUIRED, help="environment id (see `gem list`)", positional=True)
    env_kwargs: dict[str, Any] = flag({}, help="arguments for the environment, e.g. max_turns=5")
    json: bool = flag(False, help="print a JSON object, whose keys include those of `gem list --json`")


def run(config: Config) -> int:
    spec = ENV_REGISTRY[config.id]
    try:
        env = make(spec.id, **config.env_kwargs)
    except MissingData as e:
        if config.json:
            print_json({**_record(spec, config.env_kwargs), "missing_data": str(e)})
        else:
            _print_facts(spec, config.env_kwargs, summary_rows(spec, None, f"unknown: {e}"))
        return 0
    with env:
        game, optimum, instances = Game(env, SAMPLE_SEED), env.optimum(), env.instances()
        if config.json:
            best = None if optimum is None else optimum._asdict()
            scores = [] if config.env_kwargs else plain_data(reference_scores(spec.id))
            facts = {"optimum": best, "instances": instances, "reference_scores": scores}
            facts["sample"] = _sample_record(spec, game)
            print_json({**_record(spec, config.env_kwargs), **facts})
        else:
            _print_facts(spec, config.env_kwargs, summary_rows(spec, optimum, _count(instances)))
            _sample(spec, game)
    return 0


def _print_facts(spec: EnvSpec, given: Mapping[str, Any], summary: list[tuple[str, str]]) -> None:
    _say(f"{spec.id}\n\n{about(spec)}\n")
    _say("\n".join(table(summary)))
    _say("\nParameters")
    _say("\n".join(table(parameters(spec, given))))
    if spec.stored_scores is not None and not given:
        rows = resolve(spec.stored_scores)(spec.id)
        _say("\n".join(["\nMeasured scores", *table([(f"  {player}", score) for player, score in rows])]))
    if not given and (scores := reference_scores(spec.id)):
        _say("\n".join(["\nReference scores, with 95 % intervals", *table([*map(_reference_row, scores)])]))


def _reference_row(one: ReferenceScore) -> tuple[str, str]:
    return f"  {one.player}", f"score {one.score}, solved {one.solved}, {one.turns:.1f} turns, {one.episodes} episodes"


def _say(text: str) -> None:
    print(wrap_for(sys.stdout, clip(text, MAX_TEXT)))


def _record(spec: EnvSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    required = inspect.Parameter.empty
    values = {**describe_parameters(spec), **given}
    return {
        **record(spec),
        "about": about(spec),
        "parameters": {name: "required" if value is required else value for name, value in values.items()},
    }


def _sample_record(spec: EnvSpec, game: Game) -> dict[str, Any]:
    """Play the sample episode and return it as data: the first observation and all turns."""
    actions = list(_played(spec, game))
    return {
        "seed": SAMPLE_SEED,
        "player": _player_name(spec),
        "observation": shown(game.moments[0]),
        "turns": [
            {"action": action, "observation": shown(moment), "reward": moment.reward}
            for action, moment in zip(actions, game.moments[1:], strict=True)
        ],
        "stop_reason": game.stopped,
    }


def _count(instances: int | None) -> str:
    return "many" if instances is None else "1 episode" if instances == 1 else f"{instances:,} different episodes"


def about(spec: EnvSpec) -> str:
    """Return the docstring of the environment's module up to the first example, or else the spec's description."""
    module = sys.modules.get(getattr(spec.load(), "__module__", ""))
    text = inspect.getdoc(module) if module is not None else None
    return (text or spec.description).partition(">>>")[0].replace("``", "`").strip()


def summary_rows(spec: EnvSpec, optimum: Optimum | None, instances: str) -> list[tuple[str, str]]:
    least, greatest = spec.reward_range
    best = "unknown"
    if optimum is not None:
        best = f"{optimum.success:.1%} of episodes solved, in {optimum.turns:.3g} turns on average ({optimum.name})"
    player = "none"
    if spec.oracle is not None:
        player = f"{spec.oracle}, reads the {spec.oracle_sees or 'observation'}"
    return [
        ("Needs", install_command(spec.extra) if spec.extra else "no extra"),
        ("Runs", f"{spec.runs} ({_RUNS[spec.runs]})"),
        ("Episode reward", f"{least:g} to {greatest:g}"),
        ("Best possible", best),
        ("Instances", instances),
        ("Oracle", player),
    ]


def parameters(spec: EnvSpec, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, value) rows for the parameters. Values from the command line are marked with "(given)"."""
    values = {**describe_parameters(spec), **given}
    shown = {name: "required" if value is inspect.Parameter.empty else repr(value) for name, value in values.items()}
    return [(f"  {name}", value + ("  (given)" if name in given else "")) for name, value in shown.items()]


def _sample(spec: EnvSpec, game: Game) -> None:
    _say(f"\nSample episode, seed {SAMPLE_SEED}, played by {_player_name(spec)}\n\n{shown(game.now)}")
    for action in _played(spec, game):
        if game.turns <= SAMPLE_TURNS or game.stopped is not None:
            if game.turns > SAMPLE_TURNS + 1:
                _say(f"\n… {game.turns - SAMPLE_TURNS - 1} turns omitted …")
            _say(f"\n> {action}\n{shown(game.now)}")
    if game.stopped is None and game.turns < MAX_SAMPLE_TURNS:
        _say("\n(stopped: this environment cannot sample random actions)")
    else:
        _say(f"\n{game.ending()}")


def _player_name(spec: EnvSpec) -> str:
    return "random actions" if spec.oracle is None else "the oracle"


def _played(spec: EnvSpec, game: Game) -> Iterator[str]:
    """Play an episode and yield each action. Stops early if the environment cannot sample random actions."""
    act = _player(spec, game)
    while game.stopped is None and game.turns < MAX_SAMPLE_TURNS:
        try:
            action = act()
        except NotImplementedError:
            return
        game.act(action)
        yield action


def _player(spec: EnvSpec, game: Game) -> Callable[[], str]:
    if spec.oracle is None:
        return game.env.sample_random_action
    player = oracle(game.env)
    return lambda: player.act(game.now.observation)
