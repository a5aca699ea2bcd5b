//! The tools of the demo server: one for each way in which a tool can behave.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, LoggingLevel,
    ProgressNotificationParam, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DemoServer, is_stateless, notes};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct RollDice {
    /// Sides of each die
    #[serde(default = "six")]
    #[schemars(range(min = 2, max = 1000))]
    sides: u32,
    /// How many dice
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    count: u32,
}

#[derive(Deserialize, JsonSchema)]
struct TakeNote {
    /// The note, a line or two
    #[schemars(length(min = 1, max = 2000))]
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Countdown {
    /// Where to begin; each step takes as long as `interval` says
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    from: u32,
    /// Milliseconds between two steps
    #[serde(default = "second")]
    #[schemars(range(min = 1, max = 5000))]
    interval: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Weather {
    /// A city, or any other word
    city: String,
}

/// What `weather` gives as structured content.
#[derive(Serialize, JsonSchema)]
struct Forecast {
    city: String,
    /// In degrees Celsius
    temperature: i32,
    /// `sunny`, `cloudy`, `rainy` or `snowy`
    sky: String,
    /// Always true: this weather is made up
    invented: bool,
}

fn one() -> u32 {
    1
}

fn six() -> u32 {
    6
}

fn ten() -> u32 {
    10
}

fn second() -> u32 {
    1000
}

pub fn list() -> Vec<Tool> {
    let looks = || ToolAnnotations::new().read_only(true).open_world(false);
    let changes = || ToolAnnotations::new().read_only(false).open_world(false);
    vec![
        tool::<Echo>("echo", "Says back what it is told", looks()),
        tool::<Add>("add", "Adds two numbers", looks().idempotent(true)),
        tool::<RollDice>("roll_dice", "Rolls dice", looks()),
        tool::<TakeNote>("take_note", "Keeps a note in memory, as a new resource", changes().destructive(false)),
        tool::<Nothing>("forget_notes", "Forgets every note", changes().destructive(true).idempotent(true)),
        tool::<Countdown>("countdown", "Counts down slowly, with progress; can be cancelled", looks()),
        tool::<Nothing>("ask_name", "Asks you for your name, then greets you", looks()),
        tool::<Nothing>("picture", "Gives a small picture", looks().idempotent(true)),
        tool::<Weather>("weather", "Makes up a weather forecast, as structured content", looks().idempotent(true))
            .with_output_schema::<Forecast>(),
    ]
}

fn tool<Arguments: JsonSchema + 'static>(
    name: &'static str,
    description: &'static str,
    annotations: ToolAnnotations,
) -> Tool {
    Tool::new(name, description, rmcp::model::JsonObject::new())
        .with_input_schema::<Arguments>()
        .with_annotations(annotations)
}

pub async fn call(
    server: &DemoServer,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    let result = match request.name.as_ref() {
        "echo" => read(arguments).map(|Echo { text }| said(text)),
        "add" => read(arguments).map(|Add { a, b }| said((a + b).to_string())),
        "roll_dice" => read(arguments).map(roll_dice),
        "take_note" => match read(arguments) {
            Ok(note) => Ok(take_note(server, note, context).await),
            Err(reason) => Err(reason),
        },
        "forget_notes" => Ok(forget_notes(server, context).await),
        "countdown" => match read(arguments) {
            Ok(countdown) => Ok(count_down(server, countdown, context).await),
            Err(reason) => Err(reason),
        },
        "ask_name" => return ask_name(&request, context).await,
        "picture" => Ok(picture()),
        "weather" => read(arguments).and_then(weather),
        unknown => return Err(ErrorData::invalid_params(format!("there is no tool `{unknown}`"), None)),
    };
    Ok(result.unwrap_or_else(|reason| refused(reason.to_string())).into())
}

/// The arguments of one tool; what is wrong with them becomes its result.
fn read<Arguments: serde::de::DeserializeOwned>(arguments: Value) -> serde_json::Result<Arguments> {
    serde_json::from_value(arguments)
}

fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn refused(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn roll_dice(RollDice { sides, count }: RollDice) -> CallToolResult {
    if !(2..=1000).contains(&sides) || !(1..=100).contains(&count) {
        return refused("a die has 2 to 1000 sides, and there are 1 to 100 dice");
    }
    let rolls: Vec<u32> = (0..count).map(|_| fastrand::u32(1..=sides)).collect();
    let shown = rolls.iter().map(u32::to_string).collect::<Vec<_>>().join(" + ");
    said(if count == 1 { shown } else { format!("{shown} = {}", rolls.iter().sum::<u32>()) })
}

async fn take_note(server: &DemoServer, note: TakeNote, context: &RequestContext<RoleServer>) -> CallToolResult {
    if note.text.is_empty() || note.text.chars().count() > 2000 {
        return refused("a note has 1 to 2000 characters");
    }
    let Some(number) = server.notes.add(note.text) else {
        return refused("there is room for no more notes; `forget_notes` makes some");
    };
    server.notes_changed(context).await;
    server.log(context, LoggingLevel::Info, format!("kept note {number}")).await;
    said(format!("kept as note {number}: {}", notes::uri(number)))
}

async fn forget_notes(server: &DemoServer, context: &RequestContext<RoleServer>) -> CallToolResult {
    let forgotten = server.notes.clear();
    server.notes_changed(context).await;
    server.log(context, LoggingLevel::Warning, format!("forgot {forgotten} notes")).await;
    said(format!("forgot {forgotten} notes"))
}

async fn count_down(
    server: &DemoServer,
    Countdown { from, interval }: Countdown,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    if !(1..=100).contains(&from) || !(1..=5000).contains(&interval) {
        return refused("`from` is 1 to 100 and `interval` 1 to 5000 milliseconds");
    }
    for left in (0..from).rev() {
        tokio::select! {
            () = context.ct.cancelled() => {
                server.log(context, LoggingLevel::Info, format!("countdown stopped at {}", left + 1)).await;
                return refused("cancelled");
            }
            () = tokio::time::sleep(Duration::from_millis(interval.into())) => (),
        }
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, f64::from(from - left))
                .with_total(f64::from(from))
                .with_message(if left == 0 { "lift-off".to_owned() } else { left.to_string() });
            context.peer.notify_progress(progress).await.ok();
        }
    }
    said("lift-off")
}

