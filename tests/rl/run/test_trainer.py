"""The training loop: reproducible, resumable and safe against disk failures."""

import hashlib
import json
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file

import gem
import gem.rl.run.trainer
from gem.core import Env, Step
from gem.errors import BadValue, InfraError, UnknownArgument, UnknownEnv
from gem.rl.config import TrainConfig
from gem.rl.data.imitation import FROM_RANDOM
from gem.rl.model.loading import load_pretrained, save_pretrained
from gem.rl.model.tiny import build_model, build_tokenizer
from gem.rl.run import folder as run_folder
from gem.rl.run.evaluator import Evaluator
from gem.rl.run.folder import RunFolder
from gem.rl.run.learner import rate_factor
from gem.rl.run.trainer import Trainer
from gem.trajectory import read_jsonl
from training_runs import resumed_copy, run_of, stop_after, timeless

pytestmark = pytest.mark.train

SMALL = {
    "steps": 4,
    "batch": 8,
    "minibatch": 4,
    "imitation_steps": 4,
    "eval_episodes": 4,
    "eval_every": 2,
    "checkpoint_every": 2,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    return run_of(TrainConfig(out=str(tmp_path_factory.mktemp("runs")), name="whole", **SMALL))


@pytest.fixture
def tiny_model(tmp_path: Path) -> str:
    """A model without weights, with a context of 256 tokens; the seed of a run initializes it."""
    tokenizer = build_tokenizer(["Turn 1: 7 is too low.", "Say something."] * 20, vocabulary=300)
    build_model(tokenizer, seed=0, hidden=32, context=256).config.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return str(tmp_path / "model")


def test_a_run_writes_metrics_trajectories_and_a_loadable_checkpoint(finished: Path):
    rows = timeless(finished)
    assert [row["update"] for row in rows] == [1, 2, 3, 4]
    assert rows[-1]["episodes"] == 32
    assert [row["update"] for row in rows if "eval" in row] == [2, 4]
    assert rows[0]["kl_to_start"] >= 0.0 and all(0.0 <= row["sampler_gap"] < 1e-4 for row in rows)
    assert len(list(read_jsonl(finished / "trajectories.jsonl"))) == 4 * TrainConfig().keep_trajectories
    newest = run_folder.newest_checkpoint(finished / "checkpoints")
    assert newest.name == "update-000004"
    again = Trainer.start(
        TrainConfig(out=str(finished.parent), name="again", model=str(newest), **SMALL | {"steps": 1})
    )
    assert again.policy.model.num_parameters() > 100_000


def test_another_seed_writes_other_metrics(finished: Path, tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="other", seed=1, **SMALL))
    trainer.run(should_stop=stop_after(SMALL["imitation_steps"] + 1))
    (row,) = timeless(trainer.folder.path)
    assert row != timeless(finished)[0]


def test_a_run_of_the_same_seed_that_is_stopped_resumes_bit_identically(finished: Path, tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="stopped", **SMALL))
    trainer.run(should_stop=stop_after(SMALL["imitation_steps"] + 3))
    assert not trainer.done
    trainer.close()
    resumed = Trainer.resume(str(trainer.folder.path))
    assert resumed.update == 3
    resumed.run()
    assert timeless(trainer.folder.path) == timeless(finished)
    ours, theirs = (list(read_jsonl(path / "trajectories.jsonl")) for path in (trainer.folder.path, finished))
    assert [t.turns[-1].sampled_ids for t in ours] == [t.turns[-1].sampled_ids for t in theirs]


def test_a_run_stopped_during_the_warm_up_restarts_with_the_same_result(finished: Path, tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="early", **SMALL))
    trainer.run(should_stop=stop_after(2))
    assert not trainer.untrained and not list(trainer.folder.path.glob("checkpoints/*"))
    trainer.close()
    Trainer.resume(str(trainer.folder.path)).run()
    assert timeless(trainer.folder.path) == timeless(finished)


