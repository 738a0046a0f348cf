"""List the environments.

Prints one line per environment: its id, the extras that it needs (- for none), its execution mode in a vector
environment (inline: steps take microseconds; thread: steps wait for I/O; process: steps use the CPU) and its
description, which is wrapped to the width of a terminal.

  gem list                  all environments
  gem list game:Wordle      ids with this prefix
  gem list '*-hard'         ids that match a shell pattern
  gem list --json           machine-readable output
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gem.cli.flags import flag
from gem.cli.output import print_json, wrap_for
from gem.errors import UnknownEnv
from gem.registry import ENV_REGISTRY, EnvSpec, list_envs, near_id

_HEADER = ("ID", "NEEDS", "RUNS", "DESCRIPTION")


@dataclass(frozen=True, kw_only=True)
class Config:
    pattern: str = flag("*", help="id prefix, or a shell-style pattern such as 'game:*'", positional=True)
    json: bool = flag(False, help="print a JSON array that includes reward ranges and oracles")


def run(config: Config) -> int:
    specs = list_envs(config.pattern)
    if not specs:
        near = near_id(config.pattern)
        raise UnknownEnv(f"no env matches {config.pattern!r}{near}  (`gem list` shows all {len(ENV_REGISTRY)})")
    if config.json:
        print_json([record(spec) for spec in specs])
        return 0
    lines = table([_HEADER, *((s.id, s.extra or "-", s.runs, s.description) for s in specs)])
    print(wrap_for(sys.stdout, "\n".join(lines), column=lines[0].index(_HEADER[-1])))
    return 0


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as lines with aligned columns.

    >>> table([("a", "x"), ("long", "y")])
    ['a     x', 'long  y']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def record(spec: EnvSpec) -> dict[str, Any]:
    """Return a spec as data for JSON."""
    return {
        "id": spec.id,
        "description": spec.description,
        "needs": spec.extra,
        "runs": spec.runs,
        "reward_range": spec.reward_range,
        "oracle": spec.oracle,
    }
