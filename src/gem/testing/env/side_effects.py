"""Side effects of environments: output, connections, files, imports and draws from global random streams.

The functions of this module observe the current process. construction.py also runs this file as a script in a new
process, which has imported nothing yet and has another hash seed. The script reads a pickled job from stdin, builds the
environment, replays rollouts and writes its findings to stdout as JSON. Before the measurement, the script imports only
the standard library.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import os
import pickle
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO


@dataclass
class SideEffects:
    """The text printed to stdout and stderr, and the addresses of attempted connections."""

    printed: io.StringIO = field(default_factory=io.StringIO)
    connections: list[str] = field(default_factory=list)


@contextlib.contextmanager
def observe_side_effects() -> Iterator[SideEffects]:
    """Capture the output of the process, and record and refuse connections made by the current thread."""
    import socket

    effects, thread = SideEffects(), threading.get_ident()
    lookup, connect = socket.getaddrinfo, socket.socket.connect

    def refuse(address: object) -> None:
        effects.connections.append(str(address))
        raise OSError(f"connection to {address} refused while an environment is being built")

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
        with contextlib.redirect_stdout(effects.printed), contextlib.redirect_stderr(effects.printed):
            yield effects
    finally:
        socket.getaddrinfo = lookup
        socket.socket.connect = connect  # type: ignore[method-assign]


class GlobalStreams:
    """A snapshot of the global random streams: ``random``, and ``numpy.random`` if numpy has been imported."""

    def __init__(self) -> None:
        self.python = random.getstate()
        numpy = sys.modules.get("numpy")
        self.numpy = None if numpy is None else numpy.random.get_state()

    def restore(self) -> None:
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)

    def changed(self) -> str | None:
        """Return the name of a stream that has changed since the snapshot, or None if no stream has changed."""
        now = GlobalStreams()
        if now.python != self.python:
            return "random"
        # Every draw changes the position or the Gauss cache; seeding changes the key.
        if self.numpy is not None and now.numpy is not None and _key(now.numpy) != _key(self.numpy):
            return "numpy.random"
        return None


def seed_global_streams(seed: int) -> None:
    """Seed the global streams in the same way as gem.core does for environments defined outside gem."""
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)


@dataclass(frozen=True)
class ImportCost:
    """The cost of an import.

    Args:
        modules: number of modules loaded.
        third_party: top-level packages of these modules, without gem and the standard library.
        seconds: duration of the import.
    """

    modules: int
    third_party: list[str]
    seconds: float


def main() -> None:
    job = pickle.load(sys.stdin.buffer)
    with _captured_descriptor(1) as (stdout, output), _captured_descriptor(2) as (_, errors):
        if job["growth_seconds"]:
            growth = importlib.import_module("gem.testing.env.growth")
            build = functools.partial(_build, job)
            findings = growth.measure(build, job["rollouts"], job["growth_seconds"])
        else:
            findings = {**_replay(job), "output": output(), "errors": errors()}
        stdout.write(json.dumps(findings))


def _replay(job: dict[str, Any]) -> dict[str, Any]:
    written = _record_written_paths()
    _, gem_cost = _measured(lambda: importlib.import_module("gem"))
    with observe_side_effects() as effects:
        env, env_cost = _measured(lambda: _build(job))
    plain_data = importlib.import_module("gem.testing.plain_data")  # imported late, so that the import is not measured
    logging = importlib.import_module("logging")
    logging.lastResort = logging.NullHandler()  # type: ignore[attr-defined]  # logs that no handler takes are no output
    # Imports write caches; but what the first construction writes to the temporary folder must not remain.
    outputs, temporary = [], {path for path in written if path.startswith(tempfile.gettempdir() + os.sep)}
    written.clear()
    for seed, actions in job["rollouts"]:
        outputs.append(_outputs(env, seed, actions, plain_data.canonical))
        env.close()
        env = _build(job)
    env.close()
    findings = {
        "gem": vars(gem_cost),
        "env": vars(env_cost),
        "outputs": outputs,
        "written": sorted(written | temporary),
    }
    return {**findings, "printed": effects.printed.getvalue(), "connections": effects.connections}


@contextlib.contextmanager
def _captured_descriptor(number: int) -> Iterator[tuple[TextIO, Callable[[], str]]]:
    """Redirect a file descriptor to a temporary file. Yields the original file and a function that returns the text."""
    with tempfile.TemporaryFile() as file, os.fdopen(os.dup(number), "w") as original:
        os.dup2(file.fileno(), number)

        def text() -> str:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield original, text
        finally:  # so that the parent sees the traceback of an error
            os.dup2(original.fileno(), number)


def _record_written_paths() -> set[str]:
    """Return a set to which every path that this process creates or opens for writing is added from now on."""
    written: set[str] = set()
    position_of_path = {"os.mkdir": 0, "sqlite3.connect": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1}
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT

    def record(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            position, writes = 0, isinstance(args[2], int) and bool(args[2] & writing)
        else:
            position, writes = position_of_path.get(event, 0), event in position_of_path
        if writes and isinstance(args[position], (str, bytes, os.PathLike)):
            written.add(os.path.abspath(os.fsdecode(args[position])))

    sys.addaudithook(record)
    return written


def _key(state: Any) -> tuple[Any, ...]:
    return (state[1].tobytes(), *state[2:])


def _measured(load: Callable[[], Any]) -> tuple[Any, ImportCost]:
    before, start = set(sys.modules), time.perf_counter()
    loaded = load()
    seconds, new = time.perf_counter() - start, set(sys.modules) - before
    packages = {name.partition(".")[0] for name in new}
    return loaded, ImportCost(len(new), sorted(packages - set(sys.stdlib_module_names) - {"gem"}), seconds)


def _build(job: dict[str, Any]) -> Any:
    module, _, path = job["entry"].partition(":")
    target: Any = importlib.import_module(module)
    for name in path.split("."):
        target = getattr(target, name)
    args, kwargs = pickle.loads(job["arguments"])
    env = target(*args, **kwargs)
    if job["env_id"] is not None:
        env.env_id = job["env_id"]
    return env


def _outputs(env: Any, seed: int, actions: list[str], canonical: Callable[[Any], str]) -> list[str]:
    outputs = [canonical(tuple(env.reset(seed=seed)))]
    for action in actions:
        step = env.step(action)
        outputs.append(canonical(tuple(step)))
        if step[2] or step[3]:
            break
    return outputs


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]  # do not import modules of this folder by bare name
    main()
