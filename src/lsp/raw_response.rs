//! Responses that bypass tower-lsp as raw JSON.
//!
//! Its router converts every response to a tree of values. For the outline of a large file, that takes several times as
//! long as everything else. So a handler stores its response here as raw JSON and returns nothing to the router.

use std::cell::RefCell;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tower_lsp::jsonrpc::{Error, Result};

tokio::task_local! {
    /// The response of the request that this task handles.
    static RESPONSE: RefCell<Option<Box<RawValue>>>;
}

/// Runs a request. Returns its result, and its raw response if it has one.
pub async fn capture<T>(request: impl Future<Output = T>) -> (T, Option<Box<RawValue>>) {
    RESPONSE
        .scope(RefCell::default(), async {
            let result = request.await;
            (result, RESPONSE.with(RefCell::take))
        })
        .await
}

/// Stores a response and returns `None` for the router. Outside of [`capture`], returns the response.
pub fn send<T: Serialize>(response: Result<Option<T>>) -> Result<Option<T>> {
    let Some(response) = response? else { return Ok(None) };
    let raw = to_raw_value(&response).map_err(|_| Error::internal_error())?;
    match RESPONSE.try_with(|stored| stored.replace(Some(raw))) {
        Ok(_) => Ok(None),
        Err(_) => Ok(Some(response)),
    }
}
