"""Build the policy of a training run, from its configuration or from a checkpoint."""

from __future__ import annotations

import json
import os
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from gem.rl.config import TrainConfig
from gem.rl.environments import tool_wrappers
from gem.rl.model.loading import find_device, load_images, load_pretrained
from gem.rl.model.lora import ALL_LINEAR, add_lora, load_lora
from gem.rl.model.memory import building_advice, explained_memory_errors
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.scoring import enable_checkpointing
from gem.rl.model.tiny import Corpus, build_model, build_tokenizer, collect_corpus, collect_oracle_actions
from gem.rl.run.folder import RunFolder, newest_checkpoint

REPLY_TOKENS = 256  # per reply, for models that are loaded


def build_policy(config: TrainConfig) -> CausalLMPolicy:
    """Build the policy to train: load config.model or, if it is None, build the embedded model.

    Raises:
        BadValue: if the model cannot be loaded, or LoRA does not fit it.
        MissingDependency: when the extra [train] or, for LoRA, [lora] is not installed.
    """
    if config.model is None:
        corpora = [collect_corpus(env.id, config.seed, env.kwargs, tool_wrappers(env)) for env in config.envs]
        corpus = Corpus(*(list(chain.from_iterable(texts)) for texts in zip(*corpora, strict=True)))
        tokenizer = build_tokenizer([*corpus.observations, *corpus.actions])
        model = build_model(tokenizer, config.seed)
        right = chain.from_iterable(collect_oracle_actions(env.id, config.seed, env.kwargs) for env in config.envs)
        reply_tokens = 2 + max(len(tokenizer.encode(action)) for action in {*corpus.actions, *right})
    else:
        model, tokenizer = _load(config, config.model)
        reply_tokens = REPLY_TOKENS
    return _policy(config, model, tokenizer, config.max_new_tokens or reply_tokens, config.model)


def load_checkpoint(source: Path, config: TrainConfig) -> tuple[CausalLMPolicy, dict[str, Any]]:
    """Load the policy of a checkpoint, and the state of the run that saved it (``update``, ``max_new_tokens``, …).

    Also sets the number of threads of the run, which decides the order of sums.

    Raises:
        BadValue: if the model cannot be loaded.
    """
    torch.set_num_threads(config.threads)
    state: dict[str, Any] = json.loads((source / "state.json").read_text())
    if config.lora_rank is None:
        model, tokenizer = load_pretrained(source)
    else:
        assert config.model is not None
        model, tokenizer = _load(config, config.model)
        load_lora(model, source)
    return _policy(config, model, tokenizer, state["max_new_tokens"], config.model and source), state


def load_policy(
    folder: str | os.PathLike[str],
    *,
    temperature: float = 0.0,
    top_p: float = 1.0,
    max_new_tokens: int | None = None,
    seed: int = 0,
    device: str = "cpu",
) -> CausalLMPolicy:
    """Load a model to play with: that in a folder, or the newest checkpoint of a training run.

    Args:
        folder: of the model, or of the run.
        temperature, top_p, seed: see CausalLMPolicy.
        max_new_tokens: maximum tokens per reply; None for those of the run, or 256.
        device: a torch device, or "auto".

    Raises:
        BadValue: the model or the run cannot be loaded, or a value is out of range.
        MissingDependency: when the extra [train] is not installed.
    """
    run, device = RunFolder(Path(folder)), find_device(device)
    context: dict[str, Any] = {}
    if run.metrics.exists():
        loaded, _ = load_checkpoint(newest_checkpoint(run.checkpoints), RunFolder.open(folder, plays=True)[1])
        model, tokenizer, reply_tokens = loaded.model, loaded.tokenizer, loaded.max_new_tokens
        context = {"max_context": loaded.max_context, "bf16": loaded.bf16}
    else:
        model, tokenizer = load_pretrained(folder)
        reply_tokens = REPLY_TOKENS
    return CausalLMPolicy(
        model.to(device),
        tokenizer,
        temperature=temperature,
        top_p=top_p,
        max_new_tokens=reply_tokens if max_new_tokens is None else max_new_tokens,
        seed=seed,
        **context,
    )


def _load(config: TrainConfig, name: str) -> tuple[Any, Any]:
    # Weights that are trained are float32 in any case: bfloat16 would round small updates to nothing.
    frozen = config.lora_rank is not None and config.dtype == "bf16"
    dtype = torch.bfloat16 if frozen else torch.float32
    model, tokenizer = load_pretrained(name, seed=config.seed, dtype=dtype, chat_template=config.chat_template)
    if config.lora_rank is not None:
        add_lora(model, config.lora_rank, config.lora_modules or ALL_LINEAR, config.seed)
    return model, tokenizer


def _policy(
    config: TrainConfig, model: Any, tokenizer: Any, max_new_tokens: int, source: str | Path | None = None
) -> CausalLMPolicy:
    if config.gradient_checkpointing:
        enable_checkpointing(model)
    with explained_memory_errors(building_advice(config)):
        model = model.to(find_device(config.device))
    return CausalLMPolicy(
        model,
        tokenizer,
        temperature=config.temperature,
        max_new_tokens=max_new_tokens,
        seed=config.seed,
        bf16=config.dtype == "bf16",
        kv_cache_mib=config.kv_cache_mib,
        images=None if source is None else load_images(source, model, tokenizer),
    )
