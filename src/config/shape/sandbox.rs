//! `sandbox`: what the program of a server may reach.

use super::checks;
use super::keys::SANDBOX;
use super::reader::Reader;
use crate::config::problem::Code;
use crate::config::spec::Sandbox;
use crate::config::tree::{Node, Step};

/// Returns `None` after an error. A mistake disables the server: it must not run with a weaker sandbox than meant.
pub fn sandbox(reader: &mut Reader<'_>, node: &Node) -> Option<Sandbox> {
    let before = reader.errors();
    let fields = reader.object(node, &SANDBOX)?;
    reader.misspelled(&fields, &["read", "write", "network", "required"]);
    let mut folders = |key: &str| {
        let member = fields.get(key)?;
        reader.in_key(member, |reader| folders(reader, &member.value))
    };
    let (read, write) = (folders("read"), folders("write"));
    let mut flag = |key: &str| {
        let member = fields.get(key)?;
        reader.in_key(member, |reader| reader.flag(&member.value))
    };
    let (network, required) = (flag("network"), flag("required"));
    (reader.errors() == before).then(|| Sandbox {
        read,
        write: write.unwrap_or_default(),
        network: network.unwrap_or(false),
        required: required.unwrap_or(true),
    })
}

fn folders(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<String>> {
    let Some(items) = node.items() else {
        reader.wrong_type(node, "a list of strings");
        return None;
    };
    let read = |(index, item): (usize, &Node)| reader.within(Step::Index(index), |reader| folder(reader, item));
    items.iter().enumerate().map(read).collect()
}

fn folder(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let text = reader.text(node)?;
    if text.is_empty() || text.contains('\0') {
        let message = format!("`{}` must be a path", reader.here());
        reader.problem(Code::MissingKey, &node.span, message);
        return None;
    }
    checks::deceptive(reader, node, text.chars())?;
    reader.references(text, &node.span);
    Some(text.to_owned())
}
