"""The generated catalogue: what products and goals promise, by brute force over all products of a small one."""

from __future__ import annotations

import itertools
import random

import pytest

from gem.envs.web.webshop import mini, store
from gem.envs.web.webshop.mini import MIN_PRODUCTS, mini_catalogue
from gem.envs.web.webshop.nouns import word_nouns
from gem.envs.web.webshop.rewards import score
from gem.envs.web.webshop.vocabulary import DEPARTMENTS
from gem.errors import BadValue

PRODUCTS = MIN_PRODUCTS + 40


@pytest.fixture(scope="module")
def shop():
    return mini_catalogue(PRODUCTS, 3)


def best_reward(product, goal):
    """The reward for buying a product after choosing every option of the goal that it has."""
    chosen = [value for name, value in goal.options.items() if value in product.options.get(name, ())]
    return score(product, chosen, goal, nouns=word_nouns, matching="exact").reward


def goals_of(shop, group, count):
    start, end = shop.groups[group]
    return [shop.goal(number) for number in random.Random(0).sample(range(start, end), min(count, end - start))]


def test_the_catalogue_has_as_many_products_as_asked_for_in_sixty_categories(shop):
    products = [shop.product(number) for number in range(len(shop.products))]
    assert len(products) == PRODUCTS and len({product.asin for product in products}) == PRODUCTS
    assert len({product.title for product in products}) == PRODUCTS
    assert len({product.query for product in products}) == 60


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("split", ["train", "test"])
def test_exactly_the_products_named_perfect_score_one(shop, split, level):
    products = [shop.product(number) for number in range(len(shop.products))]
    for goal in goals_of(shop, f"{split}-{level}", 4):
        best = [number for number, product in enumerate(products) if best_reward(product, goal) == 1.0]
        assert tuple(best) == goal.perfect and 1 <= len(best) <= 5 and goal.target in best


@pytest.mark.parametrize("level", [1, 2, 3])
def test_each_goal_has_a_product_that_fails_each_condition_alone(shop, level):
    products = [shop.product(number) for number in range(len(shop.products))]
    for goal in goals_of(shop, f"train-{level}", 4):
        missed = set()
        for product in products:
            faults = ["kind"] * (product.query != goal.query) + ["price"] * (product.price > goal.price_upper)
            faults += ["attribute" for wanted in goal.attributes if wanted not in product.attributes]
            faults += ["option" for name, v in goal.options.items() if v not in product.options.get(name, ())]
            missed |= set(faults) if len(faults) == 1 else set()
        assert missed >= {"kind", "price", "attribute"} | ({"option"} if level > 1 else set())


@pytest.mark.parametrize("level", [2, 3])
def test_the_right_product_with_another_option_or_without_one_does_not_score_one(shop, level):
    for goal in goals_of(shop, f"train-{level}", 6):
        product, wanted = shop.product(goal.perfect[0]), list(goal.options.values())
        assert score(product, wanted, goal, nouns=word_nouns, matching="exact").reward == 1.0
        for place, (name, value) in enumerate(goal.options.items()):
            without = wanted[:place] + wanted[place + 1 :]
            for others in ([], *([other] for other in product.options[name] if other != value)):
                assert score(product, without + others, goal, nouns=word_nouns, matching="exact").reward < 1.0


def test_no_product_is_right_for_goals_of_both_splits(shop):
    right = {"train": set(), "test": set()}
    for (split, found), level in itertools.product(right.items(), (1, 2, 3)):
        for goal in goals_of(shop, f"{split}-{level}", 10**9):
            found |= set(goal.perfect)
    assert right["train"] and right["test"] and not right["train"] & right["test"]


def test_higher_levels_name_more_conditions(shop):
    for level, (attributes, options) in {1: (2, 0), 2: (2, 1), 3: (3, 2)}.items():
        for goal in goals_of(shop, f"train-{level}", 20):
            assert (len(goal.attributes), len(goal.options)) == (attributes, options)
            assert all(text in goal.instruction for text in [*goal.attributes, *goal.options.values(), goal.query])


def test_the_same_seed_generates_the_same_catalogue_and_another_one_does_not(tmp_path):
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / name).mkdir()
        mini.build(tmp_path / name, products=MIN_PRODUCTS, seed=seed)
        texts.append((tmp_path / name / "products.jsonl").read_bytes() + (tmp_path / name / "goals.jsonl").read_bytes())
    assert texts[0] == texts[1] != texts[2]


def test_words_of_kinds_are_distinct_and_no_attribute_contains_another():
    kinds = [kind for department in DEPARTMENTS for kind in department.kinds]
    words = [word for kind in kinds for word in kind.split()]
    assert len(kinds) == len(set(kinds)) == 60 and len(words) == len(set(words))
    for department in DEPARTMENTS:
        attributes = [*department.makes, *department.uses, *department.extras]
        assert len(attributes) == 18
        assert not [(a, b) for a, b in itertools.permutations(attributes, 2) if a in b]
        values = [value for group in department.options.values() for value in group]
        assert len(values) == len(set(values))


def test_too_few_products_are_refused():
    with pytest.raises(BadValue, match=f"products must be an integer of at least {MIN_PRODUCTS}, got 12"):
        mini_catalogue(12, 0)


def test_a_cache_that_cannot_be_written_names_the_variable_that_moves_it(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(store.GEM_CACHE, str(tmp_path / "file"))
    with pytest.raises(BadValue, match="set GEM_CACHE to another folder"):
        mini_catalogue(MIN_PRODUCTS, 0)


def test_a_failed_build_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv(store.GEM_CACHE, str(tmp_path))

    def fail(folder):
        (folder / "products.jsonl").write_text("{}")
        raise ValueError("stopped")

    with pytest.raises(ValueError, match="stopped"):
        store.cached_catalogue("broken", fail)
    assert [path.suffix for path in (tmp_path / "webshop").iterdir()] == [".lock"]
