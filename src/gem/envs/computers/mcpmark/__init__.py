"""Tasks of MCPMark, on real MCP servers. See docs/mcpmark.md."""
