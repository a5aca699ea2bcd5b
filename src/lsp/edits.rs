//! Commands that edit an open buffer with `workspace/applyEdit`.

use std::path::Path;

use lsp_types::request::ShowMessageRequest;
use lsp_types::{
    MessageActionItem, MessageActionItemProperty, MessageType, Range, ShowMessageRequestParams, TextEdit, Url,
};
use serde_json::Value;

use super::documents::Document;
use super::open_config::OpenConfig;
use super::session::EditorSession;

use crate::config::edit;
use crate::config::templates::{Template, templates};
use crate::engine::turns::Turn;
use crate::ide;
use crate::ide::actions::{Effect, LevelChoices};
use crate::ide::fixes;
use crate::ide::value_docs::describe_level;
use crate::model::{Error, Level, Result};
use crate::protocol;
use crate::protocol::actions::Invocation;
use crate::protocol::answers::{Done, EditedFiles, InsertedServer, KeptSecret};
use crate::protocol::commands::{AnyCommand, Command as _, EditApply, LevelChoose, SecretKeep, TemplateInsert};
use crate::protocol::run::{Answer, answer};
use crate::text::one_line;

/// `mcp.edit.apply`: applies the edits of a quick fix, for editors whose menus support commands but no edits.
pub async fn apply(session: &EditorSession, params: EditApply) -> Result<Answer> {
    check_support(session)?;
    let uri = address("mcp.edit.apply", &params.uri)?;
    let edits: Vec<TextEdit> = serde_json::from_value(params.edits)
        .map_err(|_| Error::InvalidParams("`mcp.edit.apply`: `edits` must be a list of text edits".to_owned()))?;
    let document = session.documents.get(&uri).ok_or_else(|| not_open(&uri))?;
    if params.version.is_some() && params.version != document.known_version() {
        return Err(Error::Conflict(
            "the text has changed since the action was listed; open the menu again".to_owned(),
        ));
    }
    put(session, &document, edits, params.label.as_deref().unwrap_or("Edit the text")).await?;
    answer::<EditApply>(Done {})
}

/// `mcp.secret.keep`: moves a secret from a config file to the keyring and inserts a reference. Stores the secret before
/// it removes it, so that it is never lost.
pub async fn keep(session: &EditorSession, params: SecretKeep) -> Result<Answer> {
    check_support(session)?;
    let uri = address("mcp.secret.keep", &params.uri)?;
    let range: Range = serde_json::from_value(params.range)
        .map_err(|_| Error::InvalidParams("`mcp.secret.keep`: `range` must be a range".to_owned()))?;
    let open = session.open_config(&uri).ok_or_else(|| not_open(&uri))?;
    let secret = {
        let config = open.view().ok_or_else(|| not_open(&uri))?;
        let span = open.positions.span(range);
        let problems = open.problems();
        let found =
            problems.iter().find_map(|problem| fixes::move_secret(&config, problem).filter(|_| problem.span == span));
        found.ok_or_else(|| Error::NotFound("there is no plain-text secret at this position".to_owned()))?
    };
    session.engine.store_secret(&secret.name, &secret.value).await?;
    let edit = open.positions.text_edit(&secret.edit);
    put(session, &open.document, vec![edit], "Move a secret to the keyring").await?;
    answer::<SecretKeep>(KeptSecret { name: secret.name })
}

/// `mcp.template.insert`: inserts a server from a template into an open config file. Asks the user to choose a template
/// if the command names none.
pub async fn insert(session: &EditorSession, params: TemplateInsert) -> Result<Answer> {
    check_support(session)?;
    let uri = address("mcp.template.insert", &params.uri)?;
    let template = match &params.template {
        Some(id) => templates().iter().find(|template| template.id == *id),
        None => choose(session).await,
    };
    let unknown = || match &params.template {
        Some(id) => Error::NotFound(format!("no template named `{}`", one_line(id, 80))),
        None => Error::Cancelled,
    };
    let template = template.ok_or_else(unknown)?;
    let open = session.open_config(&uri).ok_or_else(|| not_open(&uri))?;
    let name = free_name(&open, template);
    let text = with_server(&open.document.text, &open.path, &name, template)
        .map_err(|error| Error::Conflict(error.to_string()))?;
    if let Some(change) = edit::difference(&open.document.text, &text) {
        let edit = open.positions.text_edit(&change);
        put(session, &open.document, vec![edit], "Add a server").await?;
    }
    answer::<TemplateInsert>(InsertedServer { server: name })
}

