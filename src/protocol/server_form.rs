//! The form that adds or edits a server: its fields, what they mean as a definition, and what is wrong with it. Every front
//! shows the same form and sends what it yields to `mcp.server.add` or `mcp.server.update`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answers::{CheckedForm, FilledForm};
use super::commands::{BundleFile, Command, RegistryServer, ServerAdd, ServerForm, ServerUpdate};
use super::errors::Violation;
use super::form::{self, Form};
use super::types::{Object, ServerStatus};
use crate::config::shape::shell_split::{definition_of_line, shell_split};
use crate::config::templates::{Placeholder, Template, templates};
use crate::config::{self, Content, Severity, Source, tree};
use crate::engine::Engine;
use crate::engine::snapshot::ServerView;
use crate::model::{Error, Result, Scope, ServerName};
use crate::policy::trust::{Fingerprint, Summary};
use crate::registry::Offer;
use crate::registry::bundle::Bundle;
use crate::text::one_line;

/// The keys of a definition that the form shows. It keeps all others as they are.
const SHOWN: [&str; 8] = ["command", "args", "env", "cwd", "url", "headers", "port", "description"];
/// The files that a server can be added to.
const SCOPES: [Scope; 3] = [Scope::Project, Scope::Local, Scope::User];

/// What a form starts from.
struct Base {
    /// Where the definition comes from; `None` for a new server.
    edited: Option<Arc<ServerView>>,
    name: String,
    config: Object,
    inputs: Vec<Value>,
    placeholder: Option<Placeholder>,
    /// What the user should know about where it comes from.
    notes: Vec<String>,
    bundle: Option<BundleFile>,
}

/// The form with its first values.
pub async fn form(engine: &Engine, params: &ServerForm) -> Result<FilledForm> {
    let base = Base::find(engine, params).await?;
    let fields = Form::of_schema(&base.schema(engine)).fields;
    let values = base.values(engine);
    Ok(match &base.edited {
        Some(_) => FilledForm {
            title: format!("Edit the server `{}`", base.name),
            verb: "Save".to_owned(),
            fields,
            values,
            command: ServerUpdate::NAME.to_owned(),
        },
        None => FilledForm {
            title: "Add a server".to_owned(),
            verb: "Add the server".to_owned(),
            fields,
            values,
            command: ServerAdd::NAME.to_owned(),
        },
    })
}

/// What was entered, as params of the command that the form names, and what is wrong with it.
pub async fn check(engine: &Engine, params: &ServerForm, entered: &Object) -> Result<CheckedForm> {
    let base = Base::find(engine, params).await?;
    let (values, mut problems) = form::check(&base.schema(engine), entered);
    let config = base.config(&values);
    let text = |key: &str| values.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, scope) = match &base.edited {
        Some(view) => (view.definition.name.to_string(), view.definition.scope),
        None => (text("name"), SCOPES.into_iter().find(|scope| scope.as_str() == text("scope")).unwrap_or(Scope::User)),
    };
    let about = |note: &String| Violation { path: String::new(), message: note.clone() };
    let mut warnings: Vec<Violation> = base.notes.iter().map(about).collect();
    let mut preview = Vec::new();
    if problems.is_empty() {
        let mut report = |path: &str, message: String| problems.push(Violation { path: path.to_owned(), message });
        let taken = engine.now().servers.values().any(|view| {
            base.edited.is_none() && view.definition.key.as_str() == name && view.definition.scope == scope
        });
        match ServerName::new(&name) {
            Ok(_) if taken => report("/name", format!("the server `{name}` already exists there")),
            Ok(_) => {}
            Err(error) => report("/name", error.to_string()),
        }
        if let Some(placeholder) = &base.placeholder
            && text(&placeholder.field) == placeholder.value
        {
            report(&format!("/{}", placeholder.field), format!("enter the real {}", placeholder.title.to_lowercase()));
        }
        let loaded = findings(engine, &name, &config, &base.inputs, scope, &mut problems, &mut warnings);
        if base.edited.is_none() {
            preview = self::preview(engine, &loaded);
        }
    }
    let mut arguments = Map::from_iter([
        ("server".to_owned(), json!(name)),
        ("config".to_owned(), Value::Object(config)),
        ("scope".to_owned(), json!(scope.as_str())),
    ]);
    if !base.inputs.is_empty() {
        arguments.insert("inputs".to_owned(), Value::Array(base.inputs));
    }
    if let Some(bundle) = base.bundle {
        arguments.insert("bundle".to_owned(), json!(bundle));
    }
    Ok(CheckedForm { arguments, problems, warnings, preview })
}

