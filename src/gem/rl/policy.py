"""A causal language model as a policy: batched sampling with a key-value cache, and log-probabilities for training.

Axes: B sequences, T tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gem.conversation import ChatFormat
from gem.errors import BadValue
from gem.policies import Reply, Request
from gem.seeding import derive


class TokenScores(NamedTuple):
    """Per token of a padded batch: its log-probability, and the entropy (nats) of the distribution it came from.

    Position t scores token t given tokens before t; position 0 scores nothing and is 0.
    """

    logp_BT: Tensor
    entropy_BT: Tensor


class CausalLMPolicy:
    """A Hugging Face causal language model that plays.

    Args:
        model, tokenizer: as transformers loads them. The tokenizer needs a chat template. The model is put in eval
            mode, for training too: dropout would draw from the global stream, and score another policy than the one
            that sampled.
        temperature: 0 takes the most likely token; its recorded log-probability is then 0, that of a sure thing.
        top_p: nucleus mass in (0, 1]; 1 samples from the whole distribution.
        max_new_tokens: tokens per reply, the end token included. A reply ends with the token that the template ends
            replies with, the tokenizer's eos token, or one that the model's generation_config calls such.
        seed: of the sampling streams. Token t of a reply is drawn with the t-th number of the stream that
            (seed, slot, episode, turn) names, so it depends on no other slot.
        max_batch: sequences per forward pass; more are split.

    Raises BadValue for settings out of range and a tokenizer that has no chat template or end token.
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
    ) -> None:
        if not temperature >= 0.0:  # so that NaN is refused too
            raise BadValue(f"temperature must be >= 0, got {temperature}")
        if not 0.0 < top_p <= 1.0:
            raise BadValue(f"top_p must be in (0, 1], got {top_p}")
        if max_new_tokens < 1 or max_batch < 1:
            raise BadValue(f"max_new_tokens and max_batch must be >= 1, got {max_new_tokens} and {max_batch}")
        self.model, self.tokenizer, self.chat = model.eval(), tokenizer, ChatFormat(tokenizer)
        self.temperature, self.top_p, self.max_new_tokens = temperature, top_p, max_new_tokens
        self.seed, self.max_batch, self.version = seed, max_batch, 0
        self.stop_ids = _stop_ids(model, self.chat)
        if self.max_prompt_tokens is not None and self.max_prompt_tokens < 1:
            raise BadValue(f"max_new_tokens {max_new_tokens} leaves no room for a prompt in the model's context")
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.chat.eos_id

    @property
    def max_prompt_tokens(self) -> int | None:
        """The model's context less one reply."""
        context = getattr(self.model.config, "max_position_embeddings", None)
        return None if context is None else int(context) - self.max_new_tokens

    def variant(self, *, temperature: float | None = None, seed: int | None = None) -> CausalLMPolicy:
        """The same model, sampling at another temperature or from other streams; None keeps what it is."""
        twin = CausalLMPolicy(
            self.model,
            self.tokenizer,
            temperature=self.temperature if temperature is None else temperature,
            top_p=self.top_p,
            max_new_tokens=self.max_new_tokens,
            seed=self.seed if seed is None else seed,
            max_batch=self.max_batch,
        )
        twin.chat = self.chat  # with what it has rendered already
        return twin

    def greedy(self) -> CausalLMPolicy:
        """The same model, taking the most likely token each time."""
        return self.variant(temperature=0.0)

    def act(self, requests: Sequence[Request]) -> list[Reply]:
        longest = max((len(r.prompt_ids) for r in requests), default=0)
        if self.max_prompt_tokens is not None and longest > self.max_prompt_tokens:
            raise BadValue(
                f"a prompt of {longest} tokens and a reply of {self.max_new_tokens} do not fit the model's context of "
                f"{self.max_prompt_tokens + self.max_new_tokens}; take a larger model or a smaller max_new_tokens"
            )
        replies: list[Reply] = []
        for start in range(0, len(requests), self.max_batch):
            replies += self._sample(requests[start : start + self.max_batch])
        return replies

    @torch.no_grad()
    def _sample(self, requests: Sequence[Request]) -> list[Reply]:
        device = self.model.device
        ids_BT, attend_BT = (x.to(device) for x in pad_left([r.prompt_ids for r in requests], self.pad_id))
        uniforms_BT = self._uniforms(requests)
        position_BT = (attend_BT.cumsum(-1) - 1).clamp(min=0)
        running_B = torch.ones(len(requests), dtype=torch.bool, device=device)
        stop_ids = torch.tensor(self.stop_ids, device=device)
        drawn: list[Tensor] = []
        scores: list[Tensor] = []
        cache = None
        for t in range(self.max_new_tokens):
            out = self.model(
                input_ids=ids_BT,
                attention_mask=attend_BT,
                position_ids=position_BT,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = out.past_key_values
            token_B, logp_B = self._draw(out.logits[:, -1].float(), uniforms_BT[:, t].to(device))
            token_B = torch.where(running_B, token_B, self.pad_id)
            drawn.append(token_B)
            scores.append(logp_B)
            running_B = running_B & ~torch.isin(token_B, stop_ids)
            if not running_B.any():
                break
            ids_BT, position_BT = token_B[:, None], position_BT[:, -1:] + 1
            attend_BT = torch.cat([attend_BT, attend_BT.new_ones(len(requests), 1)], dim=1)
        return self._replies(torch.stack(drawn, 1).tolist(), torch.stack(scores, 1).tolist())

    def _draw(self, logits_BV: Tensor, uniform_B: Tensor) -> tuple[Tensor, Tensor]:
        """One token per sequence, by inverting the cumulative distribution; and its log-probability."""
        if self.temperature == 0.0:
            token_B = logits_BV.argmax(-1)
            return token_B, torch.zeros_like(token_B, dtype=torch.float32)
        logp_BV = torch.log_softmax(self._scaled(logits_BV), dim=-1)
        if self.top_p < 1.0:
            logp_BV = nucleus(logp_BV, self.top_p)
        cumulative_BV = logp_BV.double().exp().cumsum(-1)  # float64: over 150,000 tokens float32 loses the tail
        target_B = uniform_B * cumulative_BV[:, -1]
        token_B = torch.searchsorted(cumulative_BV, target_B[:, None], right=True)
        token_B = token_B[:, 0].clamp(max=logits_BV.shape[1] - 1)
        return token_B, logp_BV.gather(1, token_B[:, None])[:, 0]

    def _uniforms(self, requests: Sequence[Request]) -> Tensor:
        if self.temperature == 0.0:
            return torch.zeros(len(requests), self.max_new_tokens)
        rows = [
            np.random.Generator(np.random.Philox(derive(self.seed, *r.key, "sampling"))).random(self.max_new_tokens)
            for r in requests
        ]
        return torch.from_numpy(np.stack(rows))

    def _replies(self, tokens_BT: list[list[int]], logps_BT: list[list[float]]) -> list[Reply]:
        replies = []
        for tokens, logps in zip(tokens_BT, logps_BT, strict=True):
            end = next((t for t, token in enumerate(tokens) if token in self.stop_ids), None)
            ids = tokens if end is None else tokens[: end + 1]
            text = self.chat.decode(tokens[:end])  # without the token that ends it
            replies.append(Reply(text, ids, logps[: len(ids)], "length" if end is None else "stop"))
        return replies

    def score(self, ids_BT: Tensor, attend_BT: Tensor) -> TokenScores:
        """Log-probabilities and entropies of the tokens of a right-padded batch, at this policy's temperature.

        Carries gradient. Raises BadValue for a greedy policy or one with top_p < 1, whose log-probabilities are not
        the model's.
        """
        if self.temperature == 0.0 or self.top_p < 1.0:
            raise BadValue(f"cannot train at temperature {self.temperature} and top_p {self.top_p}; use > 0 and 1")
        logits = self.model(input_ids=ids_BT, attention_mask=attend_BT, use_cache=False).logits
        logp_BTV = torch.log_softmax(self._scaled(logits[:, :-1]), dim=-1)
        logp_BT = logp_BTV.gather(2, ids_BT[:, 1:, None])[..., 0]
        entropy_BT = -(logp_BTV.exp() * logp_BTV).sum(-1)
        first = logp_BT.new_zeros(ids_BT.shape[0], 1)
        return TokenScores(torch.cat([first, logp_BT], 1), torch.cat([first, entropy_BT], 1))

    def _scaled(self, logits: Tensor) -> Tensor:
        return logits.float() if self.temperature == 1.0 else logits.float() / self.temperature


def _stop_ids(model: Any, chat: ChatFormat) -> list[int]:
    """The tokens that end a reply: several for some models, as <|im_end|> and <|endoftext|>."""
    named = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    more = [named] if isinstance(named, int) else list(named or ())
    return sorted({chat.eos_id, chat.tokenizer.eos_token_id, *more} - {None})


def pad_left(rows: Sequence[Sequence[int]], fill: int) -> tuple[Tensor, Tensor]:
    """Prompts of different lengths, ending together, and the mask of real tokens (1, padding 0); both int64 (B, T)."""
    width = max(len(row) for row in rows)
    ids_BT = torch.tensor([[*[fill] * (width - len(row)), *row] for row in rows])
    attend_BT = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    return ids_BT, attend_BT


def nucleus(logp_BV: Tensor, top_p: float) -> Tensor:
    """Log-probabilities renormalised over the smallest set of likeliest tokens whose mass reaches top_p."""
    sorted_BV, order_BV = logp_BV.sort(-1, descending=True)
    mass_before_BV = sorted_BV.exp().cumsum(-1) - sorted_BV.exp()
    keep_BV = torch.zeros_like(logp_BV, dtype=torch.bool).scatter(-1, order_BV, mass_before_BV < top_p)
    return torch.log_softmax(logp_BV.masked_fill(~keep_BV, float("-inf")), dim=-1)
