"""List the environments.

Prints one line per environment: its id, the extras that it needs (- for none), its execution mode in a vector
environment (inline: steps take microseconds; thread: steps wait for I/O; process: steps use the CPU) and its
description, which is wrapped to the width of a terminal. PATH in an id stands for a path or another name, as in
harbor:tasks/hello.

  gem list                  all environments
  gem list game:Wordle      ids with this prefix
  gem list '*-hard'         ids that match a shell pattern
  gem list --json           machine-readable output
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from gem.cli.flags import flag
from gem.cli.output import print_json, table, wrap_for
from gem.errors import UnknownEnv
from gem.registry import EnvSpec, list_envs, near_id

_HEADER = ("ID", "NEEDS", "RUNS", "DESCRIPTION")


@dataclass(frozen=True, kw_only=True)
class Config:
    pattern: str = flag("*", help="id prefix, or a shell-style pattern such as 'game:*'", positional=True)
    json: bool = flag(False, help="print a JSON array that includes reward ranges and oracles")


def run(config: Config) -> int:
    specs = matching(config.pattern, paths=True)
    if config.json:
        print_json([record(spec) for spec in specs])
        return 0
    lines = table([_HEADER, *((s.id, s.extra or "-", s.runs, s.description) for s in specs)])
    print(wrap_for(sys.stdout, "\n".join(lines), column=lines[0].index(_HEADER[-1])))
    return 0


def matching(pattern: str, *, paths: bool = False) -> list[EnvSpec]:
    """Return what list_envs() does. Raises UnknownEnv if nothing matches."""
    if specs := list_envs(pattern, paths=paths):
        return specs
    raise UnknownEnv(f"no env matches {pattern!r}{near_id(pattern)}  (`gem list` shows all)")


def record(spec: EnvSpec) -> dict[str, Any]:
    """Return a spec as data for JSON. ``path`` is None for an id that can be made as it is."""
    return {
        "id": spec.id,
        "description": spec.description,
        "needs": spec.extra,
        "runs": spec.runs,
        "reward_range": spec.reward_range,
        "oracle": spec.oracle,
        "path": spec.path,
    }
