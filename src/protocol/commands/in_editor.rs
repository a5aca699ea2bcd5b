//! Commands that work on a text or a prompt in the editor that sends them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Calls a tool after its form was filled in, for a code action. An editor with its own form handles this command itself;
/// without one, only a tool that needs no arguments can be called.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolOpen {
    /// The whole name: `mcp__server__tool`.
    pub tool: String,
}

/// Shows a question again, for a code action. An editor with its own prompt handles this command itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalShow {
    pub id: String,
}

/// Runs an entry of `actions`. Without `action`, the user is asked which tool gets the selection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ActionRun {
    /// The id of the entry, as the code action contains it. For an entry of your own files, the title also works.
    pub action: Option<String>,
    pub uri: String,
    /// A range of LSP.
    pub range: Value,
    /// The text, from an editor that does not keep it in sync with `textDocument/didChange`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<SentDocument>,
}

/// A text of an editor, sent with the command that needs it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SentDocument {
    /// The language id of the editor.
    pub filetype: String,
    pub version: i32,
    pub text: String,
}

/// Lists the entries of `actions` for files of a type. They change only when a config file or a server does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Actions {
    /// The language id of the editor.
    pub filetype: String,
}

/// Applies edits that a code action or a lens offered.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EditApply {
    pub uri: String,
    /// The version of the text that they are for.
    pub version: Option<i32>,
    /// Text edits of LSP.
    pub edits: Value,
    pub label: Option<String>,
}

/// Moves a secret from an open config file to the keyring.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SecretKeep {
    pub uri: String,
    /// A range of LSP.
    pub range: Value,
}

/// Asks the user for the level of a tool, or of all tools of a server, in an open config file, and sets it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LevelChoose {
    pub uri: String,
    /// A range of LSP. It is in the rule of the tool, or elsewhere in the entry of the server.
    pub range: Value,
}

/// Inserts a template into an open config file. Without `template`, the user is asked which.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TemplateInsert {
    pub uri: String,
    pub template: Option<String>,
}
