//! A front that is asked to leave by a signal ends in order, as one with an engine of its own does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waiting for a signal needs little.
const STACK: usize = 128 << 10;

/// While it is kept, SIGTERM and SIGINT end this process with success.
pub struct Leaving {
    meant: Arc<AtomicBool>,
}

/// A front holds nothing but its connection, which closes with the process: the engine sees the end of the input, and
/// takes back what was under way.
pub fn leave_on_signal() -> io::Result<Leaving> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (terminate, interrupt) = {
        // From here on, not from when the thread has begun: a signal in between would end us its own way.
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let meant = Arc::new(AtomicBool::new(true));
    let leaving = Leaving { meant: meant.clone() };
    std::thread::Builder::new().name("signals".to_owned()).stack_size(STACK).spawn(move || {
        runtime.block_on(either(terminate, interrupt));
        if meant.load(Ordering::Acquire) {
            std::process::exit(0);
        }
    })?;
    Ok(leaving)
}

async fn either(mut terminate: Signal, mut interrupt: Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.meant.store(false, Ordering::Release);
    }
}
