"""Validation of arguments against the JSON Schemas of MCP servers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gem.tools.mcp.schema import schema_validator

pytest.importorskip("jsonschema")


def error(value: Any, schema: Any, **definitions: Any) -> str:
    """Validate an argument x."""
    return schema_validator({"type": "object", "properties": {"x": schema}, "$defs": definitions})({"x": value})


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (3.0, {"type": "integer"}),
        (1, {"exclusiveMinimum": 0}),
        (None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ([1, "a"], {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}),
        ({"x-a": 1}, {"patternProperties": {"^x-": {}}, "additionalProperties": False}),
        ("not a date", {"type": "string", "format": "date"}),
    ],
)
def test_valid_arguments_pass(value, schema):
    assert error(value, schema) == ""


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        ("3", {"type": "integer"}, "'3' is not of type 'integer' - at `x`"),
        (True, {"enum": [1]}, "True is not one of [1]"),
        (0, {"exclusiveMinimum": 0}, "the minimum of 0"),
        (9, {"exclusiveMaximum": 9}, "equal to the maximum"),
        ([1, 2], {"maxItems": 1}, "is too long"),
        ({"a": [1, "2"]}, {"properties": {"a": {"items": {"type": "integer"}}}}, "at `x.a[1]`"),
        ({"a": 1}, {"allOf": [{"required": ["b"]}]}, "'b' is a required property"),
        ({"next": {}}, {"$ref": "#/$defs/Node"}, "'value' is a required property"),
        ("a\ud800", {"type": "string"}, "half of a surrogate pair"),
    ],
)
def test_invalid_arguments_are_reported(value, schema, message):
    node = {"properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["value"]}
    if "next" in str(value):
        value = {"value": 1, **value}
    assert message in error(value, schema, Node=node)


def test_missing_names_are_reported_with_the_closest_name():
    validate = schema_validator({"type": "object", "properties": {"color": {}}, "required": ["color"]})
    assert re.search("missing argument 'color'.*'colour'", validate({"colour": 1}))


def test_errors_about_large_values_are_short():
    assert len(error("x" * 1_000_000, {"type": "integer"})) < 400


def test_regular_expressions_and_pairwise_comparisons_are_not_run():
    evil = "(a+)+$"
    assert error("a" * 50 + "b", {"type": "string", "pattern": evil}) == ""
    assert error({"a" * 50 + "b": 1}, {"patternProperties": {evil: {}}, "additionalProperties": False}) == ""
    assert error({"a" * 50 + "b": 1}, {"patternProperties": {evil: {}}, "unevaluatedProperties": False}) == ""
    assert error([1, 1], {"uniqueItems": True}) == ""


def test_references_that_multiply_are_not_followed_without_limit():
    doubling = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)}
    assert error(1, {"$ref": "#/$defs/d0"}, **doubling, d60={}) == ""
    assert error(1, {"$ref": "#/$defs/loop"}, loop={"$ref": "#/$defs/loop"}) == ""


@pytest.mark.parametrize("schema", [{"type": 3}, {"$ref": "#/nowhere"}, {"$ref": "http://localhost:9/schema.json"}])
def test_an_invalid_schema_accepts_everything_and_fetches_nothing(schema):
    assert error(1, schema) == ""


def test_deeply_nested_values_are_refused():
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    assert "nested more than 64 levels deep" in error(deep, {})
