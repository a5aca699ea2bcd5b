//! How costs grow with the number of servers, tools, agents, open questions and calls in the log.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::route::{Kind, Request, Route, Servers};
use super::table::{Row, Unit};
use super::{SETTLED, millis, percentile};

/// One table: its name, its columns and its rows.
pub struct Growth {
    pub name: &'static str,
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
}

const ONE: Servers = Servers { count: 1, tools: 2 };

/// Opens routes with this many of something.
type Open = fn(usize, &Path) -> io::Result<Vec<Route>>;

const SERVERS: [usize; 4] = [1, 10, 50, 200];
const TOOLS: [usize; 4] = [10, 100, 1_000, 5_000];
const AGENTS: [usize; 4] = [1, 5, 20, 50];
const QUESTIONS: [usize; 4] = [1, 10, 100, 1_000];
const CALLS: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Copies the only call in the log, as calls of forty tools.
const COPY: &str = "
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
    INSERT INTO calls (call_id, project, time, server, tool, requester, decision, decided_by, finished, success, duration_us,
            arguments, result, kind, result_bytes, result_tokens)
        SELECT call_id || n, project, time, server, 'tool-' || n % 40, requester, decision, decided_by, finished, success,
            abs(random() % 100000), arguments, result, kind, result_bytes, n % 500
        FROM calls, numbers";

pub fn run(place: &Path) -> io::Result<Vec<Growth>> {
    let servers: Open = |count, place| Ok(vec![Route::open(Kind::AgentAlone, Servers { count, tools: 2 }, place)?]);
    let tools: Open = |tools, place| Ok(vec![Route::open(Kind::AgentAlone, Servers { count: 1, tools }, place)?]);
    let agents: Open = |agents, place| (0..agents).map(|_| Route::open(Kind::Agent, ONE, place)).collect();
    let questions: Open = |questions, place| {
        let mut route = Route::open(Kind::EditorAlone, Servers { count: 1, tools: 5 }, place)?;
        (0..questions).try_for_each(|_| route.send(&Request::Ask))?;
        // The response comes after all questions are there.
        route.request(&Request::Questions)?;
        Ok(vec![route])
    };
    Ok(vec![
        measure("servers", &SERVERS, servers, LISTS, place)?,
        measure("tools", &TOOLS, tools, LISTS, place)?,
        measure("agents", &AGENTS, agents, LISTS, place)?,
        measure("questions", &QUESTIONS, questions, &[("list of them, p50", Request::Questions)], place)?,
        calls(place)?,
    ])
}

const LISTS: &[(&str, Request)] = &[("list of them, p50", Request::List)];

/// The log is filled before the engine starts that is measured.
fn calls(place: &Path) -> io::Result<Growth> {
    for size in CALLS {
        let place = place.join(format!("growth-calls-{size}"));
        let mut route = Route::open(Kind::EditorAlone, ONE, &place)?;
        route.request(&Request::Call { tool: "echo", text: "x".repeat(100) })?;
        route.close()?;
        let log = rusqlite::Connection::open(place.join("state/state.db")).map_err(io::Error::other)?;
        log.execute(COPY, [size - 1]).map_err(io::Error::other)?;
    }
    let open: Open = |_, place| Ok(vec![Route::open(Kind::EditorAlone, ONE, place)?]);
    measure(
        "calls",
        &CALLS.map(|calls| calls as usize),
        open,
        &[("`calls`, p50", Request::Calls), ("`metrics`, p50", Request::Metrics)],
        place,
    )
}

/// `lists` are requests whose cost may grow, and their names.
fn measure(
    name: &'static str,
    sizes: &[usize],
    open: Open,
    lists: &[(&'static str, Request)],
    place: &Path,
) -> io::Result<Growth> {
    let mut figures = vec![Vec::new(); 3 + lists.len()];
    for size in sizes {
        let place = place.join(format!("growth-{name}-{size}"));
        let started = Instant::now();
        let mut routes = open(*size, &place)?;
        figures[0].push(Some(millis(started.elapsed())));
        std::thread::sleep(SETTLED);
        let Some(route) = routes.first_mut() else { continue };
        figures[1].push(route.processes().and_then(|processes| processes.memory()));
        let call = Request::Call { tool: "echo", text: "x".repeat(100) };
        figures[2].push(median(route, 500, &call)?);
        for ((_, list), figures) in lists.iter().zip(&mut figures[3..]) {
            figures.push(median(route, 20, list)?.map(|micros| micros / 1e3));
        }
        // An agent that joined later shares the engine, so the first one ends last.
        routes.into_iter().rev().try_for_each(Route::close)?;
    }
    let known =
        [("until all are there", Unit::Millis), ("memory", Unit::Megabytes), ("call of 100 B, p50", Unit::Micros)];
    let named = known.into_iter().chain(lists.iter().map(|(what, _)| (*what, Unit::Millis)));
    let rows = named.zip(figures).map(|((what, unit), figures)| Row { what, unit, figures });
    Ok(Growth { name, columns: sizes.iter().map(ToString::to_string).collect(), rows: rows.collect() })
}

/// In microseconds.
fn median(route: &mut Route, times: usize, request: &Request) -> io::Result<Option<f64>> {
    let mut samples = Vec::new();
    for _ in 0..times {
        let started = Instant::now();
        route.request(request)?;
        samples.push(Duration::as_secs_f64(&started.elapsed()) * 1e6);
    }
    Ok(percentile(&mut samples, 50))
}
