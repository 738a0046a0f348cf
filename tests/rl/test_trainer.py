"""The training loop: reproducible, resumable and safe against disk failures."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

import gem
from gem.core import Env, Step
from gem.errors import BadValue, InfraError, UnknownArgument, UnknownEnv
from gem.rl import run_folder
from gem.rl.config import TrainConfig
from gem.rl.learner import rate_factor
from gem.rl.loading import load_pretrained, save_pretrained
from gem.rl.run_folder import RunFolder
from gem.rl.tiny import build_model, build_tokenizer
from gem.rl.trainer import Trainer
from gem.trajectory import read_jsonl

pytestmark = pytest.mark.train

SMALL = {
    "steps": 6,
    "batch": 16,
    "minibatch": 8,
    "imitation_steps": 20,
    "eval_episodes": 16,
    "eval_every": 3,
    "checkpoint_every": 2,
}


def timeless(path: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k != "time"} for row in rows]


def stop_after(updates: int):
    """Return a should_stop that requests a stop after that many updates."""
    asked = iter([*[False] * updates, True])
    return lambda: next(asked)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """Run a short training from start to end."""
    trainer = Trainer.start(TrainConfig(out=str(tmp_path_factory.mktemp("runs")), name="whole", **SMALL))
    trainer.run()
    return trainer.folder.path


def test_a_run_writes_metrics_trajectories_and_a_loadable_checkpoint(finished: Path):
    rows = timeless(finished)
    assert [row["update"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows[-1]["episodes"] == 96
    assert [row["update"] for row in rows if "eval" in row] == [3, 6]
    assert rows[0]["kl_to_start"] >= 0.0 and all(0.0 <= row["sampler_gap"] < 1e-4 for row in rows)
    assert len(list(read_jsonl(finished / "trajectories.jsonl"))) == 6 * TrainConfig().keep_trajectories
    newest = run_folder.newest_checkpoint(finished / "checkpoints")
    assert newest.name == "update-000006"
    again = Trainer.start(
        TrainConfig(out=str(finished.parent), name="again", model=str(newest), **SMALL | {"steps": 1})
    )
    assert again.policy.model.num_parameters() > 100_000


def test_the_same_seed_writes_the_same_metrics(finished: Path, tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="twin", **SMALL))
    trainer.run()
    assert timeless(trainer.folder.path) == timeless(finished)


def test_another_seed_writes_other_metrics(finished: Path, tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="other", seed=1, **SMALL))
    trainer.run()
    assert timeless(trainer.folder.path) != timeless(finished)


def test_a_stopped_run_resumes_bit_identically(finished: Path, tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="stopped", **SMALL))
    trainer.run(should_stop=stop_after(SMALL["imitation_steps"] + 3))
    assert not trainer.done
    resumed = Trainer.resume(str(trainer.folder.path))
    assert resumed.update == 3
    resumed.run()
    assert timeless(trainer.folder.path) == timeless(finished)
    ours, theirs = (list(read_jsonl(path / "trajectories.jsonl")) for path in (trainer.folder.path, finished))
    assert [t.turns[-1].sampled_ids for t in ours] == [t.turns[-1].sampled_ids for t in theirs]


def test_a_run_killed_with_sigkill_resumes_to_the_same_metrics(finished: Path, tmp_path: Path):
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    command = [sys.executable, "-m", "gem", "train", "--out", str(tmp_path), "--name", "killed", *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    metrics = tmp_path / "killed" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not metrics.exists() or metrics.read_text().count("\n") < 3:  # past the checkpoint of update 2
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    Trainer.resume(str(tmp_path / "killed")).run()
    assert timeless(tmp_path / "killed") == timeless(finished)


def test_a_run_stopped_during_the_warm_up_restarts_with_the_same_result(finished: Path, tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="early", **SMALL))
    trainer.run(should_stop=stop_after(5))
    assert not trainer.untrained and not list(trainer.folder.path.glob("checkpoints/*"))
    Trainer.resume(str(trainer.folder.path)).run()
    assert timeless(trainer.folder.path) == timeless(finished)


TOOL = {"env": "tool:Lookup", "wrappers": "lookup_tool"}


@pytest.mark.parametrize(
    "more", [{"wrappers": "concat"}, {"wrappers": "concat_chat", "slots": 5}, {"slots": 40}, TOOL], ids=str
)
def test_a_run_with_wrappers_or_other_slots_resumes_bit_identically(more: dict[str, object], tmp_path: Path):
    whole = Trainer.start(TrainConfig(out=str(tmp_path), name="whole", **SMALL, **more))
    whole.run()
    stopped = Trainer.start(TrainConfig(out=str(tmp_path), name="stopped", **SMALL, **more))
    stopped.run(should_stop=stop_after(SMALL["imitation_steps"] + 3))
    assert stopped.update == 3
    Trainer.resume(str(stopped.folder.path)).run()
    assert timeless(stopped.folder.path) == timeless(whole.folder.path)


GIGPO = {"advantage": "gigpo", "group_size": 4, "slots": 6, "refill_groups": True, "loss": "gspo"}
GIGPO |= {"aggregation": "sequence-mean", "truncated_is": 2.0, "kl_in": "reward"}
GAE = {"advantage": "gae", "critic_warmup": 1, "loss": "cispo", "aggregation": "constant", "loss_constant": 10.0}

SHARED = {"advantage": "gae", "critic": "shared", "critic_weight": 0.3, "critic_warmup": 1, "batch_scale": "std"}
BRANCH = {"advantage": "branch", "branch_width": 2, "branch_turns": 2, "branch_train": True, "slots": 20, "gamma": 0.9}
BRANCH |= {"aggregation": "sequence-mean", "truncated_is": 2.0, "kl_in": "reward"}


@pytest.mark.parametrize(
    ("algorithm", "metrics"),
    [
        (GIGPO, {"groups_dropped", "groups_equal"}),
        (GAE, {"value_loss", "explained_variance"}),
        (SHARED, {"value_loss", "explained_variance"}),
        (BRANCH, {"branches", "branch_tokens"}),
    ],
    ids=["gigpo", "gae", "shared", "branch"],
)
def test_a_run_with_another_algorithm_resumes_bit_identically(algorithm, metrics, tmp_path: Path):
    few = SMALL | {"steps": 2, "checkpoint_every": 1, "imitation_steps": 5}
    whole = Trainer.start(TrainConfig(out=str(tmp_path), name="whole", **few, **algorithm))
    whole.run()
    stopped = Trainer.start(TrainConfig(out=str(tmp_path), name="stopped", **few, **algorithm))
    stopped.run(should_stop=stop_after(5 + 1))
    assert stopped.update == 1
    Trainer.resume(str(stopped.folder.path)).run()
    rows = timeless(whole.folder.path)
    assert timeless(stopped.folder.path) == rows
    assert metrics <= rows[0].keys()
    lines = (stopped.folder.path / "trajectories.jsonl").read_text().splitlines()
    assert {json.loads(line)["model"] for line in lines} == {None}, "not the checkpoint's folder"


def test_resuming_a_finished_run_changes_nothing(finished: Path):
    before = timeless(finished)
    Trainer.resume(str(finished)).run()
    assert timeless(finished) == before


def test_the_warm_up_teaches_the_format_and_no_strategy(tmp_path: Path):
    trainer = Trainer.start(
        TrainConfig(out=str(tmp_path), name="format", steps=1, batch=16, minibatch=16, eval_episodes=200)
    )
    trainer.run()
    sampled, greedy = trainer.untrained["sampled"], trainer.untrained["greedy"]
    assert sampled["success"] <= 0.40 and greedy["success"] <= 0.40
    assert sampled["invalid"] <= 0.05  # nearly every reply can be read


def test_a_damaged_checkpoint_is_refused_with_advice(finished: Path, tmp_path: Path):
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="damaged", **SMALL | {"steps": 2}))
    trainer.run()
    newest = run_folder.newest_checkpoint(trainer.folder.checkpoints)
    weights = newest / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(BadValue, match=r"model\.safetensors.*delete .*update-000000"):
        Trainer.resume(str(trainer.folder.path))


@pytest.mark.parametrize("file", ["optimizer.pt", "state.json", "manifest.json"])
def test_every_file_of_a_checkpoint_is_verified(file: str, finished: Path, tmp_path: Path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    newest = run_folder.newest_checkpoint(copy / "checkpoints")
    (newest / file).write_bytes((newest / file).read_bytes()[:-10])
    with pytest.raises(BadValue, match="damaged"):
        Trainer.resume(str(copy))


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


def test_a_full_disk_gives_a_one_line_error_and_keeps_the_previous_checkpoint(tmp_path: Path):
    # A file-size limit fails the writes of safetensors and torch in the middle, as a full disk does.
    script = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from gem.errors import InfraError
from gem.rl.config import TrainConfig
from gem.rl.trainer import Trainer
trainer = Trainer.start(TrainConfig(out={str(tmp_path)!r}, name="full", **{SMALL | {"imitation_steps": 1}}))
trainer.save()
trainer.step()
for limit in (100_000, 700_000):  # too small for the weights; too small for the optimizer
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        trainer.save()
    except InfraError as error:
        print(error)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    told = result.stdout.splitlines()
    assert len(told) == 2 and all("cannot write a checkpoint" in line and "--resume" in line for line in told)
    assert [p.name for p in (tmp_path / "full" / "checkpoints").iterdir()] == ["update-000000"]
    run_folder.newest_checkpoint(tmp_path / "full" / "checkpoints")


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path):
    for update in range(5):
        run_folder.save_checkpoint(tmp_path, update, lambda draft: (draft / "a").write_text("1") and None)
    assert [p.name for p in run_folder.complete_checkpoints(tmp_path)] == ["update-000003", "update-000004"]


def test_a_full_disk_leaves_complete_metrics_lines(tmp_path: Path):
    # A file-size limit fails a write in the middle, as a full disk does.
    script = f"""
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from pathlib import Path
from gem.errors import InfraError
from gem.rl.config import TrainConfig
from gem.rl.loading import load_pretrained
from gem.rl.run_folder import RunFolder
from gem.rl.tiny import build_model, build_tokenizer
folder = RunFolder.create(TrainConfig(out={str(tmp_path)!r}, name="full"))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    for update in range(100):
        folder.append_metrics({{"update": update, "padding": "x" * 50}})
