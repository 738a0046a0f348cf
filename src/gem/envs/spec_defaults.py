"""What the specifications of the built-in environments share."""

from __future__ import annotations

from typing import Any, Literal

from gem.registry import EnvSpec

FORMAT_ERROR = -0.1  # reward of an action that cannot be read
BASELINE = 0.25  # maximum mean reward of policies that ignore the task; the oracle earns 1.0
ANSWERS = "questions.answer_format:AnswerOracle"  # the oracle of questions, which replies with the gold answer


def built_in(
    env_id: str,
    entry: str,
    kwargs: dict[str, Any],
    text: str,
    *,
    oracle: str | None,
    oracle_sees: Literal["observation", "state"] = "state",
    baseline: float | None = BASELINE,
    lowest: float = FORMAT_ERROR,
    stored_scores: str | None = None,
    **fields: Any,
) -> EnvSpec:
    """Return the spec of an environment of gem.envs.

    Args:
        entry, oracle, stored_scores: "module:name" below gem.envs; None for none.
        baseline: maximum mean reward of policies that ignore the task; None if not known.
        lowest: minimum reward of an episode. The maximum is 1.
        fields: other fields of the spec.
    """
    return EnvSpec(
        id=env_id,
        entry_point=f"gem.envs.{entry}",
        kwargs=kwargs,
        reward_range=(lowest, 1.0),
        oracle=oracle and f"gem.envs.{oracle}",
        oracle_sees=oracle_sees if oracle else None,
        baseline_scores={} if baseline is None else dict.fromkeys(["constant", "echo", "repeat-last"], baseline),
        stored_scores=stored_scores and f"gem.envs.{stored_scores}",
        description=text,
        **fields,
    )
