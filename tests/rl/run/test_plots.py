"""Learning curves of several runs."""

import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from gem._internal.folders import remember
from gem.errors import BadValue
from gem.evaluation.metrics import interquartile_interval
from gem.rl.run.plots import (
    RecordedRun,
    _draw_group,
    _smoothed,
    by_configuration,
    draw_curves,
    find_runs,
)

EASY = "game:GuessTheNumber-v0-easy"


def row(update: int, success: float, turns: float | None = None, **more):
    return {"update": update, "episodes": 16 * update, "success": success, "turns_when_won": turns, **more}


def write_run(folder: Path, rows: list[dict[str, object]], **config: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"env": EASY, "steps": 4, **config}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    remember(folder / "config.json")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two seeds of one configuration, one of them longer, and a run in progress of another."""
    scores = {"success": 0.75, "turns_when_won": 2.5}
    long = [row(i, 0.1 * i, 3.0) for i in range(1, 5)]
    long[3]["eval"] = {"greedy": scores, "sampled": scores}
    write_run(tmp_path / "turn-0", long, advantage="turn", seed=0, name="turn-0")
    write_run(tmp_path / "turn-1", [row(1, 0.2), row(2, 0.4)], advantage="turn", seed=1, name="turn-1")
    path = write_run(tmp_path / "rloo", [row(1, 0.3, warnings=["clipped"])], advantage="rloo", seed=0)
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"update": 2, "episo')  # a write in progress
    (tmp_path / "notes").mkdir()
    return tmp_path


def drawn(path: Path, runs: list[RecordedRun], *metrics: str) -> bytes:
    draw_curves(path, runs, metrics)
    return path.read_bytes()


def test_runs_that_differ_only_in_their_seed_are_one_curve(runs: Path):
    found = [RecordedRun.read(path) for path in find_runs(runs)]
    groups = by_configuration(found)
    assert {label: [r.path.name for r in members] for label, members in groups.items()} == {
        "advantage=rloo": ["rloo"],
        "advantage=turn": ["turn-0", "turn-1"],
    }
    assert list(by_configuration(found[1:])) == [EASY]


def test_a_name_has_the_nested_settings_that_differ_and_no_others(tmp_path: Path):
    shared = {"learning_rate": 0.001, "env_kwargs": {"high": 10}}
    for name, turns in (("a", 3), ("b", 4)):
        env = [{"id": EASY, "kwargs": {"max_turns": turns, "low": 1}}]
        write_run(tmp_path / name, [row(1, 0.0)], **(shared | {"env": env}))
    found = by_configuration([RecordedRun.read(path) for path in find_runs(tmp_path)])
    assert list(found) == ["env.kwargs.max_turns=3", "env.kwargs.max_turns=4"]


def test_a_long_name_keeps_only_as_many_settings_as_tell_the_runs_apart(tmp_path: Path):
    for i, advantage in enumerate(("rloo", "turn", "turn")):
        options = {"advantage_options": {"a": i, "b": i}, "learning_rate": i / 10, "loss": f"loss-number-{i}"}
        write_run(tmp_path / str(i), [row(1, 0.0)], advantage=advantage, **options)
    found = by_configuration([RecordedRun.read(path) for path in find_runs(tmp_path)])
    assert list(found) == [
        "advantage=rloo, learning_rate=0.0",
        "advantage=turn, learning_rate=0.1",
        "advantage=turn, learning_rate=0.2",
    ]


def test_seeds_are_drawn_as_their_interquartile_mean_with_its_interval(tmp_path: Path):
    finals = [0.0, 0.4, 0.5, 0.6, 1.0]
    for seed, final in enumerate(finals):
        write_run(tmp_path / str(seed), [row(1, 0.0), row(2, 2 * final)], seed=seed)  # the mean of both is drawn
    axes = Axes()
    _draw_group(axes, [RecordedRun.read(path) for path in find_runs(tmp_path)], "success", "C0", "five")
    (x, values), label = axes.lines[0]
    assert list(x) == [16, 32] and list(values) == pytest.approx([0.0, 0.5]) and label == "five (5 seeds)"
    (_, low, high), expected = axes.bands[0], interquartile_interval([finals])
    assert (low[1], high[1]) == pytest.approx(expected[1:3])
    assert min(finals) < low[1] < high[1] < max(finals)


class Axes:
    """Records what is drawn."""

    def __init__(self):
        self.lines, self.bands = [], []

    def plot(self, *points, label=None, **style):
        self.lines.append((points, label))

    def fill_between(self, *bounds, **style):
        self.bands.append(bounds)


def test_the_legend_is_below_the_panels(runs: Path, tmp_path: Path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    kept, close = [], pyplot.close
    monkeypatch.setattr(pyplot, "close", kept.append)
    draw_curves(tmp_path / "a.png", [RecordedRun.read(path) for path in find_runs(runs)], ["success"])
    (legend,), (axes,) = kept[0].legends, kept[0].axes
    assert legend.get_window_extent().y1 <= axes.get_tightbbox().y0
    assert [text.get_text() for text in legend.get_texts()][:2] == ["advantage=rloo", "advantage=turn (2 seeds)"]
    close(kept[0])


def test_curves_of_several_runs_are_drawn_even_without_won_games(runs: Path, tmp_path: Path):
    found = [RecordedRun.read(path) for path in find_runs(runs)]
    assert found[1].optimum is not None
    assert drawn(tmp_path / "a.png", found, "success", "turns_when_won").startswith(b"\x89PNG")
    lost = [RecordedRun.read(write_run(tmp_path / "lost", [row(1, 0.0), row(2, 0.0)]))]
    assert drawn(tmp_path / "b.png", lost, "success", "turns_when_won").startswith(b"\x89PNG")


def test_a_torn_last_line_is_left_out_and_a_damaged_line_is_an_error(runs: Path):
    assert [r["update"] for r in RecordedRun.read(runs / "rloo").rows] == [1]
    (runs / "rloo" / "metrics.jsonl").write_text("{\n")
    with pytest.raises(BadValue, match=r"metrics\.jsonl, line 1: "):
        RecordedRun.read(runs / "rloo")


def test_an_environment_that_is_not_installed_has_no_optimum(tmp_path: Path):
    assert RecordedRun.read(write_run(tmp_path / "other", [row(1, 0.0)], env="other:Env-v0")).optimum is None


def test_a_mixture_is_named_by_its_environments_and_has_no_optimum(tmp_path: Path):
    mixture = [{"id": EASY, "name": None}, {"id": EASY, "name": "shorter"}, {"id": "math:Arithmetic"}]
    run = RecordedRun.read(write_run(tmp_path / "mixture", [row(1, 0.0)], env=mixture))
    assert run.title == f"{EASY}, shorter, math:Arithmetic" and run.optimum is None
    one = RecordedRun.read(write_run(tmp_path / "one", [row(1, 0.0)], env=[{"id": EASY, "kwargs": {"max_turns": 3}}]))
    assert one.optimum is not None and one.optimum.success < 1.0


def test_nested_metrics_are_drawn_by_their_path(runs: Path, tmp_path: Path):
    path = write_run(tmp_path / "nested", [row(i, 0.1, time={"seconds": 2.0 * i}, levels={EASY: 0.5}) for i in (1, 2)])
    found = [RecordedRun.read(path)]
    assert _smoothed(found[0].rows, "time/seconds") == {1: (16, 2.0), 2: (32, 3.0)}
    assert drawn(tmp_path / "a.png", found, "time/seconds", f"levels/{EASY}").startswith(b"\x89PNG")
    with pytest.raises(BadValue, match=r"'time'.*metrics.md"):
        draw_curves(tmp_path / "b.png", found, ["time"])


def test_a_metric_that_no_run_has_is_refused(runs: Path, tmp_path: Path):
    found = [RecordedRun.read(path) for path in find_runs(runs)]
    with pytest.raises(BadValue, match=r"'sucess'.*metrics.md"):
        draw_curves(tmp_path / "a.png", found, ["sucess"])


def test_a_folder_without_runs_is_refused(tmp_path: Path):
    with pytest.raises(BadValue, match="no training run in"):
        find_runs(tmp_path)
    with pytest.raises(BadValue, match="is not a folder"):
        find_runs(tmp_path / "none")
