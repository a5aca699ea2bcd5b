//! A real server of the other kind: the library's own, in both eras.

use std::sync::Arc;

use axum::Router;
use mcp_sidecar::config::expand::Expanded;
use mcp_sidecar::server::connection::Era;
use mcp_sidecar::server::oauth::ServerAuth;
use rmcp::model::{
    JsonObject, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::net::TcpListener;

use super::mock::{connect, endpoint, open};

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "says it again", JsonObject::new())]))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = ResourceContents::text(format!("this is {}", params.uri), params.uri);
        Ok(ReadResourceResult::new(vec![text]).into())
    }
}

async fn serve() -> String {
    let service = StreamableHttpService::new(
        || Ok(Echo),
        Arc::<LocalSessionManager>::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().nest_service("/mcp", service)).await.unwrap() });
    url
}

#[tokio::test]
async fn a_real_server_answers_with_a_session() {
    let client = connect(&serve().await).await.unwrap();
    assert_eq!(client.lists().await.unwrap().tools.len(), 1);
    let reads = (0..32).map(|_| client.read("echo:this"));
    for said in futures::future::join_all(reads).await {
        assert_eq!(said.unwrap(), "this is echo:this");
    }
    client.close().await;
}

#[tokio::test]
async fn a_real_server_answers_without_a_session_in_the_newer_era() {
    let expanded = Expanded::Http(endpoint(&serve().await));
    let client = open(expanded, ServerAuth::default(), Some(Era::Discover)).await.unwrap();
    assert_eq!(client.lists().await.unwrap().tools.len(), 1);
    assert_eq!(client.read("echo:that").await.unwrap(), "this is echo:that");
    client.close().await;
}
