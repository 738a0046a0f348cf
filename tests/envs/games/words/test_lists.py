import subprocess
import sys
from importlib.resources import files

import pytest

from gem.envs.games.words import lists as words

DATA = files("gem.envs.games") / "data"


@pytest.mark.parametrize(("length", "least"), [(3, 250), (4, 1000), (5, 1500), (6, 2000), (7, 2000), (8, 2000)])
def test_there_are_enough_common_words_of_every_length(length, least):
    found = words.common(length)
    assert len(found) >= least
    assert list(found) == sorted(set(found))
    assert all(len(word) == length and word.isascii() and word.isalpha() and word.islower() for word in found)


@pytest.mark.parametrize(("length", "least"), [(3, 700), (4, 3000), (5, 6000)])
def test_far_more_words_are_accepted_than_common(length, least):
    accepted = words.accepted(length)
    assert len(accepted) >= least and accepted > set(words.common(length))
    assert all(len(word) == length and word.isascii() and word.isalpha() and word.islower() for word in accepted)


@pytest.mark.parametrize("length", [0, 2, 9])
def test_there_are_no_words_of_other_lengths(length):
    assert words.common(length) == () and words.accepted(length) == frozenset()


def test_openers_and_british_spellings_are_accepted_and_names_are_not():
    assert {"crane", "slate", "raise", "audio", "adieu", "fibre", "tests"} <= words.accepted(5)
    assert not {"paris", "james", "qwert", "aaaaa"} & words.accepted(5)


def test_no_crude_word_is_common():
    crude = {"sex", "tit", "crap", "rape", "slut", "anus", "whore", "penis", "bitch", "faggot", "rapist", "bastard"}
    assert not crude & {word for length in words.COMMON_LENGTHS for word in words.common(length)}


@pytest.mark.parametrize("name", ["common.txt", "accepted.txt"])
def test_each_word_list_names_its_source_and_has_its_licence_beside_it(name):
    head = [line for line in (DATA / name).read_text(encoding="ascii").splitlines() if line.startswith("#")]
    assert any("SCOWL" in line and "LICENSE-scowl.txt" in line for line in head)
    licence = (DATA / "LICENSE-scowl.txt").read_text(encoding="utf-8")
    assert name in licence and "Copyright 2000-2018 by Kevin Atkinson" in licence


def test_importing_a_word_game_reads_no_word_list():
    code = "from gem.envs.games.words import hangman, lists, wordle; print(lists._read.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


@pytest.mark.parametrize(
    ("action", "word"),
    [
        (r"\boxed{crane}", "crane"),
        (r"\boxed{ C r,a\n n e }".replace(r"\n", "\n"), "crane"),
        (r"\boxed{slate} no \boxed{crane} then \boxed{12}", "crane"),
        (r"\boxed{" + "a" * 32 + "}", "a" * 32),
        ("crane", None),
        ("", None),
        (r"\boxed{}", None),
        (r"\boxed{cr4ne}", None),
        (r"\boxed{é}", None),
        ("\\boxed{\u212a}", None),  # the Kelvin sign, a k only to re.IGNORECASE
        (r"\boxed{" + "a" * 33 + "}", None),
        (r"\boxed{" + "a " * 500_000 + "}", None),
        (r"\boxed{a" + " " * 1_000_000 + "1}", None),
        ("\x00\ud800", None),
    ],
)
def test_only_the_last_boxed_word_is_read(action, word):
    assert words.boxed(action) == word
