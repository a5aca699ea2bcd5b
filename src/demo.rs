//! The MCP server that is built in.
