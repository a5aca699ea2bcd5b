//! A `${…}`: what it stands for, and whether that is there. Never its value.

use super::Hover;
use crate::config::Span;
use crate::config::expand::{Piece, Reference, pieces};
use crate::config::tree::Step;
use crate::ide::markdown::{code, line};
use crate::ide::page::Page;
use crate::ide::uses::{self, Named, Role};
use crate::ide::words;
use crate::policy::location;

/// The reference under the cursor, if there is one in this string.
pub fn hover(page: &Page<'_>, path: &[Step], span: &Span, offset: usize) -> Option<Hover> {
    let inner = page.inner(span);
    let written = page.text.get(inner.clone())?;
    let (reference, span) = pieces(written).into_iter().find_map(|piece| match piece {
        Piece::Reference { reference, span } => {
            let span = inner.start + span.start..inner.start + span.end;
            (span.start <= offset && offset <= span.end).then_some((reference, span))
        }
        Piece::Text(_) => None,
    })?;
    let whole = code(page.text.get(span.clone())?);
    let in_action = matches!(path.first(), Some(Step::Key(section)) if section == "actions");
    let told = |name: &str, list: &[(&str, &str)]| {
        list.iter().find(|(known, _)| *known == name).map(|(_, docs)| (*docs).to_owned())
    };
    let words = match reference {
        Reference::Variable { name, .. } if in_action => told(&name, &words::ACTION_VARIABLES)
            .unwrap_or_else(|| format!("{} is none of the variables of an action.", code(&name))),
        Reference::Variable { name, default } => variable(page, &name, default.is_some()),
        Reference::Input(id) => return Some(Hover { span, markdown: input(page, &id) }),
        Reference::Keyring(name) => {
            format!("The value that the OS keyring holds under {}; read when the server starts.", code(&name))
        }
        Reference::WorkspaceFolder => told("workspaceFolder", &words::VARIABLES)?,
        Reference::WorkspaceFolderBasename => told("workspaceFolderBasename", &words::VARIABLES)?,
        Reference::UserHome => told("userHome", &words::VARIABLES)?,
        Reference::PathSeparator => told("pathSeparator", &words::VARIABLES)?,
        Reference::Cwd => told("cwd", &words::VARIABLES)?,
        Reference::Unknown(_) => "Unknown: the server is not started with this in its definition.".to_owned(),
    };
    Some(Hover { span, markdown: format!("**{whole}**\n\n{words}") })
}

fn variable(page: &Page<'_>, name: &str, has_default: bool) -> String {
    let name = match (page.variables.contains(name), has_default) {
        (true, _) => return format!("{} is set in the environment of the editor.", code(name)),
        (false, true) => return format!("{} is not set; the default counts.", code(name)),
        (false, false) => code(name),
    };
    format!(
        "{name} is not set: the server is not started. Set it before the editor starts, or write a default with `:-`."
    )
}

/// An input: what it asks, and where it is defined.
pub fn input(page: &Page<'_>, id: &str) -> String {
    let heading = format!("**{}**", code(&format!("${{input:{id}}}")));
    let own = Named::Input(id.to_owned());
    let here = uses::uses(page.text, page.tree).iter().any(|used| used.role == Role::Definition && used.named == own);
    let known: Vec<_> = page.loaded.config.inputs.iter().filter(|input| input.id == id).collect();
    let own = known.iter().find(|input| input.file.as_deref() == Some(page.path));
    match (own.or(known.first()), here) {
        (None, false) => format!("{heading}\n\nNot defined: `inputs` needs an entry with this id."),
        (None, true) => format!("{heading}\n\nAsked for when the file is saved and a server needs it."),
        (Some(input), _) => {
            let hidden = if input.password { ", not shown while typed" } else { "" };
            let from = code(&location(input.scope, input.file.as_deref(), None));
            format!(
                "{heading}\n\n{}\n\nAsked for when a server first needs it{hidden}, then kept in the OS keyring. Defined in {from}.",
                line(&input.description, 300)
            )
        }
    }
}
