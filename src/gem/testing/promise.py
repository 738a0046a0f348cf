"""A promise: its name, what it says, and the function that tries to see it broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gem.testing.lab import Broken, Lab, Unchecked
from gem.testing.report import Result

Try = Callable[[Lab], "str | None"]


@dataclass(frozen=True)
class Promise:
    """One thing that environments promise.

    Args:
        name: kebab-case.
        says: the promise, in one line.
        attempt: raises Broken when the promise is broken, Unchecked when that cannot be told; returns what else is
            worth knowing, None for nothing.
        needs: promises without which this one cannot be tried.
    """

    name: str
    says: str
    attempt: Try
    needs: tuple[str, ...]

    def judge(self, lab: Lab) -> Result:
        """Try it, and remember in the lab how that went."""
        if causes := [lab.broken[name] for name in self.needs if name in lab.broken]:
            lab.broken[self.name] = causes[0]
            return Result(self.name, self.says, "unchecked", f"it can be tried once {causes[0]!r} passes")
        lab.scene()
        try:
            note = self.attempt(lab)
        except Unchecked as e:
            if self.name == "protocol":  # what cannot be played leaves nothing to try
                lab.broken[self.name] = self.name
            return Result(self.name, self.says, "unchecked", str(e))
        except Broken as e:
            lab.sign(e)
            lab.broken[self.name] = self.name
            return Result(self.name, self.says, "failed", e.what, "\n".join(e.script))
        finally:
            lab.scene()
        lab.passed.add(self.name)
        return Result(self.name, self.says, "passed", note or "")


def promise(name: str, says: str, *, needs: tuple[str, ...] = ("protocol",)) -> Callable[[Try], Promise]:
    """Make a promise of a function. See Promise."""
    return lambda attempt: Promise(name, says, attempt, needs)
