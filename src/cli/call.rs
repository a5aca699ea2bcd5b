//! `mcp-sidecar call`: runs one tool, after the same questions as everywhere.

use std::io::{IsTerminal, Read};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::context::Context;
use super::live::{self, Failure, Live, Question, Wake};
use super::look::{Look, Tone};
use super::{Status, content, print, question, terminal, trust, usage};
use crate::model::ToolId;
use crate::server::connection::Progress;
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The tool: mcp__SERVER__TOOL, or SERVER/TOOL
    #[arg(value_parser = tool)]
    tool: ToolId,
    /// Its arguments as a JSON object; `-` reads them from stdin
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Answer the question whether it may run with "yes, this once"
    #[arg(long, short)]
    yes: bool,
    /// How long it may take, in place of the server's `timeout`
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// A name for what this call is a part of, for the call log
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// For programs: the whole result
    #[arg(long)]
    json: bool,
}

/// The longest input that a call takes from stdin.
const LONGEST_INPUT: u64 = 16 << 20;
/// How much progress may wait to be shown.
const PROGRESS: usize = 64;

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let given = given(arguments.arguments.as_deref())?;
    live::run(context, Wake::OnDemand, async |live| {
        let attended = terminal::is_attended() && arguments.arguments.as_deref() != Some("-");
        let server = arguments.tool.server.as_str();
        if attended && live.servers(Some(server)).await?.iter().any(|server| server.needs_trust) {
            trust::ask(live, server).await?;
        }
        let params = json!({
            "tool": arguments.tool.to_string(),
            "arguments": given,
            "decision": arguments.yes.then_some("allow-once"),
            "workflow": arguments.workflow,
            "timeoutMs": arguments.timeout.map(|seconds| (seconds.max(0.0) * 1e3) as u64),
        });
        let ours = |question: &Question| match question.tool.as_deref() {
            Some(tool) => {
                question.server == server
                    && *tool == *arguments.tool.tool
                    && question.arguments.as_ref().and_then(Value::as_object) == Some(&given)
            }
            None => question.server == server,
        };
        let answer = perform(live, params, attended, ours).await.map_err(|failure| advise(failure, attended))?;
        let failed = answer.get("isError") == Some(&json!(true));
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
        } else {
            print(&content::shown(&answer))?;
        }
        if failed && !arguments.json {
            let head = Look::of_stderr().paint("1;31", "error");
            terminal::say(&format!("{head}: that is how the tool itself says that it failed\n"))?;
        }
        Ok(if failed { Status::Failed } else { Status::Ok })
    })
}

/// The call, with questions put to the terminal and progress shown meanwhile.
async fn perform(
    live: &Live,
    params: Value,
    attended: bool,
    ours: impl Fn(&Question) -> bool,
) -> Result<Value, Failure> {
    let (sender, mut progress) = mpsc::channel(PROGRESS);
    let _attending = attended.then(|| live.attend()).flatten();
    let questions = async {
        if attended {
            question::answer_all(live, ours).await;
            return;
        }
        // In a shared engine an editor may answer; whoever waits here should know what for.
        if live.questions().wait_for(|list| list.iter().any(&ours)).await.is_ok() {
            terminal::say("waiting for your answer in the editor; Ctrl-C takes the call back\n").ok();
        }
        std::future::pending::<()>().await;
    };
    let shown = async {
        let mut line = ProgressLine::default();
        while let Some(progress) = progress.recv().await {
            line.show(&progress);
        }
    };
    tokio::select! {
        // Progress ends with the call, so both are waited for: what it reported last is seen, and its line is gone.
        (answer, ()) = async { tokio::join!(live.run_with("mcp.tool.call", params, Some(sender)), shown) } => answer,
        () = questions => Err(Failure { kind: "cancelled".to_owned(), message: "cancelled".to_owned() }),
    }
}

/// A refusal for want of somebody to ask says how to allow the call.
fn advise(mut failure: Failure, attended: bool) -> Failure {
    if failure.kind == "denied" && !attended && failure.message.contains("there is no editor to ask") {
        failure.message.push_str("; or run it in a terminal to be asked, or pass --yes to allow it this once");
    }
    failure
}

fn tool(text: &str) -> Result<ToolId, String> {
    let whole = match text.split_once('/') {
        Some((server, tool)) if !text.starts_with("mcp__") => format!("mcp__{server}__{tool}"),
        _ => text.to_owned(),
    };
    ToolId::parse(&whole).ok_or_else(|| "a tool is named mcp__SERVER__TOOL, or SERVER/TOOL".to_owned())
}

fn given(text: Option<&str>) -> anyhow::Result<Map<String, Value>> {
    let text = match text {
        None => return Ok(Map::new()),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().lock().take(LONGEST_INPUT).read_to_string(&mut text)?;
            text
        }
        Some(text) => text.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(usage("the arguments have to be a JSON object, as in '{\"text\": \"hello\"}'".to_owned())),
        Err(error) => Err(usage(format!("the arguments are no JSON: {error}"))),
    }
}

/// One line on stderr that follows the progress; without a terminal, a line for each step.
#[derive(Default)]
struct ProgressLine {
    shown: bool,
}

impl ProgressLine {
    fn show(&mut self, progress: &Progress) {
        let done = match progress.total {
            Some(total) => format!("{} of {total}", progress.progress),
            None => progress.progress.to_string(),
        };
        let message = progress.message.as_deref().map(|message| format!("  {}", one_line(message, 60)));
        let text = Look::of_stderr().tone(Tone::Dim, &format!("{done}{}", message.unwrap_or_default()));
        if std::io::stderr().is_terminal() {
            terminal::say(&format!("\r\u{1b}[K{text}")).ok();
            self.shown = true;
        } else {
            terminal::say(&format!("{text}\n")).ok();
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            terminal::say("\r\u{1b}[K").ok();
        }
    }
}
