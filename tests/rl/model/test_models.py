"""Models of several architectures are trained: from folders, with LoRA, in bfloat16, with other chat templates."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

import gem
from gem.core import Env, Step
from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.model.loading import find_device, load_pretrained, save_pretrained
from gem.rl.model.tiny import CHAT_TEMPLATE, build_tokenizer
from gem.rl.run.build import load_policy
from gem.rl.run.trainer import Trainer
from gem.rollout import collect
from gem.vector import make_vec
from training_runs import resumed_copy, timeless

pytestmark = pytest.mark.train

ENV = "test:UnequalPay"


@dataclass(frozen=True)
class State:
    turn: int = 0


class UnequalPay(Env):
    """Pays any text by its length and its letters, for two turns. A model that knows nothing earns unequal rewards."""

    def reset(self, seed=None):
        super().reset(seed)
        self.state = State()
        return f"Say something about {self.rng.randint(0, 99)}.", {}

    def step(self, action):
        self.state = State(self.state.turn + 1)
        pay = (len(action) % 7 + sum(map(ord, action)) % 5) / 20
        return Step("Say more.", pay, terminated=self.state.turn == 2)

    def sample_random_action(self):
        return "words"


SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {}),
    "qwen3": ("Qwen3Config", {"head_dim": 16, "tie_word_embeddings": True}),
    "gemma3": ("Gemma3TextConfig", {"head_dim": 16, "sliding_window": 8, "num_hidden_layers": 3}),
    "gpt2": ("GPT2Config", {"n_positions": 256, "n_embd": 32, "n_layer": 2, "n_head": 2}),
    "opt": ("OPTConfig", {"ffn_dim": 64, "word_embed_proj_dim": 32}),
    "llama4": ("Llama4TextConfig", {"head_dim": 16, "intermediate_size_mlp": 64, "num_local_experts": 2}),
}
TINY = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
TINY |= {"num_key_value_heads": 1, "max_position_embeddings": 256}


@pytest.fixture(scope="module", autouse=True)
def env() -> Iterator[None]:
    gem.register(ENV, UnequalPay)
    yield
    del gem.ENV_REGISTRY[ENV]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return folders of models without weights, by architecture; they are initialized from the seed of a run."""
    tokenizer = build_tokenizer(["Say something about 1.", "Say more."] * 20, vocabulary=300)
    found = {}
    for name, (kind, shape) in SHAPES.items():
        folder = tmp_path_factory.mktemp(name)
        tokens = {"vocab_size": len(tokenizer), "bos_token_id": None, "pad_token_id": tokenizer.pad_token_id}
        tokens["eos_token_id"] = tokenizer.eos_token_id
        getattr(transformers, kind)(**({} if name == "gpt2" else TINY) | shape | tokens).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        found[name] = str(folder)
    return found


def config(tmp_path: Path, model: str, **options: Any) -> TrainConfig:
    few = {
        "steps": 2,
        "batch": 8,
        "minibatch": 8,
        "epochs": 2,
        "imitation_steps": 0,
        "eval_episodes": 2,
        "checkpoint_every": 1,
    }
    few |= {"max_new_tokens": 6, "learning_rate": 1e-2, "name": "run", "env": ENV}
    return TrainConfig(out=str(tmp_path), model=model, **few | options)


def gap(trainer: Trainer) -> float:
    """Return the largest difference between the log-probabilities of the sampler and the scorer."""
    with make_vec(ENV, num_envs=6, seed=1) as vec_env:
        trajectories = collect(vec_env, trainer.policy, episodes=6)
    worst = 0.0
    for sequence in (s for t in trajectories for s in t.sequences()):
        ids = torch.tensor([sequence.ids_T])
        mask = torch.tensor([sequence.loss_mask_T])
        with torch.no_grad():
            scored = trainer.policy.score(ids, torch.ones_like(ids), mask).logp_BT
        worst = max(worst, float(((scored - torch.tensor([sequence.logprobs_T])) * mask).abs().max()))
    return worst


@pytest.mark.parametrize("name", SHAPES)
def test_two_updates_change_the_parameters_and_the_sampler_agrees_with_the_scorer(name, folders, tmp_path):
    with Trainer.start(config(tmp_path, folders[name])) as trainer:
        before = {k: v.clone() for k, v in trainer.policy.model.named_parameters()}
        trainer.run()
        changed = [k for k, v in trainer.policy.model.named_parameters() if not torch.equal(v, before[k])]
        assert len(changed) == len(before)
        assert gap(trainer) < 1e-4