GIGPO = {"advantage": "gigpo", "group_size": 4, "slots": 6, "refill_groups": True, "loss": "gspo"}
GIGPO |= {"aggregation": "sequence-mean", "truncated_is": 2.0, "kl_in": "reward"}
GAE = {"advantage": "gae", "critic_options": {"warmup": 1}, "loss": "cispo", "aggregation": "constant"}
GAE |= {"wrappers": "concat"}
SHARED = {"advantage": "gae", "critic_options": {"shared": True, "weight": 0.3, "warmup": 1}}
SHARED |= {"advantage_options": {"batch_scale": "std"}}
SHARED |= {"wrappers": "concat_chat", "slots": 5}
BRANCH = {
    "advantage": "branch",
    "advantage_options": {"width": 2, "turns": 2, "train": True},
    "slots": 20,
    "gamma": 0.9,
}
BRANCH |= {"aggregation": "sequence-mean", "truncated_is": 2.0, "kl_in": "reward"}
TOOL = {"env": "tool:Lookup", "wrappers": "lookup_tool", "slots": 30}


@pytest.mark.parametrize(
    ("algorithm", "metrics"),
    [
        (GIGPO, {"groups_dropped", "groups_equal"}),
        (GAE, {"value_loss", "explained_variance"}),
        (SHARED, {"value_loss", "explained_variance"}),
        (BRANCH, {"branches", "branch_tokens"}),
        (TOOL, {"tool_calls"}),
    ],
    ids=["gigpo", "gae, concat", "shared, concat_chat", "branch", "tool"],
)
def test_a_run_with_another_algorithm_wrappers_or_slots_resumes_bit_identically(algorithm, metrics, tmp_path: Path):
    few = SMALL | {"steps": 2, "checkpoint_every": 1}
    whole = run_of(TrainConfig(out=str(tmp_path), name="whole", **few, **algorithm))
    rows, copy = timeless(whole), resumed_copy(whole)
    assert timeless(copy) == rows
    assert metrics <= rows[0].keys()
    lines = (copy / "trajectories.jsonl").read_text().splitlines()
    assert {json.loads(line)["model"] for line in lines} == {None}, "not the checkpoint's folder"


def test_resuming_a_finished_run_changes_nothing(finished: Path):
    before = timeless(finished)
    Trainer.resume(str(finished)).run()
    assert timeless(finished) == before


@pytest.mark.parametrize(
    ("tokens", "invalid"), [(100_000, 0.1), pytest.param(None, 0.05, marks=pytest.mark.exhaustive)]
)
def test_the_warm_up_teaches_the_format_and_no_strategy(
    tokens: int | None, invalid: float, tmp_path: Path, monkeypatch
):
    if tokens is not None:
        monkeypatch.setattr(gem.rl.run.trainer, "FROM_RANDOM", FROM_RANDOM._replace(tokens=tokens))
    few = {"steps": 1, "batch": 16, "minibatch": 16, "eval_episodes": 200}
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="format", **few))
    trainer.run()
    sampled, greedy = trainer.untrained["sampled"], trainer.untrained["greedy"]
    assert sampled["success"] <= 0.5 and greedy["success"] <= 0.5  # random play wins a third
    assert sampled["invalid"] <= invalid


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.pt", "state.json", "manifest.json"])
def test_a_checkpoint_with_a_damaged_file_is_refused_with_advice(file: str, finished: Path, tmp_path: Path):
    shutil.copytree(finished, tmp_path / "copy")
    newest = run_folder.newest_checkpoint(tmp_path / "copy" / "checkpoints")
    data = (newest / file).read_bytes()
    (newest / file).write_bytes(data[:-1] + bytes([data[-1] ^ 1]) if file == "model.safetensors" else data[:-10])
    with pytest.raises(BadValue, match=rf"{file}.*delete .*update-000002|{file}.* damaged"):
        Trainer.resume(str(tmp_path / "copy"), trust=True)


def test_an_optimizer_file_with_code_is_refused_and_not_run(finished: Path, tmp_path: Path):
    class Payload:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    shutil.copytree(finished, tmp_path / "copy")
    newest = run_folder.newest_checkpoint(tmp_path / "copy" / "checkpoints")
    torch.save({"state": Payload()}, newest / "optimizer.pt")
    manifest = json.loads((newest / "manifest.json").read_text())
    manifest["sha256"]["optimizer.pt"] = hashlib.sha256((newest / "optimizer.pt").read_bytes()).hexdigest()
    (newest / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadValue, match=r"optimizer\.pt is damaged or holds objects that could run code"):
        Trainer.resume(str(tmp_path / "copy"), trust=True)
    assert not (tmp_path / "ran").exists()


