//! Asks the questions of the engine in the terminal: whether a tool may run, and what servers ask the user.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::engine_client::{EngineClient, Question};
use super::form;
use super::style::{Color, Style};
use super::terminal::{self, Echo};
use crate::text::visible;

/// The answers to a question about a tool: key, decision, label.
const KEYS: [(&str, &str, &str); 5] = [
    ("y", "allow-once", "yes, once"),
    ("s", "allow-session", "for this session"),
    ("p", "allow-project", "for this project"),
    ("a", "allow-always", "always"),
    ("n", "deny", "no"),
];

/// Asks every question that is `ours`, until the input ends. Questions about trust are not asked here: `call` and
/// `mcp-sidecar trust` ask them.
pub(super) async fn answer_all(engine: &EngineClient, ours: impl Fn(&Question) -> bool) {
    let mut questions = engine.questions();
    loop {
        let next =
            questions.borrow_and_update().iter().find(|question| question.kind != "trust" && ours(question)).cloned();
        let answered = match next {
            Some(question) => answer(engine, &question).await,
            None if questions.changed().await.is_err() => return,
            None => continue,
        };
        match answered {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
    }
}

/// Asks one question. Returns false at the end of the input.
async fn answer(engine: &EngineClient, question: &Question) -> anyhow::Result<bool> {
    let reply = match question.kind.as_str() {
        "tool" => match ask_decision(&describe(question)).await? {
            Some(decision) => json!({ "decision": decision }),
            None => return Ok(false),
        },
        _ => form::fill(question).await?,
    };
    let mut params = reply;
    if let Some(fields) = params.as_object_mut() {
        fields.insert("id".to_owned(), json!(question.id));
    }
    if let Err(error) = engine.run("mcp.approval.resolve", params).await {
        terminal::eprint(&format!("{error}\n"))?;
    }
    Ok(true)
}

/// Asks until the user enters one of the keys.
async fn ask_decision(text: &str) -> anyhow::Result<Option<&'static str>> {
    let style = Style::of_stderr();
    let keys: Vec<String> = KEYS.iter().map(|(key, _, label)| format!("[{key}] {label}")).collect();
    terminal::eprint(text)?;
    loop {
        let prompt = format!("{} ", style.paint(Color::Heading, &format!("{}:", keys.join("  "))));
        let Some(typed) = terminal::ask(&prompt, Echo::On).await? else { return Ok(None) };
        let typed = typed.trim().to_lowercase();
        let answer = KEYS.iter().find(|(key, decision, _)| {
            typed == *key || typed == *decision || (typed == "yes" && *key == "y") || (typed == "no" && *key == "n")
        });
        if let Some((_, decision, _)) = answer {
            return Ok(Some(decision));
        }
    }
}

/// Describes the call, with all arguments.
fn describe(question: &Question) -> String {
    let style = Style::of_stderr();
    let mut text = format!("\n{}\n", style.paint(Color::Heading, &visible(&question.title, 400)));
    for line in question.detail.lines() {
        writeln!(text, "  {}", style.paint(Color::Dim, line)).ok();
    }
    if let Some(diff) = &question.diff {
        for line in visible(diff, usize::MAX).lines() {
            writeln!(text, "  {}", style.paint(Color::Waiting, line)).ok();
        }
    }
    let claimed = |key: &str| question.annotations.as_ref().is_some_and(|claims| claims.get(key) == Some(&json!(true)));
    let claims = [("readOnly", "read-only"), ("destructive", "destructive")];
    let claims: Vec<&str> = claims.iter().filter(|(key, _)| claimed(key)).map(|(_, word)| *word).collect();
    if !claims.is_empty() {
        writeln!(text, "  {}", style.paint(Color::Dim, &format!("the server says: {}", claims.join(", ")))).ok();
    }
    let arguments = question.arguments.as_ref().unwrap_or(&Value::Null);
    for line in visible(&format!("{arguments:#}"), usize::MAX).lines() {
        writeln!(text, "  {line}").ok();
    }
    text
}
