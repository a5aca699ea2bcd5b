//! Whether the programs of `[secret-commands]` exist. None of them is run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Check, enabled, launches};
use crate::config::expand::{self, Reference};
use crate::config::{Environment, Loaded};
use crate::server::process;
use crate::text::one_line;

/// One check for each command that a server uses.
pub fn check(loaded: &Loaded, commands: &BTreeMap<String, Vec<String>>, environment: &Environment) -> Vec<Check> {
    let used: BTreeSet<String> = enabled(loaded)
        .flat_map(|definition| launches(definition).flat_map(expand::all_references))
        .filter_map(|reference| match reference {
            Reference::Keyring(name) => Some(name),
            _ => None,
        })
        .collect();
    let used = commands.iter().filter(|(name, _)| used.contains(*name));
    used.map(|(name, command)| {
        let check = format!("secret command `{}`", one_line(name, 100));
        let program = command.first().map(String::as_str).unwrap_or_default();
        match process::find(program, environment.path(), Path::new("/")) {
            Ok(found) => Check::good(check, found.display().to_string()),
            Err(complaint) => Check::complaint(check, &complaint, "correct it in config.toml"),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::doctor::tests::{lines, loaded};

    #[test]
    fn only_commands_that_a_server_uses_are_checked() {
        let text = r#"{ "servers": { "a": { "command": "x", "env": { "T": "${keyring:github}" } } } }"#;
        let command = |program: &str| vec![program.to_owned(), "show".to_owned()];
        let commands = BTreeMap::from([
            ("github".to_owned(), command("no-such-manager")),
            ("other".to_owned(), command("no-such-manager")),
        ]);
        let environment = Environment::from(BTreeMap::from([("PATH".to_owned(), "/nowhere".to_owned())]));
        insta::assert_snapshot!(lines(&check(&loaded(text), &commands, &environment)), @"no secret command `github`: `no-such-manager` was not found on the PATH -> install it or use its full path");
    }
}