def test_the_reference_is_written_once_and_no_checkpoint_holds_the_model_twice(finished: Path):
    assert {p.name for p in (finished / "reference").iterdir()} == {"weights.safetensors", "manifest.json"}
    with Trainer.resume(str(finished)) as trainer:
        disk = trainer.disk
    assert (finished / "reference" / "weights.safetensors").stat().st_size == pytest.approx(disk.reference, rel=0.02)
    for checkpoint in (finished / "checkpoints").iterdir():
        files = {p.name: p.stat().st_size for p in checkpoint.iterdir()}
        weights = files["model.safetensors"] + files["optimizer.pt"]
        assert weights == pytest.approx(disk.checkpoint, rel=0.02)
        assert sum(files.values()) - weights < disk.reference / 2, "room for the tokenizer and episodes only"


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_missing_or_damaged_reference_is_refused_with_advice(harm: str, finished: Path, tmp_path: Path):
    shutil.copytree(finished, tmp_path / "copy")
    reference = tmp_path / "copy" / "reference"
    if harm == "missing":
        shutil.rmtree(reference)
    else:
        (reference / "weights.safetensors").write_bytes(b"")
    with pytest.raises(BadValue, match=r"reference is damaged .*copy the whole folder"):
        Trainer.resume(str(tmp_path / "copy"), trust=True)


def test_a_run_of_an_earlier_version_with_its_reference_in_the_checkpoint_resumes(finished: Path, tmp_path: Path):
    shutil.copytree(finished, tmp_path / "old")
    newest, older = (tmp_path / "old" / "checkpoints" / f"update-00000{n}" for n in (4, 2))
    shutil.rmtree(newest)
    weights = load_file(tmp_path / "old" / "reference" / "weights.safetensors")
    shutil.rmtree(tmp_path / "old" / "reference")
    torch.save(weights, older / "reference.pt")
    with Trainer.resume(str(tmp_path / "old"), trust=True) as trainer:
        trainer.run()
    assert timeless(tmp_path / "old") == timeless(finished)
    again = load_file(tmp_path / "old" / "reference" / "weights.safetensors")
    assert all(tensor.equal(weights[name]) for name, tensor in again.items())


def test_a_reference_without_a_checkpoint_is_replaced_when_the_run_starts_again(finished: Path, tmp_path: Path):
    with Trainer.start(TrainConfig(out=str(tmp_path), name="killed", **SMALL)) as trainer:
        trainer.folder.reference.mkdir()
    with Trainer.resume(str(tmp_path / "killed")) as trainer:
        trainer.run()
    assert timeless(tmp_path / "killed") == timeless(finished)
    reference = Path("reference", "weights.safetensors")
    assert (tmp_path / "killed" / reference).read_bytes() == (finished / reference).read_bytes()


def test_a_disk_without_room_for_the_checkpoints_is_refused_before_the_warm_up(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_900_000))
    with pytest.raises(BadValue, match=r"checkpoints take 2 MB, and .* has 2 MB left; free some space"):
        Trainer.start(TrainConfig(out=str(tmp_path / "runs"), **SMALL))
    assert not (tmp_path / "runs").exists()
    Trainer.start(TrainConfig(out=str(tmp_path / "runs"), kl=0.0, **SMALL))


def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path):
    with pytest.raises(BadValue, match="is not a training run"):
        Trainer.resume(str(tmp_path))


