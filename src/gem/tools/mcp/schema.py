"""Validation with the JSON Schemas of MCP servers, which are not trusted, and limits on the texts in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

from gem._internal.text import shorten
from gem.errors import require
from gem.tools.arguments import MAX_ERROR_LENGTH, Schema, Validator, names_error

MAX_DESCRIPTION = 10_000  # characters of the description of a tool
MAX_TEXT = 2_000  # characters of a description, title or list of allowed values in a schema
_MAX_CHARS = 100_000  # maximum length of a schema as JSON
_MAX_STEPS = 20_000  # keywords that a validation checks, one more for each item of a keyword's value
_MAX_QUOTED = 50_000_000  # characters in the messages of a validation: each quotes the value that it is about

# Regular expressions and pairwise comparisons take up to exponential and quadratic time.
_IGNORED = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "uniqueItems", "$dynamicRef")


def cut_text(text: str, limit: int) -> str:
    """Return the first ``limit`` characters of a text, with a note of how many were omitted, if any were."""
    omitted = len(text) - limit
    return f"{text[:limit]}\n[{omitted} more characters omitted]" if omitted > 0 else text


def cut_schema(schema: Any) -> Any:
    """Return a schema with its descriptions and titles cut, and without long lists of allowed values."""
    if isinstance(schema, list):
        return [cut_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    short = {key: cut_schema(part) for key, part in schema.items() if key != "enum"}
    for key in ("description", "title", "$comment"):
        if isinstance(short.get(key), str):
            short[key] = cut_text(short[key], MAX_TEXT)
    if "enum" in schema and (length := len(json.dumps(schema["enum"]))) <= MAX_TEXT:
        short["enum"] = schema["enum"]
    elif "enum" in schema:  # the server checks the value
        note = f"[a list of allowed values with {length} characters omitted]"
        short["description"] = f"{short['description']}\n{note}" if "description" in short else note
    return short


def schema_error(schema: Schema) -> str:
    """Check that a schema follows the JSON Schema specification. Returns an error message, or "" if it does.

    A schema of more than 100,000 characters is not checked, and is an error: it would fill the context of a model.
    """
    jsonschema = require("jsonschema", extra="mcp")
    try:
        if (length := len(json.dumps(schema, allow_nan=False))) > _MAX_CHARS:
            return f"it has {length} characters; at most {_MAX_CHARS} are accepted"
        error = jsonschema.exceptions.best_match(islice(_schema_checker(_validator_class(schema))(schema), 100))
    except (RecursionError, ValueError):
        return "it is nested too deeply, or has a number that is not finite"
    if error is None:
        return ""
    return f"{shorten(error.message, MAX_ERROR_LENGTH)} - at `{shorten(error.json_path, MAX_ERROR_LENGTH)}`"


@cache
def _schema_checker(base: Any) -> Any:
    # check_schema() would compile each pattern, and compare each name in "required" with each other.
    jsonschema = require("jsonschema", extra="mcp")
    return jsonschema.validators.extend(base, {"uniqueItems": _ignore})(base.META_SCHEMA).iter_errors


def schema_validator(schema: Schema) -> Validator:
    """Return a validator for an untrusted JSON Schema from a server. It takes at most about a second.

    The validator ignores ``pattern``, ``patternProperties``, ``unevaluatedProperties``, ``unevaluatedItems``,
    ``uniqueItems`` and ``$dynamicRef``, because checking these keywords may take very long. It does not check
    ``format``, and resolves references only within the schema. If the schema is invalid, if a reference cannot be
    resolved, or if validation takes more than 20,000 steps (fewer for more than 2,500 characters), the validator
    accepts the arguments. The server then validates the arguments itself.
    """
    build = cache(lambda: _build_json_schema_validator(schema))  # on first use: a server may have many tools
    return lambda arguments: names_error(arguments, schema) or build()(arguments)


def _build_json_schema_validator(schema: Schema) -> Validator:
    if schema_error(schema):
        return lambda value: ""
    jsonschema = require("jsonschema", extra="mcp")
    referencing = require("referencing", extra="mcp")
    base = _validator_class(schema)
    left = 0

    def additional(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from base.VALIDATORS["additionalProperties"](validator, value, instance, schema)

    def counted(check: Any) -> Any:
        def counting(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            nonlocal left
            left -= 1 + (len(value) if isinstance(value, (list, dict)) else 0)
            if left < 0:
                raise RecursionError
            return check(validator, value, instance, schema)

        return counting

    keywords = {**base.VALIDATORS, **dict.fromkeys(_IGNORED, _ignore), "additionalProperties": additional}
    keywords = {name: counted(check) for name, check in keywords.items()}
    validator = jsonschema.validators.extend(base, keywords)(schema, registry=referencing.Registry())

    def validate(value: Any) -> str:
        nonlocal left
        try:
            left = min(_MAX_STEPS, _MAX_QUOTED // (len(json.dumps(value)) + 1))
            error = jsonschema.exceptions.best_match(islice(validator.iter_errors(value), 100))
            message = "" if error is None else shorten(error.message, MAX_ERROR_LENGTH)
        # The last three: jsonschema divides and converts any number, such as 1e999.
        except (referencing.exceptions.Unresolvable, RecursionError, ArithmeticError, ValueError, TypeError):
            return ""
        return f"{message} - at `{error.json_path.removeprefix('$.')}`" if error is not None else ""

    return validate


def _ignore(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _validator_class(schema: Schema) -> Any:
    jsonschema = require("jsonschema", extra="mcp")
    named = schema if isinstance(schema.get("$schema"), str) else {}
    return jsonschema.validators.validator_for(named, default=jsonschema.Draft202012Validator)