def test_a_checkpointed_bf16_run_trains_float32_weights_and_resumes(folders, tmp_path):
    options = {"dtype": "bf16", "gradient_checkpointing": True, "micro_batch": 3}
    with Trainer.start(config(tmp_path, folders["llama"], **options)) as trainer:
        trainer.run()
        assert {p.dtype for p in trainer.policy.model.parameters()} == {torch.float32}
        assert gap(trainer) < 0.1
    with Trainer.resume(str(trainer.folder.path)) as resumed:
        assert resumed.policy.bf16 and resumed.done


@pytest.mark.parametrize("name", ["qwen3", "gpt2"])
def test_a_lora_run_trains_only_the_adapter_and_resumes_bit_identically(name, folders, tmp_path):
    pytest.importorskip("peft")
    lora = {"lora_rank": 4, "dtype": "bf16" if name == "qwen3" else "float32"}
    with Trainer.start(config(tmp_path, folders[name], **lora)) as whole:
        before = {k: v.clone() for k, v in whole.policy.model.named_parameters()}
        whole.run()
        changed = {k for k, v in whole.policy.model.named_parameters() if not torch.equal(v, before[k])}
        assert changed == {k for k in before if "lora_" in k}
        ids = torch.tensor([[5, 6, 7, 8]])
        with torch.no_grad():
            expected = whole.policy.model(input_ids=ids).logits
    assert timeless(resumed_copy(whole.folder.path)) == timeless(whole.folder.path)
    newest = max((whole.folder.path / "checkpoints").iterdir())
    assert (newest / "adapter_model.safetensors").is_file() and not (newest / "model.safetensors").exists()
    merged, _ = load_pretrained(newest / "merged")
    with torch.no_grad():
        assert torch.allclose(merged(input_ids=ids).logits, expected.float(), atol=2e-2 if name == "qwen3" else 1e-4)
    with pytest.raises(BadValue, match="holds only a LoRA adapter"):
        load_pretrained(newest)


