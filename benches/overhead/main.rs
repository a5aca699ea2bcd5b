//! Measures what the sidecar adds to a call, and what it takes: time, memory, threads. The same server is called through a
//! bare pipe, the client of rmcp, and `mcp-sidecar connect` and `lsp`, each with a separate and with the shared engine. The
//! routes take turns within one run, because absolute numbers depend on the machine and its load.
//!
//! `growth` measures instead how costs grow.
//!
//! `make bench` runs it. `cargo bench --bench overhead -- 0.2` does a fifth of the work, `pinned` uses one processor,
//! `write` puts the table into the documentation, and `agent editor` measures only routes whose name contains one of these.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program for people, and a panic here harms nobody"
)]

#[path = "../frames/mod.rs"]
mod frames;
mod growth;
mod http;
mod peers;
mod processes;
mod rmcp_client;
mod route;
mod server;
mod table;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use route::{Kind, Request, Route, Servers};
use server::SERVE;
use table::{Row, Unit};

/// How long a program gets until it has finished everything that it does beside its answers.
const SETTLED: Duration = Duration::from_secs(2);
const MANY: Servers = Servers { count: 50, tools: 2 };

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [serve, tools, ..] = arguments.as_slice()
        && serve == SERVE
    {
        return server::serve(tools.parse().map_err(io::Error::other)?);
    }
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let share = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(1.0_f64);
    let is_name = |argument: &&String| {
        !["pinned", "growth", "write", "--bench"].contains(&argument.as_str()) && argument.parse::<f64>().is_err()
    };
    let names: Vec<&String> = arguments.iter().filter(is_name).collect();
    let is_wanted = |kind: &Kind| names.is_empty() || names.iter().any(|name| kind.name().contains(name.as_str()));
    let kinds: Vec<Kind> = Kind::all().filter(is_wanted).collect();
    if has("pinned") {
        pin();
    }
    let place = tempfile::tempdir()?;
    if has("growth") {
        for growth::Growth { name, columns, rows } in growth::run(place.path())? {
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            let table = table::render(name, &columns, &rows);
            println!("{name}\n\n{table}");
            if has("write") {
                table::write(name, &format!("By the number of {name}, {}", heading()), &table)?;
            }
        }
        return Ok(());
    }
    let mut rows = calls(&kinds, share, place.path())?;
    rows.extend(starts(&kinds, share, place.path())?);
    let routes: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let name = if has("pinned") { "pinned" } else { "unpinned" };
    let table = table::render(name, &routes, &rows);
    println!("{table}");
    if has("write") {
        let where_run = if has("pinned") { "On one processor" } else { "On all processors" };
        table::write(name, &format!("{where_run}, {}", heading()), &table)?;
    }
    Ok(())
}

/// Restricts this process and everything that it starts to one processor, the last one.
fn pin() {
    #[cfg(target_os = "linux")]
    if let Ok(mut allowed) = rustix::thread::sched_getaffinity(None) {
        let last = (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).unwrap_or_default();
        allowed.clear();
        allowed.set(last);
        rustix::thread::sched_setaffinity(None, &allowed).ok();
    }
}

/// When and where it was measured.
fn heading() -> String {
    let date = time::OffsetDateTime::now_utc().date();
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("measured on {date}, {model}, {processors} processors, version {}.", env!("CARGO_PKG_VERSION"))
}

/// The rows about calls and lists, with one server of 1,000 tools.
fn calls(kinds: &[Kind], share: f64, place: &Path) -> io::Result<Vec<Row>> {
    let times = |count: usize| ((count as f64 * share) as usize).max(3);
    let open = |kind: &Kind| Route::open(*kind, Servers { count: 1, tools: 1_000 }, &place.join(kind.name()));
    let mut routes = Vec::new();
    for kind in kinds {
        routes.push(unless_peer(*kind, open(kind))?);
    }
    let small = Request::Call { tool: "echo", text: "x".repeat(100) };
    let large = |tool| Request::Call { tool, text: String::new() };
    // In long rounds, or every hundredth call would be the first one after a pause, which is slower on each route.
    let calls = latencies(&mut routes, times(8), 500, &small)?;
    let mut rows = vec![
        percentiles("call of 100 B, p50", Unit::Micros, &calls, 50),
        percentiles("call of 100 B, p99", Unit::Micros, &calls, 99),
        Row { what: "calls with 64 in flight", unit: Unit::PerSecond, figures: rates(&mut routes, times(5), &small)? },
    ];
    // What the calls before have left to do, such as records to write, is not part of these.
    std::thread::sleep(SETTLED);
    let before: Vec<Option<Duration>> = routes.iter().map(processor_time).collect();
    // Enough of them that other work, such as a checkpoint of the database, does not count much.
    let (rounds, each) = (times(40), 5);
    rows.push(percentiles("1 MB result, p50", Unit::Millis, &latencies(&mut routes, rounds, each, &large("big"))?, 50));
    std::thread::sleep(SETTLED);
    let used = routes.iter().map(processor_time).zip(before);
    let used = used.map(|(after, before)| {
        // A process that has ended no longer counts.
        Some(millis(after?.checked_sub(before?)?) / ((rounds + 1) * each) as f64)
    });
    rows.push(Row { what: "1 MB result, processor time", unit: Unit::Millis, figures: used.collect() });
    for (what, tool) in [("1 MB of source code, p50", "code"), ("1 MB of records, p50", "records")] {
        rows.push(percentiles(what, Unit::Millis, &latencies(&mut routes, times(20), 5, &large(tool))?, 50));
    }
    let lists = latencies(&mut routes, times(10), 5, &Request::List)?;
    rows.push(percentiles("1,000 tools listed, p50", Unit::Millis, &lists, 50));
    Ok(rows)
}

