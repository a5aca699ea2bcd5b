mod fake;

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
use fake::{Fake, Meets, Nobody, call, definition, stage, stage_with};

fn refused() -> Meets {
    Meets::Error(OpenError::Io { message: "connection refused 127.0.0.1:9".to_owned() })
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
    };
    server.call(call(tool), options).await
}

#[tokio::test(start_paused = true)]
async fn a_server_starts_shakes_hands_lists_and_is_connected() {
    let mut stage = stage([Meets::Server(Fake::with(&["read", "write"]))]);
    assert_eq!(stage.until_status("pending").await.status.reason().unwrap(), "starting");
    let state = stage.until_status("connected").await;
    assert_eq!(state.peer.as_ref().unwrap().name, "fake");
    assert_eq!(names(&state), ["read", "write"]);
    assert!(state.start_time.is_some() && state.discover_time.is_some());
    assert!(!run(&stage.server, "read").await.unwrap().is_error);
    assert!(stage.until(|state| state.latency.is_some()).await.error.is_none());
    stage.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_waits_and_end_after_five() {
    let mut stage = stage([refused()]);
    let begun = Instant::now();
    let state = stage.until(|state| state.status == Status::Failed).await;
    let took = begun.elapsed().as_secs_f64();
    assert!((12.0..=15.1).contains(&took), "1 + 2 + 4 + 8 s less the jitter, but {took}");
    assert_eq!(stage.tried(), 5);
    assert_eq!(state.restarts, 4);
    insta::assert_snapshot!(state.error.as_deref().unwrap(), @"connection refused 127.0.0.1:9 (5 failures in a row; restart it to try again)");
    let error = run(&stage.server, "read").await.unwrap_err();
    assert_eq!(error.kind(), "process-failed");

    let settled = stage.server.restart().await.unwrap();
    assert_eq!((settled.status, stage.tried()), (Status::Failed, 10), "by hand the count starts anew");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up_with_what_was_waited_for() {
    let mut stage = stage([Meets::Silence]);
    let state = stage.until(|state| state.error.is_some()).await;
    insta::assert_snapshot!(state.error.as_deref().unwrap(), @"no answer to initialize in 30 s (`startupTimeout` sets this limit)");
    assert!(state.status.reason().unwrap().starts_with("retrying in"));
}

#[tokio::test(start_paused = true)]
async fn two_missed_pings_restart_a_server() {
    let deaf = Fake { ignores_pings: true, ..Fake::with(&[]) };
    let mut stage = stage([Meets::Server(deaf), Meets::Server(Fake::default())]);
    stage.until_status("connected").await;
    let state = stage.until(|state| state.error.is_some()).await;
    assert_eq!(state.error.as_deref(), Some("it missed two pings in a row"));
    assert_eq!(stage.until_status("connected").await.restarts, 1);
}

#[tokio::test(start_paused = true)]
async fn pings_are_missed_however_short_the_time_between_them_is() {
    let deaf = Fake { ignores_pings: true, ..Fake::with(&[]) };
    let meets = [Meets::Server(deaf), Meets::Server(Fake::default())];
    let mut stage = stage_with(definition(|_| ()), meets, |context| {
        let mut settings = crate::settings::Settings::default();
        settings.servers.ping_interval = Duration::from_secs(1);
        context.settings = tokio::sync::watch::channel(Arc::new(settings)).1;
    });
    stage.until_status("connected").await;
    let begun = Instant::now();
    let state = stage.until(|state| state.error.is_some()).await;
    assert_eq!(state.error.as_deref(), Some("it missed two pings in a row"));
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_works_on_a_call_is_not_pinged_to_death() {
    let busy = Fake { ignores_pings: true, ..Fake::with(&["hang"]) };
    let mut stage = stage([Meets::Server(busy)]);
    stage.until_status("connected").await;
    let options = CallOptions {
        timeout: Duration::from_secs(300),
        max_timeout: Duration::from_secs(300),
        progress: None,
        sent: Default::default(),
    };
    let error = stage.server.call(call("hang"), options).await.unwrap_err();
    assert_eq!(error.kind(), "timeout");
    assert_eq!(stage.server.state().status, Status::Connected);
}

#[tokio::test(start_paused = true)]
async fn a_lazy_server_sleeps_until_its_first_use() {
    let lazy = definition(|spec| spec.auto_start = false);
    let mut stage = stage_with(lazy, [Meets::Server(Fake::with(&["read"]))], |_| ());
    stage.until_status("stopped").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(stage.tried(), 0);
    run(&stage.server, "read").await.unwrap();
    assert_eq!(stage.tried(), 1);
    stage.server.stop().await.unwrap();
    let error = run(&stage.server, "read").await.unwrap_err();
    assert_eq!(error.to_string(), "server `it`: it is stopped; `mcp.server.start` starts it");
}

#[tokio::test(start_paused = true)]
async fn a_lazy_server_shows_the_tools_that_it_had() {
    let mut context: Option<Context> = None;
    let fake = || [Meets::Server(Fake::with(&["read"]))];
    let mut first = stage_with(definition(|_| ()), fake(), |given| context = Some(given.clone()));
    first.until_status("connected").await;
    let memory = context.unwrap().memory;
    let lazy = definition(|spec| spec.auto_start = false);
    let mut second = stage_with(lazy, fake(), |given| given.memory = memory);
    assert_eq!(names(&*second.until_status("stopped").await), ["read"]);
}

#[tokio::test(start_paused = true)]
async fn changed_lists_are_listed_anew_and_a_storm_of_changes_is_calmed() {
    let storm = vec![json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }); 1_000];
    let fake = Fake { says: storm, ..Fake::with(&["old"]) };
    let (tools, asked) = (fake.tools.clone(), fake.lists_asked.clone());
    let mut stage = stage([Meets::Server(fake)]);
    stage.until_status("connected").await;
    *tools.lock().unwrap() = vec!["new"];
    stage.until(|state| names(state) == ["new"]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(asked.load(Ordering::SeqCst) < 10);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_had_anew_keeps_the_old_one_with_a_warning() {
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let fake = Fake { says: vec![changed], refuses_second_list: true, ..Fake::with(&["old"]) };
    let mut stage = stage([Meets::Server(fake)]);
    let state = stage.until(|state| !state.warnings.is_empty()).await;
    assert_eq!(names(&state), ["old"]);
    assert_eq!(state.warnings, ["tools/list failed: no (error -32603)"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_server_dies_ends_at_once() {
    let mut stage = stage([Meets::Server(Fake::with(&["die"]))]);
    stage.until_status("connected").await;
    let begun = Instant::now();
    let error = run(&stage.server, "die").await.unwrap_err();
    assert_eq!(error.kind(), "connection-failed");
    assert!(begun.elapsed() < Duration::from_secs(1));
    stage.until_status("pending").await;
    stage.until_status("connected").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_of_its_own_right_after_the_start_is_not_restarted_for_ever() {
    let weak = Fake { hangs_up: true, ..Fake::with(&[]) };
    let mut stage = stage([Meets::Server(weak)]);
    stage.until_status("failed").await;
    assert_eq!(stage.tried(), 5);
}

#[tokio::test(start_paused = true)]
async fn who_must_sign_in_waits_without_being_tried_again() {
    let auth = Meets::Error(OpenError::NeedsAuth { challenge: None });
    let mut stage = stage([auth, Meets::Server(Fake::default())]);
    stage.until_status("needs-auth").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.tried(), 1);
    assert_eq!(run(&stage.server, "read").await.unwrap_err().kind(), "needs-auth");
    assert_eq!(stage.server.restart().await.unwrap().status, Status::Connected);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_when_to_come_again_is_obeyed() {
    let busy = OpenError::RetryAfter { after: Duration::from_secs(30), message: "429 too many requests".to_owned() };
    let mut stage = stage([Meets::Error(busy), Meets::Server(Fake::default())]);
    let begun = Instant::now();
    let state = stage.until(|state| state.error.is_some()).await;
    assert_eq!(state.status.reason().unwrap(), "retrying in 30 s");
    stage.until_status("connected").await;
    assert!(begun.elapsed() >= Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn an_unset_variable_fails_by_name_and_nothing_is_started() {
    let unset = definition(|spec| {
        if let Launch::Stdio(stdio) = &mut spec.launch {
            stdio.args = vec!["${NO_SUCH_VARIABLE_HERE}".to_owned()];
        }
    });
    let mut stage = stage_with(unset, [Meets::Silence], |_| ());
    let state = stage.until_status("failed").await;
    assert!(state.error.as_deref().unwrap().contains("`NO_SUCH_VARIABLE_HERE` is not set"));
    assert_eq!(stage.tried(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_input_is_waited_for_outside_the_time_of_the_start() {
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
            context.host = Arc::new(Nobody { answer });
        }
    };
    let mut answered = stage_with(asks(), [Meets::Server(Fake::default())], with(Some("secret")));
    answered.until(|state| state.status.reason().as_deref() == Some("awaiting-input")).await;
    answered.until_status("connected").await;

    let mut declined = stage_with(asks(), [Meets::Silence], with(None));
    let state = declined.until_status("failed").await;
    insta::assert_snapshot!(state.error.as_deref().unwrap(), @"the input `key` was not answered; restart it to be asked again");
    assert_eq!(declined.tried(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_fallback_is_tried_when_the_first_way_fails() {
    let two_ways = || definition(|spec| spec.fallback = Some(Launch::Tcp { host: "127.0.0.1".to_owned(), port: 9 }));
    let mut stage = stage_with(two_ways(), [refused(), Meets::Server(Fake::default())], |_| ());
    let state = stage.until_status("connected").await;
    insta::assert_snapshot!(state.warnings[0], @"connected through its fallback (tcp): connection refused 127.0.0.1:9");
    assert_eq!(*stage.fakes.tried.lock().unwrap(), ["stdio", "tcp"]);

    let mut stage = stage_with(two_ways(), [refused()], |_| ());
    let state = stage.until(|state| state.error.is_some()).await;
    insta::assert_snapshot!(state.error.as_deref().unwrap(), @"connection refused 127.0.0.1:9; and its fallback (tcp): connection refused 127.0.0.1:9");
}

#[tokio::test(start_paused = true)]
async fn a_start_can_be_cut_short_by_stop_and_by_restart() {
    let stage = stage([Meets::Silence, Meets::Silence, Meets::Server(Fake::default())]);
    while stage.tried() < 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.server.stop().await.unwrap().status, Status::Stopped);
    let server = stage.server.clone();
    let starting = tokio::spawn(async move { server.start().await });
    while stage.tried() < 2 {
        tokio::task::yield_now().await;
    }
    let begun = Instant::now();
    assert_eq!(stage.server.restart().await.unwrap().status, Status::Connected);
    assert_eq!(starting.await.unwrap().unwrap().status, Status::Connected);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_disabled_server_does_nothing_and_says_so() {
    let off = definition(|spec| spec.enabled = false);
    let mut stage = stage_with(off, [Meets::Silence], |_| ());
    stage.until_status("disabled").await;
    assert_eq!(stage.server.start().await.unwrap_err().kind(), "disabled");
    assert_eq!(run(&stage.server, "read").await.unwrap_err().kind(), "disabled");
    assert_eq!(stage.tried(), 0);
    stage.server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_end_when_the_server_is_stopped_by_hand() {
    let mut stage = stage([Meets::Server(Fake::with(&["hang"]))]);
    stage.until_status("connected").await;
    let server = stage.server.clone();
    let hanging = tokio::spawn(async move { run(&server, "hang").await });
    tokio::task::yield_now().await;
    stage.server.stop().await.unwrap();
    let error = hanging.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "server `it`: it was stopped or restarted while this ran");
}

#[tokio::test(start_paused = true)]
async fn the_server_stops_when_its_last_handle_is_dropped() {
    let mut stage = stage([Meets::Server(Fake::default())]);
    stage.until_status("connected").await;
    let fake::Stage { server, mut events, .. } = stage;
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
async fn a_trial_is_one_try_even_of_a_disabled_server_and_leaves_nothing() {
    let off = || definition(|spec| spec.enabled = false);
    for (meets, status) in [(refused(), Status::Failed), (Meets::Server(Fake::with(&["read"])), Status::Connected)] {
        let mut context = None;
        let stage = stage_with(off(), [meets], |given| context = Some(given.clone()));
        let trusted = stage.server.trusted().clone();
        let state = Server::trial(trusted, context.unwrap()).await;
        assert_eq!((state.status, stage.tried()), (status, 1));
        assert_eq!(state.error.is_some(), status == Status::Failed);
    }
}
