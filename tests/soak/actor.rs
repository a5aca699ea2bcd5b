//! What editors and agents have in common: they act at random until the director lets them rest.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::world::{Phase, World};

pub trait Actor: Send + Sized {
    /// The longest pause between two acts.
    const PAUSE: Duration;

    fn world(&self) -> &Arc<World>;
    fn name(&self) -> &str;
    fn random(&mut self) -> &mut Rng;
    /// Connects if it is not, and checks that the connection works.
    fn connect(&mut self) -> impl Future<Output = ()> + Send;
    fn act(&mut self) -> impl Future<Output = ()> + Send;
    fn leave(&mut self) -> impl Future<Output = ()> + Send;
}

pub async fn run<A: Actor>(mut actor: A) {
    let world = actor.world().clone();
    let mut phase = world.phase.subscribe();
    loop {
        let now = *phase.borrow_and_update();
        match now {
            Phase::Run => {
                let pause = A::PAUSE.mul_f64(actor.random().f64());
                if tokio::time::timeout(pause, phase.changed()).await.is_err() {
                    actor.act().await;
                }
            }
            Phase::Rest => {
                world.note(actor.name(), "connects for a rest");
                actor.connect().await;
                world.note(actor.name(), "rests");
                world.barrier.wait().await;
                phase.wait_for(|phase| *phase != Phase::Rest).await.ok();
            }
            Phase::End => break,
        }
    }
    actor.leave().await;
}
