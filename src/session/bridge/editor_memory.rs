//! What a new engine needs to know so that the session of an editor continues: its first message, its folders, settings
//! and open buffers. Only for editors without our plugin.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::{Value, json};

use super::Memory;
use super::message::{LOST, MessageHead, OWN, no_engine, parsed, renumber, restore, set};
use crate::lsp::KnownBuffers;
use crate::lsp::frames::{BODY_LIMIT, HEADER_LIMIT, LENGTH};
use crate::protocol::commands;

/// The code of LSP for a request that was valid and failed.
const REQUEST_FAILED: i32 = -32_803;
/// The type of an information in `window/showMessage`.
const INFO: u8 = 3;
const END_OF_HEADER: &[u8] = b"\r\n\r\n";

/// A request of the editor that has no response yet.
struct Running {
    method: String,
    /// To send it again.
    message: Option<Vec<u8>>,
}

#[derive(Default)]
pub struct EditorMemory {
    /// By the JSON of the id.
    running: BTreeMap<String, Running>,
    initialize: Option<Value>,
    initialized: Option<Vec<u8>>,
    /// The changes of the workspace folders, in order.
    folders: Vec<Vec<u8>>,
    /// The latest settings.
    settings: Option<Vec<u8>>,
    buffers: KnownBuffers,
    /// The requests of the engine that the editor has not answered, as it knows them.
    asked: BTreeSet<String>,
    /// The files that have diagnostics.
    diagnosed: BTreeSet<String>,
    /// The editor has ended the session.
    has_ended: bool,
    /// How many engines there were before this one.
    engine: u32,
}

impl Memory for EditorMemory {
    fn read(input: &mut impl BufRead, message: &mut Vec<u8>) -> io::Result<bool> {
        let mut length = None;
        loop {
            let start = message.len();
            input.by_ref().take(HEADER_LIMIT as u64).read_until(b'\n', message)?;
            let line = message.get(start..).unwrap_or_default();
            match (content_length(line), line.trim_ascii().is_empty()) {
                (Some(found), _) => length = Some(found),
                (None, true) => break,
                (None, false) if message.len() > HEADER_LIMIT => break,
                (None, false) => {}
            }
        }
        // The engine refuses a message without a length, or one that is too long, and finds the next one.
        let Some(length) = length.filter(|length| *length <= BODY_LIMIT) else { return Ok(!message.is_empty()) };
        Ok(input.take(length as u64).read_to_end(message)? == length)
    }

    fn take_from_program<'a>(&mut self, message: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(head) = MessageHead::of(body(message)) else { return Some(message.into()) };
        let Some(method) = head.method.as_deref() else {
            self.asked.remove(head.id?.get());
            return self.with_old_id(message);
        };
        self.note(method, message);
        if let Some(id) = head.id {
            let kept = is_repeatable(method, message).then(|| message.to_vec());
            self.running.insert(id.get().to_owned(), Running { method: method.to_owned(), message: kept });
        }
        Some(message.into())
    }

    fn unavailable(&mut self, message: &[u8], reason: &str) -> Option<Vec<u8>> {
        let head = MessageHead::of(body(message))?;
        let method = head.method.as_deref()?;
        self.note(method, message);
        Some(failure(head.id?.get(), method, &no_engine(reason)))
    }

    fn take_from_engine<'a>(&mut self, message: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(head) = MessageHead::of(body(message)) else { return Some(message.into()) };
        match (head.method.as_deref(), head.id) {
            (None, _) if head.is_own() => None,
            (None, Some(id)) => {
                self.running.remove(id.get());
                Some(message.into())
            }
            (Some(_), Some(id)) if self.engine == 0 => {
                self.asked.insert(id.get().to_owned());
                Some(message.into())
            }
            (Some(_), Some(_)) => {
                let mut request = parsed(body(message))?;
                renumber(&mut request, "/id", self.engine);
                self.asked.insert(request.get("id")?.to_string());
                Some(framed(&request).into())
            }
            (Some("$/cancelRequest"), None) if self.engine > 0 => {
                let mut cancelled = parsed(body(message))?;
                renumber(&mut cancelled, "/params/id", self.engine);
                Some(framed(&cancelled).into())
            }
            (Some("textDocument/publishDiagnostics"), None) => {
                let file = parsed(body(message))
                    .and_then(|message| Some(message.pointer("/params/uri")?.as_str()?.to_owned()));
                self.diagnosed.extend(file);
                Some(message.into())
            }
            _ => Some(message.into()),
        }
    }

    fn lose(&mut self) -> Vec<u8> {
        self.engine += 1;
        let lost = self.running.extract_if(.., |_, running| running.message.is_none());
        let mut answers: Vec<u8> = lost.flat_map(|(id, running)| failure(&id, &running.method, LOST)).collect();
        // Nobody waits for an answer to them any more, and the new engine publishes its own diagnostics.
        for id in std::mem::take(&mut self.asked) {
            let id = serde_json::from_str::<Value>(&id).unwrap_or_default();
            answers.extend(notification("$/cancelRequest", json!({ "id": id })));
        }
        for file in std::mem::take(&mut self.diagnosed) {
            let nothing = json!({ "uri": file, "diagnostics": [] });
            answers.extend(notification("textDocument/publishDiagnostics", nothing));
        }
        answers
    }

    fn fail_all(&mut self, reason: &str) -> Vec<u8> {
        let all = std::mem::take(&mut self.running);
        all.iter().flat_map(|(id, running)| failure(id, &running.method, &no_engine(reason))).collect()
    }

    fn replay(&self) -> Vec<u8> {
        let mut replay = Vec::new();
        if self.engine == 0 {
            return replay;
        }
        // A greeting without a response is sent again below, with the editor's own id.
        let is_greeting = |running: &Running| running.method == "initialize";
        if let Some(mut greeting) = self.initialize.clone().filter(|_| !self.running.values().any(is_greeting)) {
            set(&mut greeting, "id", json!(format!("{OWN}0")));
            replay.extend(framed(&greeting));
            replay.extend(self.initialized.iter().flatten());
            replay.extend(self.folders.iter().flatten());
            replay.extend(self.settings.iter().flatten());
            for buffer in self.buffers.reopen() {
                replay.extend(notification("textDocument/didOpen", buffer));
            }
        }
        replay.extend(self.running.values().filter_map(|running| running.message.as_deref()).flatten());
        replay
    }

    fn news(&self) -> Vec<u8> {
        if self.engine == 0 || self.initialized.is_none() {
            return Vec::new();
        }
        let message = "mcp-sidecar was restarted. Calls that were running have failed.";
        notification("window/showMessage", json!({ "type": INFO, "message": message }))
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn ends_with(_code: u8) -> bool {
        true
    }
}

