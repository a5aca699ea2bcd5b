//! The sections of a file that contain servers. Nothing else knows how they are spelled.

use std::path::Path;

use super::tree::{Member, Node, Tree};

/// The section of our own files.
pub const SERVERS: &str = "servers";
/// How most other programs spell it.
pub const MCP_SERVERS: &str = "mcpServers";
/// Both spellings. If a server is in both sections, the first one takes precedence.
pub const SECTIONS: [&str; 2] = [SERVERS, MCP_SERVERS];

/// Whether a key at the top of a file contains servers.
pub fn is_section(key: &str) -> bool {
    SECTIONS.contains(&key)
}

/// The other program that reads a file of this name, and the section that it reads.
pub fn host(path: &Path) -> Option<(&'static str, &'static str)> {
    match () {
        () if path.ends_with(".vscode/mcp.json") => Some(("VS Code", SERVERS)),
        () if path.ends_with(".cursor/mcp.json") => Some(("Cursor", MCP_SERVERS)),
        () if path.ends_with(".mcp.json") => Some(("Claude Code", MCP_SERVERS)),
        () => None,
    }
}

/// The keys that the other program of a file knows in an object, which is named as in messages; `None` if it allows ours.
/// VS Code reports any other key in its file as a mistake.
pub fn known_keys(path: &Path, noun: &str) -> Option<&'static [&'static str]> {
    let known: &[&str] = match noun {
        "config" => &[SERVERS, "inputs"],
        "server" => &["type", "command", "args", "env", "envFile", "cwd", "url", "headers", "oauth", "dev"],
        _ => return None,
    };
    host(path).is_some_and(|(program, _)| program == "VS Code").then_some(known)
}

impl Tree {
    /// The servers of all sections, in file order.
    pub fn servers(&self) -> impl Iterator<Item = &Member> {
        let root = self.root.as_ref().and_then(Node::members).unwrap_or_default();
        let sections = root.iter().filter(|member| is_section(&member.key.text));
        sections.flat_map(|section| section.value.members().unwrap_or_default())
    }

    /// The section that contains a server.
    pub fn section_of(&self, server: &str) -> Option<&'static str> {
        let contains =
            |section: &&str| self.section(section).is_some_and(|section| section.value.get(server).is_some());
        SECTIONS.into_iter().find(contains)
    }

    /// The entry of a server.
    pub fn server(&self, name: &str) -> Option<&Member> {
        self.section(self.section_of(name)?)?.value.get(name)
    }

    pub fn section(&self, key: &str) -> Option<&Member> {
        self.root.as_ref()?.get(key)
    }
}
