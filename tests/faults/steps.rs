//! The steps of a case. Each is an object; the key that names it is one of those in [`run`].

use std::time::{Duration, Instant};

use mcp_sidecar::lsp_client::CommandError;
use mcp_sidecar::protocol::commands::{ApprovalResolve, Approvals, Servers};
use serde_json::{Value, json};

use crate::pattern::{fill, matches};
use crate::stage::Stage;
use crate::support::bad_client::{Framing, Step};
use crate::support::commands::{self, name};
use crate::support::uri;

type Outcome = Result<(), String>;

/// How long a state may take to arrive, if the step does not say `within`.
const PATIENCE: f64 = 40.0;

pub async fn run(stage: &mut Stage, step: &Value) -> Outcome {
    let step = &fill(step, &stage.variables());
    let has = |key: &str| step.get(key).is_some();
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    match () {
        () if has("status") => {
            let server = text("status").to_owned();
            until(stage, "mcp.servers", json!({ "server": server }), &json!({ "servers": [step["is"]] }), step).await
        }
        () if has("call") => call(stage, step).await,
        () if has("calls") => calls(stage, step).await,
        () if has("answer") => {
            let response = stage.answers.remove(text("answer")).ok_or("no such call")?;
            let answer = stage.editor().answer(response).await;
            check(answer, step)
        }
        () if has("command") && has("until") => {
            until(stage, text("command"), step["arguments"].clone(), &step["until"], step).await
        }
        () if has("command") => {
            let answer = stage.editor().raw_command(text("command"), object(&step["arguments"])).await;
            check(answer, step)
        }
        () if has("question") => question(stage, step).await,
        () if has("trust") => trust(stage, text("trust")).await,
        () if has("save") => {
            stage.save_user_config(step["save"].as_object().unwrap());
            Ok(())
        }
        () if has("savefile") => {
            let text = std::fs::read_to_string(text("savefile")).unwrap();
            stage.save_user_config(&serde_json::from_str(&text).unwrap());
            Ok(())
        }
        () if has("write") => std::fs::write(text("write"), bytes(step)).map_err(|error| error.to_string()),
        () if has("problems") => {
            let wanted = uri(text("problems").as_ref());
            let is = |params: &Value| params["uri"] == wanted && matches(&step["are"], &params["diagnostics"]);
            stage.editor().notification_where("textDocument/publishDiagnostics", is).await;
            Ok(())
        }
        () if has("sh") => match stage.shell(text("sh")).await {
            (Some(0), output) if !has("prints") || matches(&step["prints"], &json!(output)) => Ok(()),
            (code, output) => Err(format!("exit code {code:?}: {output}")),
        },
        () if has("absent") => match std::fs::exists(text("absent")) {
            Ok(false) => Ok(()),
            other => Err(format!("the file should not be there: {other:?}")),
        },
        () if has("gone") => crate::watcher::nothing_left(text("gone").as_ref()).await,
        () if has("agent") => peer(stage, text("agent"), Framing::Lines, step).await,
        () if has("editor") => peer(stage, text("editor"), Framing::Lsp, step).await,
        () if has("remember") => {
            let pid = pid(stage, text("remember")).await?;
            stage.remembered.insert(text("remember").to_owned(), pid);
            Ok(())
        }
        () if has("same") => {
            let (now, then) = (pid(stage, text("same")).await?, stage.remembered.get(text("same")));
            if Some(&now) == then { Ok(()) } else { Err(format!("the process {then:?} became {now}")) }
        }
        () if has("reopen") => {
            if let Some(mut lost) = stage.editor.take() {
                lost.hung_up().await;
            }
            stage.reopen().await;
            Ok(())
        }
        () => Err(format!("no step has these keys: {step}")),
    }
}

fn object(value: &Value) -> Value {
    if value.is_null() { json!({}) } else { value.clone() }
}

