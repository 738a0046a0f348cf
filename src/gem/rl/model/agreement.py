"""Check that sampled tokens have the log-probabilities that scoring gives them, whatever else is in the batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from gem.errors import BadValue
from gem.messages import user
from gem.policies import Request
from gem.rl.model.memory import explained_memory_errors, sampling_advice
from gem.rl.model.policy import CausalLMPolicy

WORDS = 4, 40, 12  # of the prompts
REPLY_TOKENS = 4
ROUNDING, ROUNDING_BF16 = 1e-3, 1.0  # nats; those of a model of 135 M parameters are 3e-5 and .1
IN_BATCHES = 30  # times the rounding of one sequence alone, for many more tokens; a tenth of ROUNDING is always allowed


def check_agreement(policy: CausalLMPolicy, *, alone: bool = False) -> None:
    """Check a policy that is to be trained.

    Plays two turns with prompts of several lengths, and compares the log-probabilities of all tokens: sampled, scored
    alone, and scored in a padded batch. The mean over a batch of training would hide a few tokens that differ. With
    frozen weights in bfloat16, only gross differences are more than rounding.

    Args:
        alone: check only one sequence at a time, without padding.

    Raises:
        BadValue: if a log-probability differs by more than rounding, or the model computes none.
    """
    player = policy.variant(temperature=1.0, max_new_tokens=min(REPLY_TOKENS, policy.max_new_tokens))
    player.bf16 = False  # its rounding would hide what is looked for
    kind, precision = type(player.model).__name__, torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with explained_memory_errors(sampling_advice(len(WORDS))):
            one = _largest_gap(player, WORDS[:1])
            several = 0.0 if alone else _largest_gap(player, WORDS)
    except (RuntimeError, TypeError, IndexError) as e:  # some models take no positions or cache, or fewer tokens
        raise BadValue(f"cannot train {kind}, which fails in a first test: {type(e).__name__}: {e}") from e
    finally:
        torch.set_float32_matmul_precision(precision)
    rounding = ROUNDING if player.model.dtype == torch.float32 else ROUNDING_BF16
    if not one <= rounding:
        raise BadValue(
            f"cannot train {kind}: the log-probability of a sampled token differs by {one:.2g} nats when all tokens "
            "are fed at once"
        )
    if not several <= max(rounding / 10, IN_BATCHES * one):
        raise BadValue(
            f"cannot train {kind} in batches: padding beside shorter sequences changes a log-probability by "
            f"{several:.2g} nats; set slots=1 and micro_batch=1, which train one sequence at a time"
        )


def _largest_gap(player: CausalLMPolicy, lengths: Sequence[int]) -> float:
    """Return the largest difference between log-probabilities of a token, in nats; NaN if one is.

    Args:
        lengths: words of each prompt. Turns that do not fit the context are left out.
    """
    limit = math.inf if player.max_prompt_tokens is None else player.max_prompt_tokens
    prompts = [player.chat.prompt([user("rules " * words)]) for words in lengths]
    rows = [ids for ids in prompts if len(ids) <= limit]
    sampled: list[dict[int, float]] = [{} for _ in rows]  # log-probabilities by position
    asked: Sequence[int] = range(len(rows))
    for turn in range(2):
        replies = player.act([Request("", rows[i], (i, 0, turn), str) for i in asked])
        fitting = []
        for i, reply in zip(asked, replies, strict=True):
            if reply.failure is not None:
                raise BadValue(f"cannot train {type(player.model).__name__}: {reply.failure}")
            sampled[i] |= dict(enumerate(reply.logprobs, start=len(rows[i])))
            rows[i] = [*rows[i], *reply.sampled_ids]
            new = player.chat.new_ids(list(reply.sampled_ids), "more") if player.chat.can_extend else []
            if turn == 0 and new and len(rows[i]) + len(new) <= limit:
                rows[i] += new
                fitting.append(i)
        asked = fitting
    if not rows:
        return 0.0
    together = _logps(player, rows)
    gaps = []
    for ids, known, padded in zip(rows, sampled, together, strict=True):
        (scored,) = _logps(player, [ids])
        gaps += [abs(scored[t] - logp) for t, logp in known.items()]
        gaps += [abs(a - b) for a, b in zip(scored, padded, strict=True)]
    return float(torch.tensor(gaps).max())


@torch.no_grad()
def _logps(player: CausalLMPolicy, rows: Sequence[Sequence[int]]) -> list[list[float]]:
    """Score the tokens of sequences in one batch."""
    tensors = [torch.tensor(ids, device=player.model.device) for ids in rows]
    ids_BT = pad_sequence(tensors, batch_first=True, padding_value=player.pad_id)
    attend_BT = pad_sequence([torch.ones_like(ids) for ids in tensors], batch_first=True)
    scores = player.score(ids_BT, attend_BT).logp_BT.tolist()
    return [row[: len(ids)] for row, ids in zip(scores, rows, strict=True)]
