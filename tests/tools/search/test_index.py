"""Indexes: ranking, corpora, interrupted builds and damaged files."""

from __future__ import annotations

import importlib.util
import json
import math
import multiprocessing
import pickle
import random
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem.errors import BadValue, ToolError
from gem.tools.search import corpus as corpus_module
from gem.tools.search import index as index_module
from gem.tools.search import tantivy_engine
from gem.tools.search.corpus import QUERY_WORDS, query_words, words
from gem.tools.search.index import LexicalIndex, build_index, open_corpus, open_index
from gem.tools.search.numpy_engine import DOCUMENTS, kth_best, rounded_lengths
from gem.tools.search.numpy_engine import WORDS as WORDS_FILE
from gem.tools.search.ranking import BM25

HAS_TANTIVY = importlib.util.find_spec("tantivy") is not None
ENGINES = ["numpy", pytest.param("tantivy", marks=pytest.mark.skipif(not HAS_TANTIVY, reason="needs [search]"))]
WORDS = ["amber", "barge", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty"]


def rows(count: int, seed: int = 0) -> list[dict[str, str]]:
    """Passages of common words and one unique word each; every tenth repeats the previous one."""
    rng = random.Random(seed)
    found: list[dict[str, str]] = []
    for number in range(count):
        text = " ".join(rng.choices(WORDS, weights=range(1, 11), k=rng.randint(3, 60)))
        row = {"id": f"p{number}", "title": f"Passage {number}", "text": f"{text} own{number}"}
        found.append({**found[-1], "id": row["id"]} if number % 10 == 9 else row)
    return found


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answers(found: LexicalIndex, queries: list[str], topk: int = 5) -> list[list[str]]:
    return [[hit.document["id"] for hit in hits] for hits in found.search(queries, topk)]


def by_hand(
    rows: list[dict[str, str]], query: str, topk: int, k1: float = 1.2, b: float = 0.75
) -> list[tuple[str, float]]:
    """BM25 in plain loops over all documents."""
    texts = [Counter(words(f"{row['title']} {row['text']}")) for row in rows]
    lengths = [int(length) for length in rounded_lengths(np.array([sum(text.values()) for text in texts]))]
    mean = sum(sum(text.values()) for text in texts) / len(texts)
    scores: Counter[str] = Counter()
    for word in query_words(query):
        holding = sum(word in text for text in texts)
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for row, text, length in zip(rows, texts, lengths, strict=True):
            if text[word]:
                scores[row["id"]] += idf * text[word] * (k1 + 1) / (text[word] + k1 * (1 - b + b * length / mean))
    best = sorted(scores.items(), key=lambda item: (-round(item[1], 4), item[0]))
    return [(key, round(score, 4)) for key, score in best[:topk]]


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["foo:bar", '"', "(((", "a AND", "[a TO", "don't", "C++ vs C#?", "\x00", "*", "", "\ud800"]
)
def test_a_query_is_split_into_words_and_never_parsed_as_a_query_language(query):
    assert LexicalIndex.of(rows(20)).search([query], 3) is not None


@given(st.text())
def test_words_are_lower_case_bounded_and_stable_when_split_again(text):
    found = words(text)
    assert all(0 < len(word) <= 64 and (word == word.casefold() or not word.isascii()) for word in found)
    assert words(" ".join(found)) == found or not text.isascii()


def test_a_query_uses_a_limited_number_of_distinct_words():
    assert query_words("amber barge amber") == ["amber", "barge"]
    assert len(query_words(" ".join(f"word{number}" for number in range(10_000)))) == QUERY_WORDS


# --- ranking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_and_order_match_the_bm25_formula(engine, tmp_path):
    passages = rows(300)
    found = build_index(write(tmp_path / "corpus.jsonl", passages), tmp_path / "index", engine=engine)
    for query in ["amber", "amber own17", "jetty inlet heath", "own5 own6 own7 fjord", "nothing of it"]:
        hits = found.search([query], 7)[0]
        expected = by_hand(passages, query, 7)
        assert [hit.document["id"] for hit in hits] == [key for key, _ in expected], query
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=2e-4)
    found.close()


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (0, 0), (2, 1)])
def test_the_numpy_engine_takes_other_constants(k1, b, tmp_path):
    passages, ranking = rows(100), BM25(k1=k1, b=b)
    corpus = write(tmp_path / "corpus.jsonl", passages)
    built = build_index(corpus, tmp_path / "index", ranking=ranking)
    assert built.engine == "numpy"
    for found in (LexicalIndex.of(passages, ranking=ranking), built, open_index(tmp_path / "index")):
        hits = found.search(["amber own17 fjord"], 7)[0]
        expected = by_hand(passages, "amber own17 fjord", 7, k1, b)
        assert [(hit.document["id"], pytest.approx(hit.score, abs=2e-4)) for hit in hits] == expected
    with pytest.raises(BadValue, match=r"holds an index with BM25\(k1="):
        build_index(corpus, tmp_path / "index")


