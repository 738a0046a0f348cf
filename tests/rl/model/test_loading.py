"""What is loaded is what was meant: weights, end tokens, context lengths and chat templates of folders, or an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from safetensors.torch import load_file, save_file

from gem.errors import BadValue
from gem.messages import user
from gem.policies import Request
from gem.rl.model import loading
from gem.rl.model.loading import fingerprints, load_pretrained
from gem.rl.model.policy import CausalLMPolicy, context_limits
from gem.rl.model.tiny import build_tokenizer

pytestmark = pytest.mark.train

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"num_key_value_heads": 1, "max_position_embeddings": 512}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1, "head_dim": 16}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer(["Say something about 1.", "Say more."] * 20, vocabulary=300)


def config_of(tokenizer: Any, kind: str = "Llama", **options: Any) -> Any:
    tokens = {"vocab_size": len(tokenizer), "bos_token_id": None, "pad_token_id": tokenizer.pad_token_id}
    tokens["eos_token_id"] = tokenizer.eos_token_id
    return getattr(transformers, f"{kind}Config")(**SIZES | tokens | options)


def save_model(folder: Path, tokenizer: Any, kind: str = "Llama", **options: Any) -> dict[str, torch.Tensor]:
    """Save a model, initialized at random, and return its tensors."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.AutoModelForCausalLM.from_config(config_of(tokenizer, kind, **options)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return load_file(folder / "model.safetensors")


def save_tensors(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    save_file({name: t.clone() for name, t in tensors.items()}, folder / "model.safetensors", {"format": "pt"})


def edit(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


# Weights


DOWN, NORM, HEAD = "model.layers.1.mlp.down_proj.weight", "model.norm.weight", "lm_head.weight"


def without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda tensors: {name: t for name, t in tensors.items() if name not in names}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without(DOWN, NORM), rf"{DOWN} is missing, {NORM} is missing$"),
        (without(HEAD), f"{HEAD} is missing"),
        (lambda t: {**t, DOWN: t[DOWN][:, :-1]}, rf"{DOWN} has the shape \(32, 63\) for \(32, 64\)"),
        (lambda t: {name.replace("model.", "net."): x for name, x in t.items()}, r"missing.* and \d+ more"),
        (lambda t: {**t, DOWN.replace("1", "2"): t[DOWN]}, r"model.layers.2.mlp.down_proj.weight is not used"),
        (lambda t: {**t, DOWN: t[DOWN] * torch.nan}, rf"{DOWN} holds values that are not finite"),
    ],
    ids=["two missing", "no output layer", "another shape", "other names", "one more layer", "NaN"],
)
def test_tensors_that_do_not_fit_the_configuration_are_named(change, says, tokenizer, tmp_path):
    save_tensors(tmp_path, change(save_model(tmp_path, tokenizer)))
    with pytest.raises(BadValue, match=says):
        load_pretrained(tmp_path)


def test_a_missing_expert_is_an_error(tokenizer, tmp_path):
    tensors = save_model(tmp_path, tokenizer, "Mixtral", **EXPERTS)
    (name,) = (name for name in tensors if name.endswith("0.block_sparse_moe.experts.1.w2.weight"))
    save_tensors(tmp_path, without(name)(tensors))
    with pytest.raises(BadValue, match="cannot load the model"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("kind", "says"), [("Qwen2", "q_proj.bias is not used"), ("Qwen3", "q_norm.weight is not used")]
)
def test_weights_of_another_architecture_are_named(kind, says, tokenizer, tmp_path):
    save_model(tmp_path, tokenizer, kind, head_dim=16)
    edit(tmp_path / "config.json", model_type="llama", architectures=["LlamaForCausalLM"])
    with pytest.raises(BadValue, match=says):
        load_pretrained(tmp_path)


def test_a_tied_output_layer_and_tensors_of_other_parts_are_no_error(tokenizer, tmp_path):
    tensors = save_model(tmp_path, tokenizer, tie_word_embeddings=True)
    assert HEAD not in tensors
    save_tensors(tmp_path, {**tensors, "value_head.weight": torch.ones(1, 32)})
    model, _ = load_pretrained(tmp_path)
    assert torch.equal(model.lm_head.weight, tensors["model.embed_tokens.weight"])