@pytest.mark.parametrize("changed", ["model.safetensors", "config.json", "tokenizer_config.json", "template.jinja"])
def test_a_lora_run_is_not_resumed_or_played_with_another_model_or_template_below_its_adapter(
    changed, folders, tmp_path
):
    pytest.importorskip("peft")
    base, template = tmp_path / "base", tmp_path / "template.jinja"
    model, tokenizer = load_pretrained(folders["llama"])
    save_pretrained(model, tokenizer, base)
    template.write_text(CHAT_TEMPLATE)
    with Trainer.start(config(tmp_path, str(base), lora_rank=2, chat_template=str(template), steps=1)) as trainer:
        trainer.run()
    run = str(trainer.folder.path)
    load_policy(run)
    if changed == "model.safetensors":
        save_pretrained(load_pretrained(folders["llama"], seed=1)[0], tokenizer, base)
    elif changed == "template.jinja":
        template.write_text(CHAT_TEMPLATE + " ")
    else:
        content = json.loads((base / changed).read_text())
        (base / changed).write_text(json.dumps(content | {"rms_norm_eps": 0.1}))
    for again in (lambda: Trainer.resume(run, steps=2), lambda: load_policy(run)):
        with pytest.raises(BadValue, match=rf"{changed} .*changed since the run started"):
            again()


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`", "ignore:Setting `save_embedding_layers`")
def test_the_merged_model_keeps_an_adapter_on_the_output_layer_that_is_tied_to_the_input(folders, tmp_path):
    pytest.importorskip("peft")
    with Trainer.start(config(tmp_path, folders["qwen3"], lora_rank=4, lora_modules="q_proj, lm_head")) as trainer:
        trainer.run()
    ids = torch.tensor([[5, 6, 7, 8]])
    merged, _ = load_pretrained(max((trainer.folder.path / "checkpoints").iterdir()) / "merged")
    with torch.no_grad():
        logits, expected = merged(input_ids=ids).logits, trainer.policy.model(input_ids=ids).logits
    assert torch.allclose(logits, expected, atol=1e-4)


def test_a_model_that_cannot_be_sampled_or_scored_is_refused(folders, tmp_path):
    tokens = {"vocab_size": 50, "eos_token_id": 1, "pad_token_id": 0, "bos_token_id": None}
    small = {"hidden_size": 32, "num_hidden_layers": 1, "state_size": 4}
    for kind, options, says in (
        ("MambaConfig", small | {"vocab_size": 300}, "cannot sample from MambaForCausalLM"),
        ("LlamaConfig", TINY | tokens, r"token \d+, .*only 50"),
    ):
        folder = tmp_path / kind
        getattr(transformers, kind)(**options).save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(folders["llama"]).save_pretrained(folder)
        with pytest.raises(BadValue, match=says):
            Trainer.start(config(tmp_path, str(folder)))
        assert not (tmp_path / "run").exists()


def test_an_episode_with_logits_that_are_not_finite_is_counted_and_not_trained_on(folders, tmp_path):
    def damage(module: Any, args: Any, kwargs: Any, out: Any) -> None:
        if kwargs["use_cache"]:  # only while sampling
            out.logits[0] = torch.nan

    with Trainer.start(config(tmp_path, folders["llama"])) as trainer:
        trainer.policy.model.register_forward_hook(damage, with_kwargs=True)
        row = trainer.step()
        scores = trainer.evaluate(both=False)
        assert all(torch.isfinite(p).all() for p in trainer.policy.model.parameters())
    assert 0 < row["failed"] < 8 and row["sampler_gap"] < 1e-4
    assert scores["greedy"]["failed"] > 0


RUNS = "import pathlib; pathlib.Path(r'{}').touch()\n"


def test_code_in_a_folder_is_not_run_and_is_not_asked_about(folders, tmp_path, monkeypatch):
    model = tmp_path / "model"
    shutil.copytree(folders["llama"], model)
    ran, settings = tmp_path / "ran", json.loads((model / "config.json").read_text())
    (model / "own.py").write_text(RUNS.format(ran))
    classes = {"AutoConfig": "own.Settings", "AutoModelForCausalLM": "own.Model", "AutoTokenizer": ["own.Tok", None]}
    (model / "config.json").write_text(json.dumps({**settings, "model_type": "own", "auto_map": classes}))
    monkeypatch.setattr("builtins.input", lambda question: "y")
    with pytest.raises(BadValue, match=r"cannot load the model .*/model': it needs Python code of its folder"):
        load_pretrained(model)
    (model / "config.json").write_text(json.dumps({**settings, "auto_map": classes}))
    loaded, _ = load_pretrained(model)  # transformers has a class for it
    assert type(loaded).__name__ == "LlamaForCausalLM" and not ran.exists()


class Attack:
    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self):
        return exec, (self.code,)


def test_code_in_a_pickle_of_weights_is_not_run(folders, tmp_path):
    model, ran = tmp_path / "model", tmp_path / "ran"
    shutil.copytree(folders["llama"], model)
    torch.save({"lm_head.weight": Attack(RUNS.format(ran))}, model / "pytorch_model.bin")
    with pytest.raises(BadValue, match=r"cannot load the model .* could run code; save the weights as safetensors"):
        load_pretrained(model)
    assert not ran.exists()


def test_lora_on_layers_that_do_not_exist_is_refused(folders, tmp_path):
    pytest.importorskip("peft")
    with pytest.raises(BadValue, match=r"'q_prj'.*'q_proj'.* down_proj, "):
        Trainer.start(config(tmp_path, folders["llama"], lora_rank=2, lora_modules="q_prj"))
    with pytest.raises(BadValue, match="no linear layer 'q_proj'"):
        Trainer.start(config(tmp_path, folders["gpt2"], lora_rank=2, lora_modules="c_attn,q_proj"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lora_rank": 2}, "lora_rank needs a model"),
        ({"chat_template": "x"}, "chat_template needs a model"),
        ({"lora_modules": "q_proj"}, "needs lora_rank"),
        ({"dtype": "fp8"}, "dtype .*float32, bf16"),
    ],
    ids=str,
)
def test_options_without_an_effect_are_refused(options, says):
    with pytest.raises(BadValue, match=says):
        TrainConfig(**options)


def test_a_file_replaces_the_chat_template(folders, tmp_path):
    file = tmp_path / "template.jinja"
    file.write_text("{{ 'Chat: ' }}" + CHAT_TEMPLATE)
    with Trainer.start(config(tmp_path, folders["llama"], chat_template=str(file))) as trainer:
        trainer.run()
        trajectory = trainer.show_game()
        assert trainer.policy.tokenizer.decode(trajectory.turns[0].prompt_ids).startswith("Chat: <|user|>Say something")
    with Trainer.resume(str(trainer.folder.path)) as resumed:
        assert resumed.policy.tokenizer.chat_template == file.read_text()
    with pytest.raises(BadValue, match="cannot read the chat template"):
        Trainer.start(config(tmp_path, folders["llama"], chat_template=str(tmp_path / "none"), name="other"))


def test_the_device_auto_is_one_that_exists():
    assert torch.empty(1, device=find_device("auto")).numel() == 1