/// `mcp.level.choose`: asks for a level, and sets it in the config file.
pub async fn choose_level(session: &EditorSession, params: LevelChoose, turn: Turn) -> Result<Answer> {
    let uri = address(LevelChoose::NAME, &params.uri)?;
    let range: Range = serde_json::from_value(params.range)
        .map_err(|_| Error::InvalidParams(format!("`{}`: `range` must be a range", LevelChoose::NAME)))?;
    let open = session.open_config(&uri).ok_or_else(|| not_open(&uri))?;
    let choices = open.view().and_then(|config| ide::actions::level_choices(&config, &open.positions.span(range)));
    let LevelChoices { what, levels } =
        choices.ok_or_else(|| Error::NotFound("there is no server at this position".to_owned()))?;
    // Other commands must not wait while the user chooses.
    drop(turn);
    let described = session.info().supports.message_properties;
    let button = |level: &Level| {
        let description = MessageActionItemProperty::String(describe_level(*level).to_owned());
        let properties = described.then(|| ("description".to_owned(), description));
        MessageActionItem { title: level.to_string(), properties: properties.into_iter().collect() }
    };
    let params = ShowMessageRequestParams {
        typ: MessageType::INFO,
        message: format!("Which level do you want to set for {what}?"),
        actions: Some(levels.iter().map(|(level, _)| button(level)).collect()),
    };
    let chosen = session.editor.request::<ShowMessageRequest>(&params).await.ok().flatten().ok_or(Error::Cancelled)?;
    let (level, effect) =
        levels.into_iter().find(|(level, _)| level.as_str() == chosen.title).ok_or(Error::Cancelled)?;
    let unsaved = match effect {
        Effect::Run(Invocation { command, arguments }) => {
            let command = AnyCommand::parse(command, vec![Value::Object(arguments)])?;
            let identity = &session.info().identity;
            let turn = Turn::default();
            let edited = protocol::run::run(&session.engine, session, identity, command, None, turn).await?;
            serde_json::from_str(edited.get()).map(|EditedFiles { unsaved }| unsaved).unwrap_or_default()
        }
        Effect::Edit(edits) => {
            check_support(session)?;
            let edits = edits.iter().map(|edit| open.positions.text_edit(edit)).collect();
            put(session, &open.document, edits, &format!("Set {what} to {level}")).await?;
            open.document.path.iter().cloned().collect()
        }
        Effect::StoreSecret(_) | Effect::ChooseLevel(_) => Vec::new(),
    };
    answer::<LevelChoose>(EditedFiles { unsaved })
}

async fn choose(session: &EditorSession) -> Option<&'static Template> {
    let item =
        |template: &Template| MessageActionItem { title: template.title.clone(), properties: Default::default() };
    let params = ShowMessageRequestParams {
        typ: MessageType::INFO,
        message: "Which server do you want to add?".to_owned(),
        actions: Some(templates().iter().map(item).collect()),
    };
    let chosen = session.editor.request::<ShowMessageRequest>(&params).await.ok().flatten()?;
    templates().iter().find(|template| template.title == chosen.title)
}

/// The template's name, with a number if the name is taken.
fn free_name(open: &OpenConfig, template: &Template) -> String {
    let file = open.loaded.file(&open.path);
    let names: Vec<&str> = file.iter().flat_map(|file| file.servers.iter().map(String::as_str)).collect();
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

async fn put(session: &EditorSession, document: &Document, edits: Vec<TextEdit>, label: &str) -> Result<()> {
    match session.apply(document, edits, label).await {
        true => Ok(()),
        false => Err(Error::Conflict("the editor did not apply the edit".to_owned())),
    }
}

fn check_support(session: &EditorSession) -> Result<()> {
    let unsupported = || Error::Conflict("this editor cannot apply edits; change the file by hand".to_owned());
    session.info().supports.apply_edit.then_some(()).ok_or_else(unsupported)
}

fn address(command: &str, uri: &str) -> Result<Url> {
    Url::parse(uri).map_err(|_| Error::InvalidParams(format!("`{command}`: `uri` is not a valid URI")))
}

fn not_open(uri: &Url) -> Error {
    Error::NotFound(format!("{uri} is not an open config file"))
}
