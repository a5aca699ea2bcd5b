//! Whether this machine can enforce the sandboxes of the servers.

use super::{Check, enabled, launches};
use crate::config::Loaded;
use crate::server::process::sandbox::{Method, method};
use crate::settings;

/// Nothing if no server has a sandbox.
pub fn check(loaded: &Loaded, settings: &settings::Sandbox) -> Option<Check> {
    report(loaded, method(settings))
}

fn report(loaded: &Loaded, method: Result<Method, String>) -> Option<Check> {
    let sandboxes = enabled(loaded).flat_map(|definition| {
        let sandboxes = launches(definition).filter_map(|launch| launch.stdio()?.sandbox.as_ref());
        sandboxes.map(|sandbox| (definition.name.as_str(), sandbox.required))
    });
    let sandboxes: Vec<_> = sandboxes.collect();
    let names = |required: Option<bool>| {
        let wanted = sandboxes.iter().filter(|(_, one)| required.is_none_or(|required| *one == required));
        wanted.map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    if sandboxes.is_empty() {
        return None;
    }
    Some(match method {
        Ok(Method::Landlock { scopes_signals: true }) => {
            Check::good("sandbox", format!("Landlock, for {}", names(None)))
        }
        Ok(Method::Landlock { scopes_signals: false }) => {
            let gap = "before Linux 6.12, it cannot stop a server from killing your other programs";
            Check::good("sandbox", format!("Landlock, for {} ({gap})", names(None)))
        }
        Ok(Method::Bubblewrap(path)) => {
            Check::good("sandbox", format!("bubblewrap ({}), for {}", path.display(), names(None)))
        }
        Err(why) => {
            let (why, fix) = why.split_once("; ").unwrap_or((&why, "set `\"required\": false` to run them without it"));
            let message = match (names(Some(true)).as_str(), names(Some(false)).as_str()) {
                ("", open) => format!("{why}; without a sandbox: {open}"),
                (closed, "") => format!("{why}; not started: {closed}"),
                (closed, open) => format!("{why}; not started: {closed}; without a sandbox: {open}"),
            };
            Check::bad("sandbox", message, fix)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::doctor::tests::{lines, loaded};

    #[test]
    fn a_sandbox_that_cannot_be_enforced_is_reported_with_its_servers() {
        let text = r#"{ "servers": { "a": { "command": "x", "sandbox": {} }, "c": { "command": "x" },
            "b": { "command": "x", "sandbox": { "required": false } } } }"#;
        let none = || Err("this machine has no Landlock; install bubblewrap".to_owned());
        let report =
            |text: &str, method| report(&loaded(text), method).map(|check| lines(&[check])).unwrap_or_default();
        insta::assert_snapshot!(report(text, none()), @"no sandbox: this machine has no Landlock; not started: `a`; without a sandbox: `b` -> install bubblewrap");
        insta::assert_snapshot!(report(text, Ok(Method::Landlock { scopes_signals: true })), @"ok sandbox: Landlock, for `a`, `b`");
        assert_eq!(report(r#"{ "servers": { "c": { "command": "x" } } }"#, none()), "");
    }
}
