//! Links: web addresses, and files in server entries.

use std::path::{Path, PathBuf};

use crate::config::Span;
use crate::config::tree::{Member, Node, Tree};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The span without the quotes.
    pub span: Span,
    pub target: Target,
    pub tooltip: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    WebPage(String),
    File(PathBuf),
}

/// The links of a file. Relative paths start at `folder`. Files for which `exists` is false have no link.
pub fn links(tree: &Tree, folder: Option<&Path>, exists: impl Fn(&Path) -> bool) -> Vec<Link> {
    let Some(root) = &tree.root else {
        return Vec::new();
    };
    let mut links: Vec<Link> = root.get("$schema").and_then(|member| web_page(&member.value)).into_iter().collect();
    let sections = ["servers", "mcpServers"].iter().filter_map(|&key| root.get(key));
    for server in sections.flat_map(|section| section.value.members().unwrap_or_default()) {
        of_server(server, folder, &exists, &mut links);
    }
    links.sort_by_key(|link| link.span.start);
    links
}

fn of_server(server: &Member, folder: Option<&Path>, exists: &impl Fn(&Path) -> bool, links: &mut Vec<Link>) {
    let value = |key| server.value.get(key).map(|member| &member.value);
    let file = |node: &Node, base: Option<&Path>| {
        let path = resolve(node.text()?, folder, base).filter(|path| exists(path))?;
        Some(Link { span: inner(node), tooltip: format!("Open {}", path.display()), target: Target::File(path) })
    };
    links.extend(["url", "serverUrl", "httpUrl"].iter().filter_map(|key| web_page(value(key)?)));
    links.extend(["cwd", "envFile"].iter().filter_map(|key| file(value(key)?, folder)));
    // The paths of a program and its arguments are relative to its working directory.
    let cwd = value("cwd").and_then(|cwd| resolve(cwd.text()?, folder, folder));
    let base = cwd.as_deref().or(folder);
    let values = ["command", "args"].iter().filter_map(|key| value(key));
    for value in values.flat_map(|node| node.items().unwrap_or(std::slice::from_ref(node))) {
        if value.text().is_some_and(looks_like_a_path) {
            links.extend(file(value, base));
        }
    }
}

/// A plain word is a program on the PATH or an option, even if a file with that name exists.
fn looks_like_a_path(word: &str) -> bool {
    !word.starts_with('-') && (word.contains('/') || word.contains('\\') || Path::new(word).extension().is_some())
}

fn web_page(node: &Node) -> Option<Link> {
    let text = node.text()?;
    let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    // An address with a variable is not complete.
    if text.contains("${") || text.contains("{id}") {
        return None;
    }
    Some(Link {
        span: inner(node),
        tooltip: format!("Open {}", url.host_str()?),
        target: Target::WebPage(text.to_owned()),
    })
}

/// An absolute path with `${workspaceFolder}` and `${userHome}` expanded. Other variables are not known before the server
/// starts.
fn resolve(text: &str, folder: Option<&Path>, base: Option<&Path>) -> Option<PathBuf> {
    let home = || etcetera::home_dir().ok();
    let known = |variable: &str| match variable {
        "workspaceFolder" => folder.map(Path::to_path_buf),
        "userHome" => home(),
        _ => None,
    };
    if let Some(rest) = text.strip_prefix("${") {
        let (variable, rest) = rest.split_once('}')?;
        let rest = rest.trim_start_matches(['/', '\\']);
        return (!rest.contains("${")).then_some(known(variable)?.join(rest));
    }
    if text.is_empty() || text.contains("${") {
        return None;
    }
    match text.strip_prefix("~/") {
        Some(rest) => Some(home()?.join(rest)),
        None if Path::new(text).is_absolute() => Some(text.into()),
        None => Some(base?.join(text)),
    }
}

fn inner(node: &Node) -> Span {
    node.span.start + 1..node.span.end.saturating_sub(1).max(node.span.start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::parse;

    fn shown(text: &str) -> String {
        let links = links(&parse(text, 64), Some(Path::new("/project")), |path| !path.ends_with("missing.js"));
        let show = |link: &Link| match &link.target {
            Target::WebPage(url) => format!("{} → {url}", &text[link.span.clone()]),
            Target::File(file) => format!("{} → {}", &text[link.span.clone()], file.display()),
        };
        links.iter().map(show).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn addresses_and_existing_files_are_links() {
        insta::assert_snapshot!(shown(r#"{
            "$schema": "https://example.test/schema.json",
            "servers": {
                "a": { "command": "npx", "args": ["-y", "@x/server", "build/index.js", "missing.js", "${workspaceFolder}/data"] },
                "b": { "command": "./bin/run", "cwd": "${workspaceFolder}/sub", "envFile": ".env" },
                "c": { "url": "https://example.test/mcp" }
            }
        }"#), @"
        https://example.test/schema.json → https://example.test/schema.json
        @x/server → /project/@x/server
        build/index.js → /project/build/index.js
        ${workspaceFolder}/data → /project/data
        ./bin/run → /project/sub/./bin/run
        ${workspaceFolder}/sub → /project/sub
        .env → /project/.env
        https://example.test/mcp → https://example.test/mcp
        ");
    }

    #[test]
    fn unresolved_values_are_not_links() {
        assert_eq!(
            shown(
                r#"{ "servers": {
                    "a": { "url": "https://${HOST}/mcp", "args": ["${input:x}/y", "${workspaceFolder}/${FILE}", "plain"] },
                    "b": { "url": "file:///etc/passwd" }, "c": { "url": "javascript:alert(1)" }, "d": 5, "e": { "url": 5 }
                } }"#
            ),
            ""
        );
    }
}
