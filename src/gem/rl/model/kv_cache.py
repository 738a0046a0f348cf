"""The keys and values of an episode's context, kept for its next turn.

Axes: B sequences, T tokens; keys and values are (B, heads, T, size).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from gem.errors import require
from gem.policies import Request


class KeptContext(NamedTuple):
    """A context that was fed to the model.

    Args:
        ids: its tokens.
        layers: keys and values in each layer, of these tokens and possibly more.
    """

    ids: list[int]
    layers: list[tuple[Tensor, Tensor]]

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values."""
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)


class KeptContexts:
    """The contexts of episodes after their last turn. Those of episodes that ended stay until there is no room.

    Args:
        model: of transformers. Nothing is kept of models with layers that keep other states than keys and values.
        limit: maximum bytes of all contexts; those that are not kept are computed again.

    Attributes:
        nbytes: bytes of all contexts.
    """

    def __init__(self, model: Any, limit: int) -> None:
        self.limit = limit if _keeps_only_keys_and_values(model) else 0
        self.nbytes = 0
        self._weights: Hashable = None
        self._contexts: dict[tuple[int, int], KeptContext] = {}  # by slot and episode, the oldest first

    def clear(self) -> None:
        """Drop all contexts."""
        self._contexts.clear()
        self.nbytes = 0

    def take(self, requests: Sequence[Request], weights: Hashable) -> list[KeptContext | None]:
        """Remove and return what is kept of each prompt: its longest kept beginning, or None if there is none.

        Args:
            weights: identifies the weights of the model. All contexts are dropped when it changes.
        """
        if weights != self._weights:
            self.clear()
            self._weights = weights
        found: list[KeptContext | None] = []
        for request in requests:
            context = self._contexts.pop(request.key[:2], None)
            self.nbytes -= context.nbytes if context is not None else 0
            same = 0 if context is None else _shared(request.prompt_ids, context.ids)
            found.append(KeptContext(context.ids[:same], context.layers) if context is not None and same else None)
        return found

    def put(self, request: Request, sampled_ids: Sequence[int], cache: Any, row: int, start: int) -> None:
        """Keep the context of a request and the sampled tokens. Drops the oldest contexts if the limit is exceeded.

        Args:
            cache: of a batch, with the context in one row from column `start` on.
        """
        ids = [*request.prompt_ids, *sampled_ids]
        part = slice(start, start + len(ids))
        context = KeptContext(ids, [(keys[row, :, part], values[row, :, part]) for keys, values, *_ in cache])
        if context.nbytes > self.limit:
            return
        while self.nbytes + context.nbytes > self.limit:
            self.nbytes -= self._contexts.pop(next(iter(self._contexts))).nbytes
        # Copies, because a slice holds the memory of the whole batch.
        copies = [(keys.clone(), values.clone()) for keys, values in context.layers]
        self._contexts[request.key[:2]] = context._replace(layers=copies)
        self.nbytes += context.nbytes


def _shared(prompt: Sequence[int], ids: list[int]) -> int:
    """Return the number of first tokens that are the same, without the last of the prompt, which has to be fed."""
    limit = min(len(prompt) - 1, len(ids))
    if list(prompt[:limit]) == ids[:limit]:  # the usual case, and fast: the context only grew
        return limit
    return next(t for t in range(limit) if prompt[t] != ids[t])


def _keeps_only_keys_and_values(model: Any) -> bool:
    caches = require("transformers", extra="train").cache_utils
    kinds = {type(layer) for layer in caches.DynamicCache(config=model.config).layers}
    chunked = "chunked_attention" in (getattr(model.config.get_text_config(), "layer_types", None) or ())
    return not chunked and kinds <= {caches.DynamicLayer, caches.DynamicSlidingWindowLayer}


def new_cache(layers: Sequence[tuple[Tensor, Tensor]] = ()) -> Any:
    """Return a cache of transformers that keeps all tokens, also in layers with a sliding window."""
    return require("transformers", extra="train").DynamicCache(layers or None)


def stack(contexts: Sequence[KeptContext], lengths: Sequence[int]) -> Any:
    """Return a cache of the first tokens of each context, padded on the left to equal length."""
    width = max(lengths, default=0)
    if not width:
        return new_cache()

    def stacked(rows: Sequence[Tensor]) -> Tensor:
        return torch.stack([_wide(x[:, :t], width) for x, t in zip(rows, lengths, strict=True)])

    per_layer = zip(*(context.layers for context in contexts), strict=True)
    return _cache_of(per_layer, stacked)


def join(caches: Sequence[Any], order: Sequence[int]) -> Any:
    """Return one cache of the sequences of several, padded on the left, in a new order."""
    width = max(cache.get_seq_length() for cache in caches)

    def joined(parts: Sequence[Tensor]) -> Tensor:
        return torch.cat([_wide(x, width) for x in parts])[list(order)]

    per_layer = zip(*([(keys, values) for keys, values, *_ in cache] for cache in caches), strict=True)
    return _cache_of(per_layer, joined)


def _cache_of(layers: Iterable[Sequence[tuple[Tensor, Tensor]]], combine: Callable[[Sequence[Tensor]], Tensor]) -> Any:
    """Return a cache of the keys and the values of several contexts, combined in each layer."""
    return new_cache([(combine([k for k, _ in parts]), combine([v for _, v in parts])) for parts in layers])


def _wide(x: Tensor, width: int) -> Tensor:
    return pad(x, (0, 0, width - x.shape[-2], 0))
