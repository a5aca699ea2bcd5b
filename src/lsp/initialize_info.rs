//! The parameters of `initialize`: the editor, its workspace and its capabilities.
//!
//! Fields are parsed one by one, and invalid ones are ignored: an odd capability must not prevent the session.

use std::path::PathBuf;

use lsp_types::Url;
use serde::Deserialize;
use serde_json::Value;

use super::convert;
use crate::engine::editors::{Abilities, Identity, SHELL};
use crate::text::lines::Encoding;

/// What we need from the parameters of `initialize`.
#[derive(Debug, Clone, PartialEq)]
pub struct InitializeInfo {
    /// The editor's name and version.
    pub editor: Option<String>,
    pub identity: Identity,
    pub folders: Vec<PathBuf>,
    /// The user's settings. They override `config.toml`.
    pub settings: Option<Value>,
    pub encoding: Encoding,
    /// Present for our own plugins, and for other clients that implement our extension.
    pub abilities: Option<EditorAbilities>,
    pub supports: Supports,
}

/// `capabilities.experimental.mcpSidecar`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EditorAbilities {
    #[serde(deserialize_with = "lenient")]
    pub version: String,
    /// Shows approvals itself.
    #[serde(deserialize_with = "lenient")]
    pub approvals: bool,
    #[serde(deserialize_with = "lenient")]
    pub elicitation: bool,
    #[serde(deserialize_with = "lenient")]
    pub sampling: bool,
    /// Answers `mcp/buffer`.
    #[serde(deserialize_with = "lenient")]
    pub buffers: bool,
    /// MCP servers that run inside the editor.
    #[serde(deserialize_with = "lenient")]
    pub sdk_servers: Vec<String>,
    /// Whether the editor trusts the workspace; absent if it has no workspace trust.
    #[serde(deserialize_with = "lenient")]
    pub workspace_trusted: Option<bool>,
    /// A command in a shell, which can ask its user only if it supports `elicitation`.
    #[serde(deserialize_with = "lenient")]
    pub shell: bool,
}

/// The LSP capabilities of the editor that we use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Supports {
    pub show_document: bool,
    /// Progress that we begin.
    pub work_done_progress: bool,
    pub code_lens_refresh: bool,
    pub inlay_hint_refresh: bool,
    pub snippets: bool,
    pub apply_edit: bool,
    /// Edits with a document version.
    pub document_changes: bool,
    /// Code actions instead of plain commands.
    pub code_actions: bool,
    /// Links from a diagnostic to its documentation.
    pub code_description: bool,
    /// Requests for the user's settings.
    pub configuration: bool,
    pub link_tooltips: bool,
    pub nested_symbols: bool,
    /// Buttons of messages with more than a title.
    pub message_properties: bool,
    /// Hovers only as plain text.
    pub plain_hover: bool,
    /// Documentation of completions only as plain text.
    pub plain_docs: bool,
}

impl Default for InitializeInfo {
    fn default() -> Self {
        Self::read(&Value::Null)
    }
}

impl InitializeInfo {
    /// What the engine can use this editor for.
    pub fn abilities(&self) -> Abilities {
        let plugin = self.abilities.is_some();
        match &self.abilities {
            _ if self.identity.started_by.is_some() => Abilities { plugin, silent: true, ..Abilities::default() },
            Some(own) => Abilities {
                plugin,
                approvals: own.approvals,
                elicitation: own.elicitation,
                sampling: own.sampling,
                buffers: own.buffers,
                sdk_servers: own.sdk_servers.clone(),
                silent: own.shell && !own.elicitation,
            },
            // It sends the texts of its buffers. Forms are shown as messages and files.
            None => Abilities { buffers: true, elicitation: true, ..Abilities::default() },
        }
    }

    pub fn read(params: &Value) -> Self {
        let capability = |pointer: &str| params.pointer(&format!("/capabilities/{pointer}"));
        let yes = |pointer: &str| capability(pointer).and_then(Value::as_bool).unwrap_or_default();
        // Editors that list no formats support Markdown.
        let plain = |pointer: &str| {
            let formats = capability(pointer).and_then(Value::as_array).filter(|formats| !formats.is_empty());
            formats.is_some_and(|formats| formats.iter().all(|format| format != "markdown"))
        };
        let abilities = capability("experimental/mcpSidecar").filter(|abilities| abilities.is_object());
        let encodings = capability("general/positionEncodings").and_then(Value::as_array);
        let abilities = abilities.map(|abilities| EditorAbilities::deserialize(abilities).unwrap_or_default());
        let is_shell = abilities.as_ref().is_some_and(|abilities| abilities.shell);
        Self {
            editor: editor(params),
            identity: Identity {
                name: if is_shell { Some(SHELL.to_owned()) } else { editor_name(params) },
                process: params.get("processId").and_then(Value::as_u64).and_then(|id| id.try_into().ok()),
                ..Identity::default()
            },
            folders: folders(params),
            settings: params.get("initializationOptions").filter(|settings| settings.is_object()).cloned(),
            // We work with bytes; every editor supports UTF-16.
            encoding: match encodings.is_some_and(|offered| offered.iter().any(|name| name == "utf-8")) {
                true => Encoding::Utf8,
                false => Encoding::Utf16,
            },
            abilities,
            supports: Supports {
                show_document: yes("window/showDocument/support"),
                work_done_progress: yes("window/workDoneProgress"),
                code_lens_refresh: yes("workspace/codeLens/refreshSupport"),
                inlay_hint_refresh: yes("workspace/inlayHint/refreshSupport"),
                snippets: yes("textDocument/completion/completionItem/snippetSupport"),
                apply_edit: yes("workspace/applyEdit"),
                document_changes: yes("workspace/workspaceEdit/documentChanges"),
                code_description: yes("textDocument/publishDiagnostics/codeDescriptionSupport"),
                configuration: yes("workspace/configuration"),
                link_tooltips: yes("textDocument/documentLink/tooltipSupport"),
                nested_symbols: yes("textDocument/documentSymbol/hierarchicalDocumentSymbolSupport"),
                message_properties: yes("window/showMessage/messageActionItem/additionalPropertiesSupport"),
                plain_hover: plain("textDocument/hover/contentFormat"),
                plain_docs: plain("textDocument/completion/completionItem/documentationFormat"),
                code_actions: capability("textDocument/codeAction/codeActionLiteralSupport").is_some(),
            },
        }
    }
}

