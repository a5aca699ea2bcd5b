//! `[agents."NAME"]`: what the agents with this name may see and call.
//!
//! Only `config.toml` can contain this: the settings of an editor may come from a project, which cannot grant anything.

use serde_json::{Map, Value, json};

use super::{SettingInfo, Settings};
use crate::model::Level;

pub const SECTION: &str = "agents";

/// The settings for agents with a certain name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agent {
    /// Globs for server names; `!` excludes. `None`: all servers.
    pub servers: Option<Vec<String>>,
    /// The same for `{server}__{tool}`.
    pub tools: Option<Vec<String>>,
    /// The most permissive level for calls of this agent.
    pub ceiling: Option<Level>,
    /// The agent gets `find_tools` and `call_tool` instead of a long list.
    pub search: bool,
    /// The estimated tokens of a result that the agent gets at once. `None`: all.
    pub result_limit: Option<usize>,
}

const KEYS: [&str; 5] = ["servers", "tools", "ceiling", "mode", "result-limit"];
/// A smaller limit would not leave room for one image.
const LEAST_RESULT: usize = 2_000;

/// The text for `config --default` if no agent is configured.
const EXAMPLE: &str = r#"
# What an agent may see and call, by the name of the agent (set by the agent itself or by
# `connect --name`). Names may contain `*`. Only the best matching section applies to an agent, and
# "*" applies to agents without another section. Agents without any section can see everything.
# [agents."claude-code"]
# Globs for servers, and for tools as `server__tool`. A glob that starts with `!` excludes.
# servers = ["github", "docs-*"]
# tools = ["*", "!github__delete_*"]
# The most permissive level for calls: deny, require-approval, allow-once, allow-session, ….
# ceiling = "require-approval"
# "list" shows every tool. "search" shows `find_tools` and `call_tool` instead, for long lists of tools.
# mode = "search"
# How many tokens (estimated) of a result the agent gets at once. It can read the rest with `read_result`.
# result-limit = 8000
"#;

/// What can be set for an agent.
pub(super) fn describe() -> Vec<SettingInfo> {
    let row = |key, about, default: &str, choices| SettingInfo {
        section: SECTION,
        key,
        about,
        default: default.to_owned(),
        choices,
    };
    let level = "The most permissive level for calls of this agent.";
    let mode =
        "\"list\" shows every tool. \"search\" shows `find_tools` and `call_tool` instead, for long lists of tools.";
    vec![
        row(
            "servers",
            "Globs for the servers that this agent can see. A glob that starts with `!` excludes.",
            "[\"*\"]",
            Vec::new(),
        ),
        row(
            "tools",
            "Globs for the tools that this agent can see, as `server__tool`. A glob that starts with `!` excludes.",
            "[\"*\"]",
            Vec::new(),
        ),
        row("ceiling", level, "\"require-approval\"", Level::ALL.map(Level::as_str).to_vec()),
        row("mode", mode, "\"list\"", vec!["list", "search"]),
        row(
            "result-limit",
            "How many tokens (estimated) of a result this agent gets at once. It can read the rest with `read_result`.",
            "8000",
            Vec::new(),
        ),
    ]
}

/// Sets one value of the section. The error says what is wrong with it.
pub(super) fn set(settings: &mut Settings, path: &[String], value: &Value) -> Result<(), String> {
    match path {
        [_, name] if value.as_object().is_some_and(Map::is_empty) => {
            settings.agents.entry(name.clone()).or_default();
            Ok(())
        }
        [_, name, key] => set_key(settings.agents.entry(name.clone()).or_default(), key, value),
        _ => Err(format!("expected sections such as `[{SECTION}.\"claude-code\"]`")),
    }
}

fn set_key(agent: &mut Agent, key: &str, value: &Value) -> Result<(), String> {
    match key {
        "servers" => agent.servers = Some(super::read::list(value)?),
        "tools" => agent.tools = Some(super::read::list(value)?),
        "ceiling" => agent.ceiling = Some(ceiling(value)?),
        "mode" => agent.search = super::read::choice(value, &["list", "search"])? == "search",
        "result-limit" => agent.result_limit = Some(result_limit(value)?),
        _ => return Err(format!("unknown setting; expected one of {}", KEYS.join(", "))),
    }
    Ok(())
}

fn ceiling(value: &Value) -> Result<Level, String> {
    let text = value.as_str().unwrap_or_default();
    Level::parse(text).ok_or_else(|| format!("expected a level: {}", Level::ALL.map(Level::as_str).join(", ")))
}

