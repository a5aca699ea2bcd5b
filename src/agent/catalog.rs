//! Everything that an agent is offered, rendered from one snapshot as responses to list requests.
//!
//! A list that has not changed keeps its pointer, so that comparing pointers shows whether to notify the agent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use url::Url;

use super::search::{self, SearchableTools};
use super::session::AgentView;
use super::{long_results, names};
use crate::config::Launch;
use crate::engine::snapshot::{ServerView, Snapshot};
use crate::model::{Level, PendingReason, RawJson, ServerName, Status, ToolId};
use crate::policy::{AgentAccess, Ruling};
use crate::server::connection::conform;
use crate::text::{one_line, show_hidden, visible, visible_text};

/// How much of each server's instructions is included.
const INSTRUCTIONS: usize = 2_000;

#[derive(Default)]
pub struct Catalog {
    snapshot: Option<Arc<Snapshot>>,
    view: Arc<AgentAccess>,
    /// The responses to the list requests.
    pub tools: Arc<RenderedList>,
    pub resources: Arc<RenderedList>,
    pub templates: Arc<RenderedList>,
    pub prompts: Arc<RenderedList>,
    /// The names that agents use → the tools.
    pub tool_names: BTreeMap<String, ToolId>,
    pub prompt_names: BTreeMap<String, (ServerName, String)>,
    /// The URIs of resources and of templates.
    pub uris: BTreeMap<String, (ServerName, String)>,
    /// All tools, for an agent that searches them.
    pub searched: SearchableTools,
}

/// A complete list as raw JSON.
pub struct RenderedList(pub RawJson);

impl Default for RenderedList {
    fn default() -> Self {
        Self(RawJson::from(RawValue::NULL.to_owned()))
    }
}

