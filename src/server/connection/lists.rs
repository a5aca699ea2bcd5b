//! All pages of all lists of a server, parsed entry by entry, so that an invalid entry does not affect the others.

mod budget;
mod sanitize;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Connection, Listed, RequestLimits};
use crate::model::{Annotations, Error, Prompt, Resource, ResourceTemplate, Result, Tool};
use crate::server::transport::ledger::size;
use crate::text::{has_invisible, mask, one_line};

pub use budget::ListBudget;
pub use sanitize::{mask_secrets, truncate};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists {
    pub tools: Vec<Arc<Tool>>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
    /// Problems, as text for the user.
    pub warnings: Vec<String>,
}

/// One reloaded list and its problems.
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
    let max = connection.0.limits.description_bytes;
    lists.resources = resources.read(resource, max, &mut lists.warnings);
    lists.templates = templates.read(template, max, &mut lists.warnings);
    lists.prompts = prompts.read(prompt, max, &mut lists.warnings);
    Ok(lists)
}

pub async fn one(connection: &Connection, listed: Listed) -> Result<Listing> {
    let max = connection.0.limits.description_bytes;
    let mut warnings = Vec::new();
    Ok(match listed {
        Listed::Tools => {
            let (tools, warnings) = tools(connection).await?;
            Listing::Tools { tools, warnings }
        }
        Listed::Resources => {
            let (resources, templates) = resources(connection).await?;
            let resources = resources.read(resource, max, &mut warnings);
            let templates = templates.read(template, max, &mut warnings);
            Listing::Resources { resources, templates, warnings }
        }
        Listed::Prompts => {
            let prompts = entries(connection, Kind::Prompts).await?.read(prompt, max, &mut warnings);
            Listing::Prompts { prompts, warnings }
        }
    })
}

async fn tools(connection: &Connection) -> Result<(Vec<Arc<Tool>>, Vec<String>)> {
    let max = connection.0.limits.description_bytes;
    let mut warnings = Vec::new();
    let tools = entries(connection, Kind::Tools).await?.read(tool, max, &mut warnings);
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

    /// The method and the field of its result.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Tools => ("tools/list", "tools"),
            Self::Resources => ("resources/list", "resources"),
            Self::Templates => ("resources/templates/list", "resourceTemplates"),
            Self::Prompts => ("prompts/list", "prompts"),
        }
    }

    /// The noun for an entry and the field that identifies it.
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

/// The entries of one list as they were sent, unique by name.
struct Entries {
    kind: Kind,
    found: Vec<(String, Map<String, Value>)>,
    warnings: Vec<String>,
}

