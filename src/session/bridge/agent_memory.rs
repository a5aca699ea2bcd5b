//! What a new engine needs to know so that the agent's session continues.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead};

use serde_json::{Value, json};

use super::message::{LOST, MessageHead, OWN, no_engine, parsed, renumber, restore, set};
use super::{Call, Memory};

/// Requests that change nothing. They are sent again.
const READS: [&str; 9] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "logging/setLevel",
    "subscriptions/listen",
];
/// The lists that may differ after a restart.
const LISTS: [&str; 3] = ["tools", "prompts", "resources"];
/// Longer messages are forwarded in pieces and not looked at. No engine accepts them.
const MAX_MESSAGE: usize = 256 << 20;

/// A request of the agent that has no response yet.
struct Running {
    method: String,
    delivery: Delivery,
}

#[derive(PartialEq)]
enum Delivery {
    /// It is being written. If that fails, the engine cannot have received it.
    Writing,
    /// The engine may have carried it out.
    Written,
    /// It changes nothing, and is sent again to the next engine.
    Repeated(Vec<u8>),
}

#[derive(Default)]
pub struct AgentMemory {
    /// By the JSON of the id.
    running: BTreeMap<String, Running>,
    /// The request that was taken last, if it cannot be repeated.
    taken: Option<String>,
    initialize: Option<Vec<u8>>,
    /// The protocol version that was agreed on.
    version: Option<Value>,
    initialized: Option<Vec<u8>>,
    level: Option<Vec<u8>>,
    /// By URI.
    subscriptions: BTreeMap<String, Vec<u8>>,
    /// How many engines there were before this one.
    engine: u32,
}

impl Memory for AgentMemory {
    fn read(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let bytes = match input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            let end = memchr::memchr(b'\n', bytes);
            let length = end.map_or(bytes.len(), |at| at + 1);
            line.extend_from_slice(bytes.get(..length).unwrap_or_default());
            input.consume(length);
            let is_whole = end.is_some() || line.len() >= MAX_MESSAGE;
            if is_whole || length == 0 {
                return Ok(is_whole);
            }
        }
    }

    fn take_from_program<'a>(&mut self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(head) = MessageHead::of(line) else { return Some(line.into()) };
        let Some(method) = head.method.as_deref() else {
            return self.with_old_id(line);
        };
        match method {
            "initialize" => self.initialize = Some(line.to_vec()),
            "notifications/initialized" => self.initialized = Some(line.to_vec()),
            "logging/setLevel" => self.level = Some(line.to_vec()),
            "resources/subscribe" => drop(uri(line).map(|uri| self.subscriptions.insert(uri, line.to_vec()))),
            "resources/unsubscribe" => drop(uri(line).map(|uri| self.subscriptions.remove(&uri))),
            _ => {}
        }
        if let Some(id) = head.id {
            let is_read = READS.contains(&method);
            let delivery = if is_read { Delivery::Repeated(line.to_vec()) } else { Delivery::Writing };
            self.taken = (!is_read).then(|| id.get().to_owned());
            self.running.insert(id.get().to_owned(), Running { method: method.to_owned(), delivery });
        }
        Some(line.into())
    }

    fn take_call(&mut self) -> Option<String> {
        self.taken.take()
    }

    fn written(&mut self, calls: &[Call], is_open: bool) -> Vec<u8> {
        for call in calls {
            if let Some(running) = self.running.get_mut(&call.id) {
                running.delivery = Delivery::Written;
            }
        }
        if is_open { Vec::new() } else { self.lost() }
    }

    fn take_back(&mut self, call: &Call) -> bool {
        self.running.remove(&call.id).is_some()
    }

    fn take_from_engine<'a>(&mut self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(head) = MessageHead::of(line) else { return Some(line.into()) };
        match (head.method.as_deref(), head.id) {
            (None, Some(id)) => {
                if id.get().trim_start_matches('"').starts_with(OWN) {
                    return None;
                }
                if self.running.remove(id.get()).is_some_and(|running| running.method == "initialize") {
                    self.version = parsed(line).and_then(|message| message.pointer("/result/protocolVersion").cloned());
                }
                Some(line.into())
            }
            // The ids of different engines must differ, or a late response would reach the wrong request.
            (Some(_), Some(_)) if self.engine > 0 => Some(self.with_new_id(line, "/id").into()),
            (Some("notifications/cancelled"), None) if self.engine > 0 => {
                Some(self.with_new_id(line, "/params/requestId").into())
            }
            _ => Some(line.into()),
        }
    }

    fn lose(&mut self) -> Vec<u8> {
        self.engine += 1;
        self.lost()
    }

    fn fail_all(&mut self, reason: &str) -> Vec<u8> {
        let stateless = self.initialize.is_none();
        let all = std::mem::take(&mut self.running);
        all.iter().flat_map(|(id, running)| failure(id, &running.method, &no_engine(reason), stateless)).collect()
    }

    fn unavailable(&mut self, line: &[u8], reason: &str) -> Option<Vec<u8>> {
        let head = MessageHead::of(line)?;
        let (id, method) = (head.id?, head.method.as_deref()?);
        Some(failure(id.get(), method, &no_engine(reason), self.initialize.is_none()))
    }

    fn has_ended(&self) -> bool {
        false
    }

    /// With any other code, the agent should come back to another engine.
    fn ends_with(code: u8) -> bool {
        code == 0
    }

    fn replay(&self) -> Vec<u8> {
        let mut replay = Vec::new();
        if self.engine == 0 {
            return replay;
        }
        let is_running = |method: &str| self.running.values().any(|running| running.method == method);
        // A greeting without a response is sent again below, with the agent's own id.
        if !is_running("initialize") {
            let greeting = self.initialize.iter().filter_map(|line| parsed(line)).map(|mut greeting| {
                if let (Some(slot), Some(version)) = (greeting.pointer_mut("/params/protocolVersion"), &self.version) {
                    *slot = version.clone();
                }
                greeting
            });
            let level = self.level.iter().filter(|_| !is_running("logging/setLevel"));
            let more = level.chain(self.subscriptions.values()).filter_map(|line| parsed(line));
            for (number, mut message) in greeting.chain(more).enumerate() {
                set(&mut message, "id", json!(format!("{OWN}{number}")));
                push(&mut replay, &message);
                if number == 0 {
                    replay.extend(self.initialized.iter().flatten());
                }
            }
        }
        for running in self.running.values() {
            if let Delivery::Repeated(line) = &running.delivery {
                replay.extend(line);
            }
        }
        replay
    }

    fn news(&self) -> Vec<u8> {
        let mut news = Vec::new();
        if self.engine > 0 && self.initialized.is_some() {
            for list in LISTS {
                push(&mut news, &json!({ "jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed") }));
            }
        }
        news
    }
}

