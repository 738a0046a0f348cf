"""Procedurally generated questions with exact answers.

A family is a dataset of a million rows. A row is generated when it is accessed, from a random stream that depends only
on the family, the level and the row number.

All families have the same option ``level``, an integer from 1 to 5. Each level introduces methods of solution that no
lower level needs. Half of the rows of a level use one of its new methods, the others a method of a lower level, with
larger numbers. The columns ``method`` and ``level`` of a row name its method and the level that introduces it.

An answer has to be worked out: ``12+34`` is not an answer to "Compute $12 + 34$."
"""

from __future__ import annotations

from collections.abc import Mapping

from gem._internal.counts import check_count
from gem._internal.imports import resolve
from gem.datasets import Row, Rows
from gem.envs.questions.answer_format import Kind
from gem.envs.questions.families.logic import methods
from gem.envs.questions.families.template import MAX_LEVEL, Methods
from gem.envs.questions.math_env import MathEnv
from gem.envs.questions.math_visual_env import MathVisualEnv
from gem.envs.questions.qa_env import QaEnv
from gem.envs.questions.worked_out import unfinished
from gem.errors import BadValue, did_you_mean
from gem.seeding import stream

ROWS = 1_000_000
MATH_FAMILIES = {
    name: f"gem.envs.questions.families.{name}" for name in ("arithmetic", "algebra", "number_theory", "geometry")
}
VISION_FAMILIES = {name: f"gem.envs.questions.vision.{name}" for name in ("geometry", "charts")}


class Generated(Rows):
    """Rows that are generated when accessed. A row depends only on the name, the level and the row number.

    Args:
        name: name of the family.
        methods: the templates that each level introduces. A template is a function of a random.Random and the level
            that returns a named tuple with the columns of a row.
        level: difficulty; see the module docstring.
        count: number of rows.

    Raises:
        BadValue: unknown level.
    """

    generated = True

    def __init__(self, name: str, methods: Methods, level: int, count: int = ROWS) -> None:
        self.name, self._level, self._count = name, check_level(level), count
        self._new = [(level, template) for template in methods[level]]
        self._earlier = [(lower, template) for lower in range(1, level) for template in methods[lower]]

    def row(self, index: int) -> Row:
        chance = stream(self.name, index, "method")
        level, template = chance.choice(self._new if not self._earlier or chance.random() < 0.5 else self._earlier)
        drawn = template(stream(self.name, self._level, index), self._level)
        row_id = f"{self.name}-{self._level}-{index}"
        return {"id": row_id, "method": template.__name__, "level": level, **drawn._asdict()}

    def __len__(self) -> int:
        return self._count


class _Family(MathEnv):
    """Base class of generated math questions, with and without images."""

    id_prefix: str  # the part of the id before the colon
    families: Mapping[str, str]  # name → module
    request = "Think step by step, carry out all operations"

    def __init__(
        self,
        family: str,
        level: int = 3,
        *,
        seed: int | None = None,
        answer_format: Kind = "boxed",
        timeout: float | None = None,
    ) -> None:
        self.family, self.level = family, level
        rows = Generated(f"{self.id_prefix}:{family}", _methods(self.families, family), level)
        super().__init__(dataset=rows, question_key="text", seed=seed, answer_format=answer_format, timeout=timeout)

    def not_worked_out(self, answer: str) -> str | None:
        return unfinished(answer, self.golds[0]) or super().not_worked_out(answer)


class MathFamilyEnv(_Family):
    """Generated math questions.

    Args:
        family: "arithmetic", "algebra", "number_theory" or "geometry".
        level: difficulty, 1 to 5; see the module docstring.
        seed, answer_format, timeout: see MathEnv.

    Raises:
        BadValue: unknown family or level.
    """

    id_prefix, families = "math", MATH_FAMILIES


class VisionFamilyEnv(_Family, MathVisualEnv):
    """Generated images, each with a question.

    Args:
        family: "geometry" or "charts".
        level: difficulty, 1 to 5; see the module docstring.
        seed, answer_format, timeout: see MathEnv.

    Raises:
        BadValue: unknown family or level.
        MissingDependency: the extra [vision] is not installed.
    """

    id_prefix, families = "vision", VISION_FAMILIES


class LogicRulesEnv(QaEnv):
    """Decide whether a statement follows from facts and rules.

    Args:
        level: difficulty, 1 to 5; see the module docstring.
        depth: number of rules in the chain that decides the statement, 0 to 8. All rows then use the method
            ``conjunction``, whatever the level.
        distractors: number of irrelevant facts; half as many irrelevant rules are added.
        seed, answer_format: see QaEnv.

    Raises:
        BadValue: unknown level, or depth or distractors is out of range.
    """

    def __init__(
        self,
        level: int = 3,
        *,
        depth: int | None = None,
        distractors: int = 6,
        seed: int | None = None,
        answer_format: Kind = "tag",
    ) -> None:
        self.level, self.depth, self.distractors = level, depth, distractors
        check_count("distractors", distractors, 0)
        name = f"logic:Rules-{distractors}" if depth is None else f"logic:Rules-{distractors}-{depth}"
        rows = Generated(name, methods(distractors, depth), level)
        super().__init__(dataset=rows, question_key="text", seed=seed, answer_format=answer_format)

    def sample_random_action(self) -> str:
        return self.format.write(self.action_rng.choice(["True", "False"]))


def check_level(level: object) -> int:
    """Return the level.

    Raises:
        BadValue: it is not an integer from 1 to 5.
    """
    if isinstance(level, int) and not isinstance(level, bool) and 1 <= level <= MAX_LEVEL:
        return level
    near = ""
    if isinstance(level, (int, float, str)) and not isinstance(level, bool):
        try:
            near = f"; did you mean {min(max(round(float(level)), 1), MAX_LEVEL)}?"
        except (ValueError, OverflowError):  # a word, NaN or infinity
            near = ""
    raise BadValue(f"level must be an integer from 1 to {MAX_LEVEL}, got {level!r}{near}")


def _methods(families: Mapping[str, str], family: str) -> Methods:
    if family not in families:
        near = did_you_mean(str(family), families)
        raise BadValue(f"unknown family {family!r}{near}  (families: {', '.join(families)})")
    found: Methods = resolve(families[family]).METHODS
    return found
