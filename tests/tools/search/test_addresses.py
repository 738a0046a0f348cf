"""Pages at addresses that a search result chose: only public ones are connected to, however they are written."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import socket
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("aiohttp", reason="needs the extra [search]")
pytest.importorskip("selectolax", reason="needs the extra [search]")

from aiohttp import web

from gem.testing.fakes.endpoint import LocalServer
from gem.tools.search.addresses import is_public
from gem.tools.search.web import PageError, PageFetcher

PUBLIC = "93.184.215.14"


class Network:
    """Resolves names and opens connections. No packet leaves: each connection is refused, and its address recorded.

    Attributes:
        names: the addresses of each name; a list is the answers of one query after the other.
        connected: the addresses of all connections.
    """

    def __init__(self) -> None:
        self.names: dict[str, str | list[str]] = {"public.example": PUBLIC}
        self.connected: list[str] = []

    def resolve(self, host: str, port: int, family: int = 0, *args: object, **more: object) -> list[tuple[object, ...]]:
        known = self.names.get(host, "127.0.0.1")  # as anything that is not known to be public
        address = known if isinstance(known, str) else known.pop(0)
        version = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(version, socket.SOCK_STREAM, 6, "", (address, port, *([0, 0] if ":" in address else [])))]

    async def connect(self, loop: object, sock: socket.socket, address: tuple[str, int]) -> None:
        self.connected.append(address[0])
        raise ConnectionRefusedError(111, "refused")


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    found = Network()
    monkeypatch.setattr(socket, "getaddrinfo", found.resolve)
    monkeypatch.setattr(
        asyncio.selector_events.BaseSelectorEventLoop,
        "sock_connect",
        lambda loop, sock, address: found.connect(loop, sock, address),
    )
    return found


def fetch(*urls: str, **settings: bool) -> list[str]:
    """Fetch pages with one fetcher. Returns their texts, or the errors."""

    async def run() -> list[str]:
        pages, found = PageFetcher(timeout=10, **settings), []
        for url in urls:
            try:
                found.append(await pages.text(url))
            except PageError as e:
                found.append(f"error: {e}")
        await pages.close()
        return found

    return asyncio.run(run())


REFUSED = [
    "127.0.0.1",  # this machine, as usual
    "localhost",
    "localhost.",
    "LOCALHOST",
    "[::1]",
    "0.0.0.0",
    "[::]",
    "127.0.0.2",
    "127.255.255.255",
    "127.0.0.1.",
    "127.1",  # numbers that only connecting takes for an address
    "127.0.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.1",
    "0X7F.0.0.1",
    "0177.0.0.1",
    "0177.0x0.0.1",
    "127.0.0.0x1",
    "0",
    "1.1.1.0x100",
    "4294967297",
    "１２７.0.0.1",  # Unicode
    "127。0。0。1",
    "127．0．0．1",
    "127｡0｡0｡1",
    "①②⑦.⓪.⓪.①",
    "١٢٧.0.0.1",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "local\u00adhost",
    "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "[::ffff:127.0.0.1]",  # IPv4 inside IPv6
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[fe80::1]",  # networks that are not public
    "[fe80::1%25eth0]",
    "[2606:4700::1%25lo]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[fec0::1]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "192.0.2.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "user@public.example",  # who is who
    "public.example@127.0.0.1",
    "127.0.0.1@public.example",
    "public.example:80@127.0.0.1",
    "127.0.0.1\\@public.example",
    "127.0.0.1%00.public.example",
    "127.0.0.1\t",
    "exa mple",
    "",
]


@pytest.mark.parametrize("host", REFUSED)
def test_an_address_that_is_not_public_is_refused_however_it_is_written(network: Network, host: str) -> None:
    [said] = fetch(f"http://{host}/page")
    assert said.startswith("error: ") and network.connected == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://public.example/", "gopher://public.example/", "x", "//a", ""]
)
def test_only_the_web_is_fetched(network: Network, url: str) -> None:
    assert fetch(url) == ["error: not an http or https URL"]


def test_a_long_url_is_not_parsed(network: Network) -> None:
    assert fetch("http://" + "é" * 5_000_000) == ["error: the URL has 5,000,007 characters; at most 8,192 are read"]


@pytest.mark.parametrize(
    "host, address",
    [
        ("public.example", PUBLIC),
        ("PUBLIC.example", PUBLIC),
        (PUBLIC, PUBLIC),
        ("[2606:4700::1]", "2606:4700::1"),
        ("[64:ff9b::5db8:d70e]", "64:ff9b::5db8:d70e"),  # a public address through NAT64
        ("0x.example", PUBLIC),
        ("1.2.3.4.example", PUBLIC),
        ("7.example", PUBLIC),
    ],
)
def test_a_public_address_is_connected_to(network: Network, host: str, address: str) -> None:
    network.names |= {name: PUBLIC for name in ("0x.example", "1.2.3.4.example", "7.example")}
    fetch(f"http://{host}/")
    assert network.connected == [address]


@pytest.mark.parametrize("private", ["127.0.0.1", "::1", "::ffff:10.0.0.1", "169.254.169.254", "fe80::1%lo"])
def test_a_name_that_leads_to_an_address_that_is_not_public_is_refused(network: Network, private: str) -> None:
    network.names["rebinding.example"] = private
    [said] = fetch("https://rebinding.example/")
    assert "not public" in said and network.connected == []


def test_a_name_is_resolved_once_per_connection(network: Network) -> None:
    network.names["rebinding.example"] = [PUBLIC, "127.0.0.1"]
    fetch("http://rebinding.example/")
    assert network.connected == [PUBLIC] and network.names["rebinding.example"] == ["127.0.0.1"]


def test_a_name_with_one_private_address_is_refused(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [*network.resolve("public.example", 80), *network.resolve("localhost", 80)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: both)
    fetch("http://both.example/")
    assert network.connected == []


@pytest.mark.parametrize("embedded", ["2002:{:x}:{:x}::1", "2001:0:5ef5:79fd:0:1:{:x}:{:x}", "64:ff9b:1::{:x}:{:x}"])
def test_addresses_of_tunnels_are_never_public(embedded: str) -> None:
    for address in (PUBLIC, "127.0.0.1"):
        number = int(ipaddress.IPv4Address(address))
        assert not is_public(embedded.format(number >> 16, number & 0xFFFF))


# Pages of a server on this machine, which the tests allow


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    servers = []

    def start(**headers: object) -> str:
        async def page(request: object) -> web.Response:
            body = headers.get("body", b"<p>text</p>")
            named = {name: str(value) for name, value in headers.items() if name not in ("body", "status")}
            return web.Response(
                body=body, status=headers.get("status", 200), headers={"Content-Type": "text/html", **named}
            )

        servers.append(LocalServer(web, {("GET", "/"): page}))
        return servers[-1].url + "/"

    yield start
    for server in servers:
        server.close()


def encoded(body: bytes, encoding: str) -> dict[str, object]:
    return {"body": body, "Content-Encoding": encoding}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page, said",
    [
        ({"body": b"<p>plain</p>"}, "plain"),
        (encoded(gzip.compress(b"<p>small</p>"), "gzip"), "small"),
        (encoded(b"<p>same</p>", "identity"), "same"),
        ({"body": b"<p>odd</p>", "Content-Type": "text/html; charset=zlib"}, "odd"),
        ({"body": "<p>ж</p>".encode("koi8-r"), "Content-Type": "text/html; charset=koi8-r"}, "ж"),
        ({"body": b"<p>" + b"x" * (3 << 20)}, "x" * ((2 << 20) - 3)),
        ({"body": b" " * (9 << 20)}, "error: BadInput: the reply has 8,"),
        (encoded(gzip.compress(b" " * (64 << 20)), "gzip"), "error: BadInput: the reply, decompressed, has "),
        (
            encoded(gzip.compress(gzip.compress(b" " * (64 << 20))), "gzip, gzip"),
            "error: BadInput: the reply is encoded",
        ),
        (encoded(b"x", "br"), "error: BadInput: the reply is encoded as 'br'"),
        (encoded(b"no gzip", "gzip"), "error: BadInput: the reply has invalid compressed data"),
        (
            encoded(gzip.compress(b"<p>" + b"x" * 100)[:-9], "gzip"),
            "error: BadInput: the reply is compressed and cut off",
        ),
    ],
)
def test_a_page_is_limited_after_decompression(serve: Callable[..., str], page: dict[str, object], said: str) -> None:
    [text] = fetch(serve(**page), allow_private=True)
    assert text == said or (said.startswith("error") and text.startswith(said))


def test_of_a_page_of_nested_tags_a_bounded_part_is_parsed(serve: Callable[..., str]) -> None:
    deep, usual = serve(body=b"<div>" * 400_000 + b"end"), serve(body=b"<p>usual</p>")

    async def run() -> list[str]:
        fetcher = PageFetcher(timeout=60.0, allow_private=True)
        texts = await asyncio.gather(fetcher.text(deep), fetcher.text(usual))
        await fetcher.close()
        return texts

    assert asyncio.run(run()) == ["", "usual"]


@pytest.mark.parametrize("to", ["http://127.0.0.1:1/", "//[::1]/", "http://１２７.1/", "file:///etc/passwd"])
def test_each_redirect_is_checked(serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    start = serve(status=302, Location=to)
    checked = PageFetcher._check_url

    def check(self: PageFetcher, url: object) -> None:
        self._allow_private = str(url) == start
        checked(self, url)

    monkeypatch.setattr(PageFetcher, "_check_url", check)
    [said] = fetch(start, allow_private=True)
    assert "not a public address" in said or "not an http" in said
