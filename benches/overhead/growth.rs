//! How costs grow with the number of servers, tools, agents and open questions.

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

/// Opens routes with this many of something.
type Open = fn(usize, &Path) -> io::Result<Vec<Route>>;

const SERVERS: [usize; 4] = [1, 10, 50, 200];
const TOOLS: [usize; 4] = [10, 100, 1_000, 5_000];
const AGENTS: [usize; 4] = [1, 5, 20, 50];
const QUESTIONS: [usize; 4] = [1, 10, 100, 1_000];

pub fn run(place: &Path) -> io::Result<Vec<Growth>> {
    let servers: Open = |count, place| Ok(vec![Route::open(Kind::AgentAlone, Servers { count, tools: 2 }, place)?]);
    let tools: Open = |tools, place| Ok(vec![Route::open(Kind::AgentAlone, Servers { count: 1, tools }, place)?]);
    let agents: Open = |agents, place| {
        let one = Servers { count: 1, tools: 2 };
        (0..agents).map(|_| Route::open(Kind::Agent, one, place)).collect()
    };
    let questions: Open = |questions, place| {
        let mut route = Route::open(Kind::EditorAlone, Servers { count: 1, tools: 3 }, place)?;
        (0..questions).try_for_each(|_| route.send(&Request::Ask))?;
        // The response comes after all questions are there.
        route.request(&Request::Questions)?;
        Ok(vec![route])
    };
    Ok(vec![
        measure("servers", &SERVERS, servers, Request::List, place)?,
        measure("tools", &TOOLS, tools, Request::List, place)?,
        measure("agents", &AGENTS, agents, Request::List, place)?,
        measure("questions", &QUESTIONS, questions, Request::Questions, place)?,
    ])
}

fn measure(name: &'static str, sizes: &[usize], open: Open, list: Request, place: &Path) -> io::Result<Growth> {
    let mut figures = [const { Vec::new() }; 4];
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
        figures[3].push(median(route, 20, &list)?.map(|micros| micros / 1e3));
        // An agent that joined later shares the engine, so the first one ends last.
        routes.into_iter().rev().try_for_each(Route::close)?;
    }
    let names = ["until all are there", "memory", "call of 100 B, p50", "list of them, p50"];
    let units = [Unit::Millis, Unit::Megabytes, Unit::Micros, Unit::Millis];
    let rows = names.into_iter().zip(units).zip(figures).map(|((what, unit), figures)| Row { what, unit, figures });
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
