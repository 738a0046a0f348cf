"""What every test runs under: hypothesis without a clock, and the same examples each time."""

from hypothesis import settings

settings.register_profile("reproducible", deadline=None, derandomize=True, database=None)
settings.load_profile("reproducible")
