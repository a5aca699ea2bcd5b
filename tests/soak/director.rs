//! Runs the actors, kills servers and the engine while they run, and pauses all of them now and then to check the
//! model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::actor;
use crate::agent::Agent;
use crate::checkpoint::{self, Baseline};
use crate::editor::Editor;
use crate::watcher::{engines_of, in_no_file, nothing_left};
use crate::world::{AGENTS, EDITORS, Options, PATIENCE, Phase, World};

/// The engine is killed in this part of a run. In the rest, it must not grow.
const KILLING: f64 = 0.4;

/// Fronts give up on an engine that ends again and again.
const BETWEEN_KILLS: Duration = Duration::from_secs(6);

pub struct Outcome {
    pub counts: BTreeMap<&'static str, u64>,
    pub violations: Vec<String>,
    pub checkpoints: u32,
    /// The engine that ran last.
    pub figures: Option<Baseline>,
}

pub async fn run(options: &Options) -> Outcome {
    println!("soak: {:?}, seed {}", options.duration, options.seed);
    let world = Arc::new(World::new(options).await);
    let mut rng = Rng::with_seed(options.seed);
    let mut actors = JoinSet::new();
    for number in 0..EDITORS {
        actors.spawn(actor::run(Editor::new(&world, number, rng.fork())));
    }
    for number in 0..AGENTS {
        actors.spawn(actor::run(Agent::new(&world, number, rng.fork())));
    }
    let (began, mut checkpoints, mut figures) = (Instant::now(), 0, None);
    let between = (options.duration / 4).clamp(Duration::from_secs(4), Duration::from_secs(60));
    while world.model.violations().is_empty() {
        let killing = began.elapsed() < options.duration.mul_f64(KILLING);
        let left = options.duration.saturating_sub(began.elapsed());
        disasters(&world, &mut rng, between.min(left), killing).await;
        world.phase.send_replace(Phase::Rest);
        match tokio::time::timeout(PATIENCE * 2, world.barrier.wait()).await {
            Ok(_) => match checkpoint::check(&world, figures).await {
                Ok(measured) => figures = Some(measured),
                Err(reason) => world.model.violation(reason),
            },
            Err(_) => world.model.violation(format!("an actor hangs: {}", world.doing())),
        }
        checkpoints += 1;
        let calls = world.model.counts().get("calls").copied().unwrap_or_default();
        println!("{:5} s: {calls} calls, {figures:?}", began.elapsed().as_secs());
        let is_over = began.elapsed() >= options.duration;
        world.phase.send_replace(if is_over { Phase::End } else { Phase::Run });
        if is_over {
            break;
        }
    }
    if world.model.violations().is_empty() {
        while let Some(ended) = actors.join_next().await {
            if let Err(panic) = ended {
                world.model.violation(format!("an actor failed: {panic}"));
            }
        }
        for ended in [end(&world).await, world.check_secret(), in_no_file(&world.home.path(""), "panicked at")] {
            if let Err(reason) = ended {
                world.model.violation(reason);
            }
        }
    } else {
        keep_evidence(&world).await;
    }
    Outcome { counts: world.model.counts(), violations: world.model.violations(), checkpoints, figures }
}

/// Kills servers, and perhaps the engine, for some time.
async fn disasters(world: &World, rng: &mut Rng, time: Duration, killing: bool) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        let pause = Duration::from_millis(rng.u64(200..2000));
        tokio::time::sleep(pause.min(until - Instant::now())).await;
        if rng.u32(..10) < 8 {
            // Not by remembered ids: the system gives the id of a process that has ended to another one.
            if let Some((pid, _)) = rng.choice(world.processes_of_servers()) {
                world.model.count("kills of servers");
                kill(pid);
            }
        } else if killing
            && world.model.since_kill() > BETWEEN_KILLS
            && let Some(engine) = engines_of(&world.home.project()).first()
        {
            world.model.engine_killed();
            kill(*engine);
        }
    }
}

fn kill(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    }
}

/// After all have left: no process is there, and the records are whole.
async fn end(world: &World) -> Result<(), String> {
    nothing_left(&world.home.path("")).await?;
    world.model.check_records(&world.home.path("state/state.db"), &world.home.path("calls"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"));
    command.args(["calls", "--verify"]).envs(world.home.variables()).current_dir(world.home.project());
    let output = tokio::time::timeout(PATIENCE, command.kill_on_drop(true).output()).await;
    let output = output.map_err(|_| "`calls --verify` hangs")?.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => nothing_left(&world.home.path("")).await,
        false => Err(format!("`calls --verify`: {}", String::from_utf8_lossy(&output.stdout))),
    }
}

/// Copies the logs and the database to `target/soak/evidence`.
async fn keep_evidence(world: &World) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/soak/evidence");
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(world.home.path("state")).arg(world.home.path("stderr")).arg(world.home.path("calls"));
    copy.arg(&folder).status().await.ok();
    println!("the logs and the database are in {}", folder.display());
}
