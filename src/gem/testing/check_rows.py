"""check_rows(): check that the gold answers of a dataset score 1.0 and that wrong answers score 0.0.

The gold answers come from the oracle that the spec names or, if it names none, from the environment's ``gold_action``
method, such as the correct program in a row. The wrong answers come from its ``corrupted`` method, which changes a gold
answer. If this method returns None for a row, only the gold answer of the row is checked. Gold answers that no model's
answer can equal, such as prose, are found without an oracle by the environment's ``row_error``.

>>> check_rows("logic:Rules", rows=5).detail
'5 of 1,000,000 rows, 5 distinct (100.0%)'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from gem._internal.counts import check_count
from gem._internal.text import shorten
from gem.datasets import DatasetTask, Stream
from gem.errors import BadValue, GraderError
from gem.policies import Oracle, oracle
from gem.registry import EnvSpec, make
from gem.testing.check import Check, CheckFailed, CheckResult, Unchecked, check, run_checks
from gem.testing.plain_data import canonical

ProgressFunction = Callable[[int, int], None]  # called with (rows done, total rows)


@dataclass(frozen=True)
class DatasetTarget:
    """The environment to check and the other arguments of check_rows()."""

    env: Any
    rows: int | None
    progress: ProgressFunction


def check_rows(
    env_or_id: str | EnvSpec, *, rows: int | None = None, progress: ProgressFunction = lambda done, total: None
) -> CheckResult:
    """Answer rows of an environment's dataset with the gold answer and with a wrong answer.

    Args:
        env_or_id: the spec or the id of an environment with ``dataset``, ``reset(idx=…)`` and an oracle.
        rows: number of rows to answer, evenly spaced over the dataset. None, or a number larger than the dataset,
            answers all rows.
        progress: called with (rows done, total rows) after each row.

    Returns:
        One result for all rows, with the number of distinct prompts. ``items`` names each row that is malformed or
        fails. The status is "unchecked" if the environment has no dataset, or if it has no oracle and no row is faulty.

    Raises:
        UnknownEnv: no environment has this id.
        BadValue: rows < 1.
        InfraError: a sandbox or another server failed. A row whose gold answer cannot be graded is named instead.
    """
    check_count("rows", rows, optional=True)
    with make(env_or_id) as env:
        [result] = run_checks([gold_answers], DatasetTarget(env, rows, progress), case=_propagate)
    return result


@check("gold-answers", "The gold answer of each row scores 1.0, and a wrong answer 0.0.")
def gold_answers(target: DatasetTarget) -> str | None:
    env = target.env.unwrapped
    if not isinstance(env, DatasetTask):
        raise Unchecked("the environment has no dataset")
    if isinstance(dataset := env.dataset, Stream):
        raise Unchecked("the rows of a stream cannot be read by number")
    player = _oracle(target.env) or _RowSolutions(env)
    chosen = list(_spaced_indices(len(dataset), target.rows))
    problems: dict[int, str] = {}
    prompts: Counter[int] = Counter()
    for done, idx in enumerate(chosen, 1):
        if (problem := _problem(target.env, player, idx, prompts)) is not None:
            problems[idx] = problem
        target.progress(done, len(chosen))
    count = f"{len(chosen):,} of {len(dataset):,} rows" if len(chosen) < len(dataset) else f"all {len(dataset):,} rows"
    if prompts:
        count += f", {len(prompts):,} distinct ({len(prompts) / prompts.total():.1%})"
    if skipped := env.skipped_rows:
        count += f", {skipped:,} malformed rows skipped"
    if problems:
        script = _reproduction(target.env.env_id, min(problems), oracle=not isinstance(player, _RowSolutions))
        raise CheckFailed(f"{len(problems):,} of {count}", script, list(problems.values()))
    if isinstance(player, _RowSolutions) and not player.found:
        raise Unchecked(f"{count}; no gold answer was played, because the environment has no oracle and no solutions")
    return count


class _RowSolutions:
    """Answers with the solutions in the rows. ``found`` counts the rows that have one."""

    def __init__(self, env: DatasetTask) -> None:
        self.env, self.found = env, 0

    def act(self, observation: str) -> str | None:
        gold = self.env.gold_action()
        self.found += gold is not None
        return gold


def _oracle(env: Any) -> Oracle | None:
    try:
        return oracle(env)
    except BadValue:
        return None


def _propagate(check: Check[Any]) -> AbstractContextManager[None]:
    """Return a ``case`` for run_checks() that lets exceptions such as InfraError propagate to the caller."""
    return nullcontext()


def _problem(env: Any, player: Oracle | _RowSolutions, idx: int, prompts: Counter[int]) -> str | None:
    """Check one row and count its prompt. Returns a description of the problem, or None if there is no problem."""
    where = env.unwrapped.dataset.where(idx)
    try:
        prompt = env.reset(seed=0, idx=idx)[0]
    except BadValue as e:
        return str(e) if where in str(e) else f"{where}: {e}"
    prompts[hash(canonical(prompt))] += 1
    if (error := env.unwrapped.row_error()) is not None:
        return f"{where}: {error}"
    gold = player.act(prompt)
    if gold is None:
        return None
    try:
        reward = env.step(gold)[1]
    except GraderError as e:
        return f"{where}: the gold answer {shorten(gold, 60)} cannot be graded: {e}"
    if reward != 1.0:
        return f"{where}: the gold answer {shorten(gold, 60)} scores {reward:g}"
    wrong = env.unwrapped.corrupted(gold)
    if wrong is None:
        return None
    env.reset(seed=0, idx=idx)
    if (reward := env.step(wrong)[1]) != 0.0:
        return f"{where}: the wrong answer {shorten(wrong, 60)} scores {reward:g}"
    return None


def _reproduction(env_id: str, idx: int, *, oracle: bool) -> list[str]:
    if not oracle:
        return [
            "import gem",
            f"env = gem.make({env_id!r})",
            f"env.reset(seed=0, idx={idx})",
            "print(env.unwrapped.row_error())",
            "gold = env.unwrapped.gold_action()",
            "print(gold, gold and env.step(gold))",
        ]
    return [
        "import gem",
        "from gem.policies import oracle",
        f"env = gem.make({env_id!r})",
        f"gold = oracle(env).act(env.reset(seed=0, idx={idx})[0])",
        "print(gold, env.step(gold))",
        f"wrong = env.reset(seed=0, idx={idx}) and env.unwrapped.corrupted(gold)",
        "print(wrong, env.step(wrong))",
    ]


def _spaced_indices(total: int, count: int | None) -> Iterator[int]:
    """Return ``count`` indices evenly spaced over range(total), or all indices if count is None or count >= total."""
    if count is None or count >= total:
        return iter(range(total))
    return (i * total // count for i in range(count))
