"""The official data of WebShop: converts its files once into a catalogue of gem.envs.web.webshop.store.

``$GEM_DATA/webshop`` has the files of products (items_shuffle.json or items_shuffle_1000.json), of attributes
(items_ins_v2.json or items_ins_v2_1000.json) and of human instructions (items_human_ins.json). They are read as
streams, because the full file of products has several gigabytes.

Goals are listed in file order and shuffled with random.Random(233), as published. The published simulator draws price
limits, and prices of products with a range, before it seeds; here they come from a stream of their own.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import msgspec

from gem.datasets import MissingData
from gem.datasets.load import GEM_DATA
from gem.envs.web.webshop import store
from gem.envs.web.webshop.products import Goal, Product
from gem.errors import BadValue
from gem.seeding import stream

SHUFFLE_SEED = 233
TEST_END, EVAL_END = 500, 1500  # goals before these indices are the splits test and eval
PRICE_LIMITS = [10.0 * step for step in range(1, 100)]
NO_LIMIT = 1_000_000.0
DEFAULT_PRICE = 100.0
CHUNK = 1 << 22  # characters read at once
HUMAN = "items_human_ins.json"
_MARK = re.compile(r"[\s,:]*")


def published_catalogue(file: str | None = None) -> store.Catalogue:
    """Open the catalogue of the official data; convert it into the cache first if that has not been done.

    Args:
        file: name of the file of products; None takes items_shuffle.json if it exists, else the first items_shuffle*.

    Raises:
        MissingData: a file is missing.
        BadValue: a file is malformed, or the cache cannot be written.
    """
    items, attributes, human = _files(file)
    stats = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in (items, attributes, human)]
    key = blake2b(json.dumps([stats, store.VERSION]).encode(), digest_size=8).hexdigest()
    return store.cached_catalogue(
        f"{items.stem}-{key}", partial(convert, items=items, attributes=attributes, human=human)
    )


def _files(file: str | None) -> tuple[Path, Path, Path]:
    root = os.environ.get(GEM_DATA)
    folder = Path(root or "", "webshop")
    names = (
        [file] if file else ["items_shuffle.json", *sorted(path.name for path in folder.glob("items_shuffle*.json"))]
    )
    items = next((folder / name for name in names if root and (folder / name).is_file()), None)
    if items is None:
        where = f"{folder / (file or 'items_shuffle*.json')} is missing" if root else f"{GEM_DATA} is not set"
        raise MissingData(
            f"no WebShop data: {where}; put items_shuffle*.json, items_ins_v2*.json and {HUMAN} of WebShop "
            f"(github.com/princeton-nlp/WebShop, setup.sh) into ${GEM_DATA}/webshop, or play webshop:Mini"
        )
    suffix = items.stem.removeprefix("items_shuffle")
    beside = [folder / f"items_ins_v2{suffix}.json", folder / "items_ins_v2.json"]
    attributes = next((path for path in beside if path.is_file()), beside[0])
    for path in (attributes, folder / HUMAN):
        if not path.is_file():
            raise MissingData(f"no WebShop data: {path} is missing; it belongs to {items.name}, or play webshop:Mini")
    return items, attributes, folder / HUMAN


def convert(folder: Path, *, items: Path, attributes: Path, human: Path) -> None:
    """Write a catalogue of the official data into an empty folder.

    Raises:
        BadValue: a file is malformed.
    """
    known = {asin: _attributes(entry) for asin, entry in stream_members(attributes)}
    instructions: dict[str, list[dict[str, Any]]] = dict(stream_members(human))
    rng = stream("webshop", "prices")
    goals: list[Goal] = []

    def products() -> Iterator[Product]:
        seen: set[str] = set()
        for item in stream_elements(items):
            asin = item["asin"]
            if asin == "nan" or len(asin) > 10 or asin in seen:
                continue
            product = product_of(item, known.get(asin), rng)
            for entry in instructions.get(asin, ()):
                if entry["instruction_attributes"]:
                    goals.append(goal_of(entry, product, len(seen), rng))
            seen.add(asin)
            yield product

    def groups() -> dict[str, list[Goal]]:
        if not goals:
            raise BadValue(f"{human}: has no instruction for a product of {items.name}")
        random.Random(SHUFFLE_SEED).shuffle(goals)
        return {"test": goals[:TEST_END], "eval": goals[TEST_END:EVAL_END], "train": goals[EVAL_END:]}

    try:
        store.write_catalogue(folder, products(), groups)
    except (KeyError, TypeError, AttributeError, IndexError) as e:
        raise BadValue(f"{items}: not the products of WebShop ({type(e).__name__}: {e})") from e


def product_of(item: dict[str, Any], attributes: bytes | None, rng: random.Random) -> Product:
    """Return the product of an entry of the file of products.

    Args:
        attributes: as JSON; None if the product has no entry in the file of attributes.
        rng: draws the price where the file gives a range.
    """
    prices = [float(re.sub(r"[^\d.]", "", part)) for part in (item.get("pricing") or "").split("$")[1:]] or [
        DEFAULT_PRICE
    ]
    bullets = item["small_description"]
    return Product(
        asin=item["asin"],
        title=item["name"],
        category=item["category"],
        query=item["query"].lower().strip(),
        product_category=item["product_category"],
        price=prices[0] if len(prices) == 1 else rng.uniform(*prices[:2]),
        price_tag=" to ".join(f"${price}" for price in prices[:2]),
        description=item["full_description"] or "",
        bullets=tuple(bullets if isinstance(bullets, list) else [bullets or ""]),
        options={
            name.lower(): tuple(content["value"].strip().replace("/", " | ").lower() for content in contents)
            for name, contents in (item.get("customization_options") or {}).items()
            if contents is not None
        },
        attributes=("DUMMY_ATTR",) if attributes is None else msgspec.json.decode(attributes, type=tuple[str, ...]),
        image=(item.get("images") or [""])[0] or "",
    )


def goal_of(entry: dict[str, Any], product: Product, number: int, rng: random.Random) -> Goal:
    """Return the goal of a human instruction, with a price limit drawn as in the published simulator."""
    limits = [limit for limit in PRICE_LIMITS if limit > product.price][:4]
    price_upper = max(rng.sample(limits, 2)) if len(limits) >= 2 else NO_LIMIT
    text = "" if price_upper == NO_LIMIT else f", and price lower than {price_upper:.2f} dollars"
    options = entry["instruction_options"]
    return Goal(
        instruction=entry["instruction"].strip(".") + text,
        target=number,
        attributes=tuple(entry["instruction_attributes"]),
        options=options if isinstance(options, dict) else tuple(options),
        price_upper=price_upper,
        title=product.title,
        query=product.query,
        product_category=product.product_category,
    )


def _attributes(entry: dict[str, Any]) -> bytes | None:
    # As bytes, because there are over a million entries.
    return msgspec.json.encode(entry["attributes"]) if "attributes" in entry else None


# ---- reading large JSON files


def stream_elements(path: Path) -> Iterator[Any]:
    """Yield the elements of the array that a JSON file holds. Raises BadValue for another or damaged file."""
    yield from _values(path, "[", "]")


def stream_members(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the (key, value) pairs of the object in a JSON file. Raises BadValue for another or damaged file."""
    values = iter(_values(path, "{", "}"))
    for key in values:
        try:
            yield key, next(values)
        except StopIteration:
            raise BadValue(f"{path}: the last key has no value") from None


def _values(path: Path, opening: str, closing: str) -> Iterable[Any]:
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8") as file:
        text, at = _more(file, ""), 0
        if not text.lstrip().startswith(opening):
            raise BadValue(f"{path}: should start with {opening!r}, got {text[:20]!r}")
        at = text.index(opening) + 1
        while True:
            mark = _MARK.match(text, at)
            at = mark.end() if mark else at
            if text[at : at + 1] == closing:
                return
            try:
                value, end = decoder.raw_decode(text, at)
                if end == len(text):
                    raise ValueError("a number may continue in the next chunk")
            except RecursionError:
                raise BadValue(f"{path}: a value is nested too deep") from None
            except ValueError as e:
                text = _more(file, text[at:], f"{path}: damaged JSON ({e})")
                at = 0
                continue
            at = end
            yield value


def _more(file: IO[str], rest: str, error: str = "") -> str:
    """Return the rest and the next chunk of a file. Raises BadValue with this message at the end of the file."""
    chunk = file.read(max(CHUNK, len(rest)))
    if not chunk and error:
        raise BadValue(error)
    return rest + chunk
