//! The examples of the README and of the pages in `docs`: commands print what the pages show, configs are valid, and every
//! `mcp-sidecar` command in the text exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::{Run, Sandbox};

/// All pages with their names, except those with examples of another kind, which have their own tests.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found =
        vec![root.join("README.md"), root.join("editors/nvim/README.md"), root.join("editors/vscode/README.md")];
    for folder in ["docs", "docs/guide", "docs/editors"] {
        found.extend(fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("docs/protocol.md"));
    found.sort();
    let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// The code blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let block = Regex::new(r"(?ms)^```(\w+)\n(.*?)^```$").unwrap();
    block.captures_iter(page).map(|found| (found[1].to_owned(), found[2].to_owned())).collect()
}

/// Runs a line of a page, with the program on the PATH. `out` contains stderr, too.
fn shell(sandbox: &Sandbox, line: &str) -> Run {
    let folder = Path::new(env!("CARGO_BIN_EXE_mcp-sidecar")).parent().unwrap();
    let mut path = vec![folder.to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut command = sandbox.start(Command::new("sh"), &["-c", &format!("exec 2>&1\n{line}")]);
    command.env("PATH", std::env::join_paths(path).unwrap()).env("HOME", sandbox.path("home"));
    sandbox.result(command.output().unwrap())
}

/// Whether a command printed what the page shows. `…` stands for any text, and alone in a line for any lines.
fn is_shown(shown: &str, printed: &str) -> bool {
    let line = |line: &str| match line {
        "…" => r"(?:.*\n)*?".to_owned(),
        line => line.split('…').map(regex::escape).collect::<Vec<_>>().join(".*") + r"\n",
    };
    let pattern: String = shown.lines().map(line).collect();
    Regex::new(&format!("^(?:{pattern})$")).unwrap().is_match(&format!("{}\n", printed.trim_end_matches('\n')))
        || (shown.is_empty() && printed.is_empty())
}

#[test]
fn commands_print_what_the_pages_show() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, page) in pages() {
        let sandbox = Sandbox::with_workspace();
        for (language, text) in blocks(&page) {
            if let Some((file, _)) = text.strip_prefix("// ").and_then(|text| text.split_once('\n'))
                && file.ends_with("mcp.json")
            {
                sandbox.write(&format!("work/{file}"), &text);
            }
            if language != "console" {
                continue;
            }
            for example in format!("\n{text}").split("\n$ ").skip(1) {
                let (line, shown) = example.split_once('\n').unwrap_or((example, ""));
                let run = shell(&sandbox, line);
                if !is_shown(shown, &run.out) {
                    wrong.push(format!("{name}: {line}\n--- the page shows\n{shown}\n--- it prints\n{}", run.out));
                }
                count += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 20, "only {count} examples were found");
}

#[test]
fn configs_on_the_pages_are_valid() {
    let config =
        Regex::new(r#"^(?:\s*//.*\n)*\s*\{(?:\s*//.*\n)*\s*"(?:servers|mcpServers|policy|inputs)"\s*:"#).unwrap();
    let settings = Regex::new(r"(?m)^\[(?:agents|approvals|servers|limits|log|files|editor)\b").unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, page) in pages() {
        for (language, text) in blocks(&page) {
            let sandbox = Sandbox::with_workspace();
            match language.as_str() {
                "json" | "jsonc" if config.is_match(&text) => sandbox.write("work/mcp.json", &text),
                "toml" if settings.is_match(&text) => sandbox.write("config/config.toml", &text),
                _ => continue,
            }
            count += 1;
            let run = sandbox.run(&["check"]);
            if run.code != 0 {
                wrong.push(format!("{name}: {text}\n{}{}", run.out, run.err));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 15, "only {count} configs were found");
}

#[test]
fn every_command_in_the_text_exists() {
    let sandbox = Sandbox::with_workspace();
    let mentioned = Regex::new(r"`mcp-sidecar\s+([a-z][a-z-]*)(\s[^`]*)?`").unwrap();
    let option = Regex::new(r"(?:^|\s)(--[a-z][a-z-]*)").unwrap();
    let mut helps: BTreeMap<String, Run> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, page) in pages() {
        for found in mentioned.captures_iter(&page) {
            let rest = found.get(2).map_or("", |rest| rest.as_str());
            // What follows `--` belongs to another program.
            let rest = rest.split(" -- ").next().unwrap_or_default();
            let mut path = vec![found[1].to_owned()];
            let nested =
                rest.split_whitespace().next().filter(|word| ["set", "list", "remove", "revoke"].contains(word));
            if ["secret", "input", "grants"].contains(&&found[1]) {
                path.extend(nested.map(str::to_owned));
            }
            let help = helps.entry(path.join(" ")).or_insert_with(|| {
                let words: Vec<&str> = ["help"].into_iter().chain(path.iter().map(String::as_str)).collect();
                sandbox.run(&words)
            });
            if help.code != 0 {
                wrong.push(format!("{name}: there is no `mcp-sidecar {}`", path.join(" ")));
            }
            for found in option.captures_iter(rest).filter(|found| !help.out.contains(&found[1])) {
                wrong.push(format!("{name}: `mcp-sidecar {}` has no option {}", path.join(" "), &found[1]));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(helps.len() > 20, "only {} commands were found", helps.len());
}
