"""Dense retrieval with numpy over a memory-mapped file of vectors, alone or combined with BM25.

encoder = Encoder(EmbeddingsEndpoint("http://127.0.0.1:8001/v1", "e5"), "e5", "query: ", "passage: ")
add_vectors("folder", encoder)                    # needs a finished index; resumes an interrupted call
index = HybridIndex(open_index("folder"), open_dense("folder", encoder))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from gem._internal.http_client import HttpClient, HttpRequest, RequestError, api_key, bearer, check_url, wait_for
from gem._internal.inbound import loads
from gem.errors import BadValue, ToolError
from gem.tools.search.corpus import Hit, Progress
from gem.tools.search.index import DocumentIndex, LexicalIndex, best_hits, check_topk, open_index, write_atomically
from gem.tools.search.numpy_engine import TIE, kth_best

VECTORS, VECTORS_INFO, VECTORS_PART = "vectors/data", "vectors/about.json", "vectors/data.part"
BLOCK_ROWS = 1 << 15  # vectors compared at once; 100 MB as float32 of 768 dimensions
HYBRID_DEPTH = 100  # number of top documents of each ranking that a hybrid search combines
RRF_K = 60  # constant of reciprocal rank fusion in the paper

Array: TypeAlias = npt.NDArray[Any]
Embed: TypeAlias = Callable[[Sequence[str]], Any]  # maps n texts to an array with n rows


@dataclass(frozen=True)
class Encoder:
    """A function from texts to vectors.

    Args:
        embed: maps n texts to n rows of equal length, which are then scaled to length 1. Raises ToolError on failure.
        name: stored with the vectors; an index can be searched only with an encoder of the same name.
        query_prefix, passage_prefix: prepended to each query and each passage; some encoders expect "query: " and
            "passage: ".
    """

    embed: Embed
    name: str
    query_prefix: str = ""
    passage_prefix: str = ""

    def encode(self, query_list: str | Sequence[str], is_query: bool = True) -> Array:
        """Encode queries, or passages if ``is_query`` is False. Kept for compatibility with the published package."""
        texts = [query_list] if isinstance(query_list, str) else query_list
        return self.encode_queries(texts) if is_query else self.encode_passages(texts)

    def encode_queries(self, texts: Sequence[str]) -> Array:
        return self._encode([self.query_prefix + text for text in texts])

    def encode_passages(self, texts: Sequence[str]) -> Array:
        return self._encode([self.passage_prefix + text for text in texts])

    def _encode(self, texts: list[str]) -> Array:
        vectors = np.asarray(self.embed(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ToolError(
                f"the encoder {self.name!r} returned an array of shape {vectors.shape} for {len(texts)} texts, or "
                "numbers that are not finite"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12))


class EmbeddingsEndpoint(HttpClient):
    """Client of an OpenAI-compatible embeddings endpoint; usable as ``embed`` of an Encoder.

    Args:
        base_url: URL to which "/embeddings" is appended.
        model: name of the model at the endpoint.
        api_key_env: environment variable with the API key, read at each request; None sends no key.
        timeout, retries, backoff, concurrency: see HttpClient.

    A call raises ToolError if the request fails after all retries.
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
        hint = "pass keys with api_key_env"
        self.url = check_url(base_url, "base_url", "http://127.0.0.1:8001/v1", hint) + "/embeddings"
        self.model, self.api_key_env = model, api_key_env

    def __call__(self, texts: Sequence[str]) -> Array:
        key = api_key(self.api_key_env, self.url)
        headers = {"Content-Type": "application/json", **bearer(key)}
        body = msgspec.json.encode({"model": self.model, "input": list(texts), "encoding_format": "float"})
        request = HttpRequest("POST", self.url, body, self.timeout, headers, secret=key)
        return wait_for(self.send(request, lambda reply: _parse_embeddings(reply, len(texts))))

    def failure_error(self, request: HttpRequest, error: RequestError, attempts: int) -> ToolError:
        return ToolError(f"embeddings of {self.model!r} at {self.url}: {error}; {attempts} attempts")

    def closed_error(self, request: HttpRequest) -> ToolError:
        return ToolError(f"the client of {self.url} was closed during a request")


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]


