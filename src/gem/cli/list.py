"""List the environments.

Prints one line per environment: its id, the extra that it needs (- for none), its execution mode in a vector
environment (inline: steps take microseconds; thread: steps wait for I/O; process: steps use the CPU) and its
description. On a terminal, lines are cut to the terminal's width.

  gem list                  all environments
  gem list game:Wordle      ids with this prefix
  gem list '*-hard'         ids that match a shell pattern
  gem list --json           machine-readable output
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gem.cli.flags import flag
from gem.errors import UnknownEnv, did_you_mean
from gem.registry import ENV_REGISTRY, EnvSpec, list_envs

_HEADER = ("ID", "NEEDS", "RUNS", "DESCRIPTION")


@dataclass(frozen=True, kw_only=True)
class Config:
    pattern: str = flag("*", help="id prefix, or a shell-style pattern such as 'game:*'", positional=True)
    json: bool = flag(False, help="print a JSON array that includes reward ranges and oracles")


def run(config: Config) -> int:
    specs = list_envs(config.pattern)
    if not specs:
        ids = sorted(ENV_REGISTRY)
        raise UnknownEnv(
            f"no env matches {config.pattern!r}{_closest(config.pattern, ids)}  (`gem list` shows all {len(ids)})"
        )
    if config.json:
        print(json.dumps([_record(spec) for spec in specs], indent=1))
        return 0
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in table([_HEADER, *((s.id, s.extra or "-", s.runs, s.description) for s in specs)]):
        print(line[:width])
    return 0


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as lines with aligned columns.

    >>> table([("a", "x"), ("long", "y")])
    ['a     x', 'long  y']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _closest(pattern: str, ids: Sequence[str]) -> str:
    part = pattern.strip("*").casefold()
    holding = [i for i in ids if part and part in i.casefold()]
    families = sorted({f"{i.partition(':')[0]}:*" for i in ids})
    return f"; did you mean {holding[0]!r}?" if holding else did_you_mean(pattern, [*families, *ids])


def _record(spec: EnvSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "description": spec.description,
        "needs": spec.extra,
        "runs": spec.runs,
        "reward_range": [bound if math.isfinite(bound) else None for bound in spec.reward_range],
        "oracle": spec.oracle,
    }
