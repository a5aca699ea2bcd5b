//! Questions of the engine, put to the person at the terminal: may this tool run, and what servers want to know.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::form;
use super::live::{Live, Question};
use super::look::{Look, Tone};
use super::terminal::{self, Echo};
use crate::text::visible;

/// The keys for the answers to a question about a tool.
const KEYS: [(&str, &str, &str); 5] = [
    ("y", "allow-once", "yes, once"),
    ("s", "allow-session", "for this session"),
    ("p", "allow-project", "for this project"),
    ("a", "allow-always", "always"),
    ("n", "deny", "no"),
];

/// Puts every question that is `ours`, until the terminal has no more answers. Questions of trust have a time of their
/// own: before a call, or by `mcp-sidecar trust`.
pub(super) async fn answer_all(live: &Live, ours: impl Fn(&Question) -> bool) {
    let mut questions = live.questions();
    loop {
        let next =
            questions.borrow_and_update().iter().find(|question| question.kind != "trust" && ours(question)).cloned();
        let answered = match next {
            Some(question) => answer(live, &question).await,
            None if questions.changed().await.is_err() => return,
            None => continue,
        };
        match answered {
            Ok(true) => {}
            Ok(false) | Err(_) => return,
        }
    }
}

/// Puts one question; false when the terminal has gone.
async fn answer(live: &Live, question: &Question) -> anyhow::Result<bool> {
    let reply = match question.kind.as_str() {
        "tool" => match decision(&tool(question)).await? {
            Some(decision) => json!({ "decision": decision }),
            None => return Ok(false),
        },
        _ => form::fill(question).await?,
    };
    let mut params = reply;
    if let Some(fields) = params.as_object_mut() {
        fields.insert("id".to_owned(), json!(question.id));
    }
    if let Err(failure) = live.run("mcp.approval.resolve", params).await {
        terminal::say(&format!("{failure}\n"))?;
    }
    Ok(true)
}

/// Asks until one of the keys is pressed.
async fn decision(text: &str) -> anyhow::Result<Option<&'static str>> {
    let look = Look::of_stderr();
    let keys: Vec<String> = KEYS.iter().map(|(key, _, words)| format!("[{key}] {words}")).collect();
    terminal::say(text)?;
    loop {
        let prompt = format!("{} ", look.tone(Tone::Heading, &format!("{}:", keys.join("  "))));
        let Some(typed) = terminal::ask(&prompt, Echo::On).await? else { return Ok(None) };
        let typed = typed.trim().to_lowercase();
        let meant = KEYS.iter().find(|(key, decision, _)| {
            typed == *key || typed == *decision || (typed == "yes" && *key == "y") || (typed == "no" && *key == "n")
        });
        if let Some((_, decision, _)) = meant {
            return Ok(Some(decision));
        }
    }
}

/// What would run, with its arguments in full.
fn tool(question: &Question) -> String {
    let look = Look::of_stderr();
    let mut text = format!("\n{}\n", look.tone(Tone::Heading, &visible(&question.title, 400)));
    for line in question.detail.lines() {
        writeln!(text, "  {}", look.tone(Tone::Dim, line)).ok();
    }
    if let Some(diff) = &question.diff {
        for line in visible(diff, usize::MAX).lines() {
            writeln!(text, "  {}", look.tone(Tone::Waiting, line)).ok();
        }
    }
    let claimed = |key: &str| question.annotations.as_ref().is_some_and(|claims| claims.get(key) == Some(&json!(true)));
    let claims = [("readOnly", "read-only"), ("destructive", "destructive")];
    let claims: Vec<&str> = claims.iter().filter(|(key, _)| claimed(key)).map(|(_, word)| *word).collect();
    if !claims.is_empty() {
        writeln!(text, "  {}", look.tone(Tone::Dim, &format!("says of itself: {}", claims.join(", ")))).ok();
    }
    let arguments = question.arguments.as_ref().unwrap_or(&Value::Null);
    for line in visible(&format!("{arguments:#}"), usize::MAX).lines() {
        writeln!(text, "  {line}").ok();
    }
    text
}
