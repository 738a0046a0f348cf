"""Sandboxes and machines of another host: the client, its server, and the protocol between them.

The server isolates with the backends beside; nothing here confines a program.
"""
