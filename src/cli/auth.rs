//! `mcp-sidecar auth`: signs in to a server in the browser, or signs out.

use serde_json::{Value, json};

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::{Status, print};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Server to sign in to
    server: String,
    /// Sign out instead
    #[arg(long)]
    sign_out: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Arguments { server, sign_out, json } = arguments;
        // The user can open the page, even without an editor.
        let _attached = engine.attach_terminal();
        if !sign_out && !engine.is_shared() {
            // The sign-in needs a server that was started once. That start fails until the user has signed in.
            engine.run("mcp.server.start", json!({ "server": server })).await.ok();
        }
        let answer = engine.run("mcp.server.auth", json!({ "server": server, "signOut": sign_out })).await?;
        if json {
            print(&format!("{answer:#}\n"))?;
            return Ok(Status::Ok);
        }
        let status = answer.pointer("/server/status").and_then(Value::as_str).unwrap_or_default();
        let done = if sign_out { "signed out of" } else { "signed in to" };
        print(&format!("{done} `{server}`; its status is {status}\n"))?;
        Ok(Status::Ok)
    })
}
