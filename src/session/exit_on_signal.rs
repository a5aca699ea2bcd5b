//! Ends a front with success on SIGTERM or SIGINT. The thread that waits for them also gives back, a while after the start,
//! the memory that only the start needed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::os;

/// The stack size of the waiting thread.
const STACK: usize = 128 << 10;

/// Until this is dropped, SIGTERM and SIGINT end this process with success.
pub struct ExitOnSignal {
    active: Arc<AtomicBool>,
}

/// A front has only its connection to clean up, which closes with the process. The engine then cancels its requests.
pub fn exit_on_signal() -> io::Result<ExitOnSignal> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (terminate, interrupt) = {
        // Before the thread starts, so that no signal is missed.
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let active = Arc::new(AtomicBool::new(true));
    let exit_on_signal = ExitOnSignal { active: active.clone() };
    std::thread::Builder::new().name("signals".to_owned()).stack_size(STACK).spawn(move || {
        runtime.spawn(os::give_memory_back_after_start());
        runtime.block_on(either(terminate, interrupt));
        if active.load(Ordering::Acquire) {
            std::process::exit(0);
        }
    })?;
    Ok(exit_on_signal)
}

async fn either(mut terminate: Signal, mut interrupt: Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

impl Drop for ExitOnSignal {
    fn drop(&mut self) {
        self.active.store(false, Ordering::Release);
    }
}
