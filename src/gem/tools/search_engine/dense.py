"""Documents found by vectors: of any encoder, kept in a memory-mapped file, compared by numpy; alone or with words.

encoder = Encoder(EmbeddingsEndpoint("http://127.0.0.1:8001/v1", "e5"), "e5", "query: ", "passage: ")
add_vectors("folder", encoder)                    # to a finished index; goes on where it left off
index = HybridIndex(open_index("folder"), open_dense("folder", encoder))
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, api_key, check_url, wait_for
from gem.errors import BadValue, ToolError
from gem.tools.search_engine.documents import Documents, Progress, Stored, write_whole
from gem.tools.search_engine.index import Hit, Indexed, LexicalIndex, checked_topk, ranked
from gem.tools.search_engine.manifest import unsealed
from gem.tools.search_engine.postings import CLOSE, kth_best

VECTORS, ABOUT, PART = "vectors/data", "vectors/about.json", "vectors/data.part"
ROWS = 1 << 15  # vectors compared at once: as float32 of 768 dimensions they take 100 MB
DEPTH = 100  # ranks of either list that a hybrid search looks at
RRF = 60  # of reciprocal rank fusion, as its authors have it: it needs no tuning

Array: TypeAlias = npt.NDArray[Any]
Embed: TypeAlias = Callable[[Sequence[str]], Any]  # n texts to an array of n rows


@dataclass(frozen=True)
class Encoder:
    """What makes vectors of texts.

    Args:
        embed: n texts to n rows of equal length. Rows are scaled to length 1 here. Raises ToolError where it fails.
        name: tells its vectors from those of another; an index is searched with the encoder that built it alone.
        query_prefix, passage_prefix: put before each text; some encoders want "query: " and "passage: ".
    """

    embed: Embed
    name: str
    query_prefix: str = ""
    passage_prefix: str = ""

    def queries(self, texts: Sequence[str]) -> Array:
        return self._vectors([self.query_prefix + text for text in texts])

    def passages(self, texts: Sequence[str]) -> Array:
        return self._vectors([self.passage_prefix + text for text in texts])

    def _vectors(self, texts: list[str]) -> Array:
        vectors = np.asarray(self.embed(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ToolError(
                f"the encoder {self.name!r} made {vectors.shape} of {len(texts)} texts, or no finite numbers"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12))


class EmbeddingsEndpoint(HttpClient):
    """Vectors by an endpoint that speaks OpenAI's protocol; the ``embed`` of an Encoder.

    Args:
        base_url: what "/embeddings" is appended to.
        model: its name there.
        api_key_env: the environment variable that holds the key, read at each request; None sends none.
        timeout, retries, backoff, concurrency: see HttpClient.

    Raises ToolError after all retries.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str | None = None,
        timeout: float = 60.0,
        concurrency: int = 8,
        retries: int = 3,
        backoff: float = 0.5,
    ) -> None:
        super().__init__(extra="search", timeout=timeout, concurrency=concurrency, retries=retries, backoff=backoff)
        hint = "keys go by api_key_env"
        self.url = check_url(base_url, "base_url", "http://127.0.0.1:8001/v1", hint) + "/embeddings"
        self.model, self.api_key_env = model, api_key_env

    def __call__(self, texts: Sequence[str]) -> Array:
        key = api_key(self.api_key_env, self.url)
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        body = json.dumps({"model": self.model, "input": list(texts), "encoding_format": "float"}).encode()
        request = HttpRequest("POST", self.url, body, self.timeout, headers, secret=key)
        return wait_for(self.send(request, lambda reply: _embeddings(reply, len(texts))))

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> ToolError:
        return ToolError(f"embeddings of {self.model!r} at {self.url}: {error}; {attempts} attempts")

    def closed_error(self, request: HttpRequest) -> ToolError:
        return ToolError(f"the client of {self.url} was closed while it waited for a reply")


def _embeddings(reply: bytes, count: int) -> Array:
    try:
        data = msgspec.json.decode(reply)["data"]
        ordered = sorted(data, key=lambda each: int(each["index"]))
        vectors = np.array([each["embedding"] for each in ordered], dtype=np.float32)
        if len(vectors) != count or vectors.ndim != 2:
            raise ValueError(f"{vectors.shape} for {count} texts")
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError, RecursionError) as e:
        raise RequestError(f"a reply that is no list of embeddings ({type(e).__name__}: {e})") from None
    return vectors


def add_vectors(
    folder: str | Path,
    encoder: Encoder,
    *,
    dtype: Literal["float16", "float32"] = "float16",
    batch: int = 64,
    progress: Progress | None = None,
) -> None:
    """Make the vectors of all documents of a finished index; an interrupted call is gone on with, a finished one is not
    repeated.

    Args:
        dtype: of a number in the file; float16 takes half the space, and its errors are far below those of encoders.
        batch: documents encoded at once.
        progress: see build_index().

    Raises BadValue for a folder without an index, and where it has vectors of another encoder or dtype; ToolError where
    the encoder fails.
    """
    path = Path(folder)
    count = unsealed(path)["documents"]
    about = {"encoder": encoder.name, "passage_prefix": encoder.passage_prefix, "dtype": dtype, "documents": count}
    found = _about(path)
    if found is not None and {key: found.get(key) for key in about} != about:
        raise BadValue(
            f"{path}: has vectors of {found.get('encoder')!r}, and {about} were asked for; remove {path / 'vectors'}"
        )
    if (path / VECTORS).exists():
        return
    (path / "vectors").mkdir(exist_ok=True)
    documents = Stored(path)
    try:
        _encode(documents, path, encoder, about, found, batch, progress or (lambda *_: None))
    finally:
        documents.close()
    (path / PART).replace(path / VECTORS)


