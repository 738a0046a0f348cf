"""Make the helper modules importable, but not the folders of tests: one has the name of the library mcp."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
