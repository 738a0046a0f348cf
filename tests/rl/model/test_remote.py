"""Episodes sampled by a server: the versions of its weights, the ratios, and servers that cannot be used.

`make test-vllm` installs a real vLLM; GEM_VLLM names its program.
"""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("aiohttp")

import torch
import transformers
from model_server import ModelServer

import gem
from gem.core import Env, Step
from gem.errors import BadValue, EndpointError
from gem.rl.config import TrainConfig
from gem.rl.model.loading import load_pretrained
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.tiny import build_model, build_tokenizer
from gem.rl.run.trainer import Trainer
from gem.trajectory import Trajectory

pytestmark = pytest.mark.train

ENV = "test:LongAndShort"


@dataclass(frozen=True)
class State:
    left: int


class LongAndShort(Env):
    """Episodes of one to four turns, so that some are in the middle when a batch is complete."""

    def reset(self, seed=None):
        super().reset(seed)
        self.state = State(self.rng.randint(1, 4))
        return f"Say something about {self.rng.randint(0, 99)}.", {}

    def step(self, action):
        self.state = State(self.state.left - 1)
        return Step("Say more.", (len(action) % 7) / 20, terminated=self.state.left == 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    gem.register(ENV, LongAndShort)
    tokenizer = build_tokenizer(["Say something about 1.", "Say more."] * 20, vocabulary=300)
    found = tmp_path_factory.mktemp("model")
    build_model(tokenizer, seed=0, hidden=32, context=256).save_pretrained(found)
    tokenizer.save_pretrained(found)
    yield str(found)
    del gem.ENV_REGISTRY[ENV]


@pytest.fixture
def server(folder: str) -> Iterator[ModelServer]:
    model, tokenizer = load_pretrained(folder)
    with ModelServer(CausalLMPolicy(model, tokenizer, max_new_tokens=5)) as running:
        yield running


def config(tmp_path: Path, folder: str, url: str, **options: Any) -> TrainConfig:
    few: dict[str, Any] = {
        "steps": 3,
        "batch": 6,
        "imitation_steps": 0,
        "minibatch": 6,
        "slots": 12,
        "eval_episodes": 2,
        "name": "run",
    }
    few |= {
        "max_new_tokens": 5,
        "learning_rate": 3e-2,
        "imitation_steps": 0,
        "env": ENV,
        "sampler": url,
        "sampler_options": {"sync": "sglang"},
    }
    return TrainConfig(out=str(tmp_path), model=folder, **few | options)


@pytest.mark.parametrize("sync", ["sglang", "vllm"])
def test_the_versions_and_ratios_are_right_when_the_weights_change_in_mid_episode(sync, folder, server, tmp_path):
    weights: dict[int, CausalLMPolicy] = {}
    batches: list[list[Trajectory]] = []
    with Trainer.start(config(tmp_path, folder, server.url, sampler_options={"sync": sync})) as trainer:
        trainer.learner.begin()
        push, learn = trainer.sampler.sync.push, trainer.learner.learn

        def push_and_keep(policy, endpoint, path):
            name = push(policy, endpoint, path)
            weights[policy.version] = server.policy
            return name

        def learn_and_keep(trajectories, *args):
            batches.append(list(trajectories))
            examples, _ = trainer.learner.prepare(trajectories)
            check_ratios(trainer, trajectories, examples)
            return learn(trajectories, *args)

        trainer.sampler.sync = replace(trainer.sampler.sync, push=push_and_keep)
        trainer.learner.learn = learn_and_keep
        trainer.evaluate = lambda both: {"greedy": {"success": 0.0}}
        trainer.untrained = {"greedy": {}, "sampled": {}}
        for _ in range(3):
            trainer.step()
    assert [name[:14] for name in server.loaded] == ["version-000000", "version-000001", "version-000002"]
    assert len(list((trainer.folder.path / "sampler").iterdir())) == 2, "older weights are deleted"
    mixed = [t for batch in batches for t in batch if len({turn.policy_version for turn in t.turns}) > 1]
    assert mixed, "some episodes go on under newer weights"
    for turn in (turn for batch in batches for t in batch for turn in t.turns):
        # A reply that was under way when the weights changed may come from newer ones.
        versions = [weights[v] for v in weights if v >= turn.policy_version]
        assert any(score(version, turn) == pytest.approx(turn.logprobs, abs=1e-4) for version in versions)


def score(policy: CausalLMPolicy, turn: Any) -> list[float]:
    ids = torch.tensor([[*turn.prompt_ids, *turn.sampled_ids]])
    with torch.no_grad():
        return policy.score(ids, torch.ones_like(ids)).logp_BT[0, len(turn.prompt_ids) :].tolist()


def check_ratios(trainer: Trainer, trajectories: list[Trajectory], examples: list[Any]) -> None:
    """Assert that each token is weighted by its probability under the weights to train over that of the sampler."""
    assert trainer.config.truncated_is == 2.0
    for example in examples:
        sequence = example.sequence
        for k, turn in enumerate(trajectories[example.episode].turns):
            now = score(trainer.policy, turn)
            expected = [min(2.0, math.exp(a - b)) for a, b in zip(now, turn.logprobs, strict=True)]
            at = [t for t, own in enumerate(sequence.turn_T) if own == k]
            if at:
                assert [example.weight_T[t] for t in at] == pytest.approx(expected, abs=1e-3)
            if turn.policy_version == trainer.policy.version:
                assert expected == pytest.approx([1.0] * len(expected), abs=1e-3)


def test_a_run_with_a_server_resumes(folder, server, tmp_path):
    asked = iter([False, True])
    with Trainer.start(config(tmp_path, folder, server.url, steps=2)) as trainer:
        trainer.run(should_stop=lambda: next(asked))
    with Trainer.resume(str(trainer.folder.path)) as resumed:
        resumed.run()
        assert resumed.done
    rows = resumed.folder.read_metrics()
    assert [row["update"] for row in rows] == [1, 2]
    assert rows[1]["sampler_gap"] < 1e-3


def test_vllm_gets_a_new_adapter_for_each_version_and_unloads_old_ones(folder, server, tmp_path):
    pytest.importorskip("peft")
    options = {"lora_rank": 2, "sampler_options": {"sync": "vllm", "model": "base"}}
    with Trainer.start(config(tmp_path, folder, server.url, **options)) as trainer:
        trainer.run()
    names = [body["lora_name"] for path, body in server.posts if path == "/v1/load_lora_adapter" and body]
    assert [name[:14] for name in names] == ["version-000000", "version-000001", "version-000002"]
    assert set(server.adapters) == set(names[1:])
    assert {"adapter_config.json", "adapter_model.safetensors"} <= set(server.adapters[names[-1]])
    asked = [body["model"] for path, body in server.posts if path == "/v1/completions"]
    assert asked[0] == "base" and set(asked[1:]) == set(names)


def test_a_server_that_returns_no_token_ids_is_refused_with_the_reason(folder, tmp_path):
    model, tokenizer = load_pretrained(folder)
    with (
        ModelServer(CausalLMPolicy(model, tokenizer, max_new_tokens=5), ids=False) as server,
        pytest.raises(BadValue, match=r"cannot train with the sampler .*returned no token ids"),
    ):
        Trainer.start(config(tmp_path, folder, server.url))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("route", "options", "remedy"),
    [
        ("/collective_rpc", {"sampler_options": {"sync": "vllm"}}, "VLLM_SERVER_DEV_MODE=1"),
        ("/v1/load_lora_adapter", {"sampler_options": {"sync": "vllm"}, "lora_rank": 2}, "--enable-lora"),
        ("/update_weights_from_disk", {"sampler_options": {"sync": "sglang"}}, "SGLang, or set sync=vllm"),
    ],
)
def test_a_server_that_cannot_load_weights_is_refused_with_what_to_start(route, options, remedy, folder, tmp_path):
    if "lora_rank" in options:
        pytest.importorskip("peft")
    model, tokenizer = load_pretrained(folder)
    with (
        ModelServer(CausalLMPolicy(model, tokenizer, max_new_tokens=5), missing=route) as server,
        pytest.raises(BadValue, match=f"{route}: status 404.*start .*{remedy}"),
    ):
        Trainer.start(config(tmp_path, folder, server.url, **options))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sync", "route", "answer", "says"),
    [
        ("sglang", "/update_weights_from_disk", (400, {"success": False, "message": "shapes differ"}), "shapes differ"),
        ("vllm", "/reset_prefix_cache?reset_running_requests=true", (200, {"success": False}), "did not carry out"),
    ],
)
def test_weights_that_the_server_does_not_load_stop_the_run(sync, route, answer, says, folder, server, tmp_path):
    willing = server.answer

    def refuse(path, body):
        status, reply = answer
        return (status, json.dumps(reply)) if path == route else willing(path, body)

    server.answer = refuse
    trainer = Trainer.start(config(tmp_path, folder, server.url, sampler_options={"sync": sync}))
    with trainer, pytest.raises(EndpointError, match=says):
        trainer.run()


