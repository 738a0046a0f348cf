"""How much memory and disk a training run needs, before it starts, and which flag to lower if it was not enough."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from gem.errors import BadValue, InfraError
from gem.rl.config import TrainConfig
from gem.rl.model.kv_cache import kept_mib
from gem.rl.model.loading import find_device
from gem.rl.model.scoring import CHUNK, body, rows_at_once

_FLOAT_BYTES = 4
_ADAM_BYTES = 8  # two float32 numbers per trained parameter
_LOGIT_COPIES = 5  # logits, log-probabilities, probabilities, their product, and a gradient


class MemoryEstimate(NamedTuple):
    """Estimated bytes on the device of the model, without PyTorch itself (about 500 MiB) and fragmentation.

    Args:
        always: what is held throughout a run: weights, gradients, optimizer, reference, critic.
        learning, sampling: what is held besides, during one of the two.
    """

    always: Mapping[str, int]
    learning: Mapping[str, int]
    sampling: Mapping[str, int]

    @property
    def peak(self) -> int:
        """Bytes at the peak."""
        return sum(self.always.values()) + max(sum(self.learning.values()), sum(self.sampling.values()))


def estimate_memory(model: Any, config: TrainConfig, *, tokens: int) -> MemoryEstimate:
    """Estimate the memory of a run. Computes nothing on the device and reads no weights.

    Args:
        model: the model to train, on any device, also "meta".
        tokens: length of the longest sequence, prompt and replies.

    Raises:
        BadValue: the model does not run on the device "meta", as is the case for most mixtures of experts.
    """
    parameters = list(model.parameters())
    trained = [p for p in parameters if p.requires_grad]
    device = find_device(config.device)
    rows = rows_at_once(model, tokens, torch.device(device).type)
    rows = min(config.micro_batch or rows, config.minibatch, config.batch)
    vocabulary = model.get_output_embeddings().weight.shape[0]
    slots = config.slots or config.batch
    always = {"weights": _bytes(parameters), "gradients": _bytes(trained)}
    always["optimizer"] = sum(_ADAM_BYTES * p.numel() for p in trained)
    if config.kl:
        always["reference"] = _bytes(trained)
    if config.critic is not None and not config.critic.shared:
        always["critic"] = sum((2 * _FLOAT_BYTES + _ADAM_BYTES) * p.numel() for p in parameters)
    twin = _without_memory(model)
    scored = min(CHUNK, rows * tokens * vocabulary)
    try:
        activations, cache = _activations(twin, rows, tokens), _cache(twin, slots, tokens)
    except (RuntimeError, ValueError, TypeError, AttributeError) as e:  # models of transformers raise any of these
        raise BadValue(f"the memory of {type(model).__name__} cannot be estimated: it does not run without data") from e
    learning = {"activations": activations, "logits": 4 * _LOGIT_COPIES * scored}
    sampled = min(CHUNK, slots * vocabulary)
    kept = kept_mib(config.kv_cache_mib, device)
    sampling = {"key-value cache": cache, "kept between turns": min(cache, kept * 2**20)}
    sampling["logits"] = 4 * slots * vocabulary + 24 * sampled
    return MemoryEstimate(always, learning, sampling)


class DiskEstimate(NamedTuple):
    """Bytes that a run writes, without tokenizer, episodes and metrics, and the earlier versions of self-play.

    Args:
        checkpoint: of one after the first update; the first has no state of the optimizer.
        reference: of the reference of the KL penalty, which is written once.
        merged: of the merged model beside the last checkpoint, with LoRA.
    """

    checkpoint: int
    reference: int
    merged: int

    @property
    def needed(self) -> int:
        """Bytes without which no run ends."""
        return sum(self)

    def __str__(self) -> str:
        """Return a sentence for users."""
        parts = [f"{self.checkpoint / 1e6:,.0f} MB per checkpoint, of which the newest two are kept"]
        if self.reference:
            parts.append(f"{self.reference / 1e6:,.0f} MB once for the reference of the KL penalty")
        if self.merged:
            parts.append(f"{self.merged / 1e6:,.0f} MB in the end for the merged model")
        return f"Disk: {'; '.join(parts)}"


def estimate_disk(model: Any, config: TrainConfig) -> DiskEstimate:
    """Compute how much a run writes. Reads no weights.

    Args:
        model: the model to train, on any device, also "meta".
    """
    parameters = list(model.parameters())
    trained = [p for p in parameters if p.requires_grad]
    lora = config.lora_rank is not None
    checkpoint = _bytes(trained if lora else parameters) + sum(_ADAM_BYTES * p.numel() for p in trained)
    if config.critic is not None and not config.critic.shared:
        checkpoint += sum((_FLOAT_BYTES + _ADAM_BYTES) * p.numel() for p in parameters)
    frozen = _bytes(parameters) - _bytes(trained)
    return DiskEstimate(checkpoint, _bytes(trained) if config.kl else 0, frozen if lora else 0)


def _bytes(tensors: list[Any]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def _without_memory(model: Any) -> Any:
    """Copy a model to the device "meta", where tensors have a shape and no data."""
    memo: dict[int, Any] = {id(b): b.detach().to("meta") for b in model.buffers()}
    memo |= {id(p): torch.nn.Parameter(p.detach().to("meta"), p.requires_grad) for p in model.parameters()}
    return copy.deepcopy(model, memo)


def _activations(twin: Any, rows: int, tokens: int) -> int:
    """Return the bytes that autograd keeps of a forward pass."""
    found: dict[int, torch.UntypedStorage] = {}  # by address, which is not used again while the storage is kept
    weights = {p.untyped_storage()._cdata for p in twin.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            found[storage._cdata] = storage
        return tensor

    checkpointed = sum(getattr(module, "gradient_checkpointing", False) for module in twin.modules())
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        hidden = _forward(twin, rows, tokens, use_cache=False).last_hidden_state
    total = sum(storage.nbytes() for storage in found.values())
    if not checkpointed:
        return total
    # The inputs of all layers, and everything of the one that is computed again.
    return int(checkpointed * hidden.numel() * hidden.element_size()) + total // int(checkpointed)


def _cache(twin: Any, rows: int, tokens: int) -> int:
    with torch.no_grad():
        layers = _forward(twin, rows, tokens, use_cache=True).past_key_values.layers
    return sum(_bytes([layer.keys, layer.values]) for layer in layers)


def _forward(twin: Any, rows: int, tokens: int, *, use_cache: bool) -> Any:
    ids = torch.empty(rows, tokens, dtype=torch.long, device="meta")
    mask = torch.empty(rows, 1, tokens, tokens, dtype=torch.bool, device="meta")  # others are checked by their values
    return body(twin)(input_ids=ids, attention_mask=mask, use_cache=use_cache)


@contextmanager
def explained_memory_errors(advice: str) -> Iterator[None]:
    """Raise InfraError with advice, such as "lower --slots (now 64)", if memory is exhausted."""
    try:
        yield
    except (RuntimeError, MemoryError) as e:  # torch.OutOfMemoryError, and RuntimeError on a CPU
        if isinstance(e, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(e):
            raise InfraError(f"out of memory; checkpoints are intact, but a new run needs less: {advice}") from e
        raise


def learning_advice(config: TrainConfig) -> str:
    """Return which flag to lower if memory was exhausted by an update."""
    if (config.micro_batch or config.minibatch) > 1:
        now = config.micro_batch or f"by length, at most {config.minibatch}"
        return f"lower --micro-batch (now {now}; it changes no result)"
    return "shorter replies (--max-new-tokens) or a smaller model"


def building_advice(config: TrainConfig) -> str:
    """Return what to change if memory was exhausted before the first update."""
    copies = "--kl 0" if config.kl else ""
    if config.critic is not None and not config.critic.shared:
        copies = " or ".join(filter(None, ["--critic-options shared=true", copies]))
    lora = "" if config.lora_rank is not None else ", or --lora-rank with --dtype bf16"
    return f"a smaller model{lora}{f', or {copies}, without a copy of the model' if copies else ''}"


def sampling_advice(slots: int) -> str:
    """Return which flag to lower if memory was exhausted by sampling."""
    return f"lower --slots (now {slots})" if slots > 1 else "shorter replies (--max-new-tokens) or a smaller model"
