# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""The router: from methods and paths to handlers, and back."""

from collections import namedtuple

from routes.query import build_query
from routes.urls import quote, unquote

Match = namedtuple("Match", "handler values")


class NotFound(LookupError):
    """No route has the path."""


class MethodNotAllowed(LookupError):
    """Routes have the path, but not the method. allowed: their methods, sorted."""

    def __init__(self, allowed):
        super().__init__(", ".join(allowed))
        self.allowed = allowed


def _number(text):
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def _word(text):
    if not text.isidentifier():
        raise ValueError(text)
    return text


# name: (from text, rank); the lower rank is tried first
KINDS = {"int": (_number, 1), "word": (_word, 2), "text": (str, 3), "path": (str, 4)}
Parameter = namedtuple("Parameter", "name kind")


class Route:
    """A pattern like /users/<id:int>/files/<rest:path>. The kind of a parameter is text if it is not given.

    Kinds: int (digits), word (an identifier), text (one part that is not empty), path (the rest of the path, at the
    end only).
    """

    def __init__(self, method, pattern, handler):
        if not pattern.startswith("/"):
            raise ValueError(f"a pattern starts with '/', got {pattern!r}")
        self.method = method.upper()
        self.handler = handler
        self.parts = [_part(text) for text in pattern[1:].split("/")]
        names = [part.name for part in self.parts if isinstance(part, Parameter)]
        if len(set(names)) != len(names):
            raise ValueError(f"a parameter is there twice in {pattern!r}")
        for part in self.parts[:-1]:
            if isinstance(part, Parameter) and part.kind == "path":
                raise ValueError(f"a parameter of kind path must be at the end of {pattern!r}")

    def rank(self):
        """Return a key: routes are tried in its order."""
        return [KINDS[part.kind][1] if isinstance(part, Parameter) else 0 for part in self.parts]

    def match(self, parts):
        """Return the values of the parameters for the parts of a path, or None."""
        open_end = isinstance(self.parts[-1], Parameter) and self.parts[-1].kind == "path"
        if len(parts) < len(self.parts) or (len(parts) > len(self.parts) and not open_end):
            return None
        values = {}
        for index, part in enumerate(self.parts):
            text = parts[index]
            if not isinstance(part, Parameter):
                if unquote(text) != part:
                    return None
                continue
            if part.kind == "path":
                text = "/".join(parts[index:])
            if not text:
                return None
            try:
                values[part.name] = KINDS[part.kind][0](unquote(text))
            except ValueError:
                return None
        return values

    def build(self, values):
        """Return the path for values; those that are no parameters become the query. Raises KeyError, ValueError."""
        rest = dict(values)
        parts = []
        for part in self.parts:
            if not isinstance(part, Parameter):
                parts.append(quote(part, safe=""))
                continue
            text = str(rest.pop(part.name))
            KINDS[part.kind][0](text)
            if not text or (part.kind == "path" and text.startswith("/")):
                raise ValueError(f"invalid value for {part.name}: {text!r}")
            parts.append(quote(text, safe="/" if part.kind == "path" else ""))
        query = build_query(rest)
        return "/" + "/".join(parts) + ("?" + query if query else "")


def _part(text):
    if not (text.startswith("<") and text.endswith(">")):
        return text
    name, colon, kind = text[1:-1].partition(":")
    if not name.isidentifier():
        raise ValueError(f"invalid name of a parameter in {text!r}")
    if colon and kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r} in {text!r}")
    return Parameter(name, kind if colon else "text")


class Router:
    """Routes in the order in which they are tried."""

    def __init__(self):
        self.routes = []

    def add(self, method, pattern, handler):
        """Add a route. Raises ValueError if the pattern is wrong, or stands for the same paths as another one."""
        route = Route(method, pattern, handler)
        for other in self.routes:
            if other.method == route.method and _shape(other) == _shape(route):
                raise ValueError(f"there is a route like {pattern!r}")
        self.routes.append(route)
        self.routes.sort(key=Route.rank)

    def mount(self, prefix, router):
        """Add all routes of another router below a prefix."""
        start = [_part(text) for text in prefix.strip("/").split("/")] if prefix.strip("/") else []
        for route in router.routes:
            copied = Route(route.method, "/", route.handler)
            end = route.parts if route.parts != [""] or not start else []
            copied.parts = start + end
            self.routes.append(copied)
        self.routes.sort(key=Route.rank)

    def match(self, method, path):
        """Return the Match of the first route. HEAD uses routes for GET if it has none of its own.

        Raises:
            NotFound: no route has the path.
            MethodNotAllowed: none of those that have it has the method.
        """
        method = method.upper()
        parts = path.partition("?")[0].lstrip("/").split("/")
        found = {}
        for route in self.routes:
            values = route.match(parts)
            if values is not None:
                found.setdefault(route.method, Match(route.handler, values))
        if not found:
            raise NotFound(path)
        if "GET" in found:
            found.setdefault("HEAD", found["GET"])
        if method not in found:
            raise MethodNotAllowed(sorted(found))
        return found[method]

    def build(self, handler, **values):
        """Return a path with query to a handler, by the route that takes the most of the values as parameters.

        Raises LookupError if no route fits.
        """
        best = None
        for route in self.routes:
            names = {part.name for part in route.parts if isinstance(part, Parameter)}
            fits = route.handler == handler and names <= set(values)
            if fits and (best is None or len(names) > best[0]):
                best = len(names), route
        if best is None:
            raise NotFound(f"no route to {handler!r} with {sorted(values)}")
        return best[1].build(values)


def _shape(route):
    """Return what makes two routes the same but for the names of parameters."""
    return [(part.kind,) if isinstance(part, Parameter) else part for part in route.parts]
