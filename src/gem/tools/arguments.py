"""Validate the arguments of tool calls.

Each tool returns one validator per function. make_validator() builds a validator from a JSON Schema with msgspec and
supports the keywords that are common in hand-written schemas. MCPTool validates with the jsonschema library instead,
because schemas from servers may use any keyword.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeAlias, Union

from gem._internal.text import shorten
from gem.errors import did_you_mean

Schema: TypeAlias = Mapping[str, Any]
# Takes the arguments of a tool call. Returns an error message for the agent, or "" if the arguments are valid.
Validator: TypeAlias = Callable[[Mapping[str, Any]], str]

MAX_DEPTH = 64  # maximum nesting depth of the arguments
MAX_ERROR_LENGTH = 300
MAX_NAMES_LENGTH = 1000  # characters of the names of arguments in a message
# Keywords of an object's schema that say which names are allowed besides those in "properties".
_OPEN_SCHEMA = frozenset(
    {"additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "dependentSchemas"}
    | {"allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef"}
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}


def make_validator(schema: Schema) -> Validator:
    """Return a validator for a JSON Schema of type "object".

    The validator checks types, required and unknown argument names, enums of strings and integers, anyOf, numeric
    bounds, lengths of strings and arrays, and references within the schema. It treats oneOf like anyOf. It ignores all
    other keywords and every part of the schema that msgspec cannot represent.

    >>> schema = {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}
    >>> make_validator(schema)({"pgae": 1})
    "missing argument 'page'; 'pgae' looks like a misspelling of it"
    >>> make_validator(schema)({"page": "3"})
    'Expected `int`, got `str` - at `page`'
    """
    import msgspec

    expected = _Converter(schema).type_of(schema)

    def validate(arguments: Mapping[str, Any]) -> str:
        if error := names_error(arguments, schema):
            return error
        try:
            msgspec.convert(arguments, expected)
        except msgspec.ValidationError as e:
            try:
                msgspec.convert(_with_integers(arguments), expected)
            except msgspec.ValidationError:
                return conversion_error(e)
        return ""

    return validate


def names_error(arguments: Mapping[str, Any], schema: Schema) -> str:
    """Check the argument names, the nesting depth, and that no string contains a lone surrogate.

    Returns:
        An error message for the agent, or "" if no error was found. Unknown names are an error if the schema sets
        ``additionalProperties`` to false, or lists ``properties`` and has no keyword that may allow other names.
        (JSON Schema allows any names by default; but a misspelled name would then be ignored, and the call succeed.)
    """
    properties, required = schema.get("properties"), schema.get("required")
    closed = isinstance(properties, Mapping) and _OPEN_SCHEMA.isdisjoint(schema)
    closed = closed or (schema.get("additionalProperties") is False and "patternProperties" not in schema)
    properties = properties if isinstance(properties, Mapping) else {}
    unknown = [name for name in arguments if name not in properties]
    for name in required if isinstance(required, (list, tuple)) else ():
        if isinstance(name, str) and name not in arguments:
            similar = next((other for other in unknown[:16] if did_you_mean(other[:80], [name[:80]])), None)
            hint = "" if similar is None else f"; {shorten(similar, 80)!r} looks like a misspelling of it"
            return f"missing argument {shorten(name, 80)!r}{hint}"
    if unknown and closed:
        name, known = unknown[0], shorten(", ".join(properties) or "none", MAX_NAMES_LENGTH)
        # A server may list any number of long names; comparing them takes quadratic time.
        hint = did_you_mean(name[:80], [other for other in properties if len(other) <= 80][:100])
        return f"unknown argument {shorten(name, 80)!r}{hint}  (arguments: {known})"
    return _data_error(arguments)


def conversion_error(error: Exception) -> str:
    """Convert a msgspec validation error to a message for the agent, with paths relative to the arguments."""
    return shorten(str(error).replace("`$.", "`"), MAX_ERROR_LENGTH)


def _with_integers(value: Any) -> Any:
    """Replace floats such as 3.0 with integers. JSON Schema accepts 3.0 as an integer; msgspec does not."""
    if isinstance(value, Mapping):
        return {name: _with_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _data_error(value: Any) -> str:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                if not item.isascii() and _LONE_SURROGATE.search(item):
                    return "a string contains half of a surrogate pair"
            elif isinstance(item, Mapping):
                inner += item
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return ""
        level = inner
    return f"the values are nested more than {MAX_DEPTH} levels deep"


class _Converter:
    """Convert JSON Schemas to types for msgspec. A schema that msgspec does not support becomes Any."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._resolving: set[str] = set()

    def type_of(self, schema: Any) -> Any:
        import msgspec

        if not isinstance(schema, Mapping):
            return Any
        try:
            if "$ref" in schema:
                return self._referenced(schema["$ref"])
            if "enum" in schema or "const" in schema:
                return _literal(schema["enum"] if "enum" in schema else [schema["const"]])
            alternatives = schema.get("anyOf") or schema.get("oneOf")
            if alternatives:
                kinds = [self.type_of(alternative) for alternative in alternatives]
            else:
                names = schema.get("type", ())
                kinds = [self._basic(name, schema) for name in ([names] if isinstance(names, str) else names)]
            if not kinds or Any in kinds:
                return Any
            combined = reduce(or_, kinds) if len(kinds) == 1 else Union[tuple(kinds)]  # noqa: UP007
            msgspec.json.Decoder(combined)  # raises TypeError for a union that msgspec does not support
        except (TypeError, ValueError, AttributeError, RecursionError):
            return Any
        return combined

    def _referenced(self, reference: str) -> Any:
        if reference in self._resolving or not reference.startswith("#"):
            return Any
        target: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            if part:
                target = target.get(part.replace("~1", "/").replace("~0", "~"), True)
        self._resolving.add(reference)
        try:
            return self.type_of(target)
        finally:
            self._resolving.discard(reference)

    def _basic(self, name: str, schema: Schema) -> Any:
        import msgspec

        if name in ("integer", "number"):
            bounds = {ours: schema[theirs] for theirs, ours in _BOUNDS.items() if theirs in schema}
            plain = int if name == "integer" else float
            return Annotated[plain, msgspec.Meta(**bounds)] if bounds else plain
        if name == "string":
            return _sized(str, schema, "minLength", "maxLength")
        if name == "array":
            items = Any if "prefixItems" in schema else self.type_of(schema.get("items"))
            return _sized(list[items], schema, "minItems", "maxItems")  # type: ignore[valid-type]
        if name == "object":
            return self._object(schema)
        return {"boolean": bool, "null": None}.get(name, Any)

    def _object(self, schema: Schema) -> Any:
        import msgspec

        properties, required = schema.get("properties", {}), schema.get("required", ())
        if not properties and not required:
            return dict[str, self.type_of(schema.get("additionalProperties"))]  # type: ignore[misc]
        fields: list[Any] = []
        names: dict[str, str] = {}
        for name in [*properties, *(name for name in required if name not in properties)]:
            field = f"field_{len(fields)}"  # an argument name may not be a valid Python identifier
            names[field] = name
            kind = self.type_of(properties.get(name))
            fields.append((field, kind) if name in required else (field, kind, None))
        closed = schema.get("additionalProperties") is False
        return msgspec.defstruct("Arguments", fields, rename=names, forbid_unknown_fields=closed, kw_only=True)


