"""LaTeX in messages."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from recorded import guessing

from gem.trajectory import Trajectory, Turn
from gem.viewer import formulas
from gem.viewer.episodes import body_of
from gem.viewer.formulas import FormulaRenderer, convert, find, tree_of

FRACTION = ["frac", ["n", "1"], ["n", "2"]]


def found(text: str) -> list[str]:
    return [latex for *_, latex, _ in find(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a $x^2$ b $y$", ["x^2", "y"]),
        (r"\(a\) and \[b\] and $$c$$", ["a", "b", "c"]),
        (r"the answer \boxed{\frac{1}{2}}", [r"\boxed{\frac{1}{2}}"]),
        (r"$\text{if even}$", [r"\text{if even}"]),
        ("It costs $5, or $6.50 with tax, and US$7 abroad.", []),
        ("from $10 to $20", []),
        ("PATH=$HOME/bin:$PATH", []),
        ("$A-$B", []),
        ("`$x$` and ```\n$y$\n```", []),
        ("```\n$y$", []),
        (r"\$5$", []),
        ("$a\nb$", []),
    ],
)
def test_formulas_are_found_outside_of_code_and_prices(text: str, expected: list[str]):
    assert found(text) == expected


needs_library = pytest.mark.skipif(find_spec("latex2mathml") is None, reason="needs the extra [viewer]")


def rendered(*texts: str) -> dict[str, Any]:
    return FormulaRenderer().add_to(body_of(Trajectory(turns=[Turn(text, "a") for text in texts]).to_json()))


@needs_library
def test_a_formula_has_its_place_in_units_of_javascript():
    places, trees = convert(["😀 $\\frac{1}{2}$ and $\\frac{1}{2}$"])
    assert places == [[[3, 16, 0], [21, 34, 0]]]
    assert trees == [["ath", FRACTION]]


@needs_library
def test_a_body_gets_the_formulas_of_its_messages():
    body = rendered("Compute $\\frac{1}{2}$.", "Now $$x$$")
    assert [turn["observation"][0].get("math") for turn in body["turns"]] == [
        {"text": [[8, 21, 0]]},
        {"text": [[4, 9, 1]]},
    ]
    assert body["formulas"] == [["ath", FRACTION], ["ath", {"display": "block"}, ["i", "x"]]]
    assert "formulas" not in rendered("No formula, for $5.")


@needs_library
@pytest.mark.parametrize(
    "latex",
    [
        r"\unknowncommand{x}",
        r"\def\a{\a\a}\a",
        r"\newcommand{\a}{x}\a",
        r"\let\a\b",
        r"\frac{1}",
        "{" * 60 + "x" + "}" * 60,
        "x" * 1_001,
        "+".join("x" * 500),
        r"\begin{matrix}",
        "a & b",
        "",
    ],
    ids=str,
)
def test_a_formula_that_is_wrong_unknown_or_too_large_stays_text(latex: str):
    tree = tree_of(latex)
    assert tree is None or tree == ["ath", ["row"]]


@needs_library
def test_of_hostile_formulas_only_listed_attributes_and_values_remain():
    hostile = [
        r"\href{javascript:alert(1)}{x}",
        r"\style{background:url(https://example.com/x)}{x}",
        r"\class{a b}{x}",
        r"\hspace{999em} x",
        r"\rule{999em}{999em}",
        r"\color{red}{x}",
        r"\text{<img src=x onerror=alert(1)>}",
    ]
    kept = json.dumps([tree_of(latex) for latex in hostile])
    for wrong in ("javascript", '"style":', "url(", "class", "999", "red", "href"):
        assert wrong not in kept
    assert "<img\\u00a0src=x" in kept  # as text


@needs_library
def test_formulas_that_take_too_long_stay_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(formulas, "TIMEOUT_S", 0.001)
    renderer = FormulaRenderer()
    body = body_of(Trajectory(turns=[Turn("$x$ " + r"\(" * 100_000, "a")]).to_json())
    assert renderer.add_to(body) == body


def test_without_the_library_formulas_stay_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    body = body_of(guessing(1).to_json())
    assert FormulaRenderer().add_to(body) == body
