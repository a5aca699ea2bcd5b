//! `mcp-sidecar inspect`: details of one server or all servers.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::context::{Context, parse_number};
use super::engine_client::{self, Autostart, EngineClient, in_shell};
use super::server::{location, relative, state};
use super::style::{Color, Style, size};
use super::table::{Cell, Table, truncate};
use super::{Status, complete, print, print_json};
use crate::model::{Level, ServerName, tokens};
use crate::protocol::commands::{Prompts, Resources, ServerStart, Tools};
use crate::protocol::errors::ErrorKind;
use crate::protocol::form::{Field, FieldKind, Form};
use crate::protocol::mcp::{PromptInfo, ResourceInfo};
use crate::protocol::types::{Annotations, Object, ServerRestriction, ServerStatus, ToolInfo};
use crate::text::{mask, one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Server to show [default: all servers]
    #[arg(add = complete::servers())]
    server: Option<ServerName>,
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
        let name = arguments.server.as_ref();
        let wait = Duration::from_secs(arguments.wait);
        match name {
            // A server that is named is started, even if it normally starts on first use. A shared engine is left as it is.
            Some(name) if !engine.is_shared() => {
                let start = engine.call(ServerStart { server: Some(name.clone()), all: false });
                if let Ok(Err(failure)) = tokio::time::timeout(wait, start).await
                    && failure.kind() == Some(ErrorKind::NotFound)
                {
                    return Err(failure.into());
                }
            }
            _ => engine.settle(wait).await,
        }
        let inspected = inspect(engine, name).await?;
        if arguments.json {
            return print_json(&json!({ "servers": inspected }));
        }
        let page =
            Renderer { style: Style::of_stdout(), width: size().map(|size| size.columns), folder: &engine.folder };
        let pages: Vec<String> = inspected.iter().map(|server| page.render(server)).collect();
        print(&if pages.is_empty() { "no servers\n".to_owned() } else { pages.join("\n") })?;
        Ok(Status::Ok)
    })
}

/// A server with everything that the protocol returns about it.
#[derive(Serialize)]
struct Inspected {
    server: ServerStatus,
    tools: Vec<ToolInfo>,
    resources: Vec<ResourceInfo>,
    templates: Vec<ResourceInfo>,
    prompts: Vec<PromptInfo>,
}

async fn inspect(engine: &EngineClient, name: Option<&ServerName>) -> anyhow::Result<Vec<Inspected>> {
    let server = name.cloned();
    let servers = engine.servers(name).await?;
    let mut tools = engine.call(Tools { server: server.clone(), all: true }).await?.tools;
    let mut resources = engine.call(Resources { server: server.clone() }).await?;
    let mut prompts = engine.call(Prompts { server }).await?.prompts;
    let inspected = servers.into_iter().map(|server| Inspected {
        tools: tools.extract_if(.., |tool| tool.server == server.name).collect(),
        resources: resources.resources.extract_if(.., |each| each.server == server.name).collect(),
        templates: resources.templates.extract_if(.., |each| each.server == server.name).collect(),
        prompts: prompts.extract_if(.., |each| each.server == server.name).collect(),
        server,
    });
    Ok(inspected.collect())
}

struct Renderer<'a> {
    style: Style,
    width: Option<usize>,
    folder: &'a Path,
}

