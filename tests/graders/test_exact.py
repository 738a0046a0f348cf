"""Exact match and F1 of short answers."""

from __future__ import annotations

import pytest

from gem.errors import BadValue
from gem.graders.exact import exact_match, f1, normalize


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("The Eiffel Tower.", "eiffel tower"),
        ("  an   apple ", "Apple"),
        ("U.S.A.", "USA"),
        ("Café", "CAFE\u0301"),
        ("the who", "The Who"),
        ("The", "the"),
        ("!", "!"),
        ("well-known", "Well known"),
        ("1914–1918", "1914-1918"),
        ("1,000,000", "1000000"),
        ("50 percent", "50%"),
        ("50 per cent", "50 %"),
        ("Simon & Garfunkel", "Simon and Garfunkel"),
        ("“Hamlet”", "Hamlet"),
        ("don’t", "don't"),
        ("Paris, France", "paris france"),
        ("**Paris**", "Paris"),
        ("(Paris)", "Paris!"),
        ("Mr. Smith", "Mr Smith"),
        ("9 a.m.", "9 am"),
        ("−5", "-5"),
        ("$5", "5"),
        (".5", ".5."),
        ("C++", "c++."),
        ("STRASSE", "Straße"),
        ("the Lord of the Rings", "Lord of Rings"),
        ("किताब", "किताब।"),
        ("Yes.", "yes"),
    ],
)
def test_spelling_case_and_articles_do_not_matter(answer, gold):
    assert exact_match(answer, gold).correct and exact_match(answer, gold).reward == 1.0


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("the", "a"),
        ("", "The"),
        ("", "!"),
        ("The", "!"),
        ("theory", "ory"),
        ("apples", "apple"),
        ("Paris France", "Paris"),
        ("1.5", "15"),
        ("1.5", "1,5"),
        ("-5", "5"),
        ("3:30", "330"),
        ("1/2", "12"),
        ("50%", "50"),
        ("C", "C++"),
        ("C", "C#"),
        ("C++", "C#"),
        ("we're", "were"),
        ("I'll", "ill"),
        ("re-sign", "resign"),
        ("co-op", "coop"),
        ("vitamin A", "vitamin"),
        ("hepatitis a", "hepatitis"),
        ("the a", "a"),
        ("The The", "The"),
        ("café", "cafe"),
        ("€5", "$5"),
        ("😀", "😢"),
        ("किताब", "कताब"),
        ("1914-1918", "19141918"),
        ("10", "100"),
        ("no", "none"),
        ("New York", "York New"),
        ("cat dog", "catdog"),
    ],
)
def test_different_words_stay_different(answer, gold):
    assert not exact_match(answer, gold).correct and exact_match(answer, gold).reward == 0.0


def test_one_of_several_golds_suffices():
    assert exact_match("NYC", ["New York", "NYC"]).correct
    assert f1("NYC", ["New York City", "NYC"]).reward == 1.0


def test_f1_counts_shared_words():
    assert f1("the big red dog", "red dog").reward == pytest.approx(2 * 2 / 5)
    assert f1("dog dog", "dog").reward == pytest.approx(2 / 3)
    assert f1("cat", "dog").reward == 0.0
    assert f1("", "dog").reward == 0.0


def test_only_a_perfect_f1_is_correct():
    assert f1("A red dog", "red dog!").correct
    assert not f1("red", "red dog").correct


@pytest.mark.parametrize("gold", ["", " ", [], ["", "x"], None, [3]])
def test_an_empty_or_missing_gold_answer_is_rejected(gold):
    with pytest.raises(BadValue, match="gold must be"):
        exact_match("x", gold)


def test_only_blank_text_normalizes_to_an_empty_string():
    assert normalize("The a an") == "the a an"
    assert normalize("?!") == "?!"
    assert normalize("   ") == ""
