"""Loading rows from files, folders, hub names and objects."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gem.datasets import load_rows, read_file
from gem.errors import BadValue

ROWS = [{"problem": f"{n}+1", "answer": str(n + 1)} for n in range(7)]


def write_jsonl(path: Path, rows: Any = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, rows: Any = ROWS, group: int = 3) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)
    return path


def test_json_lines_are_read_in_order_without_blank_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 0}\n\n{"n": 1, "text": "é\\u2028x"}\r\n{"n": 2}', encoding="utf-8")
    assert [row["n"] for row in read_file(path)] == [0, 1, 2]
    assert read_file(path)[1]["text"] == "é\u2028x"


def test_parquet_is_read_in_order_across_row_groups(tmp_path):
    rows = read_file(write_parquet(tmp_path / "a.parquet"))
    assert list(rows) == ROWS
    assert [rows[i] for i in (6, 0, 3)] == [ROWS[i] for i in (6, 0, 3)]


def test_a_json_list_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(ROWS))
    assert list(read_file(path)) == ROWS


def test_a_modified_file_is_opened_again(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl")
    assert len(read_file(path)) == 7
    write_jsonl(path, ROWS[:2])
    os.utime(path, ns=(1, 1))
    assert len(read_file(path)) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "", "no rows"),
        ("a.jsonl", "\n\n", "no rows"),
        ("a.json", "{}", "must be a JSON list"),
        ("a.json", "[1", "invalid JSON"),
        ("a.csv", "x", "a dataset file ends in"),
    ],
)
def test_an_invalid_file_is_reported_by_name(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(BadValue, match=message) as caught:
        read_file(path)
    assert name in str(caught.value)


def test_an_invalid_parquet_file_is_reported(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(BadValue, match=r"a\.parquet"):
        read_file(path)


def test_a_malformed_line_is_reported_by_file_and_row_on_access(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 0}\n{"n": \n[1]\n')
    rows = read_file(path)
    assert rows[0] == {"n": 0}
    with pytest.raises(BadValue, match=r"a\.jsonl, row 1 is invalid JSON"):
        rows[1]
    with pytest.raises(BadValue, match=r"a\.jsonl, row 2 must be a JSON object"):
        rows[2]


def test_a_folder_in_the_hub_layout_has_splits(tmp_path):
    write_jsonl(tmp_path / "data" / "train-00000-of-00002.jsonl", ROWS[:3])
    write_jsonl(tmp_path / "data" / "train-00001-of-00002.jsonl", ROWS[3:])
    write_jsonl(tmp_path / "data" / "test-00000-of-00001.jsonl", ROWS[:1])
    assert list(load_rows(tmp_path, "train")) == ROWS
    assert len(load_rows(tmp_path, "test")) == 1
    with pytest.raises(BadValue, match=r"split must be one of 'test', 'train', got None"):
        load_rows(tmp_path)
    with pytest.raises(BadValue, match="got 'validation'"):
        load_rows(tmp_path, "validation")


def test_a_config_is_a_subfolder(tmp_path):
    write_jsonl(tmp_path / "easy" / "test.jsonl", ROWS[:2])
    write_jsonl(tmp_path / "hard" / "test.jsonl", ROWS[2:])
    assert len(load_rows(tmp_path, "test", config="hard")) == 5


def test_a_local_copy_takes_precedence_over_the_hub(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "owner" / "name" / "train.jsonl")
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    assert list(load_rows("owner/name", "train")) == ROWS


def test_a_missing_hub_dataset_names_the_ways_to_provide_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadValue, match=r"'owner/none'.*GEM_DATA/owner/none.*dataset=") as caught:
        load_rows("owner/none", "train")
    assert "\n" not in str(caught.value) and "hub" in str(caught.value)


@pytest.mark.parametrize("source", ["nothing", "a/b/c", 3, None, []])
def test_other_sources_are_refused(source):
    with pytest.raises(BadValue, match=r"dataset"):
        load_rows(source)


def test_rows_in_memory_are_used_as_they_are():
    assert list(load_rows(ROWS)) == ROWS
    assert list(load_rows({"train": ROWS, "test": ROWS[:1]}, "test")) == ROWS[:1]


def test_a_dataset_of_the_datasets_library_is_accepted():
    datasets = pytest.importorskip("datasets")
    rows = load_rows(datasets.DatasetDict(train=datasets.Dataset.from_list(ROWS)), "train")
    assert list(rows.skip(5)) == ROWS[5:]
