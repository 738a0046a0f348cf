"""Rows and views of them."""

from __future__ import annotations

import pytest

from gem.datasets.rows import ListRows, Mixed, bad_rows, key_of
from gem.errors import BadValue


def rows(count: int, name: str = "rows") -> ListRows:
    return ListRows([{"n": n} for n in range(count)], name)


def values(view: object) -> list[int]:
    return [row["n"] for row in view]  # type: ignore[attr-defined]


def test_take_and_skip_return_slices():
    assert values(rows(5).take(2)) == [0, 1]
    assert values(rows(5).skip(2)) == [2, 3, 4]
    assert values(rows(5).take(99)) == [0, 1, 2, 3, 4]
    assert values(rows(9).skip(2).take(3).skip(1)) == [3, 4]


def test_shards_partition_the_rows():
    shards = [values(rows(10).shard(index, 3)) for index in range(3)]
    assert shards == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


@pytest.mark.parametrize(("index", "count"), [(3, 3), (-1, 3), (0, 0)])
def test_an_invalid_shard_is_refused(index, count):
    with pytest.raises(BadValue, match="shard"):
        rows(5).shard(index, count)


@pytest.mark.parametrize("method", ["take", "skip"])
def test_a_negative_number_of_rows_is_refused(method):
    with pytest.raises(BadValue, match=r"-1"):
        getattr(rows(5), method)(-1)


def test_filter_keeps_the_order():
    assert values(rows(9).filter(lambda row: row["n"] % 3 == 0)) == [0, 3, 6]


def test_an_index_past_the_end_raises_index_error():
    with pytest.raises(IndexError, match="5 rows"):
        rows(5)[5]
    assert rows(5)[-1] == {"n": 4}


def test_rename_keeps_the_other_columns():
    renamed = ListRows([{"q": "1+1", "a": "2", "x": 3}]).rename({"problem": "q", "answer": "a"})
    assert renamed[0] == {"problem": "1+1", "answer": "2", "x": 3}


def test_a_missing_column_is_reported_with_row_and_available_columns():
    with pytest.raises(BadValue, match=r"row 1 .*no column 'q'.*'p'"):
        ListRows([{"q": 1}, {"p": 1}]).rename({"problem": "q"})[1]


def test_a_view_reports_the_original_location_of_a_row():
    assert rows(9, "file.jsonl").skip(3).shard(1, 2).where(1) == "file.jsonl, row 6"


def test_a_row_that_is_not_a_mapping_is_reported():
    with pytest.raises(BadValue, match=r"row 1 must be a mapping"):
        ListRows([{}, "text"])[1]


def test_a_mixture_without_weights_has_every_row_once():
    assert values(Mixed([rows(2), rows(3)])) == [0, 1, 0, 1, 2]


def test_weights_set_the_share_of_rows():
    small, large = ListRows([{"n": -1}] * 2), rows(10)
    mixture = Mixed([small, large], [1, 1])
    assert len(mixture) == 20
    assert values(mixture).count(-1) == 10


def test_a_mixture_reports_the_part_of_a_row():
    assert Mixed([rows(2, "a"), rows(3, "b")]).where(3) == "b, row 1"


@pytest.mark.parametrize(
    ("parts", "weights"), [([], None), ([rows(1)], [1, 2]), ([rows(1)], [0]), ([ListRows([])], None)]
)
def test_an_invalid_mixture_is_refused(parts, weights):
    with pytest.raises(BadValue, match="a mixture needs"):
        Mixed(parts, weights)


def test_a_key_is_the_id_column_or_a_hash_of_the_contents():
    assert key_of({"id": "q7", "x": 1}) == "q7"
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1}) != key_of({"a": 1, "b": 3})


def test_malformed_rows_are_reported_by_file_and_row():
    def read(row: object) -> None:
        if row["n"] == 2:  # type: ignore[index]
            raise BadValue("the answer is null")

    bad = bad_rows(rows(4, "f.jsonl"), read)
    assert (bad.reasons, bad.total) == ({2: "f.jsonl, row 2: the answer is null"}, 4)
