//! Redacts an entry so that it can be shown: not expanded, and without the values of `env` and `headers`.

use serde_json::{Map, Value};

use super::super::expand::{Piece, pieces};
use super::super::shape::{secret_spans, secrets};
use crate::text::{mask, mask_value, one_line, shell_quote};

const MASK: &str = "•••";

/// The entry as written, with possible secrets replaced. Values of `env` and `headers` are kept if they are a single
/// `${…}` reference.
pub fn redacted(written: &Value) -> Value {
    let Value::Object(entry) = written else { return written.clone() };
    // A literal value of `env` may be in `args`, too.
    mask_value(&Value::Object(object(entry)))
}

/// The command that a redacted entry runs or the address that it connects to, in one line.
pub fn launch_line(redacted: &Value) -> String {
    let text = |key: &str| redacted.get(key).and_then(Value::as_str).map(str::to_owned);
    let words = |key: &str| -> Vec<String> {
        let list = redacted.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut command: Vec<String> = text("command").into_iter().chain(words("command")).collect();
    command.extend(words("args"));
    let address = || {
        let port = redacted.get("port")?;
        Some(format!("{}:{port}", text("host").unwrap_or_else(|| "127.0.0.1".to_owned())))
    };
    let launch = match command.is_empty() {
        false => command.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" "),
        true => text("url").or_else(address).or_else(|| text("name")).unwrap_or_default(),
    };
    one_line(&mask(&launch), usize::MAX)
}

fn object(entry: &Map<String, Value>) -> Map<String, Value> {
    let show = |(key, value): (&String, &Value)| {
        let value = match (key.as_str(), value) {
            ("env" | "headers", Value::Object(values)) => {
                Value::Object(values.iter().map(|(name, value)| (name.clone(), reference_or_mask(value))).collect())
            }
            ("args" | "command", Value::Array(args)) => Value::Array(arguments(args)),
            ("url" | "serverUrl" | "httpUrl", Value::String(url)) => Value::String(address(url)),
            ("fallback" | "transport" | "command" | "auth" | "oauth", Value::Object(inner)) => {
                Value::Object(object(inner))
            }
            (name, Value::String(text)) => match secrets::find(Some(name), text) {
                Some(span) => Value::String(cut(text, span)),
                None => value.clone(),
            },
            _ => value.clone(),
        };
        (key.clone(), value)
    };
    entry.iter().map(show).collect()
}

fn reference_or_mask(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::String(text) if pure(text) => value.clone(),
        _ => Value::from(MASK),
    }
}

/// Whether the text is a single reference, and its default is one too.
fn pure(text: &str) -> bool {
    use super::super::expand::Reference;
    match pieces(text).as_slice() {
        [Piece::Reference { reference: Reference::Variable { default, .. }, .. }] => {
            default.as_deref().is_none_or(|default| default.is_empty() || pure(default))
        }
        [Piece::Reference { .. }] => true,
        _ => false,
    }
}

fn arguments(args: &[Value]) -> Vec<Value> {
    let texts: Vec<String> = args.iter().map(|arg| arg.as_str().unwrap_or_default().to_owned()).collect();
    let spans = secret_spans::in_arguments(&texts);
    let show = |((arg, text), spans): ((&Value, &String), Vec<_>)| match spans.is_empty() {
        true => arg.clone(),
        false => Value::String(secret_spans::replace(text, spans, |_| MASK.to_owned())),
    };
    args.iter().zip(&texts).zip(spans).map(show).collect()
}

fn address(url: &str) -> String {
    // In reverse order, so that earlier positions stay valid.
    secrets::find_in_url(url).into_iter().rev().fold(url.to_owned(), |url, (span, _)| cut(&url, span))
}

fn cut(text: &str, secret: std::ops::Range<usize>) -> String {
    let before = text.get(..secret.start).unwrap_or_default();
    let after = text.get(secret.end..).unwrap_or_default();
    format!("{before}{MASK}{after}")
}
