"""Decode steps as CUDA graphs: one launch instead of about a thousand, which take longer than their arithmetic.

Axes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gem.errors import require
from gem.rl.model.kv_cache import BLOCK, KeyValues, Shape, feed

MAX_DIFFERENCE = 0.05  # of probabilities; rounding in bfloat16 is well below

_logger = logging.getLogger(__name__)


class DecodeGraphs:
    """The decode steps of a model, by number of rows and columns, captured when they are first needed.

    All batches share one memory. The graphs contain its address and those of the weights, which may change in place.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.memory: KeyValues | None = None
        self.failed = self.checked = False
        self._steps: dict[tuple[int, int], _Step] = {}
        self._weights: list[int] = []
        self._pool = torch.cuda.graph_pool_handle() if model.device.type == "cuda" else None

    @staticmethod
    def fit(model: Any) -> bool:
        """Return whether a model can be captured: on a GPU, with PyTorch's attention and without sliding windows."""
        if model.device.type != "cuda" or model.config.get_text_config()._attn_implementation != "sdpa":
            return False
        layers = require("transformers", extra="train").DynamicCache(config=model.config).layers
        return not any(layer.is_sliding for layer in layers)

    def reserve(self, shapes: Sequence[Shape], rows: int, columns: int) -> KeyValues:
        """Return the memory, with room for that many rows and columns."""
        rows, columns = _rows(rows), _columns(columns)
        weights = [p.data_ptr() for p in self.model.parameters()]
        if weights != self._weights:
            self._weights = weights
            self._steps.clear()
        if self.memory is None or self.memory.rows < rows or self.memory.columns < columns:
            if self.memory is not None:
                rows, columns = max(rows, self.memory.rows), max(columns, self.memory.columns)
            self.memory = KeyValues.empty(shapes, rows, columns, self.model.device)
            self.memory.clear(slice(rows), columns)  # a step attends to all columns, most of them masked
            self._steps.clear()
        return self.memory

    def grow(self) -> None:
        """Make room for more columns in the memory."""
        assert self.memory is not None
        self.memory.grow()
        self._steps.clear()

    def feed(self, token_B: Tensor, attend_BT: Tensor, position_B1: Tensor) -> Tensor | None:
        """Feed the next token of each row. Returns the logits of the tokens that follow.

        Args:
            attend_BT: attention mask, with the column of the new tokens.

        Returns:
            None if the model cannot be captured, or computes something else on fixed tensors.
        """
        if self.failed or self.memory is None:
            return None
        size = _rows(len(token_B)), min(_columns(attend_BT.shape[1]), self.memory.columns)
        step = self._steps.get(size) or _Step(self.model, self.memory, *size)
        step.set(token_B, attend_BT, position_B1)
        try:
            step.run(self._pool)
            logits_BV = step.logits_BV[: len(token_B)]
            if not self.checked:
                self._check(logits_BV, token_B, attend_BT, position_B1)
        except (RuntimeError, ValueError, TypeError) as e:  # such as an operation that waits for the GPU
            _logger.warning("%s is sampled without CUDA graphs: %s", type(self.model).__name__, e)
            self.failed = True
            return None
        self._steps[size] = step
        return logits_BV

    def _check(self, logits_BV: Tensor, token_B: Tensor, attend_BT: Tensor, position_B1: Tensor) -> None:
        """Compare the first step with the model's own: some models take another mask for granted."""
        assert self.memory is not None
        cache = self.memory.cache(slice(len(token_B)), 0, attend_BT.shape[1] - 1)
        _, own_BV = feed(self.model, token_B[:, None], attend_BT, position_B1, cache)
        difference = float((logits_BV.float().softmax(-1) - own_BV.float().softmax(-1)).abs().max())
        if not difference < MAX_DIFFERENCE:
            raise ValueError(f"probabilities differ by up to {difference:.2g}")
        self.checked = True


class _Step:
    """One decode step on tensors whose addresses do not change."""

    def __init__(self, model: Any, memory: KeyValues, rows: int, columns: int) -> None:
        self.model = model
        whole = {"dtype": torch.long, "device": model.device}
        self.token_B1, self.position_B1 = torch.zeros(rows, 1, **whole), torch.zeros(rows, 1, **whole)
        self.column_1 = torch.zeros(1, **whole)
        self.attend_B11T = torch.zeros(rows, 1, 1, columns, dtype=torch.bool, device=model.device)
        self.cache = memory.cache(slice(rows), 0, columns, self.column_1)
        self.logits_BV = torch.empty(0)
        self.graph: Any = None

    def set(self, token_B: Tensor, attend_BT: Tensor, position_B1: Tensor) -> None:
        rows, width = attend_BT.shape
        self.token_B1[:rows, 0] = token_B
        self.position_B1[:rows] = position_B1
        self.column_1.fill_(width - 1)
        self.attend_B11T.zero_()
        self.attend_B11T[rows:, 0, 0, 0] = True  # rows that are not used attend to something
        self.attend_B11T[:rows, 0, 0, :width] = attend_BT.bool()

    def run(self, pool: Any) -> None:
        """Compute the logits. Captures the computation the first time, if there is a pool of GPU memory."""
        if self.graph is not None:
            self.graph.replay()
            return
        kind = self.model.device.type
        # A weight that autocast has converted before the capture would be freed after this batch.
        with torch.autocast(kind, torch.bfloat16, enabled=torch.is_autocast_enabled(kind), cache_enabled=False):
            if pool is None:
                self._compute()
                return
            stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._compute()  # libraries allocate at their first call
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self._compute()
        self.graph = graph
        self.graph.replay()

    def _compute(self) -> None:
        _, self.logits_BV = feed(self.model, self.token_B1, self.attend_B11T, self.position_B1, self.cache)


def _rows(rows: int) -> int:
    """Round up to a power of two, at least 8."""
    return max(8, 1 << (rows - 1).bit_length())


def _columns(columns: int) -> int:
    """Round up to two blocks."""
    return -(-columns // (2 * BLOCK)) * 2 * BLOCK