impl Base {
    async fn find(engine: &Engine, params: &ServerForm) -> Result<Self> {
        let new = |name: String, config: Value| Self {
            edited: None,
            name: free_name(engine, &name),
            config: config.as_object().cloned().unwrap_or_default(),
            inputs: Vec::new(),
            placeholder: None,
            notes: Vec::new(),
            bundle: None,
        };
        let ServerForm { template, command_line, config, registry, bundle, server } = params;
        match (template, command_line, config, server, registry, bundle) {
            (Some(id), None, None, None, None, None) => {
                let Template { id, config, inputs, placeholder, title: _, description: _ } = templates()
                    .iter()
                    .find(|template| template.id == *id)
                    .cloned()
                    .ok_or_else(|| Error::NotFound(format!("no template named `{}`", one_line(id, 80))))?;
                Ok(Self { inputs, placeholder, ..new(id, config) })
            }
            (None, None, Some(config), None, None, None) => Ok(new("server".to_owned(), Value::Object(config.clone()))),
            (None, Some(line), None, None, None, None) => {
                let config = definition_of_line(line).map_err(|reason| Error::InvalidParams(reason.to_owned()))?;
                Ok(new(name_of(line), config))
            }
            (None, None, None, None, Some(RegistryServer { name, version, package }), None) => {
                let Offer { name, config, inputs, notes } =
                    engine.registry_offer(name, version.as_deref(), package.as_deref()).await?;
                Ok(Self { inputs, notes, ..new(name, config) })
            }
            (None, None, None, None, None, Some(path)) => {
                let Bundle { offer: Offer { name, config, inputs, notes }, sha256 } = engine.bundle_offer(path).await?;
                let bundle = Some(BundleFile { path: path.clone(), sha256 });
                Ok(Self { inputs, notes, bundle, ..new(name, config) })
            }
            (None, None, None, Some(server), None, None) => {
                let view = engine.now().server(server)?.clone();
                let config = ServerStatus::from(&*view).config.as_object().cloned().unwrap_or_default();
                let name = view.definition.key.to_string();
                Ok(Self {
                    edited: Some(view),
                    name,
                    config,
                    inputs: Vec::new(),
                    placeholder: None,
                    notes: Vec::new(),
                    bundle: None,
                })
            }
            _ => Err(Error::InvalidParams(
                "`mcp.server.form` takes one of `template`, `commandLine`, `config`, `registry`, `bundle` and `server`"
                    .to_owned(),
            )),
        }
    }

    fn is_remote(&self) -> bool {
        self.config.contains_key("url")
    }

    fn schema(&self, engine: &Engine) -> Object {
        let pairs = |title: &str, help: &str| {
            json!({ "type": "array", "title": title, "description": help, "items": { "type": "object",
                "required": ["name"], "properties": {
                    "name": { "type": "string", "title": "Name", "minLength": 1 },
                    "value": { "type": "string", "title": "Value" } } } })
        };
        let mut fields = Map::new();
        let mut required = Vec::new();
        let mut add = |name: &str, is_required: bool, schema: Value| {
            required.extend(is_required.then(|| json!(name)));
            fields.insert(name.to_owned(), schema);
        };
        let is_new = self.edited.is_none();
        if is_new {
            add(
                "name",
                true,
                json!({ "type": "string", "title": "Name", "minLength": 1,
                "description": "Agents see it as part of the names of its tools." }),
            );
        }
        if let Some(Placeholder { field, title, value: _ }) = &self.placeholder
            && field != "url"
        {
            add(field, true, json!({ "type": "string", "title": title, "minLength": 1 }));
        }
        if self.is_remote() {
            add("url", true, json!({ "type": "string", "title": "URL", "minLength": 1 }));
            add("headers", false, pairs("Headers", "Sent with each request. Write a secret as `${input:NAME}`."));
        } else if self.config.contains_key("command") {
            add(
                "command",
                true,
                json!({ "type": "string", "title": "Program", "minLength": 1,
                "description": "It is not run in a shell." }),
            );
            add("args", false, json!({ "type": "array", "title": "Arguments", "items": { "type": "string" } }));
            add("env", false, pairs("Environment", "Variables for the program. Write a secret as `${input:NAME}`."));
            add("cwd", false, json!({ "type": "string", "title": "Working folder" }));
        } else if self.config.contains_key("port") {
            add("port", true, json!({ "type": "integer", "title": "Port", "minimum": 1, "maximum": 65535 }));
        }
        // A short limit: one line is enough.
        add("description", false, json!({ "type": "string", "title": "Description", "maxLength": 200 }));
        if is_new {
            let files = engine.loaded().borrow().clone();
            let choice =
                |(scope, file): (Scope, String)| json!({ "const": scope.as_str(), "title": about(scope, &file) });
            let scopes: Vec<Value> = scopes(&files).into_iter().map(choice).collect();
            add("scope", true, json!({ "title": "File", "oneOf": scopes }));
        }
        let schema = json!({ "type": "object", "properties": fields, "required": required });
        schema.as_object().cloned().unwrap_or_default()
    }

