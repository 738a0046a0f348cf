"""Serve a local corpus: ``python -m gem.tools.search.retrieval_server --corpus corpus.jsonl --index folder``.

The index is built first, unless the folder contains a finished index. Several servers can share one folder, because its
files are memory-mapped. For the API, see gem.tools.search.server.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gem._internal.text import one_line
from gem.errors import BadValue, CallerError
from gem.tools.search.dense import EmbeddingsEndpoint, Encoder, HybridIndex, add_vectors, open_dense
from gem.tools.search.index import MANIFEST, DocumentIndex, build_index, open_index
from gem.tools.search.ranking import DEFAULT, pyserini
from gem.tools.search.server import Batcher, Service, WithoutEffect, add_address, serve


def service_of(index: DocumentIndex, *, topk: int, workers: int, batch: int) -> Service:
    """Return a service that searches an index. Closing the service closes the index."""
    batcher = Batcher(index, workers=workers, max_batch=batch)

    def close() -> None:
        batcher.close()
        index.close()

    return Service(
        search=batcher.search,
        topk=topk,
        about={"documents": len(index), "engine": index.engine},
        access=index.access,
        gauges={
            "queries_waiting": lambda: batcher.waiting,
            "batches": lambda: batcher.batches,
            "documents": lambda: len(index),
        },
        close=close,
    )


def main(argv: Sequence[str] | None = None) -> int:
    args = _parse_args(argv)
    try:
        index = _open(args)
        if args.build_only:
            index.close()
            return 0
        serve(service_of(index, topk=args.topk, workers=args.workers, batch=args.batch), args.host, args.port)
    except CallerError as e:
        print(f"error: {one_line(str(e))}", file=sys.stderr)
        return 2
    return 0


def _parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="retrieval_server", description=__doc__)
    parser.add_argument(
        "--corpus", "--corpus_path", type=Path, help="file of JSON lines; not needed where --index is complete"
    )
    parser.add_argument("--index", "--index_path", type=Path, required=True, help="folder of the index")
    parser.add_argument("--topk", type=int, default=3, help="documents for a request without topk")
    parser.add_argument("--engine", choices=["auto", "tantivy", "numpy"], default="auto")
    parser.add_argument(
        "--ranking", choices=["default", "pyserini"], default="default", help="pyserini: its constants and stemming"
    )
    parser.add_argument("--skip_bad_lines", action="store_true", help="skip malformed lines of the corpus")
    parser.add_argument("--mode", choices=["lexical", "dense", "hybrid"], help="default: lexical")
    parser.add_argument(
        "--retriever_name", help="of published scripts: bm25 means --mode lexical, any other name --mode dense"
    )
    parser.add_argument(
        "--embeddings_url", help='endpoint of --mode dense and hybrid, to which "/embeddings" is appended'
    )
    parser.add_argument("--embeddings_model", "--retriever_model", help="name of the model at that endpoint")
    parser.add_argument("--embeddings_key_env", help="environment variable with the API key of the endpoint")
    for text, reader in (("query", "each query"), ("passage", "each passage")):
        written = f'prepended to {reader}; default: "{text}: " with --retriever_name e5, else nothing'
        parser.add_argument(f"--{text}_prefix", help=written)
    parser.add_argument(
        "--workers", "--num_workers", type=int, default=os.cpu_count() or 1, help="batches searched at the same time"
    )
    parser.add_argument("--batch", "--max_batch_size", type=int, default=64, help="maximum number of queries per batch")
    parser.add_argument("--build_only", action="store_true", help="build the index and exit")
    parser.add_argument("--faiss_gpu", action=WithoutEffect, reason="indexes are searched on the CPU")
    parser.add_argument("--max_wait_time", action=WithoutEffect, reason="a batch starts as soon as a worker is idle")
    add_address(parser)
    args = parser.parse_args(argv)
    name = (args.retriever_name or "bm25").lower()
    args.mode = args.mode or ("lexical" if name == "bm25" else "dense")
    for text in ("query", "passage"):
        if getattr(args, f"{text}_prefix") is None:
            setattr(args, f"{text}_prefix", f"{text}: " if name.startswith("e5") else "")
    if args.topk < 1 or args.workers < 1 or args.batch < 1:
        parser.error("--topk, --workers and --batch must be at least 1")
    if args.corpus is None and not (args.index / MANIFEST).exists():
        parser.error(f"--corpus is needed: {args.index} holds no index")
    return args


def _open(args: argparse.Namespace) -> DocumentIndex:
    """Build the missing parts of the index with a progress bar, and open the index."""
    from rich.console import Console
    from rich.progress import Progress as ProgressBar

    with ProgressBar(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def progress(phase: str, done: float, total: float) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(phase, total=total)
            bar.update(tasks[phase], completed=done)

        if args.corpus is None:
            lexical = open_index(args.index)
        else:
            ranking = pyserini() if args.ranking == "pyserini" else DEFAULT
            options = {
                "engine": args.engine,
                "ranking": ranking,
                "skip_bad_lines": args.skip_bad_lines,
                "progress": progress,
            }
            lexical = build_index(args.corpus, args.index, **options)
        if args.mode == "lexical":
            return lexical
        encoder = _encoder(args)
        add_vectors(args.index, encoder, progress=progress)
        dense = open_dense(args.index, encoder)
        if args.mode == "hybrid":
            return HybridIndex(lexical, dense)
        lexical.close()
        return dense


def _encoder(args: argparse.Namespace) -> Encoder:
    if not args.embeddings_url or not args.embeddings_model:
        raise BadValue(f"--mode {args.mode} needs --embeddings_url and --embeddings_model")
    endpoint = EmbeddingsEndpoint(args.embeddings_url, args.embeddings_model, api_key_env=args.embeddings_key_env)
    return Encoder(endpoint, args.embeddings_model, args.query_prefix, args.passage_prefix)


if __name__ == "__main__":
    sys.exit(main())