def _encode(
    documents: Documents,
    path: Path,
    encoder: Encoder,
    about: dict[str, Any],
    found: dict[str, Any] | None,
    batch: int,
    progress: Progress,
) -> None:
    width = None if found is None else int(found["width"])
    itemsize = np.dtype(about["dtype"]).itemsize
    with (path / PART).open("ab") as file:
        made = 0 if width is None else file.tell() // (width * itemsize)
        file.truncate(0 if width is None else made * width * itemsize)
        for first in range(made, len(documents), batch):
            numbers = range(first, min(first + batch, len(documents)))
            vectors = encoder.passages([documents[number]["contents"] for number in numbers])
            if width is None:
                width = vectors.shape[1]
                write_whole(path / ABOUT, json.dumps({**about, "width": width}).encode())
            if vectors.shape[1] != width:
                raise ToolError(
                    f"the encoder {encoder.name!r} made vectors of {vectors.shape[1]} numbers, before {width}"
                )
            file.write(vectors.astype(about["dtype"]).tobytes())
            file.flush()
            progress("encoding", numbers.stop, len(documents))


def _about(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((path / ABOUT).read_bytes())
        int(found["width"]), int(found["documents"]), np.dtype(found["dtype"])
        {"encoder": found["encoder"], "passage_prefix": found["passage_prefix"]}
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError):
        raise BadValue(f"{path / ABOUT}: is damaged; remove {path / 'vectors'}, make them anew") from None
    return found


class DenseIndex(Indexed):
    """Documents whose vectors have the least angle to a query's. Made by open_dense()."""

    engine = "dense"

    def __init__(self, documents: Documents, vectors_DW: Array, encoder: Encoder, folder: Path | None = None) -> None:
        super().__init__(documents, folder)
        self._vectors_DW, self._encoder = vectors_DW, encoder

    def search(self, queries: Sequence[str], topk: int = 3) -> list[list[Hit]]:
        checked_topk(topk)
        if not queries:
            return []
        queries_QW = self._encoder.queries(queries)
        if queries_QW.shape[1] != self._vectors_DW.shape[1]:
            wide = f"{queries_QW.shape[1]} numbers, those of the documents {self._vectors_DW.shape[1]}"
            raise ToolError(f"the encoder {self._encoder.name!r} made vectors of {wide}")
        found: list[list[tuple[float, int]]] = [[] for _ in queries]
        for first in range(0, len(self), ROWS):
            part_DW = self._vectors_DW[first : first + ROWS].astype(np.float32)
            for scores, best in zip(queries_QW @ part_DW.T, found, strict=True):
                best += [(float(scores[number]), first + int(number)) for number in _best(scores, topk)]
        return [ranked(self.documents, _cut(best, topk), topk) for best in found]


def _best(scores: Array, topk: int) -> Array:
    """Which are the best topk, and all that the last of them hardly differs from."""
    return np.flatnonzero(scores > kth_best(scores, topk) - 2 * CLOSE)


def _cut(scored: list[tuple[float, int]], topk: int) -> list[tuple[float, int]]:
    return [scored[at] for at in _best(np.array([score for score, _ in scored]), topk)]


def open_dense(folder: str | Path, encoder: Encoder) -> DenseIndex:
    """The vectors that add_vectors() made. Raises BadValue where there are none, or those of another encoder."""
    path = Path(folder)
    manifest, about = unsealed(path), _about(path)
    if about is None or not (path / VECTORS).exists():
        raise BadValue(f"{path}: has no vectors, or not all of them; add_vectors() makes them")
    if about["encoder"] != encoder.name or about["passage_prefix"] != encoder.passage_prefix:
        raise BadValue(f"{path}: its vectors are those of {about['encoder']!r}, not of {encoder.name!r}")
    size = manifest["documents"] * about["width"]
    if (path / VECTORS).stat().st_size != size * np.dtype(about["dtype"]).itemsize:
        raise BadValue(f"{path / VECTORS}: is damaged; remove {path / 'vectors'}, make them anew")
    vectors = np.memmap(path / VECTORS, about["dtype"], "r")
    documents = Stored(path)
    return DenseIndex(documents, np.asarray(vectors.reshape(-1, about["width"])), encoder, path)


class HybridIndex(Indexed):
    """Documents by words and by vectors: a document's score is the sum of 1 / (60 + its rank) over both lists."""

    engine = "hybrid"

    def __init__(self, lexical: LexicalIndex, dense: DenseIndex) -> None:
        super().__init__(lexical.documents, lexical.folder)
        if len(lexical) != len(dense):
            raise BadValue(f"two indexes of one corpus are wanted, got {len(lexical)} and {len(dense)} documents")
        self._lexical, self._dense = lexical, dense

    def search(self, queries: Sequence[str], topk: int = 3) -> list[list[Hit]]:
        depth = max(checked_topk(topk), DEPTH)
        lists = zip(self._lexical.search(queries, depth), self._dense.search(queries, depth), strict=True)
        return [fused(pair, topk) for pair in lists]

    def close(self) -> None:
        self._lexical.close()
        self._dense.close()


def fused(lists: Sequence[Sequence[Hit]], topk: int) -> list[Hit]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009). Documents are told apart by their ids."""
    scores: dict[str, float] = {}
    documents = {}
    for hits in lists:
        for rank, hit in enumerate(hits, start=1):
            key = hit.document["id"]
            documents[key] = hit.document
            scores[key] = scores.get(key, 0.0) + 1 / (RRF + rank)
    best = sorted(scores, key=lambda key: (-round(scores[key], 9), key))[:topk]
    return [Hit(documents[key], round(scores[key], 9)) for key in best]
