"""Waiting for an event in tests."""

import time


def until(holds):
    deadline = time.monotonic() + 60  # a bound against hanging, not a measurement
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
