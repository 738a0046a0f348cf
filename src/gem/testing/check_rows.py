"""Does the gold answer of every row of a data set score 1.0, and a wrong one 0.0?

The gold answers are said by the oracle that the spec names. Wrong ones are made of them by the environment's
``spoiled``; where it knows no way, they are left out.

>>> check_rows("math:Arithmetic", rows=5).detail
'5 of 1,000,000 rows'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gem._internal.text import shorten
from gem.errors import BadValue
from gem.policies import Oracle, oracle
from gem.registry import EnvSpec, make
from gem.testing.report import Result

NAME = "gold-answers"
SAYS = "The gold answer of each row scores 1.0, and a wrong one 0.0."
SHOWN = 5  # rows that are told of, where many are amiss

Watch = Callable[[int, int], None]


def check_rows(env_or_id: str | EnvSpec, *, rows: int | None = None, watch: Watch | None = None) -> Result:
    """Answer the rows of an environment's data set, each rightly and wrongly.

    Args:
        env_or_id: an environment over rows: with ``dataset``, ``reset(idx=…)`` and an oracle.
        rows: how many, spread over the whole in the order of the file; None, or more than there are, takes all.
        watch: called with (rows done, rows to be done) after each.

    Returns "unchecked" for what has no rows, and without an oracle. A row that cannot be opened is among what failed,
    by file and row. Raises BadValue for rows < 1, InfraError where an answer cannot be judged, and what make() raises.
    """
    if rows is not None and rows < 1:
        raise BadValue(f"rows must be at least 1, got {rows!r}")
    with make(env_or_id) as env:
        dataset = getattr(env.unwrapped, "dataset", None)
        if dataset is None or not hasattr(env.unwrapped, "spoiled"):
            return Result(NAME, SAYS, "unchecked", "it has no rows")
        try:
            player = oracle(env)
        except BadValue as e:
            return Result(NAME, SAYS, "unchecked", str(e))
        chosen = list(_spread(len(dataset), rows))
        found = _Found()
        for done, idx in enumerate(chosen, 1):
            found.add(idx, _amiss(env, player, idx))
            if watch is not None:
                watch(done, len(chosen))
        return found.result(env, len(chosen), len(dataset))


@dataclass
class _Found:
    """idx → what is amiss with the row."""

    amiss: dict[int, str] = field(default_factory=dict)

    def add(self, idx: int, what: str | None) -> None:
        if what is not None:
            self.amiss[idx] = what

    def result(self, env: Any, count: int, total: int) -> Result:
        of = f"{count:,} of {total:,} rows" if count < total else f"all {total:,} rows"
        skipped = getattr(env.unwrapped, "skipped_rows", 0)
        of += f", {skipped:,} bad ones left out" if skipped else ""
        if not self.amiss:
            return Result(NAME, SAYS, "passed", of)
        told = "; ".join(list(self.amiss.values())[:SHOWN])
        more = f"; and {len(self.amiss) - SHOWN:,} more" if len(self.amiss) > SHOWN else ""
        return Result(
            NAME, SAYS, "failed", f"{len(self.amiss):,} of {of}: {told}{more}", _program(env, min(self.amiss))
        )


def _amiss(env: Any, player: Oracle, idx: int) -> str | None:
    """What is amiss with a row; None for nothing."""
    where = env.unwrapped.dataset.where(idx)
    try:
        gold = player.act(env.reset(seed=0, idx=idx)[0])
    except BadValue as e:
        return str(e) if where in str(e) else f"{where}: {e}"
    if (complaint := env.unwrapped.complaint()) is not None:
        return f"{where}: {complaint}"
    if (reward := env.step(gold)[1]) != 1.0:
        return f"{where}: the gold answer {shorten(gold, 60)} scores {reward:g}"
    wrong = env.unwrapped.spoiled(gold)
    if wrong is None:
        return None
    env.reset(seed=0, idx=idx)
    if (reward := env.step(wrong)[1]) != 0.0:
        return f"{where}: the wrong answer {shorten(wrong, 60)} scores {reward:g}"
    return None


def _program(env: Any, idx: int) -> str:
    return "\n".join(
        [
            "import gem",
            "from gem.policies import oracle",
            f"env = gem.make({env.env_id!r})",
            f"gold = oracle(env).act(env.reset(seed=0, idx={idx})[0])",
            "print(gold, env.step(gold))",
            f"wrong = env.reset(seed=0, idx={idx}) and env.unwrapped.spoiled(gold)",
            "print(wrong, env.step(wrong))",
        ]
    )


def _spread(total: int, count: int | None) -> Iterator[int]:
    """The numbers of count rows, evenly over all of them."""
    if count is None or count >= total:
        return iter(range(total))
    return (i * total // count for i in range(count))
