//! Commands that change an open text by `workspace/applyEdit`: what a lens or an action of a plain editor needs beside
//! `workspace/executeCommand`.

use std::path::Path;

use tower_lsp::lsp_types::request::ShowMessageRequest;
use tower_lsp::lsp_types::{MessageActionItem, MessageType, Range, ShowMessageRequestParams, TextEdit, Url};

use super::documents::Document;
use super::look::Look;
use super::seat::Seat;
use super::sheets::Sheet;
use crate::config::edit;
use crate::config::templates::{Template, templates};
use crate::ide::fixes;
use crate::model::{Error, Result};
use crate::protocol::answers::{Done, InsertedServer, KeptSecret};
use crate::protocol::commands::{EditApply, SecretKeep, TemplateInsert};
use crate::protocol::run::{Answer, answer};
use crate::text::one_line;

/// `mcp.edit.apply`: the edits of a quick fix, for an editor that can take a command but no edit from a menu.
pub async fn apply(seat: &Seat, params: EditApply) -> Result<Answer> {
    let uri = address("mcp.edit.apply", &params.uri)?;
    let edits: Vec<TextEdit> = serde_json::from_value(params.edits)
        .map_err(|error| Error::InvalidParams(format!("`mcp.edit.apply`: `edits`: {error}")))?;
    let document = seat.documents.get(&uri).ok_or_else(|| not_open(&uri))?;
    if params.version.is_some_and(|version| version != document.version) {
        return Err(Error::Conflict(
            "the text has changed since this was offered; ask for the actions again".to_owned(),
        ));
    }
    put(seat, &document, edits, params.label.as_deref().unwrap_or("Change the text")).await?;
    answer::<EditApply>(Done {})
}

/// `mcp.secret.keep`: a secret that stands in a config file goes into the keyring, and its name takes its place. First
/// kept, then removed: whatever happens in between, it is never lost.
pub async fn keep(seat: &Seat, params: SecretKeep) -> Result<Answer> {
    let uri = address("mcp.secret.keep", &params.uri)?;
    let range: Range = serde_json::from_value(params.range)
        .map_err(|error| Error::InvalidParams(format!("`mcp.secret.keep`: `range`: {error}")))?;
    let sheet = seat.sheet(&uri).ok_or_else(|| not_open(&uri))?;
    let kept = {
        let look = Look::at(seat, &sheet).ok_or_else(|| not_open(&uri))?;
        let span = sheet.places.span(range);
        let problems = look.problems();
        let found =
            problems.iter().find_map(|problem| fixes::secret(&look.page(), problem).filter(|_| problem.span == span));
        found.ok_or_else(|| Error::NotFound("no secret stands there as plain text".to_owned()))?
    };
    seat.engine.store_secret(&kept.name, &kept.value).await?;
    let edit = TextEdit { range: sheet.places.range(&kept.edit.span), new_text: kept.edit.text };
    put(seat, &sheet.document, vec![edit], "Move a secret into the keyring").await?;
    answer::<SecretKeep>(KeptSecret { name: kept.name })
}

/// `mcp.template.insert`: a ready-made server in an open config file. Without its id, the user is asked which.
pub async fn insert(seat: &Seat, params: TemplateInsert) -> Result<Answer> {
    let uri = address("mcp.template.insert", &params.uri)?;
    let template = match &params.template {
        Some(id) => templates().iter().find(|template| template.id == *id),
        None => choose(seat).await,
    };
    let unknown = || match &params.template {
        Some(id) => Error::NotFound(format!("no template named `{}`; `mcp.templates` lists them", one_line(id, 80))),
        None => Error::Cancelled,
    };
    let template = template.ok_or_else(unknown)?;
    let sheet = seat.sheet(&uri).ok_or_else(|| not_open(&uri))?;
    let name = free_name(&sheet, template);
    let text = with_server(&sheet.document.text, &sheet.path, &name, template)
        .map_err(|error| Error::Conflict(error.to_string()))?;
    if let Some(change) = edit::difference(&sheet.document.text, &text) {
        let edit = TextEdit { range: sheet.places.range(&change.span), new_text: change.text };
        put(seat, &sheet.document, vec![edit], "Add a server").await?;
    }
    answer::<TemplateInsert>(InsertedServer { server: name })
}

async fn choose(seat: &Seat) -> Option<&'static Template> {
    let item =
        |template: &Template| MessageActionItem { title: template.title.clone(), properties: Default::default() };
    let params = ShowMessageRequestParams {
        typ: MessageType::INFO,
        message: "Which server shall be added?".to_owned(),
        actions: Some(templates().iter().map(item).collect()),
    };
    let chosen = seat.editor.request::<ShowMessageRequest>(&params).await.ok().flatten()?;
    templates().iter().find(|template| template.title == chosen.title)
}

/// The template's own name, with a number behind it when that is taken.
fn free_name(sheet: &Sheet, template: &Template) -> String {
    let names: Vec<&str> = sheet.file().iter().flat_map(|file| file.servers.iter().map(String::as_str)).collect();
    let candidates = (1..).map(|number| match number {
        1 => template.id.clone(),
        _ => format!("{}-{number}", template.id),
    });
    candidates.take(names.len() + 1).find(|name| !names.contains(&name.as_str())).unwrap_or_else(|| template.id.clone())
}

fn with_server(text: &str, file: &Path, name: &str, template: &Template) -> Result<String, edit::EditError> {
    let text = edit::set_server(text, file, name, template.config.clone())?;
    edit::add_inputs(&text, &template.inputs)
}

async fn put(seat: &Seat, document: &Document, edits: Vec<TextEdit>, label: &str) -> Result<()> {
    match seat.apply(document, edits, label).await {
        true => Ok(()),
        false => Err(Error::Conflict("the editor did not change the text".to_owned())),
    }
}

fn address(command: &str, uri: &str) -> Result<Url> {
    Url::parse(uri).map_err(|_| Error::InvalidParams(format!("`{command}`: `uri` is no address of a file")))
}

fn not_open(uri: &Url) -> Error {
    Error::NotFound(format!("{uri} is no open config file"))
}