impl EditorMemory {
    fn note(&mut self, method: &str, message: &[u8]) {
        let params = || parsed(body(message)).and_then(|mut message| Some(message.get_mut("params")?.take()));
        match method {
            "initialize" => {
                self.initialize = parsed(body(message));
                self.buffers.initialize(&params().unwrap_or_default());
            }
            "initialized" => self.initialized = Some(message.to_vec()),
            "workspace/didChangeConfiguration" => self.settings = Some(message.to_vec()),
            "workspace/didChangeWorkspaceFolders" => self.folders.push(message.to_vec()),
            "textDocument/didOpen" | "textDocument/didChange" | "textDocument/didClose" => {
                self.buffers.notify(method, params().unwrap_or_default());
            }
            // After that, no engine is started for the editor.
            "shutdown" | "exit" => self.has_ended = true,
            _ => {}
        }
    }

    fn with_old_id<'a>(&self, message: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.engine == 0 {
            return Some(message.into());
        }
        let mut response = parsed(body(message))?;
        restore(&mut response, self.engine)?;
        Some(framed(&response).into())
    }
}

/// What is needed of `workspace/executeCommand`.
#[derive(Deserialize)]
struct CommandMessage<'a> {
    #[serde(borrow)]
    params: CommandName<'a>,
}

#[derive(Deserialize)]
struct CommandName<'a> {
    #[serde(borrow)]
    command: Cow<'a, str>,
}

/// Whether a request can be sent again.
fn is_repeatable(method: &str, message: &[u8]) -> bool {
    match method {
        "shutdown" => false,
        "workspace/executeCommand" => {
            let named = serde_json::from_slice::<CommandMessage<'_>>(body(message));
            named.is_ok_and(|named| commands::only_reads(&named.params.command))
        }
        _ => true,
    }
}

fn failure(id: &str, method: &str, text: &str) -> Vec<u8> {
    let id = serde_json::from_str::<Value>(id).unwrap_or_default();
    framed(&match method {
        "shutdown" => json!({ "jsonrpc": "2.0", "id": id, "result": null }),
        _ => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": REQUEST_FAILED, "message": text } }),
    })
}

