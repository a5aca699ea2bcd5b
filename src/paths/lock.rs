//! Takes a lock on a file, but waits only for a limited time.

use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait between two attempts, because the system has no timeout for locks.
const INTERVAL: Duration = Duration::from_millis(10);

/// Calls `try_lock` until it succeeds. The error names `path` if another program holds the lock for longer than `limit`.
pub fn lock_within(limit: Duration, path: &Path, try_lock: impl Fn() -> Result<(), TryLockError>) -> io::Result<()> {
    let until = Instant::now() + limit;
    loop {
        match try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                let (path, limit) = (path.display(), limit.as_secs_f32());
                let message = format!("another program has locked {path} for more than {limit} s; end that program");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_lock_that_is_never_released_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let (held, waiting) = (File::create(&path).unwrap(), File::open(&path).unwrap());
        held.lock().unwrap();
        let error = lock_within(Duration::from_millis(30), &path, || waiting.try_lock()).unwrap_err().to_string();
        assert!(error.ends_with("x.lock for more than 0.03 s; end that program"), "{error}");
        let released = std::thread::spawn(move || held.unlock());
        lock_within(Duration::from_secs(60), &path, || waiting.try_lock()).unwrap();
        released.join().unwrap().unwrap();
    }
}
