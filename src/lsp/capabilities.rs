//! The capabilities that we announce to the editor.

use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions, CompletionOptions,
    DocumentLinkOptions, ExecuteCommandOptions, FoldingRangeProviderCapability, HoverProviderCapability,
    InitializeResult, OneOf, RenameOptions, SaveOptions, SelectionRangeProviderCapability, ServerCapabilities,
    ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    WorkDoneProgressOptions, WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};
use serde_json::json;

use super::convert;
use super::initialize_info::InitializeInfo;
use crate::protocol;

/// The response to `initialize`. An editor with our plugin gets a ticket. It passes the ticket to `connect`, to prove that
/// the editor asks the user itself. An agent must not get one through an editor that it started.
pub fn answer(info: &InitializeInfo, ticket: &str) -> InitializeResult {
    let version = env!("CARGO_PKG_VERSION");
    let mut ours = json!({ "version": version, "protocol": protocol::VERSION, "commands": commands() });
    let may_decide = info.identity.started_by.is_none();
    if let (Some(_), true, Some(ours)) = (&info.abilities, may_decide, ours.as_object_mut()) {
        ours.insert("ticket".to_owned(), ticket.into());
    }
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(convert::encoding(info.encoding)),
            text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                open_close: Some(true),
                // Config files are small, and with full texts nothing can get out of sync.
                change: Some(TextDocumentSyncKind::FULL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
                ..TextDocumentSyncOptions::default()
            })),
            completion_provider: Some(CompletionOptions {
                // The first characters of a key, a string or a variable.
                trigger_characters: Some(["\"", "$", "{", ":"].map(str::to_owned).into()),
                ..CompletionOptions::default()
            }),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            definition_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            document_highlight_provider: Some(OneOf::Left(true)),
            rename_provider: Some(OneOf::Right(RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: WorkDoneProgressOptions::default(),
            })),
            selection_range_provider: Some(SelectionRangeProviderCapability::Simple(true)),
            document_symbol_provider: Some(OneOf::Left(true)),
            folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
            document_link_provider: Some(DocumentLinkOptions {
                resolve_provider: Some(false),
                work_done_progress_options: WorkDoneProgressOptions::default(),
            }),
            code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
            inlay_hint_provider: Some(OneOf::Left(true)),
            code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, CodeActionKind::REFACTOR]),
                work_done_progress_options: WorkDoneProgressOptions::default(),
                resolve_provider: Some(false),
            })),
            execute_command_provider: Some(ExecuteCommandOptions {
                commands: commands(),
                work_done_progress_options: WorkDoneProgressOptions { work_done_progress: Some(true) },
            }),
            workspace: Some(WorkspaceServerCapabilities {
                workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                    supported: Some(true),
                    change_notifications: Some(OneOf::Left(true)),
                }),
                file_operations: None,
            }),
            experimental: Some(json!({ "mcpSidecar": ours })),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo { name: "mcp-sidecar".to_owned(), version: Some(version.to_owned()) }),
    }
}

fn commands() -> Vec<String> {
    protocol::commands::NAMES.iter().map(|&name| name.to_owned()).collect()
}
