"""What a task of code:Mini is made of: a reference solution that carries its statement, and inputs drawn by chance."""

from __future__ import annotations

import ast
import inspect
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIZES = (3, 5, 8, 12, 20, 40, 80, 150)  # of inputs drawn; what is counted is the task's own business
MOST_TESTS = 12  # as many as CodeEnv runs of a task; of a larger suite it would leave out the shortest, the edges


@dataclass(frozen=True)
class Task(ABC):
    """A programming task.

    Args:
        solve: the reference solution. Its docstring is the statement, its name the id. It stands by itself: besides
            builtins it uses what its module imports from the standard library, and nothing else of the module.
        draw: takes a stream and a size from SIZES; returns an input.
        example: an input and its output, worked out by hand; shown below the statement.
        edges: inputs that chance would miss.
        difficulty: 1 (one loop) to 3 (needs an algorithm, or many rules).
    """

    solve: Callable[..., Any]
    draw: Callable[[random.Random, int], Any]
    example: tuple[Any, Any]
    edges: Sequence[Any] = ()
    difficulty: int = 1

    @property
    def id(self) -> str:
        return self.solve.__name__.replace("_", "-")

    @property
    def statement(self) -> str:
        """The text of the task, each paragraph on one line, and the example."""
        paragraphs = (inspect.getdoc(self.solve) or "").split("\n\n")
        return "\n\n".join([*(" ".join(paragraph.split()) for paragraph in paragraphs), self.shown()])

    def inputs(self, rng: random.Random) -> list[Any]:
        """The example, the edges and an input of each size, the smallest sizes left out where that makes too many."""
        found = [self.example[0], *self.edges]
        for size in SIZES[max(0, len(found) + len(SIZES) - MOST_TESTS) :]:
            given = self.draw(rng, size)
            if given not in found:
                found.append(given)
        return found

    @abstractmethod
    def answer(self, given: Any) -> Any:
        """What the reference makes of an input."""

    @abstractmethod
    def shown(self) -> str:
        """The example, as the statement has it."""

    @abstractmethod
    def tests(self, rng: random.Random) -> dict[str, Any]:
        """Tests in a form that gem.graders.code_tests reads."""

    @abstractmethod
    def program(self) -> str:
        """The reference as a program that passes the tests."""

    def _source(self) -> str:
        return f"{_imports(inspect.getsourcefile(self.solve) or '')}\nimport sys\n\n\n{inspect.getsource(self.solve)}"


class Script(Task):
    """A task whose programs read text and print text; the reference takes the one and returns the other."""

    def answer(self, given: str) -> str:
        return f"{self.solve(given)}\n"

    def shown(self) -> str:
        given, answer = self.example
        return f"Example input:\n{given.rstrip()}\n\nExample output:\n{answer}"

    def tests(self, rng: random.Random) -> dict[str, Any]:
        inputs = self.inputs(rng)
        return {"inputs": inputs, "outputs": [self.answer(given) for given in inputs]}

    def program(self) -> str:
        return f"{self._source()}\n\nprint({self.solve.__name__}(sys.stdin.read()))\n"


class Function(Task):
    """A task whose programs are a function; an input is the list of its arguments, as plain data."""

    def answer(self, given: list[Any]) -> Any:
        return self.solve(*given)

    def shown(self) -> str:
        given, answer = self.example
        return f"Example: {self.solve.__name__}({', '.join(map(repr, given))}) returns {answer!r}."

    def tests(self, rng: random.Random) -> dict[str, Any]:
        inputs = self.inputs(rng)
        return {
            "fn_name": self.solve.__name__,
            "inputs": inputs,
            "outputs": [self.answer(given) for given in inputs],
        }

    def program(self) -> str:
        return self._source()


def integers(rng: random.Random, count: int, low: int, high: int) -> list[int]:
    """Count integers from low to high, both included."""
    return [rng.randint(low, high) for _ in range(count)]


def word(rng: random.Random, length: int, letters: str = "abcdefghijklmnopqrstuvwxyz") -> str:
    return "".join(rng.choice(letters) for _ in range(length))


def words(rng: random.Random, count: int, longest: int, letters: str = "abcdefghijklmnopqrstuvwxyz") -> list[str]:
    """Count words of 1 to ``longest`` letters."""
    return [word(rng, rng.randint(1, longest), letters) for _ in range(count)]


def lines(*rows: Any) -> str:
    """Text with each row on a line; the items of lists and tuples are separated by blanks."""
    return "".join(f"{' '.join(map(str, row)) if isinstance(row, (list, tuple)) else row}\n" for row in rows)


def _imports(path: str) -> str:
    """The lines of a module that import from the standard library."""
    body = ast.parse(Path(path).read_text(encoding="utf-8")).body
    return "\n".join(
        ast.unparse(node)
        for node in body
        if isinstance(node, ast.Import)
        or (isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("gem"))
    )