/// Peers of the newer protocol are answered "I need input" and call again with it; older ones are asked in between.
async fn ask_name(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if context.client_capabilities().and_then(|capabilities| capabilities.elicitation).is_none() {
        return Ok(refused("nobody can be asked here: the caller does not know elicitation").into());
    }
    let schema = ElicitationSchema::builder()
        .required_string_property("name", |name| name.title("Name").description("What to call you").length(1, 100))
        .build()
        .map_err(|reason| ErrorData::internal_error(reason, None))?;
    let question = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "What is your name?".to_owned(),
        requested_schema: schema,
    };
    let answer: ElicitResult = if is_stateless(context) {
        let Some(answer) = request.input_responses.as_ref().and_then(|answers| answers.get("name")) else {
            let asked = InputRequest::Elicitation(ElicitRequest::new(question));
            return Ok(
                InputRequiredResult::from_input_requests(InputRequests::from([("name".to_owned(), asked)])).into()
            );
        };
        serde_json::from_value(answer.clone()).map_err(|error| ErrorData::invalid_params(error.to_string(), None))?
    } else {
        match context.peer.create_elicitation(question).await {
            Ok(answer) => answer,
            Err(error) => return Ok(refused(format!("could not ask: {error}")).into()),
        }
    };
    let name = answer.content.as_ref().and_then(|content| content.get("name")?.as_str());
    Ok(match (answer.action, name) {
        (ElicitationAction::Accept, Some(name)) => said(format!("Hello, {name}!")),
        _ => said("Hello, whoever you are!"),
    }
    .into())
}

/// A face of 24 by 24 pixels.
fn picture() -> CallToolResult {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAABgAAAAYAQMAAADaua+7AAAABlBMVEX/+Nw8WqDulgV8AAAAVElEQVR42mNgsGFgYPzfwMD+/wED\
                       P8MHBhkGCyCUYTBg4GEoYOBjSDzcBsYPD7czPGBgB+NnDOkMaUCYDmQVN55jMHzew2DxXwasF2QGyCyQmUCzAbPUGmW0rXfvAAAA\
                       AElFTkSuQmCC";
    CallToolResult::success(vec![ContentBlock::text("a face"), ContentBlock::image(PNG, "image/png")])
}

/// The same city has the same weather every time.
fn weather(Weather { city }: Weather) -> serde_json::Result<CallToolResult> {
    let seed = city.bytes().fold(7_u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let temperature = i32::try_from(seed % 40).unwrap_or_default() - 8;
    let sky = match seed / 40 % 3 {
        0 => "sunny",
        1 => "cloudy",
        _ if temperature < 0 => "snowy",
        _ => "rainy",
    };
    let forecast = Forecast { city, temperature, sky: sky.to_owned(), invented: true };
    Ok(CallToolResult::structured(serde_json::to_value(&forecast)?))
}
