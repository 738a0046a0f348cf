"""Listening sockets for the HTTP servers."""

from __future__ import annotations

import socket

from gem.errors import BadValue

BACKLOG = 2048  # connections waiting to be accepted


def bind_socket(host: str, port: int) -> socket.socket:
    """Open a listening TCP socket.

    Args:
        host: address or host name.
        port: 0 selects a free port.

    Raises:
        BadValue: if the address is invalid or in use.
    """
    if not 0 <= port < 1 << 16:
        raise BadValue(f"cannot listen on {host}:{port}: the port must be below {1 << 16}")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = found[0]
        # asyncio sets TCP_NODELAY only if the protocol is given. Without TCP_NODELAY, small replies are 40 ms late.
        listening = socket.socket(family, kind, socket.IPPROTO_TCP)
    except OSError as e:
        raise BadValue(f"cannot listen on {host}:{port}: {e}") from e
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)  # before the caller announces the address, so that early clients wait
    except OSError as e:
        listening.close()
        raise BadValue(f"cannot listen on {host}:{port}: {e}") from e
    return listening
