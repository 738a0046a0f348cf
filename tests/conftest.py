"""Settings for all tests: reproducible hypothesis examples without deadlines, a working Ctrl-C, their own cache."""

import os
import signal
import tempfile
from pathlib import Path

from hypothesis import settings

settings.register_profile("reproducible", deadline=None, derandomize=True, database=None)
settings.load_profile("reproducible")

# A shell makes background jobs, and the programs that they start, ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Generated catalogues, kept between runs; the name of a folder has a digest of what generates it.
os.environ.setdefault("GEM_CACHE", str(Path(tempfile.gettempdir()) / f"gem-tests-{os.getuid()}"))
