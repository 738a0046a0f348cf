"""The help of gem export. What the exporters write is tested with their environments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gem.cli import main
from gem.core import Env
from gem.errors import MissingDependency
from gem.registry import ENV_REGISTRY, register_exporter


def rows(env: Env) -> Callable[[Path, str], None]:
    """Rows of a file.

    Not shown.
    """
    raise MissingDependency("rows is required")


def test_the_help_names_the_registered_formats(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ENV_REGISTRY, "_exporters", {**ENV_REGISTRY._exporters})
    register_exporter("rows", rows)
    register_exporter("broken", "gem.no_such_module:export")
    assert main(["export", "--help"]) == main(["help", "export"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n  rows    Rows of a file.\n") == 2 and "Not shown" not in out
    assert out.count("\n  broken\n") == 2 and out.count("\n  harbor  Harbor folders") == 2
