"""The numbers of a run at TensorBoard, Weights & Biases and Trackio."""

import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from gem.cli import main
from gem.errors import install_command
from gem.evaluation.logs.services import NumberLog

ROWS = [{"update": 1, "success": 0.25, "warnings": []}, {"update": 2, "eval": {"greedy": {"success": 0.5}}}]


@pytest.fixture
def service(monkeypatch) -> list[tuple[str, tuple[object, ...], dict[str, object]]]:
    """Replace wandb and trackio by modules that record the calls of their interface."""
    calls: list[tuple[str, tuple[object, ...], dict[str, object]]] = []

    class Run:
        def log(self, data: dict[str, object], step: int | None = None) -> None:
            calls.append(("log", (data,), {"step": step}))

        def finish(self) -> None:
            calls.append(("finish", (), {}))

    def init(*, project: str, name: str, config: dict[str, object], resume: str, id: str = "", dir: str = "") -> Run:
        calls.append(("init", (), {"project": project, "name": name, "config": config, "resume": resume, "id": id}))
        return Run()

    for name in ("wandb", "trackio"):
        module = types.ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)  # libraries that look for it are imported in a test
        module.init, module.log, module.finish = init, Run().log, Run().finish
        monkeypatch.setitem(sys.modules, name, module)
    return calls


@pytest.mark.parametrize("kind", ["wandb", "trackio"])
def test_a_service_gets_the_numbers_of_each_row_at_its_update(kind, service, tmp_path: Path):
    log = NumberLog(kind, "run a", {"seed": 1}, folder=tmp_path, step=0)
    for step, row in enumerate(ROWS, start=1):
        log.write(row, step)
    log.close()
    started = {"project": "gem", "name": "run a", "config": {"seed": 1}, "resume": "allow"}
    assert service == [
        ("init", (), {**started, "id": "run-a" if kind == "wandb" else ""}),
        ("log", ({"update": 1, "success": 0.25, "warnings": 0},), {"step": 1}),
        ("log", ({"update": 2, "eval/greedy/success": 0.5},), {"step": 2}),
        ("finish", (), {}),
    ]


def test_tensorboard_reads_the_numbers_and_a_resumed_run_replaces_later_ones(tmp_path: Path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for update, success in ((0, 0.25), (1, 0.75)):  # the second run repeats update 2
        log = NumberLog("tensorboard", "run", {}, folder=tmp_path, step=update)
        for number in range(update + 1, 4):
            log.write({"update": number, "eval": {"greedy": {"success": success}}}, number)
        log.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["update", "eval/greedy/success"]
    assert [(e.step, e.value) for e in events.Scalars("eval/greedy/success")] == [(1, 0.25), (2, 0.75), (3, 0.75)]


@pytest.mark.parametrize("fails", ["init", "log", "finish"])
def test_a_service_that_fails_costs_one_warning(fails, service, tmp_path, monkeypatch, caplog):
    def fail(*args: object, **options: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(sys.modules["trackio"], fails, fail)
    log = NumberLog("trackio", "run", {}, folder=tmp_path, step=0)
    for step, row in enumerate(ROWS, start=1):
        log.write(row, step)
    log.close()
    assert [record.getMessage() for record in caplog.records] == [
        "--log trackio failed, and gets no more of this run: OSError: no network"
    ]


@pytest.mark.train
def test_a_training_run_is_logged_and_continued_by_resume(service, tmp_path: Path):
    pytest.importorskip("torch")
    flags = ["--steps=2", "--batch=4", "--minibatch=4", "--imitation-steps=1", "--eval-episodes=2", "--log=wandb"]
    assert main(["train", "--out", str(tmp_path), "--name", "r", *flags]) == 0
    assert main(["train", "--resume", str(tmp_path / "r"), "--steps", "3"]) == 0
    assert [name for name, _, _ in service] == ["init", "log", "log", "finish", "init", "log", "finish"]
    assert service[0][2]["config"]["log"] == "wandb" and service[5][2] == {"step": 3}


@pytest.mark.parametrize("kind", ["tensorboard", "wandb", "trackio"])
def test_a_missing_library_is_one_line_with_the_pip_command_before_the_run(kind, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, kind, None)
    assert main(["train", "--out", str(tmp_path), "--name", "r", "--log", kind]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and install_command(kind) in error
    assert not (tmp_path / "r").exists()
