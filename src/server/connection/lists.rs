//! What a server offers: every page of every list, read entry by entry, so that one odd entry costs only itself.

mod room;
mod words;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Connection, Listed, Patience};
use crate::model::{Annotations, Error, Prompt, Resource, ResourceTemplate, Result, Tool};
use crate::server::transport::ledger::size;
use crate::text::{has_invisible, mask, one_line};

pub use room::Room;
pub use words::{conceal, cut_text};

/// Everything that a server offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists {
    pub tools: Vec<Arc<Tool>>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
    /// What was odd about it, for people.
    pub warnings: Vec<String>,
}

/// One list anew, with what was odd about it.
#[derive(Debug, Clone, PartialEq)]
pub enum Listing {
    Tools { tools: Vec<Arc<Tool>>, warnings: Vec<String> },
    Resources { resources: Vec<Resource>, templates: Vec<ResourceTemplate>, warnings: Vec<String> },
    Prompts { prompts: Vec<Prompt>, warnings: Vec<String> },
}

pub async fn all(connection: &Connection) -> Result<Lists> {
    let (tools, (resources, templates), prompts) =
        tokio::try_join!(tools(connection), resources(connection), entries(connection, Kind::Prompts))?;
    let mut lists = Lists { tools: tools.0, warnings: tools.1, ..Lists::default() };
    let most = connection.0.limits.description_bytes;
    lists.resources = resources.read(resource, most, &mut lists.warnings);
    lists.templates = templates.read(template, most, &mut lists.warnings);
    lists.prompts = prompts.read(prompt, most, &mut lists.warnings);
    Ok(lists)
}

pub async fn one(connection: &Connection, listed: Listed) -> Result<Listing> {
    let most = connection.0.limits.description_bytes;
    let mut warnings = Vec::new();
    Ok(match listed {
        Listed::Tools => {
            let (tools, warnings) = tools(connection).await?;
            Listing::Tools { tools, warnings }
        }
        Listed::Resources => {
            let (resources, templates) = resources(connection).await?;
            let resources = resources.read(resource, most, &mut warnings);
            let templates = templates.read(template, most, &mut warnings);
            Listing::Resources { resources, templates, warnings }
        }
        Listed::Prompts => {
            let prompts = entries(connection, Kind::Prompts).await?.read(prompt, most, &mut warnings);
            Listing::Prompts { prompts, warnings }
        }
    })
}

async fn tools(connection: &Connection) -> Result<(Vec<Arc<Tool>>, Vec<String>)> {
    let most = connection.0.limits.description_bytes;
    let mut warnings = Vec::new();
    let tools = entries(connection, Kind::Tools).await?.read(tool, most, &mut warnings);
    Ok((tools.into_iter().map(Arc::new).collect(), warnings))
}

async fn resources(connection: &Connection) -> Result<(Entries, Entries)> {
    tokio::try_join!(entries(connection, Kind::Resources), entries(connection, Kind::Templates))
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }

    /// The method's name, and the field of its result.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Tools => ("tools/list", "tools"),
            Self::Resources => ("resources/list", "resources"),
            Self::Templates => ("resources/templates/list", "resourceTemplates"),
            Self::Prompts => ("prompts/list", "prompts"),
        }
    }

    /// What one entry is called, and the field that tells it from the others.
    fn entry(self) -> (&'static str, &'static str) {
        match self {
            Self::Tools => ("tool", "name"),
            Self::Resources => ("resource", "uri"),
            Self::Templates => ("resource template", "uriTemplate"),
            Self::Prompts => ("prompt", "name"),
        }
    }

    fn all_known(self, items: &[Value], names: &HashSet<String>) -> bool {
        let (_, key) = self.entry();
        items.iter().all(|item| item.get(key).and_then(Value::as_str).is_some_and(|name| names.contains(name)))
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor;
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params)),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params)),
            Self::Templates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(params))
            }
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params)),
        }
    }
}