/// The rows about start, end, memory and threads.
fn starts(kinds: &[Kind], share: f64, place: &Path) -> io::Result<Vec<Row>> {
    let rounds = ((7.0 * share) as usize).max(3);
    let mut rows = Vec::new();
    let one = Servers { count: 1, ..MANY };
    for (servers, names) in [
        (one, ["ready with 1 server", "memory with 1 server", "threads with 1 server", "end with 1 server"]),
        (MANY, ["ready with 50 servers", "memory with 50 servers", "threads with 50 servers", "end with 50 servers"]),
    ] {
        let mut samples = vec![[const { Vec::new() }; 4]; kinds.len()];
        for round in 0..rounds {
            for (kind, samples) in kinds.iter().zip(&mut samples) {
                let place = place.join(format!("start-{}-{}-{round}", servers.count, kind.name()));
                let started = Instant::now();
                let Some(mut route) = unless_peer(*kind, Route::open(*kind, servers, &place))? else { continue };
                samples[0].push(millis(started.elapsed()));
                route.request(&Request::List)?;
                // rmcp runs in this process, which holds more than that.
                if let Some(processes) = route.processes().filter(|_| *kind != Kind::Rmcp) {
                    // Threads that only the start needed end after a while.
                    std::thread::sleep(SETTLED);
                    samples[1].extend(processes.memory());
                    samples[2].extend(processes.threads());
                }
                let ended = Instant::now();
                route.close()?;
                // The shared engine stays for a while by design.
                if !matches!(kind, Kind::Agent | Kind::Editor) {
                    samples[3].push(millis(ended.elapsed()));
                }
            }
        }
        for (index, (what, unit)) in
            names.into_iter().zip([Unit::Millis, Unit::Megabytes, Unit::Count, Unit::Millis]).enumerate()
        {
            let figures = samples.iter_mut().map(|samples| percentile(&mut samples[index], 50)).collect();
            rows.push(Row { what, unit, figures });
        }
    }
    Ok(rows)
}

/// The times of each route, in microseconds, over `rounds` rounds of `each` requests.
fn latencies(routes: &mut [Option<Route>], rounds: usize, each: usize, request: &Request) -> io::Result<Vec<Vec<f64>>> {
    let mut samples = vec![Vec::new(); routes.len()];
    for round in 0..=rounds {
        for (route, samples) in routes.iter_mut().zip(&mut samples) {
            for _ in 0..each {
                let Some(open) = route else { continue };
                let started = Instant::now();
                if let Err(error) = open.request(request) {
                    *route = unless_peer(open.kind(), Err(error))?;
                    continue;
                }
                // The first round only warms up.
                if round > 0 {
                    samples.push(started.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
    }
    Ok(samples)
}

/// The calls per second of each route if 64 calls are always in flight: the median of some rounds.
fn rates(routes: &mut [Option<Route>], rounds: usize, request: &Request) -> io::Result<Vec<Option<f64>>> {
    const CALLS: usize = 5_000;
    let mut samples = vec![Vec::new(); routes.len()];
    for _ in 0..rounds {
        for (route, samples) in routes.iter_mut().zip(&mut samples) {
            let Some(open) = route else { continue };
            let started = Instant::now();
            if let Err(error) = open.in_flight(CALLS, request) {
                *route = unless_peer(open.kind(), Err(error))?;
                continue;
            }
            samples.push(CALLS as f64 / started.elapsed().as_secs_f64());
        }
    }
    Ok(samples.iter_mut().map(|samples| percentile(samples, 50)).collect())
}

fn percentiles(what: &'static str, unit: Unit, samples: &[Vec<f64>], percent: usize) -> Row {
    let divisor = if unit == Unit::Millis { 1e3 } else { 1.0 };
    let figure = |samples: &Vec<f64>| percentile(&mut samples.clone(), percent).map(|figure| figure / divisor);
    Row { what, unit, figures: samples.iter().map(figure).collect() }
}

fn percentile(samples: &mut [f64], percent: usize) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() * percent / 100).copied()
}

/// A program of others may fail: then its column is empty.
fn unless_peer(kind: Kind, opened: io::Result<Route>) -> io::Result<Option<Route>> {
    match opened {
        Err(error) if kind.peer().is_some() => {
            println!("{} is left out: {}", kind.name(), error.to_string().lines().next().unwrap_or_default());
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

fn processor_time(route: &Option<Route>) -> Option<Duration> {
    route.as_ref()?.processes().map(|processes| processes.processor_time())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
