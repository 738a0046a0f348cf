"""Write tasks in the formats of other systems.

`harbor` writes tasks of terminal environments and of swe:Mini as Harbor folders, one per seed, with a separate
verifier.
Their images start from debian:bookworm. Seeds whose task asks for a running service are left out, and named.

  gem export harbor terminal:Files --seeds 0-9 --output tasks
  gem export harbor swe:Mini --seeds 3,5 --env-kwargs level=1 --output tasks
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem.cli.flags import REQUIRED, flag
from gem.errors import BadValue
from gem.registry import ENV_REGISTRY, make

MAX_SEEDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Config:
    format: str = flag(REQUIRED, help="the format: harbor, or that of a plug-in", positional=True)
    id: str = flag(REQUIRED, help="environment id", positional=True)
    seeds: str = flag("0", help="seeds of the tasks, such as 0-9 or 3,5")
    output: str = flag("tasks", help="folder for the task folders")
    env_kwargs: dict[str, Any] = flag({}, help="arguments of the environment, such as level=1")


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
