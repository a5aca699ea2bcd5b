//! What the fuzz targets run: each takes any bytes, and must neither panic nor break what it promises. `fuzz/` runs them
//! with a fuzzer, and `make test` with the stored inputs of `fuzz/corpus`.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a panic is how a target reports a finding")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::bytes::BytesMut;
use tokio_util::codec::Decoder;

use crate::config::expand::{self, Values};
use crate::config::interop::{self, Destination, Dialect};
use crate::config::{Content, Environment, Loaded, Source, edit, layers};
use crate::engine::gate::agent_tool::HookAnswer;
use crate::lsp;
use crate::model::{HookAgent, Scope, Subject, Tool};
use crate::policy::{ActionKind, AgentAction, NameGlob, Rules, SessionLevels, TrustState};
use crate::server::transport::{frame, repair};
use crate::settings::Settings;
use crate::text;

/// A target by the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[
    ("config", config),
    ("edit", edits),
    ("expand", expansion),
    ("lsp_frames", lsp_frames),
    ("mcp_frames", mcp_frames),
    ("hello", hello),
    ("rules", rules),
    ("text", safe_text),
    ("repair", json_repair),
    ("import", import),
    ("hook", hook),
];

/// Runs the target of this name.
pub fn run(name: &str, data: &[u8]) {
    for (_, target) in TARGETS.iter().filter(|(target, _)| *target == name) {
        target(data);
    }
}

fn load(text: &str, scope: Scope) -> Loaded {
    let folder: Arc<Path> = Path::new("/fuzz/project").into();
    let path = folder.join("mcp.json").into();
    let folder = (scope == Scope::Project).then_some(folder);
    let contents = [(Source { path, scope, folder }, Content::Text(text.into()))];
    layers::load(&contents, &BTreeMap::new(), &Settings::default().limits)
}

/// A config file: every problem is inside the file, and loading it twice gives the same.
fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for scope in [Scope::Project, Scope::User] {
        let loaded = load(&text, scope);
        for problem in loaded.files.iter().flat_map(|file| &file.problems) {
            assert!(problem.span.start <= problem.span.end && problem.span.end <= text.len(), "{problem:?}");
        }
        let again = load(&text, scope);
        assert!(again.config.servers.keys().eq(loaded.config.servers.keys()));
    }
}

/// Edits of a config file: an edit that succeeds does what it says, and the file can still be edited.
fn edits(data: &[u8]) {
    let (name, file) = split_text(data);
    let path = Path::new("/fuzz/mcp.json");
    if let Ok(added) = edit::set_server(&file, path, &name, json!({ "command": "true" })) {
        let removed = edit::remove_server(&added, &name).expect("what was added can be removed");
        edit::remove_server(&removed, &name).ok();
        if let Some(change) = edit::difference(&file, &added) {
            assert!(file.is_char_boundary(change.span.start) && file.is_char_boundary(change.span.end));
        }
    }
    edit::set_enabled(&file, &name, false).ok();
    edit::disable(&file, path, &name).ok();
    edit::set_tool_level(&file, &name, &name, None).ok();
    edit::without_empty_section(&file, "servers").ok();
}

/// Text with variables: what has no variables stays as it is.
fn expansion(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let environment = [("HOME", "/home/fuzz"), ("A", "${B}"), ("B", "${A}")];
    let environment =
        Environment::from(BTreeMap::from(environment.map(|(key, value)| (key.to_owned(), value.to_owned()))));
    let values = Values::in_folder(Some(Path::new("/fuzz")), &environment);
    if let Ok(expanded) = expand::text(&text, &values) {
        assert!(text.contains('$') || expanded == text, "{text:?} became {expanded:?}");
    }
    expand::known_text(&text, &values);
    expand::partly(&text, &values);
    expand::references_in(&text);
}

/// Messages of an editor, in pieces of any size: where the pieces end makes no difference.
fn lsp_frames(data: &[u8]) {
    let Some((piece, data)) = data.split_first() else { return };
    let read = |size: usize| {
        let (mut frames, mut buffer, mut found) = (lsp::frames::Frames::default(), BytesMut::new(), Vec::new());
        for piece in data.chunks(size.max(1)) {
            buffer.extend_from_slice(piece);
            while let Ok(Some(frame)) = frames.decode(&mut buffer) {
                if let lsp::frames::Frame::Body(body) = &frame {
                    lsp::message::read(body);
                    found.push(body.clone());
                }
            }
        }
        found
    };
    assert_eq!(read(usize::from(*piece)), read(data.len()));
}

