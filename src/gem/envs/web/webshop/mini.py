"""The catalogue of webshop:Mini: products and goals generated from a seed.

A kind has cells of about nine products with one attribute of ``makes`` and one of ``uses``. In a cell, two designs have
a lead and three near misses of it: without one value of an option (the description mentions the value, so that a search
finds it), without one extra attribute, and too expensive. The neighbouring kind has the same designs, so that the near
miss in kind exists as well. Cells belong to one split, and a goal names both attributes of its cell: no product that is
right in one split is right in the other.

Levels: 1 names the kind, both attributes and a price limit; 2 also one option; 3 also an extra attribute and a second
option. The products that score 1 are counted, not assumed; a goal has one to five of them and a near miss of each
condition that it names.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import product as pairs_of
from pathlib import Path

from gem._internal.counts import check_count
from gem.envs.web.webshop import store
from gem.envs.web.webshop.products import Goal, Product
from gem.envs.web.webshop.vocabulary import DEPARTMENTS, SOURCE, SYLLABLES, Department
from gem.seeding import stream

LEVELS = (1, 2, 3)
KINDS = sum(len(department.kinds) for department in DEPARTMENTS)
MAX_CELLS, DESIGNS, LARGEST_PERFECT = 36, 2, 5
CELL = DESIGNS * 4 + 1  # products of a cell
MIN_PRODUCTS = KINDS * CELL * 2  # two cells per kind, one for each split

TEMPLATES = (
    "i am looking for {kind} with {attributes}{options}, and price lower than {price} dollars",
    "find me {kind}, {attributes}{options}, and price lower than {price} dollars",
    "i want to buy {kind} that come with {attributes}{options}, and price lower than {price} dollars",
)


@dataclass(frozen=True)
class Item:
    """A product before it is described: what conditions compare."""

    kind: str
    make: str
    use: str
    extras: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    price: float
    sold_out: str = ""  # a value of an option that the description mentions


@dataclass(frozen=True)
class Wish:
    """The conditions of a goal."""

    kind: str
    make: str
    use: str
    price_upper: float
    extra: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def faults(self, item: Item) -> list[str]:
        """Return the names of the conditions that an item violates."""
        found = ["kind"] * (item.kind != self.kind)
        found += ["attribute"] * (item.make != self.make) + ["attribute"] * (item.use != self.use)
        found += ["attribute"] * (self.extra is not None and self.extra not in item.extras)
        found += ["option" for name, value in self.options if value not in item.options.get(name, ())]
        return found + ["price"] * (item.price > self.price_upper)

    def conditions(self) -> set[str]:
        return {"kind", "attribute", "price"} | {"option" for _ in self.options[:1]}


def mini_catalogue(products: int, seed: int) -> store.Catalogue:
    """Open the catalogue of this size and seed; build it into the cache if it is missing.

    Raises:
        BadValue: fewer than MIN_PRODUCTS products, or the cache cannot be written.
    """
    check_count("products", products, MIN_PRODUCTS)
    return store.cached_catalogue(f"mini-{products}-{seed}-{_sources()}", partial(build, products=products, seed=seed))


def build(folder: Path, *, products: int, seed: int) -> None:
    """Write the catalogue into an empty folder."""
    rng = stream("webshop", "catalogue", seed)
    brands = _brands(rng)
    items, test_cells = _items(products, rng)
    rng.shuffle(items)
    codes = _codes(len(items), rng)
    described = (
        _described(item, brands[item.kind], code, number, rng)
        for number, (item, code) in enumerate(zip(items, codes, strict=True))
    )
    listed = list(described)
    store.write_catalogue(folder, listed, lambda: _goals(items, listed, test_cells, rng))


def _sources() -> str:
    """Return a digest of the generator and its words, so that a change of them does not open an old catalogue."""
    return blake2b(Path(__file__).read_bytes() + SOURCE, digest_size=6).hexdigest()


# ---- products


def _items(count: int, rng: random.Random) -> tuple[list[Item], set[tuple[str, str, str]]]:
    """Return the items in any order, and the cells (kind, make, use) whose goals are of the test split."""
    cells_per_kind = min(MAX_CELLS, count // (KINDS * CELL))
    items: list[Item] = []
    test: set[tuple[str, str, str]] = set()
    for department in DEPARTMENTS:
        for first in range(0, len(department.kinds), 2):
            cells = list(pairs_of(department.makes, department.uses))[:cells_per_kind]
            for number, (make, use) in enumerate(cells):
                designs = [_design(department, make, use, rng) for _ in range(DESIGNS)]
                for kind in department.kinds[first : first + 2]:
                    for design in designs:
                        items += _variants(replace(design, kind=kind), department, rng)
                    items.append(replace(_design(department, make, use, rng), kind=kind))
                    if number % 5 == 1:
                        test.add((kind, make, use))
    while len(items) < count:
        department = rng.choice(DEPARTMENTS)
        cells = list(pairs_of(department.makes, department.uses))[:cells_per_kind]
        items.append(replace(_design(department, *rng.choice(cells), rng), kind=rng.choice(department.kinds)))
    return items, test


def _design(department: Department, make: str, use: str, rng: random.Random) -> Item:
    options = {
        name: tuple(sorted(rng.sample(values, rng.randint(3, 5)), key=values.index))
        for name, values in department.options.items()
    }
    price = round(math.exp(rng.uniform(math.log(9), math.log(180))), 2)
    return Item("", make, use, tuple(rng.sample(department.extras, 2)), options, price)


def _variants(lead: Item, department: Department, rng: random.Random) -> list[Item]:
    """Return an item and near misses of it in an option, an extra attribute and the price."""
    name = rng.choice(list(lead.options))
    values = list(lead.options[name])
    values.remove(gone := rng.choice(values))
    others = [extra for extra in department.extras if extra not in lead.extras]
    kept = rng.randrange(2)
    fewer = replace(lead, options={**lead.options, name: tuple(values)}, price=_near(lead.price, rng), sold_out=gone)
    other = replace(lead, extras=(lead.extras[kept], rng.choice(others)), price=_near(lead.price, rng))
    dearer = replace(lead, price=round(lead.price * rng.uniform(1.25, 1.7) + 2, 2))
    return [lead, fewer, other, dearer]


def _near(price: float, rng: random.Random) -> float:
    return round(price * rng.uniform(0.9, 1.0), 2)


def _described(item: Item, brands: Sequence[str], code: str, number: int, rng: random.Random) -> Product:
    department = next(d for d in DEPARTMENTS if item.kind in d.kinds)
    brand, sold_out = rng.choice(brands), f" No longer sold: {item.sold_out}." if item.sold_out else ""
    return Product(
        asin=f"B{number:08d}{rng.choice('ABCDEFGHJKLMNPQRSTUVWXYZ')}",
        title=f"{brand} {item.kind.title()} {code}",
        category=department.name.lower(),
        query=item.kind,
        product_category=f"{department.name} › {item.kind.title()}",
        price=item.price,
        price_tag=f"${item.price}",
        description=f"{item.kind.capitalize()} by {brand}, model {code}. Made with {item.make}.{sold_out}",
        bullets=(item.use, "boxed and shipped by the shop", *item.extras),
        options=item.options,
        attributes=(item.make, item.use, *item.extras),
    )


def _brands(rng: random.Random) -> dict[str, list[str]]:
    names = [first + last for first, last in pairs_of(*SYLLABLES)]
    rng.shuffle(names)
    kinds = [kind for department in DEPARTMENTS for kind in department.kinds]
    share = len(names) // len(kinds)
    return {kind: [name for name in names[i * share : (i + 1) * share]] for i, kind in enumerate(kinds)}


def _codes(count: int, rng: random.Random) -> list[str]:
    """Return different codes such as QX4821, which name a product in a search."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    numbers = rng.sample(range(len(letters) ** 2 * 10_000), count)
    return [f"{letters[n // 240_000]}{letters[n // 10_000 % 24]}{n % 10_000:04d}" for n in numbers]


