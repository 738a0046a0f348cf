"""MCP servers to try MCPTool on."""
