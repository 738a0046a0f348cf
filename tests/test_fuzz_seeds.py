"""Every document that ever broke a reader, and mutations of it: each is read, or refused with a documented error.

scripts/fuzz_readers.py finds such documents, and measures time and memory.
"""

import logging
import sys
from pathlib import Path

import pytest

for name in ("mcp", "jsonschema", "starlette", "prometheus_client", "aiohttp", "yaml", "PIL", "selectolax"):
    pytest.importorskip(name)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import fuzz_readers  # noqa: E402

MUTATIONS = 50  # per document


@pytest.fixture(autouse=True)
def no_limits_of_time(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # of the folders that this user trusts
    monkeypatch.setattr(fuzz_readers, "STOPPED_S", 1e6)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("reader", fuzz_readers.READERS)
def test_a_reader_takes_or_refuses_its_seeds_and_mutations_of_them(reader):
    seeds = fuzz_readers.seeds_of(reader)
    count = MUTATIONS * sum(len(seed) <= fuzz_readers.LONGEST for seed in seeds)
    documents = [*seeds, *(fuzz_readers.document(reader, number, seed=0) for number in range(count))]
    wrong = {what: data[:200] for data in documents if (what := fuzz_readers.try_read(reader, data)[1])}
    assert wrong == {}


def test_each_folder_of_seeds_has_a_reader():
    assert {path.name for path in fuzz_readers.SEEDS.iterdir()} == set(fuzz_readers.READERS)
