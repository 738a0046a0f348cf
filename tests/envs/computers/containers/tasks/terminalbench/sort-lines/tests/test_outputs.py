# canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
from pathlib import Path

import pytest


def test_the_lines_are_sorted():
    assert Path("/app/sorted").read_text() == "apple\nfig\npear\n"


@pytest.mark.parametrize("word", ["apple", "fig", "pear"])
def test_each_word_is_there(word):
    assert word in Path("/app/sorted").read_text()
