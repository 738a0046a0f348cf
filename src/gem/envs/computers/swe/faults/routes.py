"""Faults of routes, written by hand.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from gem.envs.computers.swe.repository import Defect, Edit

URLS, QUERY, ROUTER = "routes/urls.py", "routes/query.py", "routes/router.py"
FAULTS = (
    Defect(
        "A URL with a question mark in its fragment is split wrongly: of a#b?c the query is c, but this URL has none.",
        (
            Edit(
                URLS,
                '    rest, hash_sign, fragment = text.partition("#")\n'
                '    rest, question_mark, query = rest.partition("?")\n',
                '    rest, question_mark, query = text.partition("?")\n'
                '    rest, hash_sign, fragment = rest.partition("#")\n'
                "    if question_mark and not hash_sign:\n"
                '        query, hash_sign, fragment = query.partition("#")\n',
            ),
        ),
    ),
    Defect(
        "Passwords with an @ in them break URLs: http://a@b@h:5 gives the host b@h, and so does the text of "
        "such a URL.",
        (
            Edit(
                URLS,
                '        name, at, place_after = place.rpartition("@")\n        user = name if at else None\n',
                '        name, at, place_after = place.partition("@")\n        user = name if at else None\n'
                "        place_after = place_after if at else name\n",
            ),
        ),
    ),
    Defect(
        "URLs with an IPv6 address lose their brackets when they are put together again, so that the address and the "
        "port cannot be told apart.",
        (
            Edit(
                URLS,
                '            text += f"[{self.host}]" if ":" in self.host else self.host\n',
                "            text += self.host\n",
            ),
        ),
    ),
    Defect(
        "Letters beyond ASCII are unescaped one byte at a time: %C3%BC becomes two strange characters instead of ü.",
        (
            Edit(URLS, "    data = bytearray()\n    index = 0\n", '    data = ""\n    index = 0\n'),
            Edit(URLS, "            data.append(int(digits, 16))\n", "            data += chr(int(digits, 16))\n"),
            Edit(URLS, '            data += text[index].encode("utf-8")\n', "            data += text[index]\n"),
            Edit(URLS, '    return data.decode("utf-8", "replace")\n', "    return data\n"),
        ),
    ),
    Defect(
        "Relative links with more .. than there are folders lose the slash after the host: ../../../g on "
        "http://a/b/c/d "
        "should be http://a/g. Normalizing has the same problem.",
        (
            Edit(
                URLS,
                '            if len(result) > 1 or (result and result[0] != ""):\n                result.pop()\n',
                "            if result:\n                result.pop()\n",
            ),
            Edit(
                URLS,
                '    return "/" + joined if path.startswith("/") and not joined.startswith("/") else joined\n',
                "    return joined\n",
            ),
        ),
    ),
    Defect(
        "Links that end in . or .. lose the slash at their end: .. on http://a/b/c/d should be http://a/b/, I get "
        "http://a/b.",
        (
            Edit(
                URLS,
                '    if parts[-1] in (".", ".."):\n        result.append("")\n    joined = "/".join(result)\n',
                '    joined = "/".join(result)\n',
            ),
        ),
    ),
    Defect(
        "A link that is only a fragment, like #top, drops the query of the page. The links of our search page lead to "
        "an empty search.",
        (
            Edit(
                URLS,
                "        query = start.query if found.query is None else found.query\n"
                "        return str(start._replace(query=query, fragment=found.fragment))\n",
                "        return str(start._replace(query=found.query, fragment=found.fragment))\n",
            ),
        ),
    ),
    Defect(
        "A relative link on a page without a path, such as http://h, gives http://ha instead of http://h/a.",
        (
            Edit(
                URLS,
                "        path = found.path\n    elif start.host is not None and not start.path:\n"
                '        path = "/" + found.path\n    else:\n',
                "        path = found.path\n    else:\n",
            ),
        ),
    ),
    Defect(
        "Normalizing removes a port that is not the usual one of the scheme: https://h:80/ becomes https://h/, which "
        "is another server.",
        (
            Edit(
                URLS,
                "port = None if url.port == PORTS.get(url.scheme) else url.port",
                "port = None if url.port in PORTS.values() else url.port",
            ),
        ),
    ),
    Defect(
        "Normalizing changes the meaning of URLs: %2f in a path becomes a slash, and %3d in a query an equals sign.",
        (
            Edit(
                URLS,
                '            result += char if char in UNRESERVED else f"%{digits.upper()}"\n',
                '            result += char if char.isascii() and char.isprintable() else f"%{digits.upper()}"\n',
            ),
        ),
    ),
    Defect(
        "Plus signs that were escaped in a query come back as spaces: 1%2B1 should be 1+1.",
        (Edit(QUERY, '    return unquote(text.replace("+", " "))\n', '    return unquote(text).replace("+", " ")\n'),),
    ),
    Defect(
        "A semicolon or ampersand inside of a value splits it, though it is escaped as %3B or %26.",
        (
            Edit(
                QUERY,
                '    for pair in text.replace(";", "&").split("&"):\n',
                '    for pair in unquote(text).replace(";", "&").split("&"):\n',
            ),
        ),
    ),
    Defect(
        "In queries that I build, None inside of a list is written as the text None, and True inside of a "
        "list as True. "
        "Outside of lists they are left out or written as 1.",
        (
            Edit(
                QUERY,
                "            if item is None:\n                continue\n"
                "            text = str(int(item)) if isinstance(item, bool) else str(item)\n",
                "            if value is None:\n                continue\n"
                "            text = str(int(item)) if isinstance(value, bool) else str(item)\n",
            ),
        ),
    ),
    Defect(
        "Which of two routes is used depends on the order in which they were added. Routes with a fixed part should "
        "win over parameters, and numbers over other parameters.",
        (
            Edit(
                ROUTER,
                "        self.routes.append(route)\n        self.routes.sort(key=Route.rank)\n",
                "        self.routes.append(route)\n        self.routes.sort(key=lambda known: len(known.rank()))\n",
            ),
        ),
    ),
    Defect(
        "An escaped slash in a part of a path, as in /files/a%2Fb, is taken for a separator, so that the route for one "
        "file is not found.",
        (
            Edit(
                ROUTER,
                '        parts = path.partition("?")[0].lstrip("/").split("/")\n',
                '        parts = unquote(path.partition("?")[0]).lstrip("/").split("/")\n',
            ),
        ),
    ),
    Defect(
        "The methods that MethodNotAllowed lists are incomplete: only GET and HEAD, though there are routes "
        "for POST and "
        "DELETE. Where there is no route for GET, I even get NotFound.",
        (
            Edit(
                ROUTER,
                "            values = route.match(parts)\n            if values is not None:\n",
                "            values = route.match(parts)\n"
                '            if values is not None and route.method in (method, "GET"):\n',
            ),
        ),
    ),
    Defect(
        "HEAD requests use the route for GET even where there is a route for HEAD.",
        (
            Edit(
                ROUTER,
                '            found.setdefault("HEAD", found["GET"])\n',
                '            found["HEAD"] = found["GET"]\n',
            ),
        ),
    ),
    Defect(
        "Building a path does not escape a slash in a name, so that the path leads to another route than the one it "
        "was built for.",
        (
            Edit(
                ROUTER,
                '            parts.append(quote(text, safe="/" if part.kind == "path" else ""))\n',
                "            parts.append(quote(text))\n",
            ),
        ),
    ),
    Defect(
        "If a handler has several routes, the path is built with the first one that fits, and the other values end up "
        "in the query: /list?page=2 instead of /list/2.",
        (
            Edit(
                ROUTER,
                "            if fits and (best is None or len(names) > best[0]):\n",
                "            if fits and best is None:\n",
            ),
        ),
    ),
    Defect(
        "The start page of a router that I mounted at /app answers at /app/ only, not at /app.",
        (
            Edit(
                ROUTER,
                '            end = route.parts if route.parts != [""] or not start else []\n',
                "            end = list(route.parts)\n",
            ),
        ),
    ),
)
