# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""URLs: split into parts, joined, and put into one form."""

from collections import namedtuple

PORTS = {"http": 80, "https": 443, "ftp": 21}
UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
HEX = "0123456789ABCDEFabcdef"


class Url(namedtuple("Url", "scheme user host port path query fragment")):
    """The parts of a URL. A part that is not there is None, but for the path, which is "" then; the port is an int."""

    def __str__(self):
        text = f"{self.scheme}:" if self.scheme is not None else ""
        if self.host is not None:
            text += "//"
            if self.user is not None:
                text += f"{self.user}@"
            text += f"[{self.host}]" if ":" in self.host else self.host
            if self.port is not None:
                text += f":{self.port}"
        text += self.path
        if self.query is not None:
            text += f"?{self.query}"
        if self.fragment is not None:
            text += f"#{self.fragment}"
        return text


def split(text):
    """Return the parts of a URL. Raises ValueError for a port that is no number up to 65535, or an open bracket."""
    rest, hash_sign, fragment = text.partition("#")
    rest, question_mark, query = rest.partition("?")
    scheme, colon, after = rest.partition(":")
    if colon and _is_scheme(scheme):
        rest = after
    else:
        scheme = None
    user = host = port = None
    if rest.startswith("//"):
        place, slash, path = rest[2:].partition("/")
        rest = slash + path
        name, at, place_after = place.rpartition("@")
        user = name if at else None
        host, port = _host_and_port(place_after)
    return Url(
        scheme.lower() if scheme else None,
        user,
        host,
        port,
        rest,
        query if question_mark else None,
        fragment if hash_sign else None,
    )


def _is_scheme(text):
    return text[:1].isalpha() and all(char.isalnum() or char in "+-." for char in text)


def _host_and_port(text):
    if text.startswith("["):
        host, closed, after = text[1:].partition("]")
        if not closed or (after and not after.startswith(":")):
            raise ValueError(f"invalid address {text!r}")
        port = after[1:]
    else:
        host, _, port = text.partition(":")
    if not port:
        return host.lower(), None
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"invalid port {port!r}")
    return host.lower(), int(port)


def quote(text, safe="/"):
    """Escape all characters of a text but letters, digits, "-._~" and the safe ones, as UTF-8."""
    result = []
    for char in text:
        if char in UNRESERVED or char in safe:
            result.append(char)
        else:
            result.extend(f"%{byte:02X}" for byte in char.encode("utf-8"))
    return "".join(result)


def unquote(text):
    """Replace escapes by characters. What is no escape stays; bytes that are not UTF-8 become U+FFFD."""
    data = bytearray()
    index = 0
    while index < len(text):
        digits = text[index + 1 : index + 3]
        if text[index] == "%" and len(digits) == 2 and all(digit in HEX for digit in digits):
            data.append(int(digits, 16))
            index += 3
        else:
            data += text[index].encode("utf-8")
            index += 1
    return data.decode("utf-8", "replace")


def remove_dots(path):
    """Return a path without "." and "..". What would lead above the root is left out."""
    result = []
    parts = path.split("/")
    for part in parts:
        if part == "..":
            if len(result) > 1 or (result and result[0] != ""):
                result.pop()
        elif part != ".":
            result.append(part)
    if parts[-1] in (".", ".."):
        result.append("")
    joined = "/".join(result)
    return "/" + joined if path.startswith("/") and not joined.startswith("/") else joined


def join(base, reference):
    """Return the URL that a reference in a page stands for. Both are texts; the base has a scheme."""
    start, found = split(base), split(reference)
    if found.scheme is not None:
        return str(found._replace(path=remove_dots(found.path)))
    if found.host is not None:
        return str(found._replace(scheme=start.scheme, path=remove_dots(found.path)))
    if not found.path:
        query = start.query if found.query is None else found.query
        return str(start._replace(query=query, fragment=found.fragment))
    if found.path.startswith("/"):
        path = found.path
    elif start.host is not None and not start.path:
        path = "/" + found.path
    else:
        path = start.path[: start.path.rfind("/") + 1] + found.path
    return str(start._replace(path=remove_dots(path), query=found.query, fragment=found.fragment))


def normalize(text):
    """Return the form of a URL that is the same for URLs that mean the same.

    Scheme and host in lower case, no port that is usual for the scheme, a path without dots, escapes only where they
    are needed and in upper case, and no empty query or fragment.
    """
    url = split(text)
    port = None if url.port == PORTS.get(url.scheme) else url.port
    path = remove_dots(url.path)
    if url.host is not None and not path:
        path = "/"
    return str(
        url._replace(
            port=port,
            path=_escapes(path),
            query=_escapes(url.query) if url.query else None,
            fragment=_escapes(url.fragment) if url.fragment else None,
        )
    )


def _escapes(text):
    """Undo escapes of unreserved characters and write the others in upper case."""
    result = ""
    index = 0
    while index < len(text):
        digits = text[index + 1 : index + 3]
        if text[index] == "%" and len(digits) == 2 and all(digit in HEX for digit in digits):
            char = chr(int(digits, 16))
            result += char if char in UNRESERVED else f"%{digits.upper()}"
            index += 3
        else:
            result += text[index]
            index += 1
    return result
