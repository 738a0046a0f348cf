from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """The recorded replies and episodes of the reference contract; see contract.py."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from .contract import record

    return record(tmp_path_factory.mktemp("contract"))