/// The entries of one list as they were sent, one for each name.
struct Entries {
    kind: Kind,
    found: Vec<(String, Map<String, Value>)>,
    warnings: Vec<String>,
}

impl Entries {
    /// Reads each as what it is, its words fit to be kept: without secrets, and cut where they are endless.
    fn read<T>(self, read: impl Fn(Entry, &mut Vec<String>) -> T, most: usize, warnings: &mut Vec<String>) -> Vec<T> {
        warnings.extend(self.warnings);
        let (what, key) = self.kind.entry();
        let fit = |(name, mut fields): (String, Map<String, Value>)| {
            words::conceal(&mut fields, key);
            words::cut(&mut fields, "title", most);
            if words::cut(&mut fields, "description", most) {
                warnings.push(format!(
                    "the description of {what} {} is cut at {} (`limits.description-bytes` sets this limit)",
                    one_line(&mask(&name), 80),
                    size(most)
                ));
            }
            read(Entry { name, fields }, warnings)
        };
        self.found.into_iter().map(fit).collect()
    }
}

struct Entry {
    name: String,
    fields: Map<String, Value>,
}

/// All pages of one list, as far as the server and our limits let us.
async fn entries(connection: &Connection, kind: Kind) -> Result<Entries> {
    let mut entries = Entries { kind, found: Vec::new(), warnings: Vec::new() };
    if !connection.0.info.capabilities.iter().any(|name| name == kind.capability()) {
        return Ok(entries);
    }
    let (method, field) = kind.names();
    let room = &connection.0.room;
    room.begin(kind as usize);
    let patience = Patience { idle: connection.0.timeout, most: connection.0.timeout, setting: "timeout" };
    let mut names = HashSet::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for page in 0..connection.0.limits.pages {
        // An empty cursor names a page like any other, but many servers mean the end by it.
        let blank = cursor.as_deref() == Some("");
        let raw = match connection.ask(kind.request(cursor.take()), method, &patience, None).await {
            Ok(raw) => raw,
            Err(_) if blank => return Ok(entries),
            Err(error) if page > 0 => {
                entries.warnings.push(format!("a page of {method} failed, those before it are kept: {error}"));
                return Ok(entries);
            }
            Err(Error::Protocol { message, .. }) => {
                // Half of all servers with resources know no templates.
                if kind != Kind::Templates {
                    entries.warnings.push(format!("{method} failed: {message}"));
                }
                return Ok(entries);
            }
            Err(error) => return Err(error),
        };
        let page: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
        match page.get(field).and_then(|list| room::read(list, kind as usize, room)) {
            // What was meant as the end, not as the name of a page, brings the first page again.
            Some(read) if blank && kind.all_known(&read.items, &names) => return Ok(entries),
            Some(read) => {
                if !entries.add(read.items, &mut names, connection.0.limits.tools) {
                    return Ok(entries);
                }
                if read.cut {
                    entries.warnings.push(format!(
                        "its lists take more than {}: the rest of {method} is left out (`limits.list-bytes` sets this limit)",
                        size(room.most())
                    ));
                    return Ok(entries);
                }
            }
            None => entries.warnings.push(format!("the answer to {method} has no list `{field}`")),
        }
        match page.get("nextCursor").map(|next| serde_json::from_str(next.get()).unwrap_or_default()) {
            Some(Value::String(next)) => {
                if !cursors.insert(next.clone()) {
                    entries
                        .warnings
                        .push(format!("{method} goes round in circles: a page came back, the rest was not asked for"));
                    return Ok(entries);
                }
                cursor = Some(next);
            }
            None | Some(Value::Null) => return Ok(entries),
            Some(_) => {
                entries.warnings.push(format!("{method} names a next page that is no text: it was not asked for"));
                return Ok(entries);
            }
        }
    }
    let pages = connection.0.limits.pages;
    entries.warnings.push(format!(
        "{method} has more than {pages} pages: the rest was not asked for (`limits.pages` sets this limit)"
    ));
    Ok(entries)
}

