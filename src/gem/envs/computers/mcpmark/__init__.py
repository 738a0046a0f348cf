"""Tasks of MCPMark, on real MCP servers: services, databases, verification. See docs/mcpmark.md.

The client of MCP servers is in gem.tools.mcp, and tasks without one are in the wings beside.
"""
