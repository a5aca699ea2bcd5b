//! The generated parts of the pages in `docs`. Each stands between two comments that name it.

use std::path::Path;

use mcp_sidecar::config::interop::{Dialect, Homes, user_files};
use mcp_sidecar::protocol::DiagnosticCode;
use mcp_sidecar::settings::Settings;
use serde_json::Value;

use crate::contract::{Contract, Message, Shape, shape};

/// `docs/protocol.md` with its tables written again.
pub fn protocol(page: &str, contract: &Contract) -> String {
    let tables = [
        ("commands", messages(&contract.commands)),
        ("notifications", messages(&contract.notifications)),
        ("requests", messages(&contract.requests)),
        ("errors", words(&contract.types["ErrorKind"])),
        ("diagnostics", diagnostics(contract)),
        ("types", types(contract)),
    ];
    tables.into_iter().fold(page.to_owned(), |page, (name, table)| replace(&page, name, &table))
}

/// `docs/configuration.md` with its tables of keys, from the JSON Schema of `mcp.json`, and of diagnostics.
pub fn configuration(page: &str, contract: &Contract, schema: &Value) -> String {
    replace(&replace(page, "keys", &keys(schema)), "diagnostics", &diagnostics(contract))
}

const OBJECTS: [(&str, &str); 10] = [
    ("server", "A server"),
    ("oauth", "`oauth` of a server"),
    ("dev", "`dev` of a server"),
    ("rule", "A rule in `tools`"),
    ("condition", "A condition in `when`"),
    ("input", "An entry of `inputs`"),
    ("policy", "`policy`"),
    ("entry", "An entry of `allowlist` and `denylist`"),
    ("agentTools", "`agentTools`"),
    ("action", "An entry of `actions`"),
];

fn keys(schema: &Value) -> String {
    let mut text = String::new();
    for (name, title) in OBJECTS {
        let properties = schema["$defs"][name]["properties"].as_object().unwrap();
        let (others, own): (Vec<_>, Vec<_>) = properties.iter().partition(|(_, key)| key["deprecated"] == true);
        text.push_str(&format!("### {title}\n\n| key | meaning |\n|---|---|\n"));
        for (key, value) in own {
            let meaning = value["description"].as_str().unwrap_or_default();
            text.push_str(&format!("| `{key}` | {} |\n", cell_text(meaning)));
        }
        if !others.is_empty() {
            let names: Vec<String> = others.iter().map(|(key, _)| format!("`{key}`")).collect();
            text.push_str(&format!("\nKnown from other programs: {}.\n", names.join(", ")));
        }
        text.push('\n');
    }
    text
}

/// `docs/settings.md` with all settings and their defaults.
pub fn settings(page: &str) -> String {
    replace(page, "settings", &format!("```toml\n{}```\n", Settings::default().to_toml()))
}

/// `docs/commands.md` with the help of all commands. `help` prints that of one, or of the program.
pub fn commands(page: &str, help: &dyn Fn(&[&str]) -> String) -> String {
    let mut text = String::new();
    for command in listed_commands(&help(&[])) {
        text.push_str(&command_help(&[&command], &help(&[&command])));
        for nested in listed_commands(&help(&[&command])) {
            text.push_str(&command_help(&[&command, &nested], &help(&[&command, &nested])));
        }
    }
    replace(page, "commands", &text)
}

/// The names in the list of commands of a help text.
fn listed_commands(help: &str) -> Vec<String> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap_or_default();
    let name = |line: &str| Some(line.strip_prefix("  ")?.split_once(' ')?.0.to_owned());
    list.lines().filter_map(name).filter(|name| !name.is_empty() && name != "help").collect()
}

/// One command, without the options that all commands have.
fn command_help(path: &[&str], help: &str) -> String {
    let common = ["Global options:\n", "  -h, --help", "Options:\n  -h, --help"];
    let paragraphs = help.trim_end().split("\n\n").filter(|each| !common.iter().any(|start| each.starts_with(start)));
    let without_help = |paragraph: &str| {
        let lines = paragraph.lines().filter(|line| !line.starts_with("  -h, --help"));
        lines.map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    let own: Vec<String> = paragraphs.map(without_help).collect();
    format!("{} `{}`\n\n```text\n{}\n```\n\n", "#".repeat(path.len() + 1), path.join(" "), own.join("\n\n"))
}

/// `docs/agents.md` with its table of agents written again.
pub fn agents(page: &str) -> String {
    let mut table =
        "| agent | `setup` and `import` | project file | your file | tested with |\n|---|---|---|---|---|\n".to_owned();
    let mut homes = Homes::under(Path::new("~"));
    // The same on every system.
    homes.desktop.clone_from(&homes.config);
    let list = |paths: Vec<String>| paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    for agent in Dialect::ALL.into_iter().filter(|agent| agent.is_agent()) {
        let project = agent.project_files().iter().take(1).map(|path| (*path).to_owned()).collect();
        let user = user_files(agent, &homes).iter().map(|path| path.display().to_string()).collect();
        let tried = match agent.tried_with() {
            Some(run) if run.contains('`') => run.to_owned(),
            Some(command) => format!("`{command}`"),
            None => "untried".to_owned(),
        };
        let row = [agent.title().to_owned(), format!("`{agent}`"), list(project), list(user), tried];
        table.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    replace(page, "agents", &table)
}

fn replace(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- generated: {name} -->\n"), "<!-- end of generated part -->");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page has no part `{name}`"));
    let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("the part `{name}` has no end"));
    format!("{before}{begin}{table}{end}{after}")
}

