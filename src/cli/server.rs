//! How to show the status of a server.

use std::path::Path;

use super::engine_client::in_shell;
use crate::protocol::actions::Tone;
use crate::protocol::types::{ServerStatus, Status};
use crate::text::{mask, one_line};

/// The longest error text that is shown in one line.
const LONGEST_LINE: usize = 400;

pub(super) fn is_starting(server: &ServerStatus) -> bool {
    server.summary.tone == Tone::Busy
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
    let hidden = || (server.status == Status::Connected && !server.enabled).then_some(server.summary.text.as_str());
    let warning = || server.warnings.first().map(String::as_str);
    let note = server.cause.as_deref().or_else(hidden).or_else(warning)?;
    let remedy = server.remedy.as_ref().filter(|_| server.cause.is_some());
    Some(one_line(&mask(note), LONGEST_LINE) + &in_shell(remedy))
}

/// The file and line that define it, relative to the workspace.
pub(super) fn location(server: &ServerStatus, folder: &Path) -> Option<String> {
    let file = server.file.as_deref()?;
    let line = server.line.map(|line| format!(":{}", line + 1)).unwrap_or_default();
    Some(format!("{}{line}", relative(file, folder)))
}

/// A path relative to the workspace folder, if it is inside.
pub(super) fn relative(path: &str, folder: &Path) -> String {
    let shown = Path::new(path).strip_prefix(folder).map_or(path.to_owned(), |relative| relative.display().to_string());
    one_line(&shown, LONGEST_LINE)
}
