"""Keys and values of contexts: those of a batch in memory that is allocated ahead, and those kept between turns.

Axes: B sequences, T tokens; keys and values are (B, heads, T, size).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from gem.errors import BadValue, require
from gem.policies import Request

KEPT_MIB = 1024
BLOCK = 64  # tokens for which memory is allocated at once


class Shape(NamedTuple):
    """The keys, or the values, of one layer."""

    heads: int
    size: int
    dtype: torch.dtype


class KeyValues:
    """Keys and values of the sequences of a batch, which are padded on the left to equal length.

    Layers of one shape share one tensor, so that a sequence is copied in one call.

    Args:
        shapes: keys and values of the first layer, of the second, and so on.
        blocks: the tensor of each shape (layers, B, heads, T, size). T includes columns for further tokens.
    """

    def __init__(self, shapes: Sequence[Shape], blocks: dict[Shape, Tensor]) -> None:
        self.shapes, self._blocks = shapes, blocks

    @staticmethod
    def empty(shapes: Sequence[Shape], rows: int, columns: int, device: torch.device) -> KeyValues:
        """Allocate memory without setting it."""
        blocks = {
            shape: torch.empty(count, rows, shape.heads, columns, shape.size, dtype=shape.dtype, device=device)
            for shape, count in Counter(shapes).items()
        }
        return KeyValues(shapes, blocks)

    @property
    def rows(self) -> int:
        """Number of sequences."""
        return next(iter(self._blocks.values())).shape[1]

    @property
    def columns(self) -> int:
        """Number of tokens per sequence that there is memory for."""
        return next(iter(self._blocks.values())).shape[3]

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(block.nbytes for block in self._blocks.values())

    def cache(self, rows: slice, start: int, end: int, column_1: Tensor | None = None) -> Any:
        """Return a cache of transformers for some sequences, which writes further tokens into this memory.

        Args:
            start, end: the columns that it holds.
            column_1: where one token is written, among those columns; None to write after them.
        """
        columns = slice(start, None if column_1 is None else end)
        views = {shape: iter(block[:, rows, :, columns].unbind()) for shape, block in self._blocks.items()}
        parts = iter([next(views[shape]) for shape in self.shapes])
        cache = new_cache()
        layer = _layer_class()
        cache.layers = [layer(keys, values, end - start, column_1) for keys, values in zip(parts, parts, strict=True)]
        return cache

    def clear(self, rows: slice, end: int) -> None:
        """Set the columns before `end` to 0: attention multiplies those of padding by 0, which NaN would survive."""
        for block in self._blocks.values():
            block[:, rows, :, :end] = 0

    def copy(self, row: int, end: int, context: KeptContext, count: int) -> None:
        """Copy the first tokens of a context to the columns before `end`."""
        for block, other in zip(self._blocks.values(), context.memory._blocks.values(), strict=True):
            block[:, row, :, end - count : end] = other[:, context.row, :, context.start : context.start + count]

    def swap(self, first: Sequence[int], second: Sequence[int]) -> None:
        """Exchange sequences pairwise."""
        for block in self._blocks.values():
            block[:, [*first, *second]] = block[:, [*second, *first]]

    def without(self, rows: int) -> KeyValues:
        """Return a copy without the first sequences."""
        return KeyValues(self.shapes, {shape: block[:, rows:].clone() for shape, block in self._blocks.items()})

    def grow(self) -> None:
        """Allocate memory for BLOCK more tokens."""
        self._blocks = {shape: pad(block, (0, 0, 0, BLOCK)) for shape, block in self._blocks.items()}


@functools.cache
def _layer_class() -> Any:
    base: Any = require("transformers", extra="train").cache_utils.DynamicLayer

    class InPlaceLayer(base):  # type: ignore[misc]
        """A layer of a cache that writes new tokens behind those that it has, instead of copying all of them."""

        def __init__(self, keys: Tensor, values: Tensor, length: int, column_1: Tensor | None) -> None:
            super().__init__()
            self.keys, self.values, self.length, self.column_1 = keys, values, length, column_1
            self.is_initialized = True

        def update(self, keys: Tensor, values: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
            if self.column_1 is not None:
                return self.keys.index_copy_(2, self.column_1, keys), self.values.index_copy_(2, self.column_1, values)
            start, self.length = self.length, self.length + keys.shape[-2]
            self.keys[:, :, start : self.length] = keys
            self.values[:, :, start : self.length] = values
            return self.keys[:, :, : self.length], self.values[:, :, : self.length]

        def get_seq_length(self) -> int:
            return self.length

    return InPlaceLayer


class KeptContext(NamedTuple):
    """A context that was fed to the model.

    Args:
        ids: its tokens.
        memory, row, start: where its keys and values are; `start` is the column of the first token.
    """

    ids: list[int]
    memory: KeyValues
    row: int
    start: int

    def shared(self, ids: list[int]) -> KeptContext | None:
        """Return the first tokens that are the same; None if there are none."""
        same = _shared(ids, self.ids)
        return self._replace(ids=same) if same else None


class KeptContexts:
    """The contexts of episodes after their last turn. Those of episodes that ended stay until there is no room.

    Nothing is copied: the memory of a batch is kept while one of its contexts is.

    Args:
        limit: maximum bytes of all contexts; those that are not kept are computed again.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._weights: Hashable = None
        self._contexts: dict[Hashable, KeptContext] = {}  # by slot and episode, the oldest first
        self._prefixes: list[KeptContext] = []

    @property
    def nbytes(self) -> int:
        """Bytes of memory that all contexts hold."""
        memories = {id(c.memory): c.memory for c in (*self._contexts.values(), *self._prefixes)}
        return sum(memory.nbytes for memory in memories.values())

    def clear(self) -> None:
        """Drop all contexts."""
        self._contexts.clear()
        self._prefixes.clear()

    def take(self, requests: Sequence[Request], weights: Hashable) -> list[KeptContext | None]:
        """Remove and return what is kept of each prompt: its longest kept beginning, or None if there is none.

        Args:
            weights: identifies the weights of the model. All contexts are dropped when it changes.
        """
        if weights != self._weights:
            self.clear()
            self._weights = weights
        own = [self._contexts.pop(request.key[:2], None) for request in requests]
        # The last token of a prompt has to be fed.
        return [c and c.shared(list(request.prompt_ids[:-1])) for c, request in zip(own, requests, strict=True)]

    def like(self, ids: list[int]) -> KeptContext | None:
        """Return the most first tokens that a shared beginning or the newest episode has; None for none."""
        newest = list(self._contexts.values())[-1:]
        found = [same for c in (*self._prefixes, *newest) if (same := c.shared(ids)) is not None]
        return max(found, key=lambda c: len(c.ids), default=None)

    def put_prefix(self, context: KeptContext) -> None:
        """Keep a beginning that several prompts share. Drops the oldest ones: they take at most half the room."""
        self._prefixes.append(context)
        while sum(c.memory.nbytes for c in self._prefixes) > self.limit / 2:
            self._prefixes.pop(0)

    def put(self, requests: Sequence[Request], contexts: Sequence[KeptContext]) -> None:
        """Keep the contexts of a batch, or as many as fit. Drops the oldest contexts if the limit is exceeded."""
        memory, room = contexts[0].memory, self.limit - sum(c.memory.nbytes for c in self._prefixes)
        dropped = 0
        if memory.nbytes > room:
            dropped = memory.rows - memory.rows * room // memory.nbytes
            memory = memory.without(dropped)
        for request, context in zip(requests, contexts, strict=True):
            if context.row >= dropped:
                self._contexts[request.key[:2]] = context._replace(memory=memory, row=context.row - dropped)
        while self.nbytes > self.limit:
            oldest = next(iter(self._contexts.values())).memory
            self._contexts = {key: c for key, c in self._contexts.items() if c.memory is not oldest}


