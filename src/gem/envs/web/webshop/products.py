"""Products and goals of a shop, as stored and as shown."""

from __future__ import annotations

from typing import Literal

import msgspec

ObservationMode = Literal["html", "text", "text_rich"]
Split = Literal["train", "eval", "test"]


class Product(msgspec.Struct, frozen=True, omit_defaults=True):
    """A product.

    Args:
        asin: its id, at most ten upper-case letters and digits; the text of its link.
        title: also what the nouns of the reward are taken from.
        category, query, product_category: where it is listed; product_category has levels separated by "›".
        description, bullets: texts of the pages Description and Features.
        price: what buying costs, in dollars.
        price_tag: what pages show; a range in some published data.
        options: values by name of the option, in lower case.
        attributes: what the reward compares; shown on the page Attributes only.
        image: URL of the picture, in html only.
    """

    asin: str
    title: str
    category: str
    query: str
    product_category: str
    price: float
    price_tag: str
    description: str = ""
    bullets: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...]] = {}
    attributes: tuple[str, ...] = ()
    image: str = ""

    def searched_text(self) -> str:
        """Return what the search engine indexes: title, description, first bullet and options, as published."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.title, self.description, *self.bullets[:1], options]).lower()


class Goal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to buy, and what the reward compares with a purchase.

    Args:
        instruction: shown on every page.
        target: number of a product that the goal was made from.
        attributes: at least one.
        options: values of options, or values by name.
        price_upper: limit in dollars.
        title, query, product_category: of the target.
        perfect: numbers of all products that can score 1; empty if not known.
    """

    instruction: str
    target: int
    attributes: tuple[str, ...]
    options: tuple[str, ...] | dict[str, str]
    price_upper: float
    title: str
    query: str
    product_category: str
    perfect: tuple[int, ...] = ()
