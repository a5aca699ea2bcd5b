//! Validates arguments against a tool's schema before they are sent.
//!
//! A server writes the schema and an agent the arguments, so both may be made to take forever. Patterns run in linear
//! time, everything that is not small runs on its own thread, and the caller waits for it only for a short time.

mod fan_out;
mod simple;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use jsonschema::PatternOptions;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::snapshot::OfferedTool;
use crate::model::{ServerName, Violation};

/// How many violations are reported. A bad document can have thousands.
const MAX_VIOLATIONS: usize = 20;
/// How long a call waits for the validation of its arguments. After that, they are sent unchecked.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How many validations may run at a time for each server. One that exceeds its time cannot be stopped.
const MAX_RUNNING: usize = 4;
/// Schemas and arguments with fewer values than this are validated by the caller.
const FEW_VALUES: usize = 1_000;
/// The size of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Deep schemas are validated by recursion.
const STACK: usize = 16 << 20;
/// The nice value of a thread that validates.
#[cfg(target_os = "linux")]
const LOWEST_PRIORITY: i32 = 19;

/// Keywords by which a schema can apply itself to a value more than once, or compare values with each other.
const EXPENSIVE: &[&str] = &[
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependentSchemas",
    "dependencies",
    "uniqueItems",
    "contains",
    "pattern",
    "patternProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The validations that run, by the server of their tool; those of forms have no server. The `std` lock is private to this
/// file and held for a lookup.
static RUNNING: Mutex<BTreeMap<Option<ServerName>, usize>> = Mutex::new(BTreeMap::new());

/// A tool's input schema, compiled once.
pub enum Checker {
    Compiled(Box<jsonschema::Validator>),
    /// The schema is invalid, refers to other documents, which are never loaded, or takes too long. The arguments are
    /// sent unchecked: rejecting the call would punish the user for the author's mistake.
    Unusable,
}

impl Checker {
    pub fn compile(schema: &Map<String, Value>) -> Self {
        Self::build(schema, false)
    }

    /// `formats` also checks formats, such as dates. Calls do not: servers often state formats that they do not mean.
    fn build(schema: &Map<String, Value>, formats: bool) -> Self {
        if fan_out::is_too_large(schema) {
            tracing::warn!("the arguments of a tool are not checked: its schema applies too many schemas to one value");
            return Self::Unusable;
        }
        let mut schema = schema.clone();
        let compiled = build(&schema, formats)
            .or_else(|| {
                // The validator does not know this dialect. Most schemas mean the same in 2020-12.
                schema.remove("$schema")?;
                build(&schema, formats)
            })
            .or_else(|| remove_unsupported_patterns(&mut schema).then(|| build(&schema, formats)).flatten());
        compiled.map_or(Self::Unusable, |validator| Self::Compiled(Box::new(validator)))
    }

    /// The violations in these arguments. Empty if they can be sent.
    pub fn check(&self, arguments: &Map<String, Value>) -> Vec<Violation> {
        let Self::Compiled(validator) = self else { return Vec::new() };
        let arguments = Value::Object(arguments.clone());
        validator
            .iter_errors(&arguments)
            .take(MAX_VIOLATIONS)
            .map(|error| Violation {
                path: error.instance_path().to_string(),
                message: crate::text::one_line(&error.to_string(), 300),
            })
            .collect()
    }
}

/// The violations in the arguments of a call. None if validating them takes too long.
pub async fn check(tool: &Arc<OfferedTool>, arguments: &Arc<Map<String, Value>>) -> Vec<Violation> {
    if simple::are_valid(&tool.tool.input_schema, arguments) {
        return Vec::new();
    }
    if is_small(&tool.tool.input_schema, arguments) {
        return tool.checker().check(arguments);
    }
    let (done, checked) = oneshot::channel();
    if !start(tool, arguments, |violations| drop(done.send(violations))) {
        return Vec::new();
    }
    match tokio::time::timeout(TIME_LIMIT, checked).await {
        Ok(violations) => violations.unwrap_or_default(),
        Err(_) => give_up(tool),
    }
}

/// The same for arguments that the user changed, without an await.
pub fn check_now(tool: &Arc<OfferedTool>, arguments: &Arc<Map<String, Value>>) -> Vec<Violation> {
    let (done, checked) = mpsc::channel();
    if !start(tool, arguments, move |violations| drop(done.send(violations))) {
        return Vec::new();
    }
    match checked.recv_timeout(TIME_LIMIT) {
        Err(mpsc::RecvTimeoutError::Timeout) => give_up(tool),
        violations => violations.unwrap_or_default(),
    }
}

/// The violations in a form that the user filled in.
pub fn check_form(schema: &Map<String, Value>, fields: &Map<String, Value>, formats: bool) -> Vec<Violation> {
    if is_small(schema, fields) {
        return Checker::build(schema, formats).check(fields);
    }
    let (done, checked) = mpsc::channel();
    let (schema, fields) = (schema.clone(), fields.clone());
    let validate = move || Checker::build(&schema, formats).check(&fields);
    spawn(None, validate, move |violations| drop(done.send(violations)));
    checked.recv_timeout(TIME_LIMIT).unwrap_or_default()
}

/// Starts the validation of arguments. False if they are not validated.
fn start(
    tool: &Arc<OfferedTool>,
    arguments: &Arc<Map<String, Value>>,
    done: impl FnOnce(Vec<Violation>) + Send + 'static,
) -> bool {
    let (tool, arguments, server) = (tool.clone(), arguments.clone(), tool.id.server.clone());
    !tool.is_unchecked() && spawn(Some(server), move || tool.checker().check(&arguments), done)
}

/// A validation that runs until this is dropped.
struct Running(Option<ServerName>);

impl Running {
    fn begin(server: Option<ServerName>) -> Option<Self> {
        let mut running = lock();
        let count = running.entry(server.clone()).or_default();
        if *count >= MAX_RUNNING {
            let server = server.as_ref().map_or("", ServerName::as_str);
            tracing::warn!(server, "arguments are not validated: {MAX_RUNNING} validations are still running");
            return None;
        }
        *count += 1;
        Some(Self(server))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = lock();
        if let Some(count) = running.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.0);
            }
        }
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<Option<ServerName>, usize>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a validation on its own thread. False if too many of this server have not ended.
fn spawn(
    server: Option<ServerName>,
    validate: impl FnOnce() -> Vec<Violation> + Send + 'static,
    done: impl FnOnce(Vec<Violation>) + Send + 'static,
) -> bool {
    let Some(running) = Running::begin(server) else { return false };
    let work = move || {
        let _running = running;
        // One that does not end must not slow down the engine. On Linux this is about the thread.
        #[cfg(target_os = "linux")]
        rustix::process::setpriority_process(None, LOWEST_PRIORITY).ok();
        done(validate());
    };
    std::thread::Builder::new().name("validation".to_owned()).stack_size(STACK).spawn(work).is_ok()
}

