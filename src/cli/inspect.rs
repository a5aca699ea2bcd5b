//! `mcp-sidecar inspect`: details of one server or all servers.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::context::{Context, parse_number};
use super::engine_client::{self, Autostart, EngineClient, in_shell_terms};
use super::server::{Server, relative};
use super::style::{Color, Style, size};
use super::table::{Cell, Table, truncate};
use super::{Status, print};
use crate::text::{mask, one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Server to show [default: all servers]
    server: Option<String>,
    /// Wait this long for servers that are starting
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = parse_number::<u64>)]
    wait: u64,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// The longest text of a server that is shown.
const LONGEST_TEXT: usize = 2_000;

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let autostart = if arguments.server.is_some() { Autostart::OnDemand } else { Autostart::All };
    engine_client::run(context, autostart, async |engine| {
        let name = arguments.server.as_deref();
        let wait = Duration::from_secs(arguments.wait);
        match name {
            // A server that is named is started, even if it normally starts on first use. A shared engine is left as it is.
            Some(name) if !engine.is_shared() => {
                let start = engine.run("mcp.server.start", json!({ "server": name }));
                if let Ok(Err(failure)) = tokio::time::timeout(wait, start).await
                    && failure.kind == "not-found"
                {
                    return Err(failure.into());
                }
            }
            _ => engine.settle(wait).await,
        }
        let inspected = inspect(engine, name).await?;
        if arguments.json {
            print(&format!("{:#}\n", json!({ "servers": inspected })))?;
            return Ok(Status::Ok);
        }
        let page = Page { style: Style::of_stdout(), width: size().map(|size| size.columns), folder: &engine.folder };
        let pages = inspected.iter().map(|server| page.render(server)).collect::<anyhow::Result<Vec<_>>>()?;
        print(&if pages.is_empty() { "no servers\n".to_owned() } else { pages.join("\n") })?;
        Ok(Status::Ok)
    })
}

/// One JSON object for each server, with everything that the protocol returns about it.
async fn inspect(engine: &EngineClient, name: Option<&str>) -> anyhow::Result<Vec<Value>> {
    let params = json!({ "server": name });
    let servers = engine.run("mcp.servers", params.clone()).await?;
    let tools = engine.run("mcp.tools", json!({ "server": name, "all": true })).await?;
    let resources = engine.run("mcp.resources", params.clone()).await?;
    let prompts = engine.run("mcp.prompts", params).await?;
    let of = |answer: &Value, key: &str, server: &Value| -> Vec<Value> {
        let all = answer.get(key).and_then(Value::as_array).into_iter().flatten();
        all.filter(|each| each.get("server") == Some(server)).cloned().collect()
    };
    let details = |status: &Value| {
        let server = status.get("name").cloned().unwrap_or_default();
        json!({
            "server": status,
            "tools": of(&tools, "tools", &server),
            "resources": of(&resources, "resources", &server),
            "templates": of(&resources, "templates", &server),
            "prompts": of(&prompts, "prompts", &server),
        })
    };
    Ok(servers.get("servers").and_then(Value::as_array).into_iter().flatten().map(details).collect())
}

struct Page<'a> {
    style: Style,
    width: Option<usize>,
    folder: &'a Path,
}

