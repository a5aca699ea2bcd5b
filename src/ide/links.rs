//! Links: web addresses, and files in server entries.

use std::path::{Path, PathBuf};

use crate::config::Span;
use crate::config::expand::{self, Values};
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

/// The links of a file. Relative paths start at the folder in `values`. Files for which `exists` is false have no link.
pub fn links(tree: &Tree, values: &Values, exists: impl Fn(&Path) -> bool) -> Vec<Link> {
    let Some(root) = &tree.root else {
        return Vec::new();
    };
    let mut links: Vec<Link> = root.get("$schema").and_then(|member| web_page(&member.value)).into_iter().collect();
    for server in tree.servers() {
        of_server(server, values, &exists, &mut links);
    }
    links.sort_by_key(|link| link.span.start);
    links
}

fn of_server(server: &Member, values: &Values, exists: &impl Fn(&Path) -> bool, links: &mut Vec<Link>) {
    let folder = values.workspace_folder.as_deref();
    let value = |key| server.value.get(key).map(|member| &member.value);
    let file = |node: &Node, base: Option<&Path>| {
        let path = resolve(node.text()?, base, values).filter(|path| exists(path))?;
        Some(Link { span: inner(node), tooltip: format!("Open {}", path.display()), target: Target::File(path) })
    };
    links.extend(["url", "serverUrl", "httpUrl"].iter().filter_map(|key| web_page(value(key)?)));
    links.extend(["cwd", "envFile"].iter().filter_map(|key| file(value(key)?, folder)));
    // The paths of a program and its arguments are relative to its working directory.
    let cwd = value("cwd").and_then(|cwd| resolve(cwd.text()?, folder, values));
    let base = cwd.as_deref().or(folder);
    let words = ["command", "args"].iter().filter_map(|key| value(key));
    for word in words.flat_map(|node| node.items().unwrap_or(std::slice::from_ref(node))) {
        if word.text().is_some_and(looks_like_a_path) {
            links.extend(file(word, base));
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

/// An absolute path, if it is known before the server starts.
fn resolve(text: &str, base: Option<&Path>, values: &Values) -> Option<PathBuf> {
    let path = expand::known_text(text, values).filter(|path| !path.is_empty())?;
    let is_relative = !path.starts_with("~/") && Path::new(&path).is_relative();
    (base.is_some() || !is_relative).then(|| expand::resolve(&path, base, values))
}

fn inner(node: &Node) -> Span {
    node.span.start + 1..node.span.end.saturating_sub(1).max(node.span.start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::parse;

    fn shown(text: &str) -> String {
        let environment = crate::config::Environment::of_this_process();
        let values = Values::in_folder(Some(Path::new("/project")), &environment);
        let links = links(&parse(text, 64), &values, |path| !path.ends_with("missing.js"));
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