fn diagnostics(contract: &Contract) -> String {
    let meaning = |code: &str| {
        let all = contract.types["DiagnosticCode"]["oneOf"].as_array().unwrap();
        all.iter().find(|each| each["const"] == code).unwrap()["description"].as_str().unwrap().to_owned()
    };
    let row = |code: &DiagnosticCode| {
        let fix = if code.has_quick_fix() { "yes" } else { "" };
        format!("| `{code}` | {} | {} | {fix} |\n", code.severity().as_str(), cell_text(&meaning(code.as_str())))
    };
    let rows: String = DiagnosticCode::ALL.iter().map(row).collect();
    format!("| code | severity | meaning | quick fix |\n|---|---|---|---|\n{rows}")
}

fn messages(messages: &[Message]) -> String {
    let answered = messages.iter().any(|message| message.answer.is_some());
    let mut table = if answered {
        "| name | what it does | params | answer |\n|---|---|---|---|\n".to_owned()
    } else {
        "| name | what it reports | params |\n|---|---|---|\n".to_owned()
    };
    for message in messages {
        let answer = message.answer.as_ref().map(|answer| format!(" {} |", cell(answer))).unwrap_or_default();
        let description = cell_text(&message.description);
        table.push_str(&format!("| `{}` | {description} | {} |{answer}\n", message.name, cell(&message.params)));
    }
    table
}

fn types(contract: &Contract) -> String {
    let mut text = String::new();
    for (name, schema) in &contract.types {
        text.push_str(&format!("#### {name}\n"));
        if let Some(description) = schema["description"].as_str() {
            text.push_str(&format!("{}\n", cell_text(description)));
        }
        match shape(schema) {
            Shape::Words(_) if name == "DiagnosticCode" => text.push_str("\nSee [Diagnostics](#diagnostics).\n"),
            Shape::Object(fields) => {
                text.push_str("\n| field | type | |\n|---|---|---|\n");
                for field in fields {
                    let mark = if field.optional { "?" } else { "" };
                    let about = field.description().map(cell_text).unwrap_or_default();
                    text.push_str(&format!("| `{}{mark}` | {} | {about} |\n", field.name, cell(field.schema)));
                }
            }
            Shape::Words(_) => text.push_str(&format!("\n{}", words(schema))),
            _ => text.push_str(&format!("\n{}\n", cell(schema))),
        }
        text.push('\n');
    }
    text
}

/// The words of an enumeration, with what each means where that is said.
fn words(schema: &Value) -> String {
    let explained: Vec<(&str, &str)> = schema["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| Some((part["const"].as_str()?, part["description"].as_str()?)))
        .collect();
    if explained.is_empty() {
        let Shape::Words(words) = shape(schema) else { return String::new() };
        return format!("{}\n", words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "));
    }
    let row = |(word, about): (&str, &str)| format!("| `{word}` | {} |\n", cell_text(about));
    format!("| value | meaning |\n|---|---|\n{}", explained.into_iter().map(row).collect::<String>())
}

fn cell_text(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn cell(schema: &Value) -> String {
    match shape(schema) {
        Shape::Any => "any JSON".to_owned(),
        Shape::Named(name) => format!("[{name}](#{})", name.to_lowercase()),
        Shape::Words(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Shape::Union(parts) => parts.into_iter().map(cell).collect::<Vec<_>>().join(" or "),
        Shape::Text => "string".to_owned(),
        Shape::Number => "number".to_owned(),
        Shape::Integer => "integer".to_owned(),
        Shape::Flag => "boolean".to_owned(),
        Shape::List(items) => format!("list of {}", cell(items)),
        Shape::Dictionary(values) => format!("map of {}", values.map_or("any JSON".to_owned(), cell)),
        Shape::Object(fields) if fields.is_empty() => "none".to_owned(),
        Shape::Object(fields) => {
            let name = |field: &crate::contract::Field<'_>| {
                format!("`{}{}`: {}", field.name, if field.optional { "?" } else { "" }, cell(field.schema))
            };
            fields.iter().map(name).collect::<Vec<_>>().join("; ")
        }
    }
}
