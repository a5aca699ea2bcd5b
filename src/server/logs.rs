//! The log of one server: its stderr, its MCP log messages and our own lines, in a ring of bounded size.
//!
//! The ring keeps the newest lines; only a limited number per second is forwarded, so that a noisy server does not
//! drown out the others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Event;
use crate::model::{CallId, LogLine, LogSource, ServerName, Timestamp};
use crate::text::{mask, visible, without_colors};

const LINES_PER_SECOND: u32 = 100;
const SECOND: Duration = Duration::from_secs(1);
/// Characters of a line that are kept.
const MAX_LINE_CHARS: usize = 2_000;
/// Memory of a line in addition to its text.
const OVERHEAD: usize = 96;

#[derive(Clone)]
pub struct Logs(Arc<Shared>);

struct Shared {
    name: ServerName,
    generation: u64,
    events: mpsc::Sender<(ServerName, u64, Event)>,
    /// Private to this file and never held over an await: writers are the stderr reader, the connection and the actor.
    ring: Mutex<Ring>,
}

struct Ring {
    lines: VecDeque<LogLine>,
    bytes: usize,
    limit: usize,
    second: Instant,
    forwarded: u32,
    suppressed: u32,
}

impl Logs {
    pub fn new(
        name: ServerName,
        generation: u64,
        limit: usize,
        events: mpsc::Sender<(ServerName, u64, Event)>,
    ) -> Self {
        let ring =
            Ring { lines: VecDeque::new(), bytes: 0, limit, second: Instant::now(), forwarded: 0, suppressed: 0 };
        Self(Arc::new(Shared { name, generation, events, ring: Mutex::new(ring) }))
    }

    /// Adds one line: masked, made visible, truncated.
    pub fn push(&self, source: LogSource, level: &str, text: &str) {
        self.push_during(Vec::new(), source, level, text);
    }

    /// The same for a line that may be about these calls.
    pub fn push_during(&self, calls: Vec<CallId>, source: LogSource, level: &str, text: &str) {
        let line = LogLine {
            time: Timestamp::now(),
            source,
            level: visible(level, 16),
            text: visible(&mask(&without_colors(text)), MAX_LINE_CHARS),
        };
        let Ok(mut ring) = self.0.ring.lock() else { return };
        ring.keep(line.clone());
        self.pass_on_now(&mut ring, Event::Log { line, calls });
    }

    /// Passes on another message of the server. It counts like a line, but is not kept.
    pub fn pass_on(&self, event: Event) {
        if let Ok(mut ring) = self.0.ring.lock() {
            self.pass_on_now(&mut ring, event);
        }
    }

    /// Passes on an event, unless there were too many in this second.
    fn pass_on_now(&self, ring: &mut Ring, event: Event) {
        let now = Instant::now();
        if now.duration_since(ring.second) >= SECOND {
            self.report_suppressed(ring);
            ring.second = now;
            ring.forwarded = 0;
        }
        if ring.forwarded < LINES_PER_SECOND {
            ring.forwarded += 1;
            if !self.forward(event) {
                ring.suppressed += 1;
            }
            return;
        }
        ring.suppressed += 1;
        if ring.suppressed == 1 {
            self.report_later(ring.second + SECOND);
        }
    }

    /// The last lines, oldest first.
    pub fn last(&self, limit: usize) -> Vec<LogLine> {
        let Ok(ring) = self.0.ring.lock() else { return Vec::new() };
        ring.lines.iter().skip(ring.lines.len().saturating_sub(limit)).cloned().collect()
    }

    /// The last lines on stderr since a point in time, oldest first.
    pub fn recent_stderr(&self, since: Timestamp, limit: usize) -> Vec<String> {
        let Ok(ring) = self.0.ring.lock() else { return Vec::new() };
        let mut lines: Vec<String> = ring
            .lines
            .iter()
            .rev()
            .take_while(|line| line.time >= since)
            .filter(|line| line.source == LogSource::Stderr)
            .take(limit)
            .map(|line| line.text.clone())
            .collect();
        lines.reverse();
        lines
    }

    /// Returns false if the hub is too busy; the ring has the line.
    fn forward(&self, event: Event) -> bool {
        let shared = &self.0;
        shared.events.try_send((shared.name.clone(), shared.generation, event)).is_ok()
    }

    fn report_suppressed(&self, ring: &mut Ring) {
        if ring.suppressed > 0 {
            let line = LogLine {
                time: Timestamp::now(),
                source: LogSource::Sidecar,
                level: "warning".to_owned(),
                text: format!(
                    "{} more lines were logged too fast to show; the log keeps the last ones",
                    ring.suppressed
                ),
            };
            ring.suppressed = 0;
            self.forward(Event::Log { line, calls: Vec::new() });
        }
    }

    /// Reports the count at the end of this second even if no further line comes.
    fn report_later(&self, at: Instant) {
        let logs = self.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            tokio::time::sleep_until(at).await;
            if let Ok(mut ring) = logs.0.ring.lock() {
                logs.report_suppressed(&mut ring);
            }
        });
    }
}

impl Ring {
    fn keep(&mut self, line: LogLine) {
        self.bytes += line.text.len() + OVERHEAD;
        self.lines.push_back(line);
        while self.bytes > self.limit
            && let Some(oldest) = self.lines.pop_front()
        {
            self.bytes -= oldest.text.len() + OVERHEAD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Secret;

    fn logs() -> (Logs, mpsc::Receiver<(ServerName, u64, Event)>) {
        let (events, received) = mpsc::channel(1_000);
        (Logs::new(ServerName::new("files").unwrap(), 1, 10_000, events), received)
    }

    fn shown(received: &mut mpsc::Receiver<(ServerName, u64, Event)>) -> Vec<String> {
        let mut texts = Vec::new();
        while let Ok((_, _, Event::Log { line, .. })) = received.try_recv() {
            texts.push(line.text);
        }
        texts
    }

    #[tokio::test(start_paused = true)]
    async fn a_noisy_server_is_limited_to_a_hundred_lines_per_second() {
        let (logs, mut received) = logs();
        for number in 0..20_000 {
            logs.push(LogSource::Server, "info", &format!("line {number}"));
        }
        tokio::time::sleep(SECOND * 2).await;
        let shown = shown(&mut received);
        assert_eq!(shown.len(), 101);
        assert_eq!(shown[100], "19900 more lines were logged too fast to show; the log keeps the last ones");
        assert_eq!(logs.last(1)[0].text, "line 19999");
        assert!(logs.last(usize::MAX).len() < 100, "the ring is bounded");
    }

    #[tokio::test]
    async fn secrets_and_escapes_do_not_reach_the_log() {
        let (logs, mut received) = logs();
        Secret::new("swordfish-77");
        logs.push(LogSource::Stderr, "info", "\u{1b}[31mtoken swordfish-77\u{1b}[0m");
        assert_eq!(shown(&mut received), ["token •••"]);
        assert_eq!(logs.recent_stderr(Timestamp::from_unix_millis(0), 5), ["token •••"]);
    }
}
