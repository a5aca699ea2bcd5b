mod fake;
mod model;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::config::Launch;
use crate::config::spec::{Input, InputKind};
use crate::model::{CallResult, Result, Scope, Status};
use crate::server::connection::CallOptions;
use crate::server::transport::OpenError;
use crate::server::{Context, Server};
use fake::{Fake, FakeHost, Outcome, call, definition, start, start_with};

fn refused() -> Outcome {
    Outcome::Error(OpenError::Io { message: "connection refused 127.0.0.1:9".to_owned() })
}

fn names(state: &crate::model::ServerState) -> Vec<String> {
    state.tools.iter().map(|tool| tool.name.to_string()).collect()
}

async fn run(server: &Server, tool: &str) -> Result<CallResult> {
    let options = CallOptions {
        timeout: Duration::from_secs(60),
        max_timeout: Duration::from_secs(600),
        progress: None,
        sent: Default::default(),
        connection: None,
        as_task: false,
    };
    server.call(call(tool), options).await
}

#[tokio::test(start_paused = true)]
async fn a_server_starts_completes_the_handshake_lists_and_is_connected() {
    let mut fixture = start([Outcome::Server(Fake::with(&["read", "write"]))]);
    assert_eq!(fixture.until_status("pending").await.status.reason().unwrap(), "starting");
    let state = fixture.until_status("connected").await;
    assert_eq!(state.peer.as_ref().unwrap().name, "fake");
    assert_eq!(names(&state), ["read", "write"]);
    assert!(state.start_time.is_some() && state.discover_time.is_some());
    assert!(!run(&fixture.server, "read").await.unwrap().is_error);
    assert!(fixture.until(|state| state.latency.is_some()).await.error.is_none());
    fixture.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_delays_up_to_five_times() {
    let mut fixture = start([refused()]);
    let started = Instant::now();
    let state = fixture.until(|state| state.status == Status::Failed).await;
    let took = started.elapsed().as_secs_f64();
    assert!((12.0..=15.1).contains(&took), "1 + 2 + 4 + 8 s less the jitter, but {took}");
    assert_eq!(fixture.attempts(), 5);
    assert_eq!(state.restarts, 4);
    insta::assert_snapshot!(state.error.as_ref().unwrap(), @"connection refused 127.0.0.1:9 (failed 5 times in a row; restart the server to try again)");
    let error = run(&fixture.server, "read").await.unwrap_err();
    assert_eq!(error.kind(), "process-failed");

    let settled = fixture.server.restart().await.unwrap();
    assert_eq!((settled.status, fixture.attempts()), (Status::Failed, 10), "a manual restart resets the count");
}

#[tokio::test(start_paused = true)]
async fn a_start_without_an_answer_times_out_and_names_the_request() {
    let mut fixture = start([Outcome::NoAnswer]);
    let state = fixture.until(|state| state.error.is_some()).await;
    insta::assert_snapshot!(state.error.as_ref().unwrap(), @"the server did not answer `initialize` within 30 s (`startupTimeout` sets this limit)");
    assert!(state.status.reason().unwrap().starts_with("retrying in"));
}

#[tokio::test(start_paused = true)]
async fn two_missed_pings_restart_a_server() {
    let deaf = Fake { ignores_pings: true, ..Fake::with(&[]) };
    let mut fixture = start([Outcome::Server(deaf), Outcome::Server(Fake::default())]);
    fixture.until_status("connected").await;
    let state = fixture.until(|state| state.error.is_some()).await;
    assert_eq!(state.error.as_ref().unwrap().message, "the server did not answer two pings in a row");
    assert_eq!(fixture.until_status("connected").await.restarts, 1);
}

#[tokio::test(start_paused = true)]
async fn missed_pings_are_detected_with_a_short_interval() {
    let deaf = Fake { ignores_pings: true, ..Fake::with(&[]) };
    let outcomes = [Outcome::Server(deaf), Outcome::Server(Fake::default())];
    let mut fixture = start_with(definition(|_| ()), outcomes, |context| {
        let mut settings = crate::settings::Settings::default();
        settings.servers.ping_interval = Duration::from_secs(1);
        context.settings = tokio::sync::watch::channel(Arc::new(settings)).1;
    });
    fixture.until_status("connected").await;
    let started = Instant::now();
    let state = fixture.until(|state| state.error.is_some()).await;
    assert_eq!(state.error.as_ref().unwrap().message, "the server did not answer two pings in a row");
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_works_on_a_call_is_not_pinged() {
    let busy = Fake { ignores_pings: true, ..Fake::with(&["hang"]) };
    let mut fixture = start([Outcome::Server(busy)]);
    fixture.until_status("connected").await;
    let options = CallOptions {
        timeout: Duration::from_secs(300),
        max_timeout: Duration::from_secs(300),
        progress: None,
        sent: Default::default(),
        connection: None,
        as_task: false,
    };
    let error = fixture.server.call(call("hang"), options).await.unwrap_err();
    assert_eq!(error.kind(), "timeout");
    assert_eq!(fixture.server.state().status, Status::Connected);
}

#[tokio::test(start_paused = true)]
async fn a_lazy_server_sleeps_until_its_first_use() {
    let lazy = definition(|spec| spec.auto_start = false);
    let mut fixture = start_with(lazy, [Outcome::Server(Fake::with(&["read"]))], |_| ());
    fixture.until_status("stopped").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(fixture.attempts(), 0);
    run(&fixture.server, "read").await.unwrap();
    assert_eq!(fixture.attempts(), 1);
    fixture.server.stop().await.unwrap();
    let error = run(&fixture.server, "read").await.unwrap_err();
    assert_eq!(error.to_string(), "server `it`: the server is stopped; start it first");
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_falls_asleep_and_its_next_call_starts_it() {
    let idle = definition(|spec| spec.idle_timeout = Some(Duration::from_secs(60)));
    let mut fixture = start_with(idle, [Outcome::Server(Fake::with(&["read", "hang"]))], |_| ());
    fixture.until_status("connected").await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    run(&fixture.server, "read").await.unwrap();
    let used = Instant::now();
    let state = fixture.until_status("stopped").await;
    assert_eq!(used.elapsed().as_secs(), 60);
    assert!(fixture.server.is_asleep());
    assert_eq!((names(&state).len(), state.pid), (2, None), "its tools stay");
    run(&fixture.server, "read").await.unwrap();
    assert_eq!(fixture.attempts(), 2);

    let options = CallOptions {
        timeout: Duration::from_secs(300),
        max_timeout: Duration::from_secs(300),
        ..CallOptions::default()
    };
    let error = fixture.server.call(call("hang"), options).await.unwrap_err();
    assert_eq!(error.kind(), "timeout", "a server does not fall asleep during a call");
    assert_eq!(fixture.attempts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lazy_server_shows_the_tools_that_it_had() {
    let mut context: Option<Context> = None;
    let fake = || [Outcome::Server(Fake::with(&["read"]))];
    let mut first = start_with(definition(|_| ()), fake(), |given| context = Some(given.clone()));
    first.until_status("connected").await;
    let cache = context.unwrap().cache;
    let lazy = definition(|spec| spec.auto_start = false);
    let mut second = start_with(lazy, fake(), |given| given.cache = cache);
    assert_eq!(names(&*second.until_status("stopped").await), ["read"]);
}

#[tokio::test(start_paused = true)]
async fn changed_lists_are_reloaded_and_frequent_changes_are_throttled() {
    let storm = vec![json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }); 1_000];
    let fake = Fake { sends: storm, ..Fake::with(&["old"]) };
    let (tools, list_count) = (fake.tools.clone(), fake.list_count.clone());
    let mut fixture = start([Outcome::Server(fake)]);
    fixture.until_status("connected").await;
    *tools.lock().unwrap() = vec!["new"];
    fixture.until(|state| names(state) == ["new"]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(list_count.load(Ordering::SeqCst) < 10);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_reloaded_stays_with_a_warning() {
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let fake = Fake { sends: vec![changed], refuses_second_list: true, ..Fake::with(&["old"]) };
    let mut fixture = start([Outcome::Server(fake)]);
    let state = fixture.until(|state| !state.warnings.is_empty()).await;
    assert_eq!(names(&state), ["old"]);
    assert_eq!(state.warnings, ["`tools/list` failed: no (error -32603)"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_server_dies_ends_at_once() {
    let mut fixture = start([Outcome::Server(Fake::with(&["die"]))]);
    fixture.until_status("connected").await;
    let started = Instant::now();
    let error = run(&fixture.server, "die").await.unwrap_err();
    assert_eq!(error.kind(), "connection-failed");
    assert!(started.elapsed() < Duration::from_secs(1));
    fixture.until_status("pending").await;
    fixture.until_status("connected").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_right_after_the_start_is_not_restarted_forever() {
    let weak = Fake { hangs_up: true, ..Fake::with(&[]) };
    let mut fixture = start([Outcome::Server(weak)]);
    fixture.until_status("failed").await;
    assert_eq!(fixture.attempts(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_requires_sign_in_is_not_retried() {
    let auth = Outcome::Error(OpenError::NeedsAuth);
    let mut fixture = start([auth, Outcome::Server(Fake::default())]);
    fixture.until_status("needs-auth").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(fixture.attempts(), 1);
    assert_eq!(run(&fixture.server, "read").await.unwrap_err().kind(), "needs-auth");
    assert_eq!(fixture.server.restart().await.unwrap().status, Status::Connected);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    let busy = OpenError::RetryAfter { after: Duration::from_secs(30), message: "429 too many requests".to_owned() };
    let mut fixture = start([Outcome::Error(busy), Outcome::Server(Fake::default())]);
    let started = Instant::now();
    let state = fixture.until(|state| state.error.is_some()).await;
    assert_eq!(state.status.reason().unwrap(), "retrying in 30 s");
    fixture.until_status("connected").await;
    assert!(started.elapsed() >= Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn an_unset_variable_fails_by_name_and_nothing_is_started() {
    let unset = definition(|spec| {
        if let Launch::Stdio(stdio) = &mut spec.launch {
            stdio.args = vec!["${NO_SUCH_VARIABLE_HERE}".to_owned()];
        }
    });
    let mut fixture = start_with(unset, [Outcome::NoAnswer], |_| ());
    let state = fixture.until_status("failed").await;
    assert!(state.error.as_ref().unwrap().message.contains("`NO_SUCH_VARIABLE_HERE` is not set"));
    assert_eq!(fixture.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_input_does_not_count_towards_the_startup_timeout() {
    let asks = || {
        definition(|spec| {
            if let Launch::Stdio(stdio) = &mut spec.launch {
                stdio.args = vec!["${input:key}".to_owned()];
            }
        })
    };
    let input = Input {
        id: "key".to_owned(),
        kind: InputKind::Prompt,
        description: String::new(),
        default: None,
        password: true,
        scope: Scope::User,
        file: None,
    };
    let with = |answer| {
        let inputs = Arc::new(vec![input.clone()]);
        move |context: &mut Context| {
            context.inputs = inputs;
            context.host = Arc::new(FakeHost { answer });
        }
    };
    let mut answered = start_with(asks(), [Outcome::Server(Fake::default())], with(Some("secret")));
    answered.until(|state| state.status.reason().as_deref() == Some("awaiting-input")).await;
    answered.until_status("connected").await;

    let mut declined = start_with(asks(), [Outcome::NoAnswer], with(None));
    let state = declined.until_status("failed").await;
    insta::assert_snapshot!(state.error.as_ref().unwrap(), @"the input `key` has no value; restart the server to be asked again");
    assert_eq!(declined.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_fallback_is_tried_when_the_launch_fails() {
    let two_ways = || definition(|spec| spec.fallback = Some(Launch::Tcp { host: "127.0.0.1".to_owned(), port: 9 }));
    let mut fixture = start_with(two_ways(), [refused(), Outcome::Server(Fake::default())], |_| ());
    let state = fixture.until_status("connected").await;
    insta::assert_snapshot!(state.warnings[0], @"connected through the fallback (tcp) because of: connection refused 127.0.0.1:9");
    assert_eq!(*fixture.connector.attempts.lock().unwrap(), ["stdio", "tcp"]);

    let mut fixture = start_with(two_ways(), [refused()], |_| ());
    let state = fixture.until(|state| state.error.is_some()).await;
    insta::assert_snapshot!(state.error.as_ref().unwrap(), @"connection refused 127.0.0.1:9; the fallback (tcp) failed, too: connection refused 127.0.0.1:9");
}

#[tokio::test(start_paused = true)]
async fn a_start_can_be_interrupted_by_stop_and_restart() {
    let fixture = start([Outcome::NoAnswer, Outcome::NoAnswer, Outcome::Server(Fake::default())]);
    while fixture.attempts() < 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.server.stop().await.unwrap().status, Status::Stopped);
    let server = fixture.server.clone();
    let starting = tokio::spawn(async move { server.start().await });
    while fixture.attempts() < 2 {
        tokio::task::yield_now().await;
    }
    let started = Instant::now();
    assert_eq!(fixture.server.restart().await.unwrap().status, Status::Connected);
    assert_eq!(starting.await.unwrap().unwrap().status, Status::Connected);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_disabled_server_does_nothing_and_says_so() {
    let off = definition(|spec| spec.enabled = false);
    let mut fixture = start_with(off, [Outcome::NoAnswer], |_| ());
    fixture.until_status("disabled").await;
    assert_eq!(fixture.server.start().await.unwrap_err().kind(), "disabled");
    assert_eq!(run(&fixture.server, "read").await.unwrap_err().kind(), "disabled");
    assert_eq!(fixture.attempts(), 0);
    fixture.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_end_when_the_server_is_stopped() {
    let mut fixture = start([Outcome::Server(Fake::with(&["hang"]))]);
    fixture.until_status("connected").await;
    let server = fixture.server.clone();
    let hanging = tokio::spawn(async move { run(&server, "hang").await });
    tokio::task::yield_now().await;
    fixture.server.stop().await.unwrap();
    let error = hanging.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "server `it`: the server was stopped or restarted during the request");
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_say_what_may_have_happened_when_the_server_leaves_the_config() {
    let mut fixture = start([Outcome::Server(Fake::with(&["hang"]))]);
    fixture.until_status("connected").await;
    let server = fixture.server.clone();
    let hanging = tokio::spawn(async move { run(&server, "hang").await });
    tokio::task::yield_now().await;
    fixture.server.shutdown().await;
    let error = hanging.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("was removed or changed; a call that was running may have been executed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_server_stops_when_its_last_handle_is_dropped() {
    let mut fixture = start([Outcome::Server(Fake::default())]);
    fixture.until_status("connected").await;
    let fake::TestServer { server, mut events, .. } = fixture;
    drop(server);
    let mut last = None;
    while let Some((_, _, event)) = events.recv().await {
        if let crate::server::Event::State(state) = event {
            last = Some(state.status);
        }
    }
    assert_eq!(last, Some(Status::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_trial_is_one_attempt_even_of_a_disabled_server() {
    let off = || definition(|spec| spec.enabled = false);
    for (outcomes, status) in [(refused(), Status::Failed), (Outcome::Server(Fake::with(&["read"])), Status::Connected)]
    {
        let mut context = None;
        let fixture = start_with(off(), [outcomes], |given| context = Some(given.clone()));
        let trusted = fixture.server.trusted().clone();
        let state = Server::trial(trusted, context.unwrap()).await;
        assert_eq!((state.status, fixture.attempts()), (status, 1));
        assert_eq!(state.error.is_some(), status == Status::Failed);
    }
}
