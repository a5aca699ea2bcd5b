//! `[secret-commands]`: programs that print a secret, for `${keyring:NAME}`.
//!
//! Only `config.toml` can contain this: settings of an editor may come from a project, which must not choose what runs.

use serde_json::{Value, json};

use super::{SettingInfo, Settings};

pub const SECTION: &str = "secret-commands";

/// The text for `config --default` if there is none.
const EXAMPLE: &str = r#"
# Programs that print a secret. `${keyring:github}` in mcp.json uses the output of the first one
# instead of an entry of the keyring. They are not run in a shell.
# [secret-commands]
# github = ["op", "read", "op://Private/GitHub/token"]
# weather = ["pass", "show", "weather"]
"#;

pub(super) fn describe() -> SettingInfo {
    SettingInfo {
        section: SECTION,
        key: "NAME",
        about: "A program and its arguments that print the secret for `${keyring:NAME}`. Not run in a shell.",
        default: "[\"pass\", \"show\", \"NAME\"]".to_owned(),
        choices: Vec::new(),
    }
}

/// Sets one value of the section. The error says what is wrong with it.
pub(super) fn set(settings: &mut Settings, path: &[String], value: &Value) -> Result<(), String> {
    let [_, name] = path else {
        return Err(format!("expected lines such as `github = [\"pass\", \"show\", \"github\"]` under `[{SECTION}]`"));
    };
    let command = super::read::list(value)?;
    if command.first().is_none_or(String::is_empty) || command.iter().any(|word| word.contains('\0')) {
        return Err("expected a program and its arguments, such as [\"pass\", \"show\", \"github\"]".to_owned());
    }
    settings.secret_commands.insert(name.clone(), command);
    Ok(())
}

pub(super) fn to_toml(settings: &Settings) -> String {
    if settings.secret_commands.is_empty() {
        return EXAMPLE.to_owned();
    }
    let quoted = super::agents::quoted;
    let lines = settings.secret_commands.iter();
    let lines = lines.map(|(name, command)| format!("{} = {}\n", quoted(&json!(name)), quoted(&json!(command))));
    format!("\n[{SECTION}]\n{}", lines.collect::<String>())
}

pub(super) fn to_json(settings: &Settings) -> Option<Value> {
    (!settings.secret_commands.is_empty()).then(|| json!(settings.secret_commands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_a_round_trip_and_mistakes_are_reported() {
        let text = "[secret-commands]\ngithub = [\"op\", \"read\", \"op://a/b\"]\n\"my key\" = [\"pass\", \"it\"]\n";
        let (settings, problems) = Settings::from_toml(text);
        assert_eq!((problems, settings.secret_commands.len()), (Vec::new(), 2));
        assert_eq!(Settings::from_toml(&settings.to_toml()), (settings, Vec::new()));
        for wrong in ["secret-commands = 3", "[secret-commands]\na = \"pass show a\"", "[secret-commands]\na = []"] {
            let (settings, problems) = Settings::from_toml(wrong);
            assert_eq!((problems.len(), settings.secret_commands.len()), (1, 0), "{wrong}");
        }
    }

    #[test]
    fn an_editor_cannot_set_commands() {
        let mut settings = Settings::default();
        let messages = settings.overlay(&json!({ "secret-commands": { "a": ["sh", "-c", "evil"] } }));
        assert_eq!(
            messages,
            ["`secret-commands` is only allowed in config.toml: editor settings may come from a project"]
        );
        let messages = settings.overlay(&json!({ "secretCommands": { "a": ["sh"] }, "secret-commands.a": ["sh"] }));
        assert_eq!((messages.len(), settings.secret_commands.len()), (1, 0), "{messages:?}");
    }
}
