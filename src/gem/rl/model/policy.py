"""A causal language model as a policy: batched sampling with a key-value cache, and log-probabilities.

Axes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gem.conversation.chat import ChatFormat, eos_ids
from gem.errors import BadValue
from gem.policies import Reply, Request
from gem.rl.model.cuda_graphs import DecodeGraphs
from gem.rl.model.kv_cache import KeptContexts, Shape, feed, keeps_only_keys_and_values, kept_mib
from gem.rl.model.loading import save_pretrained
from gem.rl.model.lora import save_merged
from gem.rl.model.memory import explained_memory_errors, sampling_advice
from gem.rl.model.sampling import (
    Contexts,
    cache_shapes,
    draw,
    pad_left,
    positions,
    prefill,
    with_shared,
)
from gem.rl.model.scoring import TokenScores, score_tokens
from gem.rl.model.vision import ImageInputs, context_images
from gem.seeding import derive

CHECK_EVERY = 4  # tokens between looks at which replies have ended, which wait for a GPU
LEAVE = 0.75  # rows leave the batch when at most this share of it still runs: moving rows takes time
NOT_FINITE = "InfraError: the model computed logits that are not finite"


class CausalLMPolicy:
    """A policy that samples from a Hugging Face causal language model.

    Args:
        model, tokenizer: as loaded by transformers. The tokenizer needs a chat template. The model is set to eval mode,
            also for training: dropout would draw from the global random stream, and the scored policy would differ
            from the policy that sampled.
        temperature: 0 takes the most likely token and records a log-probability of 0.
        top_p: nucleus mass in (0, 1]; 1 samples from the whole distribution.
        max_new_tokens: maximum tokens per reply, including the end token. A reply ends with the end token of the chat
            template, the tokenizer's eos token, or an eos token of the model's generation_config.
        seed: seed of the sampling streams. Token t of a reply uses number t of the stream (seed, slot, episode, turn),
            so sampling does not depend on other slots.
        max_batch: maximum sequences per forward pass; larger batches are split.
        max_context: maximum tokens of a prompt and its reply; None for the limit of the model.
        bf16: compute with bfloat16 where torch.autocast does; log-probabilities are still float32.
        kv_cache_mib: MiB of keys and values that are kept from one turn of an episode to the next, while the weights
            are the same; 0 computes each context again, as is done for models that read images. None for 1024 on a
            CPU and 0 on a GPU.
        images: how the model reads images; None if it does not.

    Attributes:
        max_prompt_tokens: the context length minus the length of one reply; None if there is no limit.
        sources: digests of the files that its checkpoints do not hold, by name; see build_policy().

    Raises:
        BadValue: for a setting out of range, or a tokenizer without a chat template or end token.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        max_new_tokens: int = 256,
        seed: int = 0,
        max_batch: int = 512,
        max_context: int | None = None,
        bf16: bool = False,
        kv_cache_mib: int | None = None,
        images: ImageInputs | None = None,
    ) -> None:
        if not temperature >= 0.0:  # written so that NaN is rejected too
            raise BadValue(f"temperature must be >= 0, got {temperature}")
        if not 0.0 < top_p <= 1.0:
            raise BadValue(f"top_p must be in (0, 1], got {top_p}")
        if max_new_tokens < 1 or max_batch < 1:
            raise BadValue(f"max_new_tokens and max_batch must be >= 1, got {max_new_tokens} and {max_batch}")
        self.model, self.tokenizer = model.eval(), tokenizer
        self.chat = ChatFormat(tokenizer, None if images is None else images.text, _end_ids(model))
        self.temperature, self.top_p, self.max_new_tokens = temperature, top_p, max_new_tokens
        self.seed, self.max_batch, self.max_context, self.version = seed, max_batch, max_context, 0
        self.bf16 = bf16
        self.stop_ids = sorted(self.chat.end_ids)
        context = min((limit for limit in (*context_limits(model.config), max_context) if limit), default=None)
        self.max_prompt_tokens = None if context is None else context - max_new_tokens
        if context is not None and context <= max_new_tokens:
            raise BadValue(
                f"max_new_tokens {max_new_tokens} leaves no room for a prompt in a context of {context} tokens"
            )
        self.images, self.kv_cache_mib = images, kept_mib(kv_cache_mib, model.device.type)
        self._in_place = images is None and keeps_only_keys_and_values(model)
        self._shapes: list[Shape] = []  # of keys and values, known after the first token
        self._graphs: DecodeGraphs | None = None
        self._kept = KeptContexts(self.kv_cache_mib * 2**20 if self._in_place else 0)
        self.sources: dict[str, str] = {}
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.chat.eos_id

    @property
    def model_name(self) -> str | None:
        """The name or folder that the model was loaded from; None for a new model."""
        return getattr(self.model.config, "_name_or_path", None) or None

    @property
    def has_adapter(self) -> bool:
        """Whether the model has a LoRA adapter."""
        return bool(getattr(self.model, "peft_config", None))

    @property
    def settings(self) -> dict[str, Any]:
        """The sampling settings, which trajectories record."""
        return {name: getattr(self, name) for name in ("temperature", "top_p", "max_new_tokens", "seed")}

    def backend(self) -> dict[str, str]:
        """Return the type of the weights, that of the computation, and the device."""
        dtype = str(self.model.dtype).removeprefix("torch.")
        config = getattr(self.model.config, "quantization_config", None)
        method = config.get("quant_method") if isinstance(config, dict) else getattr(config, "quant_method", None)
        weights = dtype if method is None else str(getattr(method, "value", method))
        return {
            "weights": weights,
            "computation": "bfloat16" if self.bf16 else dtype,
            "device": self.model.device.type,
        }

    def variant(
        self,
        *,
        temperature: float | None = None,
        seed: int | None = None,
        max_new_tokens: int | None = None,
        max_context: int | None = None,
    ) -> CausalLMPolicy:
        """Return a policy with the same model and other settings; None keeps the current value."""
        policy = CausalLMPolicy(
            self.model,
            self.tokenizer,
            temperature=self.temperature if temperature is None else temperature,
            top_p=self.top_p,
            max_new_tokens=max_new_tokens or self.max_new_tokens,
            seed=self.seed if seed is None else seed,
            max_batch=self.max_batch,
            max_context=max_context or self.max_context,
            bf16=self.bf16,
            kv_cache_mib=self.kv_cache_mib,
            images=self.images,
        )
        policy.chat, policy.version = self.chat, self.version  # the chat shares its caches
        policy._shapes, policy._graphs = self._shapes, self._decode_graphs()
        return policy

    def copy(self) -> CausalLMPolicy:
        """Return a policy with these weights, which is not trained. Frozen weights are shared, the others copied."""
        frozen = {id(p): p for p in self.model.parameters() if not p.requires_grad}
        policy = self.variant()
        policy.model = copy.deepcopy(self.model, frozen).requires_grad_(False)
        return policy

    def forget(self) -> None:
        """Drop the keys and values that are kept between turns."""
        self._kept.clear()

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        """Sample a reply to each prompt. One over max_prompt_tokens gets none, with the finish "context_overflow".

        A reply fails if the model computes logits for it that are NaN or infinite.
        """
        limit = self.max_prompt_tokens
        fits = [limit is None or len(request.prompt_ids) <= limit for request in requests]
        fitting = [request for request, fit in zip(requests, fits, strict=True) if fit]
        sampled: list[Reply] = []
        for start in range(0, len(fitting), self.max_batch):
            chosen = fitting[start : start + self.max_batch]
            with explained_memory_errors(sampling_advice(len(chosen))), self._precision():
                sampled += self._sample(chosen)
        replies = iter(sampled)
        return [next(replies) if fit else Reply("", finish="context_overflow") for fit in fits]

    @torch.no_grad()
    def _sample(self, requests: Sequence[Request]) -> list[Reply]:
        prompts = [list(request.prompt_ids) for request in requests]
        contexts = self._prefill(requests, prompts)
        device = self.model.device
        check_every = 1 if device.type == "cpu" else CHECK_EVERY
        uniforms_BT = self._uniforms(requests).to(device)
        stop_ids = torch.tensor(self.stop_ids, device=device)
        tokens_BT = torch.full(uniforms_BT.shape, self.pad_id, device=device)
        logps_BT = torch.zeros(uniforms_BT.shape, device=device)
        prompt_B = torch.tensor(contexts.order, device=device)
        running_B = torch.ones(len(requests), dtype=torch.bool, device=device)
        for t in range(self.max_new_tokens):
            token_B, logp_B = draw(
                contexts.logits_BV, uniforms_BT[prompt_B, t], temperature=self.temperature, top_p=self.top_p
            )
            token_B = torch.where(running_B, token_B, self.pad_id)
            tokens_BT[prompt_B, t], logps_BT[prompt_B, t] = token_B, torch.where(running_B, logp_B, 0.0)
            running_B = running_B & ~torch.isin(token_B, stop_ids)
            if t + 1 == self.max_new_tokens:
                break
            if (t + 1) % check_every == 0:
                running = running_B.nonzero()[:, 0].tolist()
                if not running:
                    break
                if contexts.memory is not None and len(running) <= LEAVE * len(running_B):
                    row_B = contexts.keep(running)
                    token_B, prompt_B, running_B = token_B[row_B], prompt_B[row_B], running_B[row_B]
            contexts.feed(token_B)
        replies = self._replies(tokens_BT.tolist(), logps_BT.tolist())
        if self._kept.limit:
            self._kept.put(requests, contexts.kept(prompts, [reply.sampled_ids for reply in replies]))
        return replies

    def _prefill(self, requests: Sequence[Request], prompts: Sequence[list[int]]) -> Contexts:
        """Feed the prompts, except what is kept of them."""
        largest, embedded = max(map(max, prompts)), self.model.get_input_embeddings().weight.shape[0]
        if self.images is None and largest >= embedded:
            raise BadValue(f"the tokenizer has the token {largest}, and the model embeds only {embedded}")
        if self._in_place:
            # Any change in place of the weights counts, also one by other code than the trainer's.
            weights = (self.version, sum(p._version for p in self.model.parameters()))
            known = self._kept.take(requests, weights)
            self._shapes = self._shapes or cache_shapes(self.model)
            known = with_shared(self.model, prompts, known, self._shapes, self._kept)
            return prefill(self.model, prompts, known, self._shapes, self.max_new_tokens, self._decode_graphs())
        ids_BT, attend_BT = (x.to(self.model.device) for x in pad_left(prompts, self.pad_id))
        more: dict[str, Tensor] = {}
        if self.images is not None:
            more = self.images.tensors(self.model, ids_BT, attend_BT, [context_images(r) for r in requests])
        position_BT = more.pop("position_ids", positions(attend_BT))  # (3, B, T) for some models
        cache, logits_BV = feed(self.model, ids_BT, attend_BT, position_BT, None, **more)
        return Contexts(self.model, cache, attend_BT, position_BT[..., -1:] + 1, logits_BV, [*range(len(prompts))])

    def _decode_graphs(self) -> DecodeGraphs | None:
        """Return what feeds tokens on a GPU; None to feed them to the model.

        The memory of graphs is used again for each batch, so that no contexts can be kept in it.
        """
        if self._kept.limit or not DecodeGraphs.fit(self.model):
            return None
        if self._graphs is None or self._graphs.model is not self.model:
            self._graphs = DecodeGraphs(self.model)
        return self._graphs

    def _uniforms(self, requests: Sequence[Request]) -> Tensor:
        if self.temperature == 0.0:
            return torch.zeros(len(requests), self.max_new_tokens)
        rows = [
            np.random.Generator(np.random.Philox(derive(self.seed, *(r.stream or r.key), "sampling"))).random(
                self.max_new_tokens
            )
            for r in requests
        ]
        return torch.from_numpy(np.stack(rows))

    def _replies(self, tokens_BT: list[list[int]], logps_BT: list[list[float]]) -> list[Reply]:
        replies = []
        for tokens, logps in zip(tokens_BT, logps_BT, strict=True):
            if not all(map(math.isfinite, logps)):
                replies.append(Reply("", failure=NOT_FINITE))
                continue
            end = next((t for t, token in enumerate(tokens) if token in self.stop_ids), None)
            ids = tokens if end is None else tokens[: end + 1]
            replies.append(Reply(self.chat.decode(ids), ids, logps[: len(ids)], "length" if end is None else "stop"))
        return replies

    def score(
        self,
        ids_BT: Tensor,
        attend_BT: Tensor,
        mask_BT: Tensor | None = None,
        images: Sequence[Sequence[Any]] = (),
    ) -> TokenScores:
        """Score the tokens of a right-padded batch at this policy's temperature, with gradient.

        Args:
            mask_BT: not 0 on the tokens to score; None for all.
            images: those of each sequence; empty if there are none.

        Raises:
            BadValue: for temperature 0 or top_p < 1, because replies are then not sampled from the scored distribution.
        """
        if self.temperature == 0.0 or self.top_p < 1.0:
            raise BadValue(f"cannot train at temperature {self.temperature} and top_p {self.top_p}; use > 0 and 1")
        more = self.images.tensors(self.model, ids_BT, attend_BT, images) if self.images is not None else {}
        with self._precision():
            return score_tokens(self.model, ids_BT, attend_BT, mask_BT, self.temperature, **more)

    def save(self, folder: Path, *, merged: Path | None = None) -> None:
        """Save model and tokenizer in the format of transformers; with LoRA, only the adapter.

        Args:
            merged: folder for the whole model too, if there is an adapter; None for the adapter only.
        """
        save_pretrained(self.model, self.tokenizer, folder)
        if self.images is not None:
            self.images.processor.save_pretrained(folder)
        if merged is not None and self.has_adapter:
            save_merged(self.model, self.tokenizer, merged)

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.bf16)


def context_limits(config: Any) -> list[int]:
    """Return limits of the tokens in a context: the positions of a model, and those before its rotary factors change.

    LongRoPE (arXiv 2402.13753) has other factors once a context exceeds the original length. Keys that were computed
    before, and other sequences of the batch, then have different factors.
    """
    text = config.get_text_config()
    rotary = getattr(text, "rope_parameters", None) or {}
    layers = [rotary, *(part for part in rotary.values() if isinstance(part, dict))]  # flat, or by kind of layer
    switches = [part["original_max_position_embeddings"] for part in layers if part.get("rope_type") == "longrope"]
    positions = (getattr(text, name, None) for name in ("max_position_embeddings", "max_seq_len"))  # MPT has the other
    return [int(limit) for limit in (*positions, *switches) if limit]


def _end_ids(model: Any) -> list[int]:
    """Return the tokens that end a reply of a model. Some have several, such as <|im_end|> and <|endoftext|>."""
    ids = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    return eos_ids(getattr(model.config.get_text_config(), "eos_token_id", None) if ids is None else ids)