impl Catalog {
    pub fn new(snapshot: Arc<Snapshot>, before: &Self, agent: &AgentView) -> Self {
        let views: Vec<&Arc<ServerView>> =
            snapshot.servers.values().filter(|view| is_offered(view, &agent.view)).collect();
        let mut catalog = Self { view: agent.view.clone(), ..Self::default() };
        let mut tools = Vec::new();
        let mut prompts = Vec::new();
        for view in &views {
            let server = &view.definition.name;
            let listed = |ruling: &Ruling| agent.view.narrow(ruling.clone()).level != Level::Disable;
            for offered in view.shown_tools() {
                if !agent.view.shows(&offered.id) || !listed(&offered.ruling) {
                    continue;
                }
                let Some(mut fields) = shown_tool(offered.tool.definition()) else { continue };
                if agent.view.result_limit.is_some() {
                    // The structured part of a long result is left out, which its schema does not allow.
                    fields.shift_remove("outputSchema");
                }
                let name = names::insert(
                    &mut catalog.tool_names,
                    agent.name_limit,
                    server,
                    &offered.tool.name,
                    offered.id.clone(),
                );
                tools.extend(name.map(|name| renamed(fields, "name", name)));
            }
            let shows = |name: &str| snapshot.shows(view, &view.prompt(name), &agent.view);
            for prompt in view.prompts().iter().filter(|prompt| shows(&prompt.name)) {
                let thing = (server.clone(), prompt.name.clone());
                let name = names::insert(&mut catalog.prompt_names, agent.name_limit, server, &prompt.name, thing);
                prompts.extend(name.map(|name| {
                    let mut fields = visible_fields(prompt.raw.as_ref().clone());
                    conform::prompt(&mut fields);
                    renamed(fields, "name", name)
                }));
            }
        }
        let shows = |view: &ServerView, uri: &str| snapshot.shows(view, &view.resource(uri), &agent.view);
        let mut resources: Vec<_> = addresses(&views, |view| {
            let shown = view.resources().iter().filter(|resource| shows(view, &resource.uri));
            shown.map(|resource| (resource.uri.as_str(), &*resource.raw)).collect()
        });
        let templates: Vec<_> = addresses(&views, |view| {
            let shown = view.templates().iter().filter(|template| shows(view, &template.uri_template));
            shown.map(|template| (template.uri_template.as_str(), &*template.raw)).collect()
        });
        for address in &mut resources {
            // Some SDKs reject a list with a URI that is not valid.
            if Url::parse(&address.shown).is_err() {
                address.shown = names::qualified_uri(address.server, address.own);
            }
        }
        for address in resources.iter().chain(&templates) {
            let target = (address.server.clone(), address.own.to_owned());
            catalog.uris.entry(address.shown.clone()).or_insert(target);
        }
        for address in resources.iter().filter(|address| address.shown != address.own) {
            let names = &catalog.tool_names;
            let of_server = |tool: &&mut Value| {
                let name = tool.get("name").and_then(Value::as_str);
                name.and_then(|name| names.get(name)).is_some_and(|id| id.server == *address.server)
            };
            tools.iter_mut().filter(of_server).for_each(|tool| rename_page(tool, address));
        }
        let listed = |key: &str, addresses: Vec<Address<'_>>| -> Vec<Value> {
            let shown = |address: Address<'_>| {
                let mut fields = visible_fields(address.raw.clone());
                conform::resource(&mut fields, key);
                renamed(fields, key, address.shown)
            };
            addresses.into_iter().map(shown).collect()
        };
        if agent.search {
            let servers: Vec<&str> = views.iter().map(|view| view.definition.name.as_str()).collect();
            catalog.searched = SearchableTools::new(std::mem::replace(&mut tools, search::tools(&servers)));
        }
        if agent.view.result_limit.is_some() {
            tools.push(long_results::tool());
        }
        catalog.tools = page("tools", tools, &before.tools);
        catalog.prompts = page("prompts", prompts, &before.prompts);
        catalog.resources = page("resources", listed("uri", resources), &before.resources);
        catalog.templates = page("resourceTemplates", listed("uriTemplate", templates), &before.templates);
        catalog.snapshot = Some(snapshot);
        catalog
    }

    pub fn is_of(&self, snapshot: &Arc<Snapshot>, view: &AgentAccess) -> bool {
        self.snapshot.as_ref().is_some_and(|own| Arc::ptr_eq(own, snapshot)) && self.view.is_of_same_settings(view)
    }

    /// The server and URI that a URI refers to: one that is listed, one qualified with a server's name, or one with a
    /// scheme that only one server uses.
    pub fn find_uri(&self, uri: &str) -> Option<(ServerName, String)> {
        if let Some(found) = self.uris.get(uri) {
            return Some(found.clone());
        }
        if let Some((server, own)) = names::parse_qualified_uri(uri) {
            return self.view.shows_server(&server).then(|| (server, own.to_owned()));
        }
        let scheme = |uri: &str| uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let wanted = scheme(uri)?;
        let mut servers = self.uris.values().filter(|(_, own)| scheme(own).as_ref() == Some(&wanted));
        let (server, _) = servers.next()?;
        servers.all(|(other, _)| other == server).then(|| (server.clone(), uri.to_owned()))
    }

    /// The URI under which an agent sees a resource.
    pub fn shown_uri(&self, server: &ServerName, uri: &str) -> String {
        let own = names::qualified_uri(server, uri);
        if self.uris.contains_key(&own) { own } else { uri.to_owned() }
    }

    /// The instructions for the model. `folder` is the name of the workspace folder, without its path.
    pub fn instructions(&self, folder: Option<&str>) -> String {
        let mut text = "mcp-sidecar combines the MCP servers of a workspace into one server".to_owned();
        if let Some(folder) = folder {
            text.push_str(&format!(" ({})", one_line(folder, 100)));
        }
        text.push_str(". Tools are named {server}__{tool}; the names of some are shortened.");
        if !self.searched.is_empty() {
            text.push_str(" Find tools with find_tools and call them with call_tool.");
        }
        text.push_str(
            " The user decides which calls may run. A call may have to wait for the user's answer. If a call is denied, \
             the result says why; do not try to work around it.",
        );
        let servers = self.snapshot.iter().flat_map(|snapshot| snapshot.servers.values());
        for view in servers.filter(|view| is_offered(view, &self.view)) {
            let own = view.state.peer.as_ref().and_then(|peer| peer.instructions.as_deref()).unwrap_or_default();
            let own = visible(own.trim(), INSTRUCTIONS);
            let description = view.definition.spec.description.as_deref().unwrap_or_default();
            text.push_str(&format!("\n\n## {}", view.definition.name));
            for part in [visible_text(description).trim(), own.as_str()] {
                if !part.is_empty() {
                    text.push('\n');
                    text.push_str(part);
                }
            }
        }
        text
    }
}

