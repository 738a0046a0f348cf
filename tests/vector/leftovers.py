"""Wait for conditions, and count what a test leaves open."""

import os
import threading
import time
from collections.abc import Callable

threads_before: set[threading.Thread] = set()  # set before each test of this folder
SOON = 60.0  # seconds after which eventually() fails


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def gem_threads() -> list[str]:
    """The sorted names of the threads that this test has started: event loops and thread pools of vectors."""
    new = set(threading.enumerate()) - threads_before
    return sorted(thread.name for thread in new if thread.name in ("gem-background", "gem-slots"))
