"""Fixtures for the tests of commands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gem.cli import main


@pytest.fixture
def usage_error(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that has to fail with exit code 2 and one line on stderr; returns the line."""

    def run(*argv: str) -> str:
        assert main(argv) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("gem: error: ") and captured.err.count("\n") == 1
        return captured.err

    return run