/// Whether a server is starting, so that its tools are not known yet.
pub fn is_starting(view: &ServerView, agent: &AgentAccess) -> bool {
    let starting = view.state.status == Status::Pending(PendingReason::Starting);
    starting && view.switched_on && agent.shows_server(&view.definition.name) && !is_own_endpoint(view)
}

fn is_offered(view: &ServerView, agent: &AgentAccess) -> bool {
    view.usable().is_ok() && agent.shows_server(&view.definition.name) && !is_own_endpoint(view)
}

/// Whether a server is `mcp-sidecar connect` itself, which would offer everything twice, recursively. If a wrapper hides
/// this, the engine refuses the connection later.
fn is_own_endpoint(view: &ServerView) -> bool {
    let Launch::Stdio(stdio) = &view.definition.spec.launch else { return false };
    if !stdio.args.iter().any(|argument| argument == "connect") {
        return false;
    }
    let program = Path::new(&stdio.command);
    program.file_stem().is_some_and(|name| name == "mcp-sidecar") || is_own_program(view)
}

/// Whether a server is this program, under any name.
fn is_own_program(view: &ServerView) -> bool {
    let found = view.fingerprint.as_ref().and_then(|fingerprint| fingerprint.program());
    let found = found.and_then(|program| program.canonicalize().ok());
    let own = std::env::current_exe().and_then(|program| program.canonicalize()).ok();
    found.is_some() && found == own
}

/// A tool as its server described it, without what an agent may not be able to parse. `None` if nothing useful is left.
fn shown_tool(definition: Value) -> Option<Map<String, Value>> {
    let mut fields = visible_fields(definition);
    conform::tool(&mut fields).is_ok().then_some(fields)
}

/// An entry as its server described it. Hidden characters are as visible as they are to the user.
fn visible_fields(mut entry: Value) -> Map<String, Value> {
    show_hidden(&mut entry);
    match entry {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn renamed(mut fields: Map<String, Value>, key: &str, name: String) -> Value {
    fields.insert(key.to_owned(), Value::String(name));
    Value::Object(fields)
}

/// Lets a tool with a page (MCP Apps) refer to the page by the URI that the agent sees.
fn rename_page(tool: &mut Value, address: &Address<'_>) {
    for pointer in ["/_meta/ui/resourceUri", "/_meta/ui~1resourceUri"] {
        if let Some(uri) = tool.pointer_mut(pointer).filter(|uri| *uri == address.own) {
            *uri = json!(address.shown);
        }
    }
}

struct Address<'a> {
    server: &'a ServerName,
    own: &'a str,
    shown: String,
    raw: &'a Value,
}

/// The URIs of all servers. A URI that two servers use is qualified with the server's name.
fn addresses<'a>(
    views: &[&'a Arc<ServerView>],
    of: impl Fn(&'a ServerView) -> Vec<(&'a str, &'a Value)>,
) -> Vec<Address<'a>> {
    let mut all: Vec<Address<'a>> = Vec::new();
    let mut owners: BTreeMap<&str, Vec<&ServerName>> = BTreeMap::new();
    for view in views {
        let server = &view.definition.name;
        for (own, raw) in of(view) {
            let owners = owners.entry(own).or_default();
            if !owners.contains(&server) {
                owners.push(server);
                all.push(Address { server, own, shown: visible_text(own).into_owned(), raw });
            }
        }
    }
    for address in &mut all {
        if owners.get(address.own).is_some_and(|owners| owners.len() > 1) {
            address.shown = names::qualified_uri(address.server, &address.shown);
        }
    }
    all
}

fn page(key: &str, items: Vec<Value>, before: &Arc<RenderedList>) -> Arc<RenderedList> {
    let raw = to_raw_value(&json!({ key: items })).unwrap_or_else(|_| RawValue::NULL.to_owned());
    if before.0.get() == raw.get() { before.clone() } else { Arc::new(RenderedList(RawJson::from(raw))) }
}
