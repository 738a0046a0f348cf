"""load_policy: a model to play with, of a training run or a folder. test_trainer.py trains what build_policy builds."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")

import gem
from gem.errors import BadValue
from gem.rl.config import TrainConfig
from gem.rl.run.build import computes_in_bf16, load_policy
from gem.rl.run.trainer import Trainer
from gem.rollout import PolicyPlayer

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    sizes = {"steps": 1, "batch": 8, "minibatch": 8, "imitation_steps": 2, "eval_episodes": 2}
    config = TrainConfig(env="board:Nim-v0", out=str(tmp_path_factory.mktemp("runs")), name="short", **sizes)
    with Trainer.start(config) as trainer:
        trainer.run()
    return trainer.folder


def test_a_run_and_the_folder_of_its_checkpoint_are_the_same_opponent(run):
    episodes = []
    for folder in (run.path, str(run.checkpoints / "update-000001")):
        policy = load_policy(folder, max_new_tokens=12)
        env = gem.make("board:Nim-v0", opponent=PolicyPlayer(policy), on_illegal="retry")
        episodes.append([(env.reset(seed=seed), env.step(env.sample_random_action())) for seed in range(4)])
    assert episodes[0] == episodes[1]


def test_replies_have_the_limit_of_the_run_unless_another_is_given(run):
    assert load_policy(run.path).max_new_tokens < 100
    policy = load_policy(run.path, temperature=0.5, top_p=0.9, max_new_tokens=3, seed=4)
    assert policy.settings == {"temperature": 0.5, "top_p": 0.9, "max_new_tokens": 3, "seed": 4}


def test_a_model_that_plays_loads_no_library_of_training_of_plots_or_of_data(run):
    code = "import sys; from gem.rl.run.build import load_policy; load_policy(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"torch", "transformers", "gem.rl.model.policy"} <= loaded
    assert not loaded & {"peft", "datasets", "pandas", "matplotlib", "tensorboard", "torch.utils.tensorboard"}
    assert not loaded & {"gem.rl.run.trainer", "gem.rl.run.learner", "gem.rl.run.plots"}


def test_a_run_without_a_checkpoint_and_an_unknown_device_are_refused(run, tmp_path):
    (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(BadValue, match="no complete checkpoint"):
        load_policy(tmp_path)
    with pytest.raises(BadValue, match="cannot use the device 'abacus'"):
        load_policy(run.path, device="abacus")


@pytest.mark.parametrize(
    ("model", "device", "dtype", "expected"),
    [
        (None, "cuda", None, False),
        (None, "cuda", "bf16", True),
        ("owner/name", "cuda:1", None, True),
        ("owner/name", "cuda", "float32", False),
        ("owner/name", "cpu", None, False),
        ("owner/name", "cpu", "bf16", True),
    ],
)
def test_only_a_loaded_model_on_a_gpu_computes_in_bfloat16_by_default(model, device, dtype, expected):
    assert computes_in_bf16(TrainConfig(model=model, dtype=dtype), device) is expected
