"""LoRA: train a low-rank addition to the linear layers of a model, whose own weights stay as they are.

Source: arXiv 2106.09685. Needs the extra [lora].
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import torch

from gem.errors import BadValue, did_you_mean, require
from gem.rl.model.loading import save_pretrained
from gem.seeding import derive

ALL_LINEAR = "all-linear"


def add_lora(model: Any, rank: int, modules: str, seed: int) -> None:
    """Add a new adapter to a model and freeze all other weights. The adapter is float32 and changes no output yet.

    Args:
        rank: inner dimension; the addition is scaled by 2 (alpha = 2 rank).
        modules: comma-separated names of linear layers, such as "q_proj,v_proj"; "all-linear" for all but the output
            layer.
        seed: of the adapter's random half.

    Raises:
        BadValue: if the model has no linear layer of a name.
        MissingDependency: without the extra [lora].
    """
    peft = require("peft", extra="lora")
    targets: str | list[str] = modules if modules == ALL_LINEAR else _existing(model, modules)
    config = peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=0.0,
        target_modules=targets,
        fan_in_fan_out=any(_is_conv1d(module) for module in model.modules()),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "lora"))
        model.add_adapter(config)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()  # bfloat16 would round small updates to nothing


def load_lora(model: Any, folder: str | os.PathLike[str]) -> None:
    """Replace the weights of a model's adapter by those that save_pretrained() wrote, exactly."""
    peft, safetensors = require("peft", extra="lora"), require("safetensors.torch", extra="train")
    saved = safetensors.load_file(Path(folder) / "adapter_model.safetensors")
    peft.set_peft_model_state_dict(model, {k.removeprefix("base_model.model."): v for k, v in saved.items()})


def save_merged(model: Any, tokenizer: Any, folder: str | os.PathLike[str]) -> None:
    """Save a model with its adapter added to the weights, as a model without an adapter. Does not change the model."""
    state = {}
    for name, value in model.state_dict().items():
        if "lora_" in name:
            continue
        if ".base_layer." in name:
            layer = model.get_submodule(name.partition(".base_layer.")[0])
            if name.endswith(".weight"):
                value = (value.float() + layer.get_delta_weight(layer.active_adapters[0]).float()).to(value.dtype)
            name = name.replace(".base_layer.", ".")
        state[name] = value
    config = copy.deepcopy(model.config)
    if hasattr(model.get_output_embeddings(), "base_layer"):
        config.tie_word_embeddings = False  # with its adapter, the output layer differs from the input embeddings
    with torch.device("meta"):
        plain = type(model)(config)
    plain.load_state_dict(state, assign=True)
    plain.tie_weights()
    plain.generation_config = model.generation_config
    save_pretrained(plain, tokenizer, folder)


def _is_conv1d(module: Any) -> bool:
    """Return whether a module is GPT-2's kind of linear layer, whose weight is transposed."""
    return hasattr(module, "nf")


def _existing(model: Any, modules: str) -> list[str]:
    """Return the names in a comma-separated list. Raises BadValue unless each ends the name of a linear layer."""
    names = [name.strip() for name in modules.split(",")]
    linear = {name for name, m in model.named_modules() if isinstance(m, torch.nn.Linear) or _is_conv1d(m)}
    known = sorted({name.rpartition(".")[2] for name in linear})
    for name in names:
        if not any(full == name or full.endswith(f".{name}") for full in linear):
            raise BadValue(
                f"lora_modules: the model has no linear layer {name!r}{did_you_mean(name, known)}; "
                f"it has {', '.join(known)}"
            )
    return names
