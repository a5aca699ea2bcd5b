//! The extension for Zed: starts the `mcp-sidecar` on the user's PATH as language server, and for agents as context server.
//! It downloads nothing, because an extension cannot check what Zed unpacks for it.

use zed_extension_api as zed;

const PROGRAM: &str = "mcp-sidecar";
const INSTALL: &str = "mcp-sidecar is not on the PATH; install it as described in \
    https://github.com/mcp-sidecar/mcp-sidecar/blob/main/docs/install.md, then restart Zed";

struct McpSidecar;

impl zed::Extension for McpSidecar {
    fn new() -> Self {
        Self
    }

    fn language_server_command(
        &mut self,
        _: &zed::LanguageServerId,
        worktree: &zed::Worktree,
    ) -> zed::Result<zed::Command> {
        let command = worktree.which(PROGRAM).ok_or(INSTALL)?;
        Ok(zed::Command { command, args: vec!["lsp".to_owned()], env: worktree.shell_env() })
    }

    fn context_server_command(
        &mut self,
        _: &zed::ContextServerId,
        _: &zed::Project,
    ) -> zed::Result<zed::Command> {
        Ok(zed::Command { command: PROGRAM.to_owned(), args: vec!["connect".to_owned()], env: Vec::new() })
    }
}

zed::register_extension!(McpSidecar);