@pytest.mark.skipif("GEM_VLLM" not in os.environ, reason="needs GEM_VLLM, the program that make test-vllm installs")
@pytest.mark.slow
@pytest.mark.parametrize("lora_rank", [None, 4])
def test_a_real_vllm_samples_from_the_weights_of_each_update(lora_rank, folder, tmp_path):
    tokenizer = build_tokenizer(["1"], vocabulary=260)  # a token per byte, so that prompts fill blocks of the cache
    shape = build_model(tokenizer, seed=0, hidden=128, context=512).config
    shape.tie_word_embeddings = False  # vLLM 0.32 on a CPU does not reload an output layer that is tied
    transformers.Qwen3ForCausalLM(shape).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    options = {"lora_rank": lora_rank, "sampler_options": {"sync": "vllm", "model": "base"}, "batch": 12, "steps": 4}
    with (
        vllm(tmp_path / "model", lora=lora_rank is not None) as url,
        Trainer.start(config(tmp_path, str(tmp_path / "model"), url, **options)) as trainer,
    ):
        trainer.run()
    rows = trainer.folder.read_metrics()
    assert len(rows) == 4 and rows[-1]["kl_to_start"] > 0.01, "the weights have changed"
    assert [row["sampler_gap"] for row in rows] == pytest.approx([0.0] * 4, abs=1e-4)


