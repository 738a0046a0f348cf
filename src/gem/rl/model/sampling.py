"""Feed contexts to a causal language model, and draw tokens from its logits.

Axes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from gem.rl.model.cuda_graphs import DecodeGraphs
from gem.rl.model.kv_cache import (
    BLOCK,
    KeptContext,
    KeptContexts,
    KeyValues,
    Shape,
    feed,
    new_cache,
    shared_beginnings,
)
from gem.rl.model.scoring import CHUNK

# Tokens that could be fed in the time that a forward pass takes by itself: on a CPU to read the weights, on a GPU to
# launch kernels. Another pass pays if it saves more tokens.
PASS_TOKENS, PASS_TOKENS_GPU = 32, 2**15
SHARED = 16  # fewer tokens that prompts begin with, such as those of a chat template, are not looked for
DRAW_BLOCK = 128  # tokens of the vocabulary


@dataclass
class Contexts:
    """The contexts of a batch of prompts, padded on the left, which grow by a token at a time.

    Args:
        cache: of transformers, of the rows that still run.
        attend_BT: their attention mask, 1 on tokens and 0 on padding.
        position_B1: positions of the next tokens; (3, B, 1) for some models that read images.
        logits_BV: logits of the next tokens.
        order: the index of the prompt in each row. Rows that have left come last.
        memory: what the cache writes to; None if no row can leave, because the model keeps other states.
        graphs: what feeds tokens instead of the model; None for the model.

    Attributes:
        steps: tokens fed after the prompts.
        left: the steps after which rows left, by the index of the prompt.
    """

    model: Any
    cache: Any
    attend_BT: Tensor
    position_B1: Tensor
    logits_BV: Tensor
    order: list[int]
    memory: KeyValues | None = None
    graphs: DecodeGraphs | None = None
    steps: int = 0
    left: dict[int, int] = field(default_factory=dict)

    def feed(self, token_B: Tensor) -> None:
        """Feed the next token of each row."""
        if self.memory is not None and self.memory.columns == self.attend_BT.shape[1]:
            (self.graphs or self.memory).grow()
            self._view()
        attend_BT = pad(self.attend_BT, (0, 1), value=1)
        logits_BV = self.graphs.feed(token_B, attend_BT, self.position_B1) if self.graphs is not None else None
        if logits_BV is None:
            if self.graphs is not None:  # the cache does not know of tokens that graphs have fed
                self._view()
            self.cache, logits_BV = feed(self.model, token_B[:, None], attend_BT, self.position_B1, self.cache)
        self.attend_BT, self.logits_BV = attend_BT, logits_BV
        self.position_B1 = self.position_B1 + 1
        self.steps += 1

    def keep(self, rows: Sequence[int]) -> Tensor:
        """Let all rows leave but some, which may be reordered. Returns the earlier index of each remaining row."""
        if self.memory is None:
            raise ValueError("no row can leave")
        before, count = list(range(len(self.attend_BT))), len(rows)
        gaps, moved = sorted(set(range(count)) - set(rows)), [row for row in rows if row >= count]
        self.memory.swap(gaps, moved)
        for gap, row in zip(gaps, moved, strict=True):
            before[gap], before[row] = row, gap
        self.order[: len(before)] = [self.order[row] for row in before]
        self.left |= dict.fromkeys(self.order[count : len(before)], self.steps)
        row_B = torch.tensor(before[:count], device=self.attend_BT.device)
        self.attend_BT, self.position_B1 = self.attend_BT[row_B], self.position_B1[row_B]
        self._view()
        return row_B

    def _view(self) -> None:
        if self.memory is not None:
            self.cache = self.memory.cache(slice(len(self.attend_BT)), 0, self.attend_BT.shape[1])

    def kept(self, prompts: Sequence[list[int]], replies: Sequence[Sequence[int]]) -> list[KeptContext]:
        """Return the contexts of prompts and replies, as far as they were fed."""
        if self.memory is None:
            return []
        width = self.attend_BT.shape[1] - self.steps
        found = {}
        for row, i in enumerate(self.order):
            ids = [*prompts[i], *replies[i][: self.left.get(i, self.steps)]]
            found[i] = KeptContext(ids, self.memory, row, width - len(prompts[i]))
        return [found[i] for i in range(len(prompts))]


def prefill(
    model: Any,
    prompts: Sequence[list[int]],
    known: Sequence[KeptContext | None],
    shapes: Sequence[Shape],
    room: int = 0,
    graphs: DecodeGraphs | None = None,
) -> Contexts:
    """Feed prompts, except what is known of them.

    Each row feeds as many of its last tokens as the row with the most new ones. This takes no more time than padding
    would, and leaves no padding between tokens, which a sliding window would count.

    Args:
        known: first tokens of each prompt, not all; None for none.
        shapes: see cache_shapes().
        room: number of tokens that will follow.
        graphs: what feeds them; None for the model.
    """
    new = [len(ids) - len(context.ids if context else ()) for ids, context in zip(prompts, known, strict=True)]
    passes = _passes(new, _pass_tokens(model))
    order = [i for rows in passes for i in rows]
    ids_BT, attend_BT = (x.to(model.device) for x in pad_left([prompts[i] for i in order], fill=0))
    position_BT = positions(attend_BT)
    width = ids_BT.shape[1]
    size = len(prompts), width + min(room, BLOCK)
    memory = KeyValues.empty(shapes, *size, model.device) if graphs is None else graphs.reserve(shapes, *size)
    logits: list[Tensor] = []
    start = 0
    for part in passes:
        rows, lengths, fed = slice(start, start + len(part)), [len(prompts[i]) for i in part], max(new[i] for i in part)
        memory.clear(rows, width - max(fed, min(lengths)))
        for row, i in enumerate(part, start):
            if (context := known[i]) is not None and len(prompts[i]) > fed:
                memory.copy(row, width - fed, context, len(prompts[i]) - fed)
        first = width - max(lengths)  # the columns before hold only padding
        cache = memory.cache(rows, first, width - fed)
        logits += [feed(model, ids_BT[rows, -fed:], attend_BT[rows, first:], position_BT[rows, -fed:], cache)[1]]
        start = rows.stop
    cache = memory.cache(slice(len(prompts)), 0, width)
    return Contexts(model, cache, attend_BT, position_BT[:, -1:] + 1, torch.cat(logits), order, memory, graphs)


def _passes(new: Sequence[int], least: int) -> list[list[int]]:
    """Split rows into those with few new tokens and those with many, if this feeds that many tokens less."""
    order = sorted(range(len(new)), key=new.__getitem__)
    most = new[order[-1]]
    few = min(range(1, len(new) + 1), key=lambda rows: rows * (new[order[rows - 1]] - most))
    saved = few * (most - new[order[few - 1]])
    return [order[:few], order[few:]] if saved > least else [order]


def _pass_tokens(model: Any) -> int:
    return PASS_TOKENS if model.device.type == "cpu" else PASS_TOKENS_GPU


def with_shared(
    model: Any,
    prompts: Sequence[list[int]],
    known: Sequence[KeptContext | None],
    shapes: Sequence[Shape],
    kept: KeptContexts,
) -> list[KeptContext | None]:
    """Return what is known of prompts, with the beginnings that others share. Such a beginning is fed once, as one row.

    Args:
        known, shapes: see prefill().
        kept: where shared beginnings are looked for, and put.
    """
    found = list(known)
    new = [i for i, context in enumerate(known) if context is None]
    for group, ids in shared_beginnings([prompts[i] for i in new], SHARED):
        context = kept.like(ids)
        missing = len(ids) - len(context.ids if context else ())
        if (len(group) - 1) * missing > _pass_tokens(model):
            memory = prefill(model, [ids], [context], shapes).memory
            assert memory is not None
            context = KeptContext(ids, memory, row=0, start=0)
            kept.put_prefix(context)
        for i in group:
            found[new[i]] = context
    return found


def cache_shapes(model: Any) -> list[Shape]:
    """Return the shapes of keys and values in each layer of a model that keeps nothing else. Feeds one token."""
    one = torch.ones(1, 1, dtype=torch.long, device=model.device)
    cache, _ = feed(model, 0 * one, one, 0 * one, new_cache())
    return [Shape(x.shape[1], x.shape[3], x.dtype) for layer in cache.layers for x in (layer.keys, layer.values)]


def positions(attend_BT: Tensor) -> Tensor:
    """Return the position of each token in its sequence; 0 on padding."""
    return (attend_BT.cumsum(-1) - 1).clamp(min=0)


def pad_left(rows: Sequence[Sequence[int]], fill: int) -> tuple[Tensor, Tensor]:
    """Left-pad prompts to equal length. Returns ids and the attention mask (1 on real tokens), both int64 (B, T)."""
    width = max(len(row) for row in rows)
    ids_BT = torch.tensor([[*[fill] * (width - len(row)), *row] for row in rows])
    attend_BT = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    return ids_BT, attend_BT


def draw(logits_BV: Tensor, uniform_B: Tensor, *, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """Sample one token per sequence by inverse transform sampling.

    Args:
        uniform_B: a number in [0, 1) per sequence, in float64.
        temperature, top_p: see CausalLMPolicy.

    Returns:
        The tokens and their log-probabilities, which are NaN if a logit is NaN or infinite.
    """
    rows = max(1, CHUNK // logits_BV.shape[1])
    parts = zip(torch.split(logits_BV, rows), torch.split(uniform_B, rows), strict=True)
    token_parts, logp_parts = zip(
        *(_draw(logits.float(), uniform, temperature, top_p) for logits, uniform in parts), strict=True
    )
    return torch.cat(token_parts), torch.cat(logp_parts)


def _draw(logits_BV: Tensor, uniform_B: Tensor, temperature: float, top_p: float) -> tuple[Tensor, Tensor]:
    """See draw(). The cumulative distribution is searched by blocks of the vocabulary, then in one block of it.

    Both are summed in float64: over 150,000 tokens, a sum in float32 loses the tail. The sum of one block does not.
    """
    if temperature == 0.0:
        most_B, token_B = logits_BV.max(-1)
        return token_B, most_B - most_B
    if temperature != 1.0:
        logits_BV = logits_BV / temperature
    if top_p < 1.0:
        logits_BV = nucleus(torch.log_softmax(logits_BV, dim=-1), top_p)
    vocabulary = logits_BV.shape[1]
    p_BV = torch.softmax(logits_BV, dim=-1)
    # Axes: N blocks, K tokens of a block.
    p_BNK = pad(p_BV, (0, -vocabulary % DRAW_BLOCK)).view(len(p_BV), -1, DRAW_BLOCK)
    end_BN = p_BNK.sum(-1).double().cumsum(-1)
    target_B1 = uniform_B[:, None] * end_BN[:, -1:]
    block_B1 = torch.searchsorted(end_BN, target_B1, right=True).clamp(max=end_BN.shape[1] - 1)
    end_B1 = end_BN.gather(1, block_B1)
    start_B1 = pad(end_BN, (1, 0)).gather(1, block_B1)
    within_BK = p_BNK[torch.arange(len(p_BNK), device=p_BNK.device), block_B1[:, 0]].double().cumsum(-1)
    target_B1 = (target_B1 - start_B1) / (end_B1 - start_B1) * within_BK[:, -1:]
    token_B1 = block_B1 * DRAW_BLOCK + torch.searchsorted(within_BK, target_B1, right=True)
    token_B1 = token_B1.clamp(max=vocabulary - 1)
    return token_B1[:, 0], p_BV.gather(1, token_B1)[:, 0].log()


def nucleus(logp_BV: Tensor, top_p: float) -> Tensor:
    """Renormalize log-probabilities over the smallest set of most likely tokens with total probability >= top_p."""
    sorted_BV, order_BV = logp_BV.sort(-1, descending=True)
    mass_before_BV = sorted_BV.exp().cumsum(-1) - sorted_BV.exp()
    keep_BV = torch.zeros_like(logp_BV, dtype=torch.bool).scatter(-1, order_BV, mass_before_BV < top_p)
    return torch.log_softmax(logp_BV.masked_fill(~keep_BV, float("-inf")), dim=-1)
