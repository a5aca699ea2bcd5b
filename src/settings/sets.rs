//! `[sets.NAME]`: named sets of tools. An agent with a set sees only what both its section and the set show.
//!
//! Only `config.toml` can contain this, like the sections of agents.

use serde_json::{Map, Value, json};

use super::agents::quoted;
use super::{SettingInfo, Settings};

pub const SECTION: &str = "sets";

/// The text for `config --default` if there is none.
const EXAMPLE: &str = r#"
# Named sets of tools. `connect --set review` offers an agent only the tools of the set, and
# `mcp-sidecar set review` switches agents that are running. Globs are the same as for agents.
# [sets.review]
# tools = ["git__*", "github__get_*", "!git__push"]
"#;

pub(super) fn describe() -> SettingInfo {
    SettingInfo {
        section: SECTION,
        key: "tools",
        about: "Globs for the tools of this set, as `server__tool`. A glob that starts with `!` excludes.",
        default: "[\"*\"]".to_owned(),
        choices: Vec::new(),
    }
}

/// Sets one value of the section. The error says what is wrong with it.
pub(super) fn set(settings: &mut Settings, path: &[String], value: &Value) -> Result<(), String> {
    match path {
        [_, name] if value.as_object().is_some_and(Map::is_empty) => {
            settings.sets.entry(name.clone()).or_default();
            Ok(())
        }
        [_, name, key] if key == "tools" => {
            settings.sets.insert(name.clone(), super::read::list(value)?);
            Ok(())
        }
        [_, _, _] => Err("unknown setting; expected `tools`".to_owned()),
        _ => Err(format!("expected sections such as `[{SECTION}.review]`")),
    }
}

pub(super) fn to_toml(settings: &Settings) -> String {
    if settings.sets.is_empty() {
        return EXAMPLE.to_owned();
    }
    let set = |(name, tools): (&String, &Vec<String>)| {
        format!("\n[{SECTION}.{}]\ntools = {}\n", quoted(&json!(name)), quoted(&json!(tools)))
    };
    settings.sets.iter().map(set).collect()
}

pub(super) fn to_json(settings: &Settings) -> Option<Value> {
    let object: Map<String, Value> =
        settings.sets.iter().map(|(name, tools)| (name.clone(), json!({ "tools": tools }))).collect();
    (!object.is_empty()).then_some(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_survive_a_round_trip_and_problems_name_the_setting() {
        let (settings, problems) =
            Settings::from_toml("[sets.review]\ntools = ['git__*', '!git__push']\n[sets.\"my own\"]\n");
        assert_eq!(problems, []);
        assert_eq!(settings.sets["review"], ["git__*", "!git__push"]);
        assert_eq!(settings.sets["my own"], [""; 0]);
        assert_eq!(Settings::from_toml(&settings.to_toml()), (settings, Vec::new()));
        let messages: Vec<String> =
            Settings::from_toml("sets = 1\n").1.into_iter().map(|problem| problem.message).collect();
        assert_eq!(messages, ["`sets`: expected sections such as `[sets.review]`"]);
        let (_, problems) = Settings::from_toml("[sets.x]\ntools = 'a'\nservers = []\n");
        let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(
            messages,
            ["`sets.x.tools`: expected a list of strings", "`sets.x.servers`: unknown setting; expected `tools`"]
        );
    }

    #[test]
    fn an_editor_cannot_set_sets() {
        let mut settings = Settings::default();
        let messages = settings.overlay(&json!({ "sets": { "review": { "tools": ["*"] } } }));
        assert_eq!(messages, ["`sets` is only allowed in config.toml: editor settings may come from a project"]);
        assert!(settings.sets.is_empty());
    }
}
