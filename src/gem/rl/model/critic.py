"""A critic: the value of the state before each turn, read at the last token of its prompt.

With a causal model, only the hidden state at that position depends on the whole prompt and on nothing of the reply.
Axes: B sequences, T tokens, H hidden size, K turns of one episode.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from gem.errors import InfraError
from gem.rl.estimate.advantages import Floats
from gem.rl.estimate.batch import Example, collate, minibatches
from gem.rl.estimate.losses import BETAS
from gem.rl.model.scoring import body_output
from gem.trajectory import Trajectory


class Critic:
    """A value head, which starts at 0, on a copy of the policy's model or on that model itself.

    Args:
        model: a causal language model as loaded by transformers.
        pad_id: token that pads the sequences.
        learning_rate: of AdamW.
        max_norm: maximum gradient norm.
        shared: use the model itself, which its owner trains: accumulate() adds to its gradient, and step() changes the
            head only. If False, the model is copied in float32, and the copy is trained with the head.
        bf16: compute the layers below the head with bfloat16 where torch.autocast does.
    """

    def __init__(
        self,
        model: Any,
        pad_id: int,
        *,
        learning_rate: float,
        max_norm: float,
        shared: bool = False,
        bf16: bool = False,
    ) -> None:
        width = model.get_input_embeddings().weight.shape[1]
        with torch.random.fork_rng(devices=[]):  # leaves the global stream alone
            head = torch.nn.Linear(width, 1).to(model.device)
        torch.nn.init.zeros_(head.weight)
        torch.nn.init.zeros_(head.bias)
        self.shared, self.bf16, self._head = shared, bf16, head
        # bfloat16 weights, which LoRA freezes, would round small updates to nothing.
        self._model = model if shared else copy.deepcopy(model).float().requires_grad_(True)
        self.network = torch.nn.ModuleDict({"head": head} if shared else {"model": self._model, "head": head})
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=learning_rate, betas=BETAS, weight_decay=0.0)
        self.pad_id, self.max_norm = pad_id, max_norm

    @torch.no_grad()
    def values(self, batch: Sequence[Example], size: int) -> list[list[float]]:
        """Return the values of the turns of each episode of a packed batch, in order.

        Args:
            size: sequences per forward pass.
        """
        found: list[list[float]] = [[] for _ in range(1 + max(e.episode for e in batch))]
        for start in range(0, len(batch), size):
            chosen = batch[start : start + size]
            for example, row in zip(chosen, self._scores(chosen).tolist(), strict=True):
                found[example.episode] += [row[t] for t, _ in prompt_ends(example)]
        return found

    def fit(
        self,
        batch: Sequence[Example],
        targets: Sequence[Floats],
        size: int,
        order: Random,
        micro_batch: int | None = None,
    ) -> list[float]:
        """Run one epoch of regression on the returns of the turns of each episode. Returns the losses of its steps.

        Args:
            size: sequences per step, at most; the batch is divided evenly.
            micro_batch: sequences per forward pass; None for all of a step.

        Raises:
            InfraError: if the gradient is not finite.
        """
        losses = []
        for minibatch in minibatches(batch, size, order):
            self.optimizer.zero_grad()
            losses.append(self.accumulate(minibatch, targets, size=micro_batch))
            self.step()
        return losses

    def accumulate(
        self, minibatch: Sequence[Example], targets: Sequence[Floats], weight: float = 1.0, size: int | None = None
    ) -> float:
        """Add the gradient of weight times the loss of a minibatch to that of the parameters. Returns the loss.

        Args:
            targets: for each episode of the batch, the return from each turn on.
            size: sequences per forward pass; None for all.
        """
        total, turns = 0.0, sum(len(prompt_ends(e)) for e in minibatch)
        size = size or len(minibatch)
        for start in range(0, len(minibatch), size):
            chosen = minibatch[start : start + size]
            ends = [(b, t, targets[e.episode][k]) for b, e in enumerate(chosen) for t, k in prompt_ends(e)]
            rows, columns, returns = zip(*ends, strict=True)
            scores_BT = self._scores(chosen)
            errors_N = scores_BT[list(rows), list(columns)] - scores_BT.new_tensor(returns)
            loss = (errors_N**2).sum() / (2 * turns)
            (weight * loss).backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total

    def step(self) -> None:
        """Change the weights of the critic by one step of its optimizer. Raises InfraError for an infinite gradient."""
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.max_norm)
        if not torch.isfinite(norm):
            raise InfraError(
                f"the gradient of the critic is {float(norm)}; the last checkpoint is intact, "
                "but a new run needs a lower learning_rate in --critic-options"
            )
        self.optimizer.step()

    def _scores(self, chosen: Sequence[Example]) -> Tensor:
        mb = collate(chosen, self.pad_id).to(self._model.device)
        with torch.autocast(self._model.device.type, torch.bfloat16, enabled=self.bf16):
            hidden_BTH = body_output(self._model, mb.ids_BT, mb.attend_BT).last_hidden_state
        scores_BT: Tensor = self._head(hidden_BTH.to(self._head.weight.dtype))[..., 0]
        return scores_BT


def prompt_ends(example: Example) -> list[tuple[int, int]]:
    """Return (position of the last token of the prompt, turn) of each turn in a sequence."""
    turn_T = example.sequence.turn_T
    return [(t - 1, turn_T[t]) for t in range(1, len(turn_T)) if turn_T[t] >= 0 and turn_T[t] != turn_T[t - 1]]


def final_value(trajectory: Trajectory, values_K: Sequence[float]) -> float:
    """Return the value after the last turn.

    It is 0 where the task is over, also at a turn limit that is one of its rules. At a limit outside the task, the
    value before the last turn stands in for that of the next state, which may be too long for the model.
    """
    return values_K[-1] if trajectory.outside_limit else 0.0


def explained_variance(values_N: Floats, returns_N: Floats) -> float | None:
    """Return 1 - Var(returns - values) / Var(returns); None if the returns are constant."""
    spread = float(returns_N.var())
    return None if spread <= 1e-12 else 1.0 - float((returns_N - values_N).var()) / spread
