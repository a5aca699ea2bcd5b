//! `mcp-sidecar call`: calls one tool. The same permissions apply as in an editor.

use std::io::{IsTerminal, Read};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::context::{Context, parse_object};
use super::engine_client::{self, Autostart, CommandError, EngineClient, Question};
use super::style::{Color, Style};
use super::{Status, content, print, question, terminal, trust, usage};
use crate::model::ToolId;
use crate::server::connection::Progress;
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Tool to call: SERVER/TOOL or mcp__SERVER__TOOL
    #[arg(value_parser = parse_tool)]
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

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let tool_arguments = read_arguments(arguments.arguments.as_deref())?;
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let interactive = terminal::is_interactive() && arguments.arguments.as_deref() != Some("-");
        let server = arguments.tool.server.as_str();
        if interactive && engine.servers(Some(server)).await?.iter().any(|server| server.needs_trust) {
            trust::ask(engine, server).await?;
        }
        let params = json!({
            "tool": arguments.tool.to_string(),
            "arguments": tool_arguments,
            "decision": arguments.yes.then_some("allow-once"),
            "workflow": arguments.workflow,
            "timeoutMs": arguments.timeout.map(|seconds| (seconds.max(0.0) * 1e3) as u64),
        });
        let ours = |question: &Question| match question.tool.as_deref() {
            Some(tool) => {
                question.server == server
                    && *tool == *arguments.tool.tool
                    && question.arguments.as_ref().and_then(Value::as_object) == Some(&tool_arguments)
            }
            None => question.server == server,
        };
        let answer = perform(engine, params, interactive, ours).await.map_err(|error| advise(error, interactive))?;
        let failed = answer.get("isError") == Some(&json!(true));
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
        } else {
            print(&content::to_text(&answer))?;
        }
        if failed && !arguments.json {
            let head = Style::of_stderr().ansi("1;31", "error");
            terminal::eprint(&format!("{head}: the tool reported an error\n"))?;
        }
        Ok(if failed { Status::Failed } else { Status::Ok })
    })
}

/// Calls the tool. Meanwhile, asks questions in the terminal and shows progress.
async fn perform(
    engine: &EngineClient,
    params: Value,
    interactive: bool,
    ours: impl Fn(&Question) -> bool,
) -> Result<Value, CommandError> {
    let (sender, mut progress) = mpsc::channel(PROGRESS);
    let _attached = interactive.then(|| engine.attach_terminal()).flatten();
    let questions = async {
        if interactive {
            question::answer_all(engine, ours).await;
            return;
        }
        // An editor that shares the engine may answer, so say what we are waiting for.
        if engine.questions().wait_for(|list| list.iter().any(&ours)).await.is_ok() {
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
    tokio::select! {
        // Progress ends with the call. Waiting for both shows the last report and clears its line.
        (answer, ()) = async { tokio::join!(engine.run_with("mcp.tool.call", params, Some(sender)), shown) } => answer,
        () = questions => Err(CommandError { kind: "cancelled".to_owned(), message: "cancelled".to_owned() }),
    }
}

/// Adds how to allow a call that was denied because there was no user to ask.
fn advise(mut error: CommandError, interactive: bool) -> CommandError {
    if error.kind == "denied" && !interactive && error.message.contains("no editor") {
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

fn parse_seconds(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number of seconds".to_owned())
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
