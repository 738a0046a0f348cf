"""Measure the vector backends against their speed goals.

  python benchmarks/vector.py             median of 5, about two minutes
  python benchmarks/vector.py --quick     one measurement of each, less of everything
  python benchmarks/vector.py --only ray  only the parts whose name contains a text

Measurements to be compared are interleaved, so that other load on the machine affects both. The parts about Ray need
the extra [ray] and are skipped without it. The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

import gem
from gem.cli.bench import steps_per_second
from gem.vector import VectorEnv
from gem.wrappers import get_wrapper_fns
from table import Line, ratios, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "vector"))
import fixture_envs

GUESS = "game:GuessTheNumber-v0"
NEVER = 1_000_000  # turns, more than any measurement takes
SLEEPS, SLEEPS_LONG, RESET_SLEEPS, BURNS = 0.05, 2.0, 0.25, 0.005  # seconds
RAY_ENVS, RAY_WORKERS = 256, 4


@dataclass(frozen=True)
class Scale:
    """Size of the measurements. steps: env-steps with light environments. seconds: duration with slow environments."""

    repeats: int = 5
    steps: int = 30_000
    seconds: float = 4.0
    burns: int = 20
    episodes: int = 10_000


def light(scale: Scale) -> list[Line]:
    """64 games of GuessTheNumber with concat: a bare loop, sync, async, thread and process, interleaved."""
    wrappers = get_wrapper_fns("concat")
    rates: dict[str, list[float]] = {name: [] for name in ("bare", "sync", "async", "thread", "process")}
    with opened(
        {name: {"backend": name} for name in rates if name != "bare"}, GUESS, wrappers, num_envs=64
    ) as vec_envs:
        actions = [[vec_envs["sync"].sample_random_action(slot) for slot in range(64)] for _ in range(8)]
        for _ in range(scale.repeats):
            rates["bare"].append(bare_steps_per_second(wrappers, actions, scale.steps))
            for name, vec_env in vec_envs.items():
                rates[name].append(steps_per_second(vec_env, actions, scale.steps))
    cost = [1e6 / own - 1e6 / sync for own, sync in zip(rates["process"], rates["sync"], strict=True)]
    return [
        Line("64 light envs: sync", rates["sync"], "env-steps/s"),
        Line("64 light envs: async of sync", ratios(rates["async"], rates["sync"]), "×", 0.9),
        Line(
            "64 light envs: time of sync to that of a bare loop", ratios(rates["bare"], rates["sync"]), "×", 1.5, True
        ),
        Line("64 light envs: thread of sync", ratios(rates["thread"], rates["sync"]), "×"),
        Line("64 light envs: process of sync", ratios(rates["process"], rates["sync"]), "×"),
        Line("64 light envs: overhead of process", cost, "µs per env-step"),
    ]


def bare_steps_per_second(wrappers: Any, actions: list[list[str]], steps: int) -> float:
    """Env-steps per second of a plain loop that steps environments and resets those whose episode ended."""
    envs: list[Any] = []
    for seed in range(64):
        env: Any = gem.make(GUESS, seed=seed)
        for wrap in wrappers:
            env = wrap(env)
        env.reset()
        envs.append(env)
    start = time.perf_counter()
    rounds = -(-steps // 64)
    for i in range(rounds):
        observations, rewards = [], []
        for env, action in zip(envs, actions[i % len(actions)], strict=True):
            observation, reward, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                observation, _ = env.reset()
            observations.append(observation)
            rewards.append(reward)
    return rounds * 64 / (time.perf_counter() - start)


def waiting(scale: Scale) -> list[Line]:
    """16 environments that sleep, one of them longer: asynchronous against synchronous stepping."""
    own = [{"seconds": SLEEPS_LONG if slot == 0 else SLEEPS, "longest": NEVER} for slot in range(16)]
    first, gains = [], []
    with gem.make_vec("fixture:Walker-thread-v0", vec_kwargs=own, backend="async", num_workers=16) as vec_env:
        for _ in range(scale.repeats):
            vec_env.reset(seed=0)
            start = time.perf_counter()
            vec_env.send(["a"] * 16)
            vec_env.recv(min_envs=8)
            first.append(1e3 * (time.perf_counter() - start))
            free = free_running(vec_env, scale.seconds)
            gains.append(free / lock_step(vec_env, scale.seconds))
    return [
        Line("16 envs of 50 ms, one of 2 s: first 8", first, "ms", 100, True),
        Line("16 envs of 50 ms, one of 2 s: transitions/s to those of lock-step", gains, "×", 10),
    ]


def free_running(vec_env: VectorEnv, seconds: float) -> float:
    """Transitions per second when each slot is sent to again as soon as it is received. Leaves no slot pending."""
    start, transitions = time.perf_counter(), 0
    vec_env.send({slot: "a" for slot in range(vec_env.num_envs) if slot not in vec_env.pending})
    while (spent := time.perf_counter() - start) < seconds:
        ids, _ = vec_env.recv(timeout=seconds - spent)
        transitions += len(ids)
        vec_env.send(["a"] * len(ids), ids=ids)
    rate = transitions / (time.perf_counter() - start)
    vec_env.recv(min_envs=vec_env.num_envs)
    return rate


def lock_step(vec_env: VectorEnv, seconds: float) -> float:
    start, rounds = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        vec_env.step(["a"] * vec_env.num_envs)
        rounds += 1
    return rounds * vec_env.num_envs / (time.perf_counter() - start)


def resets(scale: Scale) -> list[Line]:
    seconds = []
    options: dict[str, Any] = {"num_envs": 16, "backend": "async", "num_workers": 16, "reset_seconds": RESET_SLEEPS}
    with gem.make_vec("fixture:Walker-thread-v0", **options) as vec_env:
        for _ in range(scale.repeats):
            start = time.perf_counter()
            vec_env.reset(seed=0)
            seconds.append(time.perf_counter() - start)
    return [Line("reset of 16 envs of 0.25 s", seconds, "s", 0.35, True)]


def burning(scale: Scale) -> list[Line]:
    """16 environments that use 5 ms of CPU time per step."""
    backends: dict[str, dict[str, Any]] = {
        "sync": {"backend": "sync"},
        "process": {"backend": "process", "num_workers": 2},
    }
    rates: dict[str, list[float]] = {"sync": [], "process": []}
    actions = [["a"] * 16]
    with opened(backends, "fixture:Walker-v0", num_envs=16, burns=BURNS, longest=NEVER) as vec_envs:
        for _ in range(scale.repeats):
            for name, vec_env in vec_envs.items():
                rates[name].append(steps_per_second(vec_env, actions, 16 * scale.burns))
    return [Line("16 envs that burn 5 ms: process of sync", ratios(rates["process"], rates["sync"]), "×", 1.7)]


def ray_light(scale: Scale) -> list[Line]:
    """256 light games on Ray actors of a local cluster and on as many worker processes."""
    backends = {name: {"backend": name, "num_workers": RAY_WORKERS} for name in ("ray", "process")}
    rates: dict[str, list[float]] = {name: [] for name in backends}
    with opened(backends, GUESS, num_envs=RAY_ENVS) as vec_envs:
        sampled = gem.make(GUESS, seed=0)
        sampled.reset()
        actions = [[sampled.sample_random_action() for _ in range(RAY_ENVS)] for _ in range(8)]
        for _ in range(scale.repeats):
            for name, vec_env in vec_envs.items():
                rates[name].append(steps_per_second(vec_env, actions, scale.steps))
    return [
        Line("256 light envs on 4 ray actors", rates["ray"], "env-steps/s", 20_000),
        Line("256 light envs: ray of process", ratios(rates["ray"], rates["process"]), "×"),
    ]


def ray_killed(scale: Scale) -> list[Line]:
    """An environment kills its actor. Each episode of that actor fails once, and no other episode fails."""
    own: list[dict[str, Any]] = [{"longest": NEVER} for _ in range(RAY_ENVS)]
    own[0]["faults"] = {(0, 3): "die"}
    options: dict[str, Any] = {"backend": "ray", "num_workers": RAY_WORKERS, "on_failure": "restart"}
    failed, lost = np.zeros(RAY_ENVS, dtype=int), 0
    with gem.make_vec("fixture:Faulty-v0", vec_kwargs=own, **options) as vec_env:
        vec_env.reset(seed=0)
        for _ in range(10):
            rewards = vec_env.step(["a"] * RAY_ENVS).rewards_B
            failed += np.isnan(rewards)
            lost += RAY_ENVS - len(rewards)
    shard = RAY_ENVS // RAY_WORKERS
    return [
        Line(f"an actor of {shard} envs is killed: episodes that failed", [float(failed.sum())], "", shard, True),
        Line("an actor is killed: failures of any one slot", [float(failed.max())], "", 1, True),
        Line("an actor is killed: slots lost", [float(lost)], ""),
    ]


def many(scale: Scale) -> list[Line]:
    """Play many episodes concurrently to the end, in a separate process to measure its peak memory."""
    command = [sys.executable, __file__, "--play-at-once", str(scale.episodes)]
    seen = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(scale.repeats)
    ]
    name = f"{scale.episodes:,} games at once, async"
    return [
        Line(f"{name}: peak memory", [run["mib"] for run in seen], "MiB", 1024, True),
        Line(f"{name}: time to build and play all to the end", [run["seconds"] for run in seen], "s"),
    ]


def play_at_once(count: int) -> None:
    start = time.perf_counter()
    with gem.make_vec(GUESS, num_envs=count, backend="async", autoreset="disabled") as vec_env:
        vec_env.reset(seed=0)
        running = list(range(count))
        while running:
            step = vec_env.step({slot: r"\boxed{10}" for slot in running})
            over = step.terminated_B | step.truncated_B
            running = [slot for slot, ended in zip(running, over, strict=True) if not ended]
        assert vec_env.stats()[GUESS].episodes == count
    print(json.dumps({"seconds": time.perf_counter() - start, "mib": peak_mib()}))


def peak_mib() -> float:
    """Return the peak memory of this program; getrusage() would include the process before exec."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


