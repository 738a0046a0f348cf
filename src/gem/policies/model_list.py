"""What a server says of a model in its list of models (GET /models), which differs between servers."""

from __future__ import annotations

import math
from typing import Any

from gem._internal.inbound import REPLY, loads
from gem.errors import BadInput


def read_model_list(body: bytes, name: str) -> dict[str, str]:
    """Return what is known of the weights of a model; empty if the server says nothing.

    "weights" is their format: a quantization by name, or the bits per weight that llama.cpp's size and count amount to.
    "model file" is what vLLM, SGLang and others serve under the name.

    Args:
        body: the response, an object with the list "data".
        name: of the model; a server that lists one model may serve it under any name.
    """
    try:
        data = loads(body, "the list of models", REPLY)
    except BadInput:
        return {}
    entries = data.get("data") if isinstance(data, dict) else None
    listed = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    own = [entry for entry in listed if entry.get("id") == name] or (listed if len(listed) == 1 else [])
    if not own:
        return {}
    weights, root = _weights(own[0]), own[0].get("root")
    found = {"weights": weights} if weights else {}
    if isinstance(root, str) and root.strip("/") and root != name:
        found["model file"] = root.rstrip("/").rpartition("/")[2]  # without the folders of that machine
    return found


def _weights(entry: dict[str, Any]) -> str | None:
    quantization, meta = entry.get("quantization"), entry.get("meta")
    if isinstance(quantization, str):
        return quantization
    if isinstance(meta, dict):
        size, count = meta.get("size"), meta.get("n_params")
        if type(size) is int and type(count) is int and count > 0 and math.isfinite(size / count):
            return f"{8 * size / count:.1f} bits per weight"
    return None
