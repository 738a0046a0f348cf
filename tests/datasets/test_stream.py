"""Streams: reading order, skipping, saving and sources."""

from __future__ import annotations

import json
import pickle
from functools import partial
from pathlib import Path

import pytest

from gem.datasets import Stream, load_rows
from gem.datasets.load import hub_rows
from gem.datasets.stream import stream_rows
from gem.envs.questions.math_env import MathEnv
from gem.errors import BadValue

ROWS = [{"problem": f"{n}+1?", "answer": str(n + 1)} for n in range(7)]


class Counted:
    """Start a pass over rows; counts the passes and the rows read."""

    def __init__(self, rows=ROWS):
        self.rows, self.starts, self.read = rows, 0, 0

    def __call__(self):
        self.starts += 1
        for row in self.rows:
            self.read += 1
            yield row


def questions(env, count, seed=0):
    return [env.reset(seed=seed if k == 0 else None)[1]["idx"] for k in range(count)]


def written(tmp_path: Path, rows=ROWS) -> Path:
    path = tmp_path / "owner" / "name" / "data" / "train-00000-of-00001.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_reading_forward_reads_each_row_once():
    start = Counted()
    stream = Stream(start)
    assert [stream.at(k)[0] for k in (0, 1, 1, 3)] == [0, 1, 1, 3]
    assert (start.starts, start.read) == (1, 4)
    assert stream.at(0) == (0, ROWS[0])
    assert start.starts == 2


def test_positions_past_the_end_wrap_around():
    stream = Stream(Counted())
    assert [stream.at(k)[0] for k in range(5, 16)] == [5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert stream.at(7 * 10**6 + 2)[0] == 2


def test_empty_streams_and_items_that_are_not_rows_are_refused():
    with pytest.raises(BadValue, match="no rows"):
        Stream(Counted([])).at(0)
    with pytest.raises(BadValue, match="s, row 1 must be a mapping"):
        Stream(Counted([{}, 3]), "s").at(1)


def test_an_environment_uses_the_rows_in_order():
    env = MathEnv(dataset=Stream(Counted()), shuffle=False)
    assert questions(env, 9) == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert questions(env, 2, seed=4) == [4, 5]
    assert env.step(r"\boxed{6}").reward == 1.0


def test_streams_support_neither_idx_nor_shuffling():
    env = MathEnv(dataset=Stream(Counted(), "s"), shuffle=False)
    with pytest.raises(BadValue, match=r"s is a stream.*idx=3"):
        env.reset(idx=3)
    with pytest.raises(BadValue, match="pass shuffle=False"):
        MathEnv(dataset=Stream(Counted()))


def test_malformed_rows_of_a_stream_are_skipped_as_they_are_read(caplog):
    rows = [ROWS[0], {"problem": "x?"}, ROWS[1], {"answer": "3"}]
    env = MathEnv(dataset=Stream(Counted(rows), "s"), shuffle=False, skip_bad_rows=True)
    assert questions(env, 2) == [0, 2] and env.skipped_rows == 1
    assert questions(env, 3) == [0, 2, 0] and env.skipped_rows == 2
    assert "s: 2 of 4 rows are malformed" in caplog.text
    with pytest.raises(BadValue, match="s, row 1: there is no column 'answer'"):
        questions(MathEnv(dataset=Stream(Counted(rows), "s"), shuffle=False), 2)


def test_an_episode_on_a_stream_can_be_saved_forked_and_pickled():
    start = partial(list, [ROWS[0], {"problem": "x?"}, *ROWS[1:]])
    env = MathEnv(dataset=Stream(start), shuffle=False, skip_bad_rows=True)
    questions(env, 3)
    twin = MathEnv(dataset=Stream(start), shuffle=False, skip_bad_rows=True)
    twin.set_state(json.loads(json.dumps(env.get_state())))
    for copy in (twin, env.spawn(same_state=True), pickle.loads(pickle.dumps(env))):
        assert copy.first_obs == env.first_obs
        assert copy.step(r"\boxed{3}").reward == 1.0
        assert copy.reset()[1] == {"idx": 4}


def test_files_and_local_copies_can_be_streamed(tmp_path, monkeypatch):
    path = written(tmp_path)
    assert stream_rows(str(path)).at(6) == (6, ROWS[6])
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    assert questions(MathEnv("owner/name", "train", streaming=True, shuffle=False), 3) == [0, 1, 2]


@pytest.mark.slow
def test_an_iterable_dataset_can_be_streamed(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the extra [data]")
    rows = datasets.IterableDataset.from_generator(partial(iter, ROWS))
    env = MathEnv(dataset=rows, shuffle=False)
    assert questions(env, 8) == [0, 1, 2, 3, 4, 5, 6, 0]
    with pytest.raises(BadValue, match="a sequence of rows"):
        load_rows(iter(ROWS))


@pytest.mark.slow
def test_the_datasets_library_streams_rows(tmp_path, monkeypatch):
    pytest.importorskip("datasets", reason="needs the extra [data]")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # the hub must not be asked for a folder
    folder = written(tmp_path).parent.parent
    stream = Stream(partial(hub_rows, str(folder), "train", None, streaming=True), "owner/name")
    assert [stream.at(k)[1]["answer"] for k in range(8)] == [*(row["answer"] for row in ROWS), "1"]


def test_a_missing_hub_stream_names_the_ways_to_provide_it(monkeypatch):
    pytest.importorskip("datasets", reason="needs the extra [data]")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.delenv("GEM_DATA", raising=False)
    env = MathEnv("owner/no-such-name", "train", streaming=True, shuffle=False)
    with pytest.raises(BadValue, match=r"'owner/no-such-name'.*GEM_DATA/owner/no-such-name.*dataset="):
        env.reset()
