//! JSON text as it was sent. Clones share it, because results can be large.

use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::scan::{Json, Scanner};

/// The box is shared as it is: `Arc<RawValue>` would be a copy of the text.
#[derive(Debug, Clone)]
pub struct RawJson(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    raw: Box<RawValue>,
    parts: OnceLock<ResultParts>,
}

/// Where the fields of a result are in its text. All are absent in anything but an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultParts {
    pub content: Option<Range<usize>>,
    pub structured_content: Option<Range<usize>>,
    pub result_type: Option<Range<usize>>,
    pub is_error: bool,
    /// It has a description itself, which is not in its content.
    pub has_description: bool,
    /// It says how long it may be cached, and by whom.
    pub has_ttl: bool,
    pub has_cache_scope: bool,
}

impl RawJson {
    /// A text whose parts were found while it was read.
    pub fn with_parts(raw: Box<RawValue>, parts: ResultParts) -> Self {
        Self(Arc::new(Shared { raw, parts: OnceLock::from(parts) }))
    }

    pub fn parts(&self) -> &ResultParts {
        self.0.parts.get_or_init(|| {
            ResultParts::read(&mut Scanner::new(self.get())).map_or_else(Default::default, |(_, parts)| parts)
        })
    }

    /// The text of the content of a result.
    pub fn content(&self) -> Option<&str> {
        self.get().get(self.parts().content.clone()?)
    }

    /// Copies of the content and the structured content of a result, which need no parser.
    pub fn contents(&self) -> (Option<Box<RawValue>>, Option<Box<RawValue>>) {
        let copy = |range: &Option<Range<usize>>| Some(Json::part(self.get(), range.clone()?).to_raw());
        let structured = copy(&self.parts().structured_content).filter(|structured| structured.get() != "null");
        (copy(&self.parts().content), structured)
    }
}

impl ResultParts {
    /// Reads an object, and finds its parts. `None` for anything else.
    pub fn read<'a>(scanner: &mut Scanner<'a>) -> Option<(Json<'a>, Self)> {
        let mut parts = Self::default();
        let object = scanner.object(|scanner, key| {
            let value = scanner.value()?;
            // Few keys are written with escapes.
            let unescaped = || serde_json::from_str(&format!("\"{key}\"")).unwrap_or_default();
            let key = if key.contains('\\') { Cow::Owned(unescaped()) } else { Cow::Borrowed(key) };
            match &*key {
                "content" => parts.content = Some(value.range()),
                "structuredContent" => parts.structured_content = Some(value.range()),
                "resultType" => parts.result_type = Some(value.range()),
                "isError" => parts.is_error = value.get() == "true",
                "description" => parts.has_description = true,
                "ttlMs" => parts.has_ttl = true,
                "cacheScope" => parts.has_cache_scope = true,
                _ => {}
            }
            Some(value)
        })?;
        Some((object, parts.starting_at(object.range().start)))
    }

    /// The same parts if the text begins there.
    fn starting_at(mut self, start: usize) -> Self {
        for range in [&mut self.content, &mut self.structured_content, &mut self.result_type].into_iter().flatten() {
            *range = range.start - start..range.end - start;
        }
        self
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::new(Shared { raw, parts: OnceLock::new() }))
    }
}

impl Deref for RawJson {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        &self.0.raw
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.deref().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> ResultParts {
        RawJson::from(RawValue::from_string(text.to_owned()).unwrap()).parts().clone()
    }

    #[test]
    fn the_parts_are_the_outer_fields() {
        let text = r#"{"content":[{"isError":true}],"structuredContent":{"description":1},"resultType":"complete"}"#;
        let ResultParts { content, structured_content, result_type, is_error, has_description, .. } = parts(text);
        let slice = |range: Option<Range<usize>>| &text[range.unwrap()];
        assert_eq!(slice(content), r#"[{"isError":true}]"#);
        assert_eq!(slice(structured_content), r#"{"description":1}"#);
        assert_eq!(slice(result_type), "\"complete\"");
        assert!(!is_error && !has_description);
    }

    #[test]
    fn keys_may_be_written_with_escapes() {
        assert!(parts(r#"{"\u0069sError":true}"#).is_error);
        assert!(parts(r#"{"descr\u0069ption":""}"#).has_description);
    }

    #[test]
    fn an_error_flag_counts_only_when_it_is_true() {
        assert!(parts(r#"{"isError": true }"#).is_error);
        assert!(!parts(r#"{"isError":"true"}"#).is_error);
    }

    #[test]
    fn other_values_have_no_parts() {
        for text in ["null", "[{\"isError\":true}]", "\"content\"", "1"] {
            assert_eq!(parts(text), ResultParts::default(), "{text}");
        }
    }

    #[test]
    fn contents_are_copied_as_they_are() {
        let copied = |text: &str| {
            let (content, structured) = RawJson::from(RawValue::from_string(text.to_owned()).unwrap()).contents();
            [content, structured].map(|copy| copy.map(|copy| copy.get().to_owned()))
        };
        let both = copied(r#"{ "content" : [ 1 ] , "structuredContent" : {"a": 2} }"#);
        assert_eq!(both.map(Option::unwrap), ["[ 1 ]", r#"{"a": 2}"#]);
        assert_eq!(copied(r#"{"content":[],"structuredContent":null}"#), [Some("[]".to_owned()), None]);
        assert_eq!(copied("[1]"), [None, None]);
    }

    #[test]
    fn parts_count_from_the_start_of_the_result() {
        let message = r#"  {"content":[1]}"#;
        let (object, found) = ResultParts::read(&mut Scanner::new(message)).unwrap();
        assert_eq!(found, parts(object.get()));
    }
}
