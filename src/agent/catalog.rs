//! Everything that an agent is offered, rendered from one snapshot as responses to list requests.
//!
//! A list that has not changed keeps its pointer, so that comparing pointers shows whether to notify the agent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::session::AgentView;
use super::{names, search};
use crate::config::Launch;
use crate::engine::snapshot::{ServerView, Snapshot};
use crate::model::{Level, PendingReason, ServerName, Status, ToolId};
use crate::policy::{Ruling, View};
use crate::text::{clean_prose, strip_invisible};

/// How much of each server's instructions is included.
const INSTRUCTIONS: usize = 2_000;

#[derive(Default)]
pub struct Catalog {
    snapshot: Option<Arc<Snapshot>>,
    view: Arc<View>,
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
    pub searched: Vec<Value>,
}

/// A complete list as raw JSON.
pub struct RenderedList(pub Arc<RawValue>);

impl Default for RenderedList {
    fn default() -> Self {
        Self(Arc::from(RawValue::NULL.to_owned()))
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
                let name = names::insert(&mut catalog.tool_names, server, &offered.tool.name, offered.id.clone());
                tools.extend(name.map(|name| tool(&offered.tool.raw, name)));
            }
            for prompt in view.prompts() {
                let thing = (server.clone(), prompt.name.clone());
                let name = names::insert(&mut catalog.prompt_names, server, &prompt.name, thing);
                prompts.extend(name.map(|name| renamed(&prompt.raw, "name", name)));
            }
        }
        let resources: Vec<_> = addresses(&views, |view| {
            view.resources().iter().map(|resource| (resource.uri.as_str(), &*resource.raw)).collect()
        });
        let templates: Vec<_> = addresses(&views, |view| {
            view.templates().iter().map(|template| (template.uri_template.as_str(), &*template.raw)).collect()
        });
        for address in resources.iter().chain(&templates) {
            let target = (address.server.clone(), address.own.to_owned());
            catalog.uris.entry(address.shown.clone()).or_insert(target);
        }
        let listed = |key: &str, addresses: Vec<Address<'_>>| -> Vec<Value> {
            addresses.into_iter().map(|address| renamed(address.raw, key, address.shown)).collect()
        };
        if agent.search {
            let servers: Vec<&str> = views.iter().map(|view| view.definition.name.as_str()).collect();
            catalog.searched = std::mem::replace(&mut tools, search::tools(&servers));
        }
        catalog.tools = page("tools", tools, &before.tools);
        catalog.prompts = page("prompts", prompts, &before.prompts);
        catalog.resources = page("resources", listed("uri", resources), &before.resources);
        catalog.templates = page("resourceTemplates", listed("uriTemplate", templates), &before.templates);
        catalog.snapshot = Some(snapshot);
        catalog
    }

    pub fn is_of(&self, snapshot: &Arc<Snapshot>) -> bool {
        self.snapshot.as_ref().is_some_and(|own| Arc::ptr_eq(own, snapshot))
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

    /// The instructions for the model.
    pub fn instructions(&self, root: Option<&str>) -> String {
        let mut text = "mcp-sidecar combines the MCP servers of a workspace into one server".to_owned();
        if let Some(root) = root {
            text.push_str(&format!(" ({})", strip_invisible(root)));
        }
        text.push_str(". Tools are named {server}__{tool}.");
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
            let own: String = strip_invisible(own).trim().chars().take(INSTRUCTIONS).collect();
            let description = view.definition.spec.description.as_deref().unwrap_or_default();
            text.push_str(&format!("\n\n## {}", view.definition.name));
            for part in [strip_invisible(description).trim(), own.as_str()] {
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
pub fn is_starting(view: &ServerView, agent: &View) -> bool {
    let starting = view.state.status == Status::Pending(PendingReason::Starting);
    starting && view.switched_on && agent.shows_server(&view.definition.name) && !is_own_endpoint(view)
}

fn is_offered(view: &ServerView, agent: &View) -> bool {
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
    program.file_stem().is_some_and(|name| name == "mcp-sidecar") || is_own_program(view, &stdio.command)
}

/// Whether a command starts this program, under any name.
fn is_own_program(view: &ServerView, command: &str) -> bool {
    let folder = view.definition.folder.as_deref().unwrap_or(Path::new("/"));
    let found = which::which_in(command, std::env::var_os("PATH"), folder).ok();
    let found = found.and_then(|program| program.canonicalize().ok());
    let own = std::env::current_exe().and_then(|program| program.canonicalize()).ok();
    found.is_some() && found == own
}

/// A tool as the server described it, under the name that agents use.
fn tool(raw: &Value, name: String) -> Value {
    let mut tool = renamed(raw, "name", name);
    if let Some(fields) = tool.as_object_mut() {
        // We do not offer tasks to agents.
        fields.shift_remove("execution");
    }
    tool
}

/// An entry as its server described it, with another name and without invisible characters.
fn renamed(raw: &Value, key: &str, name: String) -> Value {
    let mut fields: Map<String, Value> = raw.as_object().cloned().unwrap_or_default();
    fields.insert(key.to_owned(), Value::String(name));
    let mut entry = Value::Object(fields);
    clean_prose(&mut entry);
    entry
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
                all.push(Address { server, own, shown: own.to_owned(), raw });
            }
        }
    }
    for address in &mut all {
        if owners.get(address.own).is_some_and(|owners| owners.len() > 1) {
            address.shown = names::qualified_uri(address.server, address.own);
        }
    }
    all
}

fn page(key: &str, items: Vec<Value>, before: &Arc<RenderedList>) -> Arc<RenderedList> {
    let raw = to_raw_value(&json!({ key: items })).unwrap_or_else(|_| RawValue::NULL.to_owned());
    if before.0.get() == raw.get() { before.clone() } else { Arc::new(RenderedList(Arc::from(raw))) }
}
