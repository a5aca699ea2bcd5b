//! All pages of all lists of a server, parsed entry by entry, so that an invalid entry does not affect the others.

mod budget;
pub mod conform;
mod patterns;
mod sanitize;
mod schemas;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Connection, ListKind, RequestLimits};
use crate::model::{Annotations, Error, Prompt, Resource, ResourceTemplate, Result, Subject, Tool};
use crate::policy::is_glob;
use crate::server::heavy;
use crate::server::transport::ledger::size;
use crate::text::{has_invisible, mask, one_line};

pub use budget::ListBudget;
pub use sanitize::{mask_secrets, truncate};

/// How long a start waits for lists other than the tools. After that, they are requested again in the background.
const OTHER_LISTS_WAIT: Duration = Duration::from_secs(5);

/// How much of a note about an entry is shown.
const MAX_NOTE: usize = 240;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists {
    pub tools: Vec<Arc<Tool>>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
    /// Problems, as text for the user.
    pub warnings: Vec<String>,
    /// What the server did not answer in time.
    pub unanswered: Vec<ListKind>,
}

/// One reloaded list and its problems.
#[derive(Debug, Clone, PartialEq)]
pub enum Listing {
    Tools { tools: Vec<Arc<Tool>>, warnings: Vec<String> },
    Resources { resources: Vec<Resource>, templates: Vec<ResourceTemplate>, warnings: Vec<String> },
    Prompts { prompts: Vec<Prompt>, warnings: Vec<String> },
}

/// One silent list does not affect the others.
pub async fn all(connection: &Connection, until: Instant) -> Result<Lists> {
    let (tools, resources, templates, prompts) = tokio::try_join!(
        entries(connection, Kind::Tools, Some(until)),
        entries(connection, Kind::Resources, Some(until)),
        entries(connection, Kind::Templates, Some(until)),
        entries(connection, Kind::Prompts, Some(until)),
    )?;
    let mut lists = Lists::default();
    for (list, listed) in [(&tools, ListKind::Tools), (&resources, ListKind::Resources), (&prompts, ListKind::Prompts)]
    {
        if list.unanswered {
            lists.unanswered.push(listed);
        }
    }
    let max = connection.0.limits.description_bytes;
    lists.tools = tools.read(tool, max, &mut lists.warnings).into_iter().map(Arc::new).collect();
    lists.resources = resources.read(resource, max, &mut lists.warnings);
    lists.templates = templates.read(template, max, &mut lists.warnings);
    lists.prompts = prompts.read(prompt, max, &mut lists.warnings);
    Ok(lists)
}

