//! The JSON Schema of mcp.json.
