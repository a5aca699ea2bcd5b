//! A model of the life of a server, and the real actor beside it: every short sequence of events is replayed on both, the
//! shortest first, and both have to agree after each event.

use std::time::Duration;

use super::fake::{Fake, Outcome, TestServer, start};
use super::{refused, run};
use crate::model::Status;

const LONGEST: u32 = 4;
/// Longer than all retries together.
const LONG: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Start,
    Stop,
    Restart,
    /// The server dies in a call.
    Die,
    /// From now on, nothing can connect, or everything.
    Refuse,
    Accept,
    /// A long time passes.
    Wait,
}

const EVENTS: [Event; 7] =
    [Event::Start, Event::Stop, Event::Restart, Event::Die, Event::Refuse, Event::Accept, Event::Wait];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connected,
    Retrying,
    /// It failed too often.
    Failed,
    Stopped,
}

/// All that is known about a server from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Model {
    phase: Phase,
    refuses: bool,
    /// How often a connection was opened.
    connections: usize,
}

impl Model {
    fn after(self, event: Event) -> Self {
        let connect = |model: Self| match model.refuses {
            true => Self { phase: Phase::Failed, ..model },
            false => Self { phase: Phase::Connected, connections: model.connections + 1, ..model },
        };
        match (event, self.phase) {
            (Event::Start, Phase::Connected) => self,
            (Event::Start | Event::Restart, _) => connect(self),
            (Event::Stop, _) => Self { phase: Phase::Stopped, ..self },
            (Event::Die, Phase::Connected) => Self { phase: Phase::Retrying, ..self },
            // A call that finds a server between two attempts waits for the next one, which it does not survive.
            (Event::Die, Phase::Retrying | Phase::Failed | Phase::Stopped) => self,
            (Event::Wait, Phase::Retrying) => connect(self),
            (Event::Wait, _) => self,
            (Event::Refuse, _) => Self { refuses: true, ..self },
            (Event::Accept, _) => Self { refuses: false, ..self },
        }
    }
}

async fn apply(server: &TestServer, event: Event) {
    match event {
        Event::Start => drop(server.server.start().await.unwrap()),
        Event::Stop => drop(server.server.stop().await.unwrap()),
        Event::Restart => drop(server.server.restart().await.unwrap()),
        Event::Die => drop(run(&server.server, "die").await.unwrap_err()),
        Event::Refuse => server.connector.set_outcome(refused()),
        Event::Accept => server.connector.set_outcome(Outcome::Server(Fake::with(&["die"]))),
        Event::Wait => tokio::time::sleep(LONG).await,
    }
    // Time passes only when nothing else can happen.
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn phase_of(status: &Status) -> Option<Phase> {
    match status {
        Status::Connected => Some(Phase::Connected),
        Status::Failed => Some(Phase::Failed),
        Status::Stopped => Some(Phase::Stopped),
        Status::Pending(_) => Some(Phase::Retrying),
        _ => None,
    }
}

/// Replays events on a server that is connected.
async fn replay(events: &[Event]) {
    let mut server = start([Outcome::Server(Fake::with(&["die"]))]);
    server.until_status("connected").await;
    let mut model = Model { phase: Phase::Connected, refuses: false, connections: 1 };
    for event in events {
        model = model.after(*event);
        apply(&server, *event).await;
        let state = server.server.state();
        assert_eq!(phase_of(&state.status), Some(model.phase), "after {event:?}: {:?}", state.error);
        // What belongs to a running server is shown for a running server only.
        assert_eq!(state.started_at.is_some(), model.phase == Phase::Connected);
        assert_eq!(state.error.is_some(), matches!(model.phase, Phase::Retrying | Phase::Failed), "{state:?}");
        if !model.refuses {
            let opened = server.attempts();
            assert!(opened >= model.connections, "{opened} connections instead of {}", model.connections);
        }
    }
    server.server.shutdown().await;
}

#[test]
fn every_short_life_of_a_server_is_that_of_the_model() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for length in 0..=LONGEST {
        for number in 0..EVENTS.len().pow(length) {
            let life: Vec<Event> =
                (0..length).map(|place| EVENTS[number / EVENTS.len().pow(place) % EVENTS.len()]).collect();
            let replayed = std::panic::AssertUnwindSafe(|| runtime.block_on(replay(&life)));
            assert!(std::panic::catch_unwind(replayed).is_ok(), "{life:?}");
        }
    }
}