def test_a_failed_checkpoint_leaves_the_previous_one_intact(tmp_path: Path):
    def disk_full(draft: Path) -> None:
        (draft / "half.bin").write_bytes(b"x")
        raise OSError(28, "No space left on device")

    run_folder.save_checkpoint(tmp_path, 1, lambda draft: (draft / "a").write_text("1") and None)
    with pytest.raises(OSError, match="No space left"):
        run_folder.save_checkpoint(tmp_path, 2, disk_full)
    assert run_folder.newest_checkpoint(tmp_path).name == "update-000001"
    assert [p.name for p in tmp_path.iterdir()] == ["update-000001"]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Fail a write in the middle, as a full disk does, also those of safetensors and torch."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))  # Python ignores SIGXFSZ
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_gives_a_one_line_error_and_keeps_the_previous_checkpoint(tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="full", **SMALL))
    trainer.save()
    trainer.step()
    for size in (100_000, 700_000):  # too small for the weights; too small for the optimizer
        with pytest.raises(InfraError, match=r"cannot write a checkpoint.*--resume"), files_of_at_most(size):
            trainer.save()
    assert [p.name for p in trainer.folder.checkpoints.iterdir()] == ["update-000000"]
    run_folder.newest_checkpoint(trainer.folder.checkpoints)


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path):
    for update in range(5):
        run_folder.save_checkpoint(tmp_path, update, lambda draft: (draft / "a").write_text("1") and None)
    assert [p.name for p in run_folder.complete_checkpoints(tmp_path)] == ["update-000003", "update-000004"]


def test_a_full_disk_leaves_complete_metrics_lines(tmp_path: Path):
    folder = RunFolder.create(TrainConfig(out=str(tmp_path), name="full"))
    with pytest.raises(InfraError, match="cannot write"), files_of_at_most(1000):
        for update in range(100):
            folder.append_metrics({"update": update, "padding": "x" * 50})
    rows = (tmp_path / "full" / "metrics.jsonl").read_text()
    assert rows.endswith("\n")
    assert [json.loads(line)["update"] for line in rows.splitlines()] == list(range(rows.count("\n")))


def test_a_batch_of_failed_episodes_is_an_error(tmp_path: Path, monkeypatch):
    from gem.envs.games.guess_the_number import GuessTheNumberEnv

    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="failing", **SMALL))

    def broken(self, action):
        raise InfraError("the server is down")

    monkeypatch.setattr(GuessTheNumberEnv, "step", broken)
    with pytest.raises(InfraError, match=r"all 8 episodes .*the server is down"):
        trainer.step()
    assert trainer.update == 0 and timeless(trainer.folder.path) == []


@pytest.mark.parametrize("call", ["copy.deepcopy", "gem.rl.model.policy.CausalLMPolicy.score"])
def test_memory_that_is_exhausted_before_the_first_update_is_one_line(call, tmp_path: Path, monkeypatch):
    def allocate(*args, **more):
        raise MemoryError

    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="large", **SMALL))
    monkeypatch.setattr(call, allocate)
    with trainer, pytest.raises(InfraError, match=r"out of memory; .* a smaller model"):
        trainer.run()


def test_bad_input_is_refused_before_anything_is_written(tmp_path: Path):
    out = tmp_path / "runs"
    with pytest.raises(UnknownEnv, match=r"-esy'.*'game:GuessTheNumber-v0-easy'"):
        Trainer.start(TrainConfig(env="game:GuessTheNumber-v0-esy", out=str(out)))
    with pytest.raises(UnknownArgument, match="did you mean 'max_turns'"):
        Trainer.start(TrainConfig(env_kwargs={"max_turn": 3}, out=str(out)))
    with pytest.raises(BadValue, match=r"no model folder '\./nowhere'"):
        Trainer.start(TrainConfig(model="./nowhere", out=str(out)))
    with pytest.raises(UnknownArgument, match="did you mean 'concat'"):
        Trainer.start(TrainConfig(wrappers="concatt", out=str(out)))
    with pytest.raises(BadValue, match="cannot use the device 'abacus'"):
        Trainer.start(TrainConfig(device="abacus", out=str(out)))
    with pytest.raises(BadValue, match="leaves no room for a prompt"):
        Trainer.start(TrainConfig(max_new_tokens=2000, out=str(out)))
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text("{}")
    with pytest.raises(BadValue, match="cannot load the model"):
        Trainer.start(TrainConfig(model=str(damaged), out=str(out)))
    assert not out.exists()


