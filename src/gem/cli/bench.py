"""Measure how fast environments step.

`vec` steps a vector of environments synchronously on each backend and compares it with the sync backend. The backends
are measured in turn, so that other load on the machine affects all of them; the ratio is the median over the repeats.
Actions are random legal ones, drawn in advance. docs/vector.md describes the backends.

  gem bench vec
  gem bench vec --env game:Wordle-v0 --num-envs 256 --wrappers concat --backends async process
  gem bench vec --markdown >> notes.md
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.table import Table

from gem._internal.counts import check_count
from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.cli.output import console, print_json, progress, wrap_for
from gem.vector import VectorEnv, make_vec
from gem.vector.base import BACKENDS
from gem.wrappers import get_wrapper_fns

DRAWN = 8  # number of actions drawn per slot; they are used cyclically
HEADER = ("backend", "median", "min", "max", "of sync")


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    what: str = flag(REQUIRED, help="what to measure", positional=True, choices=["vec"])
    env: str = flag("game:GuessTheNumber-v0", help="environment")
    num_envs: int = flag(64, help="number of slots")
    steps: int = flag(20_000, help="env-steps per measurement")
    backends: list[str] = flag(
        ["async", "thread", "process"], help="backends to compare with sync", choices=[name for name in BACKENDS]
    )
    wrappers: str = flag("", help="wrapper names, such as 'concat, episode_tracking'")
    repeats: int = flag(5, help="measurements per backend")
    markdown: bool = flag(False, help="print the table as Markdown, with machine and settings")
    json: bool = flag(False, help="print a JSON object with the settings, the machine and the rate of every repeat")


def run(config: Config) -> int:
    for name in ("num_envs", "steps", "repeats"):
        check_count(f"--{name.replace('_', '-')}", getattr(config, name))
    rates = measure(config)
    if config.json:
        settings = {"env": config.env, "num_envs": config.num_envs, "wrappers": config.wrappers, "steps": config.steps}
        print_json({**settings, "machine": _machine(), "steps_per_second": rates})
        return 0
    rows = [row(name, own, rates["sync"]) for name, own in rates.items()]
    if config.markdown:
        print(markdown(rows, config))
    else:
        print(wrap_for(sys.stdout, _title(config)))
        console().print(_table(rows))
        print(_machine())
    return 0


def measure(config: Config) -> dict[str, list[float]]:
    """Return a dict from backend to the env-steps per second of each repeat. The first backend is always sync."""
    names = list(dict.fromkeys(["sync", *config.backends]))
    rates: dict[str, list[float]] = {name: [] for name in names}
    with ExitStack() as opened, progress() as bar:
        task = bar.add_task("starting", total=config.repeats * len(names))
        vec_envs = {name: opened.enter_context(_open(name, config)) for name in names}
        actions = _draw_actions(vec_envs["sync"])
        for _ in range(config.repeats):
            for name, vec_env in vec_envs.items():
                bar.update(task, description=name)
                rates[name].append(steps_per_second(vec_env, actions, config.steps))
                bar.advance(task)
    return rates


def steps_per_second(vec_env: VectorEnv, actions: Sequence[Sequence[str]], steps: int) -> float:
    """Step a vector environment synchronously and return env-steps per second of wall-clock time.

    Args:
        vec_env: the vector environment. It is reset and stepped once with each list of actions before the measurement.
        actions: lists with one action per slot, used cyclically.
        steps: number of env-steps, rounded up to a multiple of the number of slots.
    """
    vec_env.reset(seed=0)
    for actions_B in actions:
        vec_env.step(actions_B)
    rounds = -(-steps // vec_env.num_envs)
    start = time.perf_counter()
    for i in range(rounds):
        vec_env.step(actions[i % len(actions)])
    return rounds * vec_env.num_envs / (time.perf_counter() - start)


def row(name: str, rates: Sequence[float], baseline: Sequence[float]) -> tuple[str, ...]:
    """Return the cells of one table row. ``rates`` and ``baseline`` contain one rate per repeat, in the same order."""
    ratio = statistics.median(own / base for own, base in zip(rates, baseline, strict=True))
    return (name, *(f"{f(rates):,.0f}" for f in (statistics.median, min, max)), f"{ratio:.2f}")


def markdown(rows: Sequence[Sequence[str]], config: Config) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"{_title(config)}, {_machine()}\n\n{table}"


def _open(backend: str, config: Config) -> VectorEnv:
    return make_vec(config.env, get_wrapper_fns(config.wrappers), num_envs=config.num_envs, backend=backend)


def _draw_actions(vec_env: VectorEnv) -> list[list[str]]:
    vec_env.reset(seed=0)
    return [[vec_env.sample_random_action(slot) for slot in range(vec_env.num_envs)] for _ in range(DRAWN)]


def _table(rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE, padding=0, pad_edge=False)
    for name in HEADER:
        table.add_column(name, justify="left" if name == HEADER[0] else "right", overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    return table


def _title(config: Config) -> str:
    wrappers = f" with {config.wrappers}" if config.wrappers else ""
    times = "once" if config.repeats == 1 else f"{config.repeats} times"
    return f"env-steps per second: {config.num_envs} × {config.env}{wrappers}, {config.steps:,} steps, {times}"


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}"