pub async fn one(connection: &Connection, listed: ListKind) -> Result<Listing> {
    let max = connection.0.limits.description_bytes;
    let mut warnings = Vec::new();
    Ok(match listed {
        ListKind::Tools => {
            let tools = entries(connection, Kind::Tools, None).await?.read(tool, max, &mut warnings);
            Listing::Tools { tools: tools.into_iter().map(Arc::new).collect(), warnings }
        }
        ListKind::Resources => {
            let (resources, templates) = tokio::try_join!(
                entries(connection, Kind::Resources, None),
                entries(connection, Kind::Templates, None)
            )?;
            let resources = resources.read(resource, max, &mut warnings);
            let templates = templates.read(template, max, &mut warnings);
            Listing::Resources { resources, templates, warnings }
        }
        ListKind::Prompts => {
            let prompts = entries(connection, Kind::Prompts, None).await?.read(prompt, max, &mut warnings);
            Listing::Prompts { prompts, warnings }
        }
    })
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

    /// Why agents cannot get an entry, and what it lacks if they can.
    fn conform(self, fields: &Map<String, Value>) -> (Option<String>, Vec<String>) {
        let mut fields = fields.clone();
        match self {
            Self::Tools => match conform::tool(&mut fields) {
                Ok(notes) => (None, notes),
                Err(reason) => (Some(reason), Vec::new()),
            },
            Self::Resources | Self::Templates => (None, conform::resource(&mut fields, self.entry().1)),
            Self::Prompts => (None, conform::prompt(&mut fields)),
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
    unanswered: bool,
}

impl Entries {
    fn new(kind: Kind) -> Self {
        Self { kind, found: Vec::new(), warnings: Vec::new(), unanswered: false }
    }

    /// Parses each entry, with secrets masked and long texts truncated.
    fn read<T>(
        self,
        read: impl Fn(NamedEntry, &mut Vec<String>) -> T,
        max: usize,
        warnings: &mut Vec<String>,
    ) -> Vec<T> {
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
            let (left_out, notes) = self.kind.conform(&fields);
            let shown = one_line(&mask(&name), 80);
            // They quote the server: names of properties, values, types.
            let safe = |note: &str| one_line(&mask(note), MAX_NOTE);
            warnings.extend(left_out.map(|reason| format!("agents do not see {what} `{shown}`: {}", safe(&reason))));
            warnings.extend(notes.into_iter().map(|note| format!("{what} `{shown}`: {}", safe(&note))));
            read(NamedEntry { name, fields }, warnings)
        };
        self.found.into_iter().map(fit).collect()
    }
}

struct NamedEntry {
    name: String,
    fields: Map<String, Value>,
}

/// All pages of one list, within our limits. A start waits for it until a deadline.
async fn entries(connection: &Connection, kind: Kind, until: Option<Instant>) -> Result<Entries> {
    let mut entries = Entries::new(kind);
    let declared = connection.0.info.capabilities.iter().any(|name| name == kind.capability());
    // Tools are always requested, because some servers do not declare them.
    if !declared && kind != Kind::Tools {
        return Ok(entries);
    }
    let required = declared && kind == Kind::Tools;
    let until = match until {
        Some(until) if !required => Some(until.min(Instant::now() + OTHER_LISTS_WAIT)),
        None if !declared => Some(Instant::now() + OTHER_LISTS_WAIT),
        until => until,
    };
    let (method, field) = kind.names();
    let budget = &connection.0.budget;
    budget.reset(kind as usize);
    let mut names = HashSet::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for page in 0..connection.0.limits.pages {
        // An empty cursor is valid, but many servers use it to mark the end.
        let empty_cursor = cursor.as_deref() == Some("");
        let limits = page_limits(connection, until);
        let raw = match connection.ask(kind.request(cursor.take()), &format!("`{method}`"), &limits, None).await {
            Ok(raw) => raw,
            Err(_) if empty_cursor => return Ok(entries),
            Err(error) if page > 0 => {
                entries
                    .warnings
                    .push(format!("a page of `{method}` failed, only the pages before it are shown: {error}"));
                return Ok(entries);
            }
            Err(error @ Error::NeedsAuth(_)) => return Err(error),
            Err(error) if connection.0.ledger.close_reason().is_some() => return Err(error),
            Err(Error::Connection { server, message }) if required => {
                return Err(Error::Connection { server, message });
            }
            Err(error) => {
                let (reason, refused) = match error {
                    Error::Protocol { message, .. } => (message, true),
                    Error::Connection { message, .. } => (message, false),
                    Error::Timeout { limit, .. } => {
                        entries.unanswered = declared;
                        (format!("no answer within {} s", limit.as_secs_f64()), false)
                    }
                    error => (error.to_string(), false),
                };
                // Many servers with resources do not support templates.
                if declared && !(refused && kind == Kind::Templates) {
                    entries.warnings.push(format!("`{method}` failed: {reason}"));
                }
                return Ok(entries);
            }
        };
        let page: BTreeMap<String, &RawValue> =
            heavy(raw.get().len(), || serde_json::from_str(raw.get()).unwrap_or_default());
        match page.get(field).and_then(|list| heavy(list.get().len(), || budget::read(list, kind as usize, budget))) {
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

/// The time for one page.
fn page_limits(connection: &Connection, until: Option<Instant>) -> RequestLimits {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let limit = left.map_or(connection.0.timeout, |left| left.min(connection.0.timeout));
    RequestLimits { idle: limit, total: limit, since: Instant::now(), setting: "timeout" }
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
            // A rule for such a name would apply to other tools as well.
            if self.kind == Kind::Tools && (is_glob(&name) || name.contains(char::is_control)) {
                let shown = one_line(&mask(&name), 80);
                self.warnings.push(format!(
                    "ignored tool `{shown}`: its name contains a line break or one of the characters * ? [ {{ \\, which \
                     have a meaning in rules"
                ));
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
    let mut entries = Entries::new(Kind::Tools);
    entries.add(items, &mut HashSet::new(), usize::MAX);
    entries.read(tool, usize::MAX, &mut Vec::new()).into_iter().map(Arc::new).collect()
}

fn tool(entry: NamedEntry, warnings: &mut Vec<String>) -> Tool {
    let NamedEntry { name, mut fields } = entry;
    if !matches!(fields.get("inputSchema"), Some(Value::Object(_))) {
        warnings
            .push(format!("tool `{}` has no valid `inputSchema`: it accepts any object", one_line(&mask(&name), 80)));
        fields.insert("inputSchema".to_owned(), json!({ "type": "object" }));
    }
    if let Some(pattern) = fields.get("inputSchema").and_then(Value::as_object).and_then(patterns::unsupported) {
        warnings.push(format!(
            "tool `{}`: arguments are not checked against the pattern `{}`, because look-around and back-references are \
             not supported",
            one_line(&mask(&name), 80),
            one_line(&mask(pattern), 80)
        ));
    }
    let mut object = |key: &str| match fields.get_mut(key) {
        Some(schema @ Value::Object(_)) => match schema.take() {
            Value::Object(schema) => Some(Arc::new(schema)),
            _ => None,
        },
        _ => None,
    };
    let (input_schema, output_schema) = (object("inputSchema").unwrap_or_default(), object("outputSchema"));
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let annotations = fields.get("annotations");
    let hint = |key: &str| annotations.and_then(|annotations| annotations.get(key)).and_then(Value::as_bool);
    Tool {
        title: text(fields.get("title")).or_else(|| text(annotations.and_then(|annotations| annotations.get("title")))),
        description: text(fields.get("description")).unwrap_or_default(),
        input_schema,
        output_schema,
        annotations: Annotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        },
        name: name.into(),
        subject: Subject::Tool,
        raw: Arc::new(Value::Object(fields)),
    }
}

fn name_of(fields: &Map<String, Value>, default: &str) -> String {
    fields.get("name").and_then(Value::as_str).unwrap_or(default).to_owned()
}

fn resource(entry: NamedEntry, _: &mut Vec<String>) -> Resource {
    let NamedEntry { name: uri, fields } = entry;
    Resource { name: name_of(&fields, &uri), uri, raw: Arc::new(Value::Object(fields)) }
}

fn template(entry: NamedEntry, _: &mut Vec<String>) -> ResourceTemplate {
    let NamedEntry { name: uri_template, fields } = entry;
    ResourceTemplate { name: name_of(&fields, &uri_template), uri_template, raw: Arc::new(Value::Object(fields)) }
}

fn prompt(entry: NamedEntry, _: &mut Vec<String>) -> Prompt {
    Prompt { name: entry.name, raw: Arc::new(Value::Object(entry.fields)) }
}