/// Compares an answer with `is`, or an error with `error`.
fn check(answer: Result<Value, CommandError>, step: &Value) -> Outcome {
    match answer {
        Ok(answer) if step.get("error").is_some() => Err(format!("an error was expected: {answer:#}")),
        Ok(answer) => {
            let texts = answer["content"]
                .as_array()
                .map(|blocks| blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"));
            let fits = step.get("is").is_none_or(|is| matches(is, &answer))
                && step.get("text").is_none_or(|text| matches(text, &json!(texts)));
            if fits { Ok(()) } else { Err(format!("{answer:#}")) }
        }
        Err(error) => {
            let kind = error.kind().map(|kind| json!(kind));
            let error = json!({ "message": error.message, "kind": kind });
            if step.get("error").is_some_and(|wanted| matches(wanted, &error)) {
                Ok(())
            } else {
                Err(format!("{error:#}"))
            }
        }
    }
}

/// Repeats a command that only reads until its answer fits.
async fn until(stage: &mut Stage, command: &str, arguments: Value, wanted: &Value, step: &Value) -> Outcome {
    let end = Instant::now() + Duration::from_secs_f64(step["within"].as_f64().unwrap_or(PATIENCE));
    loop {
        let answer = stage.editor().raw_command(command, object(&arguments)).await;
        match answer {
            Ok(answer) if matches(wanted, &answer) => return Ok(()),
            _ if Instant::now() < end => tokio::time::sleep(Duration::from_millis(25)).await,
            Ok(answer) => return Err(format!("waited in vain; it is {answer:#}")),
            Err(error) => return Err(format!("waited in vain: {error}")),
        }
    }
}

/// Calls `server/tool`: `times` at once, at most `under` milliseconds each, or only started under the label `start`.
async fn call(stage: &mut Stage, step: &Value) -> Outcome {
    let (server, tool) = step["call"].as_str().unwrap().split_once('/').unwrap();
    let mut arguments = json!({ "tool": format!("mcp__{server}__{tool}"), "arguments": object(&step["arguments"]) });
    if let Some(bytes) = step["bytes"].as_u64() {
        arguments["arguments"]["text"] = json!("x".repeat(usize::try_from(bytes).unwrap()));
    }
    if let Some(limit) = step.get("timeoutMs") {
        arguments["timeoutMs"] = limit.clone();
    }
    let params = json!({ "command": "mcp.tool.call", "arguments": [arguments] });
    if let Some(label) = step["start"].as_str() {
        let response = stage.editor().client.send_request("workspace/executeCommand", &params);
        stage.answers.insert(label.to_owned(), response);
        return Ok(());
    }
    let began = Instant::now();
    let times = step["times"].as_u64().unwrap_or(1);
    let calls: Vec<_> =
        (0..times).map(|_| stage.editor().client.send_request("workspace/executeCommand", &params)).collect();
    for call in calls {
        let answer = stage.editor().answer(call).await;
        check(answer, step)?;
    }
    match step["under"].as_u64() {
        Some(limit) if began.elapsed() > Duration::from_millis(limit) => Err(format!("took {:?}", began.elapsed())),
        _ => Ok(()),
    }
}

/// Calls one after the other until one of them fits: `until` is a text, or the pattern of an error.
async fn calls(stage: &mut Stage, step: &Value) -> Outcome {
    let mut single = step.clone();
    single["call"] = step["calls"].clone();
    single["times"] = json!(1);
    single[if step["until"].is_string() { "text" } else { "error" }] = step["until"].clone();
    let mut last = Err("`times` is missing".to_owned());
    for _ in 0..step["times"].as_u64().unwrap_or(0) {
        last = call(stage, &single).await;
        if last.is_ok() {
            return last;
        }
    }
    last
}

/// Waits for a question that fits, and answers it with `decide`.
async fn question(stage: &mut Stage, step: &Value) -> Outcome {
    let end = Instant::now() + Duration::from_secs_f64(step["within"].as_f64().unwrap_or(PATIENCE));
    let found = loop {
        let open = stage.editor().call(Approvals::default()).await.map_err(|error| error.to_string())?;
        match open.approvals.iter().find(|each| matches(&step["question"], &json!(each))) {
            Some(found) => break found.clone(),
            None if Instant::now() < end => tokio::time::sleep(Duration::from_millis(25)).await,
            None => return Err(format!("no such question: {open:#?}")),
        }
    };
    let Some(decision) = step["decide"].as_str() else { return Ok(()) };
    let answer = stage.editor().call(ApprovalResolve::one(&found.id, decision)).await;
    answer.map(|_| ()).map_err(|error| error.to_string())
}

async fn trust(stage: &mut Stage, server: &str) -> Outcome {
    let wanted = json!({ "status": server, "is": { "trustDigest": "~" } });
    Box::pin(run(stage, &wanted)).await?;
    let listed = stage.editor().call(Servers { server: Some(name(server)) }).await.unwrap();
    let answer = stage.editor().call(commands::trust(&listed.servers[0])).await;
    answer.map(|_| ()).map_err(|error| error.to_string())
}

async fn pid(stage: &mut Stage, process: &str) -> Result<u32, String> {
    if process == "engine" {
        return stage.engine().ok_or_else(|| "there is no engine".to_owned());
    }
    let listed = stage.editor().call(Servers { server: Some(name(process)) }).await;
    let listed = listed.map_err(|error| error.to_string())?;
    listed.servers[0].pid.ok_or_else(|| format!("the server `{process}` has no process"))
}

/// The bytes of a step: `text`, `json`, `hex`, or `text` as UTF-16 or many times.
fn bytes(step: &Value) -> Vec<u8> {
    let text = match (step.get("text"), step.get("json")) {
        (Some(text), _) => text.as_str().unwrap().to_owned(),
        (None, Some(json)) => format!("{json:#}"),
        (None, None) => String::new(),
    };
    let mut bytes = match step["hex"].as_str() {
        Some(hex) => hex
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect(),
        None if step["utf16"] == true => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        None => text.into_bytes(),
    };
    if let Some(times) = step["times"].as_u64() {
        bytes = bytes.repeat(usize::try_from(times).unwrap());
    }
    bytes
}

/// What a bad editor or agent does, one `do` after the other.
async fn peer(stage: &mut Stage, name: &str, framing: Framing, step: &Value) -> Outcome {
    let greets = step["greets"] != false;
    let peer = stage.peer(name, framing, greets).await;
    for act in step["do"].as_array().into_iter().flatten() {
        let number = |key: &str| act[key].as_i64();
        if act == "kill" {
            peer.process.kill().await.map_err(|error| error.to_string())?;
        } else if act == "close" {
            peer.client.run(&[Step::CloseInput]).await;
        } else if act == "hung-up" {
            peer.client.run(&[Step::HungUp]).await;
        } else if let Some(file) = act["file"].as_str() {
            peer.client.run(&[Step::Raw(std::fs::read(file).unwrap())]).await;
        } else if let Some(message) = act.get("send") {
            peer.client.run(&[Step::Send(message.clone())]).await;
        } else if act.get("raw").is_some() {
            let raw = bytes(&json!({ "text": act["raw"], "times": act["times"], "hex": act["hex"] }));
            peer.client.run(&[Step::Raw(raw)]).await;
        } else if let Some(request) = act.get("flood") {
            let mut request = request.clone();
            if let Some(size) = number("bytes") {
                request["params"]["arguments"]["text"] = json!("x".repeat(usize::try_from(size).unwrap()));
            }
            let (first, count) = (number("first").unwrap_or(1), number("times").unwrap_or(1));
            peer.client.run(&[Step::Flood { request, first, count }]).await;
        } else if let Some(count) = number("responses") {
            peer.client.responses.clear();
            peer.client.run(&[Step::Responses(usize::try_from(count).unwrap())]).await;
            let responses = json!(peer.client.responses);
            if act.get("are").is_some_and(|are| !matches(are, &responses)) {
                return Err(format!("{responses:#}"));
            }
        } else if let Some(wanted) = number("exits") {
            let ended = tokio::time::timeout(Duration::from_secs(60), peer.process.wait()).await;
            let code = ended.map_err(|_| "it did not end")?.unwrap().code();
            if code != i32::try_from(wanted).ok() {
                return Err(format!("exit code {code:?}"));
            }
        } else {
            return Err(format!("a client cannot do this: {act}"));
        }
    }
    Ok(())
}
