"""Tools of MCP servers: the client, its sessions, what it accepts; and one server, which tells the time.

What a server answers is untrusted. Tools that gem implements itself are in the wings beside.
"""
