"""check_rows(): check that the gold answers of a dataset score 1.0 and that wrong answers score 0.0.

The gold answers come from the oracle that the spec names or, if it names none, from the environment's ``gold_action``
method, such as the correct program in a row. The wrong answers come from its ``corrupted`` method, which changes a gold
answer. If this method returns None for a row, only the gold answer of the row is checked. Gold answers that no model's
answer can equal, such as prose, are found without an oracle by the environment's ``row_error``. Of an environment that
is no DatasetTask, the rows are opened and nothing else.

>>> check_rows("logic:Rules", rows=5).detail
'5 of 1,000,000 rows, 5 distinct (100.0%)'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from gem._internal.counts import check_count
from gem._internal.text import counted, one_line, short_repr, shorten
from gem.datasets import DatasetTask, HasRows, Stream
from gem.errors import BadValue, GraderError, InfraError, MissingDependency
from gem.policies import Oracle
from gem.registry import ENV_REGISTRY, EnvSpec, make, resolve
from gem.testing.check import Check, CheckFailed, CheckResult, Unchecked, check, run_checks
from gem.testing.plain_data import canonical

ProgressFunction = Callable[[int, int], None]  # called with (rows done, total rows)
QUESTIONS = 100  # number of generated questions that are checked if rows is None
_WAY_OUT = "Correct or remove these rows; skip_bad_rows=True (--skip-bad-rows) leaves out those that reset() refuses."


@dataclass(frozen=True)
class DatasetTarget:
    """The environment to check, its spec and the other arguments of check_rows()."""

    env: Any
    spec: EnvSpec
    rows: int | None
    progress: ProgressFunction


def check_rows(
    env_or_id: str | EnvSpec, *, rows: int | None = None, progress: ProgressFunction = lambda done, total: None
) -> CheckResult:
    """Answer rows of an environment's dataset with the gold answer and with a wrong answer.

    Args:
        env_or_id: the id or the spec, registered or not, of an environment with ``dataset``, ``reset(idx=…)`` and an
            oracle.
        rows: number of rows to answer, evenly spaced over the dataset. None, or a number larger than the dataset,
            answers all rows. Of an environment that generates questions without rows, such as rg:, the number of
            questions; None is 100.
        progress: called with (rows done, total rows) after each row.

    Returns:
        One result for all rows, with the number of distinct prompts. ``items`` names each row that is malformed or
        fails, with its place and the reason; a row does not keep the rows after it from being checked. The status is
        "unchecked" if the environment has no dataset, or if no row is faulty and there is neither an oracle nor a row
        with a solution.

    Raises:
        UnknownEnv: no environment has this id.
        BadValue: rows < 1.
        InfraError: no answer can be graded, for example without a sandbox. GraderError, such as a timeout, is a fault
            of its row and not raised.
        MissingDependency: an extra that the environment or its grader needs is not installed.
    """
    check_count("rows", rows, optional=True)
    spec = env_or_id if isinstance(env_or_id, EnvSpec) else ENV_REGISTRY[env_or_id]
    with make(spec) as env:
        [result] = run_checks([gold_answers], DatasetTarget(env, spec, rows, progress), case=_propagate)
    return result


@check("gold-answers", "The gold answer of each row scores 1.0, and a wrong answer 0.0.")
def gold_answers(target: DatasetTarget) -> str | None:
    env = target.env.unwrapped
    if not isinstance(env, HasRows):
        return _generated(target)
    if isinstance(dataset := env.dataset, Stream):
        raise Unchecked("the rows of a stream cannot be read by number")
    oracle = _oracle(target) if isinstance(env, DatasetTask) else None  # others can only be asked to open rows
    player = oracle or _RowSolutions(env)
    chosen = list(_spaced_indices(len(dataset), target.rows))
    problems: dict[int, str] = {}
    prompts: Counter[int] = Counter()
    for done, idx in enumerate(chosen, 1):
        row_error = partial(_row_error, target.env, player, idx, prompts)
        if (problem := _problem(dataset.where(idx), row_error)) is not None:
            problems[idx] = problem
        target.progress(done, len(chosen))
    count = f"{len(chosen):,} of {len(dataset):,} rows" if len(chosen) < len(dataset) else f"all {len(dataset):,} rows"
    if prompts:
        count += f", {len(prompts):,} distinct ({len(prompts) / prompts.total():.1%})"
    if isinstance(env, DatasetTask) and (skipped := env.skipped_rows):
        count += f", {skipped:,} malformed rows skipped"
    if problems:
        script = _script(target, _row_lines(env, min(problems), oracle=oracle is not None))
        more = "; rows=None (--rows all) checks all rows" if len(chosen) < len(dataset) else ""
        detail = f"{counted(len(problems), 'faulty row')} in {count}{more}. {_WAY_OUT}"
        raise CheckFailed(detail, script, list(problems.values()))
    if isinstance(player, _RowSolutions) and not player.found:
        raise Unchecked(f"{count}; no gold answer was played, because there is no oracle and no row has a solution")
    return count


class _RowSolutions:
    """Answers with the solutions in the rows. ``found`` counts the rows that have one."""

    def __init__(self, env: Any) -> None:
        self.env, self.found = env, 0

    def act(self, observation: str) -> str | None:
        gold: str | None = self.env.gold_action()
        self.found += gold is not None
        return gold


def _generated(target: DatasetTarget) -> str:
    """Check consecutive questions of seed 0 of an environment without rows whose class has ``answer``, such as rg:."""
    env = target.env
    if not hasattr(type(env.unwrapped), "answer") or (player := _oracle(target)) is None:
        raise Unchecked("the environment has neither a dataset nor gold answers")
    count = target.rows or QUESTIONS
    problems: dict[int, str] = {}
    for number in range(count):
        where = f"question {number} of seed 0"
        if (problem := _problem(where, partial(_question_error, env, player, number))) is not None:
            problems[number] = problem
        target.progress(number + 1, count)
    if problems:
        asked = [f"for _ in range({min(problems)}):", "    env.reset()"]
        script = _script(target, ["env.reset(seed=0)", *asked, "print(env.unwrapped.answer)"])
        detail = f"{len(problems):,} of {counted(count, 'generated question')} failed"
        raise CheckFailed(detail, script, list(problems.values()))
    return counted(count, "generated question")


def _question_error(env: Any, player: Oracle, number: int) -> str | None:
    prompt = env.reset(seed=None if number else 0)[0]
    if env.unwrapped.answer is None:
        return "there is no gold answer"
    return _gold_error(env, player.act(prompt))


def _oracle(target: DatasetTarget) -> Oracle | None:
    name = target.spec.oracle
    return None if name is None else cast(Oracle, resolve(name)(target.env.unwrapped))


def _propagate(check: Check[Any]) -> AbstractContextManager[None]:
    """Return a ``case`` for run_checks() that lets exceptions such as InfraError propagate to the caller."""
    return nullcontext()


def _problem(where: str, check_row: Callable[[], str | None]) -> str | None:
    """Check one row. Returns its place and a description of the problem, or None if there is no problem."""
    try:
        error = check_row()
    except BadValue as e:
        return str(e) if where in str(e) else f"{where}: {e}"
    except GraderError as e:
        return f"{where}: an answer cannot be graded: {e}"
    except (InfraError, MissingDependency):
        raise
    except Exception as e:  # a row may make the environment raise anything, and the other rows must still be checked
        return f"{where}: raised {type(e).__name__}: {shorten(one_line(str(e)), 200)}"
    return None if error is None else f"{where}: {error}"


def _row_error(env: Any, player: Oracle | _RowSolutions, idx: int, prompts: Counter[int]) -> str | None:
    """Check one row and count its prompt."""
    task = env.unwrapped
    if not isinstance(task, DatasetTask):
        task.ask_only([idx], shuffle=False)
        env.reset(seed=0)
        return None
    prompt = env.reset(seed=0, idx=idx)[0]
    prompts[hash(canonical(prompt))] += 1
    error = task.row_error()
    if error is not None or (gold := player.act(prompt)) is None:
        return error
    if (error := _gold_error(env, gold)) is not None:
        return error
    wrong = task.corrupted(gold)
    if wrong is None:
        return None
    env.reset(seed=0, idx=idx)
    if (reward := env.step(wrong)[1]) != 0.0:
        return f"the wrong answer {short_repr(wrong, 60)} scores {reward:g}"
    return None


def _gold_error(env: Any, gold: str) -> str | None:
    reward = env.step(gold)[1]
    return None if reward == 1.0 else f"the gold answer {short_repr(gold, 60)} scores {reward:g}"


def _script(target: DatasetTarget, lines: list[str]) -> list[str]:
    """Return a script that makes the environment and runs these lines; empty if the spec is not registered."""
    env_id = target.spec.id
    return ["import gem", f"env = gem.make({env_id!r})", *lines] if ENV_REGISTRY.get(env_id) == target.spec else []


def _row_lines(env: Any, idx: int, *, oracle: bool) -> list[str]:
    """Return lines that open a row, answer it and show the result."""
    if not isinstance(env, DatasetTask):
        return [f"env.unwrapped.ask_only([{idx}], shuffle=False)", "env.reset(seed=0)"]
    if not oracle:
        return [
            f"env.reset(seed=0, idx={idx})",
            "print(env.unwrapped.row_error())",
            "gold = env.unwrapped.gold_action()",
            "print(gold, gold and env.step(gold))",
        ]
    return [
        f"gold = gem.policies.oracle(env).act(env.reset(seed=0, idx={idx})[0])",
        "print(gold, env.step(gold))",
        f"wrong = env.reset(seed=0, idx={idx}) and env.unwrapped.corrupted(gold)",
        "print(wrong, env.step(wrong))",
    ]


def _spaced_indices(total: int, count: int | None) -> Iterator[int]:
    """Return ``count`` indices evenly spaced over range(total), or all indices if count is None or count >= total."""
    if count is None or count >= total:
        return iter(range(total))
    return (i * total // count for i in range(count))
