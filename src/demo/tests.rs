//! The demo server as a client sees it, with protocol versions before and since 2026-07-28.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, LoggingMessageNotificationParam,
    ProgressNotificationParam, ResourceUpdatedNotificationParam,
};
use rmcp::service::{ClientLifecycleMode, NotificationContext, RunningService};
use rmcp::{ClientHandler, ClientServiceExt, RoleClient};
use serde_json::Value;
use tokio::sync::mpsc;

use super::*;

/// A client that records notifications and answers every question the same way.
#[derive(Clone)]
struct Listener {
    received: mpsc::UnboundedSender<String>,
    answer: Arc<ElicitResult>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let form = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        let capabilities = ClientCapabilities::builder().enable_elicitation_with(form).build();
        ClientConfig::new(capabilities, Implementation::new("listener", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.answer.as_ref().clone())
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.received.send(format!("progress {} {:?}", progress.progress, progress.total)).unwrap();
    }

    async fn on_logging_message(&self, message: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.received.send(format!("{:?}: {}", message.level, message.data)).unwrap();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.received.send("resources changed".to_owned()).unwrap();
    }

    async fn on_resource_updated(&self, updated: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.received.send(format!("updated {}", updated.uri)).unwrap();
    }
}

struct TestSession {
    peer: RunningService<RoleClient, Listener>,
    received: mpsc::UnboundedReceiver<String>,
}

