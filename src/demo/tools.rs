//! The tools of the demo server: one for each kind of behavior.

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
    /// Text to return
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct RollDice {
    /// Number of sides of each die
    #[serde(default = "six")]
    #[schemars(range(min = 2, max = 1000))]
    sides: u32,
    /// Number of dice
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
    /// Number to start from
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

/// The structured content of `weather`.
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
    let read_only = || ToolAnnotations::new().read_only(true).open_world(false);
    let writes = || ToolAnnotations::new().read_only(false).open_world(false);
    vec![
        tool::<Echo>("echo", "Returns the given text", read_only()),
        tool::<Add>("add", "Adds two numbers", read_only().idempotent(true)),
        tool::<RollDice>("roll_dice", "Rolls dice", read_only()),
        tool::<TakeNote>("take_note", "Saves a note in memory, as a new resource", writes().destructive(false)),
        tool::<Nothing>("forget_notes", "Deletes all notes", writes().destructive(true).idempotent(true)),
        tool::<Countdown>("countdown", "Counts down slowly, with progress; can be cancelled", read_only()),
        tool::<Nothing>("ask_name", "Asks you for your name, then greets you", read_only()),
        tool::<Nothing>("picture", "Returns a small image", read_only().idempotent(true)),
        tool::<Weather>("weather", "Makes up a weather forecast, as structured content", read_only().idempotent(true))
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
        "echo" => parse(arguments).map(|Echo { text }| success(text)),
        "add" => parse(arguments).map(|Add { a, b }| success((a + b).to_string())),
        "roll_dice" => parse(arguments).map(roll_dice),
        "take_note" => match parse(arguments) {
            Ok(note) => Ok(take_note(server, note, context).await),
            Err(reason) => Err(reason),
        },
        "forget_notes" => Ok(forget_notes(server, context).await),
        "countdown" => match parse(arguments) {
            Ok(countdown) => Ok(count_down(server, countdown, context).await),
            Err(reason) => Err(reason),
        },
        "ask_name" => return ask_name(&request, context).await,
        "picture" => Ok(picture()),
        "weather" => parse(arguments).and_then(weather),
        unknown => return Err(ErrorData::invalid_params(format!("unknown tool `{unknown}`"), None)),
    };
    Ok(result.unwrap_or_else(|reason| failure(reason.to_string())).into())
}

/// Parses the arguments of a tool. An error becomes the result of the tool.
fn parse<Arguments: serde::de::DeserializeOwned>(arguments: Value) -> serde_json::Result<Arguments> {
    serde_json::from_value(arguments)
}

fn success(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn failure(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn roll_dice(RollDice { sides, count }: RollDice) -> CallToolResult {
    if !(2..=1000).contains(&sides) || !(1..=100).contains(&count) {
        return failure("`sides` must be from 2 to 1000, and `count` from 1 to 100");
    }
    let rolls: Vec<u32> = (0..count).map(|_| fastrand::u32(1..=sides)).collect();
    let shown = rolls.iter().map(u32::to_string).collect::<Vec<_>>().join(" + ");
    success(if count == 1 { shown } else { format!("{shown} = {}", rolls.iter().sum::<u32>()) })
}

async fn take_note(server: &DemoServer, note: TakeNote, context: &RequestContext<RoleServer>) -> CallToolResult {
    if note.text.is_empty() || note.text.chars().count() > 2000 {
        return failure("a note must have 1 to 2000 characters");
    }
    let Some(number) = server.notes.add(note.text) else {
        return failure("there are too many notes; call `forget_notes` to delete them");
    };
    server.notes_changed(context).await;
    server.log(context, LoggingLevel::Info, format!("saved note {number}")).await;
    success(format!("saved as note {number}: {}", notes::uri(number)))
}

async fn forget_notes(server: &DemoServer, context: &RequestContext<RoleServer>) -> CallToolResult {
    let forgotten = server.notes.clear();
    server.notes_changed(context).await;
    let text = format!("deleted {forgotten} {}", if forgotten == 1 { "note" } else { "notes" });
    server.log(context, LoggingLevel::Warning, text.clone()).await;
    success(text)
}

async fn count_down(
    server: &DemoServer,
    Countdown { from, interval }: Countdown,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    if !(1..=100).contains(&from) || !(1..=5000).contains(&interval) {
        return failure("`from` must be from 1 to 100, and `interval` from 1 to 5000 milliseconds");
    }
    for left in (0..from).rev() {
        tokio::select! {
            () = context.ct.cancelled() => {
                server.log(context, LoggingLevel::Info, format!("countdown stopped at {}", left + 1)).await;
                return failure("cancelled");
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
    success("lift-off")
}

/// Since 2026-07-28, the result asks for input and the peer calls again. Older peers get a request during the call.
async fn ask_name(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if context.client_capabilities().and_then(|capabilities| capabilities.elicitation).is_none() {
        return Ok(failure("cannot ask: the caller does not support elicitation").into());
    }
    let schema = ElicitationSchema::builder()
        .required_string_property("name", |name| name.title("Name").description("Your name").length(1, 100))
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
            Err(error) => return Ok(failure(format!("cannot ask: {error}")).into()),
        }
    };
    let name = answer.content.as_ref().and_then(|content| content.get("name")?.as_str());
    Ok(match (answer.action, name) {
        (ElicitationAction::Accept, Some(name)) => success(format!("Hello, {name}!")),
        _ => success("Hello, stranger!"),
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