def test_a_folder_without_weights_gives_a_model_initialized_from_the_seed(finished: Path, tmp_path: Path):
    for file in run_folder.newest_checkpoint(finished / "checkpoints").iterdir():
        if file.suffix in (".json", ".jinja"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = [load_pretrained(tmp_path, seed=seed)[0].get_input_embeddings().weight for seed in (1, 1, 2)]
    assert weights[0].equal(weights[1]) and not weights[0].equal(weights[2])


def test_weights_that_are_not_finite_are_refused_before_the_first_step(finished: Path, tmp_path: Path):
    model, tokenizer = load_pretrained(run_folder.newest_checkpoint(finished / "checkpoints"))
    model.get_input_embeddings().weight.data[3, 0] = float("nan")
    save_pretrained(model, tokenizer, tmp_path / "broken")
    with pytest.raises(BadValue, match=r"broken'.*model.embed_tokens.weight .*not finite"):
        Trainer.start(TrainConfig(model=str(tmp_path / "broken"), out=str(tmp_path / "runs")))
    assert not (tmp_path / "runs").exists()


def test_an_environment_without_state_is_refused_before_anything_is_written(tmp_path: Path):
    class Unsaved(Env):
        def reset(self, seed=None):
            super().reset(seed)
            return "go", {}

    gem.register("test:Unsaved", Unsaved)
    with pytest.raises(BadValue, match=r"cannot train on test:Unsaved.*get_state"):
        Trainer.start(TrainConfig(env="test:Unsaved", out=str(tmp_path / "runs")))
    del gem.ENV_REGISTRY["test:Unsaved"]
    assert not (tmp_path / "runs").exists()


FEW = {"steps": 1, "batch": 2, "minibatch": 2, "eval_episodes": 2, "imitation_steps": 5}


def test_episodes_past_the_context_limit_are_counted(tiny_model: str, tmp_path: Path):
    # One turn fits the context, and no second one: a model that knows nothing says 60 tokens of nonsense.
    chatty = {"model": tiny_model, "max_new_tokens": 60, "env_kwargs": {"on_unreadable": "continue"}}
    config = TrainConfig(out=str(tmp_path), name="long", **SMALL | FEW | chatty | {"imitation_steps": 0})
    trainer = Trainer.start(config)
    trainer.run()
    assert trainer.untrained["sampled"]["overflowed"] > 0.0
    assert timeless(trainer.folder.path)[0]["overflowed"] > 0.0
    kept = list(read_jsonl(trainer.folder.path / "trajectories.jsonl"))
    assert {(t.stop_reason, t.truncated, t.terminated) for t in kept} == {("max_tokens", True, False)}


class Repetitive(Env):
    """The first prompt repeats a sentence either ``least`` or 200 times, which is too long for a small model."""

    def __init__(self, least: int = 1):
        self.least = least

    def reset(self, seed=None):
        super().reset(seed)
        return "Say something. " * self.rng.choice([self.least, 200]), {}

    def step(self, action):
        return Step("", (len(action) % 7) / 20, terminated=True)

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


@pytest.fixture
def repetitive(tiny_model: str, tmp_path: Path):
    gem.register("test:Repetitive", Repetitive)
    own = {"env": "test:Repetitive", "model": tiny_model, "max_new_tokens": 6, "imitation_steps": 0}
    yield SMALL | own | {"steps": 1, "batch": 16, "minibatch": 8, "out": str(tmp_path), "name": "run"}
    del gem.ENV_REGISTRY["test:Repetitive"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"advantage": "gae"},
        {"advantage": "grpo", "group_size": 4},
        {"advantage": "branch", "advantage_options": {"width": 2}},
    ],
    ids=str,
)
def test_an_episode_whose_first_prompt_is_too_long_is_counted_and_not_trained_on(options, repetitive):
    with Trainer.start(TrainConfig(**repetitive | options)) as trainer:
        trainer.run()
    (row,) = timeless(trainer.folder.path)
    assert 0.0 < row["overflowed"] < 1.0 and row["failed"] == 0 and row["grad_norm"] > 0.0


