"""Does a sandbox keep its contract, and what its report promises? Any backend, and any of your own, must pass.

The hostile programs are in tests/sandbox; these checks are short, and safe to run on a machine that one cares for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gem.sandbox import Sandbox
from gem.testing.lab import Broken, Unchecked
from gem.testing.report import Result

Try = Callable[[Sandbox], None]


@dataclass(frozen=True)
class Check:
    """One thing that a sandbox promises.

    Args:
        name: kebab-case.
        says: the promise, in one line.
        attempt: raises Broken where it is broken, Unchecked where that cannot be told.
        guarantee: of the report, without which nothing is promised; None where every sandbox promises it.
    """

    name: str
    says: str
    attempt: Try
    guarantee: str | None

    def judge(self, sandbox: Sandbox) -> Result:
        try:
            if self.guarantee is not None and sandbox.report().guarantees.get(self.guarantee) is None:
                raise Unchecked(f"its report promises nothing of {self.guarantee}")
            self.attempt(sandbox)
        except Unchecked as e:
            return Result(self.name, self.says, "unchecked", str(e))
        except Broken as e:
            return Result(self.name, self.says, "failed", e.what)
        except Exception as e:  # whatever it raises is a finding, and the others go on
            return Result(self.name, self.says, "failed", f"raised {type(e).__name__}: {e}")
        return Result(self.name, self.says, "passed")


def check(name: str, says: str, *, guarantee: str | None = None) -> Callable[[Try], Check]:
    """Make a check of a function. See Check."""
    return lambda attempt: Check(name, says, attempt, guarantee)


def check_sandbox(sandbox: Sandbox, *, started: Callable[[Check], None] = lambda check: None) -> list[Result]:
    """Try everything that a sandbox promises, in about ten seconds.

    Args:
        sandbox: of any backend. It is not closed.
        started: called with each check before it runs.

    Returns a result for each check. None of them raises. What the report does not promise is "unchecked".
    """
    results = []
    for each in checks():
        started(each)
        results.append(each.judge(sandbox))
    return results


def checks() -> tuple[Check, ...]:
    """All of them, in the order in which they are tried."""
    from gem.testing import checks_containment, checks_runs, checks_sessions  # they are made with what is above

    return (*checks_runs.CHECKS, *checks_sessions.CHECKS, *checks_containment.CHECKS)