/// The schema takes too long, now and later.
fn give_up(tool: &OfferedTool) -> Vec<Violation> {
    tracing::warn!(tool = %tool.id, "validating the arguments takes longer than {TIME_LIMIT:?}; they are sent unchecked");
    tool.set_unchecked();
    Vec::new()
}

/// Whether validating takes microseconds.
fn is_small(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> bool {
    let (mut values, mut others) = (FEW_VALUES, FEW_VALUES);
    fields_are_few(schema, &mut values, true) && fields_are_few(arguments, &mut others, false)
}

fn fields_are_few(fields: &Map<String, Value>, left: &mut usize, is_schema: bool) -> bool {
    fields
        .iter()
        .all(|(key, value)| !(is_schema && EXPENSIVE.contains(&key.as_str())) && values_are_few(value, left, is_schema))
}

fn values_are_few(value: &Value, left: &mut usize, is_schema: bool) -> bool {
    *left = left.saturating_sub(1);
    *left > 0
        && match value {
            Value::Array(items) => items.iter().all(|item| values_are_few(item, left, is_schema)),
            Value::Object(fields) => fields_are_few(fields, left, is_schema),
            // Long texts count as many values.
            Value::String(text) => {
                *left = left.saturating_sub(text.len() >> 8);
                *left > 0
            }
            _ => true,
        }
}

/// Removes the patterns that cannot be matched in linear time, such as look-ahead. Returns whether there were any.
fn remove_unsupported_patterns(schema: &mut Map<String, Value>) -> bool {
    let mut removed = false;
    if schema.get("pattern").and_then(Value::as_str).is_some_and(|pattern| !is_supported(pattern)) {
        schema.remove("pattern");
        removed = true;
    }
    if let Some(Value::Object(patterns)) = schema.get_mut("patternProperties") {
        let count = patterns.len();
        patterns.retain(|pattern, _| is_supported(pattern));
        if patterns.len() < count {
            // They would forbid what the removed patterns allow.
            schema.remove("additionalProperties");
            schema.remove("unevaluatedProperties");
            removed = true;
        }
    }
    for (key, value) in schema.iter_mut() {
        // These contain values, not schemas.
        if ["enum", "const", "default", "examples"].contains(&key.as_str()) {
            continue;
        }
        let schemas: Box<dyn Iterator<Item = &mut Value>> = match value {
            Value::Array(items) => Box::new(items.iter_mut()),
            value => Box::new(std::iter::once(value)),
        };
        for schema in schemas.filter_map(Value::as_object_mut) {
            removed |= remove_unsupported_patterns(schema);
        }
    }
    removed
}

/// Whether a pattern can be matched in linear time.
fn is_supported(pattern: &str) -> bool {
    build(&Map::from_iter([("pattern".to_owned(), pattern.into())]), false).is_some()
}

fn build(schema: &Map<String, Value>, formats: bool) -> Option<jsonschema::Validator> {
    let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
    let options = jsonschema::options().should_validate_formats(formats).with_pattern_options(patterns);
    options.build(&Value::Object(schema.clone())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn violations(schema: Value, arguments: Value) -> String {
        let (Value::Object(schema), Value::Object(arguments)) = (schema, arguments) else { panic!("objects only") };
        let violations = Checker::compile(&schema).check(&arguments);
        violations.iter().map(|v| format!("{}: {}", v.path, v.message)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn violations_have_a_path_and_a_message() {
        let schema = json!({ "type": "object", "required": ["path"], "properties": {
            "path": { "type": "string" }, "depth": { "type": "object", "properties": { "max": { "type": "integer", "maximum": 9 } } } } });
        insta::assert_snapshot!(violations(schema.clone(), json!({ "path": 1, "depth": { "max": 10 } })), @r#"
        /path: 1 is not of type "string"
        /depth/max: 10 is greater than the maximum of 9
        "#);
        insta::assert_snapshot!(violations(schema, json!({})), @r#": "path" is a required property"#);
    }

    #[test]
    fn external_references_are_never_loaded_and_only_disable_the_check() {
        for target in ["http://127.0.0.1:9/schema.json", "file:///etc/passwd"] {
            assert_eq!(violations(json!({ "properties": { "a": { "$ref": target } } }), json!({ "a": 1 })), "");
        }
    }

    #[test]
    fn recursive_schemas_are_supported() {
        let schema = json!({ "type": "object", "properties": { "child": { "$ref": "#" }, "n": { "type": "number" } } });
        assert_eq!(violations(schema.clone(), json!({ "child": { "child": {} } })), "");
        assert!(violations(schema, json!({ "child": { "n": "x" } })).contains("/child/n"));
    }

    #[test]
    fn an_unknown_dialect_is_checked_as_the_newest_one() {
        let schema = json!({ "$schema": "https://example.test/other", "required": ["a"] });
        assert!(violations(schema, json!({})).contains("required"));
    }

    #[test]
    fn a_pattern_that_needs_backtracking_is_left_out_and_the_rest_is_checked() {
        let schema = json!({ "properties": { "a": { "pattern": "(?=.*b)a", "maxLength": 3 }, "b": { "pattern": "^b+$" } },
            "patternProperties": { "^(?!x)": { "type": "string" } }, "additionalProperties": false });
        assert_eq!(violations(schema.clone(), json!({ "a": "zzz", "b": "bb", "c": 1 })), "");
        insta::assert_snapshot!(violations(schema, json!({ "a": "zzzz", "b": "x" })), @r#"
        /a: "zzzz" is longer than 3 characters
        /b: "x" does not match "^b+$"
        "#);
        // A property may be called `pattern`, and a value is not a schema.
        let schema =
            json!({ "properties": { "pattern": { "const": { "pattern": "(?=x)" } }, "q": { "pattern": "(?=x)" } } });
        assert_eq!(violations(schema.clone(), json!({ "pattern": { "pattern": "(?=x)" }, "q": "y" })), "");
        assert_ne!(violations(schema, json!({ "pattern": "(?=x)" })), "");
    }

    fn offered(schema: Value) -> Arc<OfferedTool> {
        offered_by("demo", schema)
    }

    fn offered_by(server: &str, schema: Value) -> Arc<OfferedTool> {
        let raw = json!({ "name": "t", "inputSchema": schema });
        let tool = crate::server::connection::tools_from(vec![raw]).remove(0);
        let id = crate::model::ToolId::new(server.parse().unwrap(), "t");
        Arc::new(OfferedTool::new(
            id,
            tool,
            crate::policy::Ruling { level: crate::model::Level::RequireApproval, source: "test".into() },
        ))
    }

    /// Each level of the arguments is validated twice as often as the one around it.
    fn exponential() -> (Value, Arc<Map<String, Value>>) {
        let schema = json!({ "$defs": { "n": { "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } } },
            "$ref": "#/$defs/n" });
        let deep = (0..60).fold(json!({}), |inner, _| json!({ "a": inner }));
        (schema, Arc::new(deep.as_object().unwrap().clone()))
    }

    #[tokio::test]
    async fn a_schema_that_takes_forever_delays_one_call_for_a_moment() {
        let (schema, arguments) = exponential();
        let tool = offered_by("forever", schema);
        let meanwhile = async {
            // The runtime has one thread: this would not run if the validation used it.
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!tool.is_unchecked());
        };
        let (violations, ()) = tokio::join!(check(&tool, &arguments), meanwhile);
        assert!(violations.is_empty() && tool.is_unchecked());
        let again = std::time::Instant::now();
        assert!(check(&tool, &arguments).await.is_empty());
        assert!(check_now(&tool, &arguments).is_empty());
        assert!(again.elapsed() < TIME_LIMIT, "the next call does not wait");
        let running: Vec<_> = (1..MAX_RUNNING).map(|_| Running::begin(Some(tool.id.server.clone()))).collect();
        assert!(running.iter().all(Option::is_some) && Running::begin(Some(tool.id.server.clone())).is_none());
        assert!(Running::begin(Some("other".parse().unwrap())).is_some(), "other servers are checked");
    }

    #[tokio::test]
    async fn a_schema_that_applies_itself_to_the_same_value_ends() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "allOf": [{ "$ref": "#" }] }),
            json!({ "anyOf": [{ "not": { "$ref": "#" } }] }),
        ] {
            check(&offered(schema), &Arc::default()).await;
        }
    }
}
