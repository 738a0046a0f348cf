"""What becomes of a test that cannot run here: it fails, unless a switch says that it may be skipped."""

import os

import pytest

MAY_SKIP = os.environ.get("GEM_ATTACK_MAY_SKIP") == "1"


def cannot(reason: str) -> None:
    if MAY_SKIP:
        pytest.skip(reason)
    pytest.fail(f"{reason}  (GEM_ATTACK_MAY_SKIP=1 skips what cannot run)", pytrace=False)
