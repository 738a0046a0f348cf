"""Log-probabilities of chosen tokens under a causal language model, without the logits of all other tokens.

The hidden states of a batch are computed once; of tokens that all sequences begin with, for all of them together. The
output layer, whose result is V numbers per token, is applied only to the tokens that are scored, a chunk at a time; if
there are several chunks, the backward pass computes each again.

Axes: B sequences, T tokens, V vocabulary, H hidden size, N scored tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gem.errors import BadValue, require

CHUNK = 2**24  # logits computed at once: 64 MiB in float32; a few results of this size are held at a time
# Tokens times layers times hidden size of a pass with gradient. Autograd keeps 20 to 40 numbers for each: 3 to 4 GiB on
# a CPU, where larger passes are not faster, and about 30 GiB on a GPU, where they are.
PASS_SIZE = {"cpu": 2**25, "cuda": 2**28}
# Parameters times tokens that must be saved so that a pass over a common beginning pays. A GPU takes milliseconds to
# start the kernels of a pass, a CPU core half a second to compute so much, with gradient.
PREFIX_WORK = {"cpu": 2**33, "cuda": 2**42}


class TokenScores(NamedTuple):
    """Log-probability of each token of a padded batch, and entropy in nats of the policy's distribution there.

    The scores at position t are those of token t given the tokens before it. Tokens that are not scored have 0.
    """

    logp_BT: Tensor
    entropy_BT: Tensor


def score_tokens(
    model: Any,
    ids_BT: Tensor,
    attend_BT: Tensor,
    mask_BT: Tensor | None,
    temperature: float,
    *,
    chunk: int = CHUNK,
    **more: Tensor,
) -> TokenScores:
    """Score tokens of a right-padded batch, with gradient.

    Args:
        model: a causal language model of transformers.
        mask_BT: not 0 on the tokens to score; None for all. The first token of a sequence is never scored.
        temperature: divides the logits.
        chunk: logits computed at once.
        more: other arguments of the model's forward(), such as images.
    """
    scored_BT = attend_BT.bool() if mask_BT is None else mask_BT.bool()
    scored_BT = scored_BT.clone()
    scored_BT[:, 0] = False
    start = 0 if more else _common_beginning(model, ids_BT, attend_BT, scored_BT)
    out = _output_after(model, ids_BT, attend_BT, start) if start else body_output(model, ids_BT, attend_BT, **more)
    hidden_NH, token_N = out.last_hidden_state[:, :-1][scored_BT[:, start + 1 :]], ids_BT[scored_BT]

    def score(hidden_NH: Tensor, token_N: Tensor) -> tuple[Tensor, Tensor]:
        with _body_returning(model, type(out)(last_hidden_state=hidden_NH[None])) as calls:
            logits_NV = model(input_ids=token_N[None], use_cache=False).logits[0].float()
        if not calls:  # the logits would be those of other contexts
            raise BadValue(f"cannot train {type(model).__name__}: its output layer cannot be computed by itself")
        logp_NV = torch.log_softmax(logits_NV if temperature == 1.0 else logits_NV / temperature, dim=-1)
        return logp_NV.gather(1, token_N[:, None])[:, 0], -(logp_NV.exp() * logp_NV).sum(-1)

    size = max(1, chunk // model.get_output_embeddings().weight.shape[0])
    parts = list(zip(torch.split(hidden_NH, size), torch.split(token_N, size), strict=True))
    if len(parts) == 1 or not torch.is_grad_enabled():
        found = [score(*part) for part in parts]
    else:
        found = [checkpoint(score, *part, use_reentrant=False) for part in parts]
    zeros_BT = torch.zeros(ids_BT.shape, device=ids_BT.device)
    return TokenScores(*(zeros_BT.masked_scatter(scored_BT, torch.cat(values)) for values in zip(*found, strict=True)))


def rows_at_once(model: Any, tokens: int, device: str) -> int:
    """Return how many sequences of this length a pass with gradient takes, at least 1.

    Args:
        device: type of the device, such as "cuda".
    """
    config = model.config.get_text_config()
    size: int = tokens * config.num_hidden_layers * config.hidden_size
    return max(1, PASS_SIZE.get(device, PASS_SIZE["cpu"]) // size)


def _common_beginning(model: Any, ids_BT: Tensor, attend_BT: Tensor, scored_BT: Tensor) -> int:
    """Return how many tokens all sequences begin with, up to the first whose hidden state is scored.

    0 if it does not pay to compute them once, or the layers cannot do so exactly.
    """
    work = (len(ids_BT) - 1) * sum(p.numel() for p in model.parameters())
    worth = PREFIX_WORK.get(ids_BT.device.type, PREFIX_WORK["cuda"])
    if work * ids_BT.shape[1] < worth or not _attends_to_all(model):
        return 0
    same_BT = (ids_BT == ids_BT[0]) & attend_BT.bool()
    same_T = (same_BT[:, :-1] & ~scored_BT[:, 1:]).all(0)
    start = int(same_T.long().cumprod(0).sum())
    return start if work * start >= worth else 0


def _attends_to_all(model: Any) -> bool:
    """Return whether all layers attend to all earlier tokens, whose keys and values do not depend on later tokens."""
    caches = require("transformers", extra="train").cache_utils
    if torch.is_grad_enabled() and any(getattr(m, "gradient_checkpointing", False) for m in model.modules()):
        return False  # such layers refuse a cache
    rotary = str(getattr(model.config.get_text_config(), "rope_parameters", None))
    if "dynamic" in rotary or "longrope" in rotary:  # whose angles depend on the longest sequence
        return False
    return {type(layer) for layer in caches.DynamicCache(config=model.config).layers} == {caches.DynamicLayer}


def _output_after(model: Any, ids_BT: Tensor, attend_BT: Tensor, start: int) -> Any:
    """Return body_output() of the tokens from start on, where all sequences are the same before it."""
    cache = require("transformers", extra="train").DynamicCache(config=model.config)
    body(model)(input_ids=ids_BT[:1, :start], past_key_values=cache, use_cache=True)
    for layer in cache.layers:
        layer.keys, layer.values = (x.expand(len(ids_BT), -1, -1, -1) for x in (layer.keys, layer.values))
    return body(model)(input_ids=ids_BT[:, start:], attention_mask=attend_BT, past_key_values=cache, use_cache=True)


def body_output(model: Any, ids_BT: Tensor, attend_BT: Tensor, **more: Tensor) -> Any:
    """Return the result of the layers below the output layer, with gradient; its last_hidden_state is (B, T, H)."""
    with _checkpointing(model):
        return body(model)(input_ids=ids_BT, attention_mask=attend_BT, use_cache=False, **more)


def body(model: Any) -> Any:
    """Return the layers below the output layer, as the model calls them."""
    base = model.base_model
    if base is model:
        base = getattr(model, "model", model)  # Llama 4 declares another name for them
    return getattr(base, "decoder", base)  # OPT calls only this part of them


def enable_checkpointing(model: Any) -> None:
    """Make score_tokens() keep only the inputs of each layer, and compute the rest again in the backward pass."""
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})


@contextmanager
def _body_returning(model: Any, output: Any) -> Iterator[list[Any]]:
    """Replace the layers below the output layer by a fixed result. Yields the results that the model has asked for.

    The model then computes only its output layer, with what some models do to the logits, such as a scale or soft cap.
    """
    calls: list[Any] = []
    layers = body(model)

    def forward(*args: Any, **kwargs: Any) -> Any:
        calls.append(output)
        return output

    layers.forward = forward
    try:
        yield calls
    finally:
        del layers.forward


@contextmanager
def _checkpointing(model: Any) -> Iterator[None]:
    """Let layers with gradient checkpointing use it, which they do only in training mode.

    Their parts stay in eval mode, where dropout is off.
    """
    layers = [module for module in model.modules() if getattr(module, "gradient_checkpointing", False)]
    for layer in layers:
        layer.training = torch.is_grad_enabled()
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False
