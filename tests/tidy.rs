//! Checks the structure of the repository: which modules may use which, where a few dangerous things are allowed, and
//! that the documents refer to things that exist. Each failure says how to fix it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say so at once"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// A text file of the repository.
struct File {
    /// From the root of the repository, with `/`.
    path: String,
    text: String,
}

impl File {
    fn is_source(&self) -> bool {
        self.path.starts_with("src/") && self.path.ends_with(".rs")
    }

    fn is_document(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// The module of `lib.rs` that a source file belongs to; `None` for `lib.rs` and `main.rs`.
    fn module(&self) -> Option<&str> {
        let module = self.path.strip_prefix("src/")?.split('/').next()?.trim_end_matches(".rs");
        (!["lib", "main"].contains(&module)).then_some(module)
    }

    fn is_only_for_tests(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// The lines that end up in the program, numbered: no comments, and nothing under `#[cfg(test)]`.
    fn code(&self) -> Vec<(usize, &str)> {
        if self.is_only_for_tests() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut all = self.text.lines().zip(1..).peekable();
        while let Some((line, number)) = all.next() {
            if line.trim() == "#[cfg(test)]" && all.peek().is_some_and(|(next, _)| next.trim_end().ends_with('{')) {
                let indent = line.len() - line.trim_start().len();
                let end = format!("{}}}", " ".repeat(indent));
                all.by_ref().find(|(line, _)| line.trim_end() == end);
            } else if !line.trim_start().starts_with("//") && !line.trim().is_empty() {
                lines.push((number, line));
            }
        }
        lines
    }
}

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(root, root, &mut files);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
});

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if !["target", ".git", "node_modules", "out", "dist", ".vscode-test"].contains(&name.as_ref()) {
                collect(root, &path, files);
            }
        } else if name != ".git"
            && let Ok(text) = fs::read_to_string(&path)
        {
            let path = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            files.push(File { path, text });
        }
    }
}

fn file(path: &str) -> &'static File {
    FILES.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path} is missing"))
}

fn sources() -> impl Iterator<Item = &'static File> {
    FILES.iter().filter(|file| file.is_source())
}

/// The modules in reading order.
fn modules() -> Vec<&'static str> {
    let lines = file("src/lib.rs").text.lines().map(|line| line.trim_start_matches("pub "));
    lines.filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect()
}

#[track_caller]
fn nothing(found: Vec<String>, advice: &str) {
    assert!(found.is_empty(), "\n{}\n\n{advice}\n", found.join("\n"));
}

/// Every line of code outside `allowed` that matches.
fn outside(allowed: &[&str], pattern: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    sources()
        .filter(|file| !allowed.iter().any(|start| file.path.starts_with(start)))
        .flat_map(|file| file.code().into_iter().map(move |line| (file, line)))
        .filter(|(_, (_, line))| pattern.is_match(line))
        .map(|(file, (number, line))| format!("{}:{number}: {}", file.path, line.trim()))
        .collect()
}

/// The modules of this crate that a piece of code names: `crate::x`, `crate::{x::…, y}`, and the same by `super`.
fn modules_named(file: &File) -> BTreeSet<(usize, String)> {
    let depth = file.path.matches('/').count();
    let root = format!(r"\b(?:crate|{})::", vec!["super"; depth].join("::"));
    let single = Regex::new(&format!(r"(?:{root})([a-z_]+)\b")).unwrap();
    let group = Regex::new(&format!(r"(?s)(?:{root})\{{(.*?)\}};")).unwrap();
    let first_words = Regex::new(r"(?:^|,)\s*([a-z_]+)\b").unwrap();
    let lines = file.code();
    let mut named = BTreeSet::new();
    for (number, line) in &lines {
        named.extend(single.captures_iter(line).map(|found| (*number, found[1].to_owned())));
    }
    let code = lines.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    for found in group.captures_iter(&code) {
        let inner = without_inner_groups(&found[1]);
        named.extend(first_words.captures_iter(&inner).map(|found| (0, found[1].to_owned())));
    }
    named
}

