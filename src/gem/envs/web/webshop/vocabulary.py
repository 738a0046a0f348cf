"""Words of the generated catalogue: ten departments with six kinds of product each.

No two kinds share a word, and no attribute contains another one, so that a text mentions an attribute only if the
product has it (tests/envs/web/webshop/test_mini.py).
"""

from __future__ import annotations

from typing import NamedTuple


class Department(NamedTuple):
    """A department.

    Args:
        name: first level of the category.
        kinds: six kinds of product; neighbours (0 and 1, 2 and 3, …) have products that differ only in their kind.
        makes, uses, extras: attributes, six each. A product has one of the first two groups and two extras.
        options: two names of options with their values.
    """

    name: str
    kinds: tuple[str, ...]
    makes: tuple[str, ...]
    uses: tuple[str, ...]
    extras: tuple[str, ...]
    options: dict[str, tuple[str, ...]]


def _department(name: str, kinds: str, makes: str, uses: str, extras: str, **options: str) -> Department:
    values = {option: _listed(text) for option, text in options.items()}
    return Department(name, _listed(kinds), _listed(makes), _listed(uses), _listed(extras), values)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


COLORS = "black, white, navy, red, forest green, mustard yellow, sky blue, burgundy, charcoal, lavender"

DEPARTMENTS = (
    _department(
        "Clothing",
        "polo shirts, hooded sweatshirts, cargo trousers, denim skirts, ankle socks, knitted gloves",
        "organic cotton, merino wool, bamboo viscose, brushed fleece, stretch jersey, linen blend",
        "machine washable, wrinkle free, moisture wicking, quick drying, odor resistant, hand stitched",
        "relaxed fit, slim cut, reflective trim, hidden pocket, double hem, tagless collar",
        color=COLORS,
        size="x-small, small, medium, large, x-large, xx-large",
    ),
    _department(
        "Footwear",
        "running sneakers, hiking boots, beach sandals, rain clogs, house slippers, ballet flats",
        "suede upper, canvas upper, mesh upper, nubuck upper, cork upper, felt upper",
        "slip resistant, arch support, memory foam, shock absorbing, water repellent, vegan friendly",
        "wide toe, removable insole, padded heel, elastic laces, pull tab, stitched sole",
        color=COLORS,
        size="36, 37, 38, 39, 40, 41, 42, 43",
    ),
    _department(
        "Kitchen",
        "frying pans, cooking pots, chef knives, cutting boards, coffee grinders, tea kettles",
        "stainless steel, cast iron, carbon fiber, hammered copper, enamel coated, anodized aluminum",
        "dishwasher safe, induction ready, easy to clean, oven proof, rust free, non toxic",
        "pour spout, hanging loop, riveted handle, glass lid, silicone grip, measuring marks",
        color=COLORS,
        capacity="small 1 l, medium 2 l, large 3 l, family 5 l, catering 8 l, travel 0.5 l",
    ),
    _department(
        "Bedroom",
        "duvet covers, pillow cases, mattress toppers, throw blankets, window curtains, area rugs",
        "washed linen, mulberry silk, cotton percale, chunky chenille, recycled polyester, sherpa pile",
        "pet friendly, fade resistant, noise reducing, hypoallergenic, thermal insulated, tumble dry",
        "button closure, corner ties, embroidered edge, reversible pattern, tassel border, zipper seam",
        color=COLORS,
        size="twin, full, queen, king, crib, bunk",
    ),
    _department(
        "Electronics",
        "wireless earbuds, bluetooth speakers, phone chargers, power banks, computer keyboards, gaming mice",
        "usb c, dual band, lithium polymer, solar panel, magnetic dock, optical sensor",
        "fast charging, noise cancelling, water proof, low latency, plug and play, energy saving",
        "carrying pouch, braided cable, status display, touch control, volume wheel, mute switch",
        color=COLORS,
        bundle="1 pack, 2 pack, 3 pack, 4 pack, 6 pack, 10 pack",
    ),
    _department(
        "Beauty",
        "face moisturizers, night serums, lip balms, hand creams, hair shampoos, body scrubs",
        "shea butter, aloe vera, hyaluronic acid, argan oil, green tea, vitamin c",
        "cruelty free, fragrance free, paraben free, dermatologist tested, sulfate free, for dry skin",
        "pump bottle, refill bag, spf 30, travel cap, glass jar, sample sachet",
        scent="rosewood, citrus, vanilla, cedar, jasmine, sea salt, peppermint, sandal, ginger, unscented",
        volume="30 ml, 50 ml, 100 ml, 200 ml, 400 ml, 1000 ml",
    ),
    _department(
        "Garden",
        "watering cans, flower boxes, pruning shears, lawn sprinklers, outdoor lanterns, patio umbrellas",
        "galvanized metal, glazed ceramic, recycled plastic, treated pine, woven rattan, powder coated",
        "frost resistant, uv stable, leak proof, wind tested, child safe, tool free assembly",
        "drip tray, folding stand, locking clip, ground spike, storage cover, spare nozzle",
        color=COLORS,
        size="10 inch, 12 inch, 15 inch, 18 inch, 24 inch, 30 inch",
    ),
    _department(
        "Sports",
        "yoga mats, resistance bands, tennis rackets, cycling helmets, swim goggles, camping tents",
        "natural rubber, graphite frame, ripstop nylon, closed cell foam, tempered lens, woven latex",
        "sweat proof, shock tested, anti fog, quick release, extra light, beginner level",
        "shoulder strap, mesh bag, alignment lines, repair kit, spare buckle, training guide",
        color=COLORS,
        size="junior, adult s, adult m, adult l, adult xl, team",
    ),
    _department(
        "Toys",
        "building blocks, jigsaw puzzles, stuffed animals, model trains, board games, clay sets",
        "beech wood, soft plush, thick cardboard, plant based, food grade, die cast",
        "easy to assemble, splinter free, battery free, award winning, good for travel, glow in the dark",
        "picture booklet, storage tin, name label, gift ribbon, bonus stickers, spare parts",
        theme="farm, dinosaurs, space, ocean, castle, jungle, city, circus, arctic, pirates",
        age="1 year, 2 years, 3 years, 5 years, 8 years, 12 years",
    ),
    _department(
        "Office",
        "ballpoint pens, spiral notebooks, desk lamps, filing cabinets, swivel chairs, monitor stands",
        "brushed brass, bonded leather, recycled paper, walnut veneer, matte acrylic, tubular chrome",
        "height adjustable, smudge proof, acid free, heavy duty, space saving, left handed",
        "cable slot, index tabs, lockable drawer, refillable core, cushioned rest, felt pads",
        color=COLORS,
        pack="single, pair, set of 4, set of 6, dozen, bulk of 50",
    ),
)

# Beginnings and endings of the names of brands; each kind has brands of its own.
SYLLABLES = (
    _listed(
        "Bra, Cor, Del, Fen, Gal, Hol, Jas, Kel, Lum, Mor, Nel, Ost, Pra, Quil, Ros, Sel, Tam, Ul, Vor, Wes, Yar, Zen"
    ),
    _listed("bello, dane, dora, fax, gard, lane, lio, mont, nova, quist, rian, ster, tova, vex, wick, zeta"),
)
