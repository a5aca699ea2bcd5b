//! The server that every route leads to. It is as fast as possible.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The first argument of this program when it is the server. The second one is the number of tools.
pub const SERVE: &str = "--be-the-server";

#[derive(Deserialize)]
struct Request<'text> {
    #[serde(borrow)]
    id: Option<&'text RawValue>,
    method: String,
    #[serde(borrow)]
    params: Option<&'text RawValue>,
}

#[derive(Deserialize)]
struct CallParams {
    name: String,
}

/// Serves until the input ends.
pub fn serve(tools: usize) -> io::Result<()> {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let tools: Vec<Value> = ["echo", "big", "code", "records"]
        .map(str::to_owned)
        .into_iter()
        .chain((2..).map(|number| format!("tool_{number}")))
        .take(tools)
        .map(|name| json!({ "name": name, "description": "one of many", "inputSchema": schema }))
        .collect();
    let tools = json!({ "tools": tools }).to_string();
    let small = text_result("x".repeat(100)).to_string();
    let mut large = BTreeMap::new();
    let greeting = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "bench", "version": "1" },
    })
    .to_string();
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let request: Request = serde_json::from_str(&line)?;
        let Some(id) = request.id else { continue };
        let result = match request.method.as_str() {
            "initialize" => greeting.as_str(),
            "tools/list" => tools.as_str(),
            "tools/call" => {
                let params = request.params.map(RawValue::get).unwrap_or("{}");
                let call: CallParams = serde_json::from_str(params)?;
                match call.name.as_str() {
                    "big" | "code" | "records" => {
                        let make = || large_result(&call.name).to_string();
                        large.entry(call.name.clone()).or_insert_with(make).as_str()
                    }
                    _ => small.as_str(),
                }
            }
            _ => "{}",
        };
        output.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", id.get()).as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

fn text_result(text: String) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// About 1 MB: a text without escapes, source code, or records with their text beside them, as many tools return them.
fn large_result(tool: &str) -> Value {
    match tool {
        "code" => {
            let source = include_str!("server.rs");
            text_result(source.repeat((1 << 20) / source.len()))
        }
        "records" => {
            let record = |id: usize| json!({ "id": id, "path": format!("src/part_{id}.rs"), "open": id.is_multiple_of(2), "score": id as f64 / 7.0, "labels": ["bug", "good first issue"] });
            let records = json!({ "records": (0..4_500).map(record).collect::<Vec<_>>() });
            let mut result = text_result(records.to_string());
            if let Some(fields) = result.as_object_mut() {
                fields.insert("structuredContent".to_owned(), records);
            }
            result
        }
        _ => text_result("y".repeat(1 << 20)),
    }
}
