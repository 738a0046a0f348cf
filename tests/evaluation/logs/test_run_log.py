"""evaluate(log=…): the scores so far at a service."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from gem.cli import main
from gem.errors import BadValue, install_command
from gem.evaluation import evaluate

GAME = "game:GuessTheNumber-v0-easy"


class Service:
    """A module with the interface of trackio that keeps the calls."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.finished = 0

    def init(self, **options: Any) -> None:
        self.started.append(options)

    def log(self, row: dict[str, float], step: int) -> None:
        self.rows.append((step, row))

    def finish(self) -> None:
        self.finished += 1


@pytest.fixture
def trackio(monkeypatch) -> Service:
    service, module = Service(), types.ModuleType("trackio")
    module.init, module.log, module.finish = service.init, service.log, service.finish
    monkeypatch.setitem(sys.modules, "trackio", module)
    return service


def test_the_scores_and_the_configuration_are_logged(trackio, tmp_path):
    report = evaluate("random", [GAME, "qa:Facts"], limit=5, out=str(tmp_path / "run"), log="trackio")
    (started,) = trackio.started
    assert (started["project"], started["name"], started["resume"]) == ("gem", "eval-run", "allow")
    assert started["config"] == report.settings and started["config"]["policy"]["model"] == "random"
    step, row = trackio.rows[-1]
    assert (step, row["done"], row["failed"], row[f"{GAME}/done"]) == (10, 10, 0, 5)
    assert row[f"{GAME}/score"] == report[GAME].score.value and row["qa:Facts/solved"] == 0.0
    assert "qa:Facts/cost" not in row and trackio.finished == 1  # not known, and so not 0


def test_a_resumed_run_is_continued(trackio, tmp_path):
    options: dict[str, Any] = {"limit": 3, "out": str(tmp_path / "run"), "log": "trackio"}
    evaluate("random", GAME, **options)
    evaluate("random", GAME, **options, resume=True)
    assert [started["name"] for started in trackio.started] == ["eval-run", "eval-run"]
    assert trackio.rows[-1] == trackio.rows[0] and trackio.finished == 2


def test_a_service_that_fails_does_not_end_the_evaluation(trackio, tmp_path, monkeypatch, caplog):
    def fail(**options: Any) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(sys.modules["trackio"], "init", fail)
    report = evaluate("random", GAME, limit=5, out=str(tmp_path / "run"), log="trackio")
    assert report.complete and (tmp_path / "run" / "report.json").exists()
    assert [record.getMessage() for record in caplog.records] == [
        "--log trackio failed, and gets no more of this run: ConnectionError: no network"
    ]


def test_event_files_for_tensorboard_are_in_the_folder_of_the_evaluation(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    report = evaluate("random", GAME, limit=5, out=str(tmp_path / "run"), log="tensorboard")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    (last,) = [event for event in events.Scalars(f"{GAME}/solved") if event.step == 5][-1:]
    assert last.value == pytest.approx(report[GAME].solved.value)


@pytest.mark.parametrize(
    ("log", "message"), [("tensorboard", "name one with out="), ("wandbs", "log must be wandb, tensorboard")]
)
def test_a_log_that_cannot_be_kept_is_refused(log, message):
    pytest.importorskip("tensorboard")
    with pytest.raises(BadValue, match=message):
        evaluate("random", GAME, limit=1, log=log)


@pytest.mark.parametrize(("kind", "module"), [("wandb", "wandb"), ("otel", "opentelemetry.sdk.trace")])
def test_a_missing_library_is_one_line_with_the_pip_command_before_the_run(kind, module, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["eval", "--policy", "random", "--env", GAME, "--out", str(tmp_path / "run"), "--log", kind]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and install_command(kind) in error
    assert not (tmp_path / "run").exists()
