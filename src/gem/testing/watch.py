"""What building an environment does to its process: prints, connections, imports, global random streams.

Imported, it watches a construction in this process. Run as a script it does so in a process of its own, where nothing
is imported yet and the hash seed is another one, and then plays the episodes that it was given. A script's job comes
pickled on stdin, and its findings go as JSON to stdout.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seen:
    """printed: to stdout and stderr. connections: the addresses that were tried."""

    printed: io.StringIO = field(default_factory=io.StringIO)
    connections: list[str] = field(default_factory=list)


@contextlib.contextmanager
def watch() -> Iterator[Seen]:
    """Record what this thread prints and where it connects; what it prints is kept back and connections fail."""
    import socket

    seen, thread = Seen(), threading.get_ident()
    lookup, connect = socket.getaddrinfo, socket.socket.connect

    def refuse(address: object) -> None:
        seen.connections.append(str(address))
        raise OSError(f"no connection to {address} while an environment is being built")

    def guarded_lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == thread:
            refuse(host)
        return lookup(host, *args, **kwargs)

    def guarded_connect(self: Any, address: Any) -> Any:
        if threading.get_ident() == thread and self.family in (socket.AF_INET, socket.AF_INET6):
            refuse(address)
        return connect(self, address)

    socket.getaddrinfo, socket.socket.connect = guarded_lookup, guarded_connect  # type: ignore[method-assign]
    try:
        with contextlib.redirect_stdout(seen.printed), contextlib.redirect_stderr(seen.printed):
            yield seen
    finally:
        socket.getaddrinfo = lookup
        socket.socket.connect = connect  # type: ignore[method-assign]


class GlobalStreams:
    """The process's random streams as they are now: ``random``, and ``numpy.random`` once something imported it."""

    def __init__(self) -> None:
        self.python = random.getstate()
        numpy = sys.modules.get("numpy")
        self.numpy = None if numpy is None else numpy.random.get_state()

    def restore(self) -> None:
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)

    def moved(self) -> str | None:
        """The stream that was drawn from or seeded since, None when both are where they were."""
        now = GlobalStreams()
        if now.python != self.python:
            return "random"
        # Position and Gauss cache move with every draw, and the key with every seed.
        if self.numpy is not None and now.numpy is not None and _key(now.numpy) != _key(self.numpy):
            return "numpy.random"
        return None


def seed_globals(seed: int) -> None:
    """Seed both streams, as gem.core does for environments defined outside gem."""
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


def _key(state: Any) -> tuple[Any, ...]:
    return (state[1].tobytes(), *state[2:])


@dataclass(frozen=True)
class Cost:
    """Of an import: modules loaded, of them those that neither gem nor the standard library brings, and seconds."""

    modules: int
    third_party: list[str]
    seconds: float


def _measured(load: Callable[[], Any]) -> tuple[Any, Cost]:
    before, start = set(sys.modules), time.perf_counter()
    loaded = load()
    seconds, new = time.perf_counter() - start, set(sys.modules) - before
    tops = {name.partition(".")[0] for name in new}
    return loaded, Cost(len(new), sorted(tops - set(sys.stdlib_module_names) - {"gem"}), seconds)


def _build(entry: str, arguments: bytes) -> Any:
    module, _, path = entry.partition(":")
    target: Any = importlib.import_module(module)
    for name in path.split("."):
        target = getattr(target, name)
    args, kwargs = pickle.loads(arguments)
    return target(*args, **kwargs)


def _episode(env: Any, seed: int, actions: list[str], canonical: Callable[[Any], str]) -> list[str]:
    told = [canonical(tuple(env.reset(seed=seed)))]
    for action in actions:
        step = env.step(action)
        told.append(canonical(tuple(step)))
        if step[2] or step[3]:
            break
    return told


def main() -> None:
    job = pickle.load(sys.stdin.buffer)
    _, gem_cost = _measured(lambda: importlib.import_module("gem"))
    with watch() as seen:
        env, env_cost = _measured(lambda: _build(job["entry"], job["arguments"]))
    plain = importlib.import_module("gem.testing.plain")  # only now: it would have hidden what the environment imports
    told = []
    with contextlib.redirect_stdout(sys.stderr):  # stdout is for the findings
        for seed, actions in job["plays"]:
            told.append(_episode(env, seed, actions, plain.canonical))
            env.close()
            env = _build(job["entry"], job["arguments"])
    found = {"gem": vars(gem_cost), "env": vars(env_cost), "told": told}
    json.dump({**found, "printed": seen.printed.getvalue(), "connections": seen.connections}, sys.stdout)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]  # a script's folder is no place to import from
    main()
