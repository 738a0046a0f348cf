"""Write tasks in the formats of other systems.

The task of each seed becomes a file or folder in --output. Seeds whose task the format cannot hold are left out, and
named.

  gem export harbor terminal:Files --seeds 0-9 --output tasks
  gem export harbor swe:Mini --seeds 3,5 --env-kwargs level=1 --output tasks
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem.cli.data import DataFlags
from gem.cli.flags import REQUIRED, flag
from gem.cli.output import table
from gem.errors import BadValue, CallerError
from gem.registry import ENV_REGISTRY, make

MAX_SEEDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Config(DataFlags):
    env_fields = ("id",)
    format: str = flag(REQUIRED, help="one of the formats above", positional=True)
    id: str = flag(REQUIRED, help="environment id", positional=True)
    seeds: str = flag("0", help="seeds of the tasks, such as 0-9 or 3,5")
    output: str = flag("tasks", help="folder for the tasks")
    env_kwargs: dict[str, Any] = flag({}, help="arguments of the environment, such as level=1")


def more_help() -> str:
    """Return a line per registered format, with the first line of its exporter's docstring, for the help text."""
    names = ENV_REGISTRY.export_formats()
    return "\n".join(["formats:", *table([(f"  {name}", _summary(name)) for name in names])])


def _summary(name: str) -> str:
    try:
        exporter = ENV_REGISTRY.exporter(name)
    except CallerError:  # it cannot be imported; `gem export` says why
        return ""
    return (inspect.getdoc(exporter) or "").partition("\n")[0]


def run(config: Config) -> int:
    seeds, export = read_seeds(config.seeds), ENV_REGISTRY.exporter(config.format)
    written = 0
    with make(config.id, **config.env_kwargs) as env:
        write = export(env)
        Path(config.output).mkdir(parents=True, exist_ok=True)
        for seed in seeds:
            env.reset(seed=seed)
            name = f"{re.sub(r'[^a-z0-9]+', '-', config.id.lower())}-{seed}"
            try:
                write(Path(config.output, name), name)
            except BadValue as e:
                print(f"left out: {e}", file=sys.stderr)
                continue
            written += 1
    print(f"wrote {written} of {len(seeds)} tasks to {config.output}")
    return 0 if written else 1


def read_seeds(text: str) -> list[int]:
    """Return seeds from numbers and ranges. Raises BadValue.

    >>> read_seeds("0-2,7")
    [0, 1, 2, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise BadValue(f"seeds are numbers and ranges such as 0-9 or 3,5, got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if len(found) + last - first >= MAX_SEEDS:
            raise BadValue(f"--seeds names more than {MAX_SEEDS} seeds: {text!r}; export them in parts")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))
