"""The hostile programs run when they are asked for, `pytest -m attack`, and never otherwise; the scores come last."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the package envelope

import pytest
from envelope import runner

OUTCOMES = []


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