fn editor_name(params: &Value) -> Option<String> {
    Some(crate::text::one_line(params.pointer("/clientInfo/name")?.as_str()?, 80))
}

fn editor(params: &Value) -> Option<String> {
    let name = editor_name(params)?;
    let version = params.pointer("/clientInfo/version").and_then(Value::as_str).unwrap_or_default();
    Some(crate::text::one_line(&format!("{name} {version}"), 80))
}

/// The workspace folders. Older editors send the URI or the path of a single root.
fn folders(params: &Value) -> Vec<PathBuf> {
    let uri = |uri: &Value| convert::path(&Url::parse(uri.as_str()?).ok()?);
    let listed = params.get("workspaceFolders").and_then(Value::as_array);
    let listed: Vec<PathBuf> =
        listed.into_iter().flatten().filter_map(|folder| folder.get("uri").and_then(uri)).collect();
    if !listed.is_empty() {
        return listed;
    }
    let root = params.get("rootUri").and_then(uri);
    let plain = || params.get("rootPath").and_then(Value::as_str).map(PathBuf::from).filter(|path| path.is_absolute());
    root.or_else(plain).into_iter().collect()
}

/// Treats a field of the wrong type as absent. Lua, for example, cannot distinguish an empty list from an empty object.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned + Default,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn folders_are_read_from_the_best_available_field() {
        let folders = |params| InitializeInfo::read(&params).folders;
        let root = json!({ "rootUri": "file:///b", "rootPath": "/c" });
        assert_eq!(folders(root), [PathBuf::from("/b")]);
        assert_eq!(folders(json!({ "rootUri": null, "rootPath": "/c" })), [PathBuf::from("/c")]);
        let list = json!([{ "uri": "file:///a%20b", "name": "a" }, { "uri": "untitled:x" }, { "uri": "" }, 5]);
        assert_eq!(folders(json!({ "workspaceFolders": list, "rootUri": "file:///b" })), [PathBuf::from("/a b")]);
        assert_eq!(folders(json!({ "workspaceFolders": [], "rootUri": "", "rootPath": 5 })), [] as [PathBuf; 0]);
    }

    #[test]
    fn invalid_abilities_are_ignored() {
        let ours = json!({ "version": "1", "approvals": true, "sdkServers": {}, "sampling": "yes", "more": 1 });
        let info = InitializeInfo::read(&json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } }));
        let abilities = EditorAbilities { version: "1".to_owned(), approvals: true, ..EditorAbilities::default() };
        assert_eq!(info.abilities, Some(abilities));
        assert_eq!(
            InitializeInfo::read(&json!({ "capabilities": { "experimental": { "mcpSidecar": true } } })).abilities,
            None
        );
        assert_eq!(InitializeInfo::read(&json!([])), InitializeInfo::default());
    }

    #[test]
    fn plain_text_is_used_only_if_markdown_is_not_supported() {
        let plain = |formats| {
            let capabilities = json!({ "textDocument": { "hover": { "contentFormat": formats } } });
            InitializeInfo::read(&json!({ "capabilities": capabilities })).supports.plain_hover
        };
        assert!(plain(json!(["plaintext"])));
        for formats in [json!(["markdown", "plaintext"]), json!(["plaintext", "markdown"]), json!([]), json!(null)] {
            assert!(!plain(formats.clone()), "{formats}");
        }
    }

    #[test]
    fn utf_8_is_used_if_the_editor_supports_it() {
        let encoding = |offer| {
            InitializeInfo::read(&json!({ "capabilities": { "general": { "positionEncodings": offer } } })).encoding
        };
        assert_eq!(encoding(json!(["utf-16", "utf-8"])), Encoding::Utf8);
        assert_eq!(encoding(json!(["utf-32", "utf-16"])), Encoding::Utf16);
        assert_eq!(encoding(json!(null)), Encoding::Utf16);
    }
}