PARTS: dict[str, Callable[[Scale], list[Line]]] = {
    "light": light,
    "waiting": waiting,
    "resets": resets,
    "burning": burning,
    "ray": ray_light,
    "ray killed": ray_killed,
    "many": many,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help=f"run only the parts with this text in the name: {', '.join(PARTS)}")
    parser.add_argument("--play-at-once", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play_at_once:
        play_at_once(args.play_at_once)
        return 0
    for spec in fixture_envs.SPECS:
        gem.register(spec)
    scale = Scale(repeats=1, steps=6_000, seconds=2.0, burns=10, episodes=2_000) if args.quick else Scale()
    has_ray = importlib.util.find_spec("ray") is not None
    parts = [part for name, part in PARTS.items() if args.only in name and (has_ray or "ray" not in name)]
    console = Console(stderr=True)
    lines = []
    with redirect_stdout(sys.stderr):  # Ray prints about the actor that is killed
        for part in track(parts, "measuring", console=console, transient=True, disable=not console.is_terminal):
            lines += part(scale)
    missed = report("Vector", f"{scale.repeats} runs", lines)
    if not has_ray:
        print("\nray is not installed; its parts were skipped.")
    return missed


@contextmanager
def opened(backends: dict[str, dict[str, Any]], *args: Any, **kwargs: Any) -> Iterator[dict[str, VectorEnv]]:
    """Open make_vec(*args, **kwargs) on each backend, by name, and close all of them at the end."""
    vec_envs: dict[str, VectorEnv] = {}
    try:
        for name, options in backends.items():
            vec_envs[name] = gem.make_vec(*args, **kwargs, **options)
            vec_envs[name].reset(seed=0)
        yield vec_envs
    finally:
        for vec_env in vec_envs.values():
            vec_env.close()


if __name__ == "__main__":
    sys.exit(main())
