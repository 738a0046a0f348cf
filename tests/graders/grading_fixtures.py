"""Functions that grading workers call in the tests."""

from __future__ import annotations

import os
import time
from typing import Any

from gem._internal.worker_pool import retire


def double(number: int) -> int:
    return 2 * number


def pid() -> int:
    return os.getpid()


def pid_of_a_retired_worker() -> int:
    retire()
    return os.getpid()


def hang() -> None:
    while True:
        time.sleep(0.01)


def die() -> None:
    os._exit(3)


def take_memory() -> int:
    return len(bytearray(8 << 30))


def refuse(value: Any) -> None:
    raise ValueError(f"cannot grade {value!r}")
