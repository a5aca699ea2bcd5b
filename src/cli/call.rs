//! `mcp-sidecar call`: calls one tool. The same permissions apply as in an editor.

use std::io::{IsTerminal, Read};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};

use super::context::{Context, parse_object, parse_seconds};
use super::engine_client::{self, Autostart, EngineClient};
use super::style::{Color, Style};
use super::{Status, complete, content, print, print_json, question, terminal, trust, usage};
use crate::lsp_client::CommandError;
use crate::model::{Decision, Error, RequesterKind, ToolId};
use crate::protocol::commands::ToolCall;
use crate::protocol::types::{Approval, ToolResult};
use crate::server::connection::Progress;
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Tool to call: SERVER/TOOL or mcp__SERVER__TOOL
    #[arg(value_parser = parse_tool, add = complete::tools())]
    tool: ToolId,
    /// Arguments as a JSON object; `-` reads them from stdin
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Allow this call without asking, if the tool requires approval
    #[arg(long, short)]
    yes: bool,
    /// Cancel the call after this time, instead of the server's `timeout`
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<f64>,
    /// Group this call with others under this name in the call log
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Print the complete result as JSON
    #[arg(long)]
    json: bool,
}

/// The longest input that is read from stdin.
const LONGEST_INPUT: u64 = 16 << 20;
/// The capacity of the queue of progress reports.
const PROGRESS: usize = 64;
/// How long to wait for the effect of an answer after the call has ended.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let tool_arguments = read_arguments(arguments.arguments.as_deref())?;
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let interactive = terminal::is_interactive() && arguments.arguments.as_deref() != Some("-");
        let server = &arguments.tool.server;
        if interactive {
            trust::ask_if_needed(engine, server).await?;
        }
        let call = ToolCall {
            tool: arguments.tool.to_string(),
            arguments: Some(tool_arguments.clone()),
            decision: arguments.yes.then_some(Decision::AllowOnce),
            requester: None,
            workflow: arguments.workflow,
            timeout_ms: arguments.timeout.map(|seconds| (seconds.max(0.0) * 1e3) as u64),
        };
        // An agent may ask about the same call at the same time.
        let is_user = |question: &Approval| question.requester.kind == RequesterKind::User;
        let ours = |question: &Approval| match question.tool.as_deref() {
            Some(tool) => {
                is_user(question)
                    && question.server == *server
                    && *tool == *arguments.tool.tool
                    && question.arguments.as_ref().and_then(Value::as_object) == Some(&tool_arguments)
            }
            None => is_user(question) && question.server == *server,
        };
        let result = perform(engine, call, interactive, ours).await.map_err(|error| advise(error, interactive))?;
        if arguments.json {
            print_json(&result)?;
        } else {
            print(&content::to_text(&result))?;
        }
        if result.is_error && !arguments.json {
            let head = Style::of_stderr().ansi("1;31", "error");
            terminal::eprint(&format!("{head}: the tool reported an error\n"))?;
        }
        Ok(if result.is_error { Status::Failed } else { Status::Ok })
    })
}

/// Calls the tool. Meanwhile, asks questions in the terminal and shows progress.
pub(super) async fn perform(
    engine: &EngineClient,
    call: ToolCall,
    interactive: bool,
    ours: impl Fn(&Approval) -> bool,
) -> Result<ToolResult, CommandError> {
    let (sender, mut progress) = mpsc::channel(PROGRESS);
    let _attached = interactive.then(|| engine.attach_terminal()).flatten();
    let (sending, mut sent) = watch::channel(false);
    let questions = async {
        if interactive {
            question::answer_all(engine, ours, &sending).await;
            return;
        }
        // An editor that shares the engine may answer, so say what we are waiting for.
        if engine.questions().wait_for(|list| list.approvals.iter().any(&ours)).await.is_ok() {
            terminal::eprint("waiting for your answer in the editor; press Ctrl-C to cancel the call\n").ok();
        }
        std::future::pending::<()>().await;
    };
    let shown = async {
        let mut line = ProgressLine::default();
        while let Some(progress) = progress.recv().await {
            line.show(&progress);
        }
    };
    tokio::pin!(questions);
    let answer = tokio::select! {
        // Progress ends with the call. Waiting for both shows the last report and clears its line.
        (answer, ()) = async { tokio::join!(engine.call_with(call, Some(sender)), shown) } => answer,
        () = &mut questions => return Err(CommandError::from(&Error::Cancelled)),
    };
    // The result may overtake the effect of the user's answer, which says how to undo it.
    let effect = async {
        tokio::select! {
            _ = sent.wait_for(|sending| !sending) => {}
            () = questions => {}
        }
    };
    tokio::time::timeout(EFFECT_TIMEOUT, effect).await.ok();
    answer
}

/// Adds how to allow a call that was denied because there was no user to ask.
fn advise(mut error: CommandError, interactive: bool) -> CommandError {
    if !interactive && error.data.as_ref().is_some_and(|data| data.unasked) {
        error.message.push_str(". Or run it in a terminal to be asked, or pass --yes to allow this call");
    }
    error
}

fn parse_tool(text: &str) -> Result<ToolId, String> {
    let whole = match text.split_once('/') {
        Some((server, tool)) if !text.starts_with("mcp__") => format!("mcp__{server}__{tool}"),
        _ => text.to_owned(),
    };
    ToolId::parse(&whole).ok_or_else(|| "expected SERVER/TOOL or mcp__SERVER__TOOL".to_owned())
}

fn read_arguments(text: Option<&str>) -> anyhow::Result<Map<String, Value>> {
    let text = match text {
        None => return Ok(Map::new()),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().lock().take(LONGEST_INPUT).read_to_string(&mut text)?;
            text
        }
        Some(text) => text.to_owned(),
    };
    parse_object(&text).map_err(|error| usage(format!("cannot parse the arguments: {error}")))
}

/// A line on stderr that shows the progress; without a terminal, one line for each report.
#[derive(Default)]
struct ProgressLine {
    shown: bool,
}

impl ProgressLine {
    fn show(&mut self, progress: &Progress) {
        // The question itself is shown, or the line that says who answers it.
        if progress.is_waiting {
            return;
        }
        let done = match progress.total {
            Some(total) => format!("{} of {total}", progress.progress),
            None => progress.progress.to_string(),
        };
        let message = progress.message.as_deref().map(|message| format!("  {}", one_line(message, 60)));
        let text = Style::of_stderr().paint(Color::Dim, &format!("{done}{}", message.unwrap_or_default()));
        if std::io::stderr().is_terminal() {
            terminal::eprint(&format!("\r\u{1b}[K{text}")).ok();
            self.shown = true;
        } else {
            terminal::eprint(&format!("{text}\n")).ok();
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            terminal::eprint("\r\u{1b}[K").ok();
        }
    }
}
