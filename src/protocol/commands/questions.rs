//! Commands for questions to the user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Lists the questions that are waiting for the user, or one of them in full.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// Only this question, with its arguments even if they are large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Answers a question, or several in the same way. The first answer counts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResolve {
    pub id: Option<String>,
    /// Instead of `id`: the questions of a group that were shown to the user, or some of them.
    pub ids: Option<Vec<String>>,
    pub decision: String,
    pub note: Option<String>,
    /// What was filled in.
    pub content: Option<Value>,
    /// The arguments that the tool is called with instead of those that were shown.
    pub arguments: Option<Map<String, Value>>,
}

impl ApprovalResolve {
    pub fn one(id: &str, decision: &str) -> Self {
        Self { id: Some(id.to_owned()), decision: decision.to_owned(), ..Self::default() }
    }

    pub fn several(ids: Vec<String>, decision: &str) -> Self {
        Self { ids: Some(ids), decision: decision.to_owned(), ..Self::default() }
    }
}
