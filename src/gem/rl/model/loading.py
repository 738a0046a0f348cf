"""Load and save models and tokenizers, and choose their device."""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from gem.errors import BadValue, require
from gem.rl.checks import check_model_path
from gem.rl.config import has_no_weights
from gem.rl.model.vision import ImageInputs, has_vision
from gem.seeding import derive

# Without it, transformers asks on the terminal whether to run the code of a folder.
_NO_CODE = {"trust_remote_code": False}
_LOAD_ERRORS = (OSError, ValueError, KeyError, ImportError, RuntimeError, pickle.UnpicklingError)


def find_device(device: str) -> str:
    """Return a torch device; "auto" is the first available of cuda, mps and cpu.

    Raises:
        BadValue: if the device is not available.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as e:
        raise BadValue(f"cannot use the device {device!r}: {_first_line(e)}") from e
    return device


def load_pretrained(
    name: str | os.PathLike[str], *, seed: int = 0, dtype: torch.dtype = torch.float32, chat_template: str | None = None
) -> tuple[Any, Any]:
    """Load a model and its tokenizer from a folder or the Hugging Face hub. Never runs code that comes with them.

    If a folder has a config.json but no weights, the model is initialized at random from the seed.

    Args:
        dtype: of the weights.
        chat_template: file with a Jinja template that replaces the one of the tokenizer; None keeps it.

    Raises:
        BadValue: if the model or the template cannot be loaded, with the reason, or a weight is not finite.
    """
    check_model_path(os.fspath(name))
    transformers = require("transformers", extra="train")
    safetensors = require("safetensors", extra="train")
    if (Path(name) / "adapter_config.json").is_file():
        raise BadValue(f"{os.fspath(name)!r} holds only a LoRA adapter; give a folder of the merged model")
    try:
        template = None if chat_template is None else Path(chat_template).read_text(encoding="utf-8")
    except (OSError, ValueError) as e:
        raise BadValue(f"cannot read the chat template {chat_template!r}: {_first_line(e)}") from e
    try:
        with _no_progress_bars() if Path(name).is_dir() else nullcontext():
            config = transformers.AutoConfig.from_pretrained(name, **_NO_CODE)
            vision = has_vision(config)
            kind = transformers.AutoModelForImageTextToText if vision else transformers.AutoModelForCausalLM
            if has_no_weights(Path(name)):
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive(seed, "model"))
                    model = kind.from_config(config, dtype=torch.float32).to(dtype)
            else:
                model = kind.from_pretrained(name, dtype=dtype, **_NO_CODE)
                # Tensors of a file are not aligned, and products with a batch of one then round differently.
                for tensor in model.parameters():
                    tensor.data = tensor.data.clone()
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **_NO_CODE)
    except (*_LOAD_ERRORS, safetensors.SafetensorError) as e:
        raise BadValue(f"cannot load the model {os.fspath(name)!r}: {_reason(e)}") from e
    for tensor_name, tensor in model.named_parameters():
        # The sum takes a tenth of the time or less; that of finite numbers can only overflow.
        if not math.isfinite(tensor.detach().sum()) and not torch.isfinite(tensor).all():
            raise BadValue(f"cannot use the model {os.fspath(name)!r}: {tensor_name} holds values that are not finite")
    if template is not None:
        tokenizer.chat_template = template
    return model, tokenizer


def load_images(name: str | os.PathLike[str], model: Any, tokenizer: Any) -> ImageInputs | None:
    """Return how a model reads images, with the image processor of its folder or hub id; None if it reads none.

    Raises:
        BadValue: if the image processor cannot be loaded.
    """
    if not has_vision(model.config):
        return None
    transformers = require("transformers", extra="train")
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(name, **_NO_CODE)
    except (OSError, ValueError, KeyError, ImportError) as e:
        raise BadValue(f"cannot load the image processor of {os.fspath(name)!r}: {_reason(e)}") from e
    return ImageInputs(model, tokenizer, processor)


def save_pretrained(model: Any, tokenizer: Any, folder: str | os.PathLike[str]) -> None:
    """Save model and tokenizer to a folder in the format of transformers; of a model with LoRA, only the adapter."""
    with _no_progress_bars():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _reason(error: Exception) -> str:
    """Return why a model could not be loaded, in one line."""
    if "trust_remote_code" in str(error):
        return "it needs Python code of its folder, which gem does not run; only models of transformers are loaded"
    if isinstance(error, pickle.UnpicklingError):
        return "a .bin file is damaged or holds objects that could run code; save the weights as safetensors"
    return _first_line(error)


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    # The progress bar of loading a tiny model would break the live display of a training run.
    logging = require("transformers", extra="train").utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
