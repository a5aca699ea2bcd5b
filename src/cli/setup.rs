//! `mcp-sidecar setup`: adds `mcp-sidecar connect` to the config file of another program.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use super::context::{Context, is_same_file, parse_dialect};
use super::{Status, print};
use crate::config::edit::write_atomically;
use crate::config::interop::{Dialect, Homes, add_sidecar, project_file, remove_sidecar, user_files};
use crate::config::shape::secrets;
use crate::config::{self, Content, watch};
use crate::settings::Settings;

/// The largest config file that is read. Settings of other programs contain more than servers.
const LARGEST: usize = 32 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Agent to configure: claude, claude-desktop, codex, cursor, vscode, windsurf, zed, cline
    #[arg(value_name = "PROGRAM", value_parser = parse_program)]
    program: Dialect,
    /// Edit your user config, which applies to all projects
    #[arg(long)]
    user: bool,
    /// Edit the config of this project
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// Show the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Remove the entry again
    #[arg(long)]
    undo: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// The file to edit.
struct Target {
    path: PathBuf,
    is_project: bool,
    /// Why it is not the file that the user would expect.
    remark: Option<String>,
}

fn parse_program(text: &str) -> Result<Dialect, String> {
    // mcphub only hosts servers, so it cannot be an agent.
    parse_dialect(text).and_then(|dialect| match dialect {
        Dialect::McpHub => {
            Err("mcphub is not an agent; run `mcp-sidecar import mcphub` to import its servers".to_owned())
        }
        other => Ok(other),
    })
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let program = arguments.program;
    let target = target(&arguments, context)?;
    let before = match watch::read(&target.path, LARGEST) {
        Content::Text(text) => Some(text),
        Content::Absent | Content::Gone => None,
        Content::Unreadable(reason) => anyhow::bail!("cannot read {}: {reason}", target.path.display()),
    };
    let text = before.as_deref().unwrap_or_default();
    let changed = if arguments.undo {
        remove_sidecar(program, text)
    } else {
        add_sidecar(program, text, &command(&target)?, &parameters(&target, context)?)
    };
    let after = changed.with_context(|| format!("cannot edit {}", target.path.display()))?;
    let changes = after != text;
    let mut backup = None;
    if changes && !arguments.dry_run {
        if before.is_some() {
            backup = Some(back_up(&target.path, text)?);
        }
        write_atomically(&target.path, &after).with_context(|| format!("cannot write {}", target.path.display()))?;
    }
    if arguments.json {
        let shown = json!({ "path": target.path, "changed": changes, "backup": backup, "remark": target.remark });
        print(&format!("{shown:#}\n"))?;
        return Ok(Status::Ok);
    }
    if let Some(remark) = &target.remark {
        writeln!(io::stderr(), "note: {remark}").ok();
    }
    let path = target.path.display();
    let title = program.title();
    let mut text = match (changes, arguments.dry_run, arguments.undo) {
        (false, _, true) => format!("{path} does not use mcp-sidecar; nothing to undo\n"),
        (false, _, false) => format!("{title} already uses mcp-sidecar: {path}\n"),
        (true, true, _) => diff(&target.path, text, &after),
        (true, false, true) => format!("{title} no longer uses mcp-sidecar: {path}\n"),
        (true, false, false) => format!("{title} now uses mcp-sidecar: {path}\nrestart {title} to see the tools\n"),
    };
    if let Some(backup) = backup {
        text.push_str(&format!("backup of the old file: {}\n", backup.display()));
    }
    print(&text)?;
    Ok(Status::Ok)
}

