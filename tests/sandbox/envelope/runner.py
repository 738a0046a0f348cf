"""Run programs of the corpus, each in its own disposable container (an envelope), several at a time.

  cd tests/sandbox
  python -m envelope ns lsm            all programs at these levels, one line for each
  python -m envelope ns --only 01 b03

An envelope protects the machine from programs that escape the sandbox. It needs Linux, util-linux, iproute2, and root
or user namespaces.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from envelope import cgroups, host, programs

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[2]
AT_ONCE = 8  # a run uses a processor for a fifth of its time or less
HUNG_S = 60  # time limit of an envelope
FIRST_UID = 61_000  # of envelopes started as root: one each, because the kernel counts processes by user
AS_ROOT = "-root"  # suffix of a level: run as root of a container instead of as an unprivileged user
# Bytes: the sandbox's limit of 1 GiB; half a GiB for the host, the fork servers and the files that they read; and the
# memory that two processors fill in a quarter of a second, by which a busy machine may delay the monitor.
MEMORY_PEAK = 2600 << 20
PROCESSES_PEAK = 300


@dataclass(frozen=True)
class Outcome:
    """Result of a program at a level. misses: its escapes. unavailable: why the level is not available."""

    name: str
    level: str
    misses: list[str] = field(default_factory=list)
    unavailable: str = ""
    seconds: float = 0.0
    peaks: dict[str, int] = field(default_factory=dict)
    output: str = ""


class Runner:
    """Runs programs in envelopes, AT_ONCE at a time."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.pool = ThreadPoolExecutor(at_once)
        self.uids: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(at_once):
            self.uids.put(FIRST_UID + slot)
        self.counter = itertools.count()

    def start(self, path: Path, level: str) -> Future[Outcome]:
        return self.pool.submit(self._run, path, level)

    def close(self) -> None:
        """Cancel pending programs and wait for running ones."""
        self.pool.shutdown(cancel_futures=True)

    def _run(self, path: Path, level: str) -> Outcome:
        uid, caps = self.uids.get(), cgroups.Caps(f"gem-envelope-{os.getpid()}-{next(self.counter)}")
        start = time.monotonic()
        try:
            answer, peaks = run_in_envelope(path, level, uid, caps)
        finally:
            caps.remove()
            self.uids.put(uid)
        answer.setdefault("misses", []).extend(excesses(peaks))
        return Outcome(path.stem, level, seconds=time.monotonic() - start, peaks=peaks, **answer)


def run_in_envelope(path: Path, level: str, uid: int, caps: cgroups.Caps) -> tuple[dict, dict[str, int]]:
    """Run one program in one envelope. Returns the answer of trial.py and the peaks of the envelope."""
    process = subprocess.Popen(
        command(path, level.removesuffix(AS_ROOT), 0 if level.endswith(AS_ROOT) else uid),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=caps.enter,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(host.STDIN.encode())
    process.stdin.flush()  # left open, so that a program that reads it blocks
    stdin, process.stdin = process.stdin, None
    try:
        out, err = process.communicate(timeout=HUNG_S)
        peaks = caps.peaks()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"misses": [f"the host hung for {HUNG_S} s"]}, caps.peaks()
    finally:
        stdin.close()
    try:
        return json.loads(out), peaks
    except ValueError:
        said = " | ".join(err.decode(errors="replace").split("\n")[-4:]).strip(" |")[-400:]
        return {"misses": [f"the host died with status {process.returncode}: {said}"]}, peaks


def command(path: Path, level: str, uid: int) -> list[str]:
    folders = dict.fromkeys(map(os.path.realpath, (PROJECT, sys.prefix, sys.base_prefix)))
    needed = [folder for folder in folders if not folder.startswith(("/usr/", "/opt/")) and folder != "/usr"]
    variables = {
        **host.ENVIRONMENT,
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(HERE.parent),
    }
    environment = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    trial = [sys.executable, "-B", "-m", "envelope.trial", str(path), level]
    return [str(HERE / "enter.sh"), str(uid), *needed, "--", *environment, *trial]


def excesses(peaks: dict[str, int]) -> list[str]:
    found = []
    if peaks.get("bytes", 0) > MEMORY_PEAK:
        found.append(f"memory peaked at {peaks['bytes'] >> 20} MiB")
    if peaks.get("processes", 0) >= PROCESSES_PEAK:
        found.append(f"there were {peaks['processes']} processes")
    return found


def cannot_run() -> str:
    """Why envelopes are not available on this machine; empty if they are."""
    if not sys.platform.startswith("linux"):
        return "envelopes need Linux"
    tried = subprocess.run(
        [str(HERE / "enter.sh"), str(FIRST_UID), "--", "true"], capture_output=True, text=True, timeout=60, check=False
    )
    if tried.returncode == 0:
        return ""
    return f"an envelope needs root or user namespaces, util-linux and iproute2: {tried.stderr.strip()[-300:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("levels", nargs="+", help="ns, lsm, basic, or a backend; the suffix -root runs as root")
    parser.add_argument("--only", nargs="*", default=[""], help="prefixes of the names of programs to run")
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    args = parser.parse_args(arguments)
    if reason := cannot_run():
        print(reason, file=sys.stderr)
        return 2
    chosen = [path for path in programs.paths() if path.name.startswith(tuple(args.only))]
    runner = Runner(args.at_once)
    outcomes = [runner.start(path, level) for level in args.levels for path in chosen]
    for future in outcomes:
        show(future.result())
    for level in args.levels:
        print(score(level, [future.result() for future in outcomes if future.result().level == level]))
    return int(any(future.result().misses for future in outcomes))


def show(outcome: Outcome) -> None:
    state = "n/a" if outcome.unavailable else "MISS" if outcome.misses else "ok"
    bytes_, processes, cpu_ms = (outcome.peaks.get(what, 0) for what in ("bytes", "processes", "cpu_ms"))
    peaks = f"{bytes_ >> 20} MiB, {processes} processes, {cpu_ms / 1000:.1f} s of CPU"
    print(f"{state:7}{outcome.level:7}{outcome.name:34}{outcome.seconds:6.1f} s  {peaks}", flush=True)
    for line in [outcome.unavailable] if outcome.unavailable else outcome.misses:
        print(f"       {line}", flush=True)


def score(level: str, outcomes: Sequence[Outcome]) -> str:
    """One line: how many programs of each kind passed at a level."""
    fields = {path.stem: programs.load(path).fields for path in programs.paths()}
    parts = []
    for kind, chosen in {
        "must": lambda f: "KIND" not in f and f["SEVERITY"] == "must",
        "should": lambda f: "KIND" not in f and f["SEVERITY"] == "should",
        "harmless": lambda f: "KIND" in f,
    }.items():
        of_kind = [o for o in outcomes if chosen(fields[o.name])]
        good = sum(not o.misses and not o.unavailable for o in of_kind)
        parts.append(f"{kind} {good}/{len(of_kind)}")
    return f"{level}: {', '.join(parts)}"


if __name__ == "__main__":
    sys.exit(main())
