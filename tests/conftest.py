"""What every test runs under: hypothesis without a clock, the same examples each time, and a Ctrl-C that is heard."""

import signal

from hypothesis import settings

settings.register_profile("reproducible", deadline=None, derandomize=True, database=None)
settings.load_profile("reproducible")

# A shell that starts the tests in the background has them, and the programs that they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
