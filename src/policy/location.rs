//! The location of a rule, as shown to the user.

use std::path::Path;

use crate::model::Scope;

/// `mcp.json:12`, `.vscode/mcp.json`, `user mcp.json`, `session`. `line` counts from zero.
pub fn location(scope: Scope, file: Option<&Path>, line: Option<u32>) -> String {
    let Some(file) = file else { return scope.to_string() };
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let mut location = match scope {
        Scope::Project | Scope::Local => match file.parent().and_then(Path::file_name) {
            Some(folder) if folder.to_string_lossy().starts_with('.') => {
                format!("{}/{name}", folder.to_string_lossy())
            }
            _ => name.into_owned(),
        },
        Scope::User | Scope::Session | Scope::Managed => format!("{scope} {name}"),
    };
    if let Some(line) = line {
        location.push_str(&format!(":{}", line.saturating_add(1)));
    }
    location
}
