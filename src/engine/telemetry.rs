//! Exports a span and a log record for each call by OTLP over HTTP, if `telemetry.otlp-endpoint` is set.
//!
//! They contain names, the decision, the outcome and durations, but no arguments, results, messages or URIs. A call never
//! waits: what does not fit into the queue is dropped and counted.

mod collector;
mod otlp;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use super::Engine;
use crate::model::{CallId, CallRecord};
use crate::settings::Settings;
pub use collector::{Collector, Failure};

/// Calls that may wait for the export.
const QUEUE: usize = 1_024;
/// Calls in one request.
const BATCH: usize = 128;
/// The key of `_meta` that names the trace of a request.
const TRACEPARENT: &str = "traceparent";

/// Cheap to clone; all clones share the queue.
#[derive(Clone)]
pub struct Telemetry {
    settings: watch::Receiver<Arc<Settings>>,
    /// Created with the first call that is exported.
    queue: Arc<OnceLock<mpsc::Sender<Exported>>>,
    dropped: Arc<AtomicU64>,
    collector: Collector,
    /// Why the last export failed.
    failure: Arc<watch::Sender<Option<Failure>>>,
}

/// One call.
struct Exported {
    record: CallRecord,
    span: Span,
    error: Option<&'static str>,
}

/// Where a call is in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    flags: String,
}

impl Span {
    /// The span of a call. The metadata of its caller may name the trace.
    pub fn of(call: &CallId, meta: &Map<String, Value>) -> Self {
        let id = call.0.get(16..32).unwrap_or("0000000000000001").to_owned();
        match meta.get(TRACEPARENT).and_then(Value::as_str).and_then(parse_traceparent) {
            Some((trace, parent, flags)) => Self { trace, id, parent: Some(parent), flags },
            None => Self { trace: call.0.to_string(), id, parent: None, flags: "01".to_owned() },
        }
    }

    /// The metadata for the server, whose own spans become children of this one.
    pub fn child_meta(&self, meta: &Map<String, Value>) -> Map<String, Value> {
        let mut meta = meta.clone();
        let Self { trace, id, parent: _, flags } = self;
        meta.insert(TRACEPARENT.to_owned(), json!(format!("00-{trace}-{id}-{flags}")));
        meta
    }
}

/// Trace, parent and flags of a valid `traceparent`.
fn parse_traceparent(text: &str) -> Option<(String, String, String)> {
    let mut parts = text.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, length: usize| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
    let is_valid = is_hex(version, 2) && version != "ff" && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2);
    is_valid.then(|| (trace.to_owned(), parent.to_owned(), flags.to_owned()))
}

impl Telemetry {
    pub fn new(settings: watch::Receiver<Arc<Settings>>, collector: Collector) -> Self {
        let failure = Arc::new(watch::Sender::new(None));
        Self { settings, queue: Arc::default(), dropped: Arc::default(), collector, failure }
    }

    pub fn is_on(&self) -> bool {
        !self.settings.borrow().telemetry.otlp_endpoint.is_empty()
    }

    /// Exports a call that has ended. `error` is the kind of its error.
    pub fn record(&self, record: &CallRecord, span: &Span, error: Option<&'static str>) {
        if !self.is_on() {
            return;
        }
        let queue = self.queue.get_or_init(|| {
            let (sender, receiver) = mpsc::channel(QUEUE);
            let (settings, dropped) = (self.settings.clone(), self.dropped.clone());
            // Ends with the last clone, which holds the sender.
            tokio::spawn(export(receiver, settings, dropped, self.collector.clone(), self.failure.clone()));
            sender
        });
        let record = CallRecord { arguments: None, requested_arguments: None, result: None, ..record.clone() };
        if queue.try_send(Exported { record, span: span.clone(), error }).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn export(
    mut queue: mpsc::Receiver<Exported>,
    settings: watch::Receiver<Arc<Settings>>,
    dropped: Arc<AtomicU64>,
    mut collector: Collector,
    failure: Arc<watch::Sender<Option<Failure>>>,
) {
    let mut calls = Vec::new();
    let mut reported = 0;
    while queue.recv_many(&mut calls, BATCH).await > 0 {
        let settings = settings.borrow().clone();
        let mut failed = None;
        for (path, body) in [("v1/traces", otlp::traces(&calls)), ("v1/logs", otlp::logs(&calls))] {
            failed = collector.send(&settings, path, &body).await.err().or(failed);
        }
        if failed.is_some() {
            dropped.fetch_add(calls.len() as u64, Ordering::Relaxed);
        }
        calls.clear();
        let total = dropped.load(Ordering::Relaxed);
        // Each time that the number doubles, so that a collector that is gone does not fill the log.
        if total > 0 && total >= reported * 2 {
            reported = total;
            let why = failed.as_ref().map_or_else(|| "the collector is too slow".to_owned(), Failure::to_string);
            tracing::warn!(total, %why, "records of calls were not exported");
        }
        failure.send_if_modified(|known| std::mem::replace(known, failed.clone()) != failed);
    }
}

impl Engine {
    /// Why calls cannot be exported now. `None` while they can, and before the first one.
    pub fn export_failure(&self) -> watch::Receiver<Option<Failure>> {
        self.0.shared.telemetry.failure.subscribe()
    }

    /// Sends an empty export to the collector, if there is one. Returns its address.
    pub async fn try_export(&self) -> Option<Result<String, Failure>> {
        let telemetry = &self.0.shared.telemetry;
        let settings = telemetry.settings.borrow().clone();
        telemetry.is_on().then_some(())?;
        let mut collector = telemetry.collector.clone();
        let sent = collector.send(&settings, "v1/traces", &otlp::traces(&[])).await;
        Some(sent.map(|()| collector::address(&settings)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_names_the_trace_and_the_server_gets_our_span() {
        let call = CallId("0123456789abcdef0123456789abcdee".into());
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let meta = json!({ "traceparent": format!("00-{trace}-00f067aa0ba902b7-00"), "other": 1 });
        let span = Span::of(&call, meta.as_object().unwrap());
        assert_eq!((span.trace.as_str(), span.parent.as_deref()), (trace, Some("00f067aa0ba902b7")));
        let child = span.child_meta(meta.as_object().unwrap());
        assert_eq!(child["traceparent"], format!("00-{trace}-0123456789abcdee-00"));
        assert_eq!(child["other"], 1);
        for bad in ["", "00-x-y-00", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"] {
            let span = Span::of(&call, json!({ "traceparent": bad }).as_object().unwrap());
            assert_eq!((span.trace.as_str(), span.parent), (&*call.0, None), "{bad}");
        }
    }
}
