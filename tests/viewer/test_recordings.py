"""Episodes of files and run folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import guessing, varied, write_run

from gem.errors import BadValue
from gem.trajectory import Trajectory, Turn, write_jsonl
from gem.viewer.recordings import Recordings


def test_the_episodes_of_several_files_are_numbered_in_order(tmp_path: Path):
    write_jsonl(tmp_path / "a.jsonl", [guessing(1), guessing(2)])
    write_jsonl(tmp_path / "b.jsonl", [guessing(3)])
    recordings = Recordings([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert [(row["file"], row["line"]) for row in recordings.rows] == [(0, 1), (0, 2), (1, 1)]
    assert recordings.body(2)["details"]["seed"] == "3"


def test_a_run_folder_has_trajectories_and_a_learning_curve(tmp_path: Path):
    run = write_run(tmp_path / "demo", varied(5), updates=10)
    recordings = Recordings([run])
    assert [file.name for file in recordings.files] == ["trajectories.jsonl"]
    assert len(recordings.rows) == 5 and len(recordings.curve) == 10
    last = recordings.curve[-1]
    assert (last["run"], last["episodes"], last["eval"]["turns_when_won"]) == (str(run), 2560, 3.2)


def test_a_folder_without_trajectories_jsonl_shows_its_other_files(tmp_path: Path):
    write_jsonl(tmp_path / "samples.jsonl", [guessing(1)])
    (tmp_path / "metrics.jsonl").write_text('{"episodes": 1}\n')
    assert [file.name for file in Recordings([tmp_path]).files] == ["samples.jsonl"]


def test_the_failures_of_an_evaluation_follow_its_trajectories(tmp_path: Path):
    for name in ("failures.jsonl", "trajectories.jsonl", "traces.jsonl"):
        write_jsonl(tmp_path / name, [guessing(1)])
    assert [file.name for file in Recordings([tmp_path]).files] == ["trajectories.jsonl", "failures.jsonl"]


def test_appended_lines_are_read_by_update_and_a_torn_line_when_it_is_complete(tmp_path: Path):
    file = tmp_path / "a.jsonl"
    write_jsonl(file, [guessing(1), guessing(2)])
    whole = file.read_bytes()
    file.write_bytes(whole[:-50])
    recordings = Recordings([file])
    assert len(recordings.rows) == 1
    file.write_bytes(whole)
    write_jsonl(file, [guessing(3)])
    recordings.update()
    assert [row["line"] for row in recordings.rows] == [1, 2, 3]
    assert recordings.body(2)["details"]["seed"] == "3"


def test_empty_lines_and_a_missing_last_newline_are_accepted(tmp_path: Path):
    file = tmp_path / "a.jsonl"
    write_jsonl(file, [guessing(1)])
    file.write_bytes(b"\n" + file.read_bytes().rstrip())
    recordings = Recordings([file])
    assert [row["line"] for row in recordings.rows] == [2]
    assert recordings.body(0)["turns"]


def test_equal_episodes_have_equal_keys_wherever_they_are(tmp_path: Path):
    for name in ("a.jsonl", "b.jsonl"):
        write_jsonl(tmp_path / name, [guessing(1), guessing(2)])
    keys = [row["key"] for row in Recordings([tmp_path]).rows]
    assert keys[:2] == keys[2:] and keys[0] != keys[1]


def test_a_bad_line_is_named_with_its_file_and_number(tmp_path: Path):
    file = tmp_path / "a.jsonl"
    write_jsonl(file, [guessing(1)])
    file.write_bytes(file.read_bytes() + b'{"a": 1}\n')
    with pytest.raises(BadValue, match=r"a\.jsonl, line 2: not a trajectory"):
        Recordings([file])


def test_damaged_metrics_are_named_with_their_line(tmp_path: Path):
    run = write_run(tmp_path / "demo", [guessing(1)], updates=1)
    (run / "metrics.jsonl").write_text('{"update": 1}\n')
    with pytest.raises(BadValue, match=r"metrics\.jsonl, line 1: not metrics"):
        _ = Recordings([run]).curve


def test_the_cost_of_an_episode_is_that_of_the_tokens_at_the_price_of_the_evaluation(tmp_path: Path):
    episode = guessing(1, turns=2)
    for turn in episode.turns:
        turn.usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    write_jsonl(tmp_path / "trajectories.jsonl", [episode])
    assert Recordings([tmp_path]).rows[0]["cost"] is None
    (tmp_path / "eval.json").write_text('{"price": {"input": 2.0, "output": 10.0}}')
    assert Recordings([tmp_path]).rows[0]["cost"] == pytest.approx(2 * (0.002 + 0.001))
    (tmp_path / "eval.json").write_text('{"price": "free"}')
    assert Recordings([tmp_path]).rows[0]["cost"] is None


def test_titles_leave_out_what_all_tasks_begin_with(tmp_path: Path):
    template = "Answer the question, and put your final answer in a box. Question: "
    asked = [template + "What is 6 times 7?\n\nThink.", template + "Who wrote it?", template + "Why?" + " x" * 100]
    write_jsonl(tmp_path / "a.jsonl", [Trajectory("a", turns=[Turn(text, "b")]) for text in asked])
    titles = [row["title"] for row in Recordings([tmp_path / "a.jsonl"]).rows]
    assert titles[:2] == ["…What is 6 times 7?", "…Who wrote it?"]
    assert len(titles[2]) <= 101 and titles[2].startswith("…Why? x") and titles[2].endswith("…")
