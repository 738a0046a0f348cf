"""Fail a test that cannot run on this machine, or skip it with GEM_ATTACK_MAY_SKIP=1."""

import os

import pytest

MAY_SKIP = os.environ.get("GEM_ATTACK_MAY_SKIP") == "1"


def fail_or_skip(reason: str) -> None:
    if MAY_SKIP:
        pytest.skip(reason)
    pytest.fail(f"{reason}  (GEM_ATTACK_MAY_SKIP=1 skips tests that cannot run)", pytrace=False)
