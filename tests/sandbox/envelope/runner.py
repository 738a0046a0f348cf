"""Run programs of the corpus, each in its own disposable container (an envelope), several at a time.

  cd tests/sandbox
  python -m envelope ns-root-cgroup lsm         all programs in these settings, one line for each; see setting.py
  python -m envelope ns-neighbours --only 01 b03
  python -m envelope all --table FILE           every setting, with neighbours beside the programs that may starve them;
                                                writes a table in Markdown (make attack-all)
  python -m envelope lsm ns --table FILE        the same for these settings; the others stay in the table

With --table, a setting that was completed with the same code is not run again, so that an interrupted command continues
if it is repeated. The outcomes of complete settings are beside FILE, with the suffix .json.

An envelope protects the machine from programs that escape the sandbox. It needs Linux, util-linux, iproute2, and root
or user namespaces.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from envelope import cgroups, host, known, programs, table
from envelope.invariants import Invariant
from envelope.setting import Setting, matrix
from envelope.table import Outcome

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[2]
AT_ONCE = 8  # a run uses a processor for a fifth of its time or less
# Envelopes without neighbours that one with neighbours counts as, because its answers must be in time: beside a program
# that keeps the processors busy, and beside others.
STARVING_WEIGHT, NEIGHBOURS_WEIGHT = 4, 2
HUNG_S = 90  # time limit of an envelope
FIRST_UID = 61_000  # of envelopes started as root: one each, because the kernel counts processes by user
# Bytes: the sandbox's limit of 1 GiB; half a GiB for the host, the fork servers and the files that they read; and the
# memory that two processors fill in a quarter of a second, by which a busy machine may delay the monitor.
MEMORY_PEAK = 2600 << 20
MEMORY_PEAK_CGROUP = 1800 << 20  # the kernel limits the memory of a run exactly
PROCESSES_PEAK = 600  # without users of their own, all runs together can have about 520


class Slots:
    """Limits how many envelopes run at once, in the order in which they were started."""

    def __init__(self, count: int) -> None:
        self.count = self.free = count
        self.turn, self.changed = threading.Lock(), threading.Condition()

    @contextlib.contextmanager
    def taken(self, wanted: int) -> Iterator[None]:
        """Context manager that holds some of the slots, or all of them if there are fewer."""
        wanted = min(wanted, self.count)
        with self.turn, self.changed:
            self.changed.wait_for(lambda: self.free >= wanted)
            self.free -= wanted
        try:
            yield
        finally:
            with self.changed:
                self.free += wanted
                self.changed.notify_all()


class Runner:
    """Runs programs in envelopes, AT_ONCE at a time."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.pool, self.slots = ThreadPoolExecutor(at_once), Slots(at_once)
        self.uids: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(at_once):
            self.uids.put(FIRST_UID + slot)
        self.counter = itertools.count()

    def start(self, path: Path, setting: Setting) -> Future[Outcome]:
        return self.pool.submit(self._run, path, setting)

    def close(self) -> None:
        """Cancel pending programs and wait for running ones."""
        self.pool.shutdown(cancel_futures=True)

    def _run(self, path: Path, setting: Setting) -> Outcome:
        with self.slots.taken(weight(path, setting)):
            uid, start = self.uids.get(), time.monotonic()
            user = 0 if setting.root else uid
            name = f"gem-envelope-{os.getpid()}-{next(self.counter)}"
            caps = cgroups.Caps(name, user, neighbours=setting.neighbours)
            try:
                answer, peaks = run_in_envelope(path, setting, user, caps)
            finally:
                caps.remove()
                self.uids.put(uid)
        answer.setdefault("misses", []).extend(excesses(peaks, setting, programs.load(path).copies))
        return Outcome(path.stem, setting, seconds=time.monotonic() - start, peaks=peaks, **answer)


def weight(path: Path, setting: Setting) -> int:
    """How many slots a program takes in a setting."""
    if not setting.neighbours:
        return 1
    return STARVING_WEIGHT if programs.load(path).kind == "starvation" else NEIGHBOURS_WEIGHT


def run_in_envelope(path: Path, setting: Setting, uid: int, caps: cgroups.Caps) -> tuple[dict, dict[str, int]]:
    """Run one program in one envelope. Returns the answer of trial.py and the peaks of the envelope."""
    if setting.cgroup and not caps.controllers:
        return {"unavailable": "no cgroup can be made here"}, {}
    stdin, stdin_writer = map(io.FileIO, os.pipe(), "rw")
    stdin_writer.write(host.STDIN.encode())
    process = subprocess.Popen(
        command(path, setting, uid, caps.controllers if setting.cgroup else ""),
        env={**os.environ, "OPEN_PROC": "yes" if setting.level == "ns" else ""},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=caps.enter,
        start_new_session=True,
    )
    stdin.close()
    try:
        out, err = process.communicate(timeout=HUNG_S)
        peaks = caps.peaks()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"misses": [Invariant.HOST_ALIVE.miss(f"it hung for {HUNG_S} s")]}, caps.peaks()
    finally:
        stdin_writer.close()  # not earlier, so that a program that reads it blocks
    try:
        return json.loads(out), peaks
    except ValueError:
        said = " | ".join(err.decode(errors="replace").split("\n")[-4:]).strip(" |")[-400:]
        return {"misses": [Invariant.HOST_ALIVE.miss(f"it died with status {process.returncode}: {said}")]}, peaks


