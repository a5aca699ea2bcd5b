//! What an agent hears without asking: lists that changed, resources that changed, what servers log.
#![allow(deprecated, reason = "logging is what peers before 2026-07-28 know")]

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, SubscriptionContext};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;

use super::Endpoint;
use super::catalog::Catalog;
use super::session::{Session, Sight};
use crate::engine::Notice;
use crate::model::{LogLine, LogSource, ServerName};

/// Which lists are others now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Changed {
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl Changed {
    fn between(before: &Catalog, after: &Catalog) -> Self {
        Self {
            tools: !Arc::ptr_eq(&before.tools, &after.tools),
            resources: !Arc::ptr_eq(&before.resources, &after.resources)
                || !Arc::ptr_eq(&before.templates, &after.templates),
            prompts: !Arc::ptr_eq(&before.prompts, &after.prompts),
        }
    }
}

/// Tells an agent of the older era, until it goes.
pub async fn tell(session: Arc<Session>, peer: Peer<RoleServer>) {
    let endpoint = &session.endpoint;
    let sight = session.sight(peer.peer_info().map(|agent| agent.client_info.name.clone()));
    let mut pictures = endpoint.engine.snapshot();
    let mut notices = endpoint.engine.notices();
    let mut told = endpoint.catalog(&sight);
    loop {
        // An agent that has gone does not need to be told.
        tokio::select! {
            changed = pictures.changed() => {
                if changed.is_err() {
                    return;
                }
                pictures.borrow_and_update();
                endpoint.watch_anew();
                let now = endpoint.catalog(&sight);
                let changed = Changed::between(&told, &now);
                told = now;
                if changed.tools {
                    peer.notify_tool_list_changed().await.ok();
                }
                if changed.resources {
                    peer.notify_resource_list_changed().await.ok();
                }
                if changed.prompts {
                    peer.notify_prompt_list_changed().await.ok();
                }
            }
            notice = notices.recv() => match notice {
                Ok(Notice::Log { server, line }) if sight.view.shows_server(&server) => {
                    if let Some(message) = message(&server, line, session.log_level()) {
                        peer.notify_logging_message(message).await.ok();
                    }
                }
                Ok(Notice::ResourceUpdated { server, uri }) if session.watches(&server, &uri) => {
                    let uri = endpoint.catalog(&sight).shown_uri(&server, &uri);
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.ok();
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// Tells an agent of the newer era what its subscription asks for. The sink itself leaves out the rest.
pub async fn listen(endpoint: &Endpoint, sight: &Sight, subscription: &SubscriptionContext) {
    let mut pictures = endpoint.engine.snapshot();
    let mut notices = endpoint.engine.notices();
    let sink = subscription.sink();
    let mut told = endpoint.catalog(sight);
    let watched = subscription.accepted().resource_subscriptions.clone().unwrap_or_default();
    let found = watched.iter().filter_map(|uri| endpoint.catalog(sight).find_uri(uri)).collect::<Vec<_>>();
    let mut watches = Vec::new();
    for (server, uri) in &found {
        // Over when this subscription is.
        watches.extend(endpoint.watch(&sight.who, server, uri).await);
    }
    loop {
        tokio::select! {
            () = subscription.cancelled() => break,
            changed = pictures.changed() => {
                if changed.is_err() {
                    break;
                }
                pictures.borrow_and_update();
                endpoint.watch_anew();
                let now = endpoint.catalog(sight);
                let changed = Changed::between(&told, &now);
                told = now;
                if changed.tools {
                    sink.notify_tool_list_changed().await.ok();
                }
                if changed.resources {
                    sink.notify_resource_list_changed().await.ok();
                }
                if changed.prompts {
                    sink.notify_prompt_list_changed().await.ok();
                }
            }
            notice = notices.recv() => match notice {
                Ok(Notice::ResourceUpdated { server, uri }) if sight.view.shows_server(&server) => {
                    let uri = endpoint.catalog(sight).shown_uri(&server, &uri);
                    sink.notify_resource_updated(uri).await.ok();
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            },
        }
    }
}

/// A line that is worth passing on: a server's own message, as severe as the agent asked for.
pub fn message(server: &ServerName, line: LogLine, least: LoggingLevel) -> Option<LoggingMessageNotificationParam> {
    if line.source != LogSource::Server {
        return None;
    }
    let level: LoggingLevel = serde_json::from_value(Value::from(line.level.as_str())).ok()?;
    let message =
        || LoggingMessageNotificationParam::new(level, Value::String(line.text)).with_logger(server.to_string());
    (level as u8 >= least as u8).then(message)
}
