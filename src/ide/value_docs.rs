//! The documentation of values: levels, types, variables, programs and other choices.

use crate::model::Level;

/// The documentation of a value. No value has two meanings.
pub fn describe_value(word: &str) -> Option<&'static str> {
    if let Some(level) = Level::parse(word) {
        return Some(describe_level(level));
    }
    Some(match word {
        "stdio" => "A local program that communicates over stdin and stdout. Requires `command`.",
        "http" => "A remote server over streamable HTTP. Requires `url`.",
        "sse" => "A remote server over the older HTTP+SSE transport. Requires `url`; prefer `http`.",
        "tcp" => "A server that already runs on this machine and listens on a port. Requires `port`.",
        "sdk" => "A server inside the editor that a plugin provides under `name`.",
        "claudeai-proxy" => "A claude.ai connector that is reached through its proxy. Requires `url` and `id`.",
        "allow" => "Tools without a rule run without asking.",
        "confirm" => "Tools without a rule require your approval for each call.",
        "show" => "Shows the result.",
        "insert" => "Inserts the result at the cursor.",
        "replace" => "Replaces the selection with the result.",
        "append" => "Appends the result to the file.",
        "promptString" => "Asks for a text.",
        "pickString" => "Asks to choose one of `options`.",
        _ => return None,
    })
}

pub fn describe_level(level: Level) -> &'static str {
    match level {
        Level::Disable => "Hides the tool from all lists and rejects every call.",
        Level::Deny => "Shows the tool but rejects every call.",
        Level::RequireApproval => "Asks you before each call. This is the default.",
        Level::AllowOnce => "Allows the first call in a session, then asks.",
        Level::AllowSession => "Does not ask. As an answer to an approval, it applies until the session ends.",
        Level::AllowProject => "Does not ask. As an answer to an approval, it applies to this project.",
        Level::AllowAlways => "Does not ask. As an answer to an approval, it applies everywhere until you revoke it.",
    }
}

/// The built-in variables for servers.
pub const VARIABLES: [(&str, &str); 5] = [
    ("workspaceFolder", "The workspace folder that this file belongs to."),
    ("workspaceFolderBasename", "The last part of the workspace folder's path."),
    ("userHome", "Your home folder."),
    ("pathSeparator", "The separator between the parts of a path on this system."),
    ("cwd", "The default working directory of the server: the workspace folder."),
];

/// The variables for actions, with values from the cursor position.
pub const ACTION_VARIABLES: [(&str, &str); 7] = [
    ("selection", "The selected text."),
    ("word", "The word at the cursor."),
    ("line", "The line at the cursor."),
    ("file", "The path of the file."),
    ("relativeFile", "The path of the file, relative to the workspace folder."),
    ("filetype", "The editor's name for the type of the file."),
    ("workspaceFolder", "The workspace folder of the file."),
];

/// Programs that are commonly used to start servers.
pub const PROGRAMS: [(&str, &str); 12] = [
    ("npx", "Runs an npm package without installing it. Add `-y`, otherwise it waits for confirmation."),
    ("uvx", "Runs a PyPI package without installing it."),
    ("docker", "Runs an image: `run -i --rm IMAGE`. Without `-i`, the server receives no input."),
    ("node", "Runs a script with Node."),
    ("python3", "Runs a script or module with Python."),
    ("python", "Runs a script or module with Python."),
    ("uv", "Runs a Python project: `run --directory FOLDER SCRIPT`."),
    ("bunx", "Runs an npm package with Bun."),
    ("deno", "Runs a script with Deno, in its sandbox."),
    ("podman", "Runs an image without a daemon: `run -i --rm IMAGE`."),
    ("pipx", "Runs a PyPI package: `run PACKAGE`."),
    ("mcp-sidecar", "This program. `demo-server` is a harmless server to try things out."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::shape::keys::{DEFAULTS, INPUT_TYPES, RESULTS, TYPES};

    #[test]
    fn every_choice_is_documented() {
        for value in [TYPES, DEFAULTS, RESULTS, INPUT_TYPES].concat() {
            assert!(describe_value(value).is_some(), "{value}");
        }
    }
}
