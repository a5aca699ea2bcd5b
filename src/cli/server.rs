//! A server as returned by `mcp.servers`, and how to show it.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

use super::engine_client::in_shell_terms;
use super::style::Color;
use crate::text::{mask, one_line, shell_quote};

/// The longest error text that is shown in one line.
const LONGEST_LINE: usize = 400;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Server {
    pub name: String,
    pub status: String,
    pub reason: Option<String>,
    pub enabled: bool,
    pub transport: String,
    pub scope: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    #[serde(default)]
    pub hides: Vec<Hidden>,
    pub error: Option<String>,
    pub needs_trust: bool,
    pub trust_diff: Option<String>,
    pub server_info: Option<Info>,
    pub protocol_version: Option<String>,
    pub instructions: Option<String>,
    #[serde(default)]
    pub capabilities: Vec<String>,
    pub tool_count: usize,
    pub pid: Option<u32>,
    pub started_at: Option<String>,
    pub latency_ms: Option<f64>,
    pub restarts: u32,
    #[serde(default)]
    pub warnings: Vec<String>,
    pub config: Value,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Hidden {
    pub scope: String,
    pub file: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Info {
    pub name: String,
    pub version: String,
}

pub(super) fn read(answer: &Value) -> anyhow::Result<Vec<Server>> {
    let list = answer.get("servers").context("the engine returned no list of servers")?;
    Vec::deserialize(list).context("cannot parse the list of servers that the engine returned")
}

impl Server {
    pub fn is_starting(&self) -> bool {
        self.reason.as_deref() == Some("starting")
    }

    pub fn color(&self) -> Color {
        Color::of_status(&self.status)
    }

    /// Explains the status in one line: why the server waits or failed, or a warning.
    pub fn note(&self) -> Option<String> {
        let error = self.error.as_deref().map(|error| error.lines().next().unwrap_or_default());
        let lazy = || (self.status == "stopped").then_some("starts on first use");
        let off = || (self.status == "connected" && !self.enabled).then_some("disabled");
        let warning = || self.warnings.first().map(String::as_str);
        let note = error.or_else(off).or_else(warning).or_else(lazy)?;
        // A line that ends in a colon introduces what the server wrote to stderr, which is not shown here.
        let note = note.strip_suffix(':').and_then(|note| note.rsplit_once("; ")).map_or(note, |(note, _)| note);
        Some(in_shell_terms(&one_line(&mask(note), LONGEST_LINE)))
    }

    /// The file and line that define it, relative to the workspace.
    pub fn location(&self, folder: &Path) -> Option<String> {
        let file = self.file.as_deref()?;
        let line = self.line.map(|line| format!(":{}", line + 1)).unwrap_or_default();
        Some(format!("{}{line}", relative(file, folder)))
    }

    /// The command that it runs or the address it connects to, as written in the config file.
    pub fn launch(&self) -> String {
        let text = |key: &str| self.config.get(key).and_then(Value::as_str).map(str::to_owned);
        let words = |key: &str| -> Vec<String> {
            let list = self.config.get(key).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut command: Vec<String> = text("command").into_iter().chain(words("command")).collect();
        command.extend(words("args"));
        let address = || {
            let port = self.config.get("port").map(|port| format!(":{port}")).unwrap_or_default();
            let host = text("host").unwrap_or_else(|| "127.0.0.1".to_owned());
            (!port.is_empty()).then(|| format!("{host}{port}"))
        };
        let launch = match command.is_empty() {
            false => command.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" "),
            true => text("url").or_else(address).or_else(|| text("name")).unwrap_or_default(),
        };
        one_line(&mask(&launch), usize::MAX)
    }
}

/// A path relative to the workspace folder, if it is inside.
pub(super) fn relative(path: &str, folder: &Path) -> String {
    let shown = Path::new(path).strip_prefix(folder).map_or(path.to_owned(), |relative| relative.display().to_string());
    one_line(&shown, LONGEST_LINE)
}
