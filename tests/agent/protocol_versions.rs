//! The same requests with the official client library, in protocol versions with and without sessions.

use std::sync::Arc;

use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, CompleteRequestParams,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability,
    GetPromptRequestParams, Implementation, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    Reference,
};
use rmcp::service::{ClientLifecycleMode, NotificationContext, RequestContext, RunningService};
use rmcp::transport::IntoTransport;
use rmcp::{ClientHandler, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::raw_agent::Host;
use crate::support::harness::demo;

/// An agent that records notifications and answers every question the same way.
#[derive(Clone)]
pub struct Listener {
    received: mpsc::UnboundedSender<String>,
    answer: Option<Arc<ElicitResult>>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.answer.is_some() {
            capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        }
        ClientConfig::new(capabilities, Implementation::new("listener", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = params else { panic!("a form was wanted") };
        self.received.send(format!("asked: {message}")).unwrap();
        Ok(self.answer.as_ref().unwrap().as_ref().clone())
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.received.send(format!("progress {}", progress.progress)).unwrap();
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.received.send("tools changed".to_owned()).unwrap();
    }
}

pub struct Agent {
    pub peer: RunningService<RoleClient, Listener>,
    received: mpsc::UnboundedReceiver<String>,
}

pub fn modes() -> [ClientLifecycleMode; 2] {
    let newer = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    [ClientLifecycleMode::Initialize, newer]
}

impl Agent {
    async fn new(host: &Host, mode: ClientLifecycleMode, answer: Option<Value>) -> Self {
        Self::over(host.connect(1 << 20), mode, answer).await
    }

    pub async fn over<T, E, A>(transport: T, mode: ClientLifecycleMode, answer: Option<Value>) -> Self
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let (heard_by, received) = mpsc::unbounded_channel();
        let answer = answer.map(|content| {
            let mut result = ElicitResult::new(ElicitationAction::Accept);
            result.content = Some(content);
            Arc::new(result)
        });
        let listener = Listener { received: heard_by, answer };
        Self { peer: listener.serve_with_lifecycle(transport, mode).await.unwrap(), received }
    }

    /// The next notification, except changes of the tool list, which happen while servers start.
    pub async fn hears(&mut self) -> String {
        loop {
            let received = self.received.recv().await.unwrap();
            if received != "tools changed" {
                return received;
            }
        }
    }

    pub async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let request = CallToolRequestParams::new(tool).with_arguments(rmcp::model::object(arguments));
        self.peer.call_tool(request).await.unwrap()
    }

    pub async fn text_of(&self, tool: &'static str, arguments: Value) -> (bool, String) {
        let result = self.call(tool, arguments).await;
        let text = serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned();
        (result.is_error.unwrap_or_default(), text)
    }
}

#[tokio::test]
async fn everything_a_server_offers_is_offered_with_its_name_as_prefix() {
    let host = Host::new(json!({ "demo": demo(json!({ "*": "allow-session", "weather": "disable" })) }));
    for mode in modes() {
        let agent = Agent::new(&host, mode, None).await;
        let tools = agent.peer.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert!(names.contains(&"demo__add") && !names.contains(&"demo__weather"), "{names:?}");
        let note = tools.iter().find(|tool| tool.name == "demo__forget_notes").unwrap();
        assert_eq!(note.annotations.as_ref().unwrap().destructive_hint, Some(true));
        assert_eq!(agent.text_of("demo__add", json!({ "a": 1, "b": 2 })).await, (false, "3".to_owned()));

        let resources = agent.peer.list_all_resources().await.unwrap();
        assert!(resources.iter().any(|resource| resource.uri == "demo://notes"));
        let read = agent.peer.read_resource(ReadResourceRequestParams::new("demo://notes")).await.unwrap();
        assert_eq!(serde_json::to_value(read).unwrap()["contents"][0]["uri"], "demo://notes");
        let templates = agent.peer.list_all_resource_templates().await.unwrap();
        assert_eq!(templates[0].uri_template, "demo://note/{number}");

        let prompts = agent.peer.list_all_prompts().await.unwrap();
        assert_eq!(prompts[0].name, "demo__greet");
        let mut wanted = GetPromptRequestParams::new("demo__greet");
        wanted.arguments = Some(rmcp::model::object(json!({ "language": "French" })));
        let prompt = serde_json::to_value(agent.peer.get_prompt(wanted).await.unwrap()).unwrap();
        assert!(prompt["messages"][0]["content"]["text"].as_str().unwrap().contains("Bonjour"));
        let argument: ArgumentInfo = serde_json::from_value(json!({ "name": "language", "value": "Fr" })).unwrap();
        let completing = CompleteRequestParams::new(Reference::for_prompt("demo__greet"), argument);
        let completed = agent.peer.complete(completing).await.unwrap();
        assert_eq!(completed.completion.values, ["French"]);
        agent.peer.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn an_agent_asks_its_user_if_there_is_no_editor() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    for mode in modes() {
        let mut agent = Agent::new(&host, mode, Some(json!({ "decision": "allow-once" }))).await;
        assert_eq!(agent.text_of("demo__echo", json!({ "text": "hej" })).await, (false, "hej".to_owned()));
        let asked = agent.hears().await;
        assert!(asked.starts_with("asked: The agent `listener` wants to run `echo` on `demo`"), "{asked}");
        assert!(asked.contains(r#""text": "hej""#), "{asked}");
        agent.peer.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn an_agent_cannot_allow_a_tool_for_longer_than_this_once() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let agent = Agent::new(&host, ClientLifecycleMode::Initialize, Some(json!({ "decision": "allow-always" }))).await;
    let (is_error, text) = agent.text_of("demo__echo", json!({ "text": "hej" })).await;
    assert!(is_error && text.contains("there was no one to ask"), "{text}");
}

#[tokio::test]
async fn a_call_without_anyone_to_ask_says_who_can_allow_it() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    for mode in modes() {
        let agent = Agent::new(&host, mode, None).await;
        let (is_error, text) = agent.text_of("demo__echo", json!({ "text": "hej" })).await;
        assert!(is_error && text.contains("there was no one to ask. The user can allow this in an editor"), "{text}");
        assert!(!text.contains("mcp.json"), "{text}");
        agent.peer.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn a_question_of_a_server_goes_to_the_agent_that_called_it() {
    let host = Host::new(json!({ "demo": demo(json!({ "*": "allow-session" })) }));
    for mode in modes() {
        let mut agent = Agent::new(&host, mode, Some(json!({ "name": "Ada" }))).await;
        let (is_error, text) = agent.text_of("demo__ask_name", json!({})).await;
        assert!(!is_error && text.contains("Ada"), "{text}");
        assert!(agent.hears().await.starts_with("asked: "));
        agent.peer.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn progress_is_forwarded_to_the_caller() {
    let host = Host::new(json!({ "demo": demo(json!({ "*": "allow-session" })) }));
    for mode in modes() {
        let mut agent = Agent::new(&host, mode, None).await;
        let (is_error, _) = agent.text_of("demo__countdown", json!({ "from": 2 })).await;
        assert!(!is_error);
        assert!(agent.hears().await.starts_with("progress "));
        agent.peer.cancel().await.unwrap();
    }
}