# ---- goals


def _goals(
    items: Sequence[Item], products: Sequence[Product], test: set[tuple[str, str, str]], rng: random.Random
) -> dict[str, list[Goal]]:
    """Return goals by group: "train-1" … "test-3"."""
    cells: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)  # same kind and one attribute
    for number, item in enumerate(items):
        cells[item.kind, item.make, item.use].append(number)
        rows[item.kind, item.make].append(number)
        rows[item.kind, item.use].append(number)
    groups: dict[str, list[Goal]] = {f"{split}-{level}": [] for split in ("train", "test") for level in LEVELS}
    for (kind, make, use), members in cells.items():
        split = "test" if (kind, make, use) in test else "train"
        department = next(d for d in DEPARTMENTS if kind in d.kinds)
        neighbour = department.kinds[department.kinds.index(kind) ^ 1]
        near = {*rows[kind, make], *rows[kind, use], *cells[neighbour, make, use]}
        known = {number: items[number] for number in sorted(near | set(members))}
        for level in LEVELS:
            for target in rng.sample(members, min(len(members), 2)):
                if (wish := _wish(known, target, level, rng)) is not None:
                    perfect = tuple(n for n in members if not wish.faults(items[n]))
                    groups[f"{split}-{level}"].append(_goal(wish, products[target], target, perfect, rng))
    for goals in groups.values():
        rng.shuffle(goals)
    return groups


def _wish(known: dict[int, Item], target: int, level: int, rng: random.Random) -> Wish | None:
    """Return conditions of a level that the target meets, with few perfect items and all near misses; else None."""
    item = known[target]
    cell = [
        other for other in known.values() if (other.kind, other.make, other.use) == (item.kind, item.make, item.use)
    ]
    limits = [
        limit for price in sorted(other.price for other in cell) if (limit := float(math.ceil(price))) >= item.price
    ]
    for _ in range(6):
        names = rng.sample(list(item.options), level - 1)
        chosen = tuple((name, rng.choice(item.options[name])) for name in names)
        extra = rng.choice(item.extras) if level == 3 else None
        wish = Wish(item.kind, item.make, item.use, rng.choice(limits[:3]), extra, chosen)
        if len(cell) - sum(bool(wish.faults(other)) for other in cell) > LARGEST_PERFECT:
            continue
        faults = [wish.faults(other) for other in known.values()]
        near_misses = {found[0] for found in faults if len(found) == 1}
        if 1 <= faults.count([]) <= LARGEST_PERFECT and wish.conditions() <= near_misses:
            return wish
    return None


def _goal(wish: Wish, product: Product, target: int, perfect: tuple[int, ...], rng: random.Random) -> Goal:
    attributes = [wish.make, wish.use] + ([wish.extra] if wish.extra is not None else [])
    listed = list(attributes)
    rng.shuffle(listed)
    options = "".join(f", {name}: {value}" for name, value in wish.options)
    text = rng.choice(TEMPLATES).format(
        kind=wish.kind, attributes=" and ".join(listed), options=options, price=f"{wish.price_upper:.2f}"
    )
    return Goal(
        instruction=text,
        target=target,
        attributes=tuple(attributes),
        options=dict(wish.options),
        price_upper=wish.price_upper,
        title=product.title,
        query=product.query,
        product_category=product.product_category,
        perfect=perfect,
    )
