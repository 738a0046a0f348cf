"""The corpus: hostile programs in attacks/, harmless ones in benign/, described by the comments that they open with.

CLASS        what it attacks.
SEVERITY     "must" or "should".
KIND         "benign" for a harmless one.
EXPECT       for people: what a safe end is.
EXPECT_OUT   text in the output of a harmless one, underscores for blanks.
REQUIRE      text that has to reach the caller whatever happened.
GRADE        the expected output or value of a test that must not be passed.
FUNC         the function that tests call; the program is run as a script, too.
STDIN        what it reads, with \\n for line ends; "big" is 18 MB of numbers.
TIMEOUT      its wall-clock limit in seconds.
AFTER        seconds to wait after its end for what it may have left to act.
TRANSFORM    done to the source first: "null", "surrogate", "huge" or "nested".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

SANDBOX_TESTS = Path(__file__).resolve().parent.parent
FOLDERS = (SANDBOX_TESTS / "attacks", SANDBOX_TESTS / "benign")
FIELD = re.compile(r"\b([A-Z]+(?:_OUT)?): *(\S+)")
TRANSFORMS = {
    "null": lambda source: source + "\0\n",
    "surrogate": lambda source: source + "# \ud800\n",
    "huge": lambda source: source + "# " + "y" * 3_000_000 + "\n",
    "nested": lambda source: source + "x = " + "(" * 100_000 + ")" * 100_000 + "\n" + "-" * 1_000_000 + "1\n",
}


@dataclass(frozen=True)
class Program:
    """One program of the corpus. fields: what its comments say."""

    name: str
    source: str
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def benign(self) -> bool:
        return self.fields.get("KIND") == "benign"

    @property
    def stdin(self) -> str:
        given = self.fields.get("STDIN", "")
        return "1 2 3\n" * 3_000_000 if given == "big" else given.replace("\\n", "\n")

    @property
    def expected(self) -> str:
        """Of a harmless program: text that its output holds."""
        return self.fields["EXPECT_OUT"].replace("_", " ")

    def wall_s(self, default: float) -> float:
        return float(self.fields.get("TIMEOUT", default))


def load(path: Path) -> Program:
    """Read a program. Its grade is taken out of what is run: no program is told the answer."""
    text = path.read_text(encoding="utf-8")
    comments = "\n".join(line for line in text.splitlines()[:4] if line.startswith("#"))
    fields = dict(FIELD.findall(comments))
    source = text.replace(f"GRADE: {fields['GRADE']}", "GRADE: ?") if "GRADE" in fields else text
    return Program(path.stem, TRANSFORMS.get(fields.get("TRANSFORM", ""), str)(source), fields)


def paths() -> list[Path]:
    """All of the corpus, in order."""
    return [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]