except InfraError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "cannot write" in result.stdout
    rows = (tmp_path / "full" / "metrics.jsonl").read_text()
    assert rows.endswith("\n")
    assert [json.loads(line)["update"] for line in rows.splitlines()] == list(range(rows.count("\n")))


def test_a_batch_of_failed_episodes_is_an_error(tmp_path: Path, monkeypatch):
    from gem.envs.game_env.guess_the_number import GuessTheNumberEnv

    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="failing", **SMALL))

    def broken(self, action):
        raise InfraError("the server is down")

    monkeypatch.setattr(GuessTheNumberEnv, "step", broken)
    with pytest.raises(InfraError, match=r"all 16 episodes .*the server is down"):
        trainer.step()
    assert trainer.update == 0 and timeless(trainer.folder.path) == []


@pytest.mark.parametrize("call", ["copy.deepcopy", "gem.rl.policy.CausalLMPolicy.score"])
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
        if file.suffix != ".safetensors":
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

    env_id = f"test:Unsaved-{tmp_path.name}"
    gem.register(env_id, Unsaved)
    with pytest.raises(BadValue, match=r"cannot train on test:Unsaved.*get_state"):
        Trainer.start(TrainConfig(env=env_id, out=str(tmp_path / "runs")))
    assert not (tmp_path / "runs").exists()


