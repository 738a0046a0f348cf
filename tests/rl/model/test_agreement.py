"""Sampler and scorer agree on log-probabilities, with any neighbours in the batch, or training does not start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.model.agreement import check_agreement
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.tiny import build_tokenizer
from gem.rl.run.trainer import Trainer

pytestmark = pytest.mark.train

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"max_position_embeddings": 512, "initializer_range": 0.2}
GROUPED = SIZES | {"num_key_value_heads": 1, "head_dim": 16}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
MIXED = {"layer_types": ["linear_attention", "full_attention"]}
LINEAR = {f"linear_{name}": n for name, n in (("num_key_heads", 2), ("num_value_heads", 2))}
LINEAR |= {"linear_key_head_dim": 16, "linear_value_head_dim": 16}
MINIMAX = GROUPED | EXPERTS | MIXED | {"block_size": 16}  # its linear attention counts padding as tokens
EQUAL: dict[str, dict[str, Any]] = {
    "Mistral": GROUPED | {"sliding_window": 8},
    "Gemma2": GROUPED | {"sliding_window": 8},
    "GptOss": GROUPED | EXPERTS | {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8},
    "Qwen3Next": GROUPED | MIXED | LINEAR | {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 32},
    "Lfm2": GROUPED | {"layer_types": ["conv", "full_attention"]},
    "Bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 2, "initializer_range": 0.2},
    "OPT": SIZES | {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "GPTNeo": {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]},
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer(["Say something about 1.", "Say more.", "rules rules"] * 20, vocabulary=300)


def config_of(tokenizer: Any, kind: str, shape: dict[str, Any]) -> Any:
    tokens = {"vocab_size": len(tokenizer), "bos_token_id": None, "pad_token_id": tokenizer.pad_token_id}
    tokens["eos_token_id"] = tokenizer.eos_token_id
    return getattr(transformers, f"{kind}Config")(**shape | tokens)


def policy(tokenizer: Any, kind: str, shape: dict[str, Any], **options: Any) -> CausalLMPolicy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config_of(tokenizer, kind, shape))
    return CausalLMPolicy(model, tokenizer, **options)


@pytest.mark.parametrize("kind", EQUAL)
def test_most_architectures_agree(kind, tokenizer):
    check_agreement(policy(tokenizer, kind, EQUAL[kind]))


@pytest.mark.parametrize("scale", [0.02, 0.2])
def test_a_model_that_counts_padding_as_tokens_is_refused_in_batches_only(scale, tokenizer):
    player = policy(tokenizer, "MiniMax", MINIMAX | {"initializer_range": scale})
    with pytest.raises(BadValue, match=r"MiniMaxForCausalLM in batches.* nats; set slots=1 and micro_batch=1"):
        check_agreement(player)
    check_agreement(player, alone=True)


def test_a_model_whose_positions_depend_on_how_it_is_fed_is_refused(tokenizer):
    player = policy(tokenizer, "Roberta", SIZES | {"is_decoder": True})
    with pytest.raises(BadValue, match=r"RobertaForCausalLM: .*differs by .* nats"):
        check_agreement(player, alone=True)


@pytest.mark.parametrize("kind", ["Mistral", "Qwen3Next"])
def test_frozen_weights_in_bfloat16_may_be_rounded(kind, tokenizer):
    player = policy(tokenizer, kind, EQUAL[kind])
    player.model.bfloat16()
    check_agreement(player)


def test_a_model_that_fails_is_refused_with_its_error(tokenizer):
    def fail(module: Any, args: Any) -> None:
        raise IndexError("index 8 is out of bounds")

    player = policy(tokenizer, "Mistral", EQUAL["Mistral"])
    player.model.register_forward_pre_hook(fail)
    with pytest.raises(BadValue, match="MistralForCausalLM, which fails in a first test: IndexError: index 8"):
        check_agreement(player)


def test_the_check_does_not_depend_on_the_settings_of_the_policy_and_changes_nothing(tokenizer):
    player = policy(tokenizer, "Mistral", EQUAL["Mistral"], temperature=0.1, bf16=True, max_new_tokens=1)
    precision = torch.get_float32_matmul_precision()
    check_agreement(player)
    assert player.bf16 and player._kept.nbytes == 0 and torch.get_float32_matmul_precision() == precision


def test_contexts_that_do_not_fit_are_left_out(tokenizer):
    for positions in (10, 24, 48, 100):
        check_agreement(
            policy(tokenizer, "OPT", EQUAL["OPT"] | {"max_position_embeddings": positions}, max_new_tokens=9)
        )


def test_a_model_that_computes_nan_is_refused(tokenizer):
    def damage(module: Any, args: Any, out: Any) -> None:
        out.logits.fill_(torch.nan)

    player = policy(tokenizer, "Mistral", EQUAL["Mistral"])
    player.model.register_forward_hook(damage)
    with pytest.raises(BadValue, match="not finite"):
        check_agreement(player)


def run_config(tokenizer: Any, tmp_path: Path, **options: Any) -> TrainConfig:
    folder = tmp_path / "model"
    config_of(tokenizer, "MiniMax", MINIMAX).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    few = {
        "steps": 1,
        "batch": 2,
        "minibatch": 2,
        "eval_episodes": 2,
        "max_new_tokens": 4,
        "name": "run",
        "imitation_steps": 0,
    }
    return TrainConfig(out=str(tmp_path), model=str(folder), env="game:GuessTheNumber-v0-easy", **few | options)


def test_no_run_starts_with_such_a_model_unless_it_trains_one_sequence_at_a_time(tokenizer, tmp_path):
    with pytest.raises(BadValue, match="MiniMaxForCausalLM in batches"):
        Trainer.start(run_config(tokenizer, tmp_path, slots=1))
    assert not (tmp_path / "run").exists()
    with Trainer.start(run_config(tokenizer, tmp_path, slots=1, micro_batch=1)) as trainer:
        trainer.run()
    (row,) = trainer.folder.read_metrics()
    assert row["sampler_gap"] < 1e-4