def command(path: Path, setting: Setting, uid: int, controllers: str) -> list[str]:
    folders = dict.fromkeys(map(os.path.realpath, (PROJECT, sys.prefix, sys.base_prefix)))
    needed = [folder for folder in folders if not folder.startswith(("/usr/", "/opt/")) and folder != "/usr"]
    variables = {
        **host.ENVIRONMENT,
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": str(HERE.parent),
    }
    if not setting.cgroup:
        variables["GEM_SANDBOX_CGROUP"] = "0"
    environment = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    trial = [sys.executable, "-B", "-m", "envelope.trial", str(path), str(setting)]
    owned = str(Path(sys.prefix) / "pyvenv.cfg")
    return [str(HERE / "enter.sh"), str(uid), controllers, owned, *needed, "--", *environment, *trial]


def excesses(peaks: dict[str, int], setting: Setting, copies: int) -> list[str]:
    found = []
    memory = (MEMORY_PEAK_CGROUP if setting.cgroup else MEMORY_PEAK) + ((copies - 1) << 30)
    if peaks.get("bytes", 0) > memory:
        found.append(Invariant.MEMORY.miss(f"it peaked at {peaks['bytes'] >> 20} MiB"))
    if peaks.get("processes", 0) >= PROCESSES_PEAK:
        found.append(Invariant.PROCESSES.miss(f"there were {peaks['processes']}"))
    return found


def cannot_run() -> str:
    """Why envelopes are not available on this machine; empty if they are."""
    if not sys.platform.startswith("linux"):
        return "envelopes need Linux"
    tried = subprocess.run(
        [str(HERE / "enter.sh"), str(FIRST_UID), "", "", "--", "true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if tried.returncode == 0:
        return ""
    return f"an envelope needs root or user namespaces, util-linux and iproute2: {tried.stderr.strip()[-300:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "settings", nargs="+", help="levels or backends with suffixes -root, -cgroup, -neighbours; or all"
    )
    parser.add_argument("--only", nargs="*", default=[""], help="prefixes of the names of programs to run")
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("--table", type=Path, help="file to write a table of the outcomes to")
    args = parser.parse_args(arguments)
    if reason := cannot_run():
        print(reason, file=sys.stderr)
        return 2
    if args.table and args.only != [""]:
        parser.error("a table is about all programs: leave out --only")
    given = matrix() if args.settings == ["all"] else [Setting.parse(text) for text in args.settings]
    chosen = [path for path in programs.paths() if path.name.startswith(tuple(args.only))]
    record = table.Record(args.table) if args.table else None
    runner = Runner(args.at_once)
    started = {
        setting: [runner.start(path, in_setting(setting, path) if record else setting) for path in chosen]
        for setting in given
        if not (record and record.has(setting))
    }
    unexpected = False
    for setting, futures in started.items():
        outcomes = []
        for future in futures:
            outcomes.append(future.result())
            show(outcomes[-1])
        print(score(setting, outcomes))
        unexpected |= any(outcome.misses and not known.miss(outcome.name, outcome.setting) for outcome in outcomes)
        unexpected |= any(outcome.unavailable for outcome in outcomes)
        if record:
            record.add(setting, outcomes)
    return int(unexpected)


def in_setting(setting: Setting, path: Path) -> Setting:
    """The setting, with neighbours if the program may starve them."""
    return replace(setting, neighbours=programs.load(path).starving)


def show(outcome: Outcome) -> None:
    state = "n/a" if outcome.unavailable else "MISS" if outcome.misses else "ok"
    bytes_, processes, cpu_ms = (outcome.peaks.get(what, 0) for what in ("bytes", "processes", "cpu_ms"))
    peaks = f"{bytes_ >> 20} MiB, {processes} processes, CPU {cpu_ms / 1000:.1f} s (host {outcome.host_cpu_s:.1f} s)"
    slower = "".join(f", {what} {factor:g} x" for what, factor in (outcome.slowdowns or {}).items())
    print(f"{state:5}{outcome.setting!s:25}{outcome.name:34}{outcome.seconds:6.1f} s  {peaks}{slower}", flush=True)
    for line in [outcome.unavailable] if outcome.unavailable else outcome.misses:
        print(f"       {line}", flush=True)


def score(setting: Setting, outcomes: Sequence[Outcome]) -> str:
    """One line: how many programs of each kind passed in a setting."""
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
    return f"{setting}: {', '.join(parts)}"


if __name__ == "__main__":
    sys.exit(main())
