//! The keys of rules: `agentTools`, and the cases and conditions of levels.

use super::{ALL, Table, ValueType, own};

/// The key of `agentTools` for all agents.
pub const ANY_AGENT: &str = "*";

/// The agents of `agentTools`, as [`HookAgent`](crate::model::HookAgent) names them.
pub static AGENT_TOOLS: Table = Table {
    noun: "agentTools",
    keys: &[
        own(
            "claude-code",
            ValueType::Tools,
            ALL,
            "Levels of Claude Code's own tools, such as `Bash` (`command`), `Edit` and `Write` (`file_path`), `WebFetch` (`url`).",
        ),
        own(
            "codex",
            ValueType::Tools,
            ALL,
            "Levels of Codex's own tools, such as `Bash` (`command`) and `apply_patch`.",
        ),
        own(
            "gemini",
            ValueType::Tools,
            ALL,
            "Levels of Gemini CLI's own tools, such as `run_shell_command` (`command`), `write_file` and `replace` (`file_path`).",
        ),
        own(
            "copilot",
            ValueType::Tools,
            ALL,
            "Levels of Copilot CLI's own tools, such as `bash` (`command`), `create` and `edit` (`path`).",
        ),
        own(ANY_AGENT, ValueType::Tools, ALL, "Levels for every agent without its own rule for the tool."),
    ],
};

pub static CASE: Table = Table {
    noun: "rule",
    keys: &[
        own(
            "when",
            ValueType::Conditions,
            ALL,
            "Maps an argument (dotted path) to a condition: a glob, `{ in }`, `{ matches }`, `{ inside }` or `{ max }`. All conditions must be met.",
        ),
        own("level", ValueType::Level, ALL, "The level if all conditions are met."),
    ],
};

pub static CONDITION: Table = Table {
    noun: "condition",
    keys: &[
        own("in", ValueType::Any, ALL, "The argument is one of these values."),
        own("matches", ValueType::Text, ALL, "The argument matches this regular expression."),
        own(
            "inside",
            ValueType::Text,
            ALL,
            "The argument is a path inside this folder, after resolving `..` and symlinks.",
        ),
        own("max", ValueType::Any, ALL, "The argument is a number that is not greater than this."),
    ],
};
