"""Settings of BM25."""

import pytest

from gem.errors import BadValue
from gem.tools.search.index import LexicalIndex
from gem.tools.search.ranking import BM25, ENGLISH_STOP_WORDS, pyserini


def test_stop_words_and_stems_do_not_distinguish_documents():
    pytest.importorskip("snowballstemmer")
    found = LexicalIndex.of([{"contents": "The runners were running"}, {"contents": "A cat"}], ranking=pyserini())
    assert [
        [hit.document["id"] for hit in hits] for hits in found.search(["run", "the", "a cats", "runs running"])
    ] == [["1"], [], ["2"], ["1"]]
    assert pyserini() == BM25(k1=0.9, b=0.4, stemmer="porter", stop_words=ENGLISH_STOP_WORDS)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"k1": -1}, "k1 .*at least 0, got -1"),
        ({"b": 1.5}, r"b .*0 to 1, got 1\.5"),
        ({"b": "a"}, "b .*0 to 1, got 'a'"),
        ({"stop_words": "the"}, "stop_words .*list"),
    ],
)
def test_settings_out_of_range_are_refused(setting, message):
    with pytest.raises(BadValue, match=message):
        BM25(**setting)


def test_an_unknown_stemmer_is_refused():
    pytest.importorskip("snowballstemmer")
    with pytest.raises(BadValue, match=r"stemmer .*None.*porter"):
        BM25(stemmer="potter")
