"""Load and save models and tokenizers, and choose their device."""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import torch

from gem._internal.folders import sha256
from gem._internal.inbound import FILE, check_size, loads
from gem._internal.text import unescaped
from gem.errors import BadValue, require
from gem.rl.checks import check_model_path
from gem.rl.config import WEIGHTS, has_no_weights
from gem.rl.model.vision import ImageInputs, has_vision
from gem.seeding import derive

# Without it, transformers asks on the terminal whether to run the code of a folder.
_NO_CODE = {"trust_remote_code": False}
_LOAD_ERRORS = (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError, pickle.UnpicklingError)
WHOLE, SAMPLE = 2**26, 2**12  # bytes; see fingerprints()
_SETTINGS = (".json", ".jinja", ".txt", ".model")
_NAMED = 4  # tensors in an error


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

    If a folder has a config.json but no weights, the model is initialized at random from the seed. Options of the
    configuration that add other results to the logits, such as the router logits of a mixture of experts, are off.

    Args:
        dtype: of the weights.
        chat_template: file with a Jinja template that replaces the one of the tokenizer; None keeps it.

    Raises:
        BadValue: if the model or the template cannot be loaded, with the reason; or the weights do not fit the
            configuration, or are not finite, with the names of tensors.
    """
    check_model_path(os.fspath(name))
    transformers = require("transformers", extra="train")
    safetensors = require("safetensors", extra="train")
    if (Path(name) / "adapter_config.json").is_file():
        raise BadValue(f"{os.fspath(name)!r} holds only a LoRA adapter; give a folder of the merged model")
    if (Path(name) / "checkpoints").is_dir() and (Path(name) / "metrics.jsonl").is_file():
        raise BadValue(f"{os.fspath(name)!r} is the folder of a run; give a model, such as one in its checkpoints/")
    try:
        template = None if chat_template is None else Path(chat_template).read_text(encoding="utf-8")
    except (OSError, ValueError) as e:
        raise BadValue(f"cannot read the chat template {chat_template!r}: {_first_line(e)}") from e
    try:
        with _no_progress_bars() if Path(name).is_dir() else redirect_stderr(unescaped(sys.stderr)):
            config = transformers.AutoConfig.from_pretrained(name, **_NO_CODE)
            _return_only_logits(config)
            vision = has_vision(config)
            kind = transformers.AutoModelForImageTextToText if vision else transformers.AutoModelForCausalLM
            if has_no_weights(Path(name)):
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive(seed, "model"))
                    model = kind.from_config(config, dtype=torch.float32).to(dtype)
            else:
                model, report = kind.from_pretrained(
                    name, config=config, dtype=dtype, ignore_mismatched_sizes=True, output_loading_info=True, **_NO_CODE
                )
                _check_tensors(model, report)
                # Tensors of a file are not aligned, and products with a batch of one then round differently.
                for tensor in model.parameters():
                    tensor.data = tensor.data.clone()
            if (Path(name) / "generation_config.json").is_file():  # from_pretrained() ignores one that is damaged
                model.generation_config = transformers.GenerationConfig.from_pretrained(name)
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


def fingerprints(name: str | os.PathLike[str]) -> dict[str, str]:
    """Return a digest of each file of a model that load_pretrained() may read, by file name.

    Files are read whole up to WHOLE bytes. Of larger weights in safetensors, the names, types and shapes of the tensors
    count, and SAMPLE bytes in the middle of each. Two trained models differ there, and 10 GB need not be read again.

    Args:
        name: a folder, or a hub id whose files were downloaded.
    """
    folder = Path(name)
    if not folder.is_dir():
        folder = Path(require("transformers", extra="train").utils.cached_file(name, "config.json")).parent
    files = (file for file in folder.iterdir() if file.suffix in (*_SETTINGS, *WEIGHTS) and file.is_file())
    return {file.name: fingerprint(file) for file in sorted(files)}


def fingerprint(file: Path) -> str:
    """Return a digest of a file; see fingerprints()."""
    if file.stat().st_size <= WHOLE or file.suffix != ".safetensors":
        return sha256(file)
    digest = hashlib.sha256()
    with file.open("rb") as data:
        start = int.from_bytes(data.read(8), "little")
        check_size(start, f"the header of {file}", FILE.bytes)
        header = data.read(start)
        digest.update(header)
        for name, tensor in sorted(loads(header, f"the header of {file}").items()):
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                data.seek(8 + start + max(begin, (begin + end - SAMPLE) // 2))
                digest.update(data.read(min(SAMPLE, end - begin)))
    return digest.hexdigest()


def _return_only_logits(config: Any) -> None:
    for part in (config, config.get_text_config()):
        for option in ("output_router_logits", "output_attentions", "output_hidden_states"):
            if getattr(part, option, False):
                setattr(part, option, False)
        part.return_dict = True


def _check_tensors(model: Any, report: Mapping[str, Any]) -> None:
    """Check that all tensors of a model were loaded, and that it uses all weights of its layers in the files.

    Transformers initializes tensors at random that were not loaded, leaves others out, and only logs a warning.

    Args:
        report: of from_pretrained().

    Raises:
        ValueError: with the names of tensors.
    """
    wrong = [
        f"{name} has the shape {tuple(got)} for {tuple(needed)}" for name, got, needed in report["mismatched_keys"]
    ]
    missing = [f"{name} is missing" for name in report["missing_keys"]]
    unused = [f"{name} is not used" for name in _in_layers(report["unexpected_keys"], model)]
    if found := [*sorted(wrong), *sorted(missing), *sorted(unused)]:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise ValueError(f"its weights do not fit its config.json: {', '.join(found[:_NAMED])}{more}")


def _in_layers(names: Iterable[str], model: Any) -> list[str]:
    """Return the names of weights and biases in the numbered layers of a model; other parts may be left out.

    Masks and rotary frequencies that old versions saved are no weights. Layers for speculative decoding are left out.
    """
    if getattr(model.config.get_text_config(), "num_nextn_predict_layers", 0):
        return []
    known = {_any_layer(name) for name in model.state_dict()}
    layers = {name.partition(".N.")[0] for name in known if ".N." in name}
    found = []
    for name in names:
        module, _, last = _any_layer(name).rpartition(".")
        if module.partition(".N.")[0] in layers and (last == "weight" or f"{module}.weight" in known):
            found.append(name)
    return found


def _any_layer(name: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.)", "N", name)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _reason(error: Exception) -> str:
    """Return why a model could not be loaded, in one line."""
    if "trust_remote_code" in str(error):
        return "it needs Python code of its folder, which gem does not run; only models of transformers are loaded"
    if isinstance(error, pickle.UnpicklingError):
        return "a .bin file is damaged or holds objects that could run code; save the weights as safetensors"
    if "backend tokenizer" in str(error):
        return "tokenizer.json is missing, or sentencepiece or tiktoken to convert the files of an older tokenizer"
    if isinstance(error, KeyError):
        return f"the entry {error} is missing in one of its files"
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
