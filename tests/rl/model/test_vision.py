"""Vision-language models: images reach the sampler, the scorer and the gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("PIL")

import torch
import transformers
from PIL import Image

import gem
from gem.core import Env, Step
from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.estimate.batch import collate, pack
from gem.rl.model.tiny import build_tokenizer
from gem.rl.run.trainer import Trainer
from gem.rollout import collect
from gem.vector import make_vec

pytestmark = pytest.mark.train

ENV = "test:TwoPictures"
CONTROL = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"]


@dataclass(frozen=True)
class State:
    turn: int = 0


class TwoPictures(Env):
    """Shows a picture per turn, of two sizes, for two turns; pays any text unequally."""

    def reset(self, seed=None):
        super().reset(seed)
        self.state = State()
        return self.observation(), {}

    def step(self, action):
        self.state = State(self.state.turn + 1)
        pay = (len(action) % 7 + sum(map(ord, action)) % 5) / 20
        return Step(self.observation(), pay, terminated=self.state.turn == 2)

    def observation(self):
        color = tuple(self.rng.randrange(256) for _ in range(3))
        size = (56, 84) if self.state.turn else (112, 56)
        return {"text": f"What is picture {self.rng.randint(0, 99)}?", "images": [Image.new("RGB", size, color)]}

    def sample_random_action(self):
        return "words"


@pytest.fixture(scope="module", autouse=True)
def env() -> Iterator[None]:
    gem.register(ENV, TwoPictures)
    yield
    del gem.ENV_REGISTRY[ENV]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a model in the form of Qwen2-VL without weights, initialized from the seed of a run."""
    path = tmp_path_factory.mktemp("qwen2_vl")
    tokenizer = build_tokenizer(["What is picture 7?"] * 20, vocabulary=300)
    tokenizer.add_special_tokens({"additional_special_tokens": CONTROL})
    start, image, end = tokenizer.convert_tokens_to_ids(CONTROL)
    text = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    text |= {"num_key_value_heads": 1, "vocab_size": len(tokenizer), "max_position_embeddings": 512}
    text |= {"rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 1e4}}
    text |= {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    vision = {"depth": 1, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2}
    transformers.Qwen2VLConfig(
        text_config=text | {"initializer_range": 0.2},
        vision_config=vision | {"initializer_range": 0.2},
        image_token_id=image,
        video_token_id=image,
        vision_start_token_id=start,
        vision_end_token_id=end,
    ).save_pretrained(path)
    tokenizer.save_pretrained(path)
    size = {"shortest_edge": 28 * 28, "longest_edge": 112 * 84}
    transformers.models.qwen2_vl.image_processing_pil_qwen2_vl.Qwen2VLImageProcessorPil(size=size).save_pretrained(path)
    return str(path)


def config(tmp_path: Path, folder: str, **options: Any) -> TrainConfig:
    few = {
        "steps": 2,
        "batch": 8,
        "minibatch": 4,
        "epochs": 2,
        "imitation_steps": 0,
        "eval_episodes": 2,
        "checkpoint_every": 1,
    }
    few |= {"max_new_tokens": 6, "learning_rate": 1e-2, "name": "run", "env": ENV}
    return TrainConfig(out=str(tmp_path), model=folder, **few | options)


def played(trainer: Trainer, episodes: int = 6) -> Any:
    with make_vec(ENV, num_envs=4, seed=1) as vec_env:
        return collect(vec_env, trainer.policy, episodes=episodes)


def gap(trainer: Trainer) -> float:
    """Return the largest difference between the log-probabilities of the sampler and the scorer."""
    examples = pack(played(trainer))
    assert all(len(e.images) == 2 for e in examples)
    mb = collate(examples, trainer.policy.pad_id)
    with torch.no_grad():
        scored = trainer.policy.score(mb.ids_BT, mb.attend_BT, mb.mask_BT, mb.images).logp_BT
    return float(((scored - mb.logp_old_BT) * mb.mask_BT).abs().max())


def test_two_updates_change_all_parameters_and_the_sampler_agrees_with_the_scorer(folder, tmp_path):
    with Trainer.start(config(tmp_path, folder)) as trainer:
        before = {k: v.clone() for k, v in trainer.policy.model.named_parameters()}
        trainer.run()
        changed = [k for k, v in trainer.policy.model.named_parameters() if not torch.equal(v, before[k])]
        assert changed == list(before)
        assert any(name.startswith("model.visual.") for name in changed)
        assert gap(trainer) < 1e-4
    with Trainer.resume(str(trainer.folder.path)) as resumed:
        assert resumed.done and gap(resumed) < 1e-4


def test_the_gradient_depends_on_the_image(folder, tmp_path):
    with Trainer.start(config(tmp_path, folder)) as trainer:
        mb = collate(pack(played(trainer, 4)), trainer.policy.pad_id)
        model, gradients = trainer.policy.model, []
        for images in (mb.images, [[Image.new("RGB", i.size, "white") for i in row] for row in mb.images]):
            model.zero_grad()
            trainer.policy.score(mb.ids_BT, mb.attend_BT, mb.mask_BT, images).logp_BT.sum().backward()
            gradients.append([p.grad.clone() for p in model.parameters()])
        patches = model.model.visual.patch_embed.proj.weight.grad
        assert patches.abs().max() > 0
        assert all(not torch.allclose(a, b) for a, b in zip(*gradients, strict=True) if a.abs().max() > 1e-6)


def test_an_environment_of_pictures_is_trained_on(folder, tmp_path):
    options = {"env": "vision:Charts", "entropy": 0.1, "kl": 0.0}  # random text earns nothing; the bonus has a gradient
    with Trainer.start(config(tmp_path, folder, **options)) as trainer:
        before = trainer.policy.model.model.visual.patch_embed.proj.weight.clone()
        trainer.run()
        assert not torch.equal(before, trainer.policy.model.model.visual.patch_embed.proj.weight)


def test_placeholders_are_never_sampled_and_text_that_looks_like_them_is_text(folder, tmp_path):
    with Trainer.start(config(tmp_path, folder, max_new_tokens=40)) as trainer:
        image = trainer.policy.images.placeholder
        for trajectory in played(trainer):
            assert not any(image in turn.sampled_ids for turn in trajectory.turns)
            # 112 x 56 pixels are 4 x 2 placeholders, and 56 x 84 pixels 2 x 3.
            assert [turn.prompt_ids.count(image) for turn in trajectory.turns] == [8, 14]
        assert image not in trainer.policy.chat.prompt([{"role": "user", "content": "<|image_pad|>"}])


def test_pictures_need_a_model_that_reads_them(folder, tmp_path):
    with pytest.raises(BadValue, match=r"vision:Charts: .*images"):
        Trainer.start(TrainConfig(env="vision:Charts", out=str(tmp_path)))
    with pytest.raises(BadValue, match=r"test:TwoPictures with a critic.*images"):
        Trainer.start(config(tmp_path, folder, advantage="gae"))
    assert not list(tmp_path.iterdir())
