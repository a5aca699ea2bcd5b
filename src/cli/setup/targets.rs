//! The files to edit, and what to write into them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::Arguments;
use crate::cli::context::{Context, is_same_file};
use crate::config::interop::Homes;
use crate::config::interop::setup::{prefers_user, project_target, user_targets};
use crate::config::{self, Source};
use crate::settings::Settings;

/// The name of this program, as a shared file contains it.
const PROGRAM: &str = "mcp-sidecar";

pub(super) struct Targets {
    pub paths: Vec<PathBuf>,
    pub is_project: bool,
    pub folder: Arc<Path>,
    /// The user's config of the agent.
    pub user_file: Option<PathBuf>,
    /// The files that mcp-sidecar itself reads servers from.
    pub sources: Vec<Source>,
    pub command: String,
    pub args: Vec<String>,
    /// Why these are not the files that the user would expect.
    pub notes: Vec<String>,
}

impl Targets {
    /// The project's file, unless we read servers from it ourselves: then we would start ourselves as a server.
    pub fn choose(arguments: &Arguments, context: &Context) -> anyhow::Result<Self> {
        let agent = arguments.agent;
        let title = agent.title();
        let paths = context.paths()?;
        let settings = Settings::from_file(&paths).settings;
        let folder = context.folder(&settings)?;
        let sources = config::sources(std::slice::from_ref(&folder), &settings.files, &paths);
        let homes = Homes::discover();
        let user = homes.as_ref().map(|homes| user_targets(agent, homes)).unwrap_or_default();
        let project = project_target(agent, &folder);
        let mut notes = Vec::new();
        let project = match project {
            _ if arguments.user || (prefers_user(agent) && !arguments.project) => None,
            None => {
                anyhow::ensure!(!arguments.project, "{title} has no project config; use --user");
                None
            }
            Some(path) if !is_read(&sources, &path) || (arguments.undo && arguments.project) => Some(path),
            Some(path) => {
                let why =
                    format!("{} cannot be used, because mcp-sidecar itself reads servers from it", path.display());
                anyhow::ensure!(!arguments.project, "{why}; use --user");
                notes.push(format!("{why}; using your user config, which applies to all projects"));
                None
            }
        };
        let is_project = project.is_some();
        if is_project && !arguments.undo && which::which(PROGRAM).is_err() {
            notes.push(format!(
                "{title} will look for `{PROGRAM}` on the PATH, but it is not there yet; add it, or use --user"
            ));
        }
        let user_file = user.first().cloned();
        let paths = project.map_or(user, |path| vec![path]);
        anyhow::ensure!(!paths.is_empty(), "cannot find your home folder; set HOME");
        let (command, args) = (command(is_project)?, args(is_project, context)?);
        Ok(Self { paths, is_project, folder, user_file, sources, command, args, notes })
    }

    /// Whether mcp-sidecar itself reads servers from this file.
    pub fn is_read(&self, path: &Path) -> bool {
        is_read(&self.sources, path)
    }
}

fn is_read(sources: &[Source], path: &Path) -> bool {
    sources.iter().any(|source| *source.path == *path || is_same_file(&source.path, path))
}

/// A project's file is shared, so it contains only the name of the program. The user's file contains the full path,
/// because programs that are started from a desktop often have no PATH.
fn command(is_project: bool) -> anyhow::Result<String> {
    if is_project {
        return Ok(PROGRAM.to_owned());
    }
    own_path()
}

/// The full path of this program, as a file of the user contains it.
pub(super) fn own_path() -> anyhow::Result<String> {
    let own = std::env::current_exe().context("cannot find the path of mcp-sidecar")?;
    // A link on the PATH stays valid after an update.
    let on_path = which::which(PROGRAM).ok().filter(|found| is_same_file(found, &own));
    let path = on_path.unwrap_or(own);
    path.into_os_string().into_string().map_err(|_| anyhow::anyhow!("the path of mcp-sidecar is not valid UTF-8"))
}

fn args(is_project: bool, context: &Context) -> anyhow::Result<Vec<String>> {
    let mut args = vec!["connect".to_owned()];
    // An explicit workspace applies no matter where the program is started.
    if let Some(folder) = context.workspace.as_ref().filter(|_| !is_project) {
        let folder = std::path::absolute(folder)?;
        args.extend(["--workspace".to_owned(), folder.display().to_string()]);
    }
    Ok(args)
}