/// The project's file, unless we read servers from it ourselves: then we would start ourselves as a server.
fn target(arguments: &Arguments, context: &Context) -> anyhow::Result<Target> {
    let program = arguments.program;
    let title = program.title();
    let homes = Homes::discover();
    let user = || -> anyhow::Result<PathBuf> {
        let homes = homes.as_ref().context("cannot find your home folder; set HOME")?;
        let files: Vec<PathBuf> = user_files(program, homes);
        // VS Code used to keep servers in settings.json; new ones belong in its mcp.json.
        let usable = files.iter().filter(|path| !path.ends_with("settings.json") || program == Dialect::Zed);
        let found = usable.clone().find(|path| path.exists()).or(files.first());
        found.cloned().with_context(|| format!("{title} has no user config"))
    };
    let for_user = |remark| Ok(Target { path: user()?, is_project: false, remark });
    if arguments.user {
        return for_user(None);
    }
    let paths = context.paths()?;
    let settings = Settings::from_file(&paths).settings;
    let folder = context.folder(&settings)?;
    let Some(path) = project_file(program, &folder) else {
        anyhow::ensure!(!arguments.project, "{title} has no project config; use --user");
        return for_user(None);
    };
    let sources = config::sources(std::slice::from_ref(&folder), &settings.files, &paths);
    let is_read = sources.iter().any(|source| *source.path == *path || is_same_file(&source.path, &path));
    if !is_read || (arguments.undo && arguments.project) {
        return Ok(Target { path, is_project: true, remark: None });
    }
    let why = format!(
        "mcp-sidecar reads {} itself, so it would start itself as a server (see `files.project` in config.toml)",
        path.display()
    );
    anyhow::ensure!(!arguments.project, "{why}; use --user");
    for_user(Some(format!("{why}; using your user config instead")))
}

/// A project's file is shared, so it contains only the name of the program. The user's file contains the full path,
/// because programs that are started from a desktop often have no PATH.
fn command(target: &Target) -> anyhow::Result<String> {
    if target.is_project {
        return Ok("mcp-sidecar".to_owned());
    }
    let own = std::env::current_exe().context("cannot find the path of mcp-sidecar")?;
    // A link on the PATH stays valid after an update.
    let on_path = which::which("mcp-sidecar").ok().filter(|found| is_same_file(found, &own));
    let path = on_path.unwrap_or(own);
    path.into_os_string().into_string().map_err(|_| anyhow::anyhow!("the path of mcp-sidecar is not valid UTF-8"))
}

fn parameters(target: &Target, context: &Context) -> anyhow::Result<Vec<String>> {
    let mut parameters = vec!["connect".to_owned()];
    // An explicit workspace applies no matter where the program is started.
    if let Some(folder) = context.workspace.as_ref().filter(|_| !target.is_project) {
        let folder = std::path::absolute(folder)?;
        parameters.extend(["--workspace".to_owned(), folder.display().to_string()]);
    }
    Ok(parameters)
}

/// Saves a backup next to the file. An existing backup is replaced, never written to: it may be a link to another file.
fn back_up(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".bak");
    let backup = path.with_file_name(name);
    let folder = path.parent().context("the config file has no parent folder")?;
    let write = || -> io::Result<()> {
        // Readable only for the user at first: the file may contain secrets.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(std::fs::metadata(path)?.permissions())?;
        file.as_file().sync_all()?;
        file.persist(&backup).map(|_| ()).map_err(|error| error.error)
    };
    write().with_context(|| format!("cannot write {}", backup.display()))?;
    Ok(backup)
}

/// The changed lines, without context: the rest of the file may be private.
fn diff(path: &Path, before: &str, after: &str) -> String {
    let mut shown = format!("--- {0}\n+++ {0}\n", path.display());
    for change in TextDiff::from_lines(before, after).iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => continue,
        };
        shown.push_str(&format!("{sign}{}\n", without_secret(change.value().trim_end_matches(['\n', '\r']))));
    }
    shown
}

/// Hides secrets: a line with a secret may change only by a comma.
fn without_secret(line: &str) -> String {
    let (key, value) = line.split_once([':', '=']).unwrap_or(("", line));
    let literal = value.trim().trim_end_matches(',').trim_matches('"');
    match secrets::find(Some(key.trim().trim_matches('"')), literal).and_then(|span| literal.get(span)) {
        Some(secret) => line.replace(secret, "•••"),
        None => line.to_owned(),
    }
}
