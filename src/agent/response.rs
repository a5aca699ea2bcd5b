//! Results for agents: a server's JSON with the fields that the agent's protocol version requires, and our own errors as
//! results that a model can read.

use std::borrow::Cow;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, PaginatedRequestParams};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::engine::gate::Outcome;
use crate::model::{Error, RawJson};
use crate::server::heavy;
use crate::text::{holds_hidden, mask, one_line, show_hidden, visible};

/// Begins the text for a model about a call that the user changed.
const EDITED: &str = "The user changed the arguments of this call before allowing it:";
/// The longest error text that is sent to a model.
const LONGEST: usize = 8_000;

/// Which fields a result needs since 2026-07-28.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// None: as the server sent it, before 2026-07-28.
    Plain,
    /// With a `resultType`.
    Typed,
    /// With a `resultType`, and marked as not cacheable.
    Cacheable,
}

impl Shape {
    pub fn apply(self, raw: RawJson) -> RawJson {
        if self == Self::Plain {
            return raw;
        }
        let parts = raw.parts();
        let mut fields = String::new();
        if parts.result_type.is_none() {
            fields.push_str(r#""resultType":"complete","#);
        }
        if self == Self::Cacheable && !parts.has_ttl {
            fields.push_str(r#""ttlMs":0,"#);
        }
        if self == Self::Cacheable && !parts.has_cache_scope {
            fields.push_str(r#""cacheScope":"private","#);
        }
        let Some(rest) = raw.get().trim_start().strip_prefix('{').filter(|_| !fields.is_empty()) else { return raw };
        // No comma before an empty object.
        let rest = rest.trim_start();
        let fields = if rest.starts_with('}') { fields.trim_end_matches(',') } else { fields.as_str() };
        let text = format!("{{{fields}{rest}");
        RawValue::from_string(text).map_or(raw, RawJson::from)
    }
}

/// Makes the titles and descriptions in a result as visible as they are to the user. Its texts are data and stay as they
/// are. The result is parsed only if it may contain a title: a description, a link, or a word that is written with escapes.
pub fn with_visible_titles(raw: RawJson) -> RawJson {
    let may_be_link =
        |word: &str| memchr::memmem::find(raw.content().unwrap_or_default().as_bytes(), word.as_bytes()).is_some();
    if !raw.parts().has_description && !["resource_link", "\\u005", "\\u006", "\\u007"].into_iter().any(may_be_link) {
        return raw;
    }
    heavy(raw.get().len(), || with_titles_shown(raw))
}

fn with_titles_shown(raw: RawJson) -> RawJson {
    let Ok(mut result) = serde_json::from_str::<Map<String, Value>>(raw.get()) else { return raw };
    let mut is_changed = false;
    let mut show = |value: Option<&mut Value>| {
        for value in value.into_iter().filter(|value| holds_hidden(value)) {
            show_hidden(value);
            is_changed = true;
        }
    };
    show(result.get_mut("description"));
    let blocks = result.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
    for block in blocks.filter(|block| block.get("type").is_some_and(|kind| kind == "resource_link")) {
        ["name", "title", "description"].into_iter().for_each(|key| show(block.get_mut(key)));
    }
    if is_changed { to_raw_value(&result).map_or(raw, RawJson::from) } else { raw }
}

/// A result that begins with a note for the model.
fn with_note(raw: RawJson, note: &str) -> RawJson {
    let Ok(mut result) = serde_json::from_str::<Map<String, Value>>(raw.get()) else { return raw };
    if let Some(content) = result.get_mut("content").and_then(Value::as_array_mut) {
        content.insert(0, json!({ "type": "text", "text": visible(&mask(note), LONGEST) }));
    }
    to_raw_value(&result).map_or(raw, RawJson::from)
}

/// The result of a call for a model, with a note if the user changed its arguments.
pub fn result(outcome: &Outcome) -> RawJson {
    let raw = match &outcome.edited {
        Some(edited) => with_note(outcome.result.raw.clone(), &format!("{EDITED} {edited}")),
        None => outcome.result.raw.clone(),
    };
    with_visible_titles(raw)
}

/// Replaces the URI in a result with the one that the agent requested.
pub fn with_shown_uri(raw: RawJson, own: &str, shown: &str) -> RawJson {
    let Ok(mut value) = serde_json::from_str::<Value>(raw.get()) else { return raw };
    for content in value.get_mut("contents").and_then(Value::as_array_mut).into_iter().flatten() {
        if content.get("uri").and_then(Value::as_str) == Some(own) {
            content["uri"] = Value::from(shown);
        }
    }
    to_raw_value(&value).map_or(raw, RawJson::from)
}

/// An error for a model: what happened, but neither a path nor how to change it. A model would follow such a recipe.
fn text_of(error: &Error) -> String {
    let text = match error {
        Error::InCall { cause, .. } => return text_of(cause),
        Error::Edited { difference, cause, .. } => format!("{EDITED} {difference}\n{}", text_of(cause)),
        Error::Denied { tool, reason, .. } => format!("{} was denied: {reason}", tool.describe()),
        Error::Unanswered { tool, reason, .. } => format!("{} was not allowed: {reason}", tool.describe()),
        Error::ToolDisabled { tool, .. } => format!("{} was denied: it is disabled", tool.describe()),
        Error::Disabled { server, .. } => format!("server `{server}` is disabled"),
        Error::NeedsTrust(server) => format!("server `{server}` is not available: the user has not trusted it"),
        Error::NeedsAuth(server) => format!("server `{server}` is not available: the user has to sign in first"),
        Error::NotRunning(server) => format!("server `{server}` is not running"),
        Error::Timeout { server, what, limit, setting: _ } => {
            format!("server `{server}` did not answer {what} within {} s", limit.as_secs_f64())
        }
        // The reasons name programs, files and variables of the user.
        Error::Connection { server, .. } => format!("server `{server}` is not connected"),
        Error::Process { server, .. } => format!("server `{server}` is not running: its process failed"),
        Error::Io(_) => "mcp-sidecar could not do this; the user can find the reason in its log".to_owned(),
        // The words of the server, or about the request.
        error @ (Error::InvalidParams(_)
        | Error::InvalidArguments { .. }
        | Error::NoServer(_)
        | Error::NoTool { .. }
        | Error::NoGrant(_)
        | Error::NotFound(_)
        | Error::Missing { .. }
        | Error::Conflict(_)
        | Error::Protocol { .. }
        | Error::StartedByAgent(_)
        | Error::CallerGone(_)
        | Error::Cancelled) => error.to_string(),
    };
    visible(&mask(&without_setting(&text)), LONGEST)
}

/// The text without the setting that raises a limit: `(`limits.tools` sets this limit)`.
fn without_setting(text: &str) -> Cow<'_, str> {
    let Some((before, rest)) = text.split_once(" (`") else { return Cow::Borrowed(text) };
    let is_setting = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    let behind = rest.split_once('`').filter(|(name, _)| is_setting(name)).map(|(_, behind)| behind);
    match behind.and_then(|behind| behind.strip_prefix(" sets this limit)").or_else(|| behind.strip_prefix(')'))) {
        Some(behind) => Cow::Owned(format!("{before}{}", without_setting(behind))),
        None => Cow::Owned(format!("{before} (`{}", without_setting(rest))),
    }
}

/// Why a call did not run, as a result that the model can read.
pub fn refusal(error: &Error) -> CallToolResult {
    let mut text = text_of(error);
    if let Some(violations) = error.violations().filter(|violations| violations.len() > 1) {
        for violation in violations {
            text.push_str(&format!("\n{}: {}", violation.path, visible(&violation.message, 500)));
        }
    }
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The same as a protocol error, where a result is not possible.
pub fn error(error: &Error) -> ErrorData {
    let text = text_of(error);
    match error {
        Error::InvalidParams(_) | Error::InvalidArguments { .. } | Error::NoServer(_) | Error::NoTool { .. } => {
            ErrorData::invalid_params(text, None)
        }
        Error::NotFound(_) | Error::Missing { .. } => ErrorData::resource_not_found(text, None),
        _ => ErrorData::internal_error(text, None),
    }
}

/// There is no resource with this URI.
pub fn unknown_uri(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("no resource with the URI `{}`", one_line(uri, 500)), None)
}

/// Rejects cursors: every list has one page, so we never return a cursor.
pub fn first_page(requested: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match requested.and_then(|page| page.cursor).filter(|cursor| !cursor.is_empty()) {
        Some(_) => Err(ErrorData::invalid_params("unknown cursor: the first page contains the whole list", None)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServerName;

    #[test]
    fn an_error_for_a_model_contains_no_recipe() {
        let server = ServerName::new("x").unwrap();
        let message = "larger than 1 MiB (`limits.message-bytes` sets this limit), (`limits.tools`) `a` (b) (`c d`)";
        let error = Error::Protocol { server: server.clone(), message: message.to_owned() };
        assert_eq!(text_of(&error), "server `x`: larger than 1 MiB, `a` (b) (`c d`)");
        let message = "cannot start `/home/you/server`; set TOKEN".to_owned();
        assert_eq!(text_of(&Error::Connection { server, message }), "server `x` is not connected");
    }

    fn shaped(shape: Shape, text: &str) -> String {
        shape.apply(RawJson::from(RawValue::from_string(text.to_owned()).unwrap())).get().to_owned()
    }

    #[test]
    fn required_fields_are_added() {
        assert_eq!(shaped(Shape::Plain, r#"{"content":[]}"#), r#"{"content":[]}"#);
        assert_eq!(shaped(Shape::Typed, r#"{"content":[]}"#), r#"{"resultType":"complete","content":[]}"#);
        assert_eq!(shaped(Shape::Typed, "{ }"), r#"{"resultType":"complete"}"#);
        assert_eq!(
            shaped(Shape::Cacheable, r#"{"ttlMs":5,"tools":[]}"#),
            r#"{"resultType":"complete","cacheScope":"private","ttlMs":5,"tools":[]}"#
        );
    }

    #[test]
    fn a_field_inside_the_content_is_not_mistaken_for_the_result_field() {
        assert_eq!(
            shaped(Shape::Typed, r#"{"content":[{"resultType":1}]}"#),
            r#"{"resultType":"complete","content":[{"resultType":1}]}"#
        );
        assert_eq!(shaped(Shape::Typed, r#"{"resultType":"complete"}"#), r#"{"resultType":"complete"}"#);
    }
}
