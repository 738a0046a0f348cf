"""A soak test of machines: kills of processes, fork servers and owners leave nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "soak_sandbox.py"


@pytest.mark.exhaustive
def test_a_soak_of_machines_leaves_nothing(machines):
    call = [sys.executable, str(SCRIPT), "--machines", "8", "--seconds", "10", "--kill-s", "4"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
