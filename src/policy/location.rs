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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_names_the_scope_or_the_hidden_folder_of_a_file() {
        let at = |scope, file: Option<&str>, line| location(scope, file.map(Path::new), line);
        assert_eq!(at(Scope::Project, Some("/shop/mcp.json"), Some(11)), "mcp.json:12");
        assert_eq!(at(Scope::Project, Some("/shop/.vscode/mcp.json"), None), ".vscode/mcp.json");
        assert_eq!(at(Scope::Local, Some("/shop/.vscode/mcp.json"), Some(0)), ".vscode/mcp.json:1");
        assert_eq!(at(Scope::User, Some("/home/me/.config/mcp.json"), Some(2)), "user mcp.json:3");
        assert_eq!(at(Scope::Managed, Some("/etc/mcp.json"), None), "managed mcp.json");
        assert_eq!(at(Scope::Session, None, Some(2)), "session");
    }
}
