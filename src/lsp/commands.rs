//! `workspace/executeCommand`.

use std::sync::Arc;

use serde_json::Value;

use super::convert;
use super::guard::Reply;
use super::seat::Seat;
use crate::model::Error;

/// Runs one command; dropping the future cancels it.
pub async fn run(seat: Arc<Seat>, params: Value) -> Reply {
    seat.settled().await;
    let name = params.get("command").and_then(Value::as_str).unwrap_or_default();
    Err(convert::error(&Error::NotFound(format!("no command named `{name}`"))))
}
