//! The supported programs. Their differences are in `dialects`.

use serde::{Deserialize, Serialize};

use super::dialects;
use super::format::Format;

/// Declares every program once, with its file in `dialects`.
macro_rules! dialects {
    ($($(#[$attribute:meta])* $name:ident in $file:ident,)+) => {
        /// The file format of a program that hosts MCP servers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Dialect {
            $($(#[$attribute])* $name,)+
        }

        impl Dialect {
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name),+];

            pub(super) fn format(self) -> &'static Format {
                match self {
                    $(Self::$name => &dialects::$file::FORMAT,)+
                }
            }
        }
    };
}

dialects! {
    #[serde(rename = "vscode")]
    VsCode in vscode,
    Claude in claude,
    ClaudeDesktop in claude_desktop,
    Cursor in cursor,
    Windsurf in windsurf,
    Zed in zed,
    Cline in cline,
    Codex in codex,
    Gemini in gemini,
    Qwen in qwen,
    #[serde(rename = "opencode")]
    OpenCode in opencode,
    Copilot in copilot,
    Continue in continue_,
    Goose in goose,
    #[serde(rename = "mcphub")]
    McpHub in mcphub,
}

impl Dialect {
    /// The name on the wire and on the command line.
    pub fn name(self) -> &'static str {
        self.format().name
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == text)
    }

    /// Whether the program can start `mcp-sidecar connect`. mcphub only hosts servers.
    pub fn is_agent(self) -> bool {
        self != Self::McpHub
    }

    /// The command of the program itself that was seen to accept our entry, if it could be run.
    pub fn tried_with(self) -> Option<&'static str> {
        self.format().setup.tried_with
    }

    /// The config files of a project, relative to its folder.
    pub fn project_files(self) -> &'static [&'static str] {
        self.format().project_files
    }

    /// The display name.
    pub fn title(self) -> &'static str {
        self.format().title
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
