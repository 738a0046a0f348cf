"""Tools for agents: base classes, call formats, Python, search and MCP servers."""
