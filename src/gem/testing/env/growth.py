"""Measure how memory, file descriptors, threads, processes and time grow from episode to episode and from step to step.

side_effects.py calls measure() in a process of its own. The same episodes are played again and again, so caches that
depend on the seed or on the actions stop growing after the first round.
"""

from __future__ import annotations

import functools
import gc
import os
import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROUNDS = 4  # the first fills caches
MAX_REPETITIONS = 200  # of the episodes per round
MIN_STEPS = 40  # shorter episodes do not show growth from step to step
LONGEST, SLOWDOWN = 10, 4  # stop after LONGEST times the given seconds if a repetition takes SLOWDOWN times as long

Rollout = tuple[int, Sequence[str]]  # (seed, actions)
Series = dict[str, list[float]]  # name of a quantity → its value after each round, or after each quarter of an episode


def measure(build: Callable[[], Any], rollouts: Sequence[Rollout], seconds: float) -> dict[str, Any]:
    """Play the rollouts repeatedly, for about ``seconds``; then the last, which is the longest, step by step.

    Returns:
        "episodes" and "steps": a Series each, and the number of episodes per round and of steps per quarter, as
        "count". "seconds" is the processor time of one repetition or step. "steps" is None for a short rollout.
        Only "stopped" if the episodes become so slow that the measurement would take too long: the seconds of the first
        and of the last repetition, and the number of its episodes.
    """
    *rollouts, longest = rollouts
    with_env = build()
    tracemalloc.start()
    start = time.perf_counter()
    _play_once(build, with_env, rollouts)
    first = time.perf_counter() - start
    repetitions = max(2, min(MAX_REPETITIONS, int(seconds / ROUNDS / first)))
    episodes: Series = {}
    for _ in range(ROUNDS):
        times = []
        for _ in range(repetitions):
            begin = time.perf_counter()
            times.append(_timed(lambda: _play_once(build, with_env, rollouts)))
            now = time.perf_counter()
            if now - start > LONGEST * seconds and now - begin > SLOWDOWN * first:
                return {"stopped": [first, now - begin, len(rollouts)]}
        _append(episodes, times)
    with_env.close()
    steps = _measure_steps(build(), *longest)
    return {"episodes": episodes, "steps": steps, "count": [repetitions * len(rollouts), len(longest[1]) // 4]}


def _play_once(build: Callable[[], Any], env: Any, rollouts: Sequence[Rollout]) -> None:
    """Play every rollout in the same environment, and the first step of the first one in a new environment."""
    for seed, actions in rollouts:
        _play(env, seed, actions)
    new = build()
    _play(new, rollouts[0][0], rollouts[0][1][:1])
    new.close()


def _play(env: Any, seed: int, actions: Sequence[str]) -> None:
    env.reset(seed=seed)
    for action in actions:
        if True in env.step(action)[2:4]:
            break


def _measure_steps(env: Any, seed: int, actions: Sequence[str]) -> Series | None:
    quarter = len(actions) // 4
    if quarter < MIN_STEPS // 4:
        return None
    steps: Series = {}
    env.reset(seed=seed)
    for i in range(4):
        part = actions[i * quarter : (i + 1) * quarter]
        _append(steps, [_timed(functools.partial(env.step, action)) for action in part])
    env.close()
    return steps


def _timed(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def _append(series: Series, times: Sequence[float]) -> None:
    gc.collect()
    values = {
        "memory": tracemalloc.get_traced_memory()[0],
        "descriptors": len(os.listdir("/dev/fd")),
        "threads": threading.active_count(),
        "processes": sum(len(path.read_text().split()) for path in Path("/proc/self/task").glob("*/children")),
        "seconds": statistics.median(times),
    }
    for name, value in values.items():
        series.setdefault(name, []).append(value)
