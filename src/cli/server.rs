//! How to show the status of a server.

use std::path::Path;

use serde_json::Value;

use super::engine_client::in_shell;
use crate::protocol::types::{ServerStatus, Status};
use crate::text::{mask, one_line, shell_quote};

/// The longest error text that is shown in one line.
const LONGEST_LINE: usize = 400;

pub(super) fn is_starting(server: &ServerStatus) -> bool {
    server.reason.as_deref() == Some("starting")
}

/// The status as text, as the editors show it. A cause has its own text, see [`note`].
pub(super) fn state(server: &ServerStatus) -> String {
    match &server.reason {
        Some(reason) if server.cause.is_some() => one_line(&format!("{} {reason}", server.status), LONGEST_LINE),
        Some(_) => server.summary.text.clone(),
        None => server.status.to_string(),
    }
}

/// Explains the status in one line: why the server waits or failed, or a warning.
pub(super) fn note(server: &ServerStatus) -> Option<String> {
    let off = || (server.status == Status::Connected && !server.enabled).then_some("disabled");
    let lazy = || (server.status == Status::Stopped).then_some("starts on first use");
    let warning = || server.warnings.first().map(String::as_str);
    let note = server.cause.as_deref().or_else(off).or_else(warning).or_else(lazy)?;
    let remedy = server.remedy.as_ref().filter(|_| server.cause.is_some());
    Some(one_line(&mask(note), LONGEST_LINE) + &in_shell(remedy))
}

/// The file and line that define it, relative to the workspace.
pub(super) fn location(server: &ServerStatus, folder: &Path) -> Option<String> {
    let file = server.file.as_deref()?;
    let line = server.line.map(|line| format!(":{}", line + 1)).unwrap_or_default();
    Some(format!("{}{line}", relative(file, folder)))
}

/// The command that it runs or the address it connects to, as written in the config file.
pub(super) fn launch(server: &ServerStatus) -> String {
    let text = |key: &str| server.config.get(key).and_then(Value::as_str).map(str::to_owned);
    let words = |key: &str| -> Vec<String> {
        let list = server.config.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut command: Vec<String> = text("command").into_iter().chain(words("command")).collect();
    command.extend(words("args"));
    let address = || {
        let port = server.config.get("port").map(|port| format!(":{port}")).unwrap_or_default();
        let host = text("host").unwrap_or_else(|| "127.0.0.1".to_owned());
        (!port.is_empty()).then(|| format!("{host}{port}"))
    };
    let launch = match command.is_empty() {
        false => command.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" "),
        true => text("url").or_else(address).or_else(|| text("name")).unwrap_or_default(),
    };
    one_line(&mask(&launch), usize::MAX)
}

/// A path relative to the workspace folder, if it is inside.
pub(super) fn relative(path: &str, folder: &Path) -> String {
    let shown = Path::new(path).strip_prefix(folder).map_or(path.to_owned(), |relative| relative.display().to_string());
    one_line(&shown, LONGEST_LINE)
}
