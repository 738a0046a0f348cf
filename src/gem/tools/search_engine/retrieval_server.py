"""Serves a local corpus: ``python -m gem.tools.search_engine.retrieval_server --corpus corpus.jsonl --index folder``.

Builds the index first, where the folder holds none, or half of one. See gem.tools.search_engine.serving for what it
answers. Several of them may share one folder, whose files they map into memory.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gem.errors import BadValue, CallerError
from gem.tools.search_engine.batching import Batcher
from gem.tools.search_engine.dense import EmbeddingsEndpoint, Encoder, HybridIndex, add_vectors, open_dense
from gem.tools.search_engine.documents import Progress
from gem.tools.search_engine.index import Indexed, LexicalIndex, build_index, open_index
from gem.tools.search_engine.manifest import MANIFEST
from gem.tools.search_engine.serving import Service, add_address, serve


def service_of(index: Indexed, *, topk: int, workers: int, batch: int) -> Service:
    """A server's service on an index; closing it closes the index."""
    batcher = Batcher(index, workers=workers, most=batch)

    def close() -> None:
        batcher.close()
        index.close()

    return Service(
        search=batcher.search,
        topk=topk,
        about={"documents": len(index), "engine": index.engine},
        access=index.access,
        gauges=lambda: {"queries_waiting": batcher.waiting, "batches": batcher.batches, "documents": len(index)},
        close=close,
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="retrieval_server", description=__doc__)
    parser.add_argument("--corpus", type=Path, help="JSON lines; not needed where --index is finished")
    parser.add_argument("--index", type=Path, required=True, help="folder of the index")
    parser.add_argument("--topk", type=int, default=3, help="documents for a request that names no topk")
    parser.add_argument("--engine", choices=["auto", "tantivy", "numpy"], default="auto")
    parser.add_argument(
        "--skip_bad_lines", action="store_true", help="leave out lines of the corpus that are no documents"
    )
    parser.add_argument("--mode", choices=["lexical", "dense", "hybrid"], default="lexical")
    parser.add_argument(
        "--embeddings_url", help='of an endpoint, what "/embeddings" is appended to; for the other modes'
    )
    parser.add_argument("--embeddings_model", help="its name at that endpoint")
    parser.add_argument("--embeddings_key_env", help="environment variable that holds the endpoint's key")
    parser.add_argument("--query_prefix", default="", help='put before each query, as "query: "')
    parser.add_argument("--passage_prefix", default="", help='put before each passage, as "passage: "')
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="batches searched at the same time")
    parser.add_argument("--batch", type=int, default=64, help="queries of a batch at most")
    parser.add_argument("--build_only", action="store_true", help="build the index, and leave")
    add_address(parser)
    args = parser.parse_args(argv)
    if args.topk < 1 or args.workers < 1 or args.batch < 1:
        parser.error("--topk, --workers and --batch should be at least 1")
    if args.corpus is None and not (args.index / MANIFEST).exists():
        parser.error(f"--corpus is needed: {args.index} holds no finished index")
    try:
        index = opened(args)
        if args.build_only:
            index.close()
            return 0
        serve(service_of(index, topk=args.topk, workers=args.workers, batch=args.batch), args.host, args.port)
    except CallerError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    return 0


def opened(args: argparse.Namespace) -> Indexed:
    """The index asked for, built as far as it is not."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: float, total: float) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        lexical = words_index(args, progress)
        if args.mode == "lexical":
            return lexical
        encoder = encoder_of(args)
        add_vectors(args.index, encoder, progress=progress)
        dense = open_dense(args.index, encoder)
        if args.mode == "hybrid":
            return HybridIndex(lexical, dense)
        lexical.close()
        return dense


def words_index(args: argparse.Namespace, progress: Progress) -> LexicalIndex:
    if args.corpus is None:
        return open_index(args.index)
    return build_index(
        args.corpus, args.index, engine=args.engine, skip_bad_lines=args.skip_bad_lines, progress=progress
    )


def encoder_of(args: argparse.Namespace) -> Encoder:
    if not args.embeddings_url or not args.embeddings_model:
        raise BadValue(f"--mode {args.mode} needs --embeddings_url and --embeddings_model")
    endpoint = EmbeddingsEndpoint(args.embeddings_url, args.embeddings_model, api_key_env=args.embeddings_key_env)
    return Encoder(endpoint, args.embeddings_model, args.query_prefix, args.passage_prefix)


if __name__ == "__main__":
    sys.exit(main())
