"""The tasks that the loops of clients play, and warnings."""

from __future__ import annotations

import pytest

from .client_tasks import TASKS, write_stub_data


@pytest.fixture
def stub_data(tmp_path, monkeypatch):
    write_stub_data(tmp_path)
    monkeypatch.setenv("GEM_DATA", str(tmp_path))


@pytest.fixture(params=TASKS)
def task(request, stub_data):
    """The id of an environment and the names of its wrappers."""
    if request.param == "mathematics":
        pytest.importorskip("sympy", reason="needs the extra [math]")
    return TASKS[request.param]


@pytest.fixture(autouse=True)
def _warned_before(monkeypatch):
    """Published code passes keywords without effect. Their warning is an error only in the tests that are about it."""
    monkeypatch.setattr("gem._internal.construction._warned", True)
