//! `mcp-sidecar approvals`: the questions that wait for the user, wherever they were asked.

use super::calls::name_of;
use super::context::Context;
use super::engine_client::{self, Cancelled, EngineClient, NO_ENGINE, Questions};
use super::question::{describe, find, in_full, short_id};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, format_time, print, print_json};
use crate::protocol::answers::ApprovalList;
use crate::protocol::events::ApprovalsChanged;
use crate::protocol::types::{Approval, ApprovalGroup, ApprovalKind, ClosedApproval};
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show this question in full; the beginning of its ID is enough
    id: Option<String>,
    /// Show all questions in full, with arguments and diffs
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Print each question when it is asked, and again when it is answered or withdrawn, until you press Ctrl-C
    #[arg(long, short, conflicts_with = "id")]
    watch: bool,
    /// Print JSON instead of text; with --watch, one line for each change
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let Arguments { json, watch: is_watch, .. } = arguments;
    let status = engine_client::run_shared(context, async |engine| {
        if arguments.watch {
            return watch(engine, &arguments).await;
        }
        let waiting = engine.questions().borrow().clone();
        let (approvals, groups) = match &arguments.id {
            Some(id) => (vec![in_full(engine, find(&waiting.approvals, id)?.clone()).await?], Vec::new()),
            None => (waiting.approvals.clone(), waiting.groups.clone()),
        };
        match arguments.json {
            true => return print_json(&ApprovalList { approvals, groups }),
            false if approvals.is_empty() => print("no questions are waiting for an answer\n")?,
            false if arguments.verbose || arguments.id.is_some() => {
                print(&approvals.iter().map(|question| full(question, Style::of_stdout())).collect::<String>())?;
            }
            false => {
                print(&table(&approvals).text(Style::of_stdout(), size().map(|size| size.columns)))?;
                print(&groups.iter().map(|group| describe_group(group, &approvals)).collect::<String>())?;
            }
        }
        Ok(Status::Ok)
    });
    match status {
        Ok(Some(status)) => Ok(status),
        // This is how a watch ends.
        Err(error) if is_watch && error.is::<Cancelled>() => Ok(Status::Ok),
        Err(error) => Err(error),
        Ok(None) if json => print_json(&ApprovalList::default()),
        Ok(None) => {
            let next = if is_watch { " Start an agent or an editor, then run this again." } else { "" };
            print(&format!("{NO_ENGINE}{next}\n"))?;
            Ok(Status::Ok)
        }
    }
}

/// Prints what changes until the engine ends.
async fn watch(engine: &EngineClient, arguments: &Arguments) -> anyhow::Result<Status> {
    let mut questions = engine.questions();
    let mut before: Option<Questions> = None;
    questions.mark_changed();
    while questions.changed().await.is_ok() {
        let now = questions.borrow_and_update().clone();
        // The engine may send the same list again.
        if before.as_ref() == Some(&now) {
            continue;
        }
        let is_known = |id: &str| before.iter().any(|before| before.closed.iter().any(|closed| closed.id == id));
        let closed: Vec<ClosedApproval> = now.closed.iter().filter(|closed| !is_known(&closed.id)).cloned().collect();
        if arguments.json {
            let change = ApprovalsChanged { closed, ..ApprovalsChanged::clone(&now) };
            print(&format!("{}\n", serde_json::to_string(&change)?))?;
        } else {
            let before = before.as_ref().map_or(&[][..], |before| &before.approvals);
            print(&changes(before, &now.approvals, &closed, arguments.verbose))?;
        }
        before = Some(now);
    }
    Ok(Status::Ok)
}

/// One line for each question that has ended or is new.
fn changes(before: &[Approval], now: &[Approval], closed: &[ClosedApproval], verbose: bool) -> String {
    let style = Style::of_stdout();
    let line = |color: Color, word: &str, question: &Approval, all: &[Approval], end: &str| {
        let (word, id) = (style.paint(color, word), short_id(question, all));
        let title = one_line(&question.title, 400);
        format!("{word}  {id}  {}  {}  {title}{end}\n", kind(question), asker(question))
    };
    let is_in = |list: &[Approval], question: &Approval| list.iter().any(|each| each.id == question.id);
    let ended = before.iter().filter(|question| !is_in(now, question)).map(|question| {
        let how = closed.iter().find(|closed| closed.id == question.id);
        let how = how.map(|closed| format!("  ({})", one_line(&closed.message, 400))).unwrap_or_default();
        line(Color::Dim, "ended  ", question, before, &how)
    });
    let mut text: String = ended.collect();
    for question in now.iter().filter(|question| !is_in(before, question)) {
        text.push_str(&line(Color::Attention, "waiting", question, now, ""));
        if verbose {
            text.push_str(&full(question, style));
        }
    }
    text
}

/// A group, and the command that answers its questions together.
fn describe_group(group: &ApprovalGroup, questions: &[Approval]) -> String {
    let ids = group.ids.iter().filter_map(|id| questions.iter().find(|question| question.id == *id));
    let ids: Vec<&str> = ids.map(|question| short_id(question, questions)).collect();
    format!("\n{}\n  mcp-sidecar approve {}\n", one_line(&group.title, 400), ids.join(" "))
}

fn table(questions: &[Approval]) -> Table {
    let mut table = Table::new(&["ID", "KIND", "BY", "SINCE", "EXPIRES", "QUESTION"]);
    for question in questions {
        table.row(vec![
            Cell::plain(short_id(question, questions)),
            Cell::plain(kind(question)),
            Cell::plain(asker(question)),
            Cell::new(Color::Dim, format_time(question.created_at)),
            Cell::new(Color::Dim, format_time(question.expires_at)),
            Cell::new(Color::Attention, one_line(&question.title, 400)),
        ]);
    }
    table
}

fn full(question: &Approval, style: Style) -> String {
    let mut text = describe(question, style);
    let mut field = |label: &str, value: &str| {
        let label = style.paint(Color::Dim, &format!("{label:<8}"));
        text.push_str(&format!("  {label}  {value}\n"));
    };
    for each in question.form.iter().flat_map(|form| &form.fields) {
        field("field", &one_line(&format!("{} ({})", each.title, each.rule), 400));
    }
    let labels: Vec<&str> = question.answers.iter().map(|answer| answer.label.as_str()).collect();
    field("answers", &labels.join(", "));
    field("id", &question.id);
    field("kind", kind(question));
    field("by", &asker(question));
    field("since", &format_time(question.created_at));
    field("expires", &format_time(question.expires_at));
    text
}

fn kind(question: &Approval) -> &'static str {
    match question.kind {
        ApprovalKind::Tool => "tool",
        ApprovalKind::Trust => "trust",
        ApprovalKind::Elicitation => "elicitation",
        ApprovalKind::Input => "input",
    }
}

/// Who asks: the caller of a tool, otherwise the server.
fn asker(question: &Approval) -> String {
    match question.kind {
        ApprovalKind::Tool => name_of(&question.requester),
        _ => question.server.to_string(),
    }
}
