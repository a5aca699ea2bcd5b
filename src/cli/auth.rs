//! `mcp-sidecar auth`: signs in to a server in the browser, or signs out.
//!
//! The browser may run on another machine, as with SSH. Then it cannot reach the address that the issuer sends it to, and the
//! user pastes that address here.

use super::context::Context;
use super::engine_client::{self, Autostart, EngineClient};
use super::terminal::{self, Echo};
use super::{Status, complete, print, print_json};
use crate::model::ServerName;
use crate::protocol::commands::{ServerAuth, ServerAuthPaste, ServerStart};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Server to sign in to
    #[arg(add = complete::servers())]
    server: ServerName,
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
            engine.call(ServerStart { server: Some(server.clone()), all: false }).await.ok();
        }
        let done = engine.call(ServerAuth { server: server.clone(), sign_out });
        let answer = match !sign_out && terminal::is_interactive() {
            true => tokio::select! {
                answer = done => answer?,
                error = pasted(engine, &server) => return Err(error.into()),
            },
            false => done.await?,
        };
        if json {
            return print_json(&answer);
        }
        let done = if sign_out { "signed out of" } else { "signed in to" };
        print(&format!("{done} `{server}`; its status is {}\n", answer.server.status))?;
        Ok(Status::Ok)
    })
}

/// Passes on the addresses that the user pastes. Ends only if the terminal breaks.
async fn pasted(engine: &EngineClient, server: &ServerName) -> std::io::Error {
    let hint =
        "if your browser is on another machine, it cannot load the last page: paste the address of that page here\n";
    let mut prompt = hint;
    loop {
        match terminal::ask(prompt, Echo::On).await {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => {
                let address = line.trim().to_owned();
                if let Err(error) = engine.call(ServerAuthPaste { server: server.clone(), address }).await {
                    terminal::eprint(&format!("{error}\n")).ok();
                }
            }
            Ok(None) => std::future::pending().await,
            Err(error) => return error,
        }
        prompt = "";
    }
}
