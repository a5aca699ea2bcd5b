//! Finds the public MCP servers and clients that `scripts/get-servers` and `scripts/get-clients` install, and installs
//! them when they are missing. Use it by `#[path = "support/servers.rs"] mod servers;`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

type Installed = OnceLock<Option<BTreeMap<String, PathBuf>>>;

/// The program of a public server, by the key that `scripts/get-servers` prints: `MCP_SERVER_EVERYTHING`, ….
/// `None` only when the user asked to go without (`MCP_SIDECAR_SKIP_SERVERS`), which continuous integration must not.
pub fn program(key: &str) -> Option<PathBuf> {
    static INSTALLED: Installed = OnceLock::new();
    find(&INSTALLED, "get-servers", key)
}

/// The same for what `scripts/get-clients` prints: `MCP_CLIENT_INSPECTOR`, ….
#[allow(dead_code, reason = "not every test target drives clients")]
pub fn client(key: &str) -> Option<PathBuf> {
    static INSTALLED: Installed = OnceLock::new();
    find(&INSTALLED, "get-clients", key)
}

fn find(installed: &Installed, script: &str, key: &str) -> Option<PathBuf> {
    let installed = installed.get_or_init(|| {
        if std::env::var_os("MCP_SIDECAR_SKIP_SERVERS").is_some() {
            assert!(std::env::var_os("CI").is_none(), "continuous integration must not skip the public servers");
            return None;
        }
        Some(install(script))
    });
    let installed = installed.as_ref()?;
    Some(installed.get(key).unwrap_or_else(|| panic!("scripts/{script} knows no {key}")).clone())
}

fn install(script: &str) -> BTreeMap<String, PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script);
    let output = Command::new(path).arg("--quiet").stderr(Stdio::inherit()).output().expect("bash runs the script");
    assert!(
        output.status.success(),
        "scripts/{script} could not install its programs (see above); MCP_SIDECAR_SKIP_SERVERS=1 goes without them"
    );
    let list = String::from_utf8(output.stdout).expect("paths are UTF-8");
    list.lines().filter_map(|line| line.split_once('=')).map(|(key, path)| (key.to_owned(), path.into())).collect()
}
