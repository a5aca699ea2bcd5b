//! Answers that pass by tower-lsp as text.
//!
//! Its router turns every answer into a tree of values before it is written. For the outline of a large file that costs
//! several times as much as everything else together. So a handler lays its answer aside, already written, and gives
//! the router nothing; whoever asked the router finds it here.

use std::cell::RefCell;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tower_lsp::jsonrpc::{Error, Result};

tokio::task_local! {
    /// Of the request that this task works on.
    static LAID: RefCell<Option<Box<RawValue>>>;
}

/// Runs a request; its answer, and what was laid aside for it.
pub async fn collect<T>(request: impl Future<Output = T>) -> (T, Option<Box<RawValue>>) {
    LAID.scope(RefCell::default(), async {
        let answer = request.await;
        (answer, LAID.with(RefCell::take))
    })
    .await
}

/// Lays an answer aside, if there is one. What is returned is for the router; outside of [`collect`] it is the answer.
pub fn lay<T: Serialize>(answer: Result<Option<T>>) -> Result<Option<T>> {
    let Some(answer) = answer? else { return Ok(None) };
    let written = to_raw_value(&answer).map_err(|_| Error::internal_error())?;
    match LAID.try_with(|laid| laid.replace(Some(written))) {
        Ok(_) => Ok(None),
        Err(_) => Ok(Some(answer)),
    }
}