/// Lines of a server or agent, in pieces of any size: no line is longer than the limit.
fn mcp_frames(data: &[u8]) {
    const LIMIT: usize = 64;
    let Some((piece, data)) = data.split_first() else { return };
    let read = |size: usize| {
        let (mut frames, mut found) = (frame::Frames::new(LIMIT), Vec::new());
        for piece in data.chunks(size.max(1)) {
            frames.room().extend_from_slice(piece);
            while let Some(taken) = frames.take() {
                if let frame::Frame::Line(line) = taken {
                    let line = frames.line(line).to_vec();
                    assert!(line.len() <= LIMIT && !line.contains(&b'\n'));
                    repair::read(&line);
                    found.push(line);
                }
            }
        }
        found
    };
    assert_eq!(read(usize::from(*piece)), read(data.len()));
}

/// The first line of a front.
fn hello(data: &[u8]) {
    #[cfg(unix)]
    if let Ok(hello) = serde_json::from_slice::<crate::session::Hello>(data) {
        let line = serde_json::to_vec(&hello).expect("what was read can be written");
        assert!(serde_json::from_slice::<crate::session::Hello>(&line).is_ok());
    }
    #[cfg(not(unix))]
    let _ = data;
}

/// A project's config with rules, the name of a tool, and arguments, separated by NUL: what the user has not trusted
/// allows nothing more than what they have.
fn rules(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut next = || parts.next().unwrap_or_default().into_owned();
    let (config, name, arguments) = (next(), next(), next());
    NameGlob::check(&name).ok();
    NameGlob::new(&name).is_match(&config);
    crate::policy::is_instance(&name, &arguments);
    let arguments: Map<String, Value> = serde_json::from_str(&arguments).unwrap_or_default();
    let loaded = load(&config, Scope::Project);
    let rules = Rules::new(&loaded.config, &SessionLevels::default(), &[]);
    let tool = Tool {
        name: name.into(),
        subject: Subject::Tool,
        title: None,
        description: String::new(),
        input_schema: Arc::default(),
        output_schema: None,
        annotations: Default::default(),
        raw: Arc::default(),
    };
    for server in loaded.config.servers.keys() {
        let rule = |state| rules.rule(server, &tool, Some(&arguments), state);
        assert!(rule(TrustState::Untrusted).level <= rule(TrustState::Trusted).level);
        rules.explain(server, &tool, Some(&arguments), TrustState::Trusted);
    }
}

/// Text of a server: what is shown has no hidden characters, and is not longer than it may be.
fn safe_text(data: &[u8]) {
    let written = String::from_utf8_lossy(data);
    let shown = text::visible_text(&written);
    assert!(!text::has_invisible(&shown), "{shown:?}");
    let line = text::one_line(&written, 40);
    assert!(!line.contains('\n') && !text::has_invisible(&line), "{line:?}");
    text::visible(&written, 40);
    text::exact(&written);
    text::quoted(&written, 40);
    text::without_colors(&written);
    text::shell_quote(&written);
    text::escape_json(&written);
    text::mask(&written);
    text::looks_secret(&written);
}

/// What a server writes instead of one JSON message in a line.
fn json_repair(data: &[u8]) {
    repair::read(data);
    let (head, tail) = data.split_at(data.len() / 2);
    repair::id_of_cut_message(head, tail);
    repair::outline(head, tail);
    repair::is_deeper_than(data, 64);
    if let Ok(text) = str::from_utf8(data) {
        let fixed = text::fix_surrogates(text);
        assert!(serde_json::from_str::<Value>(text).is_err() || serde_json::from_str::<Value>(&fixed).is_ok());
    }
}

/// A file of every program that servers are imported from. The first byte chooses the program.
fn import(data: &[u8]) {
    let Some((dialect, text)) = data.split_first() else { return };
    let dialect = Dialect::ALL[usize::from(*dialect) % Dialect::ALL.len()];
    let text: Arc<str> = String::from_utf8_lossy(text).into();
    let folders = [PathBuf::from("/fuzz")];
    let destination = Destination { scope: Scope::User, folders: &folders, project_only: false };
    let imported = interop::import(dialect, &[("/fuzz/file".into(), text.clone())], destination, &|_| None);
    // What is imported is a valid definition.
    let servers: Map<String, Value> =
        imported.servers.iter().map(|(name, entry)| (name.to_string(), entry.clone())).collect();
    let count = servers.len();
    let loaded = load(&json!({ "servers": servers, "inputs": imported.inputs }).to_string(), Scope::User);
    assert!(loaded.config.servers.len() <= count);
    interop::add_sidecar(dialect, &text, "mcp-sidecar", &["connect".to_owned()]).ok();
    interop::remove_sidecar(dialect, &text).ok();
}

