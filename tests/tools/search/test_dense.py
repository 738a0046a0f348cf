"""Dense and hybrid search."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from gem.errors import BadValue, ToolError
from gem.tools.search import dense
from gem.tools.search.corpus import Hit, words
from gem.tools.search.dense import DenseIndex, Encoder, HybridIndex, add_vectors, fuse_ranks, open_dense
from gem.tools.search.index import build_index, open_index

SENSES = {
    "auto": "car",
    "automobile": "car",
    "vehicle": "car",
    "feline": "cat",
    "kitten": "cat",
}  # word → sense


def meaning(text: str) -> list[float]:
    """A vector in which synonyms are equal: the sense of each word adds a random direction."""
    total = np.zeros(48)
    for word in words(text):
        seed = int.from_bytes(hashlib.blake2b(SENSES.get(word, word).encode(), digest_size=8).digest(), "big")
        total += np.random.default_rng(seed).normal(size=48)
    return [float(number) for number in total + 0.01]


def embed(texts):
    return np.array([meaning(text) for text in texts])


ENCODER = Encoder(embed, "meanings")
WORDS = ["amber", "barge", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "car", "cat"]


def corpus(folder: Path, count: int = 200) -> Path:
    rng = np.random.default_rng(3)
    path = folder / "corpus.jsonl"
    rows = [
        {"id": f"p{number}", "title": f"Title {number}", "text": " ".join(rng.choice(WORDS, 6)) + f" own{number}"}
        for number in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def folder(tmp_path):
    build_index(corpus(tmp_path), tmp_path / "index", engine="numpy").close()
    return tmp_path / "index"


def ids(index, queries, topk=5):
    return [[hit.document["id"] for hit in hits] for hits in index.search(queries, topk)]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_ranking_matches_a_brute_force_comparison(dtype, folder, monkeypatch):
    monkeypatch.setattr(dense, "BLOCK_ROWS", 33)  # several parts
    add_vectors(folder, ENCODER, dtype=dtype, batch=7)
    index = open_dense(folder, ENCODER)
    queries = ["amber car", "own17", "grove of cedar"]
    every = [index._lexical.document(number) for number in range(len(index))]
    texts = np.array([meaning(each["contents"]) for each in every])
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    for query, hits in zip(queries, index.search(queries, 5), strict=True):
        vector = np.array(meaning(query)) / np.linalg.norm(meaning(query))
        scores = texts @ vector
        assert [hit.score for hit in hits] == pytest.approx(sorted(scores, reverse=True)[:5], abs=2e-3)
    assert ids(index, queries, 9)[0][:4] == ids(index, queries, 4)[0]
    assert index.search([], 3) == []


def test_hybrid_search_finds_paraphrases_and_exact_words(tmp_path):
    rows = [*({"id": f"p{n}", "contents": f"an old barge named own{n}"} for n in range(50))]
    rows += [{"id": "car", "contents": "a red automobile"}]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lexical = build_index(path, tmp_path / "index", engine="numpy")
    add_vectors(tmp_path / "index", ENCODER)
    hybrid = HybridIndex(lexical, open_dense(tmp_path / "index", ENCODER))
    assert lexical.search(["vehicle"], 1) == [[]]
    assert ids(hybrid, ["vehicle", "own31"], 1) == [["car"], ["p31"]]
    hybrid.close()


def test_rank_fusion_sums_reciprocal_ranks():
    def hits(*keys: str) -> list[Hit]:
        return [Hit({"id": key, "contents": key}, 1.0) for key in keys]

    found = fuse_ranks([hits("a", "b", "c"), hits("c", "d", "a")], 3)
    assert [hit.document["id"] for hit in found] == ["a", "c", "b"]  # a and c alike: by id; b before d by its rank
    assert found[0].score == pytest.approx(1 / 61 + 1 / 63) and found[2].score == pytest.approx(1 / 62)


def test_interrupted_encoding_resumes(folder):
    asked: list[str] = []

    def counting(texts):
        asked.extend(texts)
        return embed(texts)

    def stopping(*_: object) -> None:
        if len(asked) > 100:
            raise KeyboardInterrupt

    encoder = Encoder(counting, "meanings")
    with pytest.raises(KeyboardInterrupt):
        add_vectors(folder, encoder, batch=16, progress=stopping)
    with pytest.raises(BadValue, match="missing or incomplete"):
        open_dense(folder, encoder)
    with (folder / dense.VECTORS_PART).open("ab") as file:
        file.write(b"half a vector")
    add_vectors(folder, encoder, batch=16)
    assert len(asked) == 200  # each encoded once
    add_vectors(folder, encoder, batch=16)
    assert len(asked) == 200
    fresh = DenseIndex(open_index(folder), embed([]).reshape(0, 48), encoder)
    assert len(fresh) == 200 and ids(open_dense(folder, ENCODER), ["own3 car"], 1)


@pytest.mark.parametrize("name", [dense.VECTORS_INFO, dense.VECTORS])
@pytest.mark.parametrize("left", [b"", b"{}", b"[]", "half", "all but one byte"])
def test_damaged_vectors_are_not_opened(left, name, folder):
    add_vectors(folder, ENCODER)
    file = folder / name
    whole = file.read_bytes()
    file.write_bytes({"half": whole[: len(whole) // 2], "all but one byte": whole[:-1]}.get(left, left))
    with pytest.raises(BadValue, match=r"call add_vectors\(\) again"):
        open_dense(folder, ENCODER)


def test_vectors_of_another_encoder_are_refused(folder):
    with pytest.raises(BadValue, match=r"missing or incomplete.*add_vectors\(\)"):
        open_dense(folder, ENCODER)
    add_vectors(folder, ENCODER)
    with pytest.raises(BadValue, match="'meanings', not of 'other'"):
        open_dense(folder, Encoder(embed, "other"))
    with pytest.raises(BadValue, match="requested were"):
        add_vectors(folder, Encoder(embed, "meanings", passage_prefix="passage: "))
    data = folder / dense.VECTORS
    data.write_bytes(data.read_bytes()[:-96])
    with pytest.raises(BadValue, match="damaged"):
        open_dense(folder, ENCODER)
    (folder / dense.VECTORS_INFO).write_text("{")
    with pytest.raises(BadValue, match="damaged"):
        open_dense(folder, ENCODER)


def test_the_published_encode_chooses_the_prefix():
    seen = []
    encoder = Encoder(lambda texts: [seen.append(text) or (3.0, 4.0) for text in texts], "seen", "query: ", "passage: ")
    assert encoder.encode("a").tolist() == encoder.encode(["b"], is_query=False).tolist() == [pytest.approx([0.6, 0.8])]
    assert seen == ["query: a", "passage: b"]


@pytest.mark.parametrize("made", [[[1.0]], [1.0, 2.0], [[float("nan")]] * 2])
def test_invalid_output_of_an_encoder_raises_tool_error(made, folder):
    with pytest.raises(ToolError, match="broken"):
        add_vectors(folder, Encoder(lambda texts: made, "broken"), batch=2)


def test_an_embeddings_endpoint_gets_prefixes_and_retries(folder):
    pytest.importorskip("aiohttp", reason="needs the extra [search]")
    from gem.testing.fakes.endpoint import Answer
    from gem.testing.fakes.search import FakeEmbeddings
    from gem.tools.search.dense import EmbeddingsEndpoint

    failures = [Answer(status=503), Answer(body="{}")]
    with FakeEmbeddings(meaning, failures=failures) as fake, EmbeddingsEndpoint(fake.url, "m", backoff=0) as endpoint:
        encoder = Encoder(endpoint, "m", "query: ", "passage: ")
        add_vectors(folder, encoder, batch=50)
        assert [len(asked["input"]) for asked in fake.requests] == [50, 50, 50, 50, 50, 50]
        assert fake.requests[2]["model"] == "m" and fake.requests[2]["input"][0].startswith('passage: "Title 0"')
        assert ids(open_dense(folder, encoder), ["own7"], 3)
        assert fake.requests[-1]["input"] == ["query: own7"]
    with EmbeddingsEndpoint("http://127.0.0.1:1/v1", "m", retries=0) as down, pytest.raises(ToolError, match="'m'"):
        down(["text"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_a_server_searches_with_vectors(mode, tmp_path):
    for module in ("aiohttp", "starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="needs the extra [search]")
    from search_fakes import running

    from gem.testing.fakes.search import FakeEmbeddings

    options = ["--corpus", corpus(tmp_path, 30), "--index", tmp_path / "index", "--mode", mode, "--topk", 1]
    with FakeEmbeddings(meaning) as fake:
        options += ["--embeddings_url", fake.url, "--embeddings_model", "m"]
        with running("retrieval_server", *options) as server:
            assert json.loads(server.get("/health"))["engine"] == mode
            assert [hits[0]["id"] for hits in server.ask(queries=["own7", "own21"])] == ["p7", "p21"]
    assert len(fake.requests[0]["input"]) == 30