@contextmanager
def vllm(folder: Path, *, lora: bool) -> Iterator[str]:
    """Start a vLLM server of a model and yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [os.environ["GEM_VLLM"], "serve", str(folder), "--host", "127.0.0.1", "--port", port]
    command += ["--served-model-name", "base", "--dtype", "float32", "--max-model-len", "512", "--enforce-eager"]
    command += ["--block-size", "32"]
    if lora:
        command += ["--enable-lora", "--max-loras", "2", "--max-lora-rank", "8"]
    switch = "VLLM_ALLOW_RUNTIME_LORA_UPDATING" if lora else "VLLM_SERVER_DEV_MODE"
    log = folder.parent / "vllm.log"
    with log.open("w") as output:
        server = subprocess.Popen(command, env={**os.environ, switch: "1"}, stdout=output, stderr=output)
    try:
        while not is_up(f"http://127.0.0.1:{port}/health"):
            assert server.poll() is None, log.read_text()[-5000:]
            time.sleep(1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as reply:
            return reply.status == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sampler_options": {"model": "x"}}, "sampler_options need sampler"),
        ({"sampler": "http://x/v1", "model": "m"}, "sampler .*sync='vllm' or sync='sglang'"),
        ({"sampler": "http://x/v1", "sampler_options": {"sync": "sglang"}}, "sampler needs a model"),
    ],
    ids=str,
)
def test_incomplete_settings_of_a_sampler_are_refused(options, says):
    with pytest.raises(BadValue, match=says):
        TrainConfig(**options)
