//! `mcp-sidecar hook`: answers the hook of an agent.
//!
//! Whatever goes wrong, the agent asks its user itself, as it would without us. No engine is started for a question: if
//! none runs, no editor is open either, so nothing can be asked. The rules still count, so they are evaluated in this
//! process, with the same code and the same log.

mod formats;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use self::formats::{Event, Format};
use super::context::Context;
use super::{Status, print};
use crate::config::interop::hooks::setup_name;
use crate::engine::Engine;
use crate::engine::gate::agent_tool::{HookAnswer, HookQuestion};
use crate::model::HookAgent;
use crate::paths::Paths;
use crate::session;
use crate::settings::Settings;

/// The longest input that is read.
const MAX_INPUT: u64 = 8 << 20;
/// How long the user may think. Less than the time that the hooks of `setup` have, so that the agent gets an answer.
const LIMIT: Duration = Duration::from_secs(55 * 60);
/// The variables in which agents name the folder that they were started for. The working folder of an agent can change.
const PROJECT_VARIABLES: [&str; 2] = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"];

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Agent whose hook this is
    #[arg(value_name = "AGENT", value_parser = hook_agents())]
    pub(super) agent: HookAgent,
    /// Event of the hook, in case the question does not name it
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
}

/// Parses the name of an agent that has hooks, or its name in `setup`.
fn hook_agents() -> impl TypedValueParser<Value = HookAgent> {
    let names = HookAgent::ALL.map(|agent| PossibleValue::new(agent.as_str()).alias(setup_name(agent)));
    PossibleValuesParser::new(names).try_map(|name| {
        let named = |agent: &HookAgent| agent.as_str() == name || setup_name(*agent) == name;
        HookAgent::ALL.into_iter().find(named).ok_or("unknown agent")
    })
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let format = Format { agent: arguments.agent };
    let named = arguments.event.as_deref().and_then(|name| format.event(name));
    let (event, answer) = match read_question(format, named) {
        Ok((event, question)) => (Some(event), answer(question, context)),
        Err(reason) => (named, HookAnswer::Ask(reason)),
    };
    print(&event.map(|event| format.answer(event, &answer)).unwrap_or_default())?;
    Ok(Status::Ok)
}

fn read_question(format: Format, named: Option<Event>) -> Result<(Event, HookQuestion), String> {
    let mut input = Vec::new();
    io::stdin().take(MAX_INPUT + 1).read_to_end(&mut input).map_err(|error| format!("cannot read stdin: {error}"))?;
    if input.len() as u64 > MAX_INPUT {
        return Err(format!("the question is larger than {} MiB", MAX_INPUT >> 20));
    }
    format.question(&input, named)
}

/// Reads any bytes as a question, and writes an answer to it, for the fuzz targets.
#[cfg(any(test, fuzzing))]
pub fn read_any(agent: HookAgent, input: &[u8], answer: &HookAnswer) -> Option<(HookQuestion, String)> {
    let format = Format { agent };
    let (event, question) = format.question(input, Some(Event::BeforeTool)).ok()?;
    let answer = format.answer(event, answer);
    Some((question, answer))
}

fn answer(question: HookQuestion, context: &Context) -> HookAnswer {
    ask(question, context).unwrap_or_else(|error| HookAnswer::Ask(format!("mcp-sidecar could not answer: {error:#}")))
}

fn ask(question: HookQuestion, context: &Context) -> anyhow::Result<HookAnswer> {
    let paths = context.paths()?;
    let settings = Settings::from_file(&paths).settings;
    let folder = project_folder(&question.folder, context);
    let root = match &context.workspace {
        Some(_) => context.folder(&settings)?.to_path_buf(),
        None => session::root_of(&folder, &settings.files),
    };
    #[cfg(unix)]
    if let Some(answer) = session::ask_running(&folder, &root, &paths, &question, LIMIT) {
        return Ok(answer);
    }
    in_process(question, root, paths, settings)
}

/// The folder that the agent was started for.
fn project_folder(stated: &Path, context: &Context) -> PathBuf {
    let variables = PROJECT_VARIABLES.iter().filter_map(|name| std::env::var_os(name).map(PathBuf::from));
    let stated = variables.chain([stated.to_path_buf()]).find(|folder| folder.is_absolute() && folder.is_dir());
    let chosen = context.workspace.clone().or(stated);
    chosen.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("/"))
}

/// Applies the rules without an engine of the workspace. No editor can ask the user.
fn in_process(question: HookQuestion, root: PathBuf, paths: Paths, settings: Settings) -> anyhow::Result<HookAnswer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let engine = Engine::start_on_demand(paths, settings);
        engine.set_folders(vec![root]).await;
        let answer = engine.answer_hook(question).await;
        engine.close().await;
        answer
    });
    runtime.shutdown_background();
    Ok(answer)
}
