"""The MCP server: reads a workspace for coding agents, and runs it within a budget."""
