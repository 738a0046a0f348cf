"""JSON Schema of a tool's arguments: made from type hints, and held against what an agent wrote."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

from gem.errors import BadValue, did_you_mean

Schema = Mapping[str, Any]

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}
_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
    "exclusiveMinimum": ("more than", lambda value, bound: value > bound),
    "exclusiveMaximum": ("less than", lambda value, bound: value < bound),
}
_SIZES = {"minLength": "string", "maxLength": "string", "minItems": "array", "maxItems": "array"}
_MAX_DEPTH = 64  # of references and nested values


def problem(value: Any, schema: Schema) -> str:
    """What of a value does not fit a schema, in words for the agent; empty where all does.

    Covers type, properties, required, additionalProperties, items, prefixItems, enum, const, anyOf, oneOf (as anyOf),
    allOf, references within the schema, bounds and sizes. What else a schema says (pattern, format) is left to the
    tool. Takes any plain data, and never raises.

    >>> problem({"quary": "x"}, {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]})
    "'query' is missing; did you mean it by 'quary'?"
    >>> problem({"n": "3"}, {"type": "object", "properties": {"n": {"type": "integer"}}})
    "n must be an integer, got '3'"
    """
    try:
        return _Check(schema).value(value, schema, "", 0)
    except (RecursionError, TypeError, ValueError, AttributeError, OverflowError):
        return "they are nested too deep, or of a kind that cannot be checked"


class _Check:
    def __init__(self, root: Schema) -> None:
        self.root = root

    def value(self, value: Any, schema: Any, path: str, depth: int) -> str:
        if schema is False:
            return f"{path or 'it'} must not be given"
        if not isinstance(schema, Mapping):
            schema = {}
        if depth > _MAX_DEPTH:
            return f"{path[:80]} is nested too deep"
        if "$ref" in schema:
            return self.value(value, self._resolve(schema["$ref"]), path, depth + 1)
        checks = (self._type, self._choice, self._text, self._bounds, self._members, self._items, self._combined)
        return next((wrong for check in checks if (wrong := check(value, schema, path, depth))), "")

    def _resolve(self, reference: Any) -> Any:
        target: Any = self.root
        for part in reference.removeprefix("#").strip("/").split("/"):
            if part:
                target = target.get(part.replace("~1", "/").replace("~0", "~"), True)
        return target

    def _type(self, value: Any, schema: Schema, path: str, depth: int) -> str:
        kinds = schema.get("type", ())
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if not kinds or any(_TYPES.get(kind, lambda _: True)(value) for kind in kinds):
            return ""
        return f"{path or 'it'} must be {' or '.join(map(_article, kinds))}, got {_shown(value)}"

    def _choice(self, value: Any, schema: Schema, path: str, depth: int) -> str:
        choices = list(schema["enum"]) if "enum" in schema else [schema["const"]] if "const" in schema else []
        if not choices or any(_same(value, choice) for choice in choices):
            return ""
        near = did_you_mean(value[:200], [c for c in choices if isinstance(c, str)]) if isinstance(value, str) else ""
        return f"{path or 'it'} must be one of {', '.join(map(_shown, choices))}, got {_shown(value)}{near}"

    def _text(self, value: Any, schema: Schema, path: str, depth: int) -> str:
        if isinstance(value, str) and not value.isascii() and _LONE_SURROGATE.search(value):
            return f"{path or 'it'} holds half of a surrogate pair, which is no text"
        return ""

    def _bounds(self, value: Any, schema: Schema, path: str, depth: int) -> str:
        if _TYPES["number"](value):
            for key, (words, holds) in _BOUNDS.items():
                if key in schema and not holds(value, schema[key]):
                    return f"{path or 'it'} must be {words} {schema[key]}, got {_shown(value)}"
        for key, kind in _SIZES.items():
            if key in schema and _TYPES[kind](value):
                short, long = len(value) < schema[key], len(value) > schema[key]
                if short if key.startswith("min") else long:
                    unit = "characters" if kind == "string" else "entries"
                    words = "at least" if key.startswith("min") else "at most"
                    return f"{path or 'it'} must have {words} {schema[key]} {unit}, got {len(value)}"
        return ""

    def _members(self, value: Any, schema: Schema, path: str, depth: int) -> str:
        if not isinstance(value, Mapping):
            return ""
        properties = schema.get("properties", {})
        unknown = [name for name in value if name not in properties]
        for name in schema.get("required", ()):
            if name not in value:
                likely = next((other for other in unknown[:16] if did_you_mean(other[:200], [name])), None)
                hint = f"; did you mean it by {_shown(likely)}?" if likely is not None else ""
                return f"{_join(path, name)!r} is missing{hint}"
        others = schema.get("additionalProperties", True)
        for name, item in value.items():
            inside = properties.get(name, others)
            if inside is False:
                known = ", ".join(properties) or "none"
                return f"there is no {_shown(name)}{did_you_mean(name[:200], properties)}  (there are: {known})"
            if wrong := self.value(name, {}, "a name", depth + 1) or self.value(
                item, inside, _join(path, name[:80]), depth + 1
            ):
                return wrong
        return ""

    def _items(self, value: Any, schema: Schema, path: str, depth: int) -> str:
        if not isinstance(value, list):
            return ""
        first = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            inside = first[index] if index < len(first) else schema.get("items", True)
            if wrong := self.value(item, inside, f"{path}[{index}]", depth + 1):
                return wrong
        return ""

    def _combined(self, value: Any, schema: Schema, path: str, depth: int) -> str:
        for part in schema.get("allOf", ()):
            if wrong := self.value(value, part, path, depth + 1):
                return wrong
        for key in ("anyOf", "oneOf"):
            wrongs = [self.value(value, part, path, depth + 1) for part in schema.get(key, ())]
            if wrongs and all(wrongs):
                return " or ".join(dict.fromkeys(wrongs))
        return ""


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _article(kind: str) -> str:
    return "null" if kind == "null" else f"an {kind}" if kind[0] in "aio" else f"a {kind}"


def _same(value: Any, choice: Any) -> bool:
    return bool(value == choice) and isinstance(value, bool) == isinstance(choice, bool)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function's arguments, from its type hints; descriptions from the Args of its docstring.

    Raises BadValue for a parameter without a name (``*args``, positional-only), of a type that JSON cannot hold, or
    whose hint names what is not there.
    """
    import msgspec

    hints = hints_of(function)
    described = descriptions(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadValue(f"{function.__name__}: {parameter} cannot be given by name in a call")
        try:
            schema = msgspec.json.schema(hints.get(name, Any), ref_template="#/$defs/{name}")
        except TypeError as e:
            raise BadValue(f"{function.__name__}: the type of {name} has no JSON Schema: {e}") from e
        definitions.update(schema.pop("$defs", {}))
        if name in described:
            schema["description"] = described[name]
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None and isinstance(parameter.default, (bool, int, float, str)):
            schema["default"] = parameter.default
        properties[name] = schema
    made: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    made["additionalProperties"] = False
    return {**made, "$defs": definitions} if definitions else made


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The type hints of a function. Raises BadValue where they name what is not there."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as e:
        raise BadValue(f"the type hints of {function!r} cannot be read: {e}") from e


def summary(function: Callable[..., Any]) -> str:
    """The docstring up to its first section, as one line; the name without a docstring."""
    lines = _doc(function)
    end = next((i for i, line in enumerate(lines) if _SECTION.fullmatch(line)), len(lines))
    return " ".join(" ".join(lines[:end]).split()) or function.__name__.replace("_", " ")


def descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """What the section Args of a docstring says of each parameter."""
    lines = _doc(function)
    names = inspect.signature(function).parameters
    begin = next((i for i, line in enumerate(lines) if line in _ARGUMENTS), len(lines))
    found: dict[str, str] = {}
    current = ""
    for line in lines[begin + 1 :]:
        if line and not line[0].isspace():
            break
        match = _ARGUMENT.fullmatch(line)
        if match and match[1] in names:
            current = match[1]
            found[current] = match[2].strip()
        elif current and line.strip():
            found[current] += f" {line.strip()}"
    return found


_ARGUMENTS = ("Args:", "Arguments:", "Parameters:")
_SECTION = re.compile(r"[A-Z][a-z]+:")
_ARGUMENT = re.compile(r"\s+\**(\w+)(?:\s*\([^)]*\))?:\s*(.*)")


def _doc(function: Callable[..., Any]) -> Sequence[str]:
    return (inspect.getdoc(function) or "").splitlines()
