//! The definition of a tool when the user allowed it, and what has changed since.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::model::{Subject, Tool};
use crate::text::{changed_lines, mask, visible};

/// A tool's definition as it was shown. The digest is compared; the text is for the diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub digest: String,
    /// The definition in lines, truncated if it is very long.
    pub text: String,
}

/// Enough for any useful diff. The digest covers everything.
const LONGEST: usize = 128 << 10;

impl Pin {
    /// Covers what the user and the model read: name, title, description, both schemas and annotations.
    pub fn of(tool: &Tool) -> Self {
        let mut definition = json!({
            "name": &*tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": sorted(&Value::Object((*tool.input_schema).clone())),
            "outputSchema": tool.output_schema.as_ref().map(|schema| sorted(&Value::Object((**schema).clone()))),
            // The object as sent, so that it includes hints that we do not know.
            "annotations": tool.raw.get("annotations").map(sorted),
        });
        // A server could describe a tool exactly like a resource, but never add this.
        if let (Subject::Resource { .. } | Subject::Prompt { .. } | Subject::Agent, Some(fields)) =
            (&tool.subject, definition.as_object_mut())
        {
            fields.insert("listed".to_owned(), sorted(&tool.raw));
        }
        let digest = hex(&Sha256::digest(definition.to_string()));
        let lines = serde_json::to_string_pretty(&definition).unwrap_or_default().replace("\\n", "\n    ");
        Self { digest, text: visible(&mask(&lines), LONGEST) }
    }

    /// The difference between the pinned definition and the tool as it is now. `None` if they are equal.
    pub fn changed(&self, tool: &Tool) -> Option<Vec<String>> {
        let now = Self::of(tool);
        (now.digest != self.digest).then(|| difference(&self.text, &now.text))
    }
}

/// Removed (`- `) and added (`+ `) lines.
pub fn difference(old: &str, new: &str) -> Vec<String> {
    let mut lines: Vec<_> = changed_lines(old, new).iter().map(|(sign, line)| format!("{sign} {line}")).collect();
    if lines.is_empty() {
        lines.push("  the difference is beyond the part that is stored for comparison".to_owned());
    }
    lines
}

/// The value with all object keys sorted, because servers may reorder them.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            Value::Object(keys.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
