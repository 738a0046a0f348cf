"""gem train."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from gem._internal.folders import LOCK
from gem.cli import main
from gem.errors import BadValue
from gem.rl.run.trainer import Trainer

pytestmark = pytest.mark.train

FILES = ("config.json", "metrics.jsonl", "trajectories.jsonl", "evaluations.jsonl")
SMALL = ["--steps=2", "--batch=8", "--minibatch=8", "--imitation-steps=5", "--eval-episodes=8"]


def test_a_run_prints_scores_and_two_games_and_writes_its_files(tmp_path, capsys):
    assert main(["train", "--out", str(tmp_path), "--name", "r", *SMALL]) == 0
    out = capsys.readouterr().out
    assert re.search(r"Disk: \d MB per checkpoint, .*; \d MB once for the reference", out)
    assert "format only" in out and "balanced search" in out and "untrained" in out and "trained" in out
    names = {p.name for p in (tmp_path / "r").iterdir()}
    assert names == {*FILES, "curve.png", "checkpoints", "reference"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--steps", "-1"], "steps .*at least 1.*got -1"),
        (["--env", "game:GuessTheNumber-v0-esy"], "-esy'.*'game:GuessTheNumber-v0-easy'"),
        (["--env-kwargs", "max_turn=3"], "did you mean 'max_turns'"),
        (["--model", "/no/such/model"], "folder '/no/such/model'"),
        (["--stepz", "3"], "did you mean '--steps'"),
        (["--steps", "many"], "many"),
        (["--resume", "/no/such/run"], "is not a training run"),
        (["--resume", "/no/such/run", "--steps", "3"], "is not a training run"),
        (["--resume", "/no/such/run", "--seed", "0"], "drop --seed"),
        (["--until", "greedy=2"], "until .*above 0 and up to 1"),
        (["--out", "/dev/null/runs"], "cannot write the run"),
        (["--advantage", "median"], "gigpo, gae, branch, seat.*'median'"),
        (["--critic-options", "shared=true"], "critic_options .*advantage='gae'.*'turn'"),
        (["--lora-modules", "q_prj"], "lora_modules='q_prj' needs lora_rank"),
        (["--env", "math:Arithmetic=0"], "weights of env .*math:Arithmetic=0"),
        (["--env", "math:Arithmetic", "qa:Facts", "--wrappers", "concat,concat"], "concat .*history twice"),
        (["--config", "nowhere.toml"], "--config nowhere.toml"),
        (["--seed", "1", "2", "1"], "--seed names a seed twice: 1 2 1"),
        (["--dry-run", "--json"], "--dry-run .*--json"),
        (["--dry-run", "--env", "vision:Charts"], "cannot train on vision:Charts"),
    ],
)
def test_a_usage_error_is_one_line_and_exits_with_2(flags, message, tmp_path, capsys):
    out = [] if "--out" in flags or "--resume" in flags else ["--out", str(tmp_path)]
    assert main(["train", *out, *flags]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and re.search(message, captured.err)


def test_a_run_says_whether_it_reached_its_targets_and_can_be_lengthened(tmp_path, capsys):
    folder = tmp_path / "r"
    until = ["--until=greedy=.001", "--eval-every=1", "--steps=5"]
    assert main(["train", "--out", str(tmp_path), "--name", "r", *SMALL, *until]) == 0
    assert "in two evaluations in a row" in capsys.readouterr().out
    done = len((folder / "metrics.jsonl").read_text().splitlines())
    assert main(["train", "--resume", str(folder), "--steps", str(done)]) == 2
    assert f"steps must exceed the {done} updates" in capsys.readouterr().err
    assert main(["train", "--resume", str(folder), "--steps", str(done + 1)]) == 0
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == done + 1
    assert f"{done + 1} updates, {8 * (done + 1)} episodes" in capsys.readouterr().out


def test_a_warning_is_printed_once_and_recorded_in_the_metrics(tmp_path, capsys):
    flags = [*SMALL, "--steps=5", "--max-new-tokens=2"]
    assert main(["train", "--out", str(tmp_path), "--name", "r", *flags]) == 0
    out = capsys.readouterr().out
    assert out.count("raise --max-new-tokens") == 1 and "warning, update 3: 100%" in out
    rows = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    assert ["cut_replies" in row["warnings"] for row in rows] == [False, False, True, True, True]


def test_ctrl_c_finishes_the_update_saves_and_prints_how_to_resume(tmp_path, capsys, monkeypatch):
    def step(trainer):
        signal.raise_signal(signal.SIGINT)
        return finish(trainer)

    finish = Trainer.step
    monkeypatch.setattr(Trainer, "step", step)
    assert main(["train", "--out", str(tmp_path), "--name", "r", *SMALL]) == 130
    assert "Continue with: gem train --resume" in capsys.readouterr().err
    assert len((tmp_path / "r" / "metrics.jsonl").read_text().splitlines()) == 1
    assert sorted(p.name for p in (tmp_path / "r" / "checkpoints").iterdir())[-1] == "update-000001"


def test_cheap_mistakes_are_found_before_pytorch_is_imported(tmp_path):
    mistakes = (
        ["--env", "game:Wordel-v0"],
        ["--env-kwargs", "max_turns=abc"],
        ["--wrappers", "x"],
        ["--out", "/dev/null/runs"],
        ["--env", "vision:Charts"],
    )
    code = """
