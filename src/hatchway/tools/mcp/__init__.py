"""MCP servers as tools: settings in, `Tool`s out. See README.md."""
