"""Validation of arguments against hand-written JSON Schemas."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from gem.tools.arguments import make_validator, random_value
from gem.tools.mcp.schema import schema_validator

NULLABLE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
NODE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}},
    "required": ["value"],
}


def error(value: Any, schema: Any) -> str:
    """Validate an argument x."""
    return make_validator({"type": "object", "properties": {"x": schema}, "$defs": {"Node": NODE}})({"x": value})


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (3, {"type": "integer"}),
        (3.0, {"type": "integer"}),
        (10**30, {"type": "integer"}),
        (3, {"type": "number"}),
        (None, NULLABLE),
        ("a", {"type": ["string", "null"]}),
        (1, {"type": "integer", "exclusiveMinimum": 0}),
        ({"a": [1, 2]}, {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}),
        ({"x": 1}, {"type": "object"}),
        ({"content-type": "a"}, {"type": "object", "properties": {"content-type": {"type": "string"}}}),
        ({"value": 1, "next": {"value": 2}}, {"$ref": "#/$defs/Node"}),
        (1, {}),
        (1, True),
        (1, {"type": "unheard-of"}),
        (1, {"$ref": "#/nowhere"}),
    ],
)
def test_valid_arguments_pass(value, schema):
    assert error(value, schema) == ""


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        (True, {"type": "integer"}, "Expected `int`, got `bool` - at `x`"),
        (3.5, {"type": "integer"}, "Expected `int`, got `float`"),
        ("3", NULLABLE, "Expected `int | null`, got `str`"),
        (
            {"a": [1, "2"]},
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}},
            "`x.a[1]`",
        ),
        ({"y": 1}, {"type": "object", "additionalProperties": {"type": "string"}}, "Expected `str`, got `int`"),
        ({"y": 1}, {"type": "object", "properties": {"z": {}}, "additionalProperties": False}, "unknown field `y`"),
        ({"next": {}}, {"$ref": "#/$defs/Node"}, "missing required field `value`"),
        ("shrot", {"enum": ["short", "long"]}, "Invalid enum value 'shrot'"),
        (2, {"const": 1}, "Invalid enum value 2"),
        (True, {"enum": [1]}, "Expected `int`, got `bool`"),
        (0, {"type": "integer", "minimum": 1}, "Expected `int` >= 1"),
        (0, {"type": "number", "exclusiveMinimum": 0}, "Expected `float` > 0.0"),
        (9, {"type": "number", "exclusiveMaximum": 9}, "Expected `float` < 9.0"),
        ("", {"type": "string", "minLength": 1}, "length >= 1"),
        ([1, 2], {"type": "array", "maxItems": 1}, "length <= 1"),
        ({"\ud800": 1}, {"type": "object"}, "surrogate"),
    ],
)
def test_invalid_arguments_are_reported(value, schema, message):
    assert message in error(value, schema)


def test_missing_and_unknown_names_are_reported_with_the_closest_name():
    schema = {"type": "object", "properties": {"color": {}, "size": {}}, "required": ["color"]}
    assert re.search("missing argument 'color'.*'colour'", make_validator(schema)({"colour": 1}))
    closed = make_validator({**schema, "additionalProperties": False})
    assert re.search("unknown argument 'sise'.*'size'.* color, size", closed({"color": 1, "sise": 2}))


@pytest.mark.parametrize("validator", [make_validator, schema_validator])
def test_unknown_names_are_refused_unless_the_schema_allows_them(validator):
    if validator is schema_validator:
        pytest.importorskip("jsonschema", reason="needs the extra [mcp]")
    schema = {"type": "object", "properties": {"timezone": {"type": "string"}}}
    error = validator(schema)({"time_zone": "Asia/Tokyo"})
    assert re.search("unknown argument 'time_zone'.*'timezone'.* timezone", error)
    assert "unknown argument 'a'" in validator({"type": "object", "properties": {}})({"a": 1})
    for keyword in ({"additionalProperties": True}, {"patternProperties": {"^t": {}}}, {"allOf": [{}]}):
        assert validator({**schema, **keyword})({"time_zone": "Asia/Tokyo"}) == ""
    assert validator({"type": "object"})({"a": 1}) == ""


def test_deeply_nested_values_are_refused():
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    assert "nested more than 64 levels deep" in error(deep, {})


@pytest.mark.parametrize("schema", [{"type": 3}, {"minimum": "a"}, {"properties": []}, {"enum": 3}, {"required": 3}])
def test_an_invalid_schema_never_raises(schema):
    assert isinstance(make_validator(schema)({"a": 1}), str)
    assert isinstance(error({"a": 1}, schema), str)
    assert isinstance(error({"a": 1}, {"type": "object", **schema}), str)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 5, "maximum": 6},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "minLength": 3},
        {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        {"type": "array", "items": {"type": "number"}, "minItems": 2},
        {"type": "object", "properties": {"y": {"type": "integer"}}, "required": ["y"]},
    ],
    ids=str,
)
def test_random_arguments_are_valid(schema):
    parameters = {"type": "object", "properties": {"x": schema, "z": {"type": "string"}}, "required": ["x"]}
    for seed in range(20):
        arguments = random_value(parameters, random.Random(seed))
        assert set(arguments) == {"x"} and make_validator(parameters)(arguments) == ""
