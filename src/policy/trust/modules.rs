//! The files that an interpreter loads for the name of a module.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::contents::read_small;
use super::files::Project;
use crate::config::tree;

/// What interpreters add to a name that is not a file …
const ENDINGS: &[&str] = &[".js", ".json", ".node", ".ts", ".tsx", ".mjs", ".cjs"];
/// … also for modules that code names …
const MODULE_ENDINGS: &[&str] = &[".py", ".pm", ".pl", ".rb", ".lua", ".php", ".so", ".mts", ".cts", ".jsx"];
/// … and what they look for in a folder.
const FOLDER_PROGRAMS: &[&str] = &["index.js", "index.json", "index.node", "index.ts", "index.tsx", "__main__.py"];
const MODULE_PROGRAMS: &[&str] = &["index.mjs", "index.cjs", "__init__.py", "init.lua"];
const TESTS: &[&str] = &["js", "mjs", "cjs", "ts", "mts", "cts"];
const MOST_TESTS: usize = 1_024;

/// What an interpreter runs for a name that is not a file.
pub fn module(path: &Path) -> Vec<PathBuf> {
    let mut found = with_endings(path, ENDINGS);
    if path.is_dir() {
        found.extend(FOLDER_PROGRAMS.iter().map(|name| path.join(name)));
        let package = read_small(&path.join("package.json")).map(|text| tree::parse(&text, 64));
        let main = package.and_then(|tree| Some(tree.root?.get("main")?.value.text()?.to_owned()));
        if let Some(main) = main.map(|main| path.join(main)) {
            found.extend(with_endings(&main, ENDINGS));
            found.extend(FOLDER_PROGRAMS.iter().map(|name| main.join(name)));
            found.push(main);
        }
    }
    found.retain(|path| path.is_file());
    found
}

/// What code in a folder loads by this name: a file, a folder, or a package of any folder above.
pub fn loaded(base: &Path, name: &str, project: &Project) -> Vec<PathBuf> {
    let mut found = named(&base.join(name));
    // `a.b` in Python.
    if name.contains('.') && !name.contains('/') {
        found.extend(named(&base.join(name.replace('.', "/"))));
    }
    if !name.starts_with(['.', '/']) {
        for folder in project.folders_up(base) {
            let modules = folder.join("node_modules");
            if modules.is_dir() {
                found.extend(named(&modules.join(name)));
                found.extend(package(&modules, name));
            }
        }
    }
    found.retain(|path| path.is_file());
    found
}

/// The files in a folder that `node --test` may run.
pub fn tests_in(folder: &Path) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = open.pop().filter(|_| found.len() < MOST_TESTS) {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let code =
                path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| TESTS.contains(&ending));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && entry.file_name() != "node_modules" => open.push(path),
                Ok(_) if code => found.push(path),
                _ => {}
            }
        }
    }
    found
}

fn named(path: &Path) -> Vec<PathBuf> {
    let mut found = module(path);
    found.push(path.to_path_buf());
    found.extend(with_endings(path, MODULE_ENDINGS));
    if path.is_dir() {
        found.extend(MODULE_PROGRAMS.iter().map(|name| path.join(name)));
    }
    found
}

fn with_endings(path: &Path, endings: &[&str]) -> Vec<PathBuf> {
    endings.iter().map(|ending| PathBuf::from(format!("{}{ending}", path.display()))).collect()
}

/// The description of an installed package, and the files that it offers.
fn package(modules: &Path, name: &str) -> Vec<PathBuf> {
    let parts = if name.starts_with('@') { 2 } else { 1 };
    let folder = name.split('/').take(parts).fold(modules.to_path_buf(), |folder, part| folder.join(part));
    let path = folder.join("package.json");
    let Some(text) = read_small(&path) else { return vec![path] };
    let mut found = vec![path];
    let package: Value = serde_json::from_str(&text).unwrap_or_default();
    let mut open: Vec<&Value> = package.get("exports").into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(file) => found.push(folder.join(file)),
            Value::Array(values) => open.extend(values),
            Value::Object(values) => open.extend(values.values()),
            _ => {}
        }
    }
    found
}