impl Renderer<'_> {
    fn render(&self, inspected: &Inspected) -> String {
        let Inspected { server, tools, resources, templates, prompts } = inspected;
        let mut page = self.head(server);
        self.tools(&mut page, tools, server.tokens);
        self.named(&mut page, "Resources", resources.iter().map(|each| &each.fields), "uri");
        self.named(&mut page, "Resource templates", templates.iter().map(|each| &each.fields), "uriTemplate");
        self.named(&mut page, "Prompts", prompts.iter().map(|each| &each.fields), "name");
        page
    }

    fn head(&self, server: &ServerStatus) -> String {
        let status = self.style.paint(Color::of_status(server.status), &format!("● {}", state(server)));
        let mut page = format!("{}  {status}\n", self.style.paint(Color::Heading, server.name.as_str()));
        let mut field = |label: &str, text: Option<String>| {
            for (number, line) in text.iter().flat_map(|text| text.lines()).enumerate() {
                let label = self.style.paint(Color::Dim, &format!("{:<13}", if number == 0 { label } else { "" }));
                writeln!(page, "  {label}  {line}").ok();
            }
        };
        let shown = |text: &str| visible(&mask(text), LONGEST_TEXT);
        field("error", server.error.as_deref().map(|error| shown(error) + &in_shell(server.remedy.as_ref())));
        field("trust", server.needs_trust.then(|| format!("not trusted; run `mcp-sidecar trust {}`", server.name)));
        field("changed", server.trust_diff.as_deref().map(shown));
        field("from", location(server, self.folder).map(|location| format!("{location} ({})", server.scope)));
        for hidden in &server.hides {
            let file =
                hidden.file.as_deref().map_or_else(String::new, |file| format!("{} ", relative(file, self.folder)));
            field("hides", Some(format!("{file}({})", hidden.scope)));
        }
        for ServerRestriction { scope, file, line, effect, .. } in &server.restrictions {
            let line = line.map_or_else(String::new, |line| format!(":{}", line.saturating_add(1)));
            let file =
                file.as_deref().map_or_else(String::new, |file| format!(" {}{line}", relative(file, self.folder)));
            field("restricted", Some(format!("{effect}:{file} ({scope})")));
        }
        field(&server.transport.to_string(), Some(server.launch.clone()).filter(|launch| !launch.is_empty()));
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
        field("started", server.started_at.map(|time| time.to_string()));
        field("latency", server.latency_ms.map(|latency| format!("{latency:.1} ms")));
        field("restarts", (server.restarts > 0).then(|| server.restarts.to_string()));
        for warning in &server.warnings {
            field("warning", Some(shown(warning)));
        }
        field("instructions", server.instructions.as_deref().map(shown));
        page
    }

    fn tools(&self, page: &mut String, tools: &[ToolInfo], tokens: usize) {
        if tools.is_empty() {
            return;
        }
        let title = format!("Tools ({}), {}", tools.len(), tokens::shown(tokens));
        writeln!(page, "\n{}", self.style.paint(Color::Heading, &title)).ok();
        for tool in tools {
            let color = match tool.level {
                Level::Disable | Level::Deny => Color::Bad,
                Level::RequireApproval => Color::Attention,
                _ => Color::Good,
            };
            let name = self.style.paint(Color::Heading, &one_line(&tool.tool, 200));
            let level = self.style.paint(color, tool.level.as_str());
            let source = self.style.paint(Color::Dim, &format!("({})", one_line(&tool.source, 200)));
            let claims = claims(tool.annotations);
            let changed = if tool.changed { ", changed since you allowed it" } else { "" };
            let facts = self.style.paint(Color::Dim, &format!("{claims} {}", tokens::shown(tool.tokens)));
            writeln!(page, "  {name}  {level} {source}{facts}{changed}").ok();
            let description = one_line(&tool.description, LONGEST_TEXT);
            if !description.is_empty() {
                writeln!(page, "    {}", self.fit(&description, 4)).ok();
            }
            let parameters = parameters(&tool.input_schema);
            for line in parameters.lines(self.style, self.width.map(|width| width.saturating_sub(6))).iter().skip(1) {
                writeln!(page, "      {line}").ok();
            }
        }
    }

    fn named<'a>(&self, page: &mut String, title: &str, list: impl ExactSizeIterator<Item = &'a Object>, key: &str) {
        if list.len() == 0 {
            return;
        }
        self.heading(page, title, list.len());
        let text = |each: &Object, key: &str| one_line(each.get(key).and_then(Value::as_str).unwrap_or_default(), 400);
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
fn claims(annotations: Annotations) -> String {
    let Annotations { read_only, destructive, idempotent, open_world } = annotations;
    let words = [
        (read_only, "read-only"),
        (destructive, "destructive"),
        (idempotent, "idempotent"),
        (open_world, "open world"),
    ];
    let held: Vec<&str> =
        words.into_iter().filter(|(claimed, _)| *claimed == Some(true)).map(|(_, word)| word).collect();
    if held.is_empty() { String::new() } else { format!(" {}", held.join(", ")) }
}

/// The arguments of a tool: name, what can be entered, and description.
fn parameters(schema: &Object) -> Table {
    let mut table = Table::new(&["", "", ""]);
    for field in &Form::of_schema(schema).fields {
        let mut about = one_line(field.help.as_deref().unwrap_or_default(), 400);
        if let Some(default) = &field.default {
            about = format!("{about} {}", one_line(&format!("[{default}]"), 100)).trim_start().to_owned();
        }
        table.row(vec![
            Cell::plain(one_line(&field.name, 100)).and(Color::Attention, if field.required { "*" } else { "" }),
            Cell::new(Color::Dim, one_line(&entered_as(field), 100)),
            Cell::new(Color::Dim, about),
        ]);
    }
    table
}

fn entered_as(field: &Field) -> String {
    let titles = || field.choices.iter().map(|choice| choice.title.as_str()).collect::<Vec<_>>().join("|");
    match (field.kind, &field.item) {
        (FieldKind::Choice | FieldKind::Choices, _) => titles(),
        (FieldKind::List, Some(item)) => format!("{} of {}", field.rule, entered_as(item)),
        _ => field.rule.clone(),
    }
}