impl TestSession {
    async fn begin(mode: ClientLifecycleMode, answer: ElicitResult) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let service = DemoServer::default().serve(theirs).await.unwrap();
            service.waiting().await.unwrap();
        });
        let (sender, received) = mpsc::unbounded_channel();
        let listener = Listener { received: sender, answer: Arc::new(answer) };
        Self { peer: listener.serve_with_lifecycle(ours, mode).await.unwrap(), received }
    }

    async fn older() -> Self {
        Self::begin(ClientLifecycleMode::Initialize, ElicitResult::new(ElicitationAction::Decline)).await
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let request = CallToolRequestParams::new(tool).with_arguments(rmcp::model::object(arguments));
        serde_json::to_value(self.peer.call_tool(request).await.unwrap()).unwrap()
    }

    async fn text_of(&self, tool: &'static str, arguments: Value) -> String {
        self.call(tool, arguments).await["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// What has been received when so many messages have come, in an order that does not matter.
    async fn receive(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        while all.len() < count {
            all.push(self.received.recv().await.unwrap());
        }
        all.sort();
        all
    }
}

#[tokio::test]
async fn every_tool_says_whether_it_changes_anything() {
    let session = TestSession::older().await;
    let tools = session.peer.list_all_tools().await.unwrap();
    let lines: Vec<String> = tools
        .iter()
        .map(|tool| {
            let annotations = tool.annotations.as_ref().unwrap();
            format!("{} {:?} {:?}", tool.name, annotations.read_only_hint.unwrap(), annotations.destructive_hint)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    echo true None
    add true None
    roll_dice true None
    take_note false Some(false)
    forget_notes false Some(true)
    countdown true None
    ask_name true None
    picture true None
    weather true None
    ");
}

#[tokio::test]
async fn echo_add_and_dice_do_what_their_names_say() {
    let session = TestSession::older().await;
    assert_eq!(session.text_of("echo", json!({ "text": "hej" })).await, "hej");
    assert_eq!(session.text_of("add", json!({ "a": 2, "b": 0.5 })).await, "2.5");
    let rolled: u32 = session.text_of("roll_dice", json!({ "sides": 4 })).await.parse().unwrap();
    assert!((1..=4).contains(&rolled));
}

#[tokio::test]
async fn a_missing_argument_is_an_error_result_that_names_it() {
    let session = TestSession::older().await;
    let result = session.call("echo", json!({})).await;
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("`text`"), "{result}");
}

#[tokio::test]
async fn a_note_becomes_a_resource_and_subscribers_are_notified() {
    let mut session = TestSession::older().await;
    session.peer.subscribe(SubscribeRequestParams::new(notes::ALL)).await.unwrap();
    session.call("take_note", json!({ "text": "buy milk" })).await;
    assert_eq!(session.receive(3).await, [r#"Info: "saved note 1""#, "resources changed", "updated demo://notes"]);
    let resources = session.peer.list_all_resources().await.unwrap();
    assert_eq!(
        resources.iter().map(|resource| resource.uri.as_str()).collect::<Vec<_>>(),
        ["demo://notes", "demo://note/1"]
    );
    let read = session.peer.read_resource(ReadResourceRequestParams::new("demo://note/1")).await.unwrap();
    assert_eq!(serde_json::to_value(read).unwrap()["contents"][0]["text"], "buy milk");
    assert!(session.peer.read_resource(ReadResourceRequestParams::new("demo://note/2")).await.is_err());
}

#[tokio::test]
async fn log_messages_below_the_level_that_was_set_are_left_out() {
    let mut session = TestSession::older().await;
    session.peer.set_level(SetLevelRequestParams::new(LoggingLevel::Warning)).await.unwrap();
    session.call("take_note", json!({ "text": "quiet" })).await;
    session.call("forget_notes", json!({})).await;
    let received = session.receive(3).await;
    assert_eq!(received, [r#"Warning: "deleted 1 note""#, "resources changed", "resources changed"]);
}

#[tokio::test]
async fn a_countdown_reports_its_progress() {
    let mut session = TestSession::older().await;
    assert_eq!(session.text_of("countdown", json!({ "from": 2, "interval": 1 })).await, "lift-off");
    assert_eq!(session.receive(2).await, ["progress 1 Some(2.0)", "progress 2 Some(2.0)"]);
}

#[tokio::test]
async fn a_cancelled_countdown_stops() {
    use rmcp::model::{CallToolRequest, ClientRequest};
    use rmcp::service::PeerRequestOptions;

    let mut session = TestSession::older().await;
    let arguments = rmcp::model::object(json!({ "from": 100, "interval": 5 }));
    let request = CallToolRequest::new(CallToolRequestParams::new("countdown").with_arguments(arguments));
    let call = session
        .peer
        .send_cancellable_request(ClientRequest::CallToolRequest(request), PeerRequestOptions::no_options())
        .await
        .unwrap();
    assert!(session.receive(1).await[0].starts_with("progress 1"));
    call.cancel(Some("enough".to_owned())).await.unwrap();
    loop {
        let received = session.receive(1).await;
        if received[0].contains("countdown stopped") {
            break;
        }
        assert!(received[0].starts_with("progress"), "{received:?}");
    }
}

#[tokio::test]
async fn the_name_is_asked_for_in_both_kinds_of_protocol() {
    let answer = || ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" }));
    let older = TestSession::begin(ClientLifecycleMode::Initialize, answer()).await;
    assert_eq!(older.text_of("ask_name", json!({})).await, "Hello, Ada!");
    let newer = TestSession::begin(
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] },
        answer(),
    )
    .await;
    assert_eq!(newer.text_of("ask_name", json!({})).await, "Hello, Ada!");
    let shy = TestSession::older().await;
    assert_eq!(shy.text_of("ask_name", json!({})).await, "Hello, stranger!");
}

#[tokio::test]
async fn the_weather_keeps_to_its_output_schema() {
    let session = TestSession::older().await;
    let tools = session.peer.list_all_tools().await.unwrap();
    let schema = tools.iter().find_map(|tool| tool.output_schema.as_ref()).unwrap();
    let schema = Value::Object(schema.as_ref().clone());
    let result = session.call("weather", json!({ "city": "Odense" })).await;
    assert!(jsonschema::is_valid(&schema, &result["structuredContent"]), "{result}");
    assert_eq!(result["structuredContent"]["city"], "Odense");
}

#[tokio::test]
async fn the_picture_is_a_png() {
    let session = TestSession::older().await;
    let result = session.call("picture", json!({})).await;
    assert_eq!(result["content"][1]["mimeType"], "image/png");
    assert!(result["content"][1]["data"].as_str().unwrap().starts_with("iVBORw0KGgo"));
}

#[tokio::test]
async fn the_languages_of_the_prompt_can_be_completed() {
    let session = TestSession::older().await;
    let request = CompleteRequestParams::new(Reference::for_prompt("greet"), ArgumentInfo::new("language", "d"));
    assert_eq!(session.peer.complete(request).await.unwrap().completion.values, ["Danish"]);
    let request =
        GetPromptRequestParams::new("greet").with_arguments(rmcp::model::object(json!({ "language": "Danish" })));
    let prompt = serde_json::to_value(session.peer.get_prompt(request).await.unwrap()).unwrap();
    assert!(prompt["messages"][0]["content"]["text"].as_str().unwrap().contains("Hej"));
}
