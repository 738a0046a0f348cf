"""Make the fixture environments importable, here and in worker processes (which copy sys.path), and register them."""

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gem.registry import ENV_REGISTRY

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


@pytest.fixture
def nothing_stays() -> Iterator[None]:
    """Check that every thread and file descriptor of a test is gone soon after it."""
    from leftovers import eventually, open_files

    files, threads = open_files(), set(threading.enumerate())
    yield
    eventually(lambda: set(threading.enumerate()) <= threads)
    gc.collect()
    eventually(lambda: open_files() <= files)
