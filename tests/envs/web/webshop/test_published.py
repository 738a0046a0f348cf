"""The official data, in small files of their format: conversion, order of goals, and episodes of all six ids."""

from __future__ import annotations

import json
import random

import pytest

import gem
from gem.datasets import MissingData
from gem.envs.web.webshop import published
from gem.envs.web.webshop.env import WebshopEnv
from gem.envs.web.webshop.players import Oracle
from gem.envs.web.webshop.published import published_catalogue, stream_elements, stream_members
from gem.errors import BadValue

IDS = [f"webshop:{split}-{mode}" for split in ("train", "test") for mode in ("html", "text", "text_rich")]
COUNT = 800


def item(number, **changes):
    return {
        "asin": f"B{number:09d}",
        "name": f"Lamp model{number} brass",
        "category": "garden",
        "query": " Desk Lamps ",
        "product_category": "Office › Lighting › Lamps",
        "full_description": f"Lamp number {number}.",
        "small_description": ["bright", "long cord"],
        "pricing": f"${number % 90 + 1}.50",
        "customization_options": {"Color": [{"value": " Navy/Blue ", "image": None}, {"value": "Red"}], "size": None},
        "images": ["http://example.com/a.png"],
        **changes,
    }


def write_data(folder, items, *, attributes=None, human=None):
    folder.mkdir(parents=True, exist_ok=True)
    asins = [entry["asin"] for entry in items]
    given = {asin: {"attributes": ["bright", "dimmable"]} for asin in asins} if attributes is None else attributes
    entry = {"instruction": "buy a lamp.", "instruction_attributes": ["dimmable"], "instruction_options": ["red"]}
    asked = {asin: [{**entry, "instruction": f"goal {asin} {k}."} for k in (0, 1)] for asin in asins}
    (folder / "items_shuffle_1000.json").write_text(json.dumps(items, indent=1), encoding="utf-8")
    (folder / "items_ins_v2_1000.json").write_text(json.dumps(given), encoding="utf-8")
    (folder / "items_human_ins.json").write_text(json.dumps(asked if human is None else human), encoding="utf-8")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder / "webshop", [item(number) for number in range(COUNT)])
    return folder


@pytest.fixture
def official(data, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("GEM_DATA", str(data))
    monkeypatch.setenv("GEM_CACHE", str(data / "cache"))


@pytest.mark.parametrize("env_id", IDS)
def test_the_oracle_buys_the_target_in_every_published_id(env_id, official):
    with gem.make(env_id, matching="exact") as env:
        assert (env.max_turns, env.error_tolerance, env.format_error_reward) == (15, 15, -0.1)
        for seed in range(3):
            observation, info = env.reset(seed=seed)
            over = False
            while not over:
                observation, reward, terminated, truncated, info = env.step(Oracle(env).act(observation))
                over = terminated or truncated
            assert reward == 1.0 and info["success"]


def test_goals_are_in_the_published_order(official):
    shop = published_catalogue()
    expected = [f"goal B{number:09d} {k}" for number in range(COUNT) for k in (0, 1)]
    random.seed(233)
    random.shuffle(expected)
    found = [shop.goal(number).instruction.partition(", and price")[0] for number in range(2 * COUNT)]
    assert found == expected
    assert shop.groups == {"test": (0, 500), "eval": (500, 1500), "train": (1500, 2 * COUNT)}


def test_products_have_the_published_fields(official):
    product = published_catalogue().product(3)
    assert (product.query, product.price, product.price_tag) == ("desk lamps", 4.5, "$4.5")
    assert product.options == {"color": ("navy | blue", "red")} and product.attributes == ("bright", "dimmable")
    assert product.searched_text() == "lamp model3 brass lamp number 3. bright color: navy | blue, red"


def test_odd_products_are_read_as_published(tmp_path, monkeypatch):
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    monkeypatch.setenv("GEM_CACHE", str(tmp_path / "cache"))
    items = [item(0, pricing="$1,000.00 - $2,000.00"), item(1, pricing=""), item(0), item(2, asin="nan")]
    items += [item(3, asin="B12345678901"), item(4, small_description="one", customization_options=None)]
    write_data(tmp_path / "webshop", items, attributes={})
    shop = published_catalogue()
    products = [shop.product(number) for number in range(len(shop.products))]
    assert [product.asin[-1] for product in products] == ["0", "1", "4"]
    assert products[0].price_tag == "$1000.0 to $2000.0" and 1000 <= products[0].price <= 2000
    assert (products[1].price, products[1].price_tag, products[1].attributes) == (100.0, "$100.0", ("DUMMY_ATTR",))
    assert products[2].bullets == ("one",) and products[2].options == {}
    goals = [shop.goal(number) for number in range(*shop.groups["test"])]
    # A price above all limits has none, and the instruction does not name one.
    assert {goal.price_upper for goal in goals if goal.target == 0} == {1_000_000.0}
    assert all("price" not in goal.instruction for goal in goals if goal.target == 0)


@pytest.mark.parametrize("missing", ["items_shuffle_1000.json", "items_ins_v2_1000.json", "items_human_ins.json"])
def test_missing_files_are_named_in_one_line_with_the_way_out(tmp_path, monkeypatch, missing):
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    write_data(tmp_path / "webshop", [item(0)])
    (tmp_path / "webshop" / missing).unlink()
    with pytest.raises(MissingData, match=r"no WebShop data: .* or play webshop:Mini") as caught:
        WebshopEnv(matching="exact")
    assert "\n" not in str(caught.value)
    monkeypatch.delenv("GEM_DATA")
    with pytest.raises(MissingData, match="GEM_DATA is not set"):
        WebshopEnv(matching="exact")


def test_data_without_instructions_and_damaged_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    monkeypatch.setenv("GEM_CACHE", str(tmp_path / "cache"))
    write_data(tmp_path / "webshop", [item(0)], human={})
    with pytest.raises(BadValue, match="has no instruction for a product"):
        published_catalogue()
    write_data(tmp_path / "webshop", [item(0)])
    (tmp_path / "webshop" / "items_shuffle_1000.json").write_text('[{"asin": "B1"}]')
    with pytest.raises(BadValue, match=r"not the products of WebShop \(KeyError: "):
        published_catalogue()
    with pytest.raises(BadValue, match="split must be"):
        WebshopEnv(split="dev", matching="exact")


@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_large_files_are_read_in_pieces_of_any_size(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(published, "CHUNK", chunk)
    values = [{"a": [1, 2.5e3, "é]}"]}, 12345, 'x\\"y', None, [], {}]
    path = tmp_path / "values.json"
    path.write_text(json.dumps(values, indent=2), encoding="utf-8")
    assert list(stream_elements(path)) == values
    members = {"é": 1, "b": {"c": [True]}, "": ""}
    path.write_text(json.dumps(members, ensure_ascii=False), encoding="utf-8")
    assert dict(stream_members(path)) == members
    for text in ('[{"a": 1}, {"b"', "[1, 2", '{"a": 1}'):
        path.write_text(text)
        with pytest.raises(BadValue, match=r"damaged JSON|should start with"):
            list(stream_elements(path))
