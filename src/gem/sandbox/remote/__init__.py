"""Sandboxes and machines of another host: the client, its server, and the protocol between them."""
