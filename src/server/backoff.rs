//! When to retry: delays that double up to a limit, with jitter so that servers that failed together do not restart
//! together, and a maximum number of attempts.

use std::time::Duration;

use crate::settings::Servers;

#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts a failure. Returns the delay before the next attempt, or `None` after too many failures in a row.
    pub fn fail(&mut self, settings: &Servers) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= settings.attempts {
            return None;
        }
        let doublings = (self.failures - 1).min(31);
        let wait = settings.backoff_first.saturating_mul(1 << doublings).min(settings.backoff_longest);
        // Up to 20 % shorter, never longer than the limit.
        Some(wait.mul_f64(0.8 + 0.2 * fastrand::f64()))
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Called when the server works, or when the user restarts it.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn delays_double_up_to_a_limit_and_end_after_five_failures() {
        let mut settings = Settings::default().servers;
        let mut backoff = Backoff::default();
        for expected in [1.0, 2.0, 4.0, 8.0] {
            let wait = backoff.fail(&settings).unwrap().as_secs_f64();
            assert!((expected * 0.8..=expected).contains(&wait), "{wait} for {expected}");
        }
        assert_eq!(backoff.fail(&settings), None);
        settings.attempts = 100;
        backoff.reset();
        let longest = (0..40).filter_map(|_| backoff.fail(&settings)).max().unwrap();
        assert!(longest <= Duration::from_secs(60));
    }
}
