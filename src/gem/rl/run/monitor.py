"""Warnings about a training run: conditions of its metrics under which it learns little or nothing.

docs/reference/metrics.md says what to do about each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gem.rl.config import TrainConfig
from gem.rl.metrics import Metrics

IN_A_ROW = 3  # updates in a row in which a condition must hold: single batches vary
MAX_CUT = 0.05  # share of replies that reached the token limit
MAX_EQUAL = 0.75  # share of groups without variance
MAX_GAP = 0.02  # nats; rounding in bfloat16 stays below it
MIN_ENTROPY = 0.05  # of the first update's entropy
MAX_KL = 2.0  # nats; SmolLM2's English went from 2.9 to 17 nats per token at a KL of 6.4
MAX_CLIPPED = 0.3  # share of tokens outside the clip range
SKILLED = 0.9  # success rate from which equal returns and a low entropy are expected


class Condition(NamedTuple):
    """A condition of a row of metrics.

    Args:
        holds: takes the row, the first row of the run and the configuration.
        text: the message, with the row's metrics as format fields.
    """

    holds: Callable[[Metrics, Metrics, TrainConfig], bool]
    text: str


def _equal_share(row: Metrics, config: TrainConfig) -> float:
    """Return the share of groups without variance among the groups played for a batch."""
    equal = row.get("groups_equal", 0)
    return float(equal / (config.batch // config.groups + (equal if config.refill_groups else 0)))


def _unskilled(row: Metrics) -> bool:
    return (row["success"] or 0.0) < SKILLED


WARNINGS: dict[str, Condition] = {
    "cut_replies": Condition(
        lambda row, first, config: (row["cut_replies"] or 0.0) > MAX_CUT,
        "{cut_replies:.0%} of the replies are cut at the token limit and may lack their action; raise --max-new-tokens",
    ),
    "equal_rewards": Condition(
        lambda row, first, config: row["reward_std"] == 0.0 and _unskilled(row),
        "all episodes of a batch have the same reward ({reward:.3g}), so there is nothing to learn; take an easier "
        "environment, a better model or a longer warm-up",
    ),
    "equal_groups": Condition(
        lambda row, first, config: _equal_share(row, config) > MAX_EQUAL and _unskilled(row),
        "in {groups_equal} groups, all episodes have the same return and teach nothing; raise --group-size, or take "
        "tasks that are neither too easy nor too hard",
    ),
    "sampler_gap": Condition(
        lambda row, first, config: (row["sampler_gap"] or 0.0) > MAX_GAP,
        "the log-probabilities of sampler and scorer differ by {sampler_gap:.2g} nats per token; set --truncated-is 2, "
        "and check that both have the same weights, precision and temperature",
    ),
    "low_entropy": Condition(
        lambda row, first, config: row["entropy"] < MIN_ENTROPY * first["entropy"] and _unskilled(row),
        "the entropy fell to {entropy:.2g} nats per token at a success rate of {success:.2f}: the policy no longer "
        "explores; raise --kl or --entropy, or lower --learning-rate",
    ),
    "far_from_start": Condition(
        lambda row, first, config: row.get("kl_to_start", 0.0) > MAX_KL,
        "the policy is {kl_to_start:.2g} nats from where it started, and may have lost what the model could do; raise "
        "--kl or lower --learning-rate",
    ),
    "clipped": Condition(
        lambda row, first, config: row.get("clipped", 0.0) > MAX_CLIPPED,
        "{clipped:.0%} of the tokens are outside the clip range; lower --learning-rate or --epochs, or set bounds "
        "in --loss-options",
    ),
}


class TrainingMonitor:
    """Finds the warnings of each update. Its state depends only on the rows that it was given."""

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._first: Metrics | None = None
        self._in_a_row = dict.fromkeys(WARNINGS, 0)

    def check(self, row: Metrics) -> list[str]:
        """Return the names of the warnings whose conditions held in this and the previous IN_A_ROW - 1 rows."""
        self._first = self._first or row
        for name, warning in WARNINGS.items():
            holds = warning.holds(row, self._first, self._config)
            self._in_a_row[name] = self._in_a_row[name] + 1 if holds else 0
        return [name for name, count in self._in_a_row.items() if count >= IN_A_ROW]
