//! What an agent wants to do with one of its built-in tools, as rules and questions see it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::shell::ShellCommand;
use crate::model::{Annotations, HookAgent, Subject, Tool, ToolId};
use crate::text::visible;

/// Arguments of a shell that change nothing about what runs. Any other one, such as a request to leave the sandbox, makes
/// the action one that no rule allows.
const HARMLESS: &[&str] = &[
    "description",
    "timeout",
    "timeout_ms",
    "run_in_background",
    "is_background",
    "mode",
    "initial_wait",
    "async",
    "shellId",
    "sessionId",
];
/// Begins the description if Codex asks for access to the network for a command that already runs.
const NETWORK: &str = "network-access";
/// The tools that change files, by all agents.
const EDITS: &[&str] = &[
    "Edit",
    "Write",
    "MultiEdit",
    "NotebookEdit",
    "apply_patch",
    "write_file",
    "replace",
    "create",
    "edit",
    "str_replace_editor",
];
/// Tools that are a dialog with the user. Only the agent can show it, so it is never asked about here.
const DIALOGS: &[&str] = &["AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "request_user_input", "ask_user"];
const FILES: &[&str] = &["file_path", "path", "notebook_path", "absolute_path"];
/// With larger arguments, the commands in a text are not compared one by one.
const MAX_ARGUMENTS: usize = 128 << 10;
/// The longest action that a lasting answer can be about. It is part of the name of the grant.
const MAX_TARGET: usize = 300;

/// An agent's own tool with its arguments.
#[derive(Debug, Clone)]
pub struct AgentAction {
    pub agent: HookAgent,
    /// The agent's name for the tool.
    pub name: String,
    pub arguments: Arc<Map<String, Value>>,
    /// Where the agent works.
    pub folder: PathBuf,
    pub kind: ActionKind,
}

/// What the tool does, as far as its name and arguments show.
#[derive(Debug, Clone)]
pub enum ActionKind {
    Shell { key: &'static str, text: String, read: ShellCommand },
    Edit { file: Option<PathBuf> },
    Fetch { url: String },
    Other,
}

impl AgentAction {
    /// The arguments that are commands of a shell.
    pub const COMMANDS: &[&str] = &["command", "cmd"];

    pub fn new(agent: HookAgent, name: &str, arguments: Map<String, Value>, folder: &Path) -> Self {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let kind = match Self::COMMANDS.iter().copied().find(|key| arguments.contains_key(*key)) {
            _ if EDITS.contains(&name) => {
                let file = FILES.iter().find_map(|key| text(key)).map(|file| folder.join(file));
                ActionKind::Edit { file }
            }
            Some(key) => {
                // A list of words is not a text for a shell, but is shown and ruled like one.
                let text = text(key)
                    .map_or_else(|| arguments.get(key).map(Value::to_string).unwrap_or_default(), str::to_owned);
                let size: usize = arguments.values().map(|value| value.to_string().len()).sum();
                let read = match arguments.get(key).and_then(words) {
                    _ if size > MAX_ARGUMENTS => ShellCommand::unread(),
                    Some(words) => ShellCommand::of_words(&words),
                    None => ShellCommand::read(&text),
                };
                ActionKind::Shell { key, read, text }
            }
            None => match text("url") {
                Some(url) => ActionKind::Fetch { url: url.to_owned() },
                None => ActionKind::Other,
            },
        };
        Self { agent, name: name.to_owned(), arguments: Arc::new(arguments), folder: folder.to_path_buf(), kind }
    }

    /// Whether the tool itself asks the user.
    pub fn is_dialog(&self) -> bool {
        DIALOGS.contains(&self.name.as_str())
    }

    /// The action as the subject of rules.
    pub fn tool(&self) -> Tool {
        Tool {
            name: format!("{}{}", Subject::AGENT, self.name).into(),
            subject: Subject::Agent,
            title: None,
            description: String::new(),
            input_schema: Arc::default(),
            output_schema: None,
            annotations: Annotations::default(),
            raw: Arc::default(),
        }
    }

    /// The tool in records.
    pub fn id(&self) -> Option<ToolId> {
        Some(ToolId::new(self.agent.server()?, &self.tool().name))
    }

    /// What a lasting answer is about: exactly this command, file or page. `None` if an answer can only be about this
    /// once, because the same text may mean something else the next time.
    pub fn target(&self) -> Option<String> {
        let target = match &self.kind {
            ActionKind::Shell { text, .. } if self.is_plain() => text.clone(),
            ActionKind::Edit { file: Some(file) } => file.to_str()?.to_owned(),
            ActionKind::Fetch { url } => url.clone(),
            ActionKind::Shell { .. } | ActionKind::Edit { file: None } | ActionKind::Other => return None,
        };
        // What is shown must be what is compared.
        (target.len() <= MAX_TARGET && visible(&target, MAX_TARGET) == target && !target.contains('\n'))
            .then_some(target)
    }

    /// The subject of a lasting answer.
    pub fn granted(&self) -> Option<Tool> {
        let target = self.target()?;
        Some(Tool { name: format!("{}{}({target})", Subject::AGENT, self.name).into(), ..self.tool() })
    }

    /// The arguments in every way that a rule could be meant about them: as they are, and for a shell with each command
    /// that is in the text. If the text was not read whole, also without a command: a rule that denies any command applies,
    /// because what was not read may be that command.
    pub fn readings(&self) -> Vec<Map<String, Value>> {
        let mut readings = vec![(*self.arguments).clone()];
        if let ActionKind::Shell { read, .. } = &self.kind {
            // Two names for the same argument would let one of them past a rule about the other.
            let mut others = (*self.arguments).clone();
            others.retain(|name, _| !Self::COMMANDS.contains(&name.as_str()));
            let with = |command: &String| {
                let mut arguments = others.clone();
                for name in Self::COMMANDS {
                    arguments.insert((*name).to_owned(), Value::String(command.clone()));
                }
                arguments
            };
            readings.extend(read.commands.iter().map(with));
            readings.extend((!read.is_read_whole()).then_some(others));
        }
        readings
    }

    /// Whether rules see everything that it does, as far as its arguments show it.
    pub fn is_read_whole(&self) -> bool {
        match &self.kind {
            ActionKind::Shell { read, .. } => read.is_read_whole(),
            ActionKind::Edit { .. } | ActionKind::Fetch { .. } | ActionKind::Other => true,
        }
    }

    /// Whether a rule may allow it.
    pub fn is_plain(&self) -> bool {
        match &self.kind {
            ActionKind::Shell { read, .. } => read.is_plain() && self.unknown_arguments().is_empty(),
            ActionKind::Edit { .. } | ActionKind::Fetch { .. } | ActionKind::Other => true,
        }
    }

    fn is_harmless(&self, key: &str) -> bool {
        let text = self.arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        HARMLESS.contains(&key) && !text.starts_with(NETWORK)
    }

    /// The arguments of a shell that may change what its command does.
    pub fn unknown_arguments(&self) -> Vec<&str> {
        match self.kind {
            ActionKind::Shell { key: command, .. } => {
                let keys = self.arguments.keys().map(String::as_str);
                keys.filter(|key| *key != command && !self.is_harmless(key)).collect()
            }
            ActionKind::Edit { .. } | ActionKind::Fetch { .. } | ActionKind::Other => Vec::new(),
        }
    }
}

/// The words of a command that is a list.
fn words(command: &Value) -> Option<Vec<String>> {
    command.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}
