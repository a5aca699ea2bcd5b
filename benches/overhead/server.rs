//! The server that every route leads to. It is as fast as possible.

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
    let tools: Vec<Value> = ["echo".to_owned(), "big".to_owned()]
        .into_iter()
        .chain((2..tools).map(|number| format!("tool_{number}")))
        .map(|name| json!({ "name": name, "description": "one of many", "inputSchema": schema }))
        .collect();
    let tools = json!({ "tools": tools }).to_string();
    let content = |text: String| json!({ "content": [{ "type": "text", "text": text }] }).to_string();
    let small = content("x".repeat(100));
    let mut large = String::new();
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
                if call.name == "big" {
                    if large.is_empty() {
                        large = content("y".repeat(1 << 20));
                    }
                    large.as_str()
                } else {
                    small.as_str()
                }
            }
            _ => "{}",
        };
        output.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", id.get()).as_bytes())?;
        output.flush()?;
    }
    Ok(())
}