impl Entries {
    /// Parses each entry, with secrets masked and long texts truncated.
    fn read<T>(self, read: impl Fn(Entry, &mut Vec<String>) -> T, max: usize, warnings: &mut Vec<String>) -> Vec<T> {
        warnings.extend(self.warnings);
        let (what, key) = self.kind.entry();
        let fit = |(name, mut fields): (String, Map<String, Value>)| {
            sanitize::mask_secrets(&mut fields, key);
            sanitize::truncate_field(&mut fields, "title", max);
            if sanitize::truncate_field(&mut fields, "description", max) {
                warnings.push(format!(
                    "the description of {what} `{}` was truncated to {} (`limits.description-bytes` sets this limit)",
                    one_line(&mask(&name), 80),
                    size(max)
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

/// All pages of one list, within our limits.
async fn entries(connection: &Connection, kind: Kind) -> Result<Entries> {
    let mut entries = Entries { kind, found: Vec::new(), warnings: Vec::new() };
    if !connection.0.info.capabilities.iter().any(|name| name == kind.capability()) {
        return Ok(entries);
    }
    let (method, field) = kind.names();
    let budget = &connection.0.budget;
    budget.reset(kind as usize);
    let limits = RequestLimits { idle: connection.0.timeout, total: connection.0.timeout, setting: "timeout" };
    let mut names = HashSet::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for page in 0..connection.0.limits.pages {
        // An empty cursor is valid, but many servers use it to mark the end.
        let empty_cursor = cursor.as_deref() == Some("");
        let raw = match connection.ask(kind.request(cursor.take()), &format!("`{method}`"), &limits, None).await {
            Ok(raw) => raw,
            Err(_) if empty_cursor => return Ok(entries),
            Err(error) if page > 0 => {
                entries
                    .warnings
                    .push(format!("a page of `{method}` failed, only the pages before it are shown: {error}"));
                return Ok(entries);
            }
            Err(Error::Protocol { message, .. }) => {
                // Many servers with resources do not support templates.
                if kind != Kind::Templates {
                    entries.warnings.push(format!("`{method}` failed: {message}"));
                }
                return Ok(entries);
            }
            Err(error) => return Err(error),
        };
        let page: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
        match page.get(field).and_then(|list| budget::read(list, kind as usize, budget)) {
            // If it marked the end, the server returns the first page again.
            Some(read) if empty_cursor && kind.all_known(&read.items, &names) => return Ok(entries),
            Some(read) => {
                if !entries.add(read.items, &mut names, connection.0.limits.tools) {
                    return Ok(entries);
                }
                if read.truncated {
                    entries.warnings.push(format!(
                        "the lists are larger than {}: ignored the rest of `{method}` (`limits.list-bytes` sets this limit)",
                        size(budget.limit())
                    ));
                    return Ok(entries);
                }
            }
            None => entries.warnings.push(format!("the response to `{method}` has no list `{field}`")),
        }
        match page.get("nextCursor").map(|next| serde_json::from_str(next.get()).unwrap_or_default()) {
            Some(Value::String(next)) => {
                if !cursors.insert(next.clone()) {
                    entries.warnings.push(format!("`{method}` repeats a cursor: stopped at this page"));
                    return Ok(entries);
                }
                cursor = Some(next);
            }
            None | Some(Value::Null) => return Ok(entries),
            Some(_) => {
                entries
                    .warnings
                    .push(format!("`{method}` has an invalid `nextCursor`: expected a string; stopped at this page"));
                return Ok(entries);
            }
        }
    }
    let pages = connection.0.limits.pages;
    entries
        .warnings
        .push(format!("`{method}` has more than {pages} pages: ignored the rest (`limits.pages` sets this limit)"));
    Ok(entries)
}

impl Entries {
    /// Adds a page. Returns false when the limit is reached.
    fn add(&mut self, items: Vec<Value>, names: &mut HashSet<String>, max: usize) -> bool {
        let (entry, key) = self.kind.entry();
        let mut unnamed = 0;
        for item in items {
            let Value::Object(fields) = item else {
                unnamed += 1;
                continue;
            };
            let name = match fields.get(key) {
                Some(Value::String(name)) if !name.is_empty() => name.clone(),
                _ => {
                    unnamed += 1;
                    continue;
                }
            };
            // A name that looks like another one could be allowed or denied by mistake.
            if self.kind == Kind::Tools && has_invisible(&name) {
                let shown = one_line(&mask(&name), 80);
                self.warnings.push(format!("ignored tool `{shown}`: its name contains invisible characters"));
                continue;
            }
            if names.contains(&name) {
                self.warnings
                    .push(format!("duplicate {entry} `{}`: only the first one is used", one_line(&mask(&name), 80)));
                continue;
            }
            if self.found.len() >= max {
                self.warnings
                    .push(format!("more than {max} {entry}s: ignored the rest (`limits.tools` sets this limit)"));
                return false;
            }
            names.insert(name.clone());
            self.found.push((name, fields));
        }
        if unnamed > 0 {
            let plural = if unnamed == 1 { "" } else { "s" };
            self.warnings.push(format!("ignored {unnamed} {entry}{plural} without `{key}`"));
        }
        true
    }
}

/// Parses cached tools, which have the form that a server sends.
pub fn tools_from(items: Vec<Value>) -> Vec<Arc<Tool>> {
    let mut entries = Entries { kind: Kind::Tools, found: Vec::new(), warnings: Vec::new() };
    entries.add(items, &mut HashSet::new(), usize::MAX);
    entries.read(tool, usize::MAX, &mut Vec::new()).into_iter().map(Arc::new).collect()
}

fn tool(entry: Entry, warnings: &mut Vec<String>) -> Tool {
    let Entry { name, mut fields } = entry;
    if !matches!(fields.get("inputSchema"), Some(Value::Object(_))) {
        warnings
            .push(format!("tool `{}` has no valid `inputSchema`: it accepts any object", one_line(&mask(&name), 80)));
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

fn name_of(fields: &Map<String, Value>, default: &str) -> String {
    fields.get("name").and_then(Value::as_str).unwrap_or(default).to_owned()
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
