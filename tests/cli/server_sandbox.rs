//! `sandbox` of a server: what a server that tries to leave it can reach, with Landlock and with bubblewrap.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::public::{printed_by, program};
use crate::{Run, Sandbox};

/// A method that this machine does not have.
const NOWHERE: &str = "[sandbox]\nmethod = \"bubblewrap\"\nbubblewrap = \"/nowhere/bwrap\"\n";

/// Ends when it is dropped.
struct Victim(Child);

impl Victim {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").env("TOKEN", "s3cr3t").stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What Python says about itself: the one on the PATH may be a script that looks for it.
fn python(what: &str) -> String {
    let output = Command::new("python3").args(["-c", &format!("import sys; print(sys.{what})")]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The settings that choose a method; `None` if it is skipped.
fn settings(method: &str) -> Option<String> {
    let bwrap =
        if method == "bubblewrap" { printed_by("get-bubblewrap")?.display().to_string() } else { String::new() };
    Some(format!("[sandbox]\nmethod = \"{method}\"\nbubblewrap = \"{bwrap}\"\n"))
}

/// What a server in this sandbox can do. Sockets and a process wait outside for it.
fn probed(method: &str, definition: impl Fn(&Sandbox) -> Value) -> Option<Value> {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/config.toml", &settings(method)?);
    sandbox.write("work/data/keep", "");
    sandbox.write("private/file", "mine");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let _udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let socket = sandbox.path("s");
    let _unix = UnixListener::bind(&socket).unwrap();
    let victim = Victim::start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/prober.py");
    let server = json!({ "command": python("executable"), "args": [script], "sandbox": definition(&sandbox) });
    sandbox.write("config/mcp.json", &json!({ "servers": { "prober": server } }).to_string());
    let outside = sandbox.path("private/file");
    let given = json!({ "folder": sandbox.path("work/data"), "outside": outside, "pid": victim.0.id(), "port": port,
        "socket": socket });
    let run = sandbox.run(&["call", "prober/probe", &given.to_string(), "--yes"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    if !run.out.contains("\"write outside\": \"done\"") {
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine", "the file outside is as it was");
    }
    Some(serde_json::from_str(run.out.trim()).unwrap_or_else(|error| panic!("{error}: {}", run.out)))
}

/// The attempts that succeeded.
fn done(probed: &Value) -> Vec<&str> {
    probed.as_object().unwrap().iter().filter(|(_, result)| *result == "done").map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_sandbox_that_cannot_be_enforced_is_reported_and_the_server_does_not_start() {
    let stage = Sandbox::with_workspace();
    stage.write("config/config.toml", NOWHERE);
    let server = json!({ "command": env!("CARGO_BIN_EXE_mcp-sidecar"), "args": ["demo-server"], "sandbox": { "required": false } });
    stage.write("config/mcp.json", &json!({ "servers": { "demo": server } }).to_string());
    let shown = stage.run(&["inspect", "demo"]);
    assert!(shown.out.contains("the sandbox is not enforced: bubblewrap (bwrap) was not found"), "{}", shown.out);
    let doctor = stage.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.contains("without a sandbox: `demo`"), "{}", doctor.out);

    let stage = Sandbox::with_workspace();
    stage.write("config/config.toml", NOWHERE);
    let required = json!({ "command": env!("CARGO_BIN_EXE_mcp-sidecar"), "args": ["demo-server"], "sandbox": {} });
    stage.write("config/mcp.json", &json!({ "servers": { "demo": required } }).to_string());
    let failed = stage.run(&["test", "demo"]);
    assert_eq!(failed.code, 1);
    let text = format!("{}{}", failed.out, failed.err);
    assert!(text.contains("cannot start it in its sandbox: bubblewrap (bwrap) was not found"), "{text}");
    let doctor = stage.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.contains("not started: `demo`"), "{}", doctor.out);
}

#[test]
fn a_sandboxed_server_reaches_only_what_its_definition_lists() {
    for method in ["landlock", "bubblewrap"] {
        let closed = |sandbox: &Sandbox| json!({ "write": [sandbox.path("work/data")] });
        let Some(probed) = probed(method, closed) else { continue };
        assert_eq!(done(&probed), ["write in folder", "write in temp", "read outside"], "{method}: {probed}");
    }
}

#[test]
fn the_network_and_the_files_to_read_are_controlled_independently() {
    for method in ["landlock", "bubblewrap"] {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
        let open = |sandbox: &Sandbox| json!({ "read": [fixtures, sandbox.path("work"), python("base_prefix")], "network": true });
        let Some(probed) = probed(method, open) else { continue };
        assert_eq!(done(&probed), ["write in temp", "tcp", "udp"], "{method}: {probed}");
    }
}

/// A real server, which also answers inside.
#[test]
fn a_public_server_writes_only_where_its_sandbox_allows_it() {
    let Some(files) = program("MCP_SERVER_FILESYSTEM") else { return };
    for method in ["landlock", "bubblewrap"] {
        let Some(settings) = settings(method) else { return };
        let sandbox = Sandbox::with_workspace();
        sandbox.write("config/config.toml", &settings);
        sandbox.write("work/in/keep", "");
        let server = json!({ "command": files, "args": [sandbox.path("work")],
            "sandbox": { "write": [sandbox.path("work/in")] }, "tools": { "*": "allow-always" } });
        sandbox.write("config/mcp.json", &json!({ "servers": { "files": server } }).to_string());
        let write = |name: &str| -> Run {
            let given = json!({ "path": sandbox.path(name), "content": "hello" });
            sandbox.run(&["call", "files/write_file", &given.to_string()])
        };
        let inside = write("work/in/new.txt");
        assert_eq!(inside.code, 0, "{method}: {}{}", inside.out, inside.err);
        let outside = write("work/new.txt");
        let text = format!("{}{}", outside.out, outside.err);
        assert!(outside.code != 0 && (text.contains("EACCES") || text.contains("EROFS")), "{method}: {text}");
        assert!(sandbox.path("work/in/new.txt").exists() && !sandbox.path("work/new.txt").exists());
    }
}

#[test]
fn a_mistake_in_a_sandbox_is_an_error_and_a_change_of_it_asks_again() {
    let sandbox = Sandbox::with_workspace();
    let entry =
        |definition: &str| format!(r#"{{ "servers": {{ "a": {{ "command": "true", "sandbox": {definition} }} }} }}"#);
    for (definition, found) in [
        (r#"{ "netwrok": false }"#, "netwrok"),
        (r#"{ "write": "data" }"#, "list of strings"),
        (r#"{ "network": "no" }"#, "true or false"),
        ("true", "object"),
    ] {
        sandbox.write("work/mcp.json", &entry(definition));
        let check = sandbox.run(&["check"]);
        assert!(check.code == 1 && check.out.contains(found), "{definition}: {}", check.out);
    }
    let digest = |definition: &str| {
        sandbox.write("work/mcp.json", &entry(definition));
        let listed: Value = serde_json::from_str(&sandbox.run(&["list", "--json"]).out).unwrap();
        listed["servers"][0]["trustDigest"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned()
    };
    let closed = digest(r#"{ "write": ["data"] }"#);
    assert_eq!(closed, digest(r#"{ "write": ["data"], "network": false }"#), "the default is the same");
    for other in [
        r#"{ "write": ["data", "/"] }"#,
        r#"{ "write": ["data"], "network": true }"#,
        r#"{ "write": ["data"], "required": false }"#,
        r#"{ "write": ["data"], "read": [] }"#,
    ] {
        assert_ne!(closed, digest(other), "{other}");
    }
    sandbox.write("work/mcp.json", &entry(r#"{ "write": ["data"] }"#));
    let shown = sandbox.run(&["trust", "a"]);
    let text = format!("{}{}", shown.out, shown.err);
    assert!(text.contains("may read everything, write data; no network"), "{text}");
}