TRACES = ["model.safetensors.index.json", "pytorch_model.bin.index.json", "model-00001-of-00002.safetensors.incomplete"]
TRACES += ["consolidated.00.pth", "model.gguf", "tf_model.h5", "flax_model.msgpack"]


@pytest.mark.parametrize("trace", TRACES)
def test_a_folder_that_lost_its_weights_is_not_initialized_at_random(trace, tokenizer, tmp_path):
    config_of(tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    load_pretrained(tmp_path)
    (tmp_path / trace).write_text(
        json.dumps({"metadata": {}, "weight_map": {NORM: "model-00001-of-00001.safetensors"}})
    )
    with pytest.raises(BadValue, match="cannot load the model"):
        load_pretrained(tmp_path)


def test_errors_name_the_missing_file_or_entry_and_the_folder_of_a_run(tokenizer, tmp_path):
    save_model(tmp_path, tokenizer)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(BadValue, match=r"tokenizer\.json is missing"):
        load_pretrained(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00001.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    with pytest.raises(BadValue, match="entry 'metadata' is missing"):
        load_pretrained(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(BadValue, match="is the folder of a run"):
        load_pretrained(tmp_path)


# Configurations


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("Mixtral", EXPERTS),
        ("Qwen3Moe", {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32, "head_dim": 16}),
        ("GptOss", EXPERTS | {"layer_types": ["sliding_attention", "full_attention"]}),
        ("Olmoe", {"num_experts": 2, "num_experts_per_tok": 1}),
    ],
)
def test_a_mixture_of_experts_that_returns_its_router_logits_is_sampled(kind, options, tokenizer, tmp_path):
    config_of(tokenizer, kind, output_router_logits=True, **options).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert_replies(tmp_path)


@pytest.mark.parametrize(
    "option", [{"output_hidden_states": True}, {"return_dict": False}, {"use_cache": False}], ids=str
)
def test_options_of_what_a_model_returns_do_not_matter(option, tokenizer, tmp_path):
    save_model(tmp_path, tokenizer)
    edit(tmp_path / "config.json", **option)
    assert_replies(tmp_path)


def assert_replies(folder: Path) -> None:
    player = CausalLMPolicy(*load_pretrained(folder), max_new_tokens=3)
    asked = [Request("", player.chat.prompt([user("Say more. " * n)]), (n, 0, 0), str) for n in (1, 5)]
    assert all(reply.sampled_ids for reply in player.act(asked))


def test_the_end_tokens_of_a_folder_without_weights_are_those_of_its_generation_config(tokenizer, tmp_path):
    a, e = tokenizer.convert_tokens_to_ids(["a", "e"])
    config_of(tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    edit(tmp_path / "config.json", eos_token_id=e)
    end = tokenizer.eos_token_id
    assert CausalLMPolicy(*load_pretrained(tmp_path)).stop_ids == sorted([end, e])
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [a, end]}))
    assert CausalLMPolicy(*load_pretrained(tmp_path)).stop_ids == sorted([end, a])


def test_the_end_tokens_of_a_configuration_count_if_the_generation_config_has_none(tokenizer, tmp_path):
    save_model(tmp_path, tokenizer)
    (e,) = tokenizer.convert_tokens_to_ids(["e"])
    edit(tmp_path / "config.json", eos_token_id=[e])
    (tmp_path / "generation_config.json").write_text("{}")
    assert CausalLMPolicy(*load_pretrained(tmp_path)).stop_ids == sorted([e, tokenizer.eos_token_id])


@pytest.mark.parametrize(
    "kind", ["Qwen2_5_VL", "Gemma3", "Mistral3", "Llama4", "Qwen3VL", "Idefics3", "Llava", "InternVL"]
)
def test_the_context_length_of_a_model_with_pictures_is_in_its_text_config(kind):
    assert min(context_limits(getattr(transformers, f"{kind}Config")(text_config=text_config(kind)))) == 64