def test_a_batch_in_which_no_first_prompt_fits_stops_the_run(repetitive):
    config = TrainConfig(**repetitive | {"env_kwargs": {"least": 200}})
    with Trainer.start(config) as trainer, pytest.raises(BadValue, match=r"no first prompt fits .* has \d+ tokens"):
        trainer.run()


def test_an_existing_name_is_not_overwritten(finished: Path):
    with pytest.raises(BadValue, match="exists; continue it with --resume"):
        Trainer.start(TrainConfig(out=str(finished.parent), name="whole", **SMALL))


def test_an_output_path_that_is_a_file_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadValue, match="cannot write the run"):
        RunFolder.create(TrainConfig(out=str(tmp_path / "file"), name="x"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_output_path_without_permission_is_refused(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(BadValue, match="cannot write the run"):
        RunFolder.create(TrainConfig(out=str(tmp_path), name="x"))


def test_training_asks_each_row_that_is_not_held_back_once_per_epoch(tiny_model: str, tmp_path: Path):
    own = {"env": "code:Mini", "model": tiny_model, "max_new_tokens": 6, "batch": 8, "minibatch": 8, "slots": 8}
    config = TrainConfig(out=str(tmp_path), eval_episodes=4, **own)
    with Trainer.start(config) as trainer:
        resets = [trainer.mixture.collectors[0].vec_env.reset()[1] for _ in range(7)]
        asked = [info["idx"] for infos in resets for info in infos]
        assert len(set(asked)) == len(asked) == 56  # of 62 rows, of which 6 are held back


def test_a_finished_run_can_be_lengthened(finished: Path, tmp_path: Path):
    shutil.copytree(finished, tmp_path / "longer")
    with pytest.raises(BadValue, match=r"steps .*4 updates .*got 4"):
        Trainer.resume(str(tmp_path / "longer"), trust=True, steps=4)
    Trainer.resume(str(tmp_path / "longer"), trust=True, steps=6).run()
    rows = timeless(tmp_path / "longer")
    assert rows[:4] == timeless(finished) and [row["update"] for row in rows[4:]] == [5, 6] and "eval" in rows[5]
    assert rows[4]["learning_rate"] == TrainConfig().rates.policy * rate_factor(4, 6)
    again = Trainer.resume(str(tmp_path / "longer"))
    assert again.done and again.config.steps == 6


def test_a_run_ends_in_time_with_an_evaluation_and_a_checkpoint_and_can_be_given_more(tmp_path: Path, monkeypatch):
    few = SMALL | {"steps": 9, "eval_every": 100, "checkpoint_every": 100, "minutes": 10.0}
    clock = iter(range(0, 60 * 200, 100))  # seconds; the evaluation before learning takes 130
    monkeypatch.setattr(Trainer, "seconds", property(lambda self: next(clock)))
    monkeypatch.setattr(Evaluator, "seconds", 130.0, raising=False)
    monkeypatch.setattr(Evaluator, "__setattr__", lambda self, k, v: k == "seconds" or object.__setattr__(self, k, v))
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="timed", **few))
    trainer.run()
    trainer.close()
    assert trainer.done and 0 < trainer.update < 9
    rows = timeless(tmp_path / "timed")
    assert "eval" in rows[-1] and not any("eval" in row for row in rows[:-1])
    assert [path.name for path in (tmp_path / "timed" / "checkpoints").iterdir()][-1:] == [f"update-{len(rows):06d}"]
    monkeypatch.undo()
    for more in ({"steps": 12}, {"minutes": 5.0}):  # the clock of the test ran for longer
        with pytest.raises(BadValue, match=r"minutes must exceed the \d+(\.\d+)? that the run has taken"):
            Trainer.resume(str(tmp_path / "timed"), **more)
    resumed = Trainer.resume(str(tmp_path / "timed"), minutes=10_000.0)
    resumed.run()
    assert resumed.update == 9


def test_a_run_stops_when_two_evaluations_in_a_row_reach_the_targets(tmp_path: Path, monkeypatch):
    few = SMALL | {"steps": 9, "eval_every": 1, "checkpoint_every": 1, "imitation_steps": 1}
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="until", until="greedy=.9,sampled=.5", **few))
    greedy = iter([0.95, 0.85, 0.95, 0.95, 0.95, 0.95])

    def scores(self, *, both):
        assert both
        return {"greedy": {"success": next(greedy)}, "sampled": {"success": 0.6}}

    trainer._warm_up(lambda state: None, lambda scores: None, lambda: False)
    trainer.save()
    monkeypatch.setattr(Trainer, "evaluate", scores)
    trainer.run(should_stop=stop_after(3))
    assert trainer.update == 3 and trainer.passes == 1 and not trainer.reached
    trainer.close()
    resumed = Trainer.resume(str(tmp_path / "until"))
    resumed.run()
    resumed.close()
    assert resumed.update == 4 and resumed.reached and resumed.done
    assert "untrained" in timeless(tmp_path / "until")[-1]
    longer = Trainer.resume(str(tmp_path / "until"), steps=9)
    longer.run()
    assert longer.update == 6 and longer.reached


