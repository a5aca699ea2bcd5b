//! `mcp-sidecar auth`: signs in to a server in the browser, or signs out.
//!
//! The browser may run on another machine, as with SSH. Then it cannot reach the address that the issuer sends it to, and the
//! user pastes that address here.

use std::time::Duration;

use url::Url;

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::terminal::{self, Echo};
use super::{Status, complete, print, print_json};
use crate::model::ServerName;
use crate::protocol::commands::{ServerAuth, ServerStart};
use crate::server::oauth::CALLBACK_PATH;
use crate::server::transport::net::{is_loopback, ready_tls};

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
                error = pasted() => return Err(error.into()),
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
async fn pasted() -> std::io::Error {
    let hint =
        "if your browser is on another machine, it cannot load the last page: paste the address of that page here\n";
    let mut prompt = hint;
    loop {
        match terminal::ask(prompt, Echo::On).await {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(Some(line)) => {
                if let Err(why) = deliver(line.trim()).await {
                    terminal::eprint(&format!("{why}; paste the whole address of the last page\n")).ok();
                }
            }
            Ok(None) => std::future::pending().await,
            Err(error) => return error,
        }
        prompt = "";
    }
}

/// Loads the page as the browser would. The engine waits for it on this machine, and checks whether it is the right one.
async fn deliver(address: &str) -> Result<(), String> {
    let url = Url::parse(address).map_err(|_| "this is not an address".to_owned())?;
    let is_ours = url.scheme() == "http" && url.host_str().is_some_and(is_loopback) && url.path() == CALLBACK_PATH;
    if !is_ours {
        return Err(format!("this is not the last page, which begins with `http://127.0.0.1` and `{CALLBACK_PATH}`"));
    }
    ready_tls();
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build();
    let sent = client.map_err(|error| error.to_string())?.get(url).send().await;
    match sent {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(_) => Err("this page does not belong to the current sign-in".to_owned()),
        Err(_) => Err("nothing waits for this page".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_last_page_of_a_sign_in_is_passed_on() {
        for (address, why) in [
            ("code-1", "not an address"),
            ("https://issuer.example/authorize?x=1", "not the last page"),
            ("http://127.0.0.1:1/other?code=1", "not the last page"),
            ("http://issuer.example/callback?code=1", "not the last page"),
            ("http://127.0.0.1:1/callback?code=1", "nothing waits"),
        ] {
            let refused = deliver(address).await.unwrap_err();
            assert!(refused.contains(why), "{address}: {refused}");
        }
    }
}
