"""The strategy of a policy in a small game of poker: its probabilities of the moves in every information set.

With gem.envs.table.poker_solver, this gives the exploitability of a policy without playing a game.
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import torch

from gem.messages import user
from gem.rl.model.policy import CausalLMPolicy

_ROWS = 64  # sequences scored at once


class PolicyStrategy(NamedTuple):
    """Probabilities of the moves by information set, named as by gem.envs.table.poker_solver.

    Args:
        moves: of each legal move, given that the reply is the plain action of one; the sum is 1.
        legal: that the reply is the plain action of a legal move: a box and nothing else. The rest of the probability
            is on illegal moves, unreadable replies, and other ways to write a legal move.
    """

    moves: dict[str, dict[str, float]]
    legal: dict[str, float]


class _Choice(NamedTuple):
    """A move in an information set, with the tokens of the context and of the reply."""

    key: str
    move: str
    prompt: list[int]
    reply: list[int]


def strategy_of(policy: CausalLMPolicy, game: Any) -> PolicyStrategy:
    """Return the probabilities with which a policy that plays itself moves, at its temperature.

    The contexts are those of games in which the earlier replies of the player were plain actions too.

    Args:
        game: a game with few positions and the methods of gem.envs.table.poker.PokerEnv, such as
            ``gem.make("cards:KuhnPoker-v0", opponent=None)``; its episode is lost.

    Raises:
        BadValue: the temperature is 0, or top_p is less than 1.
    """
    choices: dict[tuple[str, str], _Choice] = {}
    waiting = set(game.deals())
    for seed in count():
        game.reset(seed=seed)
        if game.position in waiting:
            waiting.remove(game.position)
            _visit(policy, game, {}, choices)
        if not waiting:
            break
    moves: dict[str, dict[str, float]] = {}
    for choice, logp in zip(choices.values(), _logp(policy, list(choices.values())), strict=True):
        moves.setdefault(choice.key, {})[choice.move] = logp
    found = PolicyStrategy({}, {})
    for key, logps in moves.items():
        total = torch.tensor(list(logps.values()), dtype=torch.float64)
        found.legal[key] = float(total.exp().sum())
        found.moves[key] = dict(zip(logps, total.softmax(0).tolist(), strict=True))
    return found


def _visit(
    policy: CausalLMPolicy, game: Any, contexts: dict[str, list[int]], choices: dict[tuple[str, str], _Choice]
) -> None:
    """Collect the choices of all positions that follow that of a game.

    Args:
        contexts: the tokens that each agent was fed and replied with so far.
    """
    if not game.agents:
        return
    agent = game.active_agents()[0]
    seat, text = game.seat_of(agent), game.observe(agent)
    if agent in contexts:
        prompt = [*contexts[agent], *policy.chat.new_ids(contexts[agent], text)]
    else:
        prompt = policy.chat.prompt([user(text)])
    key = f"{seat}{game.information(game.position, seat)}"
    for move in game.legal_moves():
        action = rf"\boxed{{{move}}}"
        reply = policy.chat.encode_reply(action)
        choices.setdefault((key, move), _Choice(key, move, prompt, reply))
        after = game.spawn(same_state=True)
        after.step({agent: action})
        _visit(policy, after, {**contexts, agent: [*prompt, *reply]}, choices)


@torch.no_grad()
def _logp(policy: CausalLMPolicy, choices: list[_Choice]) -> list[float]:
    """Return the log-probability of the reply of each choice, with its end token."""
    found: list[float] = []
    for start in range(0, len(choices), _ROWS):
        part = choices[start : start + _ROWS]
        width = max(len(c.prompt) + len(c.reply) for c in part)
        shape = (len(part), width)
        ids_BT = torch.full(shape, policy.pad_id)
        attend_BT, mask_BT = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
        for row, c in enumerate(part):
            end = len(c.prompt) + len(c.reply)
            ids_BT[row, :end] = torch.tensor([*c.prompt, *c.reply])
            attend_BT[row, :end] = 1
            mask_BT[row, len(c.prompt) : end] = 1
        device = policy.model.device
        scores = policy.score(ids_BT.to(device), attend_BT.to(device), mask_BT.to(device))
        found += scores.logp_BT.double().sum(-1).tolist()
    return found
