"""Memory of a training run: the estimate, and the advice when it was not enough."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

from gem.errors import BadValue, InfraError
from gem.rl.config import TrainConfig
from gem.rl.model.memory import (
    building_advice,
    estimate_disk,
    estimate_memory,
    explained_memory_errors,
    learning_advice,
    sampling_advice,
)
from gem.rl.model.scoring import enable_checkpointing
from gem.rl.model.tiny import build_model, build_tokenizer

pytestmark = pytest.mark.train


@pytest.fixture
def model() -> Any:
    return build_model(build_tokenizer(["Turn 1: 7 is too low."], vocabulary=300), seed=0, layers=4).eval()


def saved_bytes(model: Any, rows: int, tokens: int) -> int:
    """Return the bytes that autograd keeps of a real forward pass, without the weights."""
    kept: dict[int, torch.UntypedStorage] = {}
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}

    def keep(tensor):
        if tensor.untyped_storage().data_ptr() not in weights:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        ids = torch.zeros(rows, tokens, dtype=torch.long)
        attend = torch.ones_like(ids)
        attend[0, -3:] = 0
        model.base_model(input_ids=ids, attention_mask=attend, use_cache=False)
    return sum(storage.nbytes() for storage in kept.values())


def test_the_estimate_agrees_with_what_a_real_pass_keeps(model):
    config = TrainConfig(batch=16, minibatch=8)
    estimate = estimate_memory(model, config, tokens=64)
    count = sum(p.numel() for p in model.parameters())
    assert estimate.always == {x: 4 * count for x in ("weights", "gradients", "reference")} | {"optimizer": 8 * count}
    assert estimate.learning["activations"] == pytest.approx(saved_bytes(model, 8, 64), rel=0.2)
    with torch.no_grad():
        cache = model(input_ids=torch.zeros(16, 64, dtype=torch.long), use_cache=True).past_key_values
    assert estimate.sampling["key-value cache"] == sum(4 * (x.keys.numel() + x.values.numel()) for x in cache.layers)
    assert estimate.peak == sum(estimate.always.values()) + sum(estimate.learning.values())


def smollm2() -> Any:
    """Return a model of the shape of SmolLM2-135M without weights."""
    shape = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9}
    shape |= {"num_key_value_heads": 3, "vocab_size": 49_152, "tie_word_embeddings": True}
    with torch.device("meta"):
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))


def test_a_checkpoint_of_a_model_of_135_million_parameters_takes_at_most_1_65_gb():
    count = 134_515_008
    disk = estimate_disk(smollm2(), TrainConfig(kl=0.01))
    assert disk == (12 * count, 4 * count, 0) and disk.checkpoint <= 1.65e9
    assert str(disk).startswith("Disk: 1,614 MB per checkpoint, of which the newest two are kept; 538 MB once")


def test_with_lora_no_checkpoint_holds_the_frozen_weights_and_the_merged_model_is_written_once():
    model, count = smollm2().bfloat16().requires_grad_(False), 134_515_008
    adapter = model.model.layers[0].self_attn.q_proj.float().requires_grad_(True).weight.numel()
    frozen = 2 * (count - adapter)
    assert estimate_disk(model, TrainConfig(model="x", lora_rank=8, kl=0.1)) == (12 * adapter, 4 * adapter, frozen)
    assert estimate_disk(model, TrainConfig(model="x", lora_rank=8, kl=0.0)).reference == 0


def test_a_critic_of_its_own_adds_its_weights_and_its_optimizer_to_a_checkpoint():
    model, count = smollm2(), 134_515_008
    own = estimate_disk(model, TrainConfig(advantage="gae", kl=0.0))
    shared = estimate_disk(model, TrainConfig(advantage="gae", critic_options={"shared": True}, kl=0.0))
    assert own.checkpoint == 24 * count and shared.checkpoint == 12 * count


def test_smaller_micro_batches_and_checkpointing_need_less(model):
    whole = estimate_memory(model, TrainConfig(minibatch=64), tokens=64).learning["activations"]
    parts = estimate_memory(model, TrainConfig(minibatch=64, micro_batch=8), tokens=64).learning["activations"]
    enable_checkpointing(model)
    least = estimate_memory(model, TrainConfig(minibatch=64, micro_batch=8), tokens=64).learning["activations"]
    assert parts == pytest.approx(whole / 8, rel=0.1)
    assert least < parts / 2


def test_the_logits_of_a_large_vocabulary_are_limited_by_the_size_of_a_chunk():
    tokenizer = build_tokenizer(["x"], vocabulary=300)
    with torch.device("meta"):
        config = build_model(tokenizer, seed=0).config
        config.vocab_size = 152_000
        large = type(build_model(tokenizer, seed=0))(config)
    estimate = estimate_memory(large, TrainConfig(minibatch=64), tokens=600)
    assert estimate.learning["logits"] < 400 * 2**20  # 117 GB if all logits of the minibatch were held


def test_a_model_that_does_not_run_without_data_has_no_estimate():
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    experts = transformers.MixtralForCausalLM(transformers.MixtralConfig(vocab_size=300, num_local_experts=2, **shape))
    with pytest.raises(BadValue, match="memory of MixtralForCausalLM "):
        estimate_memory(experts, TrainConfig(), tokens=20)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory."), MemoryError(), RuntimeError("x: can't allocate memory: y")]
)
def test_exhausted_memory_is_one_line_with_the_flag_to_lower(error):
    config = TrainConfig()
    for advice, says in (
        (learning_advice(config), r"lower --micro-batch \(now by length, at most 64"),
        (learning_advice(TrainConfig(micro_batch=8)), r"lower --micro-batch \(now 8"),
        (learning_advice(TrainConfig(micro_batch=1)), "max-new-tokens"),
        (sampling_advice(256), r"lower --slots \(now 256\)"),
        (building_advice(TrainConfig(advantage="gae")), "or --critic-options shared=true or --kl 0, "),
        (building_advice(TrainConfig(kl=0.0)), "smaller model, or --lora-rank .*--dtype bf16$"),
    ):
        with pytest.raises(InfraError, match=says) as found, explained_memory_errors(advice):
            raise error
        assert "\n" not in str(found.value)


def test_other_errors_of_torch_pass_unchanged():
    with pytest.raises(RuntimeError, match="shapes differ"), explained_memory_errors("lower --slots"):
        raise RuntimeError("shapes differ")
