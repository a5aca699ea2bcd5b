//! Headers whose values refer to secrets, such as `telemetry.otlp-headers`. Settings are shown and logged, so they contain
//! the references and never a value.

use std::collections::BTreeMap;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::text::Secret;

/// Name → value with references.
pub type Headers = BTreeMap<String, String>;

/// A part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    Text(&'a str),
    /// The name of a secret.
    Secret(&'a str),
}

/// Splits a value at its references. `None` if it has none, or one that is not `${keyring:NAME}`.
pub fn parts(value: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.strip_prefix("keyring:")?.split_once('}')?;
        if name.is_empty() {
            return None;
        }
        parts.extend((!before.is_empty()).then_some(Part::Text(before)));
        parts.push(Part::Secret(name));
        rest = after;
    }
    (!parts.is_empty()).then_some(())?;
    parts.extend((!rest.is_empty()).then_some(Part::Text(rest)));
    Some(parts)
}

/// Reads a table of headers. The error contains no value.
pub(super) fn read(value: &Value) -> Result<Headers, String> {
    let table = value.as_object().ok_or("expected a table such as { Authorization = \"Bearer ${keyring:NAME}\" }");
    let (mut headers, mut wrong) = (Headers::new(), None);
    for (name, value) in table? {
        match entry(name, value) {
            Ok(value) => drop(headers.insert(name.clone(), value)),
            Err(why) => wrong = wrong.or(Some(why)),
        }
    }
    wrong.map_or(Ok(headers), Err)
}

fn entry(name: &str, value: &Value) -> Result<String, String> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err("the name of a header contains invalid characters".to_owned());
    }
    let value = value.as_str().ok_or_else(|| format!("the value of `{name}` must be a text"))?;
    if parts(value).is_none() {
        // Whatever shows the line masks it.
        Secret::written(value);
        return Err(format!(
            "the value of `{name}` must refer to a secret, such as \"Bearer ${{keyring:NAME}}\"; `mcp-sidecar secret set NAME` \
             stores one"
        ));
    }
    HeaderValue::from_str(value).map_err(|_| format!("the value of `{name}` contains invalid characters"))?;
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::text::mask;

    #[test]
    fn values_are_split_at_references_to_secrets_only() {
        use Part::{Secret, Text};
        assert_eq!(parts("Bearer ${keyring:a}"), Some(vec![Text("Bearer "), Secret("a")]));
        assert_eq!(parts("${keyring:a}:${keyring:b c}!"), Some(vec![Secret("a"), Text(":"), Secret("b c"), Text("!")]));
        for other in ["", "plain", "${keyring:}", "${keyring:a", "${env:A}", "${keyring:a} ${A}", "$keyring:a"] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[test]
    fn headers_survive_a_round_trip_and_a_literal_is_refused_without_showing_it() {
        let text =
            "[telemetry]\notlp-headers = { Authorization = \"Bearer ${keyring:otlp}\", X-Team = '${keyring:t}' }\n";
        let (settings, problems) = Settings::from_toml(text);
        assert_eq!((problems, settings.telemetry.otlp_headers.len()), (Vec::new(), 2));
        assert_eq!(Settings::from_toml(&settings.to_toml()), (settings, Vec::new()));
        let section = "[telemetry.otlp-headers]\nAuthorization = \"Bearer ${keyring:otlp}\"\n";
        assert_eq!(Settings::from_toml(section).0.telemetry.otlp_headers["Authorization"], "Bearer ${keyring:otlp}");

        let wrong = [
            "[telemetry]\notlp-headers = { Authorization = 'Bearer literal-of-a-user' }",
            "[telemetry]\notlp-headers = ['Authorization: Bearer literal-of-a-user']",
            "[telemetry]\notlp-headers = { 'Bearer literal-of-a-user' = '${keyring:a}' }",
            "[telemetry]\notlp-headers = { A = 3 }",
        ];
        let mut messages = String::new();
        for wrong in wrong {
            let (settings, problems) = Settings::from_toml(wrong);
            assert!(settings.telemetry.otlp_headers.is_empty(), "{wrong}");
            problems.iter().for_each(|problem| messages.push_str(&format!("{}\n", problem.message)));
        }
        insta::assert_snapshot!(messages, @r#"
        `telemetry.otlp-headers`: the value of `Authorization` must refer to a secret, such as "Bearer ${keyring:NAME}"; `mcp-sidecar secret set NAME` stores one
        `telemetry.otlp-headers`: expected a table such as { Authorization = "Bearer ${keyring:NAME}" }
        `telemetry.otlp-headers`: the name of a header contains invalid characters
        `telemetry.otlp-headers`: the value of `A` must be a text
        "#);
        assert_eq!(mask("Bearer literal-of-a-user"), "•••");
    }
}
