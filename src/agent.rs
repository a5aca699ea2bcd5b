//! The engine as one MCP server, for agents.
