//! Restricts the program of a server with a `sandbox`. Landlock or bubblewrap closes the files, and a filter of system
//! calls closes the network and Unix sockets, which lead to programs outside of the sandbox. Both apply to all children.
//!
//! The server starts through our own program: a process can only restrict itself, so a short step ([`run`]) does that and
//! then becomes the server.

#[cfg(target_os = "linux")]
mod linux;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::config::expand::ExpandedSandbox;
use crate::paths::{canonical, own_program};
use crate::settings::Sandbox;

/// The hidden subcommand: the plan as JSON, `--`, the program and its arguments.
pub const SUBCOMMAND: &str = "__sandbox";
/// The beginning of a warning about a server that runs without its sandbox.
pub const NOT_ENFORCED: &str = "the sandbox is not enforced";

/// What every program needs to run, even if it may read only some folders.
const SYSTEM: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/dev",
    "/proc",
    "/run/current-system",
    "/run/systemd/resolve",
];

/// How a sandbox is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    Landlock { scopes_signals: bool },
    Bubblewrap(PathBuf),
}

/// What this machine can do.
#[derive(Debug, Clone, Default)]
pub struct Abilities {
    /// Landlock that also covers truncating, which is older than Linux 6.2 only in part.
    pub landlock: bool,
    pub landlock_signals: bool,
    /// The filter of system calls.
    pub filter: bool,
    pub bubblewrap: Option<PathBuf>,
}

/// A program that is started in a sandbox.
#[derive(Debug)]
pub struct SandboxedProgram {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The temporary folder of the server. Removed when this is dropped.
    pub temp: tempfile::TempDir,
    pub warnings: Vec<String>,
}

/// What the step before the server does.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    landlock: bool,
    /// `None`: every file.
    read: Option<Vec<PathBuf>>,
    write: Vec<PathBuf>,
    network: bool,
}

/// The method that this machine supports; the error says why there is none.
pub fn method(settings: &Sandbox) -> Result<Method, String> {
    choose(&settings.method, &abilities(settings))
}

fn choose(wanted: &str, abilities: &Abilities) -> Result<Method, String> {
    if !abilities.filter {
        return Err("a sandbox needs Linux on x86-64, ARM64 or RISC-V with seccomp".to_owned());
    }
    let landlock = abilities.landlock.then_some(Method::Landlock { scopes_signals: abilities.landlock_signals });
    let bubblewrap = || abilities.bubblewrap.clone().map(Method::Bubblewrap);
    match wanted {
        "landlock" => landlock.ok_or_else(|| "this kernel has no Landlock, or one older than Linux 6.2".to_owned()),
        "bubblewrap" => bubblewrap().ok_or_else(|| {
            "bubblewrap (bwrap) was not found in the system folders; install it, or set `sandbox.bubblewrap`".to_owned()
        }),
        _ => landlock.or_else(bubblewrap).ok_or_else(|| {
            "this kernel has no Landlock, or one older than Linux 6.2, and bubblewrap (bwrap) was not found; install it"
                .to_owned()
        }),
    }
}

fn abilities(settings: &Sandbox) -> Abilities {
    static KERNEL: OnceLock<Abilities> = OnceLock::new();
    let kernel = KERNEL.get_or_init(kernel).clone();
    Abilities { bubblewrap: bubblewrap(&settings.bubblewrap), ..kernel }
}

#[cfg(target_os = "linux")]
fn kernel() -> Abilities {
    linux::abilities()
}

#[cfg(not(target_os = "linux"))]
fn kernel() -> Abilities {
    Abilities::default()
}

/// Only in system folders: the PATH may lead into a project, whose `bwrap` could leave the door open.
fn bubblewrap(set: &str) -> Option<PathBuf> {
    let usual = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
    match set {
        "" => usual.into_iter().map(PathBuf::from).find(|path| path.is_file()),
        set => Some(PathBuf::from(set)).filter(|path| path.is_absolute() && path.is_file()),
    }
}

