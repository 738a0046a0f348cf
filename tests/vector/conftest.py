"""Make the fixture environments importable, here and in worker processes (which copy sys.path), and register them."""

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gem.registry import ENV_REGISTRY
from gem.vector import thread

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def fixture_ids() -> Iterator[None]:
    """Register the fixture ids while a module of this folder runs, so that no other test sees them.

    What earlier modules have left in memory is not collected again after each test: it takes up to a second.
    """
    from fixture_envs import SPECS

    ENV_REGISTRY.update({spec.id: spec for spec in SPECS})
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    for spec in SPECS:
        del ENV_REGISTRY[spec.id]


@pytest.fixture(autouse=True)
def threads_before() -> None:
    """Remember the threads that earlier tests have left, such as the event loop of MCP sessions."""
    import leftovers

    leftovers.threads_before = set(threading.enumerate())


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let closing take its time, except in tests that set these limits."""
    from leftovers import SOON

    for name in ("thread.CLOSE_TIMEOUT", "process.CLOSE_TIMEOUT"):
        monkeypatch.setattr(f"gem.vector.{name}", SOON)
    for name in ("CANCEL_TIMEOUT", "JOIN_TIMEOUT"):
        monkeypatch.setattr(f"gem._internal.event_loop.{name}", SOON)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A clock for thread engines and the fixture environments. Only calls that hang time out."""
    import fixture_envs
    from clock import Clock

    clock = Clock()
    monkeypatch.setattr(thread, "time", clock)
    monkeypatch.setattr(fixture_envs, "time", clock)
    monkeypatch.setattr(thread.ThreadEngine, "poll_timeout", lambda engine: clock.poll_timeout(engine))
    yield clock
    clock.test_ended.set()


@pytest.fixture
def nothing_stays() -> Iterator[None]:
    """Check that every thread and file descriptor of a test is gone soon after it."""
    from leftovers import eventually, open_files

    files, threads = open_files(), set(threading.enumerate())
    yield
    eventually(lambda: set(threading.enumerate()) <= threads)
    gc.collect()
    eventually(lambda: open_files() <= files)
