r"""The reward of a purchase, with the formula of the published WebShop.

    reward = r_type · (matched attributes + matched options + [price within the limit]) / (attributes + options + 1)

r_type compares the kinds of the two products: 1 for the same query, for two shared categories, or if more than .2 of
the nouns of the goal's title are in the title of the purchase; otherwise .5. It is .1 if fewer than .1 of the nouns are
shared, and 0 if none is, even for the same query. Source: Yao et al. 2022, WebShop, and its simulator.

Matching "fuzzy" is the published one: token-set ratio above 85, which needs rapidfuzz (extra [webshop]). "exact"
compares texts in lower case without punctuation. In both, an attribute also matches if a text of the product
contains it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from gem.envs.web.webshop.products import Goal, Product
from gem.errors import BadValue, require

Matching = Literal["exact", "fuzzy"]
THRESHOLD = 85  # a rounded token-set ratio above this is a match

# The words that the published simulator reduces an option to, in its order: the first one inside the text counts.
COLORS = re.findall(
    r"\w+",
    """
alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel camo
caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream crystal
dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather indigo ivory
ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha multicolor
mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal rust sand
sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise violet walnut
wheat white wine yellow
""",
)
_LATIN1 = dict.fromkeys(range(128, 256))  # characters that the published comparison deletes
_NOT_WORD = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class PurchaseScore:
    """The reward of a purchase and what it consists of.

    Args:
        reward: 0 to 1.
        r_type: how alike the kinds of the products are: 1, .5, .1 or 0.
        parts: what attributes, options and price add to the reward.
        checks: what of the goal the purchase meets, as gem.core.Step defines checks.
    """

    reward: float
    r_type: float
    parts: dict[str, float]
    checks: list[dict[str, Any]]


def score(
    product: Product,
    chosen: Iterable[str],
    goal: Goal,
    *,
    nouns: Callable[[str], Sequence[str]],
    matching: Matching,
) -> PurchaseScore:
    """Score a purchase.

    Args:
        chosen: the values of options that were clicked.
        nouns: returns the nouns of a title, in lower case, with repetitions.

    Raises:
        MissingDependency: matching is "fuzzy" and rapidfuzz is not installed.
    """
    similar = matcher(matching)
    r_type = type_factor(product, goal, nouns)
    attributes = sum(_has_attribute(product, wanted, similar) for wanted in goal.attributes)
    wanted_options = option_texts(goal, reduced=matching == "fuzzy")
    values = [_color(value) if matching == "fuzzy" else value for value in chosen]
    options = sum(any(similar(value, wanted) for value in values) for wanted in wanted_options)
    affordable = product.price <= goal.price_upper
    total = len(goal.attributes) + len(wanted_options) + 1
    counts = {"attributes": attributes, "options": options, "price": int(affordable)}
    checks = [
        {"name": "kind", "passed": r_type == 1, "detail": f"factor {r_type:g}"},
        *(
            {"name": name, "passed": counts[name] == wanted, "detail": f"{counts[name]} of {wanted}"}
            for name, wanted in (("attributes", len(goal.attributes)), ("options", len(wanted_options)))
        ),
        {"name": "price", "passed": affordable, "detail": f"{product.price:g}; at most {goal.price_upper:g}"},
    ]
    parts = {name: count / total * r_type for name, count in counts.items()}
    return PurchaseScore((attributes + options + affordable) / total * r_type, r_type, parts, checks)


def type_factor(product: Product, goal: Goal, nouns: Callable[[str], Sequence[str]]) -> float:
    """Return r_type: 1, .5, .1 or 0."""
    wanted = nouns(goal.title)
    # A title without nouns counts as an overlap of .2 in the published simulator.
    overlap = len(set(nouns(product.title)) & set(wanted)) / len(wanted) if wanted else 0.2
    if overlap == 0:
        return 0.0
    if overlap < 0.1:
        return 0.1
    categories = len(_categories(product.product_category) & _categories(goal.product_category))
    return 1.0 if product.query == goal.query or categories >= 2 or overlap > 0.2 else 0.5


def option_texts(goal: Goal, *, reduced: bool) -> list[str]:
    """Return the texts that chosen options are compared with.

    Args:
        reduced: reduce a text to the color in it, as published. Of options by name, only a name or value that is a
            color is reduced; the others are compared with name and value together, written as a Python tuple.
    """
    if not isinstance(goal.options, dict):
        return [_color(option) if reduced else option for option in goal.options]
    if not reduced:
        return list(goal.options.values())
    pairs = goal.options.items()
    return [next((color for color in COLORS if color in pair), str(pair)) for pair in pairs]


def matcher(matching: Matching) -> Callable[[str, str], bool]:
    """Return the comparison of two texts. Raises MissingDependency if it needs rapidfuzz and that is missing."""
    if matching == "exact":
        return lambda one, other: plain(one) == plain(other)
    if matching != "fuzzy":
        raise BadValue(f"matching must be 'exact' or 'fuzzy', got {matching!r}")
    return _similar_enough()


@cache
def _similar_enough() -> Callable[[str, str], bool]:
    ratio: Any = require("rapidfuzz.fuzz", extra="webshop").token_set_ratio
    lowered: Any = require("rapidfuzz.utils", extra="webshop").default_process  # punctuation becomes spaces
    return lambda one, other: (
        round(ratio(lowered(one.translate(_LATIN1)), lowered(other.translate(_LATIN1)))) > THRESHOLD
    )


def plain(text: str) -> str:
    """Return a text in lower case, with one space for each run of other characters than letters and digits.

    >>> plain(" Wrinkle-free!")
    'wrinkle free'
    """
    return _NOT_WORD.sub(" ", text.lower()).strip()


def _has_attribute(product: Product, wanted: str, similar: Callable[[str, str], bool]) -> bool:
    if any(similar(attribute, wanted) for attribute in product.attributes):
        return True
    texts = (product.title, " ".join(product.bullets), product.description)
    return any(wanted in text.lower() for text in texts)


def _categories(path: str) -> set[str]:
    return {category.strip() for category in path.split("›")}


def _color(text: str) -> str:
    return next((color for color in COLORS if color in text), text)
