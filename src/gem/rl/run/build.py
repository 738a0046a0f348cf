"""Build the policy of a training run, from its configuration or from a checkpoint."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import torch

from gem._internal.inbound import read_json
from gem.core import unwrapped
from gem.errors import BadValue
from gem.registry import make
from gem.rl.config import TrainConfig
from gem.rl.environments import tool_wrappers
from gem.rl.model.agreement import check_agreement
from gem.rl.model.loading import find_device, fingerprint, fingerprints, load_images, load_pretrained
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
        BadValue: if the model cannot be loaded, LoRA does not fit it, or its log-probabilities depend on padding.
        MissingDependency: when the extra [train] or, for LoRA, [lora] is not installed.
    """
    corpus = _corpus(config) if config.model is None or moves_only(config) else None
    if config.model is None and corpus is not None:
        tokenizer = build_tokenizer([*corpus.observations, *corpus.actions])
        model = build_model(tokenizer, config.seed)
    else:
        model, tokenizer = _load(config, config.model or "")
    reply_tokens = REPLY_TOKENS
    if corpus is not None:
        right = chain.from_iterable(collect_oracle_actions(env.id, config.seed, env.kwargs) for env in config.envs)
        texts = {*corpus.actions, *right}
        reply_tokens = 2 + max(len(tokenizer.encode(text, add_special_tokens=False)) for text in texts)
    policy = _policy(config, model, tokenizer, config.max_new_tokens or reply_tokens, config.model)
    if config.model is not None:
        check_agreement(policy, alone=config.slots == 1 and (config.micro_batch or config.minibatch) == 1)
        if config.lora_rank is not None:
            policy.sources = _sources(config)
    return policy


def load_checkpoint(source: Path, config: TrainConfig) -> tuple[CausalLMPolicy, dict[str, Any]]:
    """Load the policy of a checkpoint, and the state of the run that saved it (``update``, ``max_new_tokens``, …).

    Also sets the number of threads of the run, which decides the order of sums.

    Raises:
        BadValue: if the model cannot be loaded; or, with LoRA, if the model or the chat template below the adapter has
            changed since the start of the run.
    """
    torch.set_num_threads(config.torch_threads)
    state: dict[str, Any] = read_json(source / "state.json")
    sources: dict[str, str] = {}
    if config.lora_rank is None:
        model, tokenizer = load_pretrained(source)
    else:
        assert config.model is not None
        model, tokenizer = _load(config, config.model)
        sources = _sources(config)
        before = state.get("sources", sources)  # older versions did not save them
        if changed := sorted(name for name in {*sources, *before} if sources.get(name) != before.get(name)):
            raise BadValue(
                f"{', '.join(changed)} of {config.model!r} changed since the run started, and the adapter fits "
                "only the model that it was trained with; restore the files, or start a new run"
            )
        load_lora(model, source)
    policy = _policy(config, model, tokenizer, state["max_new_tokens"], config.model and source)
    policy.sources = sources
    return policy, state


def load_policy(
    folder: str | os.PathLike[str],
    *,
    temperature: float = 0.0,
    top_p: float = 1.0,
    max_new_tokens: int | None = None,
    seed: int = 0,
    device: str = "auto",
    dtype: Literal["float32", "bf16"] | None = None,
    threads: int | None = None,
) -> CausalLMPolicy:
    """Load a model to play with: that in a folder, or the newest checkpoint of a training run.

    Args:
        folder: of the model, or of the run.
        temperature, top_p, seed: see CausalLMPolicy.
        max_new_tokens: maximum tokens per reply; None for those of the run, or 256.
        device: a torch device, or "auto", which takes a GPU if there is one.
        dtype: "float32", or "bf16" to compute in bfloat16; None for that of the run, or the default of TrainConfig.
        threads: of PyTorch, which decide the order of sums; None for those of the run, or all cores.

    Raises:
        BadValue: the model or the run cannot be loaded, or a value is out of range.
        MissingDependency: when the extra [train] is not installed.
    """
    run = RunFolder(Path(folder))
    if run.metrics.exists():
        source, config = newest_checkpoint(run.checkpoints), RunFolder.open(folder, plays=True)[1]
        config = replace(config, device=device, dtype=dtype or config.dtype, threads=threads or config.threads)
        loaded, _ = load_checkpoint(source, config)
    else:
        config = TrainConfig(model=os.fspath(folder), device=device, dtype=dtype, threads=threads)
        torch.set_num_threads(config.torch_threads)
        loaded = _policy(config, *load_pretrained(folder), REPLY_TOKENS, folder)
    return CausalLMPolicy(
        loaded.model,
        loaded.tokenizer,
        temperature=temperature,
        top_p=top_p,
        max_new_tokens=loaded.max_new_tokens if max_new_tokens is None else max_new_tokens,
        seed=seed,
        bf16=loaded.bf16,
        images=loaded.images,
    )


def computes_in_bf16(config: TrainConfig, device: str) -> bool:
    """Return whether a model computes in bfloat16: on a GPU unless it is the embedded one, where nothing else is asked.

    CPUs have no fast kernels for it: SmolLM2-135M-Instruct was five times slower there than in float32.
    """
    default = "bf16" if config.model is not None and device.startswith("cuda") else "float32"
    return (config.dtype or default) == "bf16"


def _corpus(config: TrainConfig) -> Corpus:
    """Return the text of random play in all environments of a run."""
    corpora = [collect_corpus(env.id, config.seed, env.kwargs, tool_wrappers(env)) for env in config.envs]
    return Corpus(*(list(chain.from_iterable(texts)) for texts in zip(*corpora, strict=True)))


def moves_only(config: TrainConfig) -> bool:
    """Return whether the longest legal action bounds the replies in all environments of a run."""
    for env in config.envs:
        with make(env.id, **env.kwargs) as made:
            if tool_wrappers(env) or not getattr(unwrapped(made), "moves_only", False):
                return False
    return True


def _sources(config: TrainConfig) -> dict[str, str]:
    """Return a digest of each file that a checkpoint with an adapter does not hold, by name."""
    assert config.model is not None
    template = config.chat_template
    return fingerprints(config.model) | ({} if template is None else {template: fingerprint(Path(template))})


def _load(config: TrainConfig, name: str) -> tuple[Any, Any]:
    # Weights that are trained are float32 in any case: bfloat16 would round small updates to nothing.
    frozen = config.lora_rank is not None and computes_in_bf16(config, find_device(config.device))
    dtype = torch.bfloat16 if frozen else torch.float32
    model, tokenizer = load_pretrained(name, seed=config.seed, dtype=dtype, chat_template=config.chat_template)
    if config.lora_rank is not None:
        add_lora(model, config.lora_rank, config.lora_modules or ALL_LINEAR, config.seed)
    return model, tokenizer


def _policy(
    config: TrainConfig,
    model: Any,
    tokenizer: Any,
    max_new_tokens: int,
    source: str | os.PathLike[str] | None = None,
) -> CausalLMPolicy:
    if config.gradient_checkpointing:
        enable_checkpointing(model)
    device = find_device(config.device)
    with explained_memory_errors(building_advice(config)):
        model = model.to(device)
    if device.startswith("cuda"):
        torch.set_float32_matmul_precision("high")  # products in TF32
    return CausalLMPolicy(
        model,
        tokenizer,
        temperature=config.temperature,
        max_new_tokens=max_new_tokens,
        seed=config.seed,
        bf16=computes_in_bf16(config, device),
        kv_cache_mib=config.kv_cache_mib,
        images=None if source is None else load_images(source, model, tokenizer),
    )
