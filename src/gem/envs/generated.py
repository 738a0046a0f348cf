"""Procedurally generated questions with exact answers.

A family is a dataset of a million rows. A row is generated when it is accessed, from a random stream that depends only
on the family, the level and the row number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gem._internal.imports import resolve
from gem.datasets import Row, Rows
from gem.envs.answer_format import Kind
from gem.envs.logic_rules import MAX_DEPTH, draw
from gem.envs.math_env import MathEnv
from gem.envs.math_families.template import MAX_LEVEL
from gem.envs.math_visual_env import MathVisualEnv
from gem.envs.qa_env import QaEnv
from gem.errors import BadValue, did_you_mean
from gem.seeding import derive, stream

ROWS = 1_000_000
MATH_FAMILIES = {
    name: f"gem.envs.math_families.{name}" for name in ("arithmetic", "algebra", "number_theory", "geometry")
}
VISION_FAMILIES = {name: f"gem.envs.vision.{name}" for name in ("geometry", "charts")}


class Generated(Rows):
    """Rows that are generated when accessed. A row depends only on the name, the level and the row number.

    Args:
        name: name of the family.
        templates: functions of a random.Random and the level that return a named tuple with the columns of a row.
        level: difficulty, passed to the templates.
        count: number of rows.
    """

    def __init__(self, name: str, templates: Sequence[Callable[..., Any]], level: int, count: int = ROWS) -> None:
        self.name, self._templates, self._level, self._count = name, templates, level, count

    def row(self, index: int) -> Row:
        template = self._templates[derive(self.name, index, "template") % len(self._templates)]
        drawn = template(stream(self.name, self._level, index), self._level)
        kind = getattr(template, "__name__", self.name)
        return {"id": f"{self.name}-{self._level}-{index}", "kind": kind, **drawn._asdict()}

    def __len__(self) -> int:
        return self._count


class _Family(MathEnv):
    """Base class of generated math questions, with and without images."""

    id_prefix: str  # the part of the id before the colon
    families: Mapping[str, str]  # name → module

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
        templates = _templates(self.families, family)
        rows = Generated(f"{self.id_prefix}:{family}", templates, _checked("level", level, MAX_LEVEL))
        super().__init__(dataset=rows, question_key="text", seed=seed, answer_format=answer_format, timeout=timeout)


class MathFamilyEnv(_Family):
    """Generated math questions.

    Args:
        family: "arithmetic", "algebra", "number_theory" or "geometry".
        level: difficulty, 1 (small numbers, few steps) to 5.
        seed, answer_format, timeout: see MathEnv.

    Raises:
        BadValue: unknown family or level.
    """

    id_prefix, families = "math", MATH_FAMILIES


class VisionFamilyEnv(_Family, MathVisualEnv):
    """Generated images, each with a question.

    Args:
        family: "geometry" or "charts".
        level: difficulty, 1 to 5.
        seed, answer_format, timeout: see MathEnv.

    Raises:
        BadValue: unknown family or level.
        MissingDependency: the extra [vision] is not installed.
    """

    id_prefix, families = "vision", VISION_FAMILIES


class LogicRulesEnv(QaEnv):
    """Decide whether a statement follows from facts and rules.

    Args:
        depth: number of rules in the chain that decides the statement, 0 to 8.
        distractors: number of irrelevant facts; half as many irrelevant rules are added.
        seed, answer_format: see QaEnv.

    Raises:
        BadValue: depth or distractors is out of range.
    """

    def __init__(
        self, depth: int = 3, distractors: int = 6, *, seed: int | None = None, answer_format: Kind = "tag"
    ) -> None:
        self.depth, self.distractors = _checked("depth", depth, MAX_DEPTH, least=0), distractors
        if isinstance(distractors, bool) or not isinstance(distractors, int) or distractors < 0:
            raise BadValue(f"distractors must be an integer >= 0, got {distractors!r}")
        rows = Generated(f"logic:Rules-{distractors}", [partial(_statement, distractors)], depth)
        super().__init__(dataset=rows, question_key="text", seed=seed, answer_format=answer_format)

    def sample_random_action(self) -> str:
        return self.format.write(self.action_rng.choice(["True", "False"]))


def _statement(distractors: int, rng: Any, depth: int) -> Any:
    return draw(rng, depth, distractors)


def _templates(families: Mapping[str, str], family: str) -> Sequence[Callable[..., Any]]:
    if family not in families:
        near = did_you_mean(str(family), families)
        raise BadValue(f"unknown family {family!r}{near}  (families: {', '.join(families)})")
    templates: Sequence[Callable[..., Any]] = resolve(families[family]).TEMPLATES
    return templates


def _checked(name: str, value: int, most: int, *, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadValue(f"{name} must be an integer from {least} to {most}, got {value!r}")
    return value
