"""Command lines of the published servers: each option works here, or is named as without effect."""

from __future__ import annotations

import json

import pytest

from gem.errors import CompatibilityWarning
from gem.tools.search import web
from gem.tools.search_engine import retrieval_server, serp_search_server


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps({"id": "1", "contents": '"Faust"\nA play by Goethe.'}) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def served(monkeypatch):
    """The services that a command line would have served."""
    services = []
    for module in (retrieval_server, web):
        monkeypatch.setattr(module, "serve", lambda service, host, port: services.append((service, host, port)))
    return services


def retrieval(corpus, *options):
    index = corpus.with_name("bm25")
    return retrieval_server.main(["--index_path", str(index), "--corpus_path", str(corpus), *options])


def test_a_published_command_line_serves_a_corpus(corpus, served):
    options = (
        "--topk 5 --retriever_name bm25 --retriever_model ./model --faiss_gpu --max_batch_size 16 --max_wait_time 10"
    )
    assert retrieval(corpus, *options.split()) == 0
    [(service, _, _)] = served
    assert (service.topk, service.about["documents"]) == (5, 1)
    service.close()


def test_an_option_without_effect_is_named_in_one_warning(corpus, served, monkeypatch):
    monkeypatch.setattr("gem._internal.construction._warned", False)
    with pytest.warns(CompatibilityWarning, match="retrieval_server: --faiss_gpu .*no effect"):
        assert retrieval(corpus, "--max_batch_size", "8", "--faiss_gpu", "True") == 0
    served[0][0].close()


@pytest.mark.parametrize("server", [retrieval_server, serp_search_server])
def test_the_help_shows_options_without_effect_like_the_others(server, capsys):
    with pytest.raises(SystemExit):
        server.main(["--help"])
    shown = capsys.readouterr().out
    assert "--max_wait_time" in shown and "SUPPRESS" not in shown


def test_a_published_dense_retriever_needs_an_endpoint_with_its_model(corpus, capsys):
    assert retrieval(corpus, "--retriever_name", "e5", "--retriever_model", "intfloat/e5-base-v2") == 2
    assert "--mode dense needs --embeddings_url" in capsys.readouterr().err
    args = retrieval_server._parse_args(["--index", "i", "--corpus", "c", "--retriever_name", "e5"])
    assert (args.mode, args.query_prefix, args.passage_prefix) == ("dense", "query: ", "passage: ")


def test_an_index_of_the_published_server_is_refused(corpus, capsys):
    index = corpus.with_name("e5_Flat.index")
    index.write_bytes(b"faiss")
    assert retrieval_server.main(["--index_path", str(index), "--corpus_path", str(corpus)]) == 2
    error = capsys.readouterr().err
    assert str(index) in error and "an index is a folder" in error


def test_a_published_command_line_serves_a_web_search(served):
    pytest.importorskip("aiohttp")
    options = "--search_url https://serpapi.com/search --topk 4 --serp_api_key key --serp_engine bing"
    scheduling = "--max_batch_size 8 --num_workers 4 --max_wait_time 50"
    assert serp_search_server.main([*options.split(), *scheduling.split()]) == 0
    [(service, _, _)] = served
    assert (service.topk, service.about) == (4, {"searches": "serpapi bing"})
