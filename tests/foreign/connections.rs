//! Our connections to servers, as the official suite judges them.

use futures::StreamExt;

use crate::suite::{Outcomes, Side, Suite};

/// Each scenario is two programs that mostly wait for each other.
const AT_ONCE: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn our_connections_pass_the_client_scenarios_of_the_official_suite() {
    let Some(suite) = Suite::find() else { return };
    plays(&suite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_connections_pass_the_client_scenarios_of_the_newer_era() {
    let Some(suite) = Suite::next() else { return };
    plays(&suite).await;
}

async fn plays(suite: &Suite) {
    let command = format!("{} conformance", env!("CARGO_BIN_EXE_mcp-sidecar"));
    let outcomes = play_each(suite, &command).await;
    suite.judge(Side::Client, &outcomes);
}

/// Plays every client scenario with the client that this command starts.
pub async fn play_each(suite: &Suite, command: &str) -> Outcomes {
    let played = suite.scenarios(Side::Client).await.into_iter().map(|scenario| async move {
        let outcome = suite.play(Side::Client, &scenario, &["--command", command]).await;
        (scenario, outcome)
    });
    futures::stream::iter(played).buffer_unordered(AT_ONCE).collect().await
}
