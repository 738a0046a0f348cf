"""Matrix games of two players, zero-sum: best responses, and equilibria by regret matching.

Source: regret matching+ with linear averaging (Tammelin 2014, arXiv 1407.5042).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Payoffs = npt.NDArray[np.float64]  # of the row player, rows by columns
Mixture = npt.NDArray[np.float64]  # probability of each row or column


def best_response(payoffs: Payoffs, columns: Mixture) -> tuple[int, float]:
    """Return the best row against a mixture of columns, the first of several, and its expected payoff."""
    values = payoffs @ columns
    return int(values.argmax()), float(values.max())


def exploitability(payoffs: Payoffs, rows: Mixture, columns: Mixture) -> float:
    """Return half of the sum of what best responses of both players earn against these mixtures; 0 in equilibrium."""
    return (best_response(payoffs, columns)[1] + best_response(-payoffs.T, rows)[1]) / 2


def equilibrium(payoffs: Payoffs, iterations: int = 2000) -> tuple[Mixture, Mixture]:
    """Return mixtures of the rows and of the columns that are close to an equilibrium."""
    regrets = [np.zeros(size) for size in payoffs.shape]
    averages = [np.zeros(size) for size in payoffs.shape]
    games = payoffs, -payoffs.T
    for iteration in range(1, iterations + 1):
        for player in (0, 1):  # alternating updates
            mine, theirs = _normalized(regrets[player]), _normalized(regrets[1 - player])
            values = games[player] @ theirs
            averages[player] += iteration * mine
            regrets[player] = np.maximum(regrets[player] + values - mine @ values, 0)
    return _normalized(averages[0]), _normalized(averages[1])


def payoff_matrix(scores: Sequence[Sequence[float]]) -> Payoffs:
    return np.array(scores, dtype=np.float64)


def _normalized(weights: Mixture) -> Mixture:
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
