//! `mcp-sidecar inspect`: everything about one server, or about all.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::context::Context;
use super::live::{self, Live, Wake, shell_words};
use super::look::{Look, Tone, size};
use super::server::{Server, near};
use super::table::{Cell, Table, cut};
use super::{Status, print};
use crate::text::{mask, one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The server; without one, all of them
    server: Option<String>,
    /// How long to wait for servers that are starting
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    wait: u64,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// A server's words about itself are shown up to this length.
const WORDS: usize = 2_000;

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let wake = if arguments.server.is_some() { Wake::OnDemand } else { Wake::All };
    live::run(context, wake, async |live| {
        let name = arguments.server.as_deref();
        let wait = Duration::from_secs(arguments.wait);
        match name {
            // Whoever asks for one by name wants to see what it has, even when it is lazy. What others share is left as
            // it is.
            Some(name) if !live.is_shared() => {
                let start = live.run("mcp.server.start", json!({ "server": name }));
                if let Ok(Err(failure)) = tokio::time::timeout(wait, start).await
                    && failure.kind == "not-found"
                {
                    return Err(failure.into());
                }
            }
            _ => live.settled(wait).await,
        }
        let inspected = look_at(live, name).await?;
        if arguments.json {
            print(&format!("{:#}\n", json!({ "servers": inspected })))?;
            return Ok(Status::Ok);
        }
        let page = Page { look: Look::of_stdout(), width: size().map(|size| size.columns), folder: &live.folder };
        let pages = inspected.iter().map(|server| page.of(server)).collect::<anyhow::Result<Vec<_>>>()?;
        print(&if pages.is_empty() { "no servers yet\n".to_owned() } else { pages.join("\n") })?;
        Ok(Status::Ok)
    })
}

/// One object for each server, with all that the protocol tells about it.
async fn look_at(live: &Live, name: Option<&str>) -> anyhow::Result<Vec<Value>> {
    let params = json!({ "server": name });
    let servers = live.run("mcp.servers", params.clone()).await?;
    let tools = live.run("mcp.tools", json!({ "server": name, "all": true })).await?;
    let resources = live.run("mcp.resources", params.clone()).await?;
    let prompts = live.run("mcp.prompts", params).await?;
    let of = |answer: &Value, key: &str, server: &Value| -> Vec<Value> {
        let all = answer.get(key).and_then(Value::as_array).into_iter().flatten();
        all.filter(|each| each.get("server") == Some(server)).cloned().collect()
    };
    let inspect = |status: &Value| {
        let server = status.get("name").cloned().unwrap_or_default();
        json!({
            "server": status,
            "tools": of(&tools, "tools", &server),
            "resources": of(&resources, "resources", &server),
            "templates": of(&resources, "templates", &server),
            "prompts": of(&prompts, "prompts", &server),
        })
    };
    Ok(servers.get("servers").and_then(Value::as_array).into_iter().flatten().map(inspect).collect())
}

struct Page<'a> {
    look: Look,
    width: Option<usize>,
    folder: &'a Path,
}

impl Page<'_> {
    fn of(&self, inspected: &Value) -> anyhow::Result<String> {
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
        let status = self.look.tone(server.tone(), &format!("● {}{reason}", server.status));
        let mut page = format!("{}  {status}\n", self.look.tone(Tone::Heading, &server.name));
        let mut say = |what: &str, text: Option<String>| {
            for (number, line) in text.iter().flat_map(|text| text.lines()).enumerate() {
                let label = self.look.tone(Tone::Dim, &format!("{:<13}", if number == 0 { what } else { "" }));
                writeln!(page, "  {label}  {line}").ok();
            }
        };
        let shown = |text: &str| shell_words(&visible(&mask(text), WORDS));
        say("error", server.error.as_deref().map(shown));
        say("trust", server.needs_trust.then(|| format!("not given; `mcp-sidecar trust {}` asks you", server.name)));
        say("changed", server.trust_diff.as_deref().map(shown));
        say("from", server.place(self.folder).map(|place| format!("{place} ({})", server.scope)));
        for hidden in &server.hides {
            let file = hidden.file.as_deref().map_or_else(String::new, |file| format!("{} ", near(file, self.folder)));
            say("hides", Some(format!("{file}({})", hidden.scope)));
        }
        say(&server.transport, Some(server.launch()).filter(|launch| !launch.is_empty()));
        let description = server.config.get("description").and_then(Value::as_str);
        say("description", description.map(|text| one_line(text, WORDS)));
        say(
            "server",
            server.server_info.as_ref().map(|info| one_line(&format!("{} {}", info.name, info.version), 200)),
        );
        say("protocol", server.protocol_version.as_deref().map(|version| one_line(version, 40)));
        say(
            "capabilities",
            Some(server.capabilities.join(", ")).filter(|all| !all.is_empty()).map(|all| one_line(&all, WORDS)),
        );
        say("process", server.pid.map(|pid| pid.to_string()));
        say("started", server.started_at.clone());
        say("latency", server.latency_ms.map(|latency| format!("{latency:.1} ms")));
        say("restarts", (server.restarts > 0).then(|| server.restarts.to_string()));
        for warning in &server.warnings {
            say("warning", Some(shown(warning)));
        }
        say("instructions", server.instructions.as_deref().map(shown));
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
            let tone = match level {
                "disable" | "deny" => Tone::Bad,
                "require-approval" => Tone::Waiting,
                _ => Tone::Good,
            };
            let name = self.look.tone(Tone::Heading, &one_line(text("tool"), 200));
            let level = self.look.tone(tone, level);
            let source = self.look.tone(Tone::Dim, &format!("({})", one_line(text("source"), 200)));
            let claims = claims(tool.get("annotations").unwrap_or(&Value::Null));
            let changed = if tool.get("changed") == Some(&json!(true)) { ", changed since you allowed it" } else { "" };
            writeln!(page, "  {name}  {level} {source}{}{changed}", self.look.tone(Tone::Dim, &claims)).ok();
            let description = one_line(text("description"), WORDS);
            if !description.is_empty() {
                writeln!(page, "    {}", self.fitting(&description, 4)).ok();
            }
            let parameters = parameters(tool.get("inputSchema").unwrap_or(&Value::Null));
            for line in parameters.lines(self.look, self.width.map(|width| width.saturating_sub(6))).iter().skip(1) {
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
            table.row(vec![Cell::plain(text(each, key)), Cell::new(Tone::Dim, about)]);
        }
        for line in table.lines(self.look, self.width.map(|width| width.saturating_sub(2))).iter().skip(1) {
            writeln!(page, "  {line}").ok();
        }
    }

    fn heading(&self, page: &mut String, title: &str, count: usize) {
        writeln!(page, "\n{}", self.look.tone(Tone::Heading, &format!("{title} ({count})"))).ok();
    }

    fn fitting(&self, line: &str, indent: usize) -> String {
        use unicode_width::UnicodeWidthStr;
        match self.width.map(|width| width.saturating_sub(indent)) {
            Some(room) if line.width() > room => cut(line, room),
            _ => line.to_owned(),
        }
    }
}

/// What a server claims about its tool.
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

/// The arguments of a tool: which, of what kind, what for.
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
            Cell::plain(one_line(name, 100)).and(Tone::Waiting, mark),
            Cell::new(Tone::Dim, kind(property)),
            Cell::new(Tone::Dim, about),
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
