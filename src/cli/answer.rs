//! `mcp-sidecar approve` and `mcp-sidecar deny`: answer questions that wait, wherever they were asked.

use serde_json::{Value, json};

use super::context::Context;
use super::engine_client::{self, EngineClient, NO_ENGINE};
use super::question::{answer_of, describe, find, in_full, resolve};
use super::style::Style;
use super::terminal;
use super::{Status, form, usage};
use crate::protocol::commands::ApprovalResolve;
use crate::protocol::types::{Approval, ApprovalKind};
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Approve {
    /// IDs of questions, as listed by `mcp-sidecar approvals`; the beginning of each is enough
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Set how long the answer applies [default: once for a tool, project for trust]
    #[arg(long = "for", value_name = "TIME", value_enum)]
    lasting: Option<Lasting>,
    /// Show the question and answer it, without asking for confirmation
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Lasting {
    /// Allow only this call
    Once,
    /// Allow it until the last editor or agent closes this workspace
    Session,
    /// Allow it in this project
    Project,
    /// Allow it in all projects
    Always,
}

#[derive(Debug, clap::Args)]
pub(super) struct Deny {
    /// IDs of questions, as listed by `mcp-sidecar approvals`; the beginning of each is enough
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Explain the reason to the caller
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub(super) fn approve(arguments: Approve, context: &Context) -> anyhow::Result<Status> {
    answer(context, &arguments.ids, async |engine, questions| {
        let decision = match (arguments.lasting, kind_of(questions)?) {
            (Some(Lasting::Once), _) | (None, ApprovalKind::Tool) => "allow-once",
            (Some(Lasting::Session), _) => "allow-session",
            (Some(Lasting::Project), _) | (None, ApprovalKind::Trust) => "allow-project",
            (Some(Lasting::Always), _) => "allow-always",
            (None, ApprovalKind::Elicitation | ApprovalKind::Input) => "accept",
        };
        check_offered(questions, decision)?;
        match questions {
            [only] if only.kind == ApprovalKind::Tool => {
                let agreed = agrees(engine, &[only], arguments.yes).await?;
                Ok(agreed.then(|| ApprovalResolve::one(&only.id, decision)))
            }
            [only] => {
                let content = content(engine, only, decision, arguments.yes).await?;
                Ok(content.map(|content| ApprovalResolve {
                    content: Some(content),
                    ..ApprovalResolve::one(&only.id, decision)
                }))
            }
            several => {
                let agreed = agrees(engine, several, arguments.yes).await?;
                Ok(agreed.then(|| ApprovalResolve::several(ids(several), decision)))
            }
        }
    })
}

pub(super) fn deny(arguments: Deny, context: &Context) -> anyhow::Result<Status> {
    answer(context, &arguments.ids, async |_, questions| {
        let is_form = |each: &&Approval| matches!(each.kind, ApprovalKind::Elicitation | ApprovalKind::Input);
        if arguments.note.is_some() && questions.iter().any(|question| question.kind != ApprovalKind::Tool) {
            return Err(usage("--note works only for tool calls; this question comes from a server".to_owned()));
        }
        let decision = if questions.iter().all(is_form) { "decline" } else { "deny" };
        check_offered(questions, decision)?;
        let reply = match questions {
            [only] => ApprovalResolve::one(&only.id, decision),
            several => ApprovalResolve::several(ids(several), decision),
        };
        Ok(Some(ApprovalResolve { note: arguments.note.clone(), ..reply }))
    })
}

fn ids(questions: &[&Approval]) -> Vec<String> {
    questions.iter().map(|question| question.id.clone()).collect()
}

/// The kind of these questions, if they can be approved together.
fn kind_of(questions: &[&Approval]) -> anyhow::Result<ApprovalKind> {
    let all = |kind: ApprovalKind| questions.iter().all(|question| question.kind == kind);
    match questions {
        [only] => Ok(only.kind),
        _ if all(ApprovalKind::Tool) => Ok(ApprovalKind::Tool),
        _ if all(ApprovalKind::Trust) => Ok(ApprovalKind::Trust),
        _ => Err(usage("only calls, or only servers, can be approved together".to_owned())),
    }
}

/// Shows the calls or definitions in full and asks the user whether to allow or trust all of them. A script that names
/// the ID of a call has been told what it is about.
async fn agrees(engine: &EngineClient, questions: &[&Approval], yes: bool) -> anyhow::Result<bool> {
    let are_calls = kind_of(questions)? == ApprovalKind::Tool;
    if are_calls && (yes || !terminal::is_interactive()) {
        return Ok(true);
    }
    for question in questions {
        terminal::eprint(&describe(&in_full(engine, (*question).clone()).await?, Style::of_stderr()))?;
    }
    if yes {
        return Ok(true);
    }
    if !terminal::is_interactive() {
        return Err(usage("cannot ask without a terminal; pass --yes to answer".to_owned()));
    }
    let verb = if are_calls { "Allow" } else { "Trust" };
    let all = if questions.len() > 1 { format!(" all {}", questions.len()) } else { " it".to_owned() };
    let prompt = format!("  {verb}{all}? [y] yes  [n] no: ");
    let typed = terminal::ask_decision(&prompt).await?.unwrap_or_default();
    Ok(matches!(typed.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Finds the questions and sends the answer that `decide` returns. Without one, nothing is sent.
fn answer(
    context: &Context,
    ids: &[String],
    decide: impl AsyncFnOnce(&EngineClient, &[&Approval]) -> anyhow::Result<Option<ApprovalResolve>>,
) -> anyhow::Result<Status> {
    let status = engine_client::run_shared(context, async |engine| {
        let waiting = engine.questions().borrow().clone();
        let mut questions: Vec<&Approval> = Vec::new();
        for id in ids {
            let question = find(&waiting.approvals, id)?;
            if !questions.iter().any(|other| other.id == question.id) {
                questions.push(question);
            }
        }
        let Some(reply) = decide(engine, &questions).await? else { return Ok(Status::Failed) };
        let decision = reply.decision.clone();
        let answered = resolve(engine, reply).await?;
        for question in questions {
            let title = one_line(&question.title, 400);
            if answered.gone.contains(&question.id) {
                terminal::eprint(&format!("already answered, expired or withdrawn: {title}\n"))?;
            }
            // An answer that lasts has been explained.
            else if let Some(answer) = answer_of(question, &decision).filter(|answer| !answer.lasts) {
                terminal::eprint(&format!("answered with “{}”: {title}\n", answer.label))?;
            }
        }
        Ok(Status::Ok)
    })?;
    match status {
        Some(status) => Ok(status),
        None => {
            terminal::eprint(&format!("{NO_ENGINE}\n"))?;
            Ok(Status::Failed)
        }
    }
}

fn check_offered(questions: &[&Approval], decision: &str) -> anyhow::Result<()> {
    let Some(question) = questions.iter().find(|question| answer_of(question, decision).is_none()) else {
        return Ok(());
    };
    let options = question.options.join(", ");
    Err(usage(format!("`{decision}` is not an answer to this question; expected one of: {options}")))
}

/// What the user fills in or agrees to, after seeing the whole question. `None` if they do not agree.
async fn content(
    engine: &EngineClient,
    question: &Approval,
    decision: &str,
    yes: bool,
) -> anyhow::Result<Option<Value>> {
    let is_form = form::fields_of(question).is_some();
    if (is_form || !yes) && terminal::is_interactive() {
        return form::ask(engine, question, decision).await;
    }
    terminal::eprint(&describe(question, Style::of_stderr()))?;
    match (is_form, yes) {
        (true, _) => Err(usage("cannot fill in a form without a terminal".to_owned())),
        (false, true) => Ok(Some(json!({}))),
        (false, false) => Err(usage("cannot ask without a terminal; pass --yes to answer".to_owned())),
    }
}
