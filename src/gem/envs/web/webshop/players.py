"""The oracle of webshop:Mini, and the scores that ``gem info`` shows, which benchmarks/webshop.py writes."""

from __future__ import annotations

import json
from importlib.resources import files

from gem.envs.web.webshop.env import ShopEnv


def boxed(action: str) -> str:
    return rf"\boxed{{{action}}}"


class Oracle:
    """Buys the product that the goal was made from, which it reads from the state."""

    def __init__(self, env: ShopEnv) -> None:
        self.env = env

    def act(self, observation: str) -> str:
        state, goal = self.env.state, self.env.goal()
        product = self.env.catalogue.product(goal.target)
        if goal.target not in state.results:
            return boxed(f"search[{product.title}]")
        if state.product is None:
            if state.results.index(goal.target) // 10 + 1 > state.number:
                return boxed("click[Next >]")
            return boxed(f"click[{product.asin}]")
        wanted = list(goal.options.values() if isinstance(goal.options, dict) else goal.options)
        chosen = [value for _, value in state.options]
        missing = [value for value in wanted if value not in chosen and value in self.env.clickable()]
        return boxed(f"click[{missing[0]}]" if missing else "click[Buy Now]")


def describe(env_id: str) -> list[tuple[str, str]]:
    """Return (player, score) rows for ``gem info``, as measured: the success rate and the mean reward."""
    scores = json.loads((files("gem.envs") / "data" / "webshop" / "baselines.json").read_text(encoding="ascii"))
    return [
        (player, f"success {row['success']:.1%}, mean reward {row['reward']:.2f}") for player, row in scores.items()
    ]