fn result_limit(value: &Value) -> Result<usize, String> {
    let limit = value.as_u64().and_then(|limit| usize::try_from(limit).ok());
    limit.filter(|limit| *limit >= LEAST_RESULT).ok_or_else(|| format!("expected a number of at least {LEAST_RESULT}"))
}

pub(super) fn to_toml(settings: &Settings) -> String {
    if settings.agents.is_empty() {
        return EXAMPLE.to_owned();
    }
    let mut text = String::new();
    for (name, agent) in &settings.agents {
        text.push_str(&format!("\n[{SECTION}.{}]\n", quoted(&json!(name))));
        for (key, value) in fields(agent) {
            text.push_str(&format!("{key} = {}\n", quoted(&value)));
        }
    }
    text
}

pub(super) fn to_json(settings: &Settings) -> Option<Value> {
    let object: Map<String, Value> =
        settings.agents.iter().map(|(name, agent)| (name.clone(), Value::Object(fields(agent)))).collect();
    (!object.is_empty()).then_some(Value::Object(object))
}

fn fields(agent: &Agent) -> Map<String, Value> {
    let Agent { servers, tools, ceiling, search, result_limit } = agent;
    let mut fields = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    put("servers", servers.as_ref().map(|servers| json!(servers)));
    put("tools", tools.as_ref().map(|tools| json!(tools)));
    put("ceiling", ceiling.map(|level| json!(level.as_str())));
    put("mode", search.then(|| json!("search")));
    put("result-limit", result_limit.map(|limit| json!(limit)));
    fields
}

pub(super) fn quoted(value: &Value) -> String {
    toml::Value::try_from(value).map_or_else(|_| "\"\"".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_survive_a_round_trip_through_toml() {
        let text = r#"
            [agents."claude-code"]
            servers = ["git*"]
            tools = ["*", "!*__delete_*"]
            ceiling = "require-approval"
            mode = "search"
            result-limit = 8000
            [agents."my \"own\" agent"]
            [agents."*"]
            ceiling = "deny"
        "#;
        let (settings, problems) = Settings::from_toml(text);
        assert_eq!(problems, []);
        assert_eq!(settings.agents.len(), 3);
        assert_eq!(settings.agents["*"], Agent { ceiling: Some(Level::Deny), ..Agent::default() });
        assert_eq!(settings.agents["my \"own\" agent"], Agent::default());
        assert!(settings.agents["claude-code"].search);
        assert_eq!(settings.agents["claude-code"].result_limit, Some(8_000));
        assert_eq!(Settings::from_toml(&settings.to_toml()), (settings, Vec::new()));
    }

    #[test]
    fn problems_contain_the_full_name_of_the_setting() {
        let text = "agents = 3\n";
        let messages = |text: &str| -> Vec<String> {
            Settings::from_toml(text).1.into_iter().map(|problem| problem.message).collect()
        };
        assert_eq!(messages(text), ["`agents`: expected sections such as `[agents.\"claude-code\"]`"]);
        let text = "[agents.x]\nceiling = \"ask\"\nmode = 1\ncolour = \"red\"\nservers = \"a\"\nresult-limit = 5\n";
        insta::assert_snapshot!(messages(text).join("\n"), @r#"
        `agents.x.ceiling`: expected a level: disable, deny, require-approval, allow-once, allow-session, allow-project, allow-always
        `agents.x.mode`: expected "list" or "search"
        `agents.x.colour`: unknown setting; expected one of servers, tools, ceiling, mode, result-limit
        `agents.x.servers`: expected a list of strings
        `agents.x.result-limit`: expected a number of at least 2000
        "#);
    }

    #[test]
    fn an_editor_cannot_set_agents() {
        let mut settings = Settings::default();
        let messages = settings.overlay(&json!({ "agents": { "*": { "ceiling": "allow-always" } } }));
        assert_eq!(messages, ["`agents` is only allowed in config.toml: editor settings may come from a project"]);
        assert!(settings.agents.is_empty());
        let messages = settings.overlay(&json!({ "approvals": { "askAgent": "always", "timeout": "1m" } }));
        assert_eq!(
            messages,
            ["`approvals.ask-agent` is only allowed in config.toml: editor settings may come from a project"]
        );
        assert_eq!(settings.approvals.ask_agent, "without-editor");
        assert_eq!(settings.approvals.timeout.as_secs(), 60, "the other settings apply");
    }
}
