"""The sandboxes that tests share. And the hostile programs: they run when they are asked for, `pytest -m attack`, and
never otherwise; their scores come last.

A level that cannot hold on this machine fails its tests; GEM_ATTACK_MAY_SKIP=1 skips them instead.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the package envelope

import pytest
from envelope import runner
from envelope.switch import cannot

from gem.errors import SandboxError
from gem.sandbox import make_sandbox

OUTCOMES = []


@pytest.fixture(scope="module", params=["ns", "lsm", "basic"])
def level(request):
    """Each level of the zygote, which holds here."""
    try:
        make_sandbox("zygote", level=request.param).close()
    except SandboxError as e:
        cannot(f"level {request.param} cannot hold here: {e}")
    return request.param


@pytest.fixture(scope="module")
def sandbox(level, request):
    """A zygote of each level, with the module's LIMITS."""
    with make_sandbox("zygote", level=level, limits=request.module.LIMITS) as made:
        yield made


@pytest.fixture(scope="session")
def outcomes():
    """What the programs of the corpus did, for the scores."""
    return OUTCOMES


def pytest_collection_modifyitems(config, items):
    if "attack" in config.option.markexpr:
        return
    hostile = [item for item in items if item.get_closest_marker("attack")]
    if hostile:
        config.hook.pytest_deselected(items=hostile)
        items[:] = [item for item in items if item not in set(hostile)]


def pytest_terminal_summary(terminalreporter):
    for level in dict.fromkeys(outcome.level for outcome in OUTCOMES):
        chosen = [outcome for outcome in OUTCOMES if outcome.level == level]
        terminalreporter.write_line(f"corpus at level {runner.score(level, chosen)}")
