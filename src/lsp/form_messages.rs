//! Questions with fields, in an editor without forms: choices become buttons, and anything else is a file to fill in.
//! A secret is never written to a file, so it is entered in a terminal.

use std::collections::BTreeMap;
use std::sync::Arc;

use lsp_types::notification::ShowMessage;
use lsp_types::request::{ShowDocument, ShowMessageRequest};
use lsp_types::{MessageActionItem, MessageType, ShowDocumentParams, ShowMessageParams, ShowMessageRequestParams};
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};

use super::approval_messages::{NOT_NOW, ShownIn};
use super::approval_text::text;
use super::session::EditorSession;
use super::{convert, form_file};
use crate::config::shape::secrets::is_named;
use crate::config::watch::FileWatch;
use crate::engine::approvals::{Approval, Kind, Reply};
use crate::protocol::form::{self, Field, FieldKind, Form};
use crate::protocol::types::Object;
use crate::text::one_line;

/// The maximum number of choices that are shown as buttons.
const MAX_BUTTONS: usize = 20;
const FILL_IN: &str = "Fill in a file…";

/// Runs until the editor disconnects.
pub async fn show_forms(session: Arc<EditorSession>) {
    let mut approvals = session.engine.approvals().subscribe();
    let mut shown: BTreeMap<String, AbortHandle> = BTreeMap::new();
    let mut questions = JoinSet::new();
    loop {
        let waiting = approvals.borrow_and_update().clone();
        let waiting = session.engine.approvals().shown_here(&waiting);
        shown.retain(|id, question| {
            let waits = waiting.iter().any(|approval| approval.id == *id);
            if !waits {
                question.abort();
            }
            waits
        });
        for approval in waiting.iter().filter(|approval| is_form(approval)) {
            let ask = || questions.spawn(ask(session.clone(), approval.clone()));
            shown.entry(approval.id.clone()).or_insert_with(ask);
        }
        tokio::select! {
            changed = approvals.changed() => if changed.is_err() { return },
            Some(_) = questions.join_next() => {}
            () = session.editor.gone() => return,
        }
    }
}

/// Whether buttons with decisions are not enough to answer it.
pub fn is_form(approval: &Approval) -> bool {
    matches!(approval.kind, Kind::Elicitation | Kind::Input) && approval.schema.is_some() && approval.url.is_none()
}

/// How a form can be answered here.
#[derive(Debug, PartialEq)]
enum AnswerMethod {
    /// Each button is a complete answer.
    Buttons(Vec<(String, Object)>),
    File,
    Terminal,
}

impl AnswerMethod {
    fn of(form: &Form, can_show_files: bool) -> Self {
        match form.fields.as_slice() {
            [] => Self::Buttons(vec![("Accept".to_owned(), Object::new())]),
            [only] if !choices(only).is_empty() && choices(only).len() <= MAX_BUTTONS => {
                let answer = |(title, value)| (title, Object::from_iter([(only.name.clone(), value)]));
                Self::Buttons(choices(only).into_iter().map(answer).collect())
            }
            fields if can_show_files && !fields.iter().any(is_secret) => Self::File,
            _ => Self::Terminal,
        }
    }
}

fn choices(field: &Field) -> Vec<(String, Value)> {
    match field.kind {
        FieldKind::Boolean => vec![("Yes".to_owned(), json!(true)), ("No".to_owned(), json!(false))],
        FieldKind::Choice => {
            field.choices.iter().map(|choice| (one_line(&choice.title, 80), choice.value.clone())).collect()
        }
        _ => Vec::new(),
    }
}

fn is_secret(field: &Field) -> bool {
    field.kind == FieldKind::Secret
        || is_named(&field.name)
        || is_named(&field.title)
        || field.fields.iter().any(is_secret)
        || field.item.as_deref().is_some_and(is_secret)
}

/// Asks one question. Ends when it is answered or the user closed it.
pub async fn ask(session: Arc<EditorSession>, approval: Arc<Approval>) {
    let (Some(Value::Object(schema)), Some(shown_in)) = (&approval.schema, session.shown_in.get()) else { return };
    let form = Form::of_schema(schema);
    let method = AnswerMethod::of(&form, session.info().supports.show_document);
    let buttons: Vec<String> = match &method {
        AnswerMethod::Buttons(answers) => answers.iter().map(|(title, _)| title.clone()).collect(),
        AnswerMethod::File => vec![FILL_IN.to_owned()],
        AnswerMethod::Terminal => return show_message(shown_in, MessageType::WARNING, in_terminal(&approval)).await,
    };
    let chosen = choose(shown_in, text(&approval), &buttons).await;
    let content = match (&method, chosen.as_deref()) {
        (_, Some(DECLINE)) => None,
        (AnswerMethod::Buttons(answers), Some(chosen)) => match answers.iter().find(|(title, _)| title == chosen) {
            Some((_, content)) => Some(content.clone()),
            None => return close(&session, shown_in, &approval),
        },
        (AnswerMethod::File, Some(FILL_IN)) => match fill_in(&session, shown_in, &approval, schema, &form).await {
            Some(content) => Some(content),
            None => return show_message(shown_in, MessageType::WARNING, in_terminal(&approval)).await,
        },
        _ => return close(&session, shown_in, &approval),
    };
    let decision = if content.is_some() { "accept" } else { "decline" };
    let reply = Reply { decision, content: content.map(Value::Object), ..Reply::default() };
    if let Err(error) = session.engine.resolve(std::slice::from_ref(&approval.id), &reply, &shown_in.identity).await {
        show_message(shown_in, MessageType::WARNING, error.to_string()).await;
    }
}