def _sized(kind: Any, schema: Schema, least: str, most: str) -> Any:
    import msgspec

    if least not in schema and most not in schema:
        return kind
    return Annotated[kind, msgspec.Meta(min_length=schema.get(least), max_length=schema.get(most))]


def _literal(values: Sequence[Any]) -> Any:
    kinds = {type(value) for value in values}
    return Literal[tuple(values)] if kinds <= {str, int} and len(kinds) else Any


def random_value(schema: Mapping[str, Any], rng: random.Random) -> Any:
    """Return a random value for the common parts of JSON Schema. Objects have their required properties only.

    Integers are from 0 to 9 and texts a letter, unless the schema has limits, choices or examples.
    """
    for key in ("enum", "examples"):
        if schema.get(key):
            return rng.choice(list(schema[key]))
    if "const" in schema:
        return schema["const"]
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return random_value(rng.choice(list(options)), rng)
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        names = schema.get("required", ())
        return {name: random_value(properties.get(name, {"type": "string"}), rng) for name in names}
    if kind in ("integer", "number"):
        low = int(schema.get("minimum", 0))
        return rng.randint(low, max(low, int(schema.get("maximum", low + 9))))
    if kind == "array":
        items = schema.get("items", {"type": "string"})
        return [random_value(items, rng) for _ in range(min(100, int(schema.get("minItems", 1))))]
    values: dict[str, Any] = {"boolean": rng.random() < 0.5, "null": None}
    return values.get(kind, rng.choice("abcdefgh") * max(1, min(1000, int(schema.get("minLength", 1)))))
