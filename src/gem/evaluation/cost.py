"""What an evaluation costs: prices per token, the cost of a turn, and a limit on what a run may spend.

All amounts are US dollars. A cost that is not known is None, and never 0.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gem._internal.inbound import read_json, read_toml
from gem._internal.typed import Weight, check_fields, check_keys
from gem.errors import BadValue, CallerError, did_you_mean
from gem.policies import Reply, Request
from gem.policies.usage import token_usage
from gem.trajectory import Trajectory, Turn

# Requests that the endpoint refused: nothing was sampled, and nothing is charged.
_REFUSED = ("context_overflow", "content_filter")
_REACHED = "CostLimitReached"


class CostLimitReached(CallerError, RuntimeError):
    """An evaluation has spent its cost limit. What it has recorded is kept, and can be continued with a higher one."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """Prices of a model, in US dollars per million tokens.

    Args:
        input: of the tokens of prompts.
        output: of sampled tokens, hidden reasoning included.
        cached_input: of the tokens of prompts that the endpoint reports as cached; None for the price of input.
    """

    input: Weight
    output: Weight
    cached_input: Weight | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def of(self, prompt: int, completion: int, cached: int = 0) -> float:
        """Return the cost of a request.

        Args:
            prompt: tokens of the prompt, cached ones included.
            completion: sampled tokens.

        >>> Price(input=2.0, output=8.0, cached_input=0.5).of(1_000_000, 100_000, 400_000)
        2.2
        """
        cached_price = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * cached_price + completion * self.output) / 1e6


def read_price(path: str, model: str) -> Price:
    """Return the price of a model from a file of prices, a table per model: JSON, or TOML for another suffix.

    Raises:
        BadValue: the file cannot be read, lacks the model, or has a price that is no number >= 0.
        UnknownArgument: an unknown key.
        MissingDependency: for TOML on Python 3.10 without tomli.
    """
    try:
        data = read_json(path) if path.endswith(".json") else read_toml(Path(path), extra="eval")
    except OSError as e:
        raise BadValue(f"cannot read the prices in {path}: {e.strerror}") from e
    if not isinstance(data, Mapping) or not isinstance(data.get(model), Mapping):
        known = list(data) if isinstance(data, Mapping) else []
        example = f'["{model}"]\ninput = 2.0\noutput = 8.0\ncached_input = 0.5'.replace("\n", "; ")
        raise BadValue(f"{path} has no price of {model!r}{did_you_mean(model, known)}; per million tokens: {example}")
    return _price(f"{path}: {model}", data[model])


def price_of(settings: Mapping[str, Any]) -> Price | None:
    """Return the price in the settings of an evaluation; None without one. Raises CallerError for anything else."""
    return None if settings.get("price") is None else _price("price", settings["price"])


def _price(where: str, data: Any) -> Price:
    if not isinstance(data, Mapping) or not data.keys() >= {"input", "output"}:
        raise BadValue(f"{where} needs the prices of input and output")
    check_keys(where, data, Price.__dataclass_fields__)
    try:
        return Price(**data)
    except BadValue as e:
        raise BadValue(f"{where}: {e}") from e


def turn_cost(turn: Turn, price: Price | None) -> float | None:
    """Return the cost of a turn: at a price, or without one what the endpoint has charged; None if it is not known."""
    return request_cost(token_usage(turn.usage), len(turn.context), len(turn.sampled_ids), turn.finish, price)


def total_cost(turns: Iterable[Turn], price: Price | None) -> float | None:
    """Return the cost of turns; None if that of one is not known, or there is none."""
    return sum_of_known(turn_cost(turn, price) for turn in turns)


def sum_of_known(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs; None if one of them is not known, or there is none."""
    listed = list(costs)
    known = [cost for cost in listed if cost is not None]
    return sum(known) if known and len(known) == len(listed) else None


def known_cost(trajectory: Trajectory, price: Price | None) -> float:
    """Return the cost of an episode, as far as it is known."""
    return sum(turn_cost(turn, price) or 0.0 for turn in trajectory.turns)


def request_cost(
    usage: Mapping[str, Any], fed: int, sampled: int, finish: str | None, price: Price | None
) -> float | None:
    """Return the cost of a request as turn_cost() does, from token_usage() and the numbers of its token ids."""
    if price is None:
        cost = usage.get("cost")
        return 0.0 if cost is None and not usage and finish in _REFUSED else cost
    prompt, completion = usage.get("prompt_tokens") or fed, usage.get("completion_tokens", sampled or None)
    if not prompt or completion is None:
        return 0.0 if not usage and finish in _REFUSED else None
    return price.of(prompt, completion, usage.get("cached_tokens", 0))


class Spending:
    """What a run has spent, counted with each reply. Thread-safe.

    Args:
        price: of the model; None for what the endpoint charges.
        limit: dollars; None for no limit.
    """

    def __init__(self, price: Price | None = None, limit: float | None = None) -> None:
        if limit is not None and not 0 < limit < float("inf"):
            raise BadValue(f"cost_limit must be dollars above 0, got {limit!r}")
        self.price, self.limit = price, limit
        self.spent, self._unknown, self._lock = 0.0, False, threading.Lock()

    def restore(self, trajectory: Trajectory) -> float:
        """Add what an earlier call has spent on an episode, as far as it is known, and return it."""
        cost = known_cost(trajectory, self.price)
        self.spent += cost
        return cost

    def ended(self, trajectory: Trajectory) -> bool:
        """Return whether the limit has ended an episode."""
        return str(trajectory.failure).startswith(_REACHED)

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.spent >= self.limit

    def error(self, how: str = "") -> CostLimitReached:
        """Return the exception for a spent limit.

        Args:
            how: how to go on, for its message.
        """
        return CostLimitReached(f"stopped: ${self.spent:.4g} spent of the cost limit of ${self.limit:g}{how}")

    # What gem.evaluation.options.Budgeted asks of a budget.

    def ending(self, request: Request) -> Reply | None:
        """Return a failed reply if the limit is spent. Raises BadValue if it cannot be kept, as costs are unknown."""
        if self._unknown:
            raise BadValue(
                "cost_limit needs the price of the model: the endpoint reports no cost or no tokens; give price= "
                "(--price-in and --price-out, or --prices)"
            )
        return Reply("", failure=f"{_REACHED}: {self.error()}") if self.is_over else None

    def count(self, request: Request, reply: Reply) -> None:
        """Add the cost of a reply."""
        fed = len(reply.prompt_ids) or len(request.prompt_ids)
        if reply.failure is None:
            cost = request_cost(token_usage(reply.usage), fed, len(reply.sampled_ids), reply.finish, self.price)
            with self._lock:
                self.spent += cost or 0.0
                self._unknown |= cost is None and self.limit is not None