fn notification(method: &str, params: Value) -> Vec<u8> {
    framed(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

fn framed(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The message without its header.
fn body(message: &[u8]) -> &[u8] {
    let end = memchr::memmem::find(message, END_OF_HEADER).map(|at| at + END_OF_HEADER.len());
    end.and_then(|end| message.get(end..)).unwrap_or_default()
}

/// After a message that cannot be read, the header may begin anywhere in the line.
fn content_length(line: &[u8]) -> Option<usize> {
    let at = line.windows(LENGTH.len()).rposition(|window| window.eq_ignore_ascii_case(LENGTH))?;
    std::str::from_utf8(line.get(at + LENGTH.len()..)?).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor(memory: &mut EditorMemory, message: &Value) -> Option<Value> {
        parsed(body(&memory.take_from_program(&framed(message))?))
    }

    fn engine(memory: &mut EditorMemory, message: &Value) -> Option<Value> {
        parsed(body(&memory.take_from_engine(&framed(message))?))
    }

    fn messages(bytes: &[u8]) -> Vec<Value> {
        let (mut input, mut found, mut message) = (bytes, Vec::new(), Vec::new());
        while EditorMemory::read(&mut input, &mut message).unwrap() {
            found.push(parsed(body(&message)).unwrap());
            message.clear();
        }
        found
    }

    fn greeted() -> EditorMemory {
        let mut memory = EditorMemory::default();
        editor(&mut memory, &json!({ "id": 0, "method": "initialize", "params": { "rootUri": "file:///p" } }));
        engine(&mut memory, &json!({ "id": 0, "result": {} }));
        editor(&mut memory, &json!({ "method": "initialized", "params": {} }));
        memory
    }

    #[test]
    fn a_new_engine_learns_what_the_editor_has_open_and_its_latest_settings() {
        let mut memory = greeted();
        assert_eq!(messages(&memory.replay()), [] as [Value; 0]);
        for (uri, text) in [("file:///a", "one"), ("file:///b", "two")] {
            let document = json!({ "uri": uri, "languageId": "json", "version": 1, "text": text });
            editor(&mut memory, &json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } }));
        }
        let change =
            json!({ "textDocument": { "uri": "file:///a", "version": 2 }, "contentChanges": [{ "text": "1" }] });
        editor(&mut memory, &json!({ "method": "textDocument/didChange", "params": change }));
        let close = json!({ "textDocument": { "uri": "file:///b" } });
        editor(&mut memory, &json!({ "method": "textDocument/didClose", "params": close }));
        let settings =
            |level: &str| json!({ "method": "workspace/didChangeConfiguration", "params": { "settings": level } });
        for level in ["debug", "info"] {
            editor(&mut memory, &settings(level));
        }
        memory.lose();
        let open = json!({ "uri": "file:///a", "languageId": "json", "version": 2, "text": "1" });
        assert_eq!(
            messages(&memory.replay()),
            [
                json!({ "id": "mcp-sidecar/0", "method": "initialize", "params": { "rootUri": "file:///p" } }),
                json!({ "method": "initialized", "params": {} }),
                settings("info"),
                json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": open } }),
            ]
        );
        assert_eq!(engine(&mut memory, &json!({ "id": "mcp-sidecar/0", "result": {} })), None);
    }

    #[test]
    fn commands_fail_reads_are_sent_again_and_old_messages_are_removed() {
        let mut memory = greeted();
        let list = json!({ "id": 6, "method": "workspace/executeCommand", "params": { "command": "mcp.servers" } });
        editor(&mut memory, &list);
        let hover = json!({ "id": 7, "method": "textDocument/hover", "params": {} });
        editor(&mut memory, &hover);
        editor(&mut memory, &json!({ "id": 8, "method": "workspace/executeCommand", "params": {} }));
        let question = json!({ "id": 1, "method": "window/showMessageRequest", "params": {} });
        engine(&mut memory, &question);
        let diagnostics = json!({ "uri": "file:///a", "diagnostics": [{}] });
        engine(&mut memory, &json!({ "method": "textDocument/publishDiagnostics", "params": diagnostics }));
        let lost = messages(&memory.lose());
        assert_eq!((&lost[0]["id"], &lost[1]["params"]["id"]), (&json!(8), &json!(1)));
        assert!(lost[0]["error"]["message"].as_str().unwrap().contains("may have been executed"));
        assert_eq!(lost[2]["params"], json!({ "uri": "file:///a", "diagnostics": [] }));
        assert_eq!(messages(&memory.replay())[2..], [list, hover]);
        assert_eq!(editor(&mut memory, &json!({ "id": 1, "result": null })), None, "the question has ended");
        let asked = engine(&mut memory, &question).unwrap();
        assert_eq!(asked["id"], "mcp-sidecar/1/1");
        let answered = editor(&mut memory, &json!({ "id": asked["id"], "result": null })).unwrap();
        assert_eq!(answered, json!({ "id": 1, "result": null }));
        assert_eq!(messages(&memory.lose()), [] as [Value; 0]);
    }

    #[test]
    fn buffers_that_change_without_an_engine_are_known_to_the_next_one() {
        let mut memory = greeted();
        memory.lose();
        let document = json!({ "uri": "file:///a", "languageId": "json", "version": 1, "text": "one" });
        let open = json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } });
        assert_eq!(memory.unavailable(&framed(&open), "no socket"), None);
        assert_eq!(messages(&memory.replay()).last().unwrap()["params"]["textDocument"], document);
        let hover = framed(&json!({ "id": 7, "method": "textDocument/hover" }));
        let refused = messages(&memory.unavailable(&hover, "no socket").unwrap());
        assert!(refused[0]["error"]["message"].as_str().unwrap().ends_with("no socket"));
    }

    #[test]
    fn a_message_without_a_length_is_passed_on_as_it_is() {
        let bytes = b"nonsense\r\n\r\n{}Content-Length: 2\r\n\r\n{}Content-Length: 9\r\n\r\n{}";
        let (mut input, mut read) = (&bytes[..], Vec::new());
        for (expected, is_whole) in [(12, true), (25, true), (23, false), (0, false)] {
            read.clear();
            assert_eq!((EditorMemory::read(&mut input, &mut read).unwrap(), read.len()), (is_whole, expected));
        }
    }
}
