//! `mcp-sidecar auth`: signs in at a server in the browser, or out again.

use serde_json::{Value, json};

use super::context::Context;
use super::live::{self, Wake};
use super::{Status, print};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// A server behind HTTP that wants to know who you are
    server: String,
    /// Forget the sign-in in place of making one
    #[arg(long)]
    sign_out: bool,
    /// For programs: what `mcp.server.auth` answers
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        let Arguments { server, sign_out, json } = arguments;
        // Whoever sits here can open the page, where there is no editor for it.
        let _attending = live.attend();
        if !sign_out && !live.is_shared() {
            // It has to be known where the server is; a failure of the start is what the sign-in mends.
            live.run("mcp.server.start", json!({ "server": server })).await.ok();
        }
        let answer = live.run("mcp.server.auth", json!({ "server": server, "signOut": sign_out })).await?;
        if json {
            print(&format!("{answer:#}\n"))?;
            return Ok(Status::Ok);
        }
        let status = answer.pointer("/server/status").and_then(Value::as_str).unwrap_or_default();
        let done = if sign_out { "signed out of" } else { "signed in at" };
        print(&format!("{done} {server}: it is {status} now\n"))?;
        Ok(Status::Ok)
    })
}
