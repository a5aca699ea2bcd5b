//! Converts our servers to the text of a foreign file. Reads and writes no files, and expands nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::format::{Disabled, Syntax};
use super::literals::Literals;
use super::notes::Notes;
use super::{Dialect, file, outgoing};
use crate::config::edit::{self, Edit, EditError};
use crate::config::expand::{Reference, references};
use crate::config::shape::keys::{DEV, OAUTH, Role, SERVER, Table};
use crate::config::spec::{Config, Definition, Input, InputKind, ServerSpec, ToolRule};
use crate::model::Level;
use crate::text::one_line;

/// Servers in the format of another program.
#[derive(Debug, Default)]
pub struct Export {
    dialect: Option<Dialect>,
    servers: Vec<(String, Map<String, Value>)>,
    inputs: Vec<Value>,
    /// The disabled servers, if the program has a list of them.
    disabled: Vec<String>,
    /// Server → what could not be exported.
    pub notes: BTreeMap<String, Vec<String>>,
}

/// Converts these servers.
pub fn export<'a>(dialect: Dialect, definitions: impl IntoIterator<Item = &'a Definition>, config: &Config) -> Export {
    let mut export = Export { dialect: Some(dialect), ..Export::default() };
    let mut variables = Literals::default();
    for definition in definitions {
        let name = definition.name.to_string();
        let mut notes = Notes::default();
        let mut spec = ServerSpec { tools: tools(definition), ..definition.spec.clone() };
        variables.hide(&mut spec.launch, &name, &mut notes);
        notes.add_list("not exported (unknown to mcp-sidecar)", &unknown(&definition.written));
        match outgoing::write(dialect, &name, &spec, &mut notes) {
            Ok(entry) => {
                if dialect.format().export.inputs {
                    export.declare(definition, config);
                }
                if !spec.enabled && matches!(dialect.format().export.disabled, Disabled::List(_)) {
                    export.disabled.push(name.clone());
                }
                export.servers.push((name.clone(), entry));
            }
            Err(reason) => notes.add(format!("not exported: {reason}")),
        }
        let notes = notes.into_list();
        if !notes.is_empty() {
            export.notes.insert(name, notes);
        }
    }
    export
}

impl Export {
    /// A new file with these servers.
    pub fn text(&self) -> Result<String, EditError> {
        self.merged("")
    }

    /// Adds the servers to the text of an existing file. Everything else stays unchanged.
    pub fn merged(&self, text: &str) -> Result<String, EditError> {
        let Some(dialect) = self.dialect else { return Ok(text.to_owned()) };
        let mut text = text.to_owned();
        if self.servers.is_empty() && dialect.format().syntax == Syntax::Json && text.trim().is_empty() {
            text = edit::apply(&text, &[Edit::set(&[dialect.format().section], json!({}))])?;
        }
        for (name, entry) in &self.servers {
            let comments = self.notes.get(name).map(Vec::as_slice).unwrap_or_default();
            text = file::put(dialect, &text, name, entry, comments)?;
        }
        if let Disabled::List(list) = dialect.format().export.disabled
            && !self.disabled.is_empty()
        {
            text = file::disable(&text, list, &self.disabled)?;
        }
        if self.inputs.is_empty() { Ok(text) } else { edit::add_inputs(&text, &self.inputs) }
    }

    fn declare(&mut self, definition: &Definition, config: &Config) {
        for reference in references(&definition.spec.launch) {
            let Reference::Input(id) = reference else { continue };
            if self.inputs.iter().any(|known| known.get("id").and_then(Value::as_str) == Some(&id)) {
                continue;
            }
            // Inputs of the same file take precedence.
            let mut inputs = config.inputs.iter().filter(|input| input.id == id);
            let own = inputs.clone().find(|input| input.file == definition.file);
            if let Some(input) = own.or_else(|| inputs.next()) {
                self.inputs.push(written(input));
            }
        }
    }
}

/// The rules of the definition, with the stricter ones of entries that only restrict it.
fn tools(definition: &Definition) -> Vec<ToolRule> {
    let mut tools = definition.spec.tools.clone();
    for rule in definition.restrictions.iter().flat_map(|restriction| &restriction.tools) {
        match tools.iter_mut().find(|own| own.pattern == rule.pattern) {
            Some(own) if rule.level.rest < own.level.rest => own.level = rule.level.clone(),
            Some(_) => {}
            // A wider level only keeps a tool from a stricter rule beside it.
            None if rule.level.rest.widens() => {
                tools.push(ToolRule { level: Level::RequireApproval.into(), ..rule.clone() });
            }
            None => tools.push(rule.clone()),
        }
    }
    tools
}

/// The keys of an entry that we do not know, and therefore cannot export.
fn unknown(written: &Value) -> Vec<String> {
    let of = |holder: Option<&Value>, table: &Table, before: &str| -> Vec<String> {
        let keys = holder.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let ours = |key: &str| table.key(key).is_some_and(|key| matches!(key.role, Role::Own | Role::Alias(_)));
        // `$comment`, `_note` and `//` are comments.
        let unknown = keys.filter(|key| !ours(key) && !key.starts_with(['$', '_', '/']));
        unknown.map(|key| format!("`{before}{}`", one_line(key, 40))).collect()
    };
    let mut unknown = of(Some(written), &SERVER, "");
    unknown.extend(of(written.get("dev"), &DEV, "dev."));
    unknown.extend(of(written.get("oauth"), &OAUTH, "oauth."));
    unknown
}

fn written(input: &Input) -> Value {
    let mut entry = Map::from_iter([("id".to_owned(), json!(input.id))]);
    let mut put = |key: &str, value: Value| {
        entry.insert(key.to_owned(), value);
    };
    match &input.kind {
        InputKind::Prompt => put("type", json!("promptString")),
        InputKind::Pick(options) => {
            put("type", json!("pickString"));
            let option = |(label, value): &(String, String)| {
                if label == value { json!(value) } else { json!({ "label": label, "value": value }) }
            };
            put("options", options.iter().map(option).collect());
        }
    }
    put("description", json!(input.description));
    if let Some(default) = &input.default {
        put("default", json!(default));
    }
    if input.password {
        put("password", json!(true));
    }
    Value::Object(entry)
}
