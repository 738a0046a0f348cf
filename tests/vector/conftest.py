"""The fixture environments, importable here and in worker processes (which take over sys.path), and registered."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gem.registry import ENV_REGISTRY

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def fixture_ids() -> Iterator[None]:
    """Registered while a module of this folder runs, so that no other test sees them."""
    from fixture_envs import SPECS

    ENV_REGISTRY.update({spec.id: spec for spec in SPECS})
    yield
    for spec in SPECS:
        del ENV_REGISTRY[spec.id]
