//! Everything that agents are offered, made from one snapshot and written out as the answers to come.
//!
//! Pure, and cheap when little has changed: a list that comes out the same keeps its text, so that whoever compares
//! pointers knows that there is nothing to tell.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::session::Sight;
use super::{names, search};
use crate::config::Launch;
use crate::engine::snapshot::{ServerView, Snapshot};
use crate::model::{Level, PendingReason, ServerName, Status, ToolId};
use crate::policy::{Ruling, View};
use crate::text::{clean_prose, strip_invisible};

/// How much of each server's own instructions is passed on.
const INSTRUCTIONS: usize = 2_000;

#[derive(Default)]
pub struct Catalog {
    snapshot: Option<Arc<Snapshot>>,
    view: Arc<View>,
    /// The answers to the list requests, ready to be sent.
    pub tools: Arc<Page>,
    pub resources: Arc<Page>,
    pub templates: Arc<Page>,
    pub prompts: Arc<Page>,
    /// What an agent says → whom it means.
    pub tool_names: BTreeMap<String, ToolId>,
    pub prompt_names: BTreeMap<String, (ServerName, String)>,
    /// Addresses of resources and of templates alike.
    pub uris: BTreeMap<String, (ServerName, String)>,
    /// Every tool as it would be listed, for one who searches.
    pub searched: Vec<Value>,
}

/// One whole list.
pub struct Page(pub Arc<RawValue>);

impl Default for Page {
    fn default() -> Self {
        Self(Arc::from(RawValue::NULL.to_owned()))
    }
}

impl Catalog {
    pub fn new(snapshot: Arc<Snapshot>, before: &Self, sight: &Sight) -> Self {
        let views: Vec<&Arc<ServerView>> =
            snapshot.servers.values().filter(|view| is_offered(view, &sight.view)).collect();
        let mut catalog = Self { view: sight.view.clone(), ..Self::default() };
        let mut tools = Vec::new();
        let mut prompts = Vec::new();
        for view in &views {
            let server = &view.definition.name;
            let listed = |ruling: &Ruling| sight.view.narrow(ruling.clone()).level != Level::Disable;
            for offered in view.shown_tools() {
                if !sight.view.shows(&offered.id) || !listed(&offered.ruling) {
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
            let whom = (address.server.clone(), address.own.to_owned());
            catalog.uris.entry(address.shown.clone()).or_insert(whom);
        }
        let listed = |key: &str, addresses: Vec<Address<'_>>| -> Vec<Value> {
            addresses.into_iter().map(|address| renamed(address.raw, key, address.shown)).collect()
        };
        if sight.search {
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

    /// Whom an address means: one that is listed, one with the server's name in it, or one of a kind that only one
    /// server has.
    pub fn find_uri(&self, uri: &str) -> Option<(ServerName, String)> {
        if let Some(found) = self.uris.get(uri) {
            return Some(found.clone());
        }
        if let Some((server, own)) = names::parse_own_uri(uri) {
            return self.view.shows_server(&server).then(|| (server, own.to_owned()));
        }
        let kind = |uri: &str| uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let wanted = kind(uri)?;
        let mut servers = self.uris.values().filter(|(_, own)| kind(own).as_ref() == Some(&wanted));
        let (server, _) = servers.next()?;
        servers.all(|(other, _)| other == server).then(|| (server.clone(), uri.to_owned()))
    }

    /// How an agent knows a resource of a server.
    pub fn shown_uri(&self, server: &ServerName, uri: &str) -> String {
        let own = names::own_uri(server, uri);
        if self.uris.contains_key(&own) { own } else { uri.to_owned() }
    }

    /// What stands behind this endpoint, in words for a model.
    pub fn instructions(&self, root: Option<&str>) -> String {
        let mut text = "The MCP servers of one workspace as one, by mcp-sidecar".to_owned();
        if let Some(root) = root {
            text.push_str(&format!(" ({})", strip_invisible(root)));
        }
        text.push_str(". A tool is named {server}__{tool}.");
        if !self.searched.is_empty() {
            text.push_str(" Look for tools with find_tools, and call them with call_tool.");
        }
        text.push_str(
            " The user decides which calls run: a call may wait for an answer, and \
             one that is refused says why; do not try to get around that.",
        );
        let servers = self.snapshot.iter().flat_map(|snapshot| snapshot.servers.values());
        for view in servers.filter(|view| is_offered(view, &self.view)) {
            let own = view.state.peer.as_ref().and_then(|peer| peer.instructions.as_deref()).unwrap_or_default();
            let own: String = strip_invisible(own).trim().chars().take(INSTRUCTIONS).collect();
            let description = view.definition.spec.description.as_deref().unwrap_or_default();
            text.push_str(&format!("\n\n## {}", view.definition.name));
            for words in [strip_invisible(description).trim(), own.as_str()] {
                if !words.is_empty() {
                    text.push('\n');
                    text.push_str(words);
                }
            }
        }
        text
    }
}

/// Whether a server may have something to offer soon that it has not yet.
pub fn is_coming(view: &ServerView, sight: &View) -> bool {
    let starting = view.state.status == Status::Pending(PendingReason::Starting);
    starting && view.switched_on && sight.shows_server(&view.definition.name) && !is_ourselves(view)
}

fn is_offered(view: &ServerView, sight: &View) -> bool {
    view.usable().is_ok() && sight.shows_server(&view.definition.name) && !is_ourselves(view)
}

/// Our own endpoint behind ourselves would offer everything twice, without end. What a wrapper hides is refused when it
/// comes to join.
fn is_ourselves(view: &ServerView) -> bool {
    let Launch::Stdio(stdio) = &view.definition.spec.launch else { return false };
    if !stdio.args.iter().any(|argument| argument == "connect") {
        return false;
    }
    let program = Path::new(&stdio.command);
    program.file_stem().is_some_and(|name| name == "mcp-sidecar") || is_own_program(view, &stdio.command)
}

/// Whether a command leads to the program that runs here, by whatever name.
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
        // Tasks end here: an agent calls, and gets the result.
        fields.shift_remove("execution");
    }
    tool
}

/// A thing as its server described it, under another name, without what nobody could see in its words.
fn renamed(raw: &Value, key: &str, name: String) -> Value {
    let mut fields: Map<String, Value> = raw.as_object().cloned().unwrap_or_default();
    fields.insert(key.to_owned(), Value::String(name));
    let mut thing = Value::Object(fields);
    clean_prose(&mut thing);
    thing
}

struct Address<'a> {
    server: &'a ServerName,
    own: &'a str,
    shown: String,
    raw: &'a Value,
}

/// The addresses of all servers; those that two servers use get the server's name in both.
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
            address.shown = names::own_uri(address.server, address.own);
        }
    }
    all
}

fn page(key: &str, items: Vec<Value>, before: &Arc<Page>) -> Arc<Page> {
    let raw = to_raw_value(&json!({ key: items })).unwrap_or_else(|_| RawValue::NULL.to_owned());
    if before.0.get() == raw.get() { before.clone() } else { Arc::new(Page(Arc::from(raw))) }
}
