"""From ``--model`` to a policy: a folder, a hub id, or the embedded tiny model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from gem.errors import BadValue, require
from gem.rl.config import TrainConfig
from gem.rl.policy import CausalLMPolicy
from gem.rl.tiny import build_model, build_tokenizer, listen
from gem.seeding import derive

REPLY_TOKENS = 256


def check_model_path(model: str | None) -> None:
    """Raises BadValue for a model that is named as a folder and is none. Cheap: loads nothing."""
    if model is not None and not Path(model).is_dir() and (model.startswith((".", "/", "~")) or model.count("/") != 1):
        raise BadValue(f"no model folder {model!r}; give a folder with config.json, or a hub id like owner/name")


def check_device(device: str) -> None:
    """Raises BadValue for a torch device that is not here."""
    torch = require("torch", extra="train")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as e:
        raise BadValue(f"cannot use the device {device!r}: {_first_line(e)}") from e


def build_policy(config: TrainConfig) -> CausalLMPolicy:
    """The policy to train. Raises BadValue when the model cannot be loaded, MissingDependency."""
    if config.model is None:
        heard = listen(config.env, config.seed, config.env_kwargs)
        tokenizer = build_tokenizer([*heard.observations, *heard.actions])
        model = build_model(tokenizer, config.seed)
        reply_tokens = 2 + max(len(tokenizer.encode(action)) for action in set(heard.actions))
    else:
        model, tokenizer = load_pretrained(config.model, seed=config.seed)
        reply_tokens = REPLY_TOKENS
    return CausalLMPolicy(
        model.to(config.device),
        tokenizer,
        temperature=config.temperature,
        max_new_tokens=config.max_new_tokens or reply_tokens,
        seed=config.seed,
    )


def save_pretrained(policy: CausalLMPolicy, folder: Path) -> None:
    """Write model and tokenizer to a folder that load_pretrained(), and transformers, can read."""
    with _no_progress_bars():
        policy.model.save_pretrained(folder)
        policy.tokenizer.save_pretrained(folder)


def load_pretrained(name: str | os.PathLike[str], *, seed: int = 0) -> tuple[Any, Any]:
    """Model (float32) and tokenizer from a folder or the hub.

    A folder with a config.json and no weights gives a randomly initialised model, drawn from the seed. Raises BadValue
    with the reason when there is nothing to load.
    """
    check_model_path(os.fspath(name))
    transformers = require("transformers", extra="train")
    torch = require("torch", extra="train")
    safetensors = require("safetensors", extra="train")
    try:
        with _no_progress_bars() if Path(name).is_dir() else nullcontext():
            if _has_no_weights(Path(name)):
                config = transformers.AutoConfig.from_pretrained(name)
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive(seed, "model"))
                    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
            else:
                model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
            tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, safetensors.SafetensorError) as e:
        raise BadValue(f"cannot load the model {os.fspath(name)!r}: {_first_line(e)}") from e
    return model, tokenizer


def _has_no_weights(folder: Path) -> bool:
    return (folder / "config.json").is_file() and not [*folder.glob("*.safetensors"), *folder.glob("*.bin")]


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    # A tiny model's "loading shards" bar would tear up the display of a training run.
    logging = require("transformers", extra="train").utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
