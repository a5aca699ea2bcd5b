//! Questions to the user.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Annotations, Object};
use crate::model::{Requester, ServerName, Timestamp};
use crate::protocol::actions::Remedy;
use crate::protocol::form::Form;
use crate::protocol::mcp::Schema;

/// What kind of answer a question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalKind {
    /// A decision about a call: of a tool, for a resource or prompt, or of an agent's own tool.
    Tool,
    Trust,
    Elicitation,
    Input,
}

/// A question that is waiting for the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: String,
    pub kind: ApprovalKind,
    /// Set if the question is not about this workspace but about another folder of the repository, such as a worktree.
    /// `title` and `detail` say so, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    pub server: ServerName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Instead of `tool`: the resource to read or to watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceQuestion>,
    /// Instead of `tool`: the name of a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Instead of `tool`: an agent's own tool, such as its shell. `server` is the name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_tool: Option<String>,
    /// In full, as they will be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Object>")]
    pub arguments: Option<Value>,
    /// Instead of `arguments` that are too large for a list. `mcp.approvals` with the `id` of the question returns them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large_arguments: Option<LargeArguments>,
    pub title: String,
    /// What it is about in one line, for a list: a server with its command or URL, a tool with its arguments. It may be
    /// truncated, so show the rest before the user decides.
    pub summary: String,
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    pub requester: Requester,
    /// The decisions of `answers`.
    pub options: Vec<String>,
    /// The possible answers, in the order to show them.
    pub answers: Vec<ApprovalAnswer>,
    /// What changed since the user last agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// What the call would change in a file of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<FileChange>,
    /// What to fill in before accepting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// The schema of the form.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Schema>")]
    pub schema: Option<Value>,
    /// The page to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// A resource that a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceQuestion {
    /// As the server gets it. Hidden characters are visible.
    pub uri: String,
    /// The template that it is an instance of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
}

/// Arguments that are not part of a list because of their size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LargeArguments {
    /// The length of their JSON text.
    pub bytes: usize,
    /// SHA-256 of that text.
    pub digest: String,
}

/// Questions that can be answered together: trust in the servers of one file, or the calls of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalGroup {
    /// Stays the same while questions are added and removed.
    pub id: String,
    /// `tool` or `trust`.
    pub kind: ApprovalKind,
    pub title: String,
    /// The ids of its questions, two or more, in the order to show them. Answer them with `ids` of
    /// `mcp.approval.resolve`: all of them, or those that the user selects.
    pub ids: Vec<String>,
    /// The answers for all of them, in the order to show them. The first one grants nothing.
    pub answers: Vec<ApprovalAnswer>,
}

/// A question that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedApproval {
    pub id: String,
    pub title: String,
    pub outcome: ApprovalOutcome,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Where it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<AnsweredIn>,
    /// How it ended, to show: `“Deny”, by the user in Neovim (process 4242)`.
    pub message: String,
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalOutcome {
    /// The user answered.
    Answered,
    /// The user closed the message, or the agent declined it, and nothing else could show it.
    Dismissed,
    /// There was no answer in time.
    Expired,
    /// It was withdrawn. `message` says why.
    Withdrawn,
    /// There was no one left to ask.
    Unasked,
}

/// Where the user answered a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredIn {
    pub place: AnswerPlace,
    /// The name of the editor or agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The process of the editor or shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// What the user answered a question in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnswerPlace {
    Editor,
    Shell,
    /// The dialog of an agent.
    Agent,
}

/// One way to answer a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAnswer {
    /// A decision, or `accept`, `decline` or `cancel`.
    pub decision: String,
    pub label: String,
    /// The label if the user selects some questions of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_label: Option<String>,
    /// It lets something happen.
    pub grants: bool,
    /// It applies to later questions, too. Let the user confirm it, or make it harder to choose.
    pub lasts: bool,
    /// What has changed afterwards, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// The same without what the question has just said, for one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_effect: Option<String>,
    /// How to undo it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Remedy>,
}

/// What a call would change in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The absolute path.
    pub file: String,
    /// The path as the call names it.
    pub path: String,
    pub is_new: bool,
    /// The text after the call.
    pub after: String,
    pub diff: String,
    /// The file has unsaved changes in an editor, and `diff` is against these.
    pub unsaved: bool,
}