def _parse_embeddings(reply: bytes, count: int) -> Array:
    try:
        data = msgspec.convert(loads(reply, "it"), _Embeddings).data
        ordered = [each.embedding for each in sorted(data, key=lambda each: each.index)]
        with np.errstate(over="ignore"):
            vectors = np.array(ordered, dtype=np.float32)
        if len(vectors) != count or vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise ValueError(f"shape {vectors.shape} for {count} texts")
    except (msgspec.MsgspecError, ValueError) as e:
        raise RequestError(f"the reply is not a list of embeddings ({type(e).__name__}: {e})") from None
    return vectors


class VectorsInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a file of vectors. width: number of dimensions of each vector."""

    encoder: str
    passage_prefix: str
    dtype: Literal["float16", "float32"]
    documents: int
    width: int


def add_vectors(
    folder: str | Path,
    encoder: Encoder,
    *,
    dtype: Literal["float16", "float32"] = "float16",
    batch: int = 64,
    progress: Progress | None = None,
) -> None:
    """Encode all documents of a finished index and write the vectors into its folder.

    A call after an interruption resumes. If the vectors are complete, nothing is done.

    Args:
        folder: folder of the index.
        encoder: encodes the contents of each document.
        dtype: type of the numbers on disk. float16 needs half the space; its rounding errors are negligible.
        batch: number of documents encoded at once.
        progress: see build_index().

    Raises:
        BadValue: the folder has no index, or has vectors of another encoder or dtype.
        ToolError: the encoder failed.
    """
    path, index = Path(folder), open_index(folder)
    try:
        info = _read_info(path)
        requested = (encoder.name, encoder.passage_prefix, dtype, len(index))
        if info is not None and (info.encoder, info.passage_prefix, info.dtype, info.documents) != requested:
            raise BadValue(
                f"{path}: has {info.dtype} vectors of {info.encoder!r} with prefix {info.passage_prefix!r}; requested "
                f"were {dtype} vectors of {encoder.name!r} with prefix {encoder.passage_prefix!r}. Delete "
                f"{path / 'vectors'} to replace them"
            )
        if not (path / VECTORS).exists():
            (path / "vectors").mkdir(exist_ok=True)
            _write_vectors(index, path, encoder, dtype, info, batch, progress)
    finally:
        index.close()


def _write_vectors(
    index: LexicalIndex,
    path: Path,
    encoder: Encoder,
    dtype: Literal["float16", "float32"],
    info: VectorsInfo | None,
    batch: int,
    progress: Progress | None,
) -> None:
    row_bytes = info.width * np.dtype(dtype).itemsize if info else 0
    with (path / VECTORS_PART).open("ab") as file:
        done = file.tell() // row_bytes if row_bytes else 0
        file.truncate(done * row_bytes)
        for first in range(done, len(index), batch):
            last = min(first + batch, len(index))
            vectors = encoder.encode_passages([index.document(n)["contents"] for n in range(first, last)])
            width = vectors.shape[1]
            if info is None:
                info = VectorsInfo(
                    encoder=encoder.name,
                    passage_prefix=encoder.passage_prefix,
                    dtype=dtype,
                    documents=len(index),
                    width=width,
                )
                write_atomically(path / VECTORS_INFO, msgspec.json.encode(info))
            if width != info.width:
                raise ToolError(f"the encoder {encoder.name!r} returned vectors of length {width}, before {info.width}")
            file.write(vectors.astype(dtype).tobytes())
            file.flush()
            if progress is not None:
                progress("encoding", last, len(index))
    (path / VECTORS_PART).replace(path / VECTORS)


def _read_info(path: Path) -> VectorsInfo | None:
    try:
        return msgspec.json.decode((path / VECTORS_INFO).read_bytes(), type=VectorsInfo)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _damaged(path, VECTORS_INFO) from None


def _damaged(path: Path, name: str) -> BadValue:
    return BadValue(f"{path / name}: is damaged; delete {path / 'vectors'} and call add_vectors() again")


class DenseIndex(DocumentIndex):
    """Ranks documents by cosine similarity to the query. Create one with open_dense().

    Args:
        lexical: the index with the documents; closed by close().
        vectors_DW: one unit vector per document.
        encoder: encodes the queries.
    """

    quick, engine = False, "dense"

    def __init__(self, lexical: LexicalIndex, vectors_DW: Array, encoder: Encoder) -> None:
        self._lexical, self._vectors_DW, self._encoder = lexical, vectors_DW, encoder

    def __len__(self) -> int:
        return len(self._lexical)

    def search(self, queries: Sequence[str], topk: int = 3) -> list[list[Hit]]:
        check_topk(topk)
        if not queries:
            return []
        queries_QW = self._encoder.encode_queries(queries)
        if queries_QW.shape[1] != self._vectors_DW.shape[1]:
            raise ToolError(
                f"the encoder {self._encoder.name!r} returned vectors of length {queries_QW.shape[1]}; those of the "
                f"documents have length {self._vectors_DW.shape[1]}"
            )
        found: list[list[tuple[float, int]]] = [[] for _ in queries]
        for first in range(0, len(self), BLOCK_ROWS):
            block_DW = self._vectors_DW[first : first + BLOCK_ROWS].astype(np.float32)
            for scores, best in zip(queries_QW @ block_DW.T, found, strict=True):
                best += [(float(scores[number]), first + int(number)) for number in _best(scores, topk)]
        return [self._ranked(scored, topk) for scored in found]

    def _ranked(self, scored: list[tuple[float, int]], topk: int) -> list[Hit]:
        best = _best(np.array([score for score, _ in scored]), topk)
        return best_hits(((scored[at][0], self._lexical.document(scored[at][1])) for at in best), topk)

    def access(self, urls: Sequence[str]) -> list[str | None]:
        return self._lexical.access(urls)

    def close(self) -> None:
        self._lexical.close()


def _best(scores: Array, topk: int) -> Array:
    """Return the positions of the topk best scores and of all scores that tie with the lowest of these."""
    return np.flatnonzero(scores > kth_best(scores, topk) - 2 * TIE)


def open_dense(folder: str | Path, encoder: Encoder) -> DenseIndex:
    """Open the vectors written by add_vectors().

    Raises:
        BadValue: the folder has no index, or its vectors are missing, unfinished, damaged or of another encoder.
    """
    path, index = Path(folder), open_index(folder)
    info = _read_info(path)
    if info is None or not (path / VECTORS).exists():
        raise BadValue(f"{path}: the vectors are missing or incomplete; call add_vectors()")
    if (info.encoder, info.passage_prefix) != (encoder.name, encoder.passage_prefix):
        raise BadValue(f"{path}: has vectors of {info.encoder!r}, not of {encoder.name!r} with the prefix given")
    size = len(index) * info.width * np.dtype(info.dtype).itemsize
    if size == 0 or (path / VECTORS).stat().st_size != size:
        raise _damaged(path, VECTORS)
    vectors = np.asarray(np.memmap(path / VECTORS, info.dtype, "r"))
    return DenseIndex(index, vectors.reshape(-1, info.width), encoder)


class HybridIndex(DocumentIndex):
    """Combines BM25 and dense rankings of the same corpus by reciprocal rank fusion.

    Raises:
        BadValue: the indexes have different numbers of documents.
    """

    quick, engine = False, "hybrid"

    def __init__(self, lexical: LexicalIndex, dense: DenseIndex) -> None:
        if len(lexical) != len(dense):
            raise BadValue(
                f"both indexes must be built from the same corpus; got {len(lexical)} and {len(dense)} documents"
            )
        self._lexical, self._dense = lexical, dense

    def __len__(self) -> int:
        return len(self._lexical)

    def search(self, queries: Sequence[str], topk: int = 3) -> list[list[Hit]]:
        check_topk(topk)
        depth = max(topk, HYBRID_DEPTH)
        lists = zip(self._lexical.search(queries, depth), self._dense.search(queries, depth), strict=True)
        return [fuse_ranks(pair, topk) for pair in lists]

    def access(self, urls: Sequence[str]) -> list[str | None]:
        return self._lexical.access(urls)

    def close(self) -> None:
        self._lexical.close()
        self._dense.close()


def fuse_ranks(lists: Sequence[Sequence[Hit]], topk: int) -> list[Hit]:
    """Combine rankings by reciprocal rank fusion and return the topk best hits.

    The score of a document is the sum of 1 / (60 + rank) over the lists that contain the document.

    Documents are identified by id. Source: Cormack, Clarke and Büttcher, SIGIR 2009.
    """
    scores: dict[str, float] = {}
    documents = {}
    for hits in lists:
        for rank, hit in enumerate(hits, start=1):
            key = hit.document["id"]
            documents[key] = hit.document
            scores[key] = scores.get(key, 0.0) + 1 / (RRF_K + rank)
    best = sorted(scores, key=lambda key: (-round(scores[key], 9), key))[:topk]
    return [Hit(documents[key], round(scores[key], 9)) for key in best]
