"""Validation of arguments with the JSON Schemas of MCP servers, which are not trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any

from gem._internal.text import shorten
from gem.errors import require
from gem.tools.arguments import MAX_ERROR_LENGTH, Schema, Validator, names_error

_MAX_CHARS = 100_000  # maximum length of a schema as JSON
_MAX_REFERENCES = 20_000  # maximum number of $ref resolutions per validation

_IGNORED = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "uniqueItems", "$dynamicRef")


def schema_error(schema: Schema) -> str:
    """Check that a schema follows the JSON Schema specification. Returns an error message, or "" if it does.

    A schema of more than 100,000 characters is not checked, and is an error: it would fill the context of a model.
    """
    jsonschema = require("jsonschema", extra="mcp")
    try:
        if (length := len(json.dumps(schema))) > _MAX_CHARS:
            return f"it has {length} characters; at most {_MAX_CHARS} are accepted"
        _validator_class(schema).check_schema(schema)
    except jsonschema.SchemaError as e:
        return f"{shorten(e.message, MAX_ERROR_LENGTH)} - at `{shorten(e.json_path, MAX_ERROR_LENGTH)}`"
    except (RecursionError, ValueError):
        return "it is nested too deeply"
    return ""


def schema_validator(schema: Schema) -> Validator:
    """Return a validator for an untrusted JSON Schema from a server.

    The validator ignores ``pattern``, ``patternProperties``, ``unevaluatedProperties``, ``unevaluatedItems``,
    ``uniqueItems`` and ``$dynamicRef``, because checking these keywords may take very long. It does not check
    ``format``, and resolves references only within the schema. If the schema is invalid, if a reference cannot be
    resolved, or if validation resolves more than 20,000 references, the validator accepts the arguments. The server
    then validates the arguments itself.
    """
    build = cache(lambda: _build_json_schema_validator(schema))  # on first use: a server may have many tools

    def validate(arguments: Mapping[str, Any]) -> str:
        if error := names_error(arguments, schema):
            return error
        return build()(arguments)

    return validate


def _build_json_schema_validator(schema: Schema) -> Validator:
    if schema_error(schema):
        return lambda arguments: ""
    jsonschema = require("jsonschema", extra="mcp")
    referencing = require("referencing", extra="mcp")
    base = _validator_class(schema)
    references = 0

    def ignore(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        return iter(())

    def additional(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from base.VALIDATORS["additionalProperties"](validator, value, instance, schema)

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        nonlocal references
        references += 1
        if references > _MAX_REFERENCES:
            raise RecursionError
        yield from base.VALIDATORS["$ref"](validator, value, instance, schema)

    keywords = {**dict.fromkeys(_IGNORED, ignore), "additionalProperties": additional, "$ref": counted}
    validator = jsonschema.validators.extend(base, keywords)(schema, registry=referencing.Registry())

    def validate(arguments: Mapping[str, Any]) -> str:
        nonlocal references
        references = 0
        try:
            error = jsonschema.exceptions.best_match(islice(validator.iter_errors(arguments), 100))
        except (referencing.exceptions.Unresolvable, RecursionError):
            return ""
        if error is None:
            return ""
        return f"{shorten(error.message, MAX_ERROR_LENGTH)} - at `{error.json_path.removeprefix('$.')}`"

    return validate


def _validator_class(schema: Schema) -> Any:
    jsonschema = require("jsonschema", extra="mcp")
    return jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
