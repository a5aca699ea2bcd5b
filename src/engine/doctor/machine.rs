//! Checks what the sidecar itself needs from the machine.

use std::ffi::OsStr;
use std::path::Path;

use super::{Check, several};
use crate::paths::{MANAGED_VARIABLE, Paths, make_private_folder};
use crate::store::Health;

/// A socket path must fit into this length on every Unix. The file name is added to the folder.
const LONGEST_SOCKET: usize = 104;
const SOCKET_NAME: usize = 40;
/// With lower limits, an editor and a few other programs can use all of them.
const FEWEST_WATCHES: u64 = 8_192;
const FEWEST_INSTANCES: u64 = 64;

/// Whether a variable names another managed config than the one in use.
pub fn managed(paths: &Paths, variable: Option<&OsStr>) -> Option<Check> {
    let ignored = paths.ignored_variable(variable)?;
    Some(Check::bad("managed config", ignored, format!("unset {MANAGED_VARIABLE}")))
}

/// Whether files can be watched. Only Linux has these limits.
pub fn inotify() -> Option<Check> {
    let limit = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(name)).ok()?;
        text.trim().parse().ok()
    };
    Some(check_limits(limit("max_user_watches")?, limit("max_user_instances")?))
}

fn check_limits(watches: u64, instances: u64) -> Check {
    let message = format!("{watches} watches, {instances} instances");
    let fix = |name: &str, value: u64| format!("sudo sysctl fs.inotify.{name}={value}");
    match (watches < FEWEST_WATCHES, instances < FEWEST_INSTANCES) {
        (false, false) => Check::good("inotify", message),
        (true, _) => Check::bad("inotify", message, fix("max_user_watches", 524_288)),
        (_, true) => Check::bad("inotify", message, fix("max_user_instances", 512)),
    }
}

/// Whether fronts can connect to their engine.
pub fn sockets(paths: &Paths) -> Check {
    let folder = &paths.runtime_dir;
    if folder.as_os_str().len() + SOCKET_NAME > LONGEST_SOCKET {
        let message = format!("the path {} is too long for a socket", folder.display());
        return Check::bad("socket folder", message, "set MCP_SIDECAR_RUNTIME_DIR to a shorter path");
    }
    writable("socket folder", folder, "set MCP_SIDECAR_RUNTIME_DIR to another folder")
}

pub fn logs(paths: &Paths) -> Check {
    writable("log folder", &paths.logs_dir(), "set MCP_SIDECAR_STATE_DIR to another folder")
}

pub fn database(paths: &Paths, health: &Health) -> Check {
    let path = paths.database().display().to_string();
    match (&health.problem, &health.notice) {
        (Some(problem), _) => Check::complaint(
            "database",
            problem,
            "free disk space or check the permissions; until then, decisions are lost when the engine exits",
        ),
        (None, Some(notice)) => Check::good("database", format!("{path}; {notice}")),
        (None, None) if health.lost > 0 => {
            Check::good("database", format!("{path}; lost {}", several(health.lost as usize, "call record")))
        }
        (None, None) => Check::good("database", path),
    }
}

fn writable(name: &str, folder: &Path, otherwise: &str) -> Check {
    match make_private_folder(folder) {
        Ok(()) => Check::good(name, folder.display().to_string()),
        Err(error) => Check::complaint(name, &format!("{}: {error}", folder.display()), otherwise),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_inotify_limits_come_with_the_command_that_raises_them() {
        assert!(check_limits(8_192, 128).ok);
        assert_eq!(check_limits(10, 128).fix.unwrap(), "sudo sysctl fs.inotify.max_user_watches=524288");
        assert_eq!(check_limits(8_192, 8).fix.unwrap(), "sudo sysctl fs.inotify.max_user_instances=512");
    }

    #[test]
    fn a_database_that_cannot_be_written_fails() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let paths = Paths { config_dir: at("c"), state_dir: at("s"), runtime_dir: at("r"), managed_config: at("m") };
        assert!(database(&paths, &Health::default()).ok);
        assert_eq!(managed(&paths, Some(at("m").as_os_str())), None);
        let ignored = managed(&paths, Some(at("other").as_os_str())).unwrap();
        assert_eq!((ignored.ok, ignored.fix.as_deref()), (false, Some("unset MCP_SIDECAR_MANAGED_CONFIG")));
        let problem = Health { problem: Some("the disk is full".to_owned()), ..Health::default() };
        assert!(!database(&paths, &problem).ok);
        assert!(logs(&paths).ok);
        std::fs::write(at("x"), "").unwrap();
        assert!(!logs(&Paths { state_dir: at("x"), ..paths }).ok);
    }
}
