# KIND: benign SEVERITY: should CLASS: benign EXPECT_OUT: 24_then_1_then_[2,_4]
"""A program with a docstring, a dataclass and a guard, as people write them."""
from __future__ import annotations

import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial


@dataclass
class Job:
    size: int


def volume(job: Job, height: int) -> int:
    return job.size**2 * height


def main() -> None:
    with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as pool, ThreadPoolExecutor(2) as threads:
        future = pool.submit(partial(volume, height=6), Job(2))
        doubled = list(threads.map(lambda n: 2 * n, [1, 2]))
        print(future.result(), "then", mp.current_process().name.count("MainProcess"), "then", doubled)


if __name__ == "__main__":
    main()
