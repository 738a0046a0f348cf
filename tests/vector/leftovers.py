"""Wait for conditions, and count what a test leaves open."""

import os
import time
from collections.abc import Callable

SOON = 20.0  # seconds after which eventually() fails


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