def test_tool_results_are_not_trained_on_and_the_warm_up_teaches_calls_without_answers(tmp_path: Path):
    few = SMALL | {"steps": 1, "imitation_steps": 60, "eval_episodes": 64, "keep_trajectories": 16}
    config = TrainConfig(out=str(tmp_path), name="tool", env="tool:Lookup", wrappers="lookup_tool", **few)
    with Trainer.start(config) as trainer:
        trainer.run()
    assert trainer.untrained["sampled"]["tool_calls"] > 0.3
    assert trainer.untrained["sampled"]["success"] < 0.3
    called = [t for t in read_jsonl(trainer.folder.path / "trajectories.jsonl") if t.turns[0].tool_calls]
    assert called
    for trajectory in called:
        for sequence in trajectory.sequences():
            trained = [i for i, mask in zip(sequence.ids_T, sequence.loss_mask_T, strict=True) if mask]
            assert trained == [i for turn in trajectory.turns for i in turn.sampled_ids]


def test_a_pretrained_model_is_evaluated_before_its_warm_up_and_the_metrics_have_both(tmp_path: Path):
    model = Path(pretrained(tmp_path))
    few = SMALL | {"imitation_steps": None, "steps": 1, "model": str(model)}
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="r", **few))
    loaded: list[dict] = []
    trainer.run(on_loaded=loaded.append)
    (row,) = timeless(tmp_path / "r")
    assert loaded == [row["loaded"]] and set(row["loaded"]) == set(row["untrained"]) == {"greedy", "sampled"}
    first, *later = row["warm_up"]
    assert first["steps"] == 0 and first["loss"] is None and first["readable"] < 0.5
    assert all(step["loss"] > 0 for step in later) and later[-1]["tokens"] >= 2_000
    assert trainer.policy.max_new_tokens == 2 + len(trainer.policy.tokenizer.encode(r"\boxed{10}"))


def pretrained(folder: Path) -> str:
    """Return a folder with the weights of a model that knows nothing of the game."""
    tokenizer = build_tokenizer(["Turn 1: 7 is too low.", "Say something."] * 20, vocabulary=300)
    save_pretrained(build_model(tokenizer, seed=0, hidden=32, context=1024), tokenizer, folder / "model")
    return str(folder / "model")


def test_an_environment_without_random_actions_has_no_warm_up_unless_steps_of_one_are_asked_for(tmp_path: Path):
    gem.register("test:Mute", Mute)
    own = SMALL | {
        "model": pretrained(tmp_path),
        "max_new_tokens": 4,
        "steps": 1,
        "env": "test:Mute",
        "out": str(tmp_path),
    }
    with pytest.raises(BadValue, match="cannot train on test:Mute"):
        Trainer.start(TrainConfig(name="asked", **own))
    trainer = Trainer.start(TrainConfig(name="default", **own | {"imitation_steps": None}))
    trainer.run()
    assert trainer.done and trainer.warm_up == [] and not trainer.loaded
    del gem.ENV_REGISTRY["test:Mute"]


class Mute(Env):
    """An episode of one turn whose environment samples no actions."""

    def reset(self, seed: int | None = None):
        super().reset(seed)
        self.state = 0
        return "Say something.", {}

    def step(self, action: str) -> Step:
        return Step("", float(len(action) % 2), True, False, {})
