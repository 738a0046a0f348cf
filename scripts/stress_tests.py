"""Find tests that depend on load, order or chance: run the tests under six conditions, each with an order of its own.

    scripts/stress_tests.py [CONDITION...] [--steps test attack quick] [--seed 0]

Each condition runs `make test`, `make attack` and `make quick`, and what failed once more by itself, with a random
order of modules and of the tests in them, and with a PYTHONHASHSEED of its own. Outcomes are kept in build/stress, so
that an interrupted command continues if it is repeated. Results of another commit are replaced.

Needs Linux and pytest-random-order (extra [dev]); `forks` needs root and a writable cgroup.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "stress"
PYTHON = os.environ.get("VENV", ".venv") + "/bin/python"
CHANGE = 1e-5  # of initial weights
EIGHT = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
# Forks until the limit of the group, for as long as it is not killed.
FORKS = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
# sitecustomize.py of interpreters in which models start with other weights, and the wall clock jumps by an hour, back
# and forth, every 5 seconds. Processes of Ray keep their clock, because their time limits are by the wall clock.
SITECUSTOMIZE = """
import importlib.util, sys, time

def stepped(read, hour, monotonic=time.monotonic):
    return lambda: read() + hour * (int(monotonic() / 5) * 7 % 3 - 1)

if not any("/ray/" in word for word in sys.orig_argv):
    time.time, time.time_ns = stepped(time.time, 3600.0), stepped(time.time_ns, 3600 * 10**9)

class Weights:
    def find_spec(self, name, path=None, target=None):
        if name != "transformers.modeling_utils":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (load(module), change(module.PreTrainedModel))
        return spec

def change(models):
    import torch
    original = models.post_init

    def post_init(self):
        original(self)
        with torch.no_grad():
            for parameter in self.parameters():
                noise = torch.rand(parameter.shape, generator=torch.Generator().manual_seed(1))
                parameter.add_((CHANGE * (2 * noise - 1)).to(parameter))

    models.post_init = post_init

sys.meta_path.insert(0, Weights())
"""


@contextlib.contextmanager
def beside(command: list[str], **options: object) -> Iterator[None]:
    """Context manager that keeps another process running, and starts it again if it ends.

    The process and its children are a session of their own. Where the scheduler shares the time between sessions, they
    get no more of it than the tests.
    """
    stop = threading.Event()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def keep() -> None:
        while not stop.is_set():
            process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **quiet, **options)
            while process.poll() is None and not stop.wait(0.5):
                pass
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def order() -> Iterator[dict[str, str]]:
    yield {}


@contextlib.contextmanager
def training() -> Iterator[dict[str, str]]:
    name = "stress"
    command = [PYTHON, "-m", "gem", "train", "--name", name, "--overwrite", "--steps", "300", "--threads", "2"]
    with beside(command):
        yield {}


@contextlib.contextmanager
def busy() -> Iterator[dict[str, str]]:
    with beside([sys.executable, "-c", EIGHT]):
        yield {}


@contextlib.contextmanager
def forks() -> Iterator[dict[str, str]]:
    """A fork bomb of at most 20 processes, which together get as much time as one process.

    With 200, moving a process into a cgroup takes a minute, because it waits for every fork that has begun.
    """
    root = Path("/sys/fs/cgroup")
    parents = [root / "pids", root / "cpu"] if (root / "pids").exists() else [root]
    groups = [parent / f"gem-stress-{os.getpid()}" for parent in parents]

    def enter() -> None:
        for group in groups:
            (group / "cgroup.procs").write_text("0")

    for group in groups:
        group.mkdir()
    try:
        (groups[0] / "pids.max").write_text("20")
        with beside([sys.executable, "-c", FORKS], preexec_fn=enter):
            yield {}
    finally:
        (groups[0] / "pids.max").write_text("0")  # no more forks
        while pids := (groups[0] / "cgroup.procs").read_text().split():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
        for group in reversed(groups):
            group.rmdir()


@contextlib.contextmanager
def one_core() -> Iterator[dict[str, str]]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield {}
    finally:
        os.sched_setaffinity(0, cores)


@contextlib.contextmanager
def weights() -> Iterator[dict[str, str]]:
    """Other initial weights, and a wall clock that jumps by an hour every few seconds; the monotonic clock does not.

    Both hold in all interpreters but those of sandboxes.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        Path(folder, "sitecustomize.py").write_text(SITECUSTOMIZE.replace("CHANGE", str(CHANGE)))
        yield {"PYTHONPATH": folder}


CONDITIONS = {c.__name__.replace("_", "-"): c for c in (order, training, busy, forks, one_core, weights)}


def make(target: str, env: dict[str, str], options: str, jobs: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **env, "PYTEST_ADDOPTS": f"{env.get('PYTEST_ADDOPTS', '')} {options}", "JOBS": jobs}
    return subprocess.run(["make", target], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False)


def failures(cache: str) -> list[str]:
    file = Path(cache, "v/cache/lastfailed")
    return sorted(json.loads(file.read_text())) if file.exists() else []


def run(condition: str, target: str, seed: int, commit: str) -> bool:
    """Run one target under a condition, unless its outcome is kept. Returns whether a test failed twice."""
    file = RESULTS / f"{condition}-{target}-{seed}.json"
    if file.exists() and (kept := json.loads(file.read_text()))["commit"] == commit != "":
        return bool(kept["failed again"])
    hash_seed = random.Random(f"{condition}{seed}").randrange(2**32)
    shuffled = f"--random-order-bucket=module --random-order-seed={hash_seed}"
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as cache, CONDITIONS[condition]() as env:
        env |= {"PYTHONHASHSEED": str(hash_seed)}
        first = make(target, env, f"-o cache_dir={cache} {shuffled}", "2")
        failed = failures(cache)
        again = []
        if first.returncode:
            only = "--last-failed --last-failed-no-failures=none"
            second = make(target, env, f"-o cache_dir={cache} {shuffled} {only}", "0")
            again = failures(cache) or ([f"exit status {second.returncode}"] if second.returncode else [])
    summary = re.findall(r"^.*\d (?:passed|failed).* in .*$", first.stdout, re.MULTILINE)[-1:]
    if not summary:
        print(f"{condition:9} {target:7} pytest did not run: {first.stdout[-2000:]}", flush=True)
        return True
    found = {"commit": commit, "seconds": round(time.monotonic() - start), "summary": summary}
    file.write_text(json.dumps({**found, "failed": failed, "failed again": again}, indent=1))
    file.with_suffix(".log").write_text(first.stdout + (second.stdout if first.returncode else ""))
    print(f"{condition:9} {target:7} {found['seconds']:6d} s  {summary}", flush=True)
    for test in failed:
        print(f"    {'failed twice' if test in again else 'second try'}: {test}", flush=True)
    return bool(again)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("conditions", nargs="*", metavar="CONDITION", help=", ".join(CONDITIONS))
    parser.add_argument("--steps", nargs="+", default=["test", "attack", "quick"])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True).stdout:
        commit = ""  # outcomes of uncommitted changes are not kept
    pairs = [(condition, target) for condition in args.conditions or CONDITIONS for target in args.steps]
    return int(sum(run(condition, target, args.seed, commit) for condition, target in pairs) > 0)


if __name__ == "__main__":
    sys.exit(main())
