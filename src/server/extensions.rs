//! The extensions of MCP that we declare to servers: those that we support, and those that agents can use through us.

use rmcp::model::{ExtensionCapabilities, JsonObject, TASKS_EXTENSION_ID};
use serde_json::json;

/// MCP Apps: tools with a page that a host can show. We pass the pages on; hosts that cannot show them ignore them.
pub const UI: &str = "io.modelcontextprotocol/ui";
/// The type of these pages.
const UI_TYPE: &str = "text/html;profile=mcp-app";

/// What we declare to every server.
pub fn declared() -> ExtensionCapabilities {
    let mut ui = JsonObject::new();
    ui.insert("mimeTypes".to_owned(), json!([UI_TYPE]));
    let mut extensions = ExtensionCapabilities::new();
    extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
    extensions.insert(UI.to_owned(), ui);
    extensions
}