/// What the hook of an agent writes. The first byte chooses the agent. A rule that allows one command allows no other, and
/// a rule that allows every command allows only single lines.
fn hook(data: &[u8]) {
    let Some((agent, input)) = data.split_first() else { return };
    let agent = HookAgent::ALL[usize::from(*agent) % HookAgent::ALL.len()];
    let Some((question, answer)) = crate::cli::read_any_hook(agent, input, &HookAnswer::Deny("no".to_owned())) else {
        return;
    };
    serde_json::from_str::<Value>(&answer).expect("the answer is JSON");
    let action = AgentAction::new(agent, &question.tool, question.arguments, &question.folder);
    let is_allowed = |level: Value| {
        let config = json!({ "agentTools": { "*": { "*": level } } });
        let rules = Rules::new(&load(&config.to_string(), Scope::User).config, &SessionLevels::default(), &[]);
        rules.rule_action(&action).is_some_and(|ruling| ruling.level.widens())
    };
    let one = json!([{ "when": { "command": { "in": ["git status"] } }, "level": "allow-session" }, "deny"]);
    if let ActionKind::Shell { text, .. } = &action.kind {
        assert!(!is_allowed(one) || text == "git status", "{text:?}");
        assert!(!is_allowed(json!("allow-always")) || !text.contains(['\n', '\r', '\0']), "{text:?}");
    }
    assert!(action.target().is_none_or(|target| !target.contains('\n')));
}

fn split_text(data: &[u8]) -> (String, String) {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(0);
    let (name, rest) = data.split_at(at);
    let rest = rest.strip_prefix(b"\0").unwrap_or(rest);
    (String::from_utf8_lossy(name).into_owned(), String::from_utf8_lossy(rest).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_survives_its_corpus() {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        for (name, run) in TARGETS {
            let files = std::fs::read_dir(corpus.join(name)).unwrap_or_else(|_| panic!("{name} has no corpus"));
            let mut count = 0;
            for file in files {
                let path = file.unwrap().path();
                let data = std::fs::read(&path).unwrap();
                let result = std::panic::catch_unwind(|| run(&data));
                assert!(result.is_ok(), "{}", path.display());
                count += 1;
            }
            assert!(count > 0, "the corpus of {name} is empty");
        }
    }

    /// The inputs of a fuzzer are short. A text that is nested without end must neither exhaust the stack of a thread of the
    /// runtime nor take long.
    #[test]
    fn every_target_survives_endless_nesting() {
        const STACK: usize = 2 << 20;
        let tokens = "${ ${A:- \"${ { {a, [ [! ( $( ` ' \\ %25 {\"a\": [a. a. ?*/ <<a - sudo_ env_eval_ A=1_ if_";
        for token in tokens.split(' ') {
            let text = token.replace('_', " ").repeat(5_000);
            let server = json!({ "command": text, "cwd": text, "env": { "A": text }, "dev": { "watch": [text] } });
            let tools = json!({ text.clone(): "deny", format!("resource:{text}"): "deny" });
            let servers =
                json!({ "a": server, "b": { "url": text }, "c": { "command": "x", "args": [text], "tools": tools } });
            let config = json!({ "servers": servers.clone(), "mcpServers": servers }).to_string();
            let hook =
                json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": { "command": text } });
            let rules = format!("{config}\0{text}\0{{\"a\":\"b\"}}");
            // The first byte chooses an agent, or a program to import from.
            let chosen = (0..16).map(|first| (first, &text)).chain([(0, &config), (1, &config)]);
            let mut inputs: Vec<Vec<u8>> = chosen.map(|(first, text)| [&[first], text.as_bytes()].concat()).collect();
            inputs.extend([text.clone(), config.clone(), rules, format!("\0{hook}")].map(String::into_bytes));
            let run = move || {
                for (name, run) in TARGETS {
                    let skipped = if *name == "import" { 0 } else { 16 };
                    inputs.iter().skip(skipped).for_each(|input| run(input));
                }
            };
            let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap();
            assert!(thread.join().is_ok(), "{token}");
        }
    }
}
