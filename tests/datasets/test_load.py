"""Loading rows from files, folders, hub names and objects."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import gem
from gem.datasets import load_rows
from gem.datasets.load import content_hash, has_splits, read_file
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


def test_lone_surrogates_of_json_lines_are_replaced_with_one_warning(tmp_path, caplog):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": "\\ud83d\\ude00"}\n{"n": "cut \\uD83D"}\n{"n": ["\\udc00"]}\n')
    rows = read_file(path)
    for _ in range(2):
        assert [row["n"] for row in rows] == ["\U0001f600", "cut \ufffd", ["\ufffd"]]
    assert [record.getMessage() for record in caplog.records] == [
        "a.jsonl: lone surrogates are replaced by U+FFFD; the first: a.jsonl, line 2 (row 1)"
    ]


def test_the_hash_of_a_file_or_folder_changes_with_its_rows_alone(tmp_path):
    first = write_jsonl(tmp_path / "a" / "train.jsonl")
    second = write_jsonl(tmp_path / "b" / "other.jsonl")
    assert content_hash(str(first)) == content_hash(str(second)) != content_hash(str(tmp_path / "a"))
    before = content_hash(str(tmp_path / "a"))
    (tmp_path / "a" / "README.md").write_text("notes")
    assert content_hash(str(tmp_path / "a")) == before
    write_jsonl(first, ROWS[1:])
    assert content_hash(str(tmp_path / "a")) != before
    assert content_hash("owner/name") is None and content_hash(str(tmp_path / "none.jsonl")) is None


@pytest.mark.parametrize(
    ("name", "splits"), [("owner/name", True), ("gem:facts/questions.jsonl", False), ("a/b.jsonl", False), ("", False)]
)
def test_hub_datasets_and_folders_have_splits_and_files_have_none(name, splits, tmp_path):
    assert has_splits(name) is splits and has_splits(str(tmp_path))


def test_integers_of_any_length_are_read_from_json(tmp_path):
    digits = "7" * 6000
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"n": [{digits}, 12, "{digits}"]}}\n')
    [row] = read_file(path)
    assert row["n"] == [Decimal(digits), 12, digits] and type(row["n"][1]) is int
    path = tmp_path / "a.json"
    path.write_text(f'[{{"n": -{digits}}}]')
    assert str(read_file(path)[0]["n"]) == f"-{digits}"


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
        ("a.json", "[1", "is not JSON"),
        ("a.txt", "x", r"\.jsonl, \.jsonl\.gz, .*\.csv and \.parquet"),
        ("a.csv", "", "no rows"),
        ("a.csv", 'x,y\n"1,2\n', "invalid CSV"),
        ("a.jsonl.gz", "not zipped", "gzip"),
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


def test_a_malformed_line_is_reported_by_file_and_line_on_access(tmp_path):
    path = tmp_path / "a.jsonl"
    content = '{"n": 0}\n\n{"n": \n[1]\n' + "[" * 100_000
    path.write_text(content)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("a.jsonl", "a.jsonl.gz"):
        rows = read_file(tmp_path / name)
        assert rows[0] == {"n": 0} and rows.where(0) == f"{name}, line 1 (row 0)"
        with pytest.raises(BadValue, match=rf"{name}, line 3 \(row 1\) is not JSON: .* at column 6, got '{{\"n\":'"):
            rows[1]
        with pytest.raises(BadValue, match=rf"{name}, line 4 \(row 2\) .*JSON object"):
            rows[2]
        with pytest.raises(BadValue, match=rf"{name}, line 5 \(row 3\) is nested 100000 deep; at most 100 are read"):
            rows[3]


@pytest.mark.parametrize("wrong", ["3", "1,2,3"])
def test_a_row_that_does_not_fit_the_header_is_reported_by_line_on_access(tmp_path, wrong):
    path = tmp_path / "a.csv"
    path.write_text(f'x,y\n"1\n2",3\n\n{wrong}\n4,5\n')
    rows = read_file(path)
    assert (len(rows), rows[2]) == (3, {"x": "4", "y": "5"})
    with pytest.raises(BadValue, match=r"a\.csv, line 5 \(row 1\) .*header: x, y"):
        rows[1]


def test_a_folder_in_the_hub_layout_has_splits(tmp_path):
    write_jsonl(tmp_path / "data" / "train-00000-of-00002.jsonl", ROWS[:3])
    write_jsonl(tmp_path / "data" / "train-00001-of-00002.jsonl", ROWS[3:])
    write_jsonl(tmp_path / "data" / "test-00000-of-00001.jsonl", ROWS[:1])
    assert list(load_rows(tmp_path, "train")) == ROWS
    assert len(load_rows(tmp_path, "test")) == 1
    assert list(load_rows(tmp_path)) == ROWS
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


@pytest.mark.slow
def test_a_dataset_of_the_datasets_library_is_accepted():
    datasets = pytest.importorskip("datasets")
    rows = load_rows(datasets.DatasetDict(train=datasets.Dataset.from_list(ROWS)), "train")
    assert list(rows.skip(5)) == ROWS[5:]


def test_zipped_json_lines_are_read(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(path.read_bytes() + b"\n[1]\n"))
    rows = read_file(tmp_path / "b.jsonl.gz")
    assert list(rows[:7]) == ROWS
    with pytest.raises(BadValue, match=r"b\.jsonl\.gz, line 9 \(row 7\) .*JSON object"):
        rows[7]
    assert list(pickle.loads(pickle.dumps(rows))[:7]) == ROWS
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(path.read_bytes())[:-12])
    with pytest.raises(BadValue, match=r"cut\.jsonl\.gz.*gzip"):
        read_file(tmp_path / "cut.jsonl.gz")


def test_comma_separated_values_are_read_as_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('\ufeffproblem,answer\n"one, two\nthree",3\n' + "x" * 200_000 + ",4\n", encoding="utf-8")
    rows = load_rows(str(path))
    assert rows[0] == {"problem": "one, two\nthree", "answer": "3"} and len(rows[1]["problem"]) == 200_000


def test_a_file_of_another_format_is_refused_with_the_formats_that_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.xlsx").write_text("x")
    with pytest.raises(BadValue, match=r"rows\.xlsx.*\.csv and \.parquet"):
        load_rows("data/rows.xlsx")


def test_the_only_configuration_of_a_folder_is_loaded(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "google-research-datasets" / "nq_open" / "nq_open" / "validation.jsonl")
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    assert list(load_rows("google-research-datasets/nq_open", "validation")) == ROWS
    monkeypatch.setattr("gem.envs.questions.qa_env.QaEnv.open", lambda env, row: row["problem"])
    assert len(gem.make("eval:QaOpen").dataset) == 7


def test_numbered_files_belong_to_the_split_that_their_folder_names(tmp_path):
    write_jsonl(tmp_path / "nq_open" / "train" / "0000.jsonl", ROWS[:3])
    write_jsonl(tmp_path / "nq_open" / "train" / "0001.jsonl", ROWS[3:])
    write_jsonl(tmp_path / "nq_open" / "validation" / "0000.jsonl", ROWS[:1])
    assert list(load_rows(tmp_path, "train")) == ROWS and len(load_rows(tmp_path, "validation")) == 1


def test_one_of_several_configurations_must_be_chosen(tmp_path):
    write_jsonl(tmp_path / "easy" / "test.jsonl", ROWS[:2])
    write_jsonl(tmp_path / "hard" / "test.jsonl", ROWS[2:])
    with pytest.raises(BadValue, match=r"'easy', 'hard'.*pass .*/easy"):
        load_rows(tmp_path, "test")
    assert len(load_rows(tmp_path / "hard", "test")) == 5


@pytest.mark.slow
def test_folders_written_by_save_to_disk_are_loaded(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list(ROWS)
    rows.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": rows, "test": rows.select([0])}).save_to_disk(tmp_path / "two")
    assert list(load_rows(str(tmp_path / "one"))) == ROWS
    assert list(load_rows(tmp_path / "two", "train")) == ROWS and len(load_rows(tmp_path / "two", "test")) == 1
    with pytest.raises(BadValue, match=r"split .*'train', 'test'.*'dev'"):
        load_rows(tmp_path / "two", "dev")
