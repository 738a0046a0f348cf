"""Exact match and F1 of short answers."""

from __future__ import annotations

import pytest

from gem.errors import BadValue
from gem.graders.exact import exact_match, f1, hotpotqa_f1, normalize, squad_em, squad_f1, squad_normalize


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


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("1990's", "1990s"),
        ("Ph.D.", "phd"),
        ("co-op", "coop"),
        ("1.5", "15"),
        ("-5 %", "5"),
        ("The  Theory of an Atom", "theory of atom"),
        ("Vitamin A", "vitamin"),
        ("a-b the.c", "ab thec"),  # punctuation goes first, so these articles are parts of words
        ("24–10, the’s", "24–10 ’s"),  # only ASCII punctuation is deleted
        ("Café №1", "café №1"),
        ("The", ""),
    ],
)
def test_squad_deletes_punctuation_and_then_articles(text, normalized):
    assert squad_normalize(text) == normalized


@pytest.mark.parametrize("answer", ["1990's", "Ph.D.", "the a", "York New", "", "yes", "no, not at all", "a b b"])
@pytest.mark.parametrize("gold", ["1990s", "PhD", "A", "New York", "yes", "no", "b b b"])
def test_the_scores_of_squad_and_hotpotqa_equal_those_of_their_definition(answer, gold):
    """SQuAD: equality, and the harmonic mean of precision and recall. HotpotQA: yes and no are right or wrong."""
    ours, theirs = squad_normalize(answer), squad_normalize(gold)
    words, left = ours.split(), theirs.split()
    same = sum(word in left and left.remove(word) is None for word in words)
    expected = 0.0
    if same:
        precision, recall = same / len(words), same / len(theirs.split())
        expected = 2 * precision * recall / (precision + recall)
    assert squad_em(answer, gold).reward == float(ours == theirs)
    assert squad_f1(answer, gold).reward == pytest.approx(expected)
    closed = ours != theirs and {ours, theirs} & {"yes", "no", "noanswer"}
    assert hotpotqa_f1(answer, gold).reward == pytest.approx(0.0 if closed else expected)


def test_yes_and_no_earn_nothing_for_shared_words_in_hotpotqa():
    assert squad_f1("no, not at all", "no").reward == pytest.approx(0.4)
    assert hotpotqa_f1("no, not at all", "no").reward == hotpotqa_f1("no", "no answer yet").reward == 0.0
    assert hotpotqa_f1("No!", "no").correct and hotpotqa_f1("noanswer", "noanswer").correct
    assert hotpotqa_f1("no", ["never", "no"]).correct