import json, sys
from gem._internal.folders import LOCK
from gem.cli import main
codes = [main(["train", "--out", sys.argv[1], *flags]) for flags in json.loads(sys.argv[2])]
print(codes, {"torch", "transformers"} & set(sys.modules))
"""
    command = [sys.executable, "-c", code, str(tmp_path), json.dumps(mistakes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(f"{[2] * len(mistakes)} set()\n") and done.stderr.count("gem: error: ") == len(mistakes)


def test_it_says_that_it_is_starting_before_pytorch_is_imported(tmp_path, capsys, monkeypatch):
    def stop(module, *, extra):
        raise BadValue(f"stopped at {module}")

    monkeypatch.setattr("gem.cli.train.require", stop)
    assert main(["train", "--out", str(tmp_path), "--name", "r", *SMALL]) == 2
    captured = capsys.readouterr()
    assert captured.out == "Starting: game:GuessTheNumber-v0-easy, 2 updates of 8 episodes.\n"
    assert "stopped at gem.rl.run.trainer" in captured.err


def test_a_dry_run_says_that_it_is_loading_before_pytorch_is_imported(capsys, monkeypatch):
    def stop(module, *, extra):
        raise BadValue(f"stopped at {module}")

    monkeypatch.setattr("gem.cli.train.require", stop)
    assert main(["train", "--dry-run"]) == 2
    assert capsys.readouterr().err.startswith("Loading the embedded model.\n")


def test_json_has_the_results_and_progress_goes_to_stderr(tmp_path, capsys):
    assert main(["train", "--out", str(tmp_path), "--name", "r", *SMALL, "--json"]) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert data["updates"] == 2 and set(data["trained"]) >= {"sampled", "greedy"} <= set(data["untrained"])
    assert "Starting" in captured.err


def test_flags_replace_the_settings_of_a_file_also_by_their_defaults(tmp_path, capsys):
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    file = tmp_path / "run.toml"
    file.write_text("steps = 9\nbatch = 8\nminibatch = 4\nadvantage = 'gae'\nepochs = 1\n")
    flags = ["--config", str(file), "--critic-options", "warmup=2", "--epochs", "3", "--out", str(tmp_path)]
    assert main(["train", "--dry-run", *flags]) == 0
    resolved = capsys.readouterr().out
    assert "steps = 9\n" in resolved and "epochs = 3\n" in resolved and "critic_options = {warmup = 2}\n" in resolved


def test_a_dry_run_prints_its_configuration_memory_and_conversations_and_writes_nothing(tmp_path, capsys):
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    out = tmp_path / "runs"
    mixture = ["--env", "game:GuessTheNumber-v0-easy=2", "math:Arithmetic"]
    assert main(["train", "--dry-run", "--out", str(out), *mixture, *SMALL]) == 0
    first = capsys.readouterr()
    assert not out.exists()
    assert "Estimated memory" in first.err and "Conversation 2: math:Arithmetic" in first.err
    assert "\u27e6\\boxed{" in first.err and "<|end|>\u27e7" in first.err
    file = tmp_path / "resolved.toml"
    file.write_text(first.out)
    assert main(["train", "--dry-run", "--config", str(file)]) == 0
    assert capsys.readouterr().out == first.out


def test_several_seeds_are_trained_one_after_another_each_in_its_folder(tmp_path, capsys):
    short = [*SMALL, "--steps=1", "--imitation-steps=2"]
    assert main(["train", "--out", str(tmp_path), "--name", "r", "--seed", "0", "3", *short, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [result["seed"] for result in results] == [0, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r-seed0", "r-seed3"]
    assert json.loads((tmp_path / "r-seed3" / "config.json").read_text())["seed"] == 3


def test_sigterm_saves_prints_how_to_resume_and_exits_with_143(tmp_path, capsys, monkeypatch):
    def step(trainer):
        signal.raise_signal(signal.SIGTERM)
        return finish(trainer)

    finish = Trainer.step
    monkeypatch.setattr(Trainer, "step", step)
    assert main(["train", "--out", str(tmp_path), "--seed", "0", "1", "--name", "r", *SMALL]) == 143
    assert f"Continue with: gem train --resume {tmp_path / 'r-seed0'}" in capsys.readouterr().err
    assert sorted(p.name for p in (tmp_path / "r-seed0" / "checkpoints").iterdir())[-1] == "update-000001"
    assert [p.name for p in tmp_path.iterdir()] == ["r-seed0"] and not (tmp_path / "r-seed0" / LOCK).exists()


def test_a_second_signal_stops_at_once_at_the_last_checkpoint(tmp_path, capsys, monkeypatch):
    def step(trainer):
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Trainer, "step", step)
    assert main(["train", "--out", str(tmp_path), "--name", "r", *SMALL]) == 143
    assert "Continue with: gem train --resume" in capsys.readouterr().err
    assert (tmp_path / "r" / "metrics.jsonl").read_text() == ""


def test_a_closed_stdout_leaves_a_run_that_resumes_and_says_so(tmp_path):
    command = [sys.executable, "-m", "gem", "train", "--out", str(tmp_path), "--name", "r", *SMALL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
    assert process.returncode == 141 and "Traceback" not in error
    assert "its output was closed. Continue with: gem train --resume" in error


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of this user."""
    out = tmp_path_factory.mktemp("runs")
    assert main(["train", "--out", str(out), "--name", "whole", *SMALL]) == 0
    return out / "whole"


