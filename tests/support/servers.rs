//! Finds the public MCP servers and clients that `scripts/get-servers` and `scripts/get-clients` install, and installs
//! them when they are missing. Use it by `#[path = "support/servers.rs"] mod servers;`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

type Installed = OnceLock<Option<BTreeMap<String, PathBuf>>>;

/// The program of a public server, by the key that `scripts/get-servers` prints: `MCP_SERVER_EVERYTHING`, ….
/// `None` only when the user asked to go without (`MCP_SIDECAR_SKIP_SERVERS`), which continuous integration must not.
#[allow(dead_code, reason = "not every test target runs servers")]
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

/// The same for what `scripts/get-backends` prints: `MCP_BACKEND_HUB`, ….
#[allow(dead_code, reason = "not every test target needs them")]
pub fn backend(key: &str) -> Option<PathBuf> {
    static INSTALLED: Installed = OnceLock::new();
    find(&INSTALLED, "get-backends", key)
}

/// The same for what `scripts/get-lsprotocol` prints.
#[allow(dead_code, reason = "only the tests of editors need it")]
pub fn lsprotocol(key: &str) -> Option<PathBuf> {
    static INSTALLED: Installed = OnceLock::new();
    find(&INSTALLED, "get-lsprotocol", key)
}

/// The program whose path a script prints: `get-bubblewrap`, ….
#[allow(dead_code, reason = "not every test target runs sandboxes")]
pub fn printed_by(script: &str) -> Option<PathBuf> {
    (!skipped()).then(|| run(script, &[]).trim_end().into())
}

fn find(installed: &Installed, script: &str, key: &str) -> Option<PathBuf> {
    let installed = installed.get_or_init(|| (!skipped()).then(|| install(script)));
    let installed = installed.as_ref()?;
    Some(installed.get(key).unwrap_or_else(|| panic!("scripts/{script} knows no {key}")).clone())
}

fn skipped() -> bool {
    let skipped = std::env::var_os("MCP_SIDECAR_SKIP_SERVERS").is_some();
    assert!(!skipped || std::env::var_os("CI").is_none(), "continuous integration must not skip the public servers");
    skipped
}

fn install(script: &str) -> BTreeMap<String, PathBuf> {
    let list = run(script, &["--quiet"]);
    list.lines().filter_map(|line| line.split_once('=')).map(|(key, path)| (key.to_owned(), path.into())).collect()
}

fn run(script: &str, arguments: &[&str]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script);
    let output = Command::new(path).args(arguments).stderr(Stdio::inherit()).output().unwrap();
    assert!(
        output.status.success(),
        "scripts/{script} could not install its programs (see above); MCP_SIDECAR_SKIP_SERVERS=1 goes without them"
    );
    String::from_utf8(output.stdout).unwrap()
}
