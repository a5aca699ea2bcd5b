//! The parts of the machine that the sidecar itself stands on.

use std::path::Path;

use super::Check;
use crate::paths::{Paths, make_private_folder};
use crate::store::Health;

/// A socket's path must fit here on every unix; a name of its own comes behind the folder.
const LONGEST_SOCKET: usize = 104;
const SOCKET_NAME: usize = 40;
/// Below these, an editor and a few programs beside us leave nothing over.
const FEWEST_WATCHES: u64 = 8_192;
const FEWEST_INSTANCES: u64 = 64;

/// Whether files can be watched. Only Linux has these limits.
pub fn inotify() -> Option<Check> {
    let limit = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(Path::new("/proc/sys/fs/inotify").join(name)).ok()?;
        text.trim().parse().ok()
    };
    Some(judged(limit("max_user_watches")?, limit("max_user_instances")?))
}

fn judged(watches: u64, instances: u64) -> Check {
    let message = format!("{watches} watches, {instances} instances");
    let fix = |name: &str, value: u64| format!("sudo sysctl fs.inotify.{name}={value}");
    match (watches < FEWEST_WATCHES, instances < FEWEST_INSTANCES) {
        (false, false) => Check::good("inotify", message),
        (true, _) => Check::bad("inotify", message, fix("max_user_watches", 524_288)),
        (_, true) => Check::bad("inotify", message, fix("max_user_instances", 512)),
    }
}

/// Whether fronts could meet their engine.
pub fn sockets(paths: &Paths) -> Check {
    let folder = &paths.runtime_dir;
    if folder.as_os_str().len() + SOCKET_NAME > LONGEST_SOCKET {
        let message = format!("{} is too long a path for a socket", folder.display());
        return Check::bad("socket folder", message, "choose a shorter one by MCP_SIDECAR_RUNTIME_DIR");
    }
    writable("socket folder", folder, "choose another one by MCP_SIDECAR_RUNTIME_DIR")
}

pub fn logs(paths: &Paths) -> Check {
    writable("log folder", &paths.logs_dir(), "choose another place by MCP_SIDECAR_STATE_DIR")
}

pub fn database(paths: &Paths, health: &Health) -> Check {
    let path = paths.database().display().to_string();
    match (&health.problem, &health.notice) {
        (Some(problem), _) => {
            Check::complaint("database", problem, "decisions hold only until the engine ends; free or repair the place")
        }
        (None, Some(notice)) => Check::good("database", format!("{path}; {notice}")),
        (None, None) if health.lost > 0 => {
            Check::good("database", format!("{path}; {} call records could not be kept", health.lost))
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
    fn small_limits_of_inotify_come_with_the_command_that_raises_them() {
        assert!(judged(8_192, 128).ok);
        assert_eq!(judged(10, 128).fix.unwrap(), "sudo sysctl fs.inotify.max_user_watches=524288");
        assert_eq!(judged(8_192, 8).fix.unwrap(), "sudo sysctl fs.inotify.max_user_instances=512");
    }

    #[test]
    fn a_database_that_cannot_be_written_fails() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let paths = Paths { config_dir: at("c"), state_dir: at("s"), runtime_dir: at("r"), managed_config: at("m") };
        assert!(database(&paths, &Health::default()).ok);
        let problem = Health { problem: Some("the disk is full".to_owned()), ..Health::default() };
        assert!(!database(&paths, &problem).ok);
        assert!(logs(&paths).ok);
        std::fs::write(at("x"), "").unwrap();
        assert!(!logs(&Paths { state_dir: at("x"), ..paths }).ok);
    }
}
