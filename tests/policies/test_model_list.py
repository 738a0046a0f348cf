"""What servers say of a model in their list of models."""

from __future__ import annotations

import json

import pytest

from gem.policies.model_list import read_model_list

LLAMA_CPP = {"id": "g.gguf", "meta": {"n_params": 4_299_915_264, "size": 2_484_283_904, "n_ctx_train": 131_072}}
VLLM = {"id": "m", "object": "model", "root": "/models/Llama-3.1-8B-Instruct-FP8/", "max_model_len": 8192}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([LLAMA_CPP], {"weights": "4.6 bits per weight"}),  # it serves its only model under any name
        ([VLLM, {"id": "other", "root": "other"}], {"model file": "Llama-3.1-8B-Instruct-FP8"}),
        ([{"id": "m", "quantization": "Q4_K_M"}], {"weights": "Q4_K_M"}),
        ([{"id": "m", "root": "m", "meta": {"size": "big", "n_params": 0}}], {}),
        ([{"id": "a", "quantization": "Q8_0"}, {"id": "b", "quantization": "Q4_0"}], {}),
        ([], {}),
        ("none", {}),
    ],
)
def test_the_format_of_the_weights_is_read_from_the_list_of_a_server(entries, expected):
    assert read_model_list(json.dumps({"object": "list", "data": entries}).encode(), "m") == expected


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"data": {"m": 1}}', b'{"data": [1, null]}'])
def test_what_is_no_list_of_models_says_nothing(body):
    assert read_model_list(body, "m") == {}
