//! What `mcp-sidecar add` does before it writes anything: asks for what is missing, offers to keep secrets in the keyring,
//! and reports mistakes.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::engine_client::EngineClient;
use super::style::{Color, Style};
use super::terminal::{self, Echo};
use super::usage;
use crate::config::shape::secrets;
use crate::lsp_client::CommandError;
use crate::model::{Error, Scope, ServerName};
use crate::protocol::commands::{FormCheck, ServerAdd, ServerForm};
use crate::protocol::errors::Violation;
use crate::protocol::form::Field;
use crate::secrets::{Keyring, keyring_name};
use crate::text::{Secret, one_line};

/// What the command line says about the new server.
pub(super) struct NewServer<'a> {
    /// `None`: as its source suggests.
    pub name: Option<&'a ServerName>,
    pub scope: Scope,
    pub env: &'a [(String, String)],
    /// Values for fields of the template.
    pub set: &'a [(String, String)],
}

/// The command that adds the server, and what that server runs. Fails if there is a mistake, so that nothing is written.
pub(super) async fn checked(
    engine: &EngineClient,
    context: &Context,
    form: ServerForm,
    new: &NewServer<'_>,
    template: Option<&str>,
) -> anyhow::Result<(ServerAdd, Vec<String>)> {
    let filled = engine.call(form.clone()).await?;
    let mut values = filled.values;
    if let Some(name) = new.name {
        values.insert("name".to_owned(), json!(name));
    }
    values.insert("scope".to_owned(), json!(new.scope.as_str()));
    for (name, value) in new.env {
        set_pair(&mut values, "env", name, value);
    }
    for (field, value) in new.set {
        if !filled.fields.iter().any(|each| each.name == *field) {
            let known: Vec<&str> = filled.fields.iter().map(|each| each.name.as_str()).collect();
            return Err(usage(format!(
                "the template has no field `{}`; it has {}",
                one_line(field, 100),
                known.join(", ")
            )));
        }
        values.insert(field.clone(), json!(value));
    }
    for field in filled.fields.iter().filter(|field| field.required) {
        if !values.contains_key(&field.name) {
            let value = ask(field, template).await?;
            values.insert(field.name.clone(), json!(value));
        }
    }
    for key in ["env", "headers"] {
        keep_secrets(context, &mut values, key).await?;
    }
    let check = FormCheck { server: Some(form), values, ..FormCheck::default() };
    let checked = engine.call(check).await?;
    report(&checked.warnings, "warning", Color::Attention)?;
    if !checked.problems.is_empty() {
        report(&checked.problems, "error", Color::Bad)?;
        let name = new.name.map_or_else(|| "the server".to_owned(), |name| format!("`{name}`"));
        let message = format!("{name} was not added");
        return Err(CommandError::from(&Error::Conflict(message)).into());
    }
    Ok((serde_json::from_value(Value::Object(checked.arguments))?, checked.preview))
}

/// Shows what a server of a stranger runs, and asks whether to add it. Nothing is written before that.
pub(super) async fn confirm(server: &ServerName, preview: &[String], yes: bool) -> anyhow::Result<()> {
    let lines: String = preview.iter().map(|line| format!("  {line}\n")).collect();
    terminal::eprint(&format!("`{server}`:\n{lines}"))?;
    if yes {
        return Ok(());
    }
    if !terminal::is_interactive() {
        return Err(usage("nothing was added: check the lines above, then pass --yes".to_owned()));
    }
    let answer = terminal::ask_decision("Add it? [y] yes  [n] no: ").await?.unwrap_or_default();
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandError::from(&Error::Conflict(format!("`{server}` was not added"))).into()),
    }
}

/// Asks for a field that has no value. A placeholder is never written: `npx` would run whatever has that name.
async fn ask(field: &Field, template: Option<&str>) -> anyhow::Result<String> {
    if terminal::is_interactive() {
        let typed = terminal::ask(&format!("{}: ", one_line(&field.title, 200)), Echo::On).await?.unwrap_or_default();
        if !typed.trim().is_empty() {
            return Ok(typed.trim().to_owned());
        }
    }
    let template = template.map(|id| format!("the template `{}`", one_line(id, 100)));
    let subject = template.unwrap_or_else(|| "the server".to_owned());
    Err(usage(format!("{subject} needs a value: pass --set {}=… ({})", field.name, one_line(&field.title, 200))))
}

fn set_pair(values: &mut Map<String, Value>, key: &str, name: &str, value: &str) {
    let pairs = values.entry(key).or_insert_with(|| json!([]));
    if let Some(pairs) = pairs.as_array_mut() {
        pairs.retain(|pair| pair.get("name").and_then(Value::as_str) != Some(name));
        pairs.push(json!({ "name": name, "value": value }));
    }
}

/// Offers to store secrets in the keyring and to write references instead. Without a terminal, the warning has to do.
async fn keep_secrets(context: &Context, values: &mut Map<String, Value>, key: &str) -> anyhow::Result<()> {
    let Some(Value::Array(pairs)) = values.get_mut(key) else { return Ok(()) };
    for pair in pairs {
        let text = |key: &str| pair.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (name, value) = (text("name"), text("value"));
        let Some(span) = secrets::find(Some(&name), &value).filter(|_| terminal::is_interactive()) else { continue };
        let entry = entry_name(&name);
        let question = format!(
            "`{}` is a secret. Store it in the keyring and write ${{keyring:{entry}}} instead? [y] yes  [n] no: ",
            one_line(&name, 100)
        );
        let answer = terminal::ask(&question, Echo::On).await?.unwrap_or_default();
        if !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            continue;
        }
        store(context, &entry, value.get(span.clone()).unwrap_or_default()).await?;
        *pair = json!({ "name": name, "value": with_reference(&value, span, &entry) });
    }
    Ok(())
}

/// The name of a secret in the keyring, for a variable or a header.
fn entry_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

fn with_reference(value: &str, span: Range<usize>, entry: &str) -> String {
    let before = value.get(..span.start).unwrap_or_default();
    let after = value.get(span.end..).unwrap_or_default();
    format!("{before}${{keyring:{entry}}}{after}")
}

/// Never replaces another secret.
async fn store(context: &Context, entry: &str, value: &str) -> anyhow::Result<()> {
    let paths = context.paths()?;
    let keyring = Keyring::open(&paths);
    keyring.allow_file(context.settings(&paths).secrets.file);
    let (name, secret) = (keyring_name(entry), Secret::new(value.to_owned()));
    if keyring.get(&name).await?.is_some_and(|known| known != secret) {
        anyhow::bail!(
            "the keyring already holds another value for `{entry}`; run `mcp-sidecar secret remove {entry}` first"
        );
    }
    keyring.set(&name, &secret).await?;
    Ok(())
}

fn report(found: &[Violation], kind: &str, color: Color) -> std::io::Result<()> {
    let style = Style::of_stderr();
    found.iter().try_for_each(|one| {
        let field = one.path.trim_start_matches('/');
        let place = if field.is_empty() { String::new() } else { format!("{field}: ") };
        terminal::eprint(&format!("{}: {place}{}\n", style.paint(color, kind), one_line(&one.message, 1_000)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_replaced_by_a_reference_and_the_rest_is_kept() {
        let value = "Bearer ghp_0123456789abcdef";
        let span = secrets::find(Some("Authorization"), value).unwrap();
        assert_eq!(with_reference(value, span, &entry_name("Authorization")), "Bearer ${keyring:AUTHORIZATION}");
        assert_eq!(entry_name("X-Api-Key"), "X_API_KEY");
    }
}