def test_tantivy_refuses_other_constants_and_names_the_numpy_engine(tmp_path):
    if HAS_TANTIVY:
        corpus = write(tmp_path / "corpus.jsonl", rows(3))
        with pytest.raises(BadValue, match="use engine='numpy' for"):
            build_index(corpus, tmp_path / "index", engine="tantivy", ranking=BM25(k1=0.9))


def test_words_of_hangul_are_found_with_and_without_particles():
    found = LexicalIndex.of([{"contents": "괴테는 파우스트를 썼다"}, {"contents": "오스틴의 소설 엠마"}])
    assert [ids[0] for ids in answers(found, ["파우스트", "오스틴", "엠마를"])] == ["1", "2", "2"]


@pytest.mark.parametrize("engine", ENGINES)
def test_any_number_of_equal_scores_is_ordered_by_id(engine, tmp_path):
    passages = [{"id": f"{number:03}", "contents": "the same words"} for number in range(500)]
    random.Random(1).shuffle(passages)
    found = build_index(write(tmp_path / "corpus.jsonl", passages), tmp_path / "index", engine=engine)
    assert answers(found, ["same words"], 4) == [["000", "001", "002", "003"]]
    assert len(answers(found, ["same"], 1000)[0]) == 500
    found.close()


@pytest.mark.skipif(not HAS_TANTIVY, reason="needs [search]")
def test_both_engines_and_the_in_memory_index_give_the_same_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(tantivy_engine, "COMMIT_EVERY", 100)  # several segments
    passages, rng = rows(500), random.Random(2)
    corpus = write(tmp_path / "corpus.jsonl", passages)
    queries = [" ".join(rng.sample([*WORDS, "own3", "own99", "passage"], k=3)) for _ in range(100)]
    found = [
        build_index(corpus, tmp_path / "numpy", engine="numpy"),
        build_index(corpus, tmp_path / "tantivy", engine="tantivy"),
        open_corpus(corpus),
    ]
    assert [each.engine for each in found] == ["numpy", "tantivy", "numpy"]
    assert answers(found[0], queries) == answers(found[1], queries) == answers(found[2], queries)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_builds_give_the_same_answers_and_a_larger_topk_extends_a_smaller_one(engine, tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", rows(700))
    one, two = (build_index(corpus, tmp_path / name, engine=engine) for name in ("one", "two"))
    queries = [f"{word} passage" for word in WORDS]
    assert answers(one, queries, 10) == answers(two, queries, 10)
    assert [each[:3] for each in answers(one, queries, 10)] == answers(one, queries, 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_passage_is_found_by_its_unique_word(engine, tmp_path):
    found = build_index(write(tmp_path / "corpus.jsonl", rows(400)), tmp_path / "index", engine=engine)
    numbers = [number for number in range(0, 400, 7) if number % 10 not in (8, 9)]
    assert answers(found, [f"where is own{number}?" for number in numbers], 1) == [[f"p{n}"] for n in numbers]


def test_threads_and_forked_processes_search_the_same_index(tmp_path):
    found = build_index(write(tmp_path / "corpus.jsonl", rows(300)), tmp_path / "index")
    queries = [f"{word} own{number}" for number, word in enumerate(WORDS)]
    expected = answers(found, queries)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: answers(found, queries), range(20))) == [expected] * 20
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=lambda: theirs.send(answers(found, queries)))
    process.start()
    assert ours.poll(30) and ours.recv() == expected
    process.join()


def test_an_index_is_pickled_by_folder_or_with_its_documents(tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", rows(50))
    for found in (build_index(corpus, tmp_path / "index"), open_corpus(corpus)):
        assert answers(pickle.loads(pickle.dumps(found)), ["amber own3"]) == answers(found, ["amber own3"])


@pytest.mark.parametrize("topk", [0, -1, True, 2.0])
def test_topk_must_be_a_positive_integer(topk):
    with pytest.raises(BadValue, match="topk"):
        LexicalIndex.of(rows(5)).search(["amber"], topk)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=1500), st.integers(1, 12))
