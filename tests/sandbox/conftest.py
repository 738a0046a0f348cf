"""Shared sandbox fixtures. The attack programs run only with `pytest -m attack`; their scores are printed at the end.

If a level is not available on this machine its tests fail, or are skipped with GEM_ATTACK_MAY_SKIP=1.
"""

import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the package envelope

import pytest
from envelope import runner
from envelope.availability import fail_or_skip

from gem.errors import SandboxError
from gem.sandbox import make_sandbox

OUTCOMES = []
collect_ignore_glob = ["attacks/*", "benign/*"]  # programs of the corpus must not be imported, whatever their names


OTHERS = [pytest.param(name, marks=pytest.mark.exhaustive) for name in ("lsm", "basic")]


@pytest.fixture(scope="module", params=["ns", *OTHERS])
def level(request):
    """Level ns of the zygote, and the others in exhaustive runs. Tests whose rule depends on it name levels."""
    try:
        make_sandbox("zygote", level=request.param).close()
    except SandboxError as e:
        fail_or_skip(f"level {request.param} is not available here: {e}")
    return request.param


@pytest.fixture(scope="module")
def sandbox(level, request):
    """A zygote sandbox with the LIMITS of the test module."""
    with make_sandbox("zygote", level=level, limits=request.module.LIMITS) as made:
        yield made


@pytest.fixture
def quick_gc():
    """Lets gc.collect() leave out the objects that exist now, which are millions beside other tests."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def outcomes():
    """Outcomes of the attack programs, for the scores."""
    return OUTCOMES


def pytest_terminal_summary(terminalreporter):
    for setting in dict.fromkeys(outcome.setting for outcome in OUTCOMES):
        chosen = [outcome for outcome in OUTCOMES if outcome.setting == setting]
        terminalreporter.write_line(f"corpus: {runner.score(setting, chosen)}")