/// How to start a program in its sandbox.
pub fn wrap(
    program: &Path,
    cwd: &Path,
    limits: &ExpandedSandbox,
    settings: &Sandbox,
) -> Result<SandboxedProgram, String> {
    let method = method(settings)?;
    let own = own_program().map_err(|error| format!("cannot find our own program: {error}"))?;
    let temp = tempfile::Builder::new()
        .prefix("mcp-sidecar-")
        .tempdir()
        .map_err(|error| format!("cannot create its temporary folder: {error}"))?;
    // A path below a folder that the server may change is open anyway, and could be a link that the server made.
    let is_free = |path: &&PathBuf| !limits.write.iter().any(|other| other != *path && path.starts_with(other));
    let mut write = Vec::new();
    for path in limits.write.iter().filter(is_free) {
        write.push(path.canonicalize().map_err(|error| {
            format!(
                "`sandbox.write` names {}: {error}; create it first",
                crate::text::mask(&path.display().to_string())
            )
        })?);
    }
    write.push(temp.path().to_path_buf());
    let read = limits.read.as_ref().map(|given| {
        let system = SYSTEM.into_iter().map(PathBuf::from);
        let needed =
            [program, &own].into_iter().filter_map(|path| path.canonicalize().ok()?.parent().map(PathBuf::from));
        let listed = given.iter().filter(is_free).map(|path| canonical(path));
        system.chain(needed).chain(listed).chain([cwd.to_path_buf()]).filter(|path| path.exists()).collect::<Vec<_>>()
    });
    let mut warnings = Vec::new();
    let (outer, landlock) = match method {
        Method::Landlock { scopes_signals } => {
            if !scopes_signals {
                let why = "this kernel is older than Linux 6.12";
                warnings.push(format!("the sandbox cannot stop it from killing your other programs: {why}"));
            }
            (None, true)
        }
        Method::Bubblewrap(bwrap) => {
            (Some((bwrap, bubblewrap_args(read.as_deref(), &write, limits.network, cwd))), false)
        }
    };
    let plan = Plan { landlock, read, write, network: limits.network };
    let plan = serde_json::to_string(&plan).map_err(|error| format!("a path is not UTF-8: {error}"))?;
    let inner = [SUBCOMMAND.into(), plan.into(), "--".into(), program.into()];
    let (program, args) = match outer {
        None => (own, inner.into()),
        Some((bwrap, args)) => (bwrap, args.into_iter().chain(["--".into(), own.into()]).chain(inner).collect()),
    };
    Ok(SandboxedProgram { program, args, temp, warnings })
}

fn bubblewrap_args(read: Option<&[PathBuf]>, write: &[PathBuf], network: bool, cwd: &Path) -> Vec<OsString> {
    let flags = ["--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc"];
    // As root, it would keep all rights otherwise.
    let flags = flags.into_iter().chain(["--cap-drop", "ALL"]);
    let mut args: Vec<OsString> = flags.map(OsString::from).collect();
    let mut bind = |how: &str, path: &Path| args.extend([how.into(), path.into(), path.into()]);
    match read {
        None => bind("--ro-bind", Path::new("/")),
        Some(paths) => paths.iter().filter(|path| !is_virtual(path)).for_each(|path| bind("--ro-bind", path)),
    }
    args.extend(["--dev", "/dev", "--proc", "/proc"].map(OsString::from));
    write.iter().for_each(|path| args.extend(["--bind".into(), path.into(), path.into()]));
    if !network {
        args.push("--unshare-net".into());
    }
    args.extend(["--chdir".into(), cwd.into()]);
    args
}

/// Folders that get a new file system inside.
fn is_virtual(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|folder| path == Path::new(folder))
}

/// Restricts this process, and becomes the server. Returns only if that fails.
pub fn run(arguments: Vec<OsString>) -> String {
    #[cfg(target_os = "linux")]
    return linux::run(arguments);
    #[cfg(not(target_os = "linux"))]
    {
        drop(arguments);
        "a sandbox needs Linux".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_is_what_this_machine_has_and_the_user_allows() {
        let chosen = |wanted: &str, landlock, bwrap: bool, filter| {
            let bubblewrap = bwrap.then(|| PathBuf::from("/usr/bin/bwrap"));
            let abilities = Abilities { landlock, landlock_signals: true, filter, bubblewrap };
            match choose(wanted, &abilities) {
                Ok(Method::Landlock { .. }) => "landlock".to_owned(),
                Ok(Method::Bubblewrap(_)) => "bubblewrap".to_owned(),
                Err(why) => why,
            }
        };
        assert_eq!(chosen("auto", true, true, true), "landlock");
        assert_eq!(chosen("auto", false, true, true), "bubblewrap");
        assert_eq!(chosen("bubblewrap", true, true, true), "bubblewrap");
        assert!(chosen("auto", false, false, true).contains("no Landlock"));
        assert!(chosen("landlock", false, true, true).contains("no Landlock"));
        assert!(chosen("bubblewrap", true, false, true).contains("was not found"));
        assert!(chosen("auto", true, true, false).contains("seccomp"));
    }

    #[test]
    fn a_relative_bwrap_is_not_used() {
        assert_eq!(bubblewrap("bwrap"), None);
        assert_eq!(bubblewrap("/nowhere/bwrap"), None);
    }
}