def test_kth_best_agrees_with_sorting(scores, k):
    expected = sorted(scores, reverse=True)[k - 1] if k <= len(scores) else -math.inf
    assert kth_best(np.array(scores, dtype=float), k) == expected


# --- the corpus ------------------------------------------------------------------------------------------------------


def test_contents_are_kept_or_made_of_title_and_text(tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        '{"id": 7, "contents": "\\"Faust\\"\\nA play."}\n\n{"title": "Ur", "text": "A town.", "url": "http://ur"}\n',
        encoding="utf-8-sig",
    )
    [[first], [second]] = build_index(corpus, tmp_path / "index").search(["play", "town"], 1)
    assert first.document == {"id": "7", "contents": '"Faust"\nA play.'}
    assert second.document == {"id": "3", "contents": '"Ur"\nA town.', "url": "http://ur"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{broken", "invalid JSON"),
        (b"[1, 2]", "JSON object"),
        (b'{"id": "1"}', "'contents'"),
        (b'{"id": "1", "body": "one"}', "'contents'"),
        (b'{"id": null, "contents": "x"}', "'id'"),
        (b'{"id": "1", "contents": 5}', "'contents' must be a string"),
        (b'{"id": "1", "contents": "\xff"}', "invalid JSON"),
    ],
)
def test_a_malformed_line_is_reported_by_file_and_number_or_skipped(line, message, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_bytes(b'{"id": "a", "contents": "one"}\n\n' + line + b'\n{"id": "b", "contents": "two"}\n')
    with pytest.raises(BadValue, match=message) as raised:
        build_index(corpus, tmp_path / "index")
    assert f"{corpus}, line 3: " in str(raised.value)
    found = build_index(corpus, tmp_path / "other", skip_bad_lines=True)
    assert answers(found, ["one", "two"]) == [["a"], ["b"]]


@pytest.mark.parametrize("row", [{"contents": " "}, {"text": ""}, {"text": None, "title": None}, {"contents": None}])
def test_a_document_without_text_is_left_out_and_counted(row, tmp_path, caplog):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(map(json.dumps, [row, {"contents": "one"}, row, {"text": "", "title": "two"}])))
    found = build_index(corpus, tmp_path / "index")
    assert len(found) == 2 and answers(found, ["one", "two"]) == [["2"], ["4"]]
    assert "left out 2 documents without text" in caplog.text
    assert len(LexicalIndex.of([row, {"contents": "one"}])) == 1


def test_documents_of_beir_keep_their_ids():
    index = LexicalIndex.of([{"_id": "7915", "title": "", "text": "one", "metadata": {}}])
    assert answers(index, ["one"]) == [["7915"]]


def test_half_of_a_surrogate_pair_in_a_document_is_replaced(tmp_path):
    row = {"id": "a\ud800", "contents": "cut: \ud83d", "url": "u\udfff"}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(row))
    for index in (build_index(tmp_path / "corpus.jsonl", tmp_path / "index"), LexicalIndex.of([row])):
        [[hit]] = index.search(["cut"])
        assert hit.document == {"id": "a\ufffd", "contents": "cut: \ufffd", "url": "u\ufffd"}


@pytest.mark.parametrize("text", ["", "\n\n", '{"text": ""}'])
def test_a_corpus_without_documents_is_an_error(text, tmp_path):
    (tmp_path / "corpus.jsonl").write_text(text)
    with pytest.raises(BadValue, match="no documents"):
        build_index(tmp_path / "corpus.jsonl", tmp_path / "index")
    with pytest.raises(BadValue, match="no documents"):
        open_corpus(tmp_path / "corpus.jsonl")
    with pytest.raises(BadValue, match="no such file"):
        build_index(tmp_path / "other.jsonl", tmp_path / "index")


# --- building --------------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupted_build_can_be_completed_and_gives_the_same_index(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "PROGRESS_STEP", 45)
    monkeypatch.setattr(tantivy_engine, "COMMIT_EVERY", 60)
    corpus = write(tmp_path / "corpus.jsonl", rows(230))
    expected = answers(build_index(corpus, tmp_path / "whole", engine=engine), WORDS)
    for stop_at in (1, 2, 3, 4, 5, 6):
        reports: list[float] = []

        def stopping(phase: str, done: float, total: float, reports=reports, stop_at=stop_at) -> None:
            reports.append(done)
            if len(reports) == stop_at:
                raise Stop

        with pytest.raises(Stop):
            build_index(corpus, tmp_path / "index", engine=engine, progress=stopping)
        with pytest.raises(BadValue, match="unfinished"):
            open_index(tmp_path / "index")
    found = build_index(corpus, tmp_path / "index", engine=engine)
    assert answers(found, WORDS) == expected and len(found) == 230


