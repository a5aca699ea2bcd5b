//! Converts `${…}` between file formats: the same reference can have different meanings, or none in another program.

use super::Dialect;
use super::format::Variable;
use super::notes::Notes;
use crate::config::expand::{Piece, Reference, pieces};
use crate::text::one_line;

/// Converts a text of a foreign file to our syntax. An error is the reason why this is impossible.
pub fn to_ours(dialect: Dialect, text: &str, notes: &mut Notes) -> Result<String, String> {
    let mut ours = String::with_capacity(text.len());
    let mut done = 0;
    let mut plain = |text: &str| convert(text, |reference, written| one_to_ours(dialect, reference, written, notes));
    for (span, reference) in (dialect.format().own_references)(text) {
        ours.push_str(&plain(text.get(done..span.start).unwrap_or_default())?);
        match &reference {
            Reference::TooDeep(shown) | Reference::Unknown(shown) => return Err(only_there(dialect, shown)),
            known => ours.push_str(&written(known)),
        }
        done = span.end;
    }
    ours.push_str(&plain(text.get(done..).unwrap_or_default())?);
    Ok(ours)
}

fn only_there(dialect: Dialect, written: &str) -> String {
    format!("it uses `{}`, which only {} can expand", one_line(written, 60), dialect.title())
}

/// Converts a text of ours to the syntax of a foreign file.
pub fn to_theirs(dialect: Dialect, text: &str, notes: &mut Notes) -> String {
    let converted = convert(text, |reference, written| Ok::<_, ()>(one_to_theirs(dialect, reference, written, notes)));
    converted.unwrap_or_default()
}

/// A reference in our syntax.
pub fn written(reference: &Reference) -> String {
    match reference {
        Reference::Variable { name, default: None } => format!("${{env:{name}}}"),
        Reference::Variable { name, default: Some(default) } => format!("${{{name}:-{default}}}"),
        Reference::WorkspaceFolder => "${workspaceFolder}".to_owned(),
        Reference::WorkspaceFolderBasename => "${workspaceFolderBasename}".to_owned(),
        Reference::UserHome => "${userHome}".to_owned(),
        Reference::PathSeparator => "${pathSeparator}".to_owned(),
        Reference::Cwd => "${cwd}".to_owned(),
        Reference::Input(id) => format!("${{input:{id}}}"),
        Reference::Keyring(name) => format!("${{keyring:{name}}}"),
        Reference::TooDeep(written) | Reference::Unknown(written) => written.clone(),
    }
}

pub fn variable(name: &str) -> String {
    format!("${{env:{name}}}")
}

/// Replaces each reference in a text.
pub fn convert<E>(text: &str, mut one: impl FnMut(Reference, &str) -> Result<String, E>) -> Result<String, E> {
    let mut converted = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(plain) => converted.push_str(plain),
            Piece::Reference { reference, span } => {
                converted.push_str(&one(reference, text.get(span).unwrap_or_default())?);
            }
        }
    }
    Ok(converted)
}

fn one_to_ours(dialect: Dialect, reference: Reference, raw: &str, notes: &mut Notes) -> Result<String, String> {
    let title = dialect.title();
    let shown = one_line(raw, 60);
    if raw.starts_with("${cmd:") {
        return Err(
            "it runs a command to get a value (`${cmd:…}`), which is not supported; use an environment variable instead"
                .to_owned(),
        );
    }
    match &reference {
        Reference::TooDeep(_) | Reference::Unknown(_) => return Err(only_there(dialect, raw)),
        Reference::Variable { name, .. } => match (dialect.format().variable)(name, raw) {
            Variable::Environment => {}
            Variable::Reference(reference) => return Ok(written(&reference)),
            Variable::OnlyThere => return Err(only_there(dialect, raw)),
        },
        _ => {}
    }
    if !(dialect.format().expands)(&reference, raw) {
        notes.add(format!("`{shown}` is plain text in {title}, but is expanded here"));
    }
    Ok(written(&reference))
}

fn one_to_theirs(dialect: Dialect, reference: Reference, raw: &str, notes: &mut Notes) -> String {
    let title = dialect.title();
    let ours = written(&reference);
    if (dialect.format().expands)(&reference, &ours) {
        return ours;
    }
    let by_hand = |notes: &mut Notes, what: &str| {
        notes.add(format!("{title} does not expand `{}`: replace it with {what}", one_line(&ours, 60)));
        ours.clone()
    };
    if let Some(spelling) = (dialect.format().spelling)(&reference) {
        return spelling;
    }
    match &reference {
        Reference::PathSeparator => std::path::MAIN_SEPARATOR.to_string(),
        Reference::Variable { name, default: Some(_) } => {
            let plain = Reference::Variable { name: name.clone(), default: None };
            notes.add(format!("{title} does not support defaults: the default of `{name}` is not exported"));
            one_to_theirs(dialect, plain, raw, notes)
        }
        Reference::Input(id) | Reference::Keyring(id) => {
            let name = variable_of(id);
            notes.add(format!(
                "`{}` became the environment variable `{name}`: {title} does not support this kind of value",
                one_line(raw, 60)
            ));
            one_to_theirs(dialect, Reference::Variable { name, default: None }, raw, notes)
        }
        Reference::Variable { name, .. } => by_hand(notes, &format!("the value of `{name}`")),
        Reference::TooDeep(_) | Reference::Unknown(_) => ours,
        _ => by_hand(notes, "the path"),
    }
}

/// A variable name for the id of an input or keyring entry.
fn variable_of(id: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(upper).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}
