//! Describes a `${…}` reference and whether it is defined, but never its value.

use super::Hover;
use crate::config::Span;
use crate::config::expand::{ExpandError, Piece, Reference, pieces};
use crate::config::tree::Step;
use crate::ide::config_view::ConfigView;
use crate::ide::markdown::{code, line};
use crate::ide::occurrences::Named;
use crate::ide::value_docs;
use crate::policy::location;

/// The reference at the cursor, if there is one in this string.
pub fn hover(config: &ConfigView<'_>, path: &[Step], span: &Span, offset: usize) -> Option<Hover> {
    let inner = config.inner(span);
    let written = config.text.get(inner.clone())?;
    let (reference, span) = pieces(written).into_iter().find_map(|piece| match piece {
        Piece::Reference { reference, span } => {
            let span = inner.start + span.start..inner.start + span.end;
            (span.start <= offset && offset <= span.end).then_some((reference, span))
        }
        Piece::Text(_) => None,
    })?;
    let whole = code(config.text.get(span.clone())?);
    let in_action = matches!(path.first(), Some(Step::Key(section)) if section == "actions");
    let builtin = |name: &str, list: &[(&str, &str)]| {
        list.iter().find(|(known, _)| *known == name).map(|(_, docs)| (*docs).to_owned())
    };
    let description = match reference {
        Reference::Variable { name, .. } if in_action => builtin(&name, &value_docs::ACTION_VARIABLES)
            .unwrap_or_else(|| format!("{} is not a variable for actions.", code(&name))),
        Reference::Variable { name, default } => variable(config, &name, default.is_some()),
        Reference::Input(id) => return Some(Hover { span, markdown: input(config, &id) }),
        Reference::Keyring(name) => {
            format!("The value of {} in the OS keyring. It is read when the server starts.", code(&name))
        }
        Reference::WorkspaceFolder => builtin("workspaceFolder", &value_docs::VARIABLES)?,
        Reference::WorkspaceFolderBasename => builtin("workspaceFolderBasename", &value_docs::VARIABLES)?,
        Reference::UserHome => builtin("userHome", &value_docs::VARIABLES)?,
        Reference::PathSeparator => builtin("pathSeparator", &value_docs::VARIABLES)?,
        Reference::Cwd => builtin("cwd", &value_docs::VARIABLES)?,
        Reference::TooDeep(_) => format!("The server cannot be started: {}.", ExpandError::Deep),
        Reference::Unknown(_) => "Unknown variable: the server cannot be started.".to_owned(),
    };
    Some(Hover { span, markdown: format!("**{whole}**\n\n{description}") })
}

fn variable(config: &ConfigView<'_>, name: &str, has_default: bool) -> String {
    let name = match (config.variables.contains(name), has_default) {
        (true, _) => return format!("{} is set in the editor's environment.", code(name)),
        (false, true) => return format!("{} is not set; the default is used.", code(name)),
        (false, false) => code(name),
    };
    format!(
        "{name} is not set, so the server cannot be started. Set it before you start the editor, or add a default with `:-`."
    )
}

/// The description of an input, and where it is defined.
pub fn input(config: &ConfigView<'_>, id: &str) -> String {
    let heading = format!("**{}**", code(&format!("${{input:{id}}}")));
    let named = Named::Input(id.to_owned());
    let here = config.occurrences().iter().any(|occurrence| occurrence.defines(&named));
    let known: Vec<_> = config.loaded.config.inputs.iter().filter(|input| input.id == id).collect();
    let own = known.iter().find(|input| input.file.as_deref() == Some(config.path));
    match (own.or(known.first()), here) {
        (None, false) => format!("{heading}\n\nNot defined. Add an entry with this id to `inputs`."),
        (None, true) => format!("{heading}\n\nYou are asked for it when the file is saved and a server needs it."),
        (Some(input), _) => {
            let hidden = if input.password { " It is hidden while you type." } else { "" };
            let from = code(&location(input.scope, input.file.as_deref(), None));
            format!(
                "{heading}\n\n{}\n\nYou are asked for it when a server first needs it, and it is stored in the OS keyring.{hidden} Defined in {from}.",
                line(&input.description, 300)
            )
        }
    }
}