@pytest.mark.skipif(not HAS_TANTIVY, reason="needs [search]")
def test_a_resumed_build_indexes_only_the_documents_that_are_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "PROGRESS_STEP", 50)
    corpus = write(tmp_path / "corpus.jsonl", rows(120))
    indexed: list[str] = []

    def counting(text: str) -> list[str]:
        indexed.append(text)
        return words(text)

    def stopping(*_: object) -> None:
        raise Stop

    monkeypatch.setattr(tantivy_engine, "words", counting)
    with pytest.raises(Stop):
        build_index(corpus, tmp_path / "index", engine="tantivy", progress=stopping)
    assert len(indexed) == 50
    assert len(build_index(corpus, tmp_path / "index", engine="tantivy")) == len(indexed) == 120


@pytest.mark.parametrize("name", [DOCUMENTS, WORDS_FILE, "impacts_P.npy"])
@pytest.mark.parametrize("left", [None, b"", b'{"id": "half', b"[1, 2]"])
def test_files_left_by_an_interrupted_numpy_build_are_overwritten(left, name, tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", rows(30))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(corpus, tmp_path / "index", engine="numpy", progress=interrupt)
    file = tmp_path / "index" / "engine" / name
    file.unlink(missing_ok=True) if left is None else file.write_bytes(left)
    built = build_index(corpus, tmp_path / "index", engine="numpy")
    assert answers(built, WORDS) == answers(open_corpus(corpus), WORDS) and len(built) == 30
    built.close()


@pytest.mark.skipif(not HAS_TANTIVY, reason="needs [search]")
def test_a_partial_tantivy_index_that_is_damaged_asks_for_a_rebuild(tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", rows(30))

    def interrupt(*_: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        build_index(corpus, tmp_path / "index", engine="tantivy", progress=interrupt)
    (tmp_path / "index" / "engine" / "meta.json").write_text("{")
    with pytest.raises(BadValue, match="rebuild"):
        build_index(corpus, tmp_path / "index", engine="tantivy")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_build_killed_with_sigkill_can_be_completed_by_another_process(engine, tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", rows(230))
    program = f"""
import os, signal
from gem.tools.search import corpus, index, tantivy_engine
corpus.PROGRESS_STEP, tantivy_engine.COMMIT_EVERY = 45, 60
def die(phase, done, total):
    if done > total / 2:
        os.kill(os.getpid(), signal.SIGKILL)
index.build_index({str(corpus)!r}, {str(tmp_path / "index")!r}, engine={engine!r}, progress=die)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    found = build_index(corpus, tmp_path / "index", engine=engine)
    assert answers(found, WORDS) == answers(open_corpus(corpus), WORDS) and len(found) == 230


@pytest.mark.parametrize("engine", ENGINES)
def test_progress_is_reported_up_to_the_end(engine, tmp_path):
    reports: dict[str, tuple[float, float]] = {}
    build_index(
        write(tmp_path / "corpus.jsonl", rows(60)),
        tmp_path / "index",
        engine=engine,
        progress=lambda phase, done, total: reports.update({phase: (done, total)}),
    )
    assert set(reports) == {"indexing"}
    assert all(done == total for done, total in reports.values())


def test_a_finished_index_is_reused_and_one_of_another_corpus_is_not_overwritten(tmp_path):
    corpus, other = write(tmp_path / "corpus.jsonl", rows(30)), write(tmp_path / "other.jsonl", rows(40))
    build_index(corpus, tmp_path / "index", engine="numpy")
    before = (tmp_path / "index" / index_module.MANIFEST).stat().st_mtime_ns
    build_index(corpus, tmp_path / "index")
    assert (tmp_path / "index" / index_module.MANIFEST).stat().st_mtime_ns == before
    with pytest.raises(BadValue, match="another corpus"):
        build_index(other, tmp_path / "index")
    with pytest.raises(BadValue, match="'auto', 'tantivy' or 'numpy'"):
        build_index(corpus, tmp_path / "index", engine="lucene")  # type: ignore[arg-type]


def test_a_folder_with_other_files_is_not_touched(tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", rows(5))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("ten years of work")
    with pytest.raises(BadValue, match=r"thesis\.txt and no index"):
        build_index(corpus, tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    with pytest.raises(BadValue, match="holds no index"):
        open_index(tmp_path / "mine")
    with pytest.raises(BadValue, match="no such folder"):
        open_index(tmp_path / "nowhere")


def test_only_one_process_can_build_in_a_folder(tmp_path):
    pytest.importorskip("fcntl")
    corpus = write(tmp_path / "corpus.jsonl", rows(30))

    def again(*_: object) -> None:
        with pytest.raises(BadValue, match="another process"):
            build_index(corpus, tmp_path / "index")

    build_index(corpus, tmp_path / "index", progress=again)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("harm", ["cut", "changed", "removed"])
def test_an_index_with_a_damaged_file_is_not_opened(engine, harm, tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", rows(30))
    build_index(corpus, tmp_path / "index", engine=engine).close()
    files = [file for file in (tmp_path / "index").rglob("*") if file.is_file() and file.stat().st_size > 8]
    for file in files:
        whole = file.read_bytes()
        if harm == "removed":
            file.unlink()
        else:
            file.write_bytes(whole[:-8] if harm == "cut" else bytes([whole[0] ^ 1]) + whole[1:])
        if not file.name.endswith(".lock"):
            with pytest.raises(BadValue, match=r"rebuild|build_index"):
                open_index(tmp_path / "index")
        file.write_bytes(whole)
    open_index(tmp_path / "index").close()


def test_damage_beyond_the_checks_raises_tool_error(tmp_path, monkeypatch):
    monkeypatch.setattr(index_module, "CHECKED_BYTES", -1)
    build_index(write(tmp_path / "corpus.jsonl", rows(30)), tmp_path / "index", engine="numpy").close()
    texts = tmp_path / "index" / "engine" / DOCUMENTS
    texts.write_bytes(b"x" * texts.stat().st_size)
    found = open_index(tmp_path / "index")
    with pytest.raises(ToolError, match="document 3 is damaged"):
        found.search(["own3"], 1)
    found.close()
    with pytest.raises(BadValue, match="damaged"):
        open_index(tmp_path / "index", check=True)


def test_an_index_of_another_format_version_asks_for_a_rebuild(tmp_path):
    build_index(write(tmp_path / "corpus.jsonl", rows(30)), tmp_path / "index").close()
    file = tmp_path / "index" / index_module.MANIFEST
    file.write_text(file.read_text().replace(f'"version":{index_module.VERSION}', '"version":99'))
    with pytest.raises(BadValue, match=r"version 99.*rebuild"):
        open_index(tmp_path / "index")


@pytest.mark.parametrize("name", ["manifest.json", "building.json"])
def test_an_index_of_the_first_format_version_asks_for_a_rebuild(name, tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", rows(5))
    plan = {"format": "gem-search-index", "version": 1, "corpus": {"name": "x"}, "engine": "numpy"}
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / name).write_text(json.dumps({**plan, "documents": 5, "files": {}}))
    for opening in (lambda: open_index(tmp_path / "index"), lambda: build_index(corpus, tmp_path / "index")):
        with pytest.raises(BadValue, match=r"version 1, .* version 3.*delete .*rebuild"):
            opening()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_damaged_manifest_asks_for_a_rebuild(engine, tmp_path):
    build_index(write(tmp_path / "corpus.jsonl", rows(30)), tmp_path / "index", engine=engine).close()
    file = tmp_path / "index" / index_module.MANIFEST
    said = json.loads(file.read_bytes())
    for key in ("format", "version", "engine", "documents", "files"):
        changed = [{**said, key: value} for value in (None, 5, "x", [], {"a": 1})]
        for harmed in (*changed, {name: each for name, each in said.items() if name != key}):
            file.write_text(json.dumps(harmed))
            with pytest.raises(BadValue, match=r"rebuild|build_index"):
                open_index(tmp_path / "index").close()


def test_documents_are_found_by_url():
    found = LexicalIndex.of([{"contents": "one", "url": "http://a"}, {"contents": "two"}])
    assert found.access(["http://b", "http://a"]) == [None, "one"]


def test_malformed_rows_are_reported_by_number():
    with pytest.raises(BadValue, match="row 2"):
        LexicalIndex.of([{"contents": "one"}, {"body": ""}])
    with pytest.raises(BadValue, match="no documents"):
        LexicalIndex.of([])
