"""The corpus: hostile programs in attacks/ and harmless ones in benign/. Their first lines have these fields:

CLASS        attacked resource.
SEVERITY     "must" or "should".
KIND         "benign" for a harmless program.
EXPECT       description of a safe outcome, for readers.
EXPECT_OUT   text in the output of a harmless program, with underscores for blanks.
REQUIRE      text that the output must contain.
GRADE        expected output or value of a test that the program must fail.
FUNC         function that tests call; the program is also run as a script.
STDIN        its input, with \\n for line ends; "big" is 18 MB of numbers.
TIMEOUT      wall-clock limit in seconds.
SHARED       name of a file beside this one that the program starts with.
CPU          limit in CPU seconds. If the program exceeds it, the result must report at least half of it.
COPIES       number of copies that run at the same time.
TESTS        number of tests that also run the program with run_tests(); the input of each is its number.
CELLS        number of cells of a session that also run the program, a second apart; CELL is the number of the cell.
AFTER        seconds to wait after its end for effects of leftover processes.
TRANSFORM    transformation of the source: "null", "surrogate", "huge" or "nested".
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


# Classes of programs that take what others need: honest neighbours run beside these programs.
STARVING = frozenset({"aio", "ipc", "locks", "neighbours", "priority", "starvation"})


@dataclass(frozen=True)
class Program:
    """One program of the corpus. fields: the fields of its first lines."""

    name: str
    source: str
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def benign(self) -> bool:
        return self.fields.get("KIND") == "benign"

    @property
    def kind(self) -> str:
        """The class of a hostile program, or "harmless"."""
        return "harmless" if self.benign else self.fields["CLASS"]

    @property
    def starving(self) -> bool:
        return self.kind in STARVING

    @property
    def copies(self) -> int:
        return int(self.fields.get("COPIES", 1))

    @property
    def stdin(self) -> str:
        given = self.fields.get("STDIN", "")
        return "1 2 3\n" * 3_000_000 if given == "big" else given.replace("\\n", "\n")

    @property
    def expected(self) -> str:
        """Text in the output of a harmless program."""
        return self.fields["EXPECT_OUT"].replace("_", " ")

    def wall_s(self, default: float) -> float:
        return float(self.fields.get("TIMEOUT", default))


def load(path: Path) -> Program:
    """Read a program. The value of GRADE is removed from the source, so that it does not contain the answer."""
    text = path.read_text(encoding="utf-8")
    comments = "\n".join(line for line in text.splitlines()[:4] if line.startswith("#"))
    fields = dict(FIELD.findall(comments))
    source = text.replace(f"GRADE: {fields['GRADE']}", "GRADE: ?") if "GRADE" in fields else text
    if "SHARED" in fields:
        source = Path(__file__).with_name(f"{fields['SHARED']}.py").read_text(encoding="utf-8") + source
    return Program(path.stem, TRANSFORMS.get(fields.get("TRANSFORM", ""), str)(source), fields)


def paths() -> list[Path]:
    """Paths of all programs, sorted."""
    return [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]