    /// The first values of the form. A placeholder is none: the user has to enter it.
    fn values(&self, engine: &Engine) -> Object {
        let mut values = Map::new();
        if self.edited.is_none() {
            values.insert("name".to_owned(), json!(self.name));
            let files = engine.loaded().borrow().clone();
            if let Some((scope, _)) = scopes(&files).first() {
                values.insert("scope".to_owned(), json!(scope.as_str()));
            }
        }
        for (key, value) in self.config.iter().filter(|(key, _)| SHOWN.contains(&key.as_str())) {
            let value = match (key.as_str(), value) {
                ("env" | "headers", Value::Object(pairs)) => {
                    pairs.iter().map(|(name, value)| pair(name, value)).collect()
                }
                ("command", Value::Array(words)) => match words.split_first() {
                    Some((program, rest)) => {
                        values.insert("args".to_owned(), Value::Array(rest.to_vec()));
                        program.clone()
                    }
                    None => continue,
                },
                _ => value.clone(),
            };
            values.insert(key.clone(), value);
        }
        if let Some(placeholder) = &self.placeholder {
            values.retain(|_, value| value.as_str() != Some(&placeholder.value));
            if let Some(Value::Array(args)) = values.get_mut("args") {
                args.retain(|arg| arg.as_str() != Some(&placeholder.value));
            }
        }
        values
    }

    /// The definition that the values describe.
    fn config(&self, values: &Object) -> Object {
        let mut config = self.config.clone();
        let is_list = config.get("command").is_some_and(Value::is_array);
        for key in SHOWN {
            let value = match (key, values.get(key)) {
                ("env" | "headers", Some(Value::Array(pairs))) => Some(unpaired(pairs, self.config.get(key))),
                (_, value) => value.cloned(),
            };
            let is_empty = |value: &Value| {
                value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
            };
            match value.filter(|value| !is_empty(value)) {
                Some(value) => drop(config.insert(key.to_owned(), value)),
                None => drop(config.shift_remove(key)),
            }
        }
        if let Some(placeholder) = &self.placeholder
            && let Some(entered) = values.get(&placeholder.field)
            && placeholder.field != "url"
        {
            let written = self.config.get("args").and_then(Value::as_array);
            let place = written.and_then(|args| args.iter().position(|arg| arg.as_str() == Some(&placeholder.value)));
            let args = config.entry("args").or_insert_with(|| json!([]));
            if let (Some(args), Some(place)) = (args.as_array_mut(), place) {
                args.insert(place.min(args.len()), entered.clone());
            }
        }
        if is_list && let Some(args) = config.shift_remove("args") {
            let words = config.get("command").cloned().into_iter().chain(args.as_array().cloned().unwrap_or_default());
            config.insert("command".to_owned(), words.collect());
        }
        config
    }
}

fn pair(name: &str, value: &Value) -> Value {
    match value {
        Value::Null => json!({ "name": name }),
        Value::String(text) => json!({ "name": name, "value": text }),
        other => json!({ "name": name, "value": other.to_string() }),
    }
}

/// Pairs as an object. A value that the form did not change keeps its type.
fn unpaired(pairs: &[Value], old: Option<&Value>) -> Value {
    let written = |one: &Value| {
        let name = one.get("name")?.as_str()?.to_owned();
        let kept = old.and_then(|old| old.get(&name)).filter(|kept| pair(&name, kept) == *one).cloned();
        Some((name, kept.unwrap_or_else(|| one.get("value").cloned().unwrap_or_else(|| json!("")))))
    };
    Value::Object(pairs.iter().filter_map(written).collect())
}

