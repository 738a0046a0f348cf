"""Settings for all tests: reproducible hypothesis examples without deadlines, a working Ctrl-C, their own cache.

Tests marked "attack", "exhaustive" or "containers" run only if -m names the mark. `--quick` runs the tests of
`make quick`: those of QUICK that are not marked "slow" or "train", without PyTorch, even where it is installed.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

settings.register_profile("reproducible", deadline=None, derandomize=True, database=None)
settings.load_profile("reproducible")

# A shell makes background jobs, and the programs that they start, ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Generated catalogues, kept between runs; the name of a folder has a digest of what generates it.
os.environ.setdefault("GEM_CACHE", str(Path(tempfile.gettempdir()) / f"gem-tests-{os.getuid()}"))

# Which folders are of this user is recorded here, also by the commands that tests start.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="gem-tests-state-")

TESTS = Path(__file__).parent
# Folders of `make quick`, besides the files that are in none.
QUICK = {"cli", "conversation", "datasets", "envs", "graders", "policies", "rollout", "tools", "vector", "wrappers"}
QUICK_ENVS = {"forms", "games", "grids", "questions", "reasoning_gym", "table", "web", "words"}  # folders in tests/envs


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="run the tests of `make quick`")


def pytest_configure(config):
    if config.option.quick:
        sys.modules["torch"] = None  # its import takes seconds; pytest.importorskip("torch") skips


def pytest_ignore_collect(collection_path, config):
    if config.option.quick and collection_path.is_dir():
        first, *others = (*collection_path.relative_to(TESTS).parts, "")
        if first not in {*QUICK, ""} or (first == "envs" and not {*others} <= {*QUICK_ENVS, ""}):
            return True
    return None  # other hooks decide


def pytest_sessionfinish(session, exitstatus):
    file = os.environ.get("GEM_TEST_STATUS")  # of scripts/steps.sh
    if file and not hasattr(session.config, "workerinput"):
        Path(file).write_text(str(int(exitstatus)))


def pytest_collection_modifyitems(config, items):
    unwanted = [mark for mark in ("attack", "exhaustive", "containers") if mark not in config.option.markexpr]
    unwanted += ["slow", "train"] if config.option.quick else []
    left_out = {item for item in items if any(map(item.get_closest_marker, unwanted))}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def limit_after_output(monkeypatch) -> None:
    """Let the limit wall_s of programs in sandboxes pass when the first program has written something.

    Interpreters of sessions have a minute to react to the interrupt that follows.
    """
    from gem.sandbox import output, process
    from gem.sandbox.command import sandbox as command_sandbox
    from gem.sandbox.forkserver.host import execution, machine, session

    passed, add = [], output.Capture.add

    def add_and_pass(capture, data: bytes) -> None:
        add(capture, data)
        if data and not passed:
            passed.append(3600.0)

    monkeypatch.setattr(output.Capture, "add", add_and_pass)
    clock = SimpleNamespace(**{**vars(time), "monotonic": lambda: time.monotonic() + sum(passed)})
    for module in (command_sandbox, execution, machine, output, process, session):
        monkeypatch.setattr(module, "time", clock)
    for module in (command_sandbox, session):
        monkeypatch.setattr(module, "INTERRUPT_S", 60.0)


@pytest.fixture(scope="session")
def machines() -> None:
    """Skips tests where the kernel refuses what machines need. A machine that does not start there is a failure."""
    probe = pytest.importorskip("gem.sandbox.forkserver.host.probe")
    if reason := probe.why_not("ns"):
        pytest.skip(f"machines need namespaces: {reason}")


@pytest.fixture(scope="session")
def engine() -> str:
    """The engine of containers: podman, or the value of GEM_TEST_ENGINE. Skips tests where it is not installed."""
    name = os.environ.get("GEM_TEST_ENGINE", "podman")
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.fixture(scope="session")
def debian(engine: str) -> str:
    """The image of scripts/make-test-image. Skips tests where the engine or the image is missing."""
    image = os.environ.get("GEM_TEST_IMAGE", "localhost/debian:bookworm")
    if subprocess.run([engine, "image", "inspect", image], check=False, capture_output=True).returncode:
        pytest.skip(f"{engine} has no image {image}; scripts/make-test-image makes it")
    return image
