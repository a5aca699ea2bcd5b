//! Runs cases, and measures them.

use std::time::Instant;

use futures::StreamExt;
use serde_json::json;

use crate::case::{Case, load};
use crate::existing_test::TestBinaries;
use crate::stage::Stage;
use crate::watcher::{Figures, check_peak, nothing_left, settled};

/// How many cases run at the same time.
const AT_ONCE: usize = 3;

pub struct Options {
    /// All cases, with a report.
    pub full: bool,
    pub runs: u32,
    pub seed: u64,
    pub words: Vec<String>,
}

impl Options {
    pub fn from_command_line() -> Self {
        let mut options = Self { full: false, runs: 2, seed: fastrand::u64(..), words: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|number| number.parse().ok()).expect("a number");
            match argument.as_str() {
                "--full" => (options.full, options.runs) = (true, 10),
                "--runs" => options.runs = u32::try_from(number()).unwrap(),
                "--seed" => options.seed = number(),
                // `cargo test` passes its own options to every target.
                option if option.starts_with('-') => {}
                word => options.words.push(word.to_lowercase()),
            }
        }
        options
    }

    fn wants(&self, case: &Case) -> bool {
        let text = format!("{} {}", case.id, case.fault).to_lowercase();
        // The tests of other targets are part of `make test` anyway.
        let is_part = self.full || case.quick || (case.test.is_none() && !self.words.is_empty());
        is_part && (self.words.is_empty() || self.words.iter().any(|word| text.contains(word)))
    }
}

/// What came of a case.
pub struct CaseResult {
    pub case: Case,
    pub runs: u32,
    /// The reason for skipping it, or what went wrong.
    pub outcome: Result<Option<String>, String>,
    pub idle: Figures,
    pub peak: Figures,
}

pub async fn run_all(options: &Options) -> Vec<CaseResult> {
    let mut cases: Vec<Case> = load().into_iter().filter(|case| options.wants(case)).collect();
    // In another order each time, so that no case depends on one before it.
    fastrand::Rng::with_seed(options.seed).shuffle(&mut cases);
    println!("{} cases, {} runs each, seed {}", cases.len(), options.runs, options.seed);
    let binaries = cases.iter().any(|case| case.test.is_some()).then(TestBinaries::build);
    // Most of a case is waiting, so a few of them run at a time.
    let all = cases.into_iter().map(|case| measure(case, options, binaries.as_ref()));
    let mut results: Vec<CaseResult> = futures::stream::iter(all).buffer_unordered(AT_ONCE).collect().await;
    results.sort_by(|one, other| one.case.id.cmp(&other.case.id));
    results
}

async fn measure(case: Case, options: &Options, binaries: Option<&TestBinaries>) -> CaseResult {
    let began = Instant::now();
    let (runs, seed) = (options.runs, options.seed);
    let measured = if let (Some(test), Some(binaries)) = (&case.test, binaries) {
        binaries.run(test, runs).await
    } else {
        let case = case.clone();
        // A panic, such as that of a test editor that waited in vain, fails only this case.
        let running = tokio::spawn(async move { run_case(&case, runs, seed).await });
        running.await.unwrap_or_else(|panic| Err(panic.to_string()))
    };
    let (outcome, idle, peak) = match measured {
        Ok(Measured::Passed { idle, peak }) => (Ok(None), idle, peak),
        Ok(Measured::Skipped(reason)) => (Ok(Some(reason)), Figures::default(), Figures::default()),
        Err(reason) => (Err(reason), Figures::default(), Figures::default()),
    };
    let word = match &outcome {
        Ok(None) => "passed".to_owned(),
        Ok(Some(reason)) => format!("skipped: {reason}"),
        Err(reason) => format!("FAILED\n    {}", reason.replace('\n', "\n    ")),
    };
    let seconds = began.elapsed().as_secs_f32();
    println!("{:8} {:60} {seconds:5.1} s {:4} MiB  {word}", case.id, case.fault, peak.peak_mib);
    CaseResult { case, runs, outcome, idle, peak }
}

pub enum Measured {
    Passed { idle: Figures, peak: Figures },
    Skipped(String),
}

async fn run_case(case: &Case, runs: u32, seed: u64) -> Result<Measured, String> {
    let (mut idle, mut peak) = (Figures::default(), Figures::default());
    for engine in 0..if case.fresh { runs } else { 1 } {
        let mut stage = Stage::new(case, seed.wrapping_add(u64::from(engine)));
        if let Some(script) = &case.before {
            match stage.shell(script).await {
                (Some(0), _) => {}
                (Some(77), reason) => return Ok(Measured::Skipped(reason)),
                (code, output) => return Err(format!("`before` ended with {code:?}: {output}")),
            }
        }
        let outcome = one_engine(&mut stage, if case.fresh { 1 } else { runs }).await;
        let ended = end(stage).await;
        let (of_idle, of_peak) = outcome?;
        ended?;
        (idle, peak) = (idle.max(of_idle), peak.max(of_peak));
    }
    Ok(Measured::Passed { idle, peak })
}

/// Runs the steps of a case several times against one engine.
async fn one_engine(stage: &mut Stage, runs: u32) -> Result<(Figures, Figures), String> {
    stage.open().await;
    still_good(stage).await?;
    let idle = Figures::of(stage.engine().ok_or("there is no engine")?).ok_or("the engine ended")?;
    let mut peak = idle;
    let mut first = None;
    for run in 1..=runs {
        stage.add_servers();
        let steps = stage.case.steps.clone();
        for (number, step) in (1..).zip(&steps) {
            let done = crate::steps::run(stage, step).await;
            done.map_err(|reason| format!("run {run}, step {number} {step}: {reason}"))?;
        }
        still_good(stage).await.map_err(|reason| format!("run {run}: {reason}"))?;
        stage.remove_servers().await;
        let engine = stage.engine().ok_or("there is no engine")?;
        let now = match first {
            None => Figures::of(engine).ok_or("the engine ended")?,
            Some(first) => settled(engine, first).await?,
        };
        first.get_or_insert(now);
        peak = peak.max(now);
    }
    check_peak(idle, peak)?;
    Ok((idle, peak))
}

/// A fault harms nothing else.
async fn still_good(stage: &mut Stage) -> Result<(), String> {
    crate::steps::run(stage, &json!({ "status": "good", "is": { "status": "connected" } })).await?;
    let call = json!({ "call": "good/echo", "arguments": { "text": "well" }, "text": "well" });
    crate::steps::run(stage, &call).await.map_err(|reason| format!("the good server does not work: {reason}"))
}

async fn end(mut stage: Stage) -> Result<(), String> {
    let quit = if stage.editor.is_some() { stage.quit().await } else { Ok(()) };
    stage.peers.clear();
    let left = nothing_left(&stage.home.path("")).await;
    let secret = stage.check_secret();
    let panicked = stage.shell("grep -rh 'panicked at' state stderr 2>/dev/null | head -3").await.1;
    if let Some(script) = stage.case.after.clone() {
        stage.shell(&script).await;
    }
    quit?;
    left?;
    secret?;
    if panicked.is_empty() { Ok(()) } else { Err(panicked) }
}
