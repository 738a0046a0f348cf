"""Tools of MCP servers: the client, its sessions, what it accepts; and one server, which tells the time."""