@pytest.fixture
def copy(whole, tmp_path):
    """A copy of a run, which is what a run of someone else is here."""
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


def state_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(copy, **settings):
    file = copy / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


@pytest.mark.parametrize("name", ["advantage", "loss"])
def test_a_run_of_someone_else_is_not_resumed_and_its_modules_are_not_imported(
    name, copy, tmp_path, capsys, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "theirs.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef function(*, a): pass\n")
    edit(copy, **{name: "theirs:function"})
    before = state_of(copy)
    assert main(["train", "--resume", str(copy), "--steps", "3"]) == 2
    error = capsys.readouterr().err
    assert "theirs:function" in error and "--trust" in error and "game:GuessTheNumber" in error
    with pytest.raises(BadValue, match="trust=True"):
        Trainer.resume(str(copy))
    assert state_of(copy) == before and not (tmp_path / "ran").exists()


def test_a_run_of_someone_else_plays_in_environments_of_the_command_line(copy, tmp_path, capsys):
    flags = ["eval", "--checkpoint", str(copy), "--limit", "1", "--out", str(tmp_path / "out")]
    for more in ([], ["--seeds", "run"]):
        assert main([*flags[:3], *more]) == 2
        assert "game:GuessTheNumber" in capsys.readouterr().err
    assert main([*flags, "--env", "game:GuessTheNumber-v0-easy"]) == 0


def test_drawing_a_run_of_someone_else_makes_none_of_its_environments(copy, monkeypatch):
    monkeypatch.setattr("gem.rl.run.plots.make", lambda *args, **kwargs: pytest.fail("an environment was made"))
    assert main(["plot", str(copy)]) == 0


def test_trust_resumes_a_run_of_someone_else_also_later(copy):
    assert main(["train", "--resume", str(copy), "--trust", "--steps", "3"]) == 0
    assert main(["train", "--resume", str(copy), "--steps", "4"]) == 0


def test_the_second_of_two_resumes_is_refused_before_it_changes_anything(copy, capsys):
    with Trainer.resume(str(copy), trust=True):
        before = state_of(copy)
        assert main(["train", "--resume", str(copy), "--trust", "--steps", "3"]) == 2
        assert "is being written by" in capsys.readouterr().err
        assert state_of(copy) == before
    assert main(["train", "--resume", str(copy), "--steps", "3"]) == 0


@pytest.mark.parametrize(
    "name",
    ["config.json", "metrics.jsonl", "evaluations.jsonl", "checkpoints", "reference", "curve.png", "wandb", LOCK],
)
def test_a_link_in_a_run_is_an_error_and_its_target_untouched(name, copy, tmp_path, capsys):
    target = tmp_path / "target"
    if (copy / name).exists():
        (copy / name).rename(target)
    else:
        target.write_text("mine")
    (copy / name).symlink_to(target)
    before = state_of(target) if target.is_dir() else target.read_bytes()
    assert main(["train", "--resume", str(copy), "--trust", "--steps", "3"]) == 2
    assert f"{name} is a symbolic link" in capsys.readouterr().err
    assert (state_of(target) if target.is_dir() else target.read_bytes()) == before


@pytest.mark.parametrize("name", ["../../../target", "/target", "state.json/../../target"])
def test_a_manifest_names_no_file_outside_its_checkpoint(name, copy, tmp_path, capsys):
    os.mkfifo(tmp_path / "target")  # reading it would wait forever
    manifest = max((copy / "checkpoints").iterdir()) / "manifest.json"
    name = str(tmp_path / "target") if name == "/target" else name
    manifest.write_text(json.dumps({"sha256": {name: "0"}}))
    assert main(["train", "--resume", str(copy), "--trust", "--steps", "3"]) == 2
    assert f"is damaged ({name})" in capsys.readouterr().err
