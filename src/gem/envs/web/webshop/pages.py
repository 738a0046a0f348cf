"""Pages of the shop, as functions of values, in the three formats of the published simulator.

A page is a sequence of pieces: markup, and texts with a role. ``html`` joins all of them; ``text`` joins the texts with
[SEP]; ``text_rich`` puts markers around buttons, links and options. The markup is that of the published pages without
<head> and scripts, which only a browser uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import quote_plus

from gem.envs.web.webshop.products import ObservationMode, Product

PER_PAGE = 10
BACK, PREVIOUS, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
SUBPAGES = ("Description", "Features", "Reviews", "Attributes")
RATING = "N.A."  # of all products: the published simulator does not load the reviews

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})

# Fields of the last page with the ids of their elements, spelled as published.
_PURCHASED = {
    "asin": "asin",
    "options": "options",
    "attrs": "purchased_attrs",
    "category": "purchased-category",
    "query": "purchased-query",
    "product category": "purchased-pc",
}
_TARGET = {
    "asin": "goal-asin",
    "options": "goal-options",
    "attrs": "goal-attrs",
    "price upper": "goal-price",
    "instuction text": "goal-instruction-text",
    "category": "goal-category",
    "product category": "goal-pc",
    "query": "goal-query",
}


@lru_cache(maxsize=1024)
def _quoted(value: str) -> str:
    return quote_plus(value, safe="!$'()*,/:;?@").translate(_ESCAPES)  # as werkzeug 3 quotes


class Text(NamedTuple):
    """A text of a page, and how it is marked in text_rich."""

    value: str
    role: Literal["plain", "button", "option", "link"] = "plain"
    clicked: bool = False


Piece = str | Text  # a str is markup


class Links(NamedTuple):
    """The addresses that forms and links of a page lead to. They are empty unless ``shown``: only html has them."""

    session: str
    keywords: str = ""
    page: int = 1
    asin: str = ""
    options: Mapping[str, str] = {}
    shown: bool = True

    def to(self, *names: str, **more: object) -> str:
        """Return the address with these fields, in this order, and more."""
        if not self.shown:
            return ""
        fields: list[tuple[str, object]] = [("session_id", self.session)]
        for name in names:
            if name == "keywords":  # one field for each word
                fields += [(name, word) for word in self.keywords.split()]
            else:
                fields.append((name, dict(self.options) if name == "options" else getattr(self, name)))
        return "/?" + "&amp;".join(f"{name}={_quoted(str(value))}" for name, value in [*fields, *more.items()])


def render(pieces: Iterable[Piece], mode: ObservationMode) -> str:
    """Return a page as text."""
    if mode == "html":
        return "".join(piece if isinstance(piece, str) else piece.value.translate(_ESCAPES) for piece in pieces)
    texts = [piece for piece in pieces if not isinstance(piece, str) and piece.value.strip()]
    if mode == "text":
        return " [SEP] ".join(text.value.strip() for text in texts)
    clicked = [text.value for text in texts if text.clicked and text.role == "option"]
    return "".join([f"You have clicked {value}.\n" for value in reversed(clicked)] + [_marked(text) for text in texts])


def _marked(text: Text) -> str:
    if text.role == "plain":
        return f"{text.value}\n"
    name = "clicked button" if text.clicked else "button"
    indent = {"button": "", "option": "  ", "link": "\n"}[text.role]
    return f"{indent}[{name}] {text.value} [{name}_]\n"


def search_page(links: Links, instruction: str) -> Iterator[Piece]:
    yield '<!DOCTYPE html><html><body><div class="container" style="margin-top: 8%;">'
    yield '<div class="col-md-6 col-md-offset-3"><div class="row"><div id="logo" class="text-center"><h2>'
    yield Text("WebShop")
    yield '</h2></div><div id="instruction-text" class="text-center"><h4>'
    yield Text("Instruction: ")
    yield "<br>"
    yield Text(instruction)
    yield f'</h4></div><form role="form" id="form-buscar" method="post" action="{links.to()}"><div class="form-group">'
    yield '<div class="input-group"><input id="search_input" class="form-control" type="text" name="search_query" '
    yield 'placeholder="Search..." required/><span class="input-group-btn">'
    yield '<button class="btn btn-success" type="submit">'
    yield '<i class="glyphicon glyphicon-search" aria-hidden="true"></i>'
    yield Text("Search", "button")
    yield "</button></span></div></div></form></div></div></div></body></html>"


def results_page(
    links: Links, instruction: str, products: Sequence[Product], total: int, visited: frozenset[str]
) -> Iterator[Piece]:
    """Yield a page of search results.

    Args:
        products: those of this page.
        total: number of results of all pages.
        visited: ids of products that were opened since the last search page.
    """
    yield from _top(links, instruction)
    yield '<div class="row top-buffer"><div class="col-sm-8"><div class="display-4"><h3>'
    yield Text(f"Page {links.page} (Total results: {total})")
    yield '</h3></div><div class="col-sm-2">'
    if links.page > 1:
        yield from _form(links.to("keywords", page=links.page - 1), PREVIOUS, "btn btn-primary")
    yield '</div><div class="col-sm-2">'
    yield from _form(links.to("keywords", page=links.page + 1), NEXT, "btn btn-primary")
    yield '</div></div></div><div class="row top-buffer">'
    for product in products:
        yield '<div class="col-lg-12 mx-auto list-group-item"><div class="col-lg-4">'
        yield f'<img src="{product.image.translate(_ESCAPES)}" class="result-img"></div><div class="col-lg-8">'
        yield '<ul class="list-group shadow"><div class="media align-items-lg-center flex-column flex-lg-row p-3">'
        yield '<div class="media-body order-2 order-lg-1 searched-product">'
        address = links._replace(asin=product.asin, options={}).to("asin", "keywords", "page", "options")
        yield f'<h4 class="mt-0 font-weight-bold mb-2 product-asin"><a class="product-link" href="{address}">'
        yield Text(product.asin, "link", product.asin in visited)
        yield '</a></h5><h4 class="mt-0 font-weight-bold mb-2 product-title">'
        yield Text(product.title)
        yield '</h5><div class="d-flex align-items-center justify-content-between mt-1">'
        yield '<h5 class="font-weight-bold my-2 product-price">'
        yield Text(product.price_tag)
        yield "</h6></div></div></div></ul></div></div>"
    yield "</div></div></body></html>"


def item_page(links: Links, instruction: str, product: Product, *, show_attrs: bool) -> Iterator[Piece]:
    yield from _top(links, instruction)
    yield '<div class="row top-buffer">'
    yield from _form(links.to("keywords", "page"), PREVIOUS, "btn btn-primary")
    yield '</div><div class="row top-buffer"><div class="col-md-4 mb-4 mb-md-0"><div class="row top-buffer">'
    yield f'<img id="product-image" src="{product.image.translate(_ESCAPES)}" class="item-page-img"></div>'
    for name, values in product.options.items():
        yield from _option(links, name, values)
    yield '</div><div class="col-md-6"><h2>'
    yield Text(product.title)
    yield "</h2><h4>"
    yield Text(f"Price: {product.price_tag}")
    yield "</h4><h4>"
    yield Text(f"Rating: {RATING}")
    yield '</h4><div class="row top-buffer">'
    names = ("description", "bulletpoints", "reviews", "attributes")
    for name, label in zip(names, SUBPAGES, strict=True):
        if label == "Attributes" and not show_attrs:
            continue
        yield f'<div class="col-sm-3" name="{name}">'
        address = links.to("asin", "keywords", "page", sub_page=label, options=dict(links.options))
        yield from _form(address, label, "btn btn-primary", class_first=True)
        yield "</div>"
    yield '</div></div><div class="col-sm-2"><div class="row top-buffer">'
    yield from _form(links.to("asin", "options"), BUY, "btn btn-lg purchase")
    yield "</div></div></div></div></body></html>"


def _option(links: Links, name: str, values: Sequence[str]) -> Iterator[Piece]:
    yield '<div class="row top-buffer"><h4>'
    yield Text(name)
    yield '</h4><div class="radio-toolbar">'
    escaped = name.translate(_ESCAPES)
    for number, value in enumerate(values):
        to = links._replace(options={**links.options, name: value}).to("asin", "keywords", "page", "options")
        yield f'<input type="radio" id="radio_{escaped}{number}" name="{escaped}" '
        yield f'value="{value.translate(_ESCAPES)}" data-url="{to}"><label for="radio_{escaped}{number}">'
        yield Text(value, "option", value in links.options.values())
        yield "</label>"
    yield "</div></div>"


def sub_page(links: Links, instruction: str, product: Product, name: str) -> Iterator[Piece]:
    """Yield the page Description, Features, Reviews or Attributes of a product."""
    yield from _top(links, instruction)
    yield '<div class="row top-buffer">'
    yield from _form(links.to("asin", "keywords", "page", "options"), PREVIOUS, "btn btn-primary")
    yield '</div><div class="row top-buffer"><div class="col-md-12"><div class="row top-buffer">'
    box = {"Features": "bulletpoints", "Reviews": "reviews"}.get(name, "description")
    yield f'<div class="col-sm-6" name="{box}"><div class="card card-body">'
    if name == "Description":
        yield '<p class="product-info">'
        yield Text(product.description)
        yield "</p>"
    elif name != "Reviews":
        shown = product.bullets if name == "Features" else product.attributes
        style = "product-info" if name == "Features" else "attribute"
        yield "<ul>"
        for line in shown:
            yield f'<li><p class="{style}">'
            yield Text(f" {line}")
            yield "</p></li>"
        yield "</ul>"
    yield "</div></div>"
    if name == "Attributes":
        yield '<div class="col-sm-6" name="description">'
        for field in ("category", "query", "product_category"):
            yield '<div class="d-flex align-items-center justify-content-between mt-1">'
            yield f'<h5 class="font-weight-bold my-2 product-{field}">'
            yield Text(getattr(product, field))
            yield "</h5></div>"
        yield "</div>"
    yield "</div></div></div></div></body></html>"


def done_page(asin: str, options: str, reward: float) -> Iterator[Piece]:
    """Yield the last page. It has the fields of the published one, which shows only product, options and reward.

    Args:
        options: the chosen options as JSON.
    """
    yield '<!DOCTYPE html><html><body><div class="container" style="margin-top: 8%;">'
    yield '<div class="col-md-6 col-md-offset-3"><div class="row"><div id="thankyou" class="text-center"><h1>'
    yield Text("Thank you for shopping with us!")
    yield '</h1></div><div id="stats" class="text-center"><h3 align="mturk_code">'
    yield Text("Your code: ")
    yield "</h3><p>"
    yield from _value("None")
    yield Text(" (Paste it in your MTurk interface.)")
    yield '</p><div style="display:none"><h2 align="left">'
    yield Text("Purchased")
    yield '</h2><hr class="solid">'
    nothing = dict.fromkeys(["attrs", "category", "query", "product category"], "None")
    yield from _fields({"asin": asin, "options": options, **nothing}, _PURCHASED)
    yield '<h2 align="left">'
    yield Text("Target")
    yield '</h2><hr class="solid">'
    yield from _fields(dict.fromkeys(_TARGET, ""), _TARGET)
    yield "<h4>"
    yield Text("Goal ")
    yield '<div id="goal">'
    yield from _value("None")
    yield '</div></h4><h2 align="left">'
    yield Text("Reward")
    yield '</h2></div><hr class="solid"><h3 id="reward">'
    yield Text("Your score (min 0.0, max 1.0)")
    yield from _value(str(reward))
    yield "</h3><h4 hidden>"
    yield Text("Reward Details ")
    yield '<div id="reward_info">'
    yield from _value("None")
    yield "</div></h4></div></div></div></div></body></html>"


def _fields(values: Mapping[str, str], ids: Mapping[str, str]) -> Iterator[Piece]:
    for name, value in values.items():
        yield f'<h4 id="{ids[name]}">'
        yield Text(name)
        yield from _value(value)
        yield "</p>" if name == "asin" else "</h4>"  # as published


def _value(value: str) -> Iterator[Piece]:
    yield "<pre>"
    yield Text(value)
    yield "</pre>"


def _top(links: Links, instruction: str) -> Iterator[Piece]:
    yield '<!DOCTYPE html><html><body><div class="container py-5"><div class="row top-buffer"><div class="col-sm-6">'
    yield '<div id="instruction-text" class="text-center"><h4>'
    yield Text("Instruction:")
    yield "<br>"
    yield Text(instruction)
    yield '</h4></div></div></div><div class="row top-buffer">'
    yield from _form(links.to(), BACK, "btn btn-success")
    yield "</div>"


def _form(address: str, label: str, style: str, *, class_first: bool = False) -> Iterator[Piece]:
    attributes = f'class="{style}" type="submit"' if class_first else f'type="submit" class="{style}"'
    yield f'<form method="post" action="{address}"><button {attributes}>'
    yield Text(label, "button")
    yield "</button></form>"
