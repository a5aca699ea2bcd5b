//! An agent made with `rmcp`, the official Rust SDK.

use std::process::Stdio;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, Peer, PeerRequestOptions, RequestContext};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::PROGRAM;
use super::agent::{Agent, Reports};
use crate::support::Home;

struct Handler {
    reports: Reports,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        ClientConfig::new(capabilities, Implementation::new("rmcp", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = params else { panic!("a form was wanted") };
        self.reports.send(json!({ "asked": message })).ok();
        let mut result = ElicitResult::new(ElicitationAction::Accept);
        result.content = Some(json!({ "decision": "allow-once" }));
        Ok(result)
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.reports.send(json!({ "progress": progress.message })).ok();
    }
}

pub async fn agent(home: &Home) -> Agent {
    let mut command = Command::new(PROGRAM);
    command.arg("connect").envs(home.variables()).current_dir(home.project()).kill_on_drop(true);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let streams = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
    Agent::new(|mut instructions, reports| async move {
        let service = Handler { reports: reports.clone() }.serve(streams).await.unwrap();
        let mut running = CancellationToken::new();
        while let Some(instruction) = instructions.recv().await {
            match instruction["do"].as_str().unwrap() {
                "list" => {
                    let tools = service.list_all_tools().await.unwrap();
                    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
                    reports.send(json!({ "tools": names })).ok();
                }
                "list-all" => {
                    let tools = service.list_all_tools().await.unwrap();
                    let prompts = service.list_all_prompts().await.unwrap();
                    let resources = service.list_all_resources().await.unwrap();
                    let templates = service.list_all_resource_templates().await.unwrap();
                    let lists = json!({
                        "tools": tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(),
                        "prompts": prompts.iter().map(|prompt| &*prompt.name).collect::<Vec<_>>(),
                        "resources": resources.iter().map(|resource| &*resource.name).collect::<Vec<_>>(),
                        "resourceTemplates": templates.iter().map(|template| &*template.name).collect::<Vec<_>>(),
                    });
                    reports.send(json!({ "lists": lists })).ok();
                }
                "cancel" => running.cancel(),
                _ => {
                    running = CancellationToken::new();
                    tokio::spawn(call(service.peer().clone(), instruction, running.clone(), reports.clone()));
                }
            }
        }
        service.cancel().await.unwrap();
        reports.send(json!({ "left": process.wait().await.unwrap().success() })).ok();
    })
}

async fn call(peer: Peer<RoleClient>, instruction: Value, stop: CancellationToken, reports: Reports) {
    let params = CallToolRequestParams::new(instruction["tool"].as_str().unwrap().to_owned())
        .with_arguments(instruction["arguments"].as_object().unwrap().clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    tokio::select! {
        answer = &mut handle.rx => {
            let report = match answer.unwrap() {
                Ok(result) => json!({ "result": result }),
                Err(error) => json!({ "error": error.to_string() }),
            };
            reports.send(report).ok();
        }
        () = stop.cancelled() => {
            handle.cancel(Some("changed its mind".to_owned())).await.unwrap();
            reports.send(json!({ "error": "cancelled" })).ok();
        }
    }
}
