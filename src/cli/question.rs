//! The questions of the engine in the terminal: whether a tool may run, and what servers ask the user.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tokio::sync::watch;

use super::engine_client::{EngineClient, in_shell};
use super::form;
use super::style::{Color, Style};
use super::terminal;
use crate::engine::approvals::unknown;
use crate::lsp_client::CommandError;
use crate::protocol::actions::Remedy;
use crate::protocol::answers::Resolved;
use crate::protocol::commands::{ApprovalResolve, Approvals, Command, Grants, Servers};
use crate::protocol::types::{Approval, ApprovalAnswer, ApprovalKind};
use crate::text::{mask, visible};

/// The keys of the answers to a question about a tool.
const KEYS: [(&str, &str); 5] =
    [("y", "allow-once"), ("s", "allow-session"), ("p", "allow-project"), ("a", "allow-always"), ("n", "deny")];
/// The shortest beginning of an ID that is shown.
const SHORTEST_ID: usize = 8;
/// The shortest beginning of an ID that is accepted.
const SHORTEST_TYPED: usize = 4;

/// Asks every question that is `ours`, until the input ends. Questions about trust are not asked here: `call` and
/// `mcp-sidecar trust` ask them. `sending` is true while an answer is sent, until its effect was printed.
pub(super) async fn answer_all(engine: &EngineClient, ours: impl Fn(&Approval) -> bool, sending: &watch::Sender<bool>) {
    let mut questions = engine.questions();
    // A question may still be in the list after it was answered.
    let mut asked = BTreeSet::new();
    loop {
        let is_next = |question: &&Approval| {
            question.kind != ApprovalKind::Trust && ours(question) && !asked.contains(&question.id)
        };
        let next = questions.borrow_and_update().approvals.iter().find(is_next).cloned();
        let answered = match next {
            Some(question) => {
                asked.insert(question.id.clone());
                answer(engine, &question, sending).await
            }
            None if questions.changed().await.is_err() => return,
            None => continue,
        };
        match answered {
            Ok(true) => {}
            // For example, an editor was faster.
            Err(error) if error.is::<CommandError>() && terminal::eprint(&format!("{error}\n")).is_ok() => {}
            Ok(false) | Err(_) => return,
        }
    }
}

/// Asks one question. Returns false at the end of the input.
async fn answer(engine: &EngineClient, question: &Approval, sending: &watch::Sender<bool>) -> anyhow::Result<bool> {
    let question = &in_full(engine, question.clone()).await?;
    let answer = match question.kind {
        ApprovalKind::Tool => match ask_decision(question).await? {
            Some(decision) => ApprovalResolve::one(&question.id, &decision),
            None => return Ok(false),
        },
        _ => form::fill(engine, question).await?,
    };
    sending.send_replace(true);
    let resolved = resolve(engine, answer).await;
    sending.send_replace(false);
    resolved.map(|_| true)
}

/// A question of a list, with its arguments even if they are large.
pub(super) async fn in_full(engine: &EngineClient, listed: Approval) -> anyhow::Result<Approval> {
    match &listed.large_arguments {
        Some(_) => {
            let id = Some(listed.id.clone());
            Ok(engine.call(Approvals { id }).await?.approvals.pop().unwrap_or(listed))
        }
        None => Ok(listed),
    }
}

/// Asks until the user enters one of the keys.
async fn ask_decision(question: &Approval) -> anyhow::Result<Option<String>> {
    let style = Style::of_stderr();
    let offered: Vec<(&str, &ApprovalAnswer)> =
        KEYS.iter().filter_map(|(key, decision)| Some((*key, answer_of(question, decision)?))).collect();
    let keys: Vec<String> = offered.iter().map(|(key, answer)| format!("[{key}] {}", answer.label)).collect();
    terminal::eprint(&describe(question, style))?;
    loop {
        let prompt = format!("{} ", style.paint(Color::Heading, &format!("{}:", keys.join("  "))));
        let Some(typed) = terminal::ask_decision(&prompt).await? else { return Ok(None) };
        let typed = typed.trim().to_lowercase();
        let chosen = offered.iter().find(|(key, answer)| {
            typed == *key
                || typed == answer.decision
                || (typed == "yes" && *key == "y")
                || (typed == "no" && *key == "n")
        });
        if let Some((_, answer)) = chosen {
            return Ok(Some(answer.decision.clone()));
        }
        terminal::eprint(&format!("{}\n", terminal::NO_SUCH_KEY))?;
    }
}

pub(super) fn answer_of<'a>(question: &'a Approval, decision: &str) -> Option<&'a ApprovalAnswer> {
    question.answers.iter().find(|answer| answer.decision == decision)
}

/// Sends the answer. If it lasts, says what it changed and how to undo that.
pub(super) async fn resolve(engine: &EngineClient, reply: ApprovalResolve) -> anyhow::Result<Resolved> {
    let is_yes = reply.decision.starts_with("allow-");
    let answered = engine.call(reply).await?;
    if let Some(effect) = &answered.effect {
        let undo = answered.undo.as_ref().map(|undo| format!("\n{}", how_to_undo(undo, is_yes)));
        terminal::eprint(&format!("{effect}{}\n", undo.unwrap_or_default()))?;
    }
    Ok(answered)
}