def shared_beginnings(prompts: Sequence[list[int]], least: int) -> list[tuple[list[int], list[int]]]:
    """Group prompts that begin with the same tokens.

    Args:
        least: minimum number of tokens that the prompts of a group share.

    Returns:
        For each group, the indices of its prompts, and the tokens that they share; without the last token of the
        shortest, which has to be fed. A prompt that begins like no other is a group.
    """
    groups: list[tuple[list[int], list[int]]] = []
    for i in sorted(range(len(prompts)), key=prompts.__getitem__):
        prompt = prompts[i][:-1]
        if groups and len(shared := _shared(groups[-1][1], prompt)) >= least:
            groups[-1] = ([*groups[-1][0], i], shared)
        else:
            groups.append(([i], prompt))
    return groups


def _shared(ids: list[int], others: list[int]) -> list[int]:
    """Return the first tokens that are the same."""
    limit = min(len(ids), len(others))
    if ids[:limit] == others[:limit]:  # faster than a loop
        return ids[:limit]
    return ids[: next(t for t in range(limit) if ids[t] != others[t])]


def kept_mib(mib: int | None, device: str) -> int:
    """Return the MiB of contexts to keep. By default none on a GPU, which computes contexts as fast as it copies."""
    if mib is not None:
        return mib
    return KEPT_MIB if device == "cpu" else 0


def keeps_only_keys_and_values(model: Any) -> bool:
    """Return whether all layers of a model of transformers keep keys and values of each token, and nothing else."""
    caches = require("transformers", extra="train").cache_utils
    kinds = {type(layer) for layer in caches.DynamicCache(config=model.config).layers}
    chunked = "chunked_attention" in (getattr(model.config.get_text_config(), "layer_types", None) or ())
    return not chunked and kinds <= {caches.DynamicLayer, caches.DynamicSlidingWindowLayer}


def new_cache() -> Any:
    """Return an empty cache of transformers that keeps all tokens, also in layers with a sliding window."""
    return require("transformers", extra="train").DynamicCache()


def feed(
    model: Any, ids_BT: Tensor, attend_BT: Tensor, position_BT: Tensor, cache: Any, **more: Any
) -> tuple[Any, Tensor]:
    """Feed tokens after those of a cache, None for none. Returns the cache and the logits of the next tokens."""
    out = model(
        input_ids=ids_BT,
        attention_mask=attend_BT,
        position_ids=position_BT,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
        **more,
    )
    if (cache := getattr(out, "past_key_values", None)) is None:
        raise BadValue(f"cannot sample from {type(model).__name__}, which keeps no keys and values")
    return cache, out.logits[:, -1]