impl Entries {
    /// Adds a page. False when there is no room for more.
    fn add(&mut self, items: Vec<Value>, names: &mut HashSet<String>, most: usize) -> bool {
        let (entry, key) = self.kind.entry();
        let mut nameless = 0;
        for item in items {
            let Value::Object(fields) = item else {
                nameless += 1;
                continue;
            };
            let name = match fields.get(key) {
                Some(Value::String(name)) if !name.is_empty() => name.clone(),
                _ => {
                    nameless += 1;
                    continue;
                }
            };
            // A name that reads like another one's would be chosen, allowed or denied by mistake.
            if self.kind == Kind::Tools && has_invisible(&name) {
                let shown = one_line(&mask(&name), 80);
                self.warnings.push(format!("tool {shown} is left out: its name holds characters that cannot be seen"));
                continue;
            }
            if names.contains(&name) {
                self.warnings.push(format!("duplicate {entry} {}: the first one counts", one_line(&mask(&name), 80)));
                continue;
            }
            if self.found.len() >= most {
                self.warnings
                    .push(format!("more than {most} {entry}s: the rest is left out (`limits.tools` sets this limit)"));
                return false;
            }
            names.insert(name.clone());
            self.found.push((name, fields));
        }
        if nameless > 0 {
            self.warnings.push(format!("{nameless} {entry}s without a {key} are left out"));
        }
        true
    }
}

/// Tools as they were kept, in the form in which a server sends them.
pub fn tools_from(items: Vec<Value>) -> Vec<Arc<Tool>> {
    let mut entries = Entries { kind: Kind::Tools, found: Vec::new(), warnings: Vec::new() };
    entries.add(items, &mut HashSet::new(), usize::MAX);
    entries.read(tool, usize::MAX, &mut Vec::new()).into_iter().map(Arc::new).collect()
}

fn tool(entry: Entry, warnings: &mut Vec<String>) -> Tool {
    let Entry { name, mut fields } = entry;
    if !matches!(fields.get("inputSchema"), Some(Value::Object(_))) {
        warnings.push(format!("tool {} has no usable inputSchema: any object is taken", one_line(&mask(&name), 80)));
        fields.insert("inputSchema".to_owned(), json!({ "type": "object" }));
    }
    let object = |key: &str| match fields.get(key) {
        Some(Value::Object(object)) => Some(Arc::new(object.clone())),
        _ => None,
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let annotations = fields.get("annotations");
    let hint = |key: &str| annotations.and_then(|annotations| annotations.get(key)).and_then(Value::as_bool);
    Tool {
        title: text(fields.get("title")).or_else(|| text(annotations.and_then(|annotations| annotations.get("title")))),
        description: text(fields.get("description")).unwrap_or_default(),
        input_schema: object("inputSchema").unwrap_or_default(),
        output_schema: object("outputSchema"),
        annotations: Annotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
        name: name.into(),
        raw: Arc::new(Value::Object(fields)),
    }
}

fn name_of(fields: &Map<String, Value>, otherwise: &str) -> String {
    fields.get("name").and_then(Value::as_str).unwrap_or(otherwise).to_owned()
}

fn resource(entry: Entry, _: &mut Vec<String>) -> Resource {
    let Entry { name: uri, fields } = entry;
    Resource { name: name_of(&fields, &uri), uri, raw: Arc::new(Value::Object(fields)) }
}

fn template(entry: Entry, _: &mut Vec<String>) -> ResourceTemplate {
    let Entry { name: uri_template, fields } = entry;
    ResourceTemplate { name: name_of(&fields, &uri_template), uri_template, raw: Arc::new(Value::Object(fields)) }
}

fn prompt(entry: Entry, _: &mut Vec<String>) -> Prompt {
    Prompt { name: entry.name, raw: Arc::new(Value::Object(entry.fields)) }
}