impl AgentMemory {
    /// The responses to requests that a lost engine may have carried out.
    fn lost(&mut self) -> Vec<u8> {
        let stateless = self.initialize.is_none();
        let lost = self.running.extract_if(.., |_, running| running.delivery == Delivery::Written);
        lost.flat_map(|(id, running)| failure(&id, &running.method, LOST, stateless)).collect()
    }

    /// Adds the number of the engine to the id at `pointer`.
    fn with_new_id(&self, line: &[u8], pointer: &str) -> Vec<u8> {
        let Some(mut message) = parsed(line) else { return line.to_vec() };
        renumber(&mut message, pointer, self.engine);
        to_line(&message)
    }

    /// Undoes [`Self::with_new_id`]. Nothing if the id is from an engine that has ended.
    fn with_old_id<'a>(&self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.engine == 0 {
            return Some(line.into());
        }
        let mut message = parsed(line)?;
        restore(&mut message, self.engine)?;
        Some(to_line(&message).into())
    }
}

/// A failed call is a result, because models read results.
fn failure(id: &str, method: &str, text: &str, stateless: bool) -> Vec<u8> {
    let mut message = json!({ "jsonrpc": "2.0", "id": serde_json::from_str::<Value>(id).unwrap_or_default() });
    if method == "tools/call" {
        let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
        if stateless {
            set(&mut result, "resultType", json!("complete"));
        }
        set(&mut message, "result", result);
    } else {
        set(&mut message, "error", json!({ "code": -32_000, "message": text }));
    }
    to_line(&message)
}

fn uri(line: &[u8]) -> Option<String> {
    Some(parsed(line)?.pointer("/params/uri")?.as_str()?.to_owned())
}

fn to_line(message: &Value) -> Vec<u8> {
    let mut line = Vec::new();
    push(&mut line, message);
    line
}