/// The command that takes back an answer. The shell has one for each server and each grant, not for several.
fn how_to_undo(undo: &Remedy, is_yes: bool) -> String {
    match undo.command.as_str() {
        Grants::NAME => {
            "To undo this, run `mcp-sidecar grants revoke ID`; `mcp-sidecar grants` lists the IDs.".to_owned()
        }
        Servers::NAME if is_yes => "To undo this, run `mcp-sidecar trust SERVER --revoke` for each.".to_owned(),
        Servers::NAME => "To undo this, run `mcp-sidecar trust SERVER` for each.".to_owned(),
        _ => format!("To undo this: {}{}", undo.title, in_shell(Some(undo))),
    }
}

/// The question with this ID, or the only one whose ID begins with it.
pub(super) fn find<'a>(questions: &'a [Approval], id: &str) -> anyhow::Result<&'a Approval> {
    // A shorter beginning could also match a question that has just been asked.
    let is_meant = |each: &&Approval| each.id == id || (id.len() >= SHORTEST_TYPED && each.id.starts_with(id));
    let matching: Vec<&Approval> = questions.iter().filter(is_meant).collect();
    match matching.as_slice() {
        [] => Err(CommandError::from(&unknown(id)).into()),
        [only] => Ok(only),
        several => match several.iter().find(|each| each.id == id) {
            Some(exact) => Ok(exact),
            None => {
                let ids: Vec<&str> = several.iter().map(|each| each.id.as_str()).collect();
                anyhow::bail!("several questions have an ID that begins with `{id}`: {}", ids.join(", "))
            }
        },
    }
}

/// The beginning of the ID that is enough to name the question.
pub(super) fn short_id<'a>(question: &'a Approval, questions: &[Approval]) -> &'a str {
    let is_unique = |short: &str| questions.iter().all(|each| each.id == question.id || !each.id.starts_with(short));
    let beginnings = (SHORTEST_ID..question.id.len()).filter_map(|end| question.id.get(..end));
    beginnings.into_iter().find(|short| is_unique(short)).unwrap_or(&question.id)
}

/// Describes the question in full.
pub(super) fn describe(question: &Approval, style: Style) -> String {
    let mut text = format!("\n{}\n", style.paint(Color::Heading, &visible(&question.title, 400)));
    let mut add = |color: Color, lines: &str| {
        for line in visible(lines, usize::MAX).lines() {
            writeln!(text, "  {}", style.paint(color, line)).ok();
        }
    };
    // The definition of a server must be readable.
    let color = if question.kind == ApprovalKind::Tool { Color::Dim } else { Color::Plain };
    add(color, &mask(&question.detail));
    add(Color::Attention, &mask(question.diff.as_deref().unwrap_or_default()));
    let claimed = question.annotations.unwrap_or_default();
    let claims = [(claimed.read_only, "read-only"), (claimed.destructive, "destructive")];
    let claims: Vec<&str> =
        claims.into_iter().filter(|(claimed, _)| *claimed == Some(true)).map(|(_, word)| word).collect();
    if !claims.is_empty() {
        add(Color::Dim, &format!("the server says: {}", claims.join(", ")));
    }
    add(Color::Plain, question.url.as_deref().unwrap_or_default());
    if let Some(arguments) = &question.arguments {
        add(Color::Plain, &format!("{arguments:#}"));
    }
    if let Some(change) = &question.change {
        add(Color::Attention, &change.diff);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn questions(ids: &[&str]) -> Vec<Approval> {
        let question = |id: &&str| {
            serde_json::from_value(
                json!({ "id": id, "kind": "tool", "server": "demo", "title": "", "summary": "", "detail": "",
                "requester": { "kind": "user" }, "options": [], "answers": [],
                "createdAt": "2026-11-16T08:00:00.000Z", "expiresAt": "2026-11-16T08:05:00.000Z" }),
            )
            .unwrap()
        };
        ids.iter().map(question).collect()
    }

    #[test]
    fn the_beginning_of_an_id_is_enough_if_it_is_unambiguous() {
        let questions = questions(&["0123456789ab", "0123456789cd", "fedcba987654", "fedc"]);
        let found = |id: &str| find(&questions, id).map(|each| each.id.as_str()).map_err(|error| error.to_string());
        assert_eq!(found("0123456789c").unwrap(), "0123456789cd");
        assert_eq!(found("fedcb").unwrap(), "fedcba987654");
        assert_eq!(found("fedc").unwrap(), "fedc", "a whole ID is never ambiguous");
        let several = "several questions have an ID that begins with `0123`: 0123456789ab, 0123456789cd";
        assert_eq!(found("0123").unwrap_err(), several);
        for wrong in ["", "7", "012", "0123456789abc"] {
            assert!(found(wrong).unwrap_err().starts_with("unknown approval"), "{wrong}");
        }
        let short: Vec<&str> = questions.iter().map(|each| short_id(each, &questions)).collect();
        assert_eq!(short, ["0123456789a", "0123456789c", "fedcba98", "fedc"]);
    }
}
