//! What the words mean that a value may be: levels, types and the other choices.

use crate::model::Level;

/// The meaning of a word that stands as a value. No word means two things.
pub fn meaning(word: &str) -> Option<&'static str> {
    if let Some(level) = Level::parse(word) {
        return Some(of_level(level));
    }
    Some(match word {
        "stdio" => "A program that is started here and speaks over its stdin and stdout. Needs `command`.",
        "http" => "A server on the web, over streamable HTTP. Needs `url`.",
        "sse" => "A server on the web, over the older HTTP with server-sent events. Needs `url`; prefer `http`.",
        "tcp" => "A server that already runs on this machine and listens on a port. Needs `port`.",
        "sdk" => "A server inside the editor, offered by one of its plugins under `name`.",
        "claudeai-proxy" => "A connector of claude.ai, reached through its proxy. Needs `url` and `id`.",
        "allow" => "Tools that nothing else speaks about run without asking.",
        "confirm" => "Tools that nothing else speaks about are asked about each time.",
        "show" => "Shows the result.",
        "insert" => "Inserts the result at the cursor.",
        "replace" => "Puts the result in place of the selection.",
        "append" => "Adds the result behind the selection.",
        "promptString" => "Asks for a text.",
        "pickString" => "Offers `options` to choose from.",
        _ => return None,
    })
}

pub fn of_level(level: Level) -> &'static str {
    match level {
        Level::Disable => "Hides the tool from every list; nobody can call it.",
        Level::Deny => "Shows the tool and refuses every call.",
        Level::RequireApproval => "Asks you each time. This holds when nothing else is said.",
        Level::AllowOnce => "Lets the first call of a session pass, then asks.",
        Level::AllowSession => "Does not ask. As an answer to a question it holds until the session ends.",
        Level::AllowProject => "Does not ask. As an answer to a question it holds in this project.",
        Level::AllowAlways => "Does not ask. As an answer to a question it holds everywhere, until you revoke it.",
    }
}

/// The variables that every text of a server may use, and what they stand for.
pub const VARIABLES: [(&str, &str); 5] = [
    ("workspaceFolder", "The workspace folder that this file belongs to."),
    ("workspaceFolderBasename", "The last part of the workspace folder's path."),
    ("userHome", "Your home folder."),
    ("pathSeparator", "What stands between the parts of a path here."),
    ("cwd", "Where the server would run if its entry did not say: the workspace folder."),
];

/// The variables of an action, filled in from where the cursor is.
pub const ACTION_VARIABLES: [(&str, &str); 7] = [
    ("selection", "The selected text."),
    ("word", "The word at the cursor."),
    ("line", "The line of the cursor."),
    ("file", "The path of the file."),
    ("relativeFile", "The path of the file, seen from the workspace folder."),
    ("filetype", "The kind of file, as the editor calls it."),
    ("workspaceFolder", "The workspace folder of the file."),
];

/// Programs that servers are usually started with.
pub const PROGRAMS: [(&str, &str); 12] = [
    ("npx", "Runs a package of npm without installing it. Add `-y`, or it waits for an answer."),
    ("uvx", "Runs a package of PyPI without installing it."),
    ("docker", "Runs an image: `run -i --rm IMAGE`. Without `-i` the server hears nothing."),
    ("node", "Runs a script with Node."),
    ("python3", "Runs a script or module with Python."),
    ("python", "Runs a script or module with Python."),
    ("uv", "Runs a Python project: `run --directory FOLDER SCRIPT`."),
    ("bunx", "Runs a package of npm with Bun."),
    ("deno", "Runs a script with Deno, in its sandbox."),
    ("podman", "Runs an image without a daemon: `run -i --rm IMAGE`."),
    ("pipx", "Runs a package of PyPI: `run PACKAGE`."),
    ("mcp-sidecar", "This program. `demo-server` is a harmless server for first tries."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::shape::keys::{DEFAULTS, INPUT_TYPES, RESULTS, TYPES};

    #[test]
    fn every_word_that_a_value_may_be_has_a_meaning() {
        for word in [TYPES, DEFAULTS, RESULTS, INPUT_TYPES].concat() {
            assert!(meaning(word).is_some(), "{word}");
        }
    }
}