fn push(lines: &mut Vec<u8>, message: &Value) {
    serde_json::to_writer(&mut *lines, message).ok();
    lines.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(memory: &mut AgentMemory, message: &Value) -> Option<Value> {
        let line = to_line(message);
        let sent = memory.take_from_program(&line)?;
        let calls: Vec<Call> = memory.take_call().map(|id| Call { id, place: 0..line.len() }).into_iter().collect();
        assert_eq!(lines(&memory.written(&calls, true)), [] as [Value; 0]);
        parsed(&sent)
    }

    fn engine(memory: &mut AgentMemory, message: &Value) -> Option<Value> {
        let line = to_line(message);
        let passed = memory.take_from_engine(&line)?;
        parsed(&passed)
    }

    fn lines(bytes: &[u8]) -> Vec<Value> {
        bytes.split(|byte| *byte == b'\n').filter_map(parsed).collect()
    }

    fn greeted() -> AgentMemory {
        let mut memory = AgentMemory::default();
        agent(&mut memory, &json!({ "id": 0, "method": "initialize", "params": { "protocolVersion": "new" } }));
        engine(&mut memory, &json!({ "id": 0, "result": { "protocolVersion": "old" } }));
        agent(&mut memory, &json!({ "method": "notifications/initialized" }));
        memory
    }

    #[test]
    fn a_new_engine_is_greeted_with_the_version_that_was_agreed_on() {
        let mut memory = greeted();
        assert_eq!(lines(&memory.replay()), [] as [Value; 0]);
        agent(&mut memory, &json!({ "id": 1, "method": "logging/setLevel", "params": { "level": "debug" } }));
        engine(&mut memory, &json!({ "id": 1, "result": {} }));
        for (id, method, uri) in [(2, "subscribe", "a"), (3, "subscribe", "b"), (4, "unsubscribe", "a")] {
            let method = format!("resources/{method}");
            agent(&mut memory, &json!({ "id": id, "method": method, "params": { "uri": uri } }));
            engine(&mut memory, &json!({ "id": id, "result": {} }));
        }
        memory.lose();
        assert_eq!(
            lines(&memory.replay()),
            [
                json!({ "id": "mcp-sidecar/0", "method": "initialize", "params": { "protocolVersion": "old" } }),
                json!({ "method": "notifications/initialized" }),
                json!({ "id": "mcp-sidecar/1", "method": "logging/setLevel", "params": { "level": "debug" } }),
                json!({ "id": "mcp-sidecar/2", "method": "resources/subscribe", "params": { "uri": "b" } }),
            ]
        );
        assert_eq!(engine(&mut memory, &json!({ "id": "mcp-sidecar/1", "result": {} })), None);
        assert_eq!(lines(&memory.news()).len(), 3);
    }

    #[test]
    fn calls_fail_and_reads_are_sent_again() {
        let mut memory = greeted();
        let list = json!({ "id": "l", "method": "tools/list" });
        agent(&mut memory, &list);
        agent(&mut memory, &json!({ "id": 7, "method": "tools/call", "params": { "name": "x" } }));
        agent(&mut memory, &json!({ "id": 8, "method": "prompts/get", "params": { "name": "x" } }));
        let failed = lines(&memory.lose());
        assert_eq!(failed[0]["result"]["isError"], true);
        assert_eq!((&failed[0]["id"], &failed[1]["id"]), (&json!(7), &json!(8)));
        assert!(failed[1]["error"]["message"].as_str().unwrap().contains("may have been executed"));
        assert_eq!(lines(&memory.replay()).last(), Some(&list));
        let failed = lines(&memory.fail_all("no socket"));
        assert_eq!((failed.len(), &failed[0]["id"]), (1, &json!("l")));
        assert_eq!(lines(&memory.fail_all("again")), [] as [Value; 0]);
    }

    #[test]
    fn a_call_is_not_lost_with_an_engine_while_it_is_written() {
        let mut memory = greeted();
        let line = to_line(&json!({ "id": 7, "method": "tools/call", "params": { "name": "x" } }));
        for is_written in [true, false] {
            memory.take_from_program(&line).unwrap();
            let call = Call { id: memory.take_call().unwrap(), place: 0..line.len() };
            assert_eq!(lines(&memory.lose()), [] as [Value; 0]);
            if is_written {
                assert_eq!(lines(&memory.written(std::slice::from_ref(&call), false))[0]["result"]["isError"], true);
            }
            assert_eq!(memory.take_back(&call), !is_written);
            assert_eq!(lines(&memory.fail_all("no socket")), [] as [Value; 0]);
        }
    }

    #[test]
    fn a_greeting_without_a_response_is_sent_again_as_it_was() {
        let mut memory = AgentMemory::default();
        let greeting = json!({ "id": 0, "method": "initialize", "params": { "protocolVersion": "new" } });
        agent(&mut memory, &greeting);
        memory.lose();
        assert_eq!(lines(&memory.replay()), [greeting]);
        assert_eq!(lines(&memory.news()), [] as [Value; 0]);
    }

    #[test]
    fn a_late_response_does_not_reach_a_request_of_the_new_engine() {
        let mut memory = greeted();
        let question = json!({ "id": 1, "method": "elicitation/create" });
        assert_eq!(engine(&mut memory, &question).unwrap(), question);
        memory.lose();
        assert_eq!(agent(&mut memory, &json!({ "id": 1, "result": {} })), None);
        let asked = engine(&mut memory, &question).unwrap();
        assert_eq!(asked["id"], "mcp-sidecar/1/1");
        let cancelled = json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } });
        assert_eq!(engine(&mut memory, &cancelled).unwrap()["params"]["requestId"], asked["id"]);
        let answered = agent(&mut memory, &json!({ "id": asked["id"], "result": {} })).unwrap();
        assert_eq!(answered, json!({ "id": 1, "result": {} }));
    }
}