const DECLINE: &str = "Decline";

/// The first button is preselected in some editors, so it decides nothing.
async fn choose(shown_in: &ShownIn, message: String, buttons: &[String]) -> Option<String> {
    let button = |title: &str| MessageActionItem { title: title.to_owned(), properties: Default::default() };
    let titles = [NOT_NOW].into_iter().chain(buttons.iter().map(String::as_str)).chain([DECLINE]);
    let params =
        ShowMessageRequestParams { typ: MessageType::WARNING, message, actions: Some(titles.map(button).collect()) };
    let answer = shown_in.editor.request::<ShowMessageRequest>(&params).await;
    answer.ok().flatten().map(|action| action.title)
}

fn close(session: &EditorSession, shown_in: &ShownIn, approval: &Approval) {
    // An input decides nothing when it is closed: the server waits until it is answered.
    if approval.kind != Kind::Input {
        session.engine.approvals().close(&approval.id, shown_in.id, &shown_in.identity);
    }
}

async fn show_message(shown_in: &ShownIn, typ: MessageType, message: String) {
    shown_in.editor.notify::<ShowMessage>(&ShowMessageParams { typ, message }).await;
}

fn in_terminal(approval: &Approval) -> String {
    let question = text(approval);
    match approval.kind {
        Kind::Input => format!(
            "{question}\nTo answer, run `mcp-sidecar input set` with this name, or `mcp-sidecar approvals`, in a terminal."
        ),
        _ => format!("{question}\nTo answer, run `mcp-sidecar approvals` in a terminal."),
    }
}

/// Opens a file with the fields, and reads it whenever it is saved. `None` if the editor does not show it. The file is
/// deleted when the question is answered or withdrawn.
async fn fill_in(
    session: &EditorSession,
    shown_in: &ShownIn,
    approval: &Approval,
    schema: &Object,
    form: &Form,
) -> Option<Object> {
    let empty = form_file::write(&text(approval), form);
    let file = form_file::create(&session.engine.paths().state_dir.join("forms"), &empty)?;
    let watch = FileWatch::new(&file);
    let uri = convert::uri(&file)?;
    let params = ShowDocumentParams { uri, external: Some(false), take_focus: Some(true), selection: None };
    let shown = shown_in.editor.request::<ShowDocument>(&params).await;
    shown.ok().filter(|answer| answer.success)?;
    let mut last = empty;
    loop {
        watch.changed().await;
        // A save that replaces the file is seen in several steps.
        let Ok(saved) = std::fs::read_to_string(&file) else { continue };
        if saved == last || saved.is_empty() {
            continue;
        }
        let problems = match form_file::read(&saved) {
            Ok(entered) => match form::check(schema, &entered) {
                (values, problems) if problems.is_empty() => return Some(values),
                (_, problems) => problems.iter().map(|one| format!("{}: {}", one.path, one.message)).collect(),
            },
            Err(reason) => vec![reason],
        };
        last = saved;
        let message = format!("Not sent yet. Correct this and save the file again:\n{}", problems.join("\n"));
        show_message(shown_in, MessageType::WARNING, message).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_written_to_a_file() {
        let method = |schema: Value| AnswerMethod::of(&Form::of_schema(schema.as_object().unwrap()), true);
        let text = json!({ "type": "string" });
        assert_eq!(method(json!({ "properties": { "name": text } })), AnswerMethod::File);
        for secret in [
            json!({ "properties": { "name": text, "password": text } }),
            json!({ "properties": { "value": text }, "password": true }),
            json!({ "properties": { "a": { "type": "string", "format": "password" } } }),
            json!({ "properties": { "a": { "type": "object", "properties": { "apiToken": text } } } }),
        ] {
            assert_eq!(method(secret.clone()), AnswerMethod::Terminal, "{secret}");
        }
        let AnswerMethod::Buttons(buttons) = method(json!({ "properties": { "ok": { "type": "boolean" } } })) else {
            panic!()
        };
        assert_eq!(buttons.iter().map(|(title, _)| title.as_str()).collect::<Vec<_>>(), ["Yes", "No"]);
    }
}