def text_config(kind: str) -> dict[str, Any]:
    model_type = {"Idefics3": "llama", "Llava": "llama", "InternVL": "qwen2", "Mistral3": "mistral"}.get(kind)
    return {"max_position_embeddings": 64} | ({} if model_type is None else {"model_type": model_type})


@pytest.mark.parametrize(
    ("kind", "options", "limit"),
    [
        ("GPT2", {"n_positions": 48}, 48),
        ("Mpt", {"max_seq_len": 48}, 48),
        ("Bloom", {}, None),
        ("Mamba", {}, None),
    ],
)
def test_the_context_length_has_other_names(kind, options, limit):
    assert min(context_limits(getattr(transformers, f"{kind}Config")(**options)), default=None) == limit


LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 8, "long_factor": [4.0] * 8}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("Phi3", {"original_max_position_embeddings": 40, "rope_parameters": LONGROPE}),
        ("Llama", {"rope_parameters": LONGROPE | {"original_max_position_embeddings": 40}}),
        ("Llama", {"max_position_embeddings": 40, "rope_parameters": {"rope_type": "dynamic", "factor": 4.0}}),
        (
            "Gemma3Text",
            {
                "head_dim": 16,
                "rope_parameters": {
                    "full_attention": LONGROPE | {"original_max_position_embeddings": 40},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                },
            },
        ),
    ],
)
def test_a_context_ends_where_rotary_factors_change(kind, options, tokenizer):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(
            config_of(tokenizer, kind, initializer_range=0.2, **options)
        )
    player = CausalLMPolicy(model, tokenizer, max_new_tokens=10, seed=1)
    assert player.max_prompt_tokens == 30
    short, long = (Request("", [*range(4, 4 + n)], (n, 0, 0), str) for n in (5, 30))
    (alone,), (together, _) = player.act([short]), player.act([short, long])
    assert (alone.sampled_ids, alone.logprobs) == (together.sampled_ids, pytest.approx(together.logprobs, abs=1e-4))


def test_a_context_without_room_for_a_prompt_is_named(tokenizer):
    model = transformers.AutoModelForCausalLM.from_config(config_of(tokenizer, max_position_embeddings=16))
    with pytest.raises(BadValue, match=r"max_new_tokens 16 .* context of 16 tokens"):
        CausalLMPolicy(model, tokenizer, max_new_tokens=16)


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", r"generation_config\.json"), ("[]", "cannot load"), ('{"eos_token_id": "</s>"}', "eos_token_id .*'</s>'")],
)
def test_a_damaged_generation_config_is_an_error(content, says, tokenizer, tmp_path):
    save_model(tmp_path, tokenizer)
    (tmp_path / "generation_config.json").write_text(content)
    with pytest.raises(BadValue, match=says):
        CausalLMPolicy(*load_pretrained(tmp_path))


# Fingerprints


def test_a_fingerprint_changes_with_any_tensor_and_setting_and_not_with_other_files(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "WHOLE", 100)  # as if the weights were large
    monkeypatch.setattr(loading, "SAMPLE", 16)
    tensors = save_model(tmp_path, tokenizer)
    before = fingerprints(tmp_path)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {*before}
    (tmp_path / "README.md").write_text("Read me.")
    assert fingerprints(tmp_path) == before
    for name, tensor in tensors.items():
        save_tensors(tmp_path, {**tensors, name: tensor + 0.1})
        assert fingerprints(tmp_path) | {"model.safetensors": ""} == before | {"model.safetensors": ""}
        assert fingerprints(tmp_path) != before, name
    save_tensors(tmp_path, tensors)
    assert fingerprints(tmp_path) == before
    edit(tmp_path / "config.json", rms_norm_eps=0.1)
    assert fingerprints(tmp_path) != before


def test_a_large_file_is_read_in_part(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "WHOLE", 100)
    monkeypatch.setattr(loading, "SAMPLE", 16)
    tensors = save_model(tmp_path, tokenizer)
    before = fingerprints(tmp_path)
    tensors[DOWN][0, 0] += 1
    save_tensors(tmp_path, tensors)
    assert fingerprints(tmp_path) == before
