"""What search servers and their clients send each other, in two protocols on one path.

    published     msgpack  {"query", "topk", "return_scores"}    {"result": [{"document", "score"}, …]}
    Search-R1's   JSON     {"queries", "topk", "return_scores"}  {"result": [[{"document", "score"}, …], …]}

Which of them a request speaks shows in its first byte, for clients send no or wrong headers; it is answered in kind.
``return_scores`` false asks for bare documents; where it is missing, JSON gets those, and msgpack scores.
``topk_rerank`` stands for ``topk``, as clients of servers that rank twice send it. A document is {"id", "contents"},
and "url" where it has one; the first line of its contents is its title.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from gem.tools.search_engine.index import Hit

MOST_QUERIES = 1024  # of a request
MOST_TOPK = 100

Protocol: TypeAlias = Literal["gem", "search-r1"]
Codec: TypeAlias = Literal["json", "msgpack"]


class BadRequest(Exception):
    """A request that cannot be read; the message is for its sender. codec: to answer in."""

    def __init__(self, message: str, codec: Codec = "json") -> None:
        super().__init__(message)
        self.codec = codec


@dataclass(frozen=True)
class Asked:
    """A request. scores: send documents with scores. flat: it asked for one query, and takes its results alone."""

    queries: list[str]
    topk: int
    scores: bool
    flat: bool
    codec: Codec


def read_request(body: bytes, default_topk: int) -> Asked:
    """Raises BadRequest, saying what is wrong."""
    codec, data = decoded(body)
    one, many = data.get("query"), data.get("queries")
    if (one is None) == (many is None):
        raise BadRequest("needs 'query', a text, or 'queries', a list of texts", codec)
    queries = [one] if many is None else many
    if not isinstance(queries, list) or not queries or not all(isinstance(query, str) for query in queries):
        raise BadRequest("'query' should be text, and 'queries' a list of one or more texts", codec)
    if len(queries) > MOST_QUERIES:
        raise BadRequest(f"'queries' may hold {MOST_QUERIES} at most, got {len(queries)}", codec)
    scores = data.get("return_scores")
    if scores not in (None, True, False):
        raise BadRequest("'return_scores' should be true or false", codec)
    wrapped = codec == "msgpack" if scores is None else bool(scores)
    return Asked(queries, _topk(data, codec, default_topk), wrapped, many is None, codec)


def _topk(data: dict[Any, Any], codec: Codec, default: int) -> int:
    topk = data.get("topk_rerank", data.get("topk"))
    if topk is None:
        return default
    if isinstance(topk, bool) or not isinstance(topk, int) or not 1 <= topk <= MOST_TOPK:
        raise BadRequest(f"'topk' should be a whole number from 1 to {MOST_TOPK}", codec)
    return topk


def decoded(body: bytes) -> tuple[Codec, dict[Any, Any]]:
    """The map that a body holds, and how it is written. Raises BadRequest for another body."""
    text = body.lstrip(b" \t\r\n\xef\xbb\xbf")
    codec: Codec = "json" if text[:1] == b"{" else "msgpack"
    # Most bytes are msgpack of something, 0xff of -1 for one: only a map can be a request.
    if codec == "msgpack" and not (body[:1] and (0x80 <= body[0] <= 0x8F or body[0] in (0xDE, 0xDF))):
        raise BadRequest("the body should be an object in JSON, or a map in msgpack")
    try:
        data = msgspec.json.decode(text) if codec == "json" else msgspec.msgpack.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as e:
        raise BadRequest(f"the body is no {codec}: {e}", codec) from None
    return codec, data


def encoded(codec: Codec, data: Any) -> bytes:
    return msgspec.json.encode(data) if codec == "json" else msgspec.msgpack.encode(data)


def media_type(codec: Codec) -> str:
    return "application/json" if codec == "json" else "application/msgpack"


def write_reply(asked: Asked, found: Sequence[Sequence[Hit]]) -> bytes:
    result: list[Any] = [
        [{"document": hit.document, "score": hit.score} if asked.scores else hit.document for hit in hits]
        for hits in found
    ]
    return encoded(asked.codec, {"result": result[0] if asked.flat else result})


def write_request(protocol: Protocol, query: str, topk: int) -> bytes:
    if protocol == "gem":
        return msgspec.msgpack.encode({"query": query, "topk": topk, "return_scores": True})
    return msgspec.json.encode({"queries": [query], "topk": topk, "return_scores": True})


def read_reply(protocol: Protocol, body: bytes) -> list[Hit]:
    """The documents of a reply to one query. Raises ValueError for what is no such reply."""
    try:
        data = msgspec.msgpack.decode(body) if protocol == "gem" else msgspec.json.decode(body)
        result = data["result"] if protocol == "gem" else data["result"][0]
        return [_hit(each) for each in _checked(result, list)]
    except (
        msgspec.MsgspecError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as e:
        raise ValueError(f"a reply that is no search result ({type(e).__name__}: {e})") from None


def _hit(found: Any) -> Hit:
    document, score = found.get("document", found), found.get("score", 0.0)  # some servers send no scores
    if not isinstance(score, int | float) or not math.isfinite(score):
        raise ValueError(f"score {score!r:.40}")
    texts = {key: value for key, value in document.items() if isinstance(value, str)}
    if "contents" not in texts:
        raise ValueError("a document without 'contents'")
    return Hit({"id": str(document.get("id", "")), **texts}, float(score))


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} in place of {kind.__name__}")
    return value