/// `a::{b, c}, d` → `a::, d`: only what is directly in the group counts.
fn without_inner_groups(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .filter(|character| {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect()
}

#[test]
fn each_module_uses_only_modules_above_it() {
    let order = modules();
    let position = |name: &str| order.iter().position(|module| *module == name);
    let mut found = Vec::new();
    for file in sources() {
        let Some(module) = file.module() else { continue };
        let own = position(module).unwrap_or_else(|| panic!("{} is not in src/lib.rs", file.path));
        for (number, used) in modules_named(file) {
            if position(&used).is_some_and(|used| used > own) {
                found.push(format!("{}:{number}: `{module}` uses `{used}`", file.path));
            }
        }
    }
    nothing(
        found,
        "src/lib.rs lists the modules in reading order, and each may use only those above it:\nmove the shared part up, or hand it in from below as a trait or a closure",
    );
}

#[test]
fn the_order_is_held_however_a_use_is_written() {
    let code = "use crate::model::Level;\nuse crate::{\n    config::{self, spec},\n    engine,\n};\n// crate::cli\n\
                fn f() { crate::ide::hover() }\nuse super::super::lsp::x;\n#[cfg(test)]\nmod tests {\n    use crate::agent;\n}\n";
    let file = File { path: "src/server/actor.rs".to_owned(), text: code.to_owned() };
    let named: BTreeSet<String> = modules_named(&file).into_iter().map(|(_, module)| module).collect();
    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["config", "engine", "ide", "lsp", "model"]);
}

#[test]
fn only_lsp_knows_the_library_that_speaks_lsp() {
    nothing(
        outside(&["src/lsp/", "src/lsp.rs", "src/lsp_client.rs", "src/cli/demo"], r"\b(tower_lsp|lsp_types)\b"),
        "translate in src/lsp, so that the rest does not depend on the front",
    );
}

#[test]
fn only_the_two_ends_of_mcp_know_how_it_travels() {
    let found = outside(&["src/server", "src/agent", "src/demo"], r"\brmcp::(?:service|transport|ServiceExt|\{)");
    nothing(found, "outside server, agent and demo only rmcp::model may be used: it is data");
}

#[test]
fn processes_start_in_one_place() {
    let allowed = ["src/server/process", "src/server/guardian", "src/session"];
    let found = outside(&allowed, r"\bprocess::(?:Command\b|\{[^}]*\bCommand\b)");
    nothing(found, "start children through server::process, which ends them too, or start ourselves in session");
}

#[test]
fn unsafe_code_is_in_two_places() {
    let found = outside(&["src/os.rs", "src/model/scan.rs"], r"\bunsafe\s*(?:\{|fn|impl|extern)|\bunsafe_code\b");
    nothing(found, "use a crate that wraps it, or put it into src/os.rs with what makes it safe");
}

#[test]
fn only_the_command_line_prints() {
    let found = outside(&["src/cli", "src/main.rs"], r"\b(?:e?println?|dbg)!");
    nothing(found, "stdout carries the protocol: use tracing, or notify the editor");
}

#[test]
fn no_source_file_is_longer_than_400_lines() {
    let found = sources()
        .map(|file| (file, file.code().len()))
        .filter(|(_, lines)| *lines > 400)
        .map(|(file, lines)| format!("{}: {lines} lines of code", file.path))
        .collect();
    nothing(found, "look for a seam");
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let found = sources()
        .filter(|file| file.path != "src/main.rs" && !file.is_only_for_tests() && !file.text.starts_with("//! "))
        .map(|file| file.path.clone())
        .collect();
    nothing(found, "begin the file with a `//!` line: what it is for, and what it leaves to others");
}

#[test]
fn the_maps_show_every_module() {
    let mut found = Vec::new();
    for module in modules() {
        if !file("src/lib.rs").text.contains(&format!("[`{module}`]")) {
            found.push(format!("src/lib.rs: no [`{module}`] in the table"));
        }
        if !file("ARCHITECTURE.md").text.contains(&format!("`{module}`")) {
            found.push(format!("ARCHITECTURE.md: no `{module}`"));
        }
    }
    nothing(found, "add the module to the map");
}

#[test]
fn nothing_is_left_for_later_and_nothing_names_a_machine() {
    // Put together from halves, so that this file does not complain about itself.
    let later = Regex::new(&[r"(?:TO", r"DO|FIX", r"ME)"].concat()).unwrap();
    let home = Regex::new(r"/(?:home|Users)/([A-Za-z0-9_][A-Za-z0-9_.-]*)/").unwrap();
    let own_home = std::env::var("HOME").ok().filter(|home| home.len() > 1).map(|home| format!("{home}/"));
    let checkout = env!("CARGO_MANIFEST_DIR");
    let mut found = Vec::new();
    for file in FILES.iter().filter(|file| !file.path.ends_with("package-lock.json")) {
        for (line, number) in file.text.lines().zip(1..) {
            let of_a_person =
                home.captures(line).is_some_and(|found| !["you", "me", "ada", "user"].contains(&&found[1]));
            let of_this_one = own_home.as_ref().is_some_and(|home| names_folder(line, home)) || line.contains(checkout);
            if later.is_match(line) || of_a_person || of_this_one {
                found.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    nothing(found, "finish it or leave it out; name no folder of one machine");
}

/// Whether the folder is there as a separate path, not as the end of another.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder)
        .any(|(start, _)| !line[..start].ends_with(|before: char| before.is_alphanumeric() || "_-.}/".contains(before)))
}

#[test]
fn the_lock_files_name_no_host_but_the_public_registries() {
    let mut found = Vec::new();
    for line in file("Cargo.lock").text.lines().filter(|line| line.starts_with("source = ")) {
        if line != r#"source = "registry+https://github.com/rust-lang/crates.io-index""# {
            found.push(format!("Cargo.lock: {line}"));
        }
    }
    for file in FILES.iter().filter(|file| file.path.ends_with("package-lock.json")) {
        let resolved = file.text.lines().map(str::trim).filter(|line| line.starts_with(r#""resolved""#));
        let foreign = resolved.filter(|line| !line.contains("https://registry.npmjs.org/"));
        found.extend(foreign.map(|line| format!("{}: {line}", file.path)));
    }
    nothing(found, "write the lock file again with the public registry, or without addresses");
}

#[test]
fn every_link_in_a_document_leads_somewhere() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for file in FILES.iter().filter(|file| file.is_document()) {
        for (line, number) in outside_code_blocks(&file.text) {
            for target in link.captures_iter(line).map(|found| found[1].to_owned()) {
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
                let folder = root.join(&file.path).parent().unwrap().to_owned();
                let full = if path.is_empty() { root.join(&file.path) } else { folder.join(path) };
                let reached = full.exists()
                    && (anchor.is_empty()
                        || fs::read_to_string(&full).is_ok_and(|text| anchors(&text).contains(anchor)));
                if !reached {
                    found.push(format!("{}:{number}: {target}", file.path));
                }
            }
        }
    }
    nothing(found, "fix the link");
}

#[test]
fn every_test_that_a_document_or_a_fault_names_exists() {
    let function = Regex::new(r"fn (\w+)\(").unwrap();
    let code = FILES.iter().filter(|file| file.path.ends_with(".rs"));
    let known: BTreeSet<&str> = code
        .clone()
        .flat_map(|file| function.captures_iter(&file.text).map(|found| found.extract::<1>().1[0]))
        .collect();
    let in_module = |target: &str, module: &str, name: &str| {
        let module = module.replace("::", "/");
        // Many unit tests are in the file that they test.
        let inline = format!("src/{}.rs", module.trim_end_matches("/tests"));
        let places = [format!("tests/{target}/{module}.rs"), format!("src/{module}.rs"), inline];
        code.clone().any(|file| places.contains(&file.path) && file.text.contains(&format!("fn {name}(")))
    };
    let mut unknown = Vec::new();
    let of_fault = Regex::new(r"test: '(\w+) ([\w:]+)::(\w+)'").unwrap();
    for file in FILES.iter().filter(|file| file.path.starts_with("tests/faults/cases/")) {
        let named = of_fault.captures_iter(&file.text).map(|found| found.extract::<3>().1);
        unknown.extend(
            named.filter(|[target, module, name]| !in_module(target, module, name)).map(|named| named.join(" ")),
        );
    }
    // The name of a test is a sentence.
    let in_document = Regex::new(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+){4,})`").unwrap();
    for page in ["docs/reliability.md", "docs/security.md"] {
        let named = in_document.captures_iter(&file(page).text).map(|found| found.extract::<1>().1[0]);
        unknown.extend(named.filter(|name| !known.contains(name)).map(|name| format!("{page}: {name}")));
    }
    nothing(unknown, "name the test as it is called now");
}

#[test]
fn every_make_word_in_a_document_exists() {
    let word = Regex::new(r"`make ([a-z-]+)`").unwrap();
    let makefile = &file("Makefile").text;
    let mut found = Vec::new();
    for file in FILES.iter().filter(|file| file.is_document()) {
        for named in word.captures_iter(&file.text).map(|found| found[1].to_owned()) {
            if !makefile.lines().any(|line| line.starts_with(&format!("{named}:"))) {
                found.push(format!("{}: make {named}", file.path));
            }
        }
    }
    nothing(found, "name a target of the Makefile");
}

fn outside_code_blocks(text: &str) -> Vec<(&str, usize)> {
    let mut inside = false;
    text.lines()
        .zip(1..)
        .filter(|(line, _)| {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            !inside && !fence
        })
        .collect()
}

/// The anchors that a page of this text offers, made the way the usual hosts make them.
fn anchors(text: &str) -> BTreeSet<String> {
    outside_code_blocks(text)
        .into_iter()
        .filter(|(line, _)| line.starts_with('#'))
        .map(|(line, _)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|character| character.is_alphanumeric() || " -_".contains(*character))
                .map(|character| if character == ' ' { '-' } else { character })
                .collect()
        })
        .collect()
}
