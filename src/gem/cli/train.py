"""Train a policy with reinforcement learning.

Collects batches of episodes, updates the policy after each batch and evaluates it periodically. On a data set, the
evaluation uses rows that are held back from training, or another split (--eval-split); elsewhere it
plays fresh seeds. Without --model, a tiny language model is built first. A short SFT warm-up on random legal actions
teaches the output format, unless --model writes it already; RL does the rest. Files go to runs/<name>/: config.json,
metrics.jsonl, trajectories.jsonl, evaluations.jsonl, curve.png, checkpoints/, and reference/, the weights that the KL
penalty compares with.

Ctrl-C or SIGTERM finishes the current update and saves a checkpoint; a second one stops immediately. --resume continues
a run from its newest checkpoint, bit-identically unless environments or tools run on threads or in processes (--backend
sync runs them one after another). With --steps, it lengthens a run, even a finished one; the learning rate then decays
over the new number of updates. --until stops a run early.

  gem train
  gem train --env game:GuessTheNumber-v0-hard --steps 1000
  gem train --env game:GuessTheNumber-v0-easy=2 math:Arithmetic=1 --eval-env math:Arithmetic qa:Facts
  gem train --model ./Qwen3-0.6B --env game:GuessTheNumber-v0-easy --batch 32 --minutes 30
  gem train --env board:TicTacToe-v0 --self-play --opponents latest=.8 past=.2
  gem train --config smollm2-guess
  gem train --config run.toml --seed 0 1 2
  gem train --until greedy=.99,sampled=.9
  gem train --resume runs/game-GuessTheNumber-v0-easy-seed0
  gem train --resume runs/game-GuessTheNumber-v0-easy-seed0 --steps 400
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from gem._internal.text import clip
from gem.cli import output
from gem.cli.data import DataFlags
from gem.cli.flags import flag
from gem.cli.output import MAX_TEXT, is_stopped, on_signals, print_json, resumable
from gem.core import Optimum
from gem.errors import BadValue, require
from gem.rl.checks import check_names, check_trainable
from gem.rl.config import TrainConfig
from gem.rl.config_file import read_config
from gem.rl.metrics import Metrics, modes
from gem.rl.run.folder import RunFolder
from gem.rl.run.monitor import WARNINGS
from gem.rl.run.plots import CURVES, RecordedRun, draw_curves
from gem.trajectory import Trajectory

if TYPE_CHECKING:
    from gem.rl.data.imitation import WarmUp
    from gem.rl.run.trainer import Trainer

MOST = 0.5  # readable replies after a warm-up, below which there is a warning
LONGER = frozenset({"steps", "minutes"})  # flags that --resume allows
_HELP = {f.name: dict(f.metadata) for f in fields(TrainConfig)}


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags, TrainConfig):
    env_fields = ("env", "eval_env")
    env: list[str] = field(default_factory=lambda: [TrainConfig().title], metadata=_HELP["env"])
    eval_env: list[str] = field(default_factory=list, metadata=_HELP["eval_env"])
    seed: list[int] = flag(  # type: ignore[assignment]
        [0], help=f"{_HELP['seed']['help']}; for several, one run after another"
    )
    config: str | None = flag(
        None,
        help="TOML file with these settings and a table per environment, or the name of a recipe, e.g. smollm2-guess; "
        "flags replace it",
    )
    dry_run: bool = flag(
        False,
        help="do not train: print the resolved configuration, which --config reads, on stdout, and estimates of "
        "memory and disk and two conversations with the tokens that are trained on stderr",
    )
    resume: str | None = flag(
        None,
        help="folder of a run to continue; besides, only --json, --trust and, for a longer run, --steps and --minutes "
        "are allowed",
    )
    trust: bool = flag(
        False, help="with --resume: let a folder that this user has not made on this machine choose what runs"
    )
    json: bool = flag(False, help="print the results as JSON, and the progress on stderr")
    given: frozenset[str] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        """Leave all checks to TrainConfig, because --config may hold the other half of a setting."""


def run(config: Config) -> int:
    console = output.console(stderr=config.json or config.dry_run)
    runs = _settings(config) if config.resume is None else [_resumed(config)]
    if config.resume is None:
        if config.trust:
            raise BadValue("--trust has no effect without --resume")
        for settings in runs:
            check_names(settings)
            RunFolder.free_path(settings)
    if config.dry_run:
        return _dry_run(config, runs[0], console)
    records: list[dict[str, Any]] = []
    for settings in runs:
        if records and is_stopped():
            raise KeyboardInterrupt
        records.append(_train(config, settings, console))
    if config.json:
        print_json(records if len(records) > 1 else records[0])
    return 0


def _dry_run(config: Config, settings: TrainConfig, console: Console) -> int:
    if config.json:
        raise BadValue("--dry-run prints TOML; drop --json")
    check_trainable(settings)
    console.print(f"Loading {settings.model or 'the embedded model'}.", soft_wrap=True, markup=False, highlight=False)
    texts = require("gem.rl.run.dry_run", extra="train").dry_run(settings)
    print(next(texts), end="", flush=True)
    for text in texts:
        console.print(text, soft_wrap=True, markup=False, highlight=False)
    return 0


def _train(config: Config, settings: TrainConfig, console: Console) -> dict[str, Any]:
    """Start or resume a run, and return the results. Raises KeyboardInterrupt if it was stopped."""
    console.print(
        f"Starting: {settings.title}, {settings.steps} updates of {settings.batch} episodes.",
        soft_wrap=not console.is_terminal,
    )
    if config.resume is None:
        check_trainable(settings)
    trainer_class = require("gem.rl.run.trainer", extra="train").Trainer  # imports PyTorch, which takes seconds
    if config.resume is None:
        trainer = trainer_class.start(settings)
    else:
        trainer = trainer_class.resume(config.resume, trust=config.trust, **_longer(config))
    folder = str(trainer.folder.path)
    with trainer, resumable("train", folder):
        optimum = trainer.optimum
        console.print(
            f"evaluation: {trainer.evaluation.description}", soft_wrap=not console.is_terminal, highlight=False
        )
        console.print(str(trainer.disk), soft_wrap=not console.is_terminal, highlight=False)
        with _Display(console, trainer.config.steps, optimum) as display, _stop_requests(console) as requests:
            trainer.run(display.update, display.imitation, display.loaded, display.untrained, lambda: bool(requests))
        metrics = trainer.folder.read_metrics()
        if metrics:
            title = f"{trainer.config.title}, seed {trainer.config.seed}"
            draw_curves(trainer.folder.curve, [RecordedRun.read(trainer.folder.path)], CURVES, title)
        if not trainer.done:
            console.print(f"Saved after update {trainer.update}.")
            raise KeyboardInterrupt
        if not config.json:
            _report(console, trainer, metrics[-1], optimum)
        return _record(trainer, metrics[-1], optimum)


def _record(trainer: Trainer, last: dict[str, Any], optimum: Optimum | None) -> dict[str, Any]:
    return {
        "env": trainer.config.title,
        "seed": trainer.config.seed,
        "updates": trainer.update,
        "reached": trainer.reached if trainer.config.until else None,
        "episodes": trainer.episodes,
        "folder": str(trainer.folder.path),
        "evaluation": trainer.evaluation.description,
        "loaded": trainer.loaded or None,
        "untrained": {mode: scores for mode, scores in trainer.untrained.items() if mode != "game"},
        "trained": last["eval"],
        "optimum": None if optimum is None else optimum._asdict(),
        "time": last["time"],
    }


def _report(console: Console, trainer: Trainer, last: dict[str, Any], optimum: Optimum | None) -> None:
    if trainer.config.until:
        console.print(_outcome(trainer.config.targets, trainer.update, trainer.reached), highlight=False)
    if trainer.config.minutes is not None and trainer.update < trainer.config.steps and not trainer.reached:
        console.print(f"Ended after update {trainer.update}, with {trainer.config.minutes:g} minutes.", highlight=False)
    states = {
        "as it was loaded": trainer.loaded,
        "after the warm-up (format only, no skill)": trainer.untrained,
        "trained": last["eval"],
    }
    console.print(_results(trainer.evaluation.description, states, optimum))
    console.print(_side_by_side(Trajectory.from_json(trainer.untrained["game"]), trainer.show_game()))
    time = last["time"]
    console.print(
        f"{trainer.update} updates, {trainer.episodes} episodes, {time['seconds']:.0f} s of wall clock, "
        f"{time['cpu_seconds']:.0f} s of CPU, {time['peak_memory_mib']:.0f} MiB.\n"
        f"Curve, metrics, trajectories and checkpoints: {shlex.quote(str(trainer.folder.path))}",
        soft_wrap=True,
    )


def _outcome(targets: dict[str, float], update: int, reached: bool) -> str:
    rates = " and ".join(f"{mode} success of at least {rate:g}" for mode, rate in targets.items())
    if reached:
        return f"Stopped after update {update}: {rates} in two evaluations in a row."
    return f"Did not reach {rates} in two evaluations in a row within {update} updates."


def _settings(config: Config) -> list[TrainConfig]:
    """Return the configuration of each run: that of --config, with the flags that were given."""
    settings = {} if config.config is None else read_config(config.config)
    settings |= {f.name: getattr(config, f.name) for f in fields(TrainConfig) if f.name in config.given}
    seeds = config.seed if "seed" in config.given else [settings.get("seed", 0)]
    if len(set(seeds)) < len(seeds):
        raise BadValue(f"--seed names a seed twice: {' '.join(map(str, seeds))}")
    if len(seeds) > 1 and settings.get("name") is not None:
        return [TrainConfig(**settings | {"seed": seed, "name": f"{settings['name']}-seed{seed}"}) for seed in seeds]
    return [TrainConfig(**settings | {"seed": seed}) for seed in seeds]


def _resumed(config: Config) -> TrainConfig:
    """Return the configuration of the run to resume, which it keeps. Raises BadValue for flags that would change it."""
    own = [*(f.name for f in fields(TrainConfig)), "config", "dry_run"]
    changed = [name for name in own if name in config.given - LONGER]
    if changed:
        raise BadValue(f"--resume keeps the run's own configuration; drop --{changed[0].replace('_', '-')}")
    assert config.resume is not None
    _, settings = RunFolder.open(config.resume, trust=config.trust)
    return replace(settings, **_longer(config))


def _longer(config: Config) -> dict[str, Any]:
    """Return what a resumed run is lengthened to: those of the flags LONGER that were given."""
    return {name: getattr(config, name) for name in config.given & LONGER}


@contextmanager
def _stop_requests(console: Console) -> Iterator[list[str]]:
    """Collect requests to stop after the current update, which are signals; the second raises KeyboardInterrupt."""
    requests: list[str] = []

    def request(*signal: object) -> None:
        if requests:
            raise KeyboardInterrupt
        requests.append("Finishing this update, then saving. Press Ctrl-C again to stop at the last checkpoint.")
        console.print(requests[0])

    with on_signals(request):
        yield requests


class _Display:
    """Shows live progress on a terminal, or otherwise prints one line per evaluation."""

    def __init__(self, console: Console, updates: int, optimum: Optimum | None) -> None:
        self.console, self.optimum = console, optimum
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=console,
        )
        self.warm_up = self.progress.add_task("warm-up on random play", total=None, visible=False)
        self.taught: WarmUp | None = None
        self.training = self.progress.add_task("updates", total=updates, start=False)
        self.evaluation = "not yet"
        self.warned: set[str] = set()
        self.live = Live(self.progress, console=console, refresh_per_second=4) if console.is_terminal else None
        self.shown = ExitStack()

    def __enter__(self) -> _Display:
        if self.live is not None:
            self.shown.enter_context(output.live(self.live))
        return self

    def __exit__(self, *exception: object) -> None:
        self.shown.close()

    def imitation(self, state: WarmUp) -> None:
        checked = state.readable is not None and (self.taught is None or state.readable != self.taught.readable)
        self.taught = state
        text = f"warm-up on random play: {_taught(state)}"
        self.progress.update(self.warm_up, completed=state.tokens, description=text, visible=True)
        if self.live is None and checked:
            self.console.print(text, soft_wrap=True, highlight=False)

    def loaded(self, scores: dict[str, Any]) -> None:
        self._print_scores("as loaded", scores)

    def untrained(self, scores: dict[str, Any]) -> None:
        if self.taught is not None and self.taught.steps:
            text = f"after the warm-up (format only): {_taught(self.taught)}"
            self.console.print(text, soft_wrap=True, highlight=False)
            if self.taught.readable is not None and self.taught.readable < MOST:
                self.console.print(
                    "warning: most replies still cannot be read, and such episodes have equal rewards; take an easier "
                    "environment, a better model, or more --imitation-steps",
                    soft_wrap=True,
                    highlight=False,
                )
        self._print_scores("before learning", scores)

    def _print_scores(self, when: str, scores: dict[str, Any]) -> None:
        self.console.print(
            f"{when}, evaluation: sampled {_score(scores['sampled'], self.optimum)}; "
            f"{modes(scores)[0]} {_score(scores[modes(scores)[0]], None)}",
            soft_wrap=not self.console.is_terminal,
        )

    def update(self, metrics: dict[str, Any]) -> None:
        self.progress.start_task(self.training)  # at the first update; later calls have no effect
        self.progress.update(self.training, completed=metrics["update"])
        if "eval" in metrics:
            self.evaluation = _score(metrics["eval"][modes(metrics["eval"])[0]], self.optimum)
        if self.live is not None:
            self.live.update(self._panel(metrics))
        elif "eval" in metrics:
            self.console.print(
                f"update {metrics['update']}  episodes {metrics['episodes']}  {_score(metrics, self.optimum)}  "
                f"reward {_number(metrics['reward'])}  entropy {metrics['entropy']:.2f}  "
                f"{metrics['time']['episodes_per_second']:.0f} episodes/s  evaluation: {self.evaluation}",
                soft_wrap=True,
            )

        for name in metrics["warnings"]:
            if name not in self.warned:
                self.warned.add(name)
                text = WARNINGS[name].text.format_map(metrics)
                self.console.print(f"warning, update {metrics['update']}: {text}", soft_wrap=True, highlight=False)

    def _panel(self, metrics: dict[str, Any]) -> Group:
        rows = Table.grid(padding=(0, 2))
        rows.add_row("episodes", f"{metrics['episodes']}  ({metrics['time']['episodes_per_second']:.0f}/s)")
        rows.add_row("training", _score(metrics, self.optimum))
        rows.add_row("evaluation", self.evaluation)
        rows.add_row("reward", _number(metrics["reward"]))
        rows.add_row("entropy", f"{metrics['entropy']:.3f} nats per token")
        return Group(rows, self.progress)


def _taught(state: WarmUp) -> str:
    """Describe how far the warm-up is."""
    parts = [f"{state.tokens:,} tokens"]
    parts += [] if state.loss is None else [f"loss {state.loss:.2f}"]
    parts += [] if state.readable is None else [f"{state.readable:.0%} of the replies readable"]
    return ", ".join(parts)


def _number(value: float | None, digits: int = 3) -> str:
    return "none" if value is None else f"{value:.{digits}f}"


def _score(summary: dict[str, Any], optimum: Optimum | None) -> str:
    """Format the success rate and the mean turns of won games. The optimum is appended if it is known."""
    best = "" if optimum is None else f" (best {optimum.turns:.2f})"
    cut = f", {summary['overflowed']:.0%} cut: too long for the model" if summary["overflowed"] else ""
    return f"success {_number(summary['success'])}, turns when won {_number(summary['turns_when_won'], 2)}{best}{cut}"


def _results(description: str, states: dict[str, Metrics], optimum: Optimum | None) -> Table:
    numbers = [Column(name, justify="right") for name in ("success", "turns when won")]
    table = Table("policy", *numbers, title=f"Evaluation: {description}", title_justify="left")
    trained = states["trained"]
    rows = [
        (f"{state}, {mode}", scores[mode])
        for mode in reversed(modes(trained))
        for state, scores in states.items()
        if scores
    ]
    for name, by_mode in trained.get("sets", {}).items():
        rows += [(f"trained, {mode}: {name}", by_mode[mode]) for mode in reversed(by_mode)]
    for name, scores in rows:
        table.add_row(name, _number(scores["success"]), _number(scores["turns_when_won"], 2))
    if optimum is not None:
        table.add_row(optimum.name, f"{optimum.success:.3f}", f"{optimum.turns:.2f}")
    return table


def _side_by_side(before: Trajectory, after: Trajectory) -> Table:
    """Build a table with the same game played before and after training."""
    table = Table("untrained", "trained", title="The first game of the evaluation", title_justify="left")
    for lines in zip_longest(_transcript(before), _transcript(after), fillvalue=""):
        table.add_row(*map(Text, lines))
    return table


def _transcript(game: Trajectory) -> list[str]:
    shown = [*[turn.observation for turn in game.turns], game.final_observation]
    lines = [clip(str(shown[0]), MAX_TEXT)]
    for turn, observation in zip(game.turns, shown[1:], strict=True):
        lines += [clip(f"> {turn.action}", MAX_TEXT), clip(str(observation), MAX_TEXT)]
    return [*lines, f"[{game.stop_reason}, reward {game.total_reward:g}]"]
