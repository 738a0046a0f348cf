"""Settings for all tests: reproducible hypothesis examples without deadlines, and a working Ctrl-C."""

import signal

from hypothesis import settings

settings.register_profile("reproducible", deadline=None, derandomize=True, database=None)
settings.load_profile("reproducible")

# A shell makes background jobs, and the programs that they start, ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
