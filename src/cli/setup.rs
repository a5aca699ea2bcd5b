//! `mcp-sidecar setup`: points another program at `mcp-sidecar connect`, in that program's own config file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use super::context::{Context, read_dialect};
use super::{Status, print};
use crate::config::edit::write_atomically;
use crate::config::interop::{Dialect, Homes, add_sidecar, project_file, remove_sidecar, user_files};
use crate::config::shape::secrets;
use crate::config::{self, Content, watch};
use crate::settings::Settings;

/// Settings of other programs hold more than servers; this is far beyond any of them.
const LARGEST: usize = 32 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// One of claude, claude-desktop, codex, cursor, vscode, windsurf, zed, cline
    #[arg(value_name = "PROGRAM", value_parser = read_program)]
    program: Dialect,
    /// The user's file, for every project
    #[arg(long)]
    user: bool,
    /// The project's file
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// Show the difference, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Take the entry out again
    #[arg(long)]
    undo: bool,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// The file to change, and for whom it is.
struct Target {
    path: PathBuf,
    is_project: bool,
    /// Why it is not the file that one would expect.
    remark: Option<String>,
}

fn read_program(text: &str) -> Result<Dialect, String> {
    // mcphub is a host of servers as we are: there is nobody behind it who could be an agent of ours.
    read_dialect(text).and_then(|dialect| match dialect {
        Dialect::McpHub => Err("mcphub hosts servers itself; import them with `mcp-sidecar import mcphub`".to_owned()),
        other => Ok(other),
    })
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let program = arguments.program;
    let target = target(&arguments, context)?;
    let before = match watch::read(&target.path, LARGEST) {
        Content::Text(text) => Some(text),
        Content::Absent | Content::Gone => None,
        Content::Unreadable(reason) => anyhow::bail!("{} cannot be used: {reason}", target.path.display()),
    };
    let text = before.as_deref().unwrap_or_default();
    let changed = if arguments.undo {
        remove_sidecar(program, text)
    } else {
        add_sidecar(program, text, &command(&target)?, &parameters(&target, context)?)
    };
    let after = changed.with_context(|| target.path.display().to_string())?;
    let changes = after != text;
    let mut backup = None;
    if changes && !arguments.dry_run {
        if before.is_some() {
            backup = Some(keep(&target.path, text)?);
        }
        write_atomically(&target.path, &after).with_context(|| target.path.display().to_string())?;
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
    let mut told = match (changes, arguments.dry_run, arguments.undo) {
        (false, _, true) => format!("{path} does not name mcp-sidecar; nothing to undo\n"),
        (false, _, false) => format!("{title} is set up already, in {path}\n"),
        (true, true, _) => difference(&target.path, text, &after),
        (true, false, true) => format!("{title} no longer starts mcp-sidecar: {path}\n"),
        (true, false, false) => {
            format!("{title} starts mcp-sidecar from now on: {path}\nrestart it to see its tools\n")
        }
    };
    if let Some(backup) = backup {
        told.push_str(&format!("the file as it was: {}\n", backup.display()));
    }
    print(&told)?;
    Ok(Status::Ok)
}

/// The project's file where the program has one, unless we read servers from it ourselves: then we would be a server
/// of our own.
fn target(arguments: &Arguments, context: &Context) -> anyhow::Result<Target> {
    let program = arguments.program;
    let title = program.title();
    let homes = Homes::discover();
    let user = || -> anyhow::Result<PathBuf> {
        let homes = homes.as_ref().context("no home folder found; set HOME")?;
        let files: Vec<PathBuf> = user_files(program, homes);
        // The settings of VS Code hold servers of old; new ones belong into the file beside it.
        let there = files.iter().filter(|path| !path.ends_with("settings.json") || program == Dialect::Zed);
        let there = there.clone().find(|path| path.exists()).or(files.first());
        there.cloned().context("it has no file")
    };
    let for_user = |remark| Ok(Target { path: user()?, is_project: false, remark });
    if arguments.user {
        return for_user(None);
    }
    let paths = context.paths()?;
    let settings = Settings::from_file(&paths).settings;
    let folder = context.folder(&settings)?;
    let Some(path) = project_file(program, &folder) else {
        anyhow::ensure!(!arguments.project, "{title} has no file of its own in a project; use --user");
        return for_user(None);
    };
    let sources = config::sources(std::slice::from_ref(&folder), &settings.files, &paths);
    let is_read = sources.iter().any(|source| *source.path == *path || is_same_file(&source.path, &path));
    if !is_read || (arguments.undo && arguments.project) {
        return Ok(Target { path, is_project: true, remark: None });
    }
    let why = format!(
        "mcp-sidecar reads {} itself and would become a server of its own there (`files.project` in config.toml lists such files)",
        path.display()
    );
    anyhow::ensure!(!arguments.project, "{why}; use --user");
    for_user(Some(format!("{why}; the file of the user is taken")))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// A project's file is for everybody who works on it. The user's own file names the program in full, because programs
/// that are started from a desktop often know no PATH.
fn command(target: &Target) -> anyhow::Result<String> {
    if target.is_project {
        return Ok("mcp-sidecar".to_owned());
    }
    let own = std::env::current_exe().context("our own program cannot be found")?;
    // A link on the PATH stays right when the program behind it is replaced.
    let on_path = which::which("mcp-sidecar").ok().filter(|found| is_same_file(found, &own));
    let path = on_path.unwrap_or(own);
    path.into_os_string().into_string().map_err(|_| anyhow::anyhow!("the path of our own program is not UTF-8"))
}

fn parameters(target: &Target, context: &Context) -> anyhow::Result<Vec<String>> {
    let mut parameters = vec!["connect".to_owned()];
    // A workspace that was named counts wherever the program itself is started from.
    if let Some(folder) = context.workspace.as_ref().filter(|_| !target.is_project) {
        let folder = std::path::absolute(folder)?;
        parameters.extend(["--workspace".to_owned(), folder.display().to_string()]);
    }
    Ok(parameters)
}

/// Keeps the file as it was beside it. What stands there under that name is replaced, never written through: it may
/// be a link that leads elsewhere.
fn keep(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".bak");
    let backup = path.with_file_name(name);
    let folder = path.parent().context("the file has no folder")?;
    let write = || -> io::Result<()> {
        // Made for the user alone at first: the file may hold secrets.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(std::fs::metadata(path)?.permissions())?;
        file.as_file().sync_all()?;
        file.persist(&backup).map(|_| ()).map_err(|error| error.error)
    };
    write().with_context(|| backup.display().to_string())?;
    Ok(backup)
}

/// The lines that change and no others: what stands around them is nobody's business.
fn difference(path: &Path, before: &str, after: &str) -> String {
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

/// A line may change for a comma only, and hold a secret before it.
fn without_secret(line: &str) -> String {
    let (key, value) = line.split_once([':', '=']).unwrap_or(("", line));
    let literal = value.trim().trim_end_matches(',').trim_matches('"');
    match secrets::find(Some(key.trim().trim_matches('"')), literal).and_then(|span| literal.get(span)) {
        Some(secret) => line.replace(secret, "•••"),
        None => line.to_owned(),
    }
}
