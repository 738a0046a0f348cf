"""The reward of a purchase against a slow twin written from its definition."""

from __future__ import annotations

import itertools
import random

import pytest

from gem.envs.web.webshop.nouns import noun_rule, nouns_by, word_nouns
from gem.envs.web.webshop.products import Goal, Product
from gem.envs.web.webshop.rewards import COLORS, matcher, score
from gem.errors import BadValue, MissingDependency

WORDS = ["oak", "desk", "lamp", "chair", "steel", "shelf", "table", "box", "bed", "sofa", "stool", "rack"]
ATTRIBUTES = ["easy to clean", "Easy-to-clean!", "solid wood", "non slip", "stain resistant", "stain resistan"]
OPTIONS = ["navy blue", "blue", "twin xl", "twin", "queen size", "queen-size", "12 inch", "12 inches"]
CATEGORIES = ["Home › Furniture › Beds", "Home › Furniture › Desks", "Home › Kitchen", "Garden › Tools"]


def twin(product, chosen, goal, similar, reduce, as_text):
    """The published formula in plain loops."""
    wanted = word_nouns(goal.title)
    shared = 0
    for noun in set(wanted):
        shared += noun in word_nouns(product.title)
    overlap = shared / len(wanted) if wanted else 0.2
    mine, theirs = ({c.strip() for c in p.product_category.split("›")} for p in (product, goal))
    r_type = 1.0 if product.query == goal.query or len(mine & theirs) >= 2 or overlap > 0.2 else 0.5
    if overlap < 0.1:
        r_type = 0.1
    if overlap == 0:
        r_type = 0.0
    hits = 0
    for attribute in goal.attributes:
        found = False
        for own in product.attributes:
            found = found or similar(own, attribute)
        for text in (product.title, " ".join(product.bullets), product.description):
            found = found or attribute in text.lower()
        hits += found
    wishes = [as_text(pair) for pair in goal.options.items()] if isinstance(goal.options, dict) else goal.options
    for wish in wishes:
        found = False
        for value in chosen:
            found = found or similar(reduce(value), reduce(wish))
        hits += found
    hits += product.price <= goal.price_upper
    return hits / (len(goal.attributes) + len(goal.options) + 1) * r_type


def pairs(count):
    """Yield (product, chosen options, goal) of all kinds."""
    rng = random.Random(7)

    def title():
        return " ".join(rng.choices(WORDS, k=rng.randint(0, 14)))

    for _ in range(count):
        attributes = tuple(rng.sample(ATTRIBUTES, 2))
        text = rng.choice(["", "It is non slip.", "SOLID WOOD"])
        product = Product(
            "B0", title(), "c", rng.choice("ab"), rng.choice(CATEGORIES), rng.uniform(1, 90), "", text, (text,)
        )
        product = Product(**{**{f: getattr(product, f) for f in product.__struct_fields__}, "attributes": attributes})
        wishes = rng.sample(OPTIONS, rng.randint(0, 2))
        options = dict(zip(("color", "size"), wishes, strict=False)) if rng.random() < 0.5 else tuple(wishes)
        wanted = tuple(rng.sample(ATTRIBUTES, rng.randint(1, 3)))
        goal = Goal("", 0, wanted, options, 50.0, title(), rng.choice("ab"), rng.choice(CATEGORIES))
        yield product, rng.sample(OPTIONS, rng.randint(0, 3)), goal


def squeezed(text):
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def test_exact_rewards_equal_those_of_the_twin_for_every_value_of_r_type():
    seen = set()
    for product, chosen, goal in pairs(2000):
        result = score(product, chosen, goal, nouns=word_nouns, matching="exact")
        seen.add(result.r_type)
        expected = twin(product, chosen, goal, lambda a, b: squeezed(a) == squeezed(b), lambda o: o, lambda p: p[1])
        assert result.reward == expected
        assert sum(result.parts.values()) == pytest.approx(result.reward)
    assert seen == {0.0, 0.1, 0.5, 1.0}


def test_fuzzy_rewards_equal_those_of_the_twin_with_options_as_dict_and_as_list():
    fuzz = pytest.importorskip("rapidfuzz.fuzz")

    def similar(one, other):
        return round(fuzz.token_set_ratio(squeezed(one), squeezed(other))) > 85

    def reduce(option):
        found = [color for color in COLORS if color in option]
        return found[0] if found else option

    def as_text(pair):
        named = [color for color in COLORS if color in pair]
        return named[0] if named else Whole(" ".join(pair))

    class Whole(str):
        """Not reduced: the published comparison looks for a color that equals the name or the value."""

        def __contains__(self, color):
            return False

    for product, chosen, goal in pairs(2000):
        result = score(product, chosen, goal, nouns=word_nouns, matching="fuzzy")
        assert result.reward == twin(product, chosen, goal, similar, reduce, as_text)


def test_fuzzy_ratios_are_rounded_before_the_comparison_with_85():
    fuzz = pytest.importorskip("rapidfuzz.fuzz")
    similar, rounded = matcher("fuzzy"), set()
    for one, other in itertools.product(["a" * n + "b" * 9 for n in range(1, 60)], ["a" * n for n in range(1, 60)]):
        ratio = fuzz.token_set_ratio(one, other)
        assert similar(one.upper(), f"{other}!") == (round(ratio) > 85)
        rounded.add(round(ratio))
    assert {84, 85, 86} <= rounded


def test_exact_matching_needs_no_library_and_says_so_if_fuzzy_lacks_one(monkeypatch):
    import sys

    from gem.envs.web.webshop import rewards

    rewards._similar_enough.cache_clear()
    monkeypatch.setitem(sys.modules, "rapidfuzz.fuzz", None)
    assert matcher("exact")("Easy-to-clean", "easy to clean")
    with pytest.raises(MissingDependency, match="pip install 'rapidfuzz"):
        matcher("fuzzy")
    with pytest.raises(BadValue, match="matching must be"):
        matcher("close")


def test_a_noun_overlap_below_a_tenth_overrides_the_same_query():
    goal = Goal("", 0, ("x",), (), 50.0, " ".join(WORDS), "a", "A › B")
    for title, r_type in (("oak", 0.1), ("velvet", 0.0), ("oak desk", 1.0)):
        product = Product("B0", title, "c", "a", "A › B", 1.0, "")
        assert score(product, [], goal, nouns=word_nouns, matching="exact").r_type == r_type


def test_the_word_rule_keeps_words_that_are_probably_nouns():
    assert word_nouns("Soft USB-C Cable for Phones, 2m (Pack of 3)") == ["usb", "cable", "phones", "pack"]
    assert nouns_by(noun_rule("words")) is word_nouns
    assert noun_rule("auto") in ("spacy", "words")
    with pytest.raises(BadValue, match="nouns must be"):
        noun_rule("verbs")