/// Everything that the config file would report about the server. Errors keep it from being written.
fn findings(
    engine: &Engine,
    name: &str,
    config: &Object,
    inputs: &[Value],
    scope: Scope,
    problems: &mut Vec<Violation>,
    warnings: &mut Vec<Violation>,
) -> config::Loaded {
    let file = json!({ "servers": { name: config }, "inputs": inputs }).to_string();
    let folder = engine.loaded().borrow().files.iter().find_map(|file| file.source.folder.clone());
    let source = Source { path: Path::new("/mcp.json").into(), scope, folder };
    let text = Content::Text(file.as_str().into());
    let limits = &engine.settings().borrow().limits.clone();
    let loaded = config::load(&[(source, text)], &BTreeMap::new(), limits);
    let parsed = tree::parse(&file, usize::MAX);
    let members = parsed.server(name).and_then(|member| member.value.members()).unwrap_or_default();
    for problem in loaded.files.iter().flat_map(|file| &file.problems) {
        let key = members
            .iter()
            .find(|member| member.key.span.start <= problem.span.start && problem.span.start <= member.value.span.end);
        let path = key.map(|member| format!("/{}", member.key.text)).unwrap_or_default();
        let help = problem.help.as_deref().map(|help| format!("; {help}")).unwrap_or_default();
        let found = Violation { path, message: format!("{}{help}", problem.message) };
        match problem.severity {
            Severity::Error => problems.push(found),
            Severity::Warning => warnings.push(found),
            Severity::Information | Severity::Hint => {}
        }
    }
    loaded
}

/// What the definition runs or connects to, as a trust question would show it.
fn preview(engine: &Engine, loaded: &config::Loaded) -> Vec<String> {
    let Some(definition) = loaded.config.servers.values().next() else { return Vec::new() };
    let environment = engine.environments().of(definition);
    let fingerprint = Fingerprint::of(definition, &loaded.config, &environment);
    Summary::of(definition, &fingerprint, &environment).lines(None)
}

/// The scopes that have a file here, with the file that a new server goes to.
fn scopes(loaded: &config::Loaded) -> Vec<(Scope, String)> {
    let file_of = |scope: Scope| {
        let files = || loaded.files.iter().filter(|file| file.source.scope == scope);
        let file = files().find(|file| file.exists).or_else(|| files().next())?;
        let path = &file.source.path;
        let within = file.source.folder.as_deref().and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        Some((scope, within.display().to_string()))
    };
    SCOPES.into_iter().filter_map(file_of).collect()
}

fn about(scope: Scope, file: &str) -> String {
    let who = match scope {
        Scope::Project => "for everyone who works on this project",
        Scope::Local => "for you, in this project",
        Scope::User | Scope::Session | Scope::Managed => "for you, everywhere",
    };
    format!("{file}: {who}")
}

/// A name for a server that was typed as one line: the package or program, or the host.
fn name_of(line: &str) -> String {
    let line = line.trim();
    let word = match line.split_once("://") {
        Some((_, rest)) => rest.split(['/', ':', '?']).next().unwrap_or_default().to_owned(),
        None => {
            let words = shell_split(line).unwrap_or_default();
            let runner = words.first().is_some_and(|word| matches!(word.as_str(), "npx" | "uvx" | "bunx" | "pnpx"));
            let named = words.iter().skip(usize::from(runner)).find(|word| !word.starts_with('-'));
            named.or(words.first()).cloned().unwrap_or_default()
        }
    };
    // The last part of a path or of a scoped package, without its version.
    let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = last.split('@').next().unwrap_or_default();
    let kept: String = plain.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name = kept.trim_matches('-').to_owned();
    if name.is_empty() { "server".to_owned() } else { name.chars().take(40).collect() }
}

/// The name, with a number if it is taken.
fn free_name(engine: &Engine, name: &str) -> String {
    let now = engine.now();
    let taken = |name: &str| now.servers.values().any(|view| view.definition.key.as_str() == name);
    let numbered = |number: usize| if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
    (1..=now.servers.len() + 1).map(numbered).find(|name| !taken(name)).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests;