FEW = {"steps": 1, "batch": 2, "minibatch": 2, "eval_episodes": 2, "imitation_steps": 5}


def test_episodes_past_the_context_limit_are_counted(tmp_path: Path):
    tokenizer = build_tokenizer(["Turn 1: 7 is too low."] * 20, vocabulary=300)
    build_model(tokenizer, seed=0, hidden=32, context=256).config.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    # One turn fits the context, and no second one: a model that knows nothing says 60 tokens of nonsense.
    chatty = {"model": str(tmp_path / "model"), "max_new_tokens": 60, "env_kwargs": {"on_unreadable": "continue"}}
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
def repetitive(tmp_path: Path):
    gem.register("test:Repetitive", Repetitive)
    tokenizer = build_tokenizer(["Say something."] * 20, vocabulary=300)
    build_model(tokenizer, seed=0, hidden=32, context=256).config.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    own = {"env": "test:Repetitive", "model": str(tmp_path / "model"), "max_new_tokens": 6, "imitation_steps": 0}
    yield SMALL | own | {"steps": 1, "out": str(tmp_path), "name": "run"}
    del gem.ENV_REGISTRY["test:Repetitive"]


@pytest.mark.parametrize(
    "options",
    [{}, {"advantage": "gae"}, {"advantage": "grpo", "group_size": 4}, {"advantage": "branch", "branch_width": 2}],
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


def test_training_asks_each_row_that_is_not_held_back_once_per_epoch(tmp_path: Path):
    config = TrainConfig(env="code:Mini", out=str(tmp_path), batch=8, minibatch=8, slots=8, eval_episodes=4)
    with Trainer.start(config) as trainer:
        resets = [trainer.mixture.collectors[0].vec_env.reset()[1] for _ in range(7)]
        asked = [info["idx"] for infos in resets for info in infos]
        assert len(set(asked)) == len(asked) == 56  # of 62 rows, of which 6 are held back


def test_a_finished_run_can_be_lengthened(finished: Path, tmp_path: Path):
    shutil.copytree(finished, tmp_path / "longer")
    with pytest.raises(BadValue, match=r"steps .*6 updates .*got 6"):
        Trainer.resume(str(tmp_path / "longer"), steps=6)
    Trainer.resume(str(tmp_path / "longer"), steps=8).run()
    rows = timeless(tmp_path / "longer")
    assert rows[:6] == timeless(finished) and [row["update"] for row in rows[6:]] == [7, 8] and "eval" in rows[7]
    assert rows[6]["learning_rate"] == TrainConfig().learning_rate * rate_factor(6, 8)
    again = Trainer.resume(str(tmp_path / "longer"))
    assert again.done and again.config.steps == 8


def test_a_run_stops_when_two_evaluations_in_a_row_reach_the_targets(tmp_path: Path, monkeypatch):
    few = SMALL | {"steps": 9, "eval_every": 1, "checkpoint_every": 1, "imitation_steps": 1}
    trainer = Trainer.start(TrainConfig(out=str(tmp_path), name="until", until="greedy=.9,sampled=.5", **few))
    greedy = iter([0.95, 0.85, 0.95, 0.95, 0.95, 0.95])

    def scores(self, *, both):
        assert both
        return {"greedy": {"success": next(greedy)}, "sampled": {"success": 0.6}}

    trainer._warm_up(lambda done, steps: None, lambda: False)
    trainer.save()
    monkeypatch.setattr(Trainer, "evaluate", scores)
    trainer.run(should_stop=stop_after(3))
    assert trainer.update == 3 and trainer.passes == 1 and not trainer.reached
    resumed = Trainer.resume(str(tmp_path / "until"))
    resumed.run()
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