impl Page<'_> {
    fn render(&self, inspected: &Value) -> anyhow::Result<String> {
        let list = |key: &str| inspected.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let server = Server::deserialize(inspected.get("server").unwrap_or(&Value::Null))?;
        let mut page = self.head(&server);
        self.tools(&mut page, list("tools"));
        self.named(&mut page, "Resources", list("resources"), "uri");
        self.named(&mut page, "Resource templates", list("templates"), "uriTemplate");
        self.named(&mut page, "Prompts", list("prompts"), "name");
        Ok(page)
    }

    fn head(&self, server: &Server) -> String {
        let reason = server.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
        let status = self.style.paint(server.color(), &format!("● {}{reason}", server.status));
        let mut page = format!("{}  {status}\n", self.style.paint(Color::Heading, &server.name));
        let mut field = |label: &str, text: Option<String>| {
            for (number, line) in text.iter().flat_map(|text| text.lines()).enumerate() {
                let label = self.style.paint(Color::Dim, &format!("{:<13}", if number == 0 { label } else { "" }));
                writeln!(page, "  {label}  {line}").ok();
            }
        };
        let shown = |text: &str| in_shell_terms(&visible(&mask(text), LONGEST_TEXT));
        field("error", server.error.as_deref().map(shown));
        field("trust", server.needs_trust.then(|| format!("not trusted; run `mcp-sidecar trust {}`", server.name)));
        field("changed", server.trust_diff.as_deref().map(shown));
        field("from", server.location(self.folder).map(|location| format!("{location} ({})", server.scope)));
        for hidden in &server.hides {
            let file =
                hidden.file.as_deref().map_or_else(String::new, |file| format!("{} ", relative(file, self.folder)));
            field("hides", Some(format!("{file}({})", hidden.scope)));
        }
        field(&server.transport, Some(server.launch()).filter(|launch| !launch.is_empty()));
        let description = server.config.get("description").and_then(Value::as_str);
        field("description", description.map(|text| one_line(text, LONGEST_TEXT)));
        field(
            "server",
            server.server_info.as_ref().map(|info| one_line(&format!("{} {}", info.name, info.version), 200)),
        );
        field("protocol", server.protocol_version.as_deref().map(|version| one_line(version, 40)));
        field(
            "capabilities",
            Some(server.capabilities.join(", ")).filter(|all| !all.is_empty()).map(|all| one_line(&all, LONGEST_TEXT)),
        );
        field("process", server.pid.map(|pid| pid.to_string()));
        field("started", server.started_at.clone());
        field("latency", server.latency_ms.map(|latency| format!("{latency:.1} ms")));
        field("restarts", (server.restarts > 0).then(|| server.restarts.to_string()));
        for warning in &server.warnings {
            field("warning", Some(shown(warning)));
        }
        field("instructions", server.instructions.as_deref().map(shown));
        page
    }

    fn tools(&self, page: &mut String, tools: &[Value]) {
        if tools.is_empty() {
            return;
        }
        self.heading(page, "Tools", tools.len());
        for tool in tools {
            let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
            let level = text("level");
            let color = match level {
                "disable" | "deny" => Color::Bad,
                "require-approval" => Color::Waiting,
                _ => Color::Good,
            };
            let name = self.style.paint(Color::Heading, &one_line(text("tool"), 200));
            let level = self.style.paint(color, level);
            let source = self.style.paint(Color::Dim, &format!("({})", one_line(text("source"), 200)));
            let claims = claims(tool.get("annotations").unwrap_or(&Value::Null));
            let changed = if tool.get("changed") == Some(&json!(true)) { ", changed since you allowed it" } else { "" };
            writeln!(page, "  {name}  {level} {source}{}{changed}", self.style.paint(Color::Dim, &claims)).ok();
            let description = one_line(text("description"), LONGEST_TEXT);
            if !description.is_empty() {
                writeln!(page, "    {}", self.fit(&description, 4)).ok();
            }
            let parameters = parameters(tool.get("inputSchema").unwrap_or(&Value::Null));
            for line in parameters.lines(self.style, self.width.map(|width| width.saturating_sub(6))).iter().skip(1) {
                writeln!(page, "      {line}").ok();
            }
        }
    }

    fn named(&self, page: &mut String, title: &str, list: &[Value], key: &str) {
        if list.is_empty() {
            return;
        }
        self.heading(page, title, list.len());
        let text = |each: &Value, key: &str| one_line(each.get(key).and_then(Value::as_str).unwrap_or_default(), 400);
        let mut table = Table::new(&["", ""]);
        for each in list {
            let about = match text(each, "description") {
                none if none.is_empty() && key != "name" => text(each, "name"),
                about => about,
            };
            table.row(vec![Cell::plain(text(each, key)), Cell::new(Color::Dim, about)]);
        }
        for line in table.lines(self.style, self.width.map(|width| width.saturating_sub(2))).iter().skip(1) {
            writeln!(page, "  {line}").ok();
        }
    }

    fn heading(&self, page: &mut String, title: &str, count: usize) {
        writeln!(page, "\n{}", self.style.paint(Color::Heading, &format!("{title} ({count})"))).ok();
    }

    fn fit(&self, line: &str, indent: usize) -> String {
        use unicode_width::UnicodeWidthStr;
        match self.width.map(|width| width.saturating_sub(indent)) {
            Some(room) if line.width() > room => truncate(line, room),
            _ => line.to_owned(),
        }
    }
}

/// What the server says about its tool.
fn claims(annotations: &Value) -> String {
    let claimed = |key: &str| annotations.get(key) == Some(&json!(true));
    let words = [
        ("readOnly", "read-only"),
        ("destructive", "destructive"),
        ("idempotent", "idempotent"),
        ("openWorld", "open world"),
    ];
    let held: Vec<&str> = words.iter().filter(|(key, _)| claimed(key)).map(|(_, word)| *word).collect();
    if held.is_empty() { String::new() } else { format!(" {}", held.join(", ")) }
}

/// The arguments of a tool: name, type and description.
fn parameters(schema: &Value) -> Table {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut table = Table::new(&["", "", ""]);
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mark = if required.contains(&name.as_str()) { "*" } else { "" };
        let mut about = one_line(property.get("description").and_then(Value::as_str).unwrap_or_default(), 400);
        if let Some(default) = property.get("default") {
            about = format!("{about} {}", one_line(&format!("[{default}]"), 100)).trim_start().to_owned();
        }
        table.row(vec![
            Cell::plain(one_line(name, 100)).and(Color::Waiting, mark),
            Cell::new(Color::Dim, kind(property)),
            Cell::new(Color::Dim, about),
        ]);
    }
    table
}

fn kind(property: &Value) -> String {
    let word = |value: &Value| one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned), 60);
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        return one_line(&choices.iter().map(word).collect::<Vec<_>>().join("|"), 100);
    }
    match property.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().map(word).collect::<Vec<_>>().join("|"),
        Some(kind) if kind == "array" => {
            let items = property.get("items").and_then(|items| items.get("type")).map(word).unwrap_or_default();
            if items.is_empty() { "array".to_owned() } else { format!("{items}[]") }
        }
        Some(kind) => word(kind),
        None => "any".to_owned(),
    }
}
