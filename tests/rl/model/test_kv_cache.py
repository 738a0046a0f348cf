"""Keys and values kept between turns: the same replies as without, fewer tokens fed, and dropped with new weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

from gem.messages import user
from gem.policies import Request
from gem.rl.config import TrainConfig
from gem.rl.model.kv_cache import keeps_only_keys_and_values, kept_mib
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.tiny import build_tokenizer, collect_corpus
from gem.rl.run.trainer import Trainer
from gem.rollout import collect
from gem.trajectory import Trajectory
from gem.vector import make_vec
from gem.wrappers import get_wrapper_fns

pytestmark = pytest.mark.train

EASY = "game:GuessTheNumber-v0-easy"
SHAPE = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("Qwen3Config", SHAPE | {"num_hidden_layers": 2}),
    "gemma3, a window of 8 tokens": ("Gemma3TextConfig", SHAPE | {"sliding_window": 8, "num_hidden_layers": 7}),
    "deepseek, keys and values of different sizes": (
        "DeepseekV3Config",
        SHAPE
        | {"num_hidden_layers": 2, "num_key_value_heads": 2, "first_k_dense_replace": 2, "kv_lora_rank": 8}
        | {"q_lora_rank": 8, "head_dim": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16},
    ),
    "gpt2, absolute positions": ("GPT2Config", {"n_positions": 512, "n_embd": 32, "n_layer": 2, "n_head": 2}),
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    corpus = collect_corpus(EASY, seed=0)
    return build_tokenizer([*corpus.observations, *corpus.actions], vocabulary=320)


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, tokenizer: Any) -> Iterator[Any]:
    kind, shape = MODELS[request.param]
    tokens = {"vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    config = getattr(transformers, kind)(**shape, **tokens, pad_token_id=tokenizer.pad_token_id, initializer_range=0.2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield transformers.AutoModelForCausalLM.from_config(config)


def policy(model: Any, tokenizer: Any, mib: int = 64, **options: Any) -> CausalLMPolicy:
    player = CausalLMPolicy(model, tokenizer, max_new_tokens=6, seed=3, kv_cache_mib=mib, **options)
    end = tokenizer.eos_token_id
    player.stop_ids = [end, *range(end + 1, len(tokenizer), 7)]  # so that replies have several lengths
    return player


def play(player: CausalLMPolicy, wrappers: str = "") -> list[Trajectory]:
    """Play episodes of one to four turns, which begin at different times: prompts are new in some slots only."""
    fns = get_wrapper_fns(wrappers, tokenizer=player.tokenizer)
    with make_vec(EASY, num_envs=5, seed=1, wrappers=fns, on_unreadable="continue", max_turns=4) as vec_env:
        return collect(vec_env, player, episodes=12)


def assert_equal(kept: list[Trajectory], plain: list[Trajectory]) -> None:
    assert len(kept) == len(plain)
    for mine, theirs in zip(kept, plain, strict=True):
        assert [t.sampled_ids for t in mine.turns] == [t.sampled_ids for t in theirs.turns]
        for turn, other in zip(mine.turns, theirs.turns, strict=True):
            assert turn.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_episodes_are_those_without_kept_contexts(model, tokenizer, temperature):
    plain = play(policy(model, tokenizer, mib=0, temperature=temperature))
    player = policy(model, tokenizer, temperature=temperature)
    assert_equal(play(player), plain)
    assert player._kept.nbytes > 0


def requests(player: CausalLMPolicy, turn: int, prompts: list[list[int]]) -> list[Request]:
    return [Request("", ids, (slot, 0, turn), str) for slot, ids in enumerate(prompts)]


def test_slots_that_begin_and_slots_that_go_on_share_a_batch(model, tokenizer):
    kept, plain = policy(model, tokenizer), policy(model, tokenizer, mib=0)
    old = [kept.chat.prompt([user("rules " * n + str(n))]) for n in (3, 9, 1)]
    first = kept.act(requests(kept, 0, old))
    longer = [
        kept.chat.extend(ids, reply.sampled_ids, "hint " * n)
        for ids, reply, n in zip(old, first, (1, 4, 30), strict=True)
    ]
    longer.insert(1, kept.chat.prompt([user("other rules")]))
    asked = [Request("", ids, (slot, 0, 1), str) for slot, ids in zip((0, 7, 1, 2), longer, strict=True)]
    for mine, theirs in zip(kept.act(asked), plain.act(asked), strict=True):
        assert mine.sampled_ids == theirs.sampled_ids
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)


def fed_tokens(player: CausalLMPolicy, run: Any) -> int:
    counts: list[int] = []
    hook = player.model.register_forward_pre_hook(
        lambda module, args, kwargs: counts.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    run()
    hook.remove()
    return max(counts)


def test_only_the_new_tokens_of_a_growing_context_are_fed(model, tokenizer):
    player = policy(model, tokenizer)
    first = player.chat.prompt([user("rules " * 30)])
    (reply,) = player.act(requests(player, 0, [first]))
    second = player.chat.extend(first, reply.sampled_ids, "a hint")
    new = len(second) - len(first)
    assert fed_tokens(player, lambda: player.act(requests(player, 1, [second]))) <= new
    forked = [*first[:20], first[20] + 1, *first[21:]]
    assert fed_tokens(player, lambda: player.act(requests(player, 2, [forked]))) == len(first) - 20
    other = [first[0] + 1, *first[1:]]
    assert fed_tokens(player, lambda: player.act(requests(player, 3, [other]))) == len(first)


@pytest.mark.parametrize("wrappers", ["concat", "concat_chat"])
def test_contexts_that_do_not_only_grow_give_the_same_replies(tokenizer, wrappers, model):
    assert_equal(play(policy(model, tokenizer), wrappers), play(policy(model, tokenizer, mib=0), wrappers))


def test_new_weights_drop_all_contexts(model, tokenizer):
    player = policy(model, tokenizer)
    first = player.chat.prompt([user("rules " * 5)])
    (reply,) = player.act(requests(player, 0, [first]))
    second = requests(player, 1, [player.chat.extend(first, reply.sampled_ids, "a hint")])
    parameters = list(model.parameters())
    with torch.no_grad():
        before = [p.clone() for p in parameters]
        for p in parameters:
            p.mul_(0.7)
        (mine,), (theirs,) = player.act(second), policy(model, tokenizer, mib=0).act(second)
        for p, old in zip(parameters, before, strict=True):
            p.copy_(old)
    assert mine.sampled_ids == theirs.sampled_ids
    assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)


def test_the_memory_limit_holds_and_the_oldest_contexts_are_dropped(model, tokenizer):
    player = policy(model, tokenizer)
    asked = requests(player, 0, [player.chat.prompt([user("rules " * 20)])] * 4)
    player.act(asked[:1])
    player._kept.limit = limit = int(2.5 * player._kept.nbytes)
    for one in asked[1:]:
        player.act([one])
        assert 0 < player._kept.nbytes <= limit
    assert list(player._kept._contexts) == [(2, 0), (3, 0)]
    player.forget()
    assert player._kept.nbytes == 0
    player.act(asked)  # more than fits
    assert 0 < player._kept.nbytes <= limit
    assert 0 < len(player._kept._contexts) < 4
    player._kept.limit = 10
    player.forget()
    player.act(asked)
    assert player._kept.nbytes == 0


def test_contexts_are_kept_on_a_cpu_by_default():
    assert [kept_mib(None, device) for device in ("cpu", "cuda", "mps")] == [1024, 0, 0]
    assert [kept_mib(8, device) for device in ("cpu", "cuda")] == [8, 8]


def test_nothing_is_kept_of_models_with_other_states():
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.Lfm2Config(
            **SHAPE | {"num_hidden_layers": 2}, vocab_size=64, layer_types=["conv", "full_attention"]
        )
    )
    assert not keeps_only_keys_and_values(model)


def test_nothing_is_kept_over_an_update(tmp_path):
    few = {"steps": 1, "batch": 4, "minibatch": 4, "eval_episodes": 2, "imitation_steps": 0}
    with Trainer.start(TrainConfig(out=str(tmp_path), name="run", **few)) as trainer:
        trainer.step()
        assert trainer.policy._kept.nbytes == 0
