"""Tests of tools share what stands beside them: agents.py, and servers to talk to."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
