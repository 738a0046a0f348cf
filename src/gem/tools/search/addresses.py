"""Addresses of the internet: for clients that fetch what a model, a document or a server chose."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import re
import socket
from typing import Any

# Inside 2000::/3, but not of the internet: Teredo and other protocols, documentation, 6to4 (it holds an IPv4 address).
_SPECIAL_IPV6 = [ipaddress.IPv6Network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
_UNICAST_IPV6, _NAT64 = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("64:ff9b::/96")
# 192/24 and 192.88.99/24 are for protocols (older Pythons call them global); the last is the host of machines in Azure.
_SPECIAL_IPV4 = [ipaddress.IPv4Network(net) for net in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")]


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the internet. One in IPv6 that stands for IPv4 is judged by that."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast and not any(ip in net for net in _SPECIAL_IPV4)
    if ip.scope_id:  # fe80::1%eth0
        return False
    if (inner := ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else ip.ipv4_mapped) is not None:
        return is_public(str(inner))
    return ip in _UNICAST_IPV6 and ip.is_global and not any(ip in net for net in _SPECIAL_IPV6)


def check_host(host: str) -> None:
    """Raise OSError if the host of a parsed URL is an address that is not public. Names pass; see public_addresses().

    An address must be written as usual: connecting takes 127.1, 0177.0.0.1, 0x7f000001 and 2130706433 for 127.0.0.1.
    """
    last = host.rstrip(".").rpartition(".")[2]
    is_address = ":" in host or last.isdigit() or re.fullmatch("0[xX][0-9a-fA-F]*", last)
    if not host.isascii() or "%" in host or (is_address and not is_public(host)):
        raise OSError(errno.EACCES, f"{host[:100]!r} is not a public address")


async def public_addresses(host: str, port: int, family: int = 0) -> list[tuple[Any, ...]]:
    """Resolve a host once, as socket.getaddrinfo() does. Raises OSError if one of its addresses is not public.

    Connect to what is returned, and not to the name: it may lead elsewhere the next time.
    """
    check_host(host)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG)
    if not all(is_public(str(each[4][0])) for each in found):
        raise OSError(errno.EACCES, f"{host[:100]!r} has an address that is not public")
    return found
