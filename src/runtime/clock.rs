//! The clock of an engine: that of the system, or, in a simulation, one that moves only when workers are stepped.
//!
//! All deadlines of client calls and all cadences of workers are taken from here, so that a simulation reads no other
//! clock and its seed fixes when they pass. Cost: the system's clock, or an uncontended lock.
#![forbid(unsafe_code)]

use crate::sync::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Says what time it is. A clone is the same clock.
#[derive(Clone, Default)]
pub struct Clock {
    /// In a simulation: the time now. What it started at means nothing, only differences do.
    simulated: Option<Arc<Mutex<Instant>>>,
}

impl Clock {
    /// The system's.
    pub fn system() -> Clock {
        Clock::default()
    }

    /// One that stands still but for [`Clock::pass`].
    pub fn simulated() -> Clock {
        Clock { simulated: Some(Arc::new(Mutex::new(Instant::now()))) }
    }

    /// Whether time is simulated.
    pub fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.simulated.as_ref().map_or_else(Instant::now, |now| *now.lock())
    }

    /// The time `timeout` from now; none, if that is further than the system can say: it never comes.
    pub fn deadline(&self, timeout: Duration) -> Option<Instant> {
        self.now().checked_add(timeout)
    }

    /// Whether a deadline has come.
    pub fn is_past(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| self.now() >= deadline)
    }

    /// Lets simulated time pass; nothing for the system's.
    pub fn pass(&self, time: Duration) {
        if let Some(now) = &self.simulated {
            let mut now = now.lock();
            *now = now.checked_add(time).unwrap_or(*now);
        }
    }

    /// The deadline by the system's clock, for a thread that sleeps rather than step a simulation's workers.
    pub fn by_system(&self, deadline: Option<Instant>) -> Option<Instant> {
        match deadline {
            Some(deadline) if self.is_simulated() => {
                Instant::now().checked_add(deadline.saturating_duration_since(self.now()))
            }
            deadline => deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_passes_when_told() {
        let clock = Clock::simulated();
        let deadline = clock.deadline(Duration::from_secs(3));
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(clock.deadline(Duration::from_secs(3)), deadline);
        clock.pass(Duration::from_secs(2));
        assert!(!clock.is_past(deadline));
        clock.clone().pass(Duration::from_secs(1));
        assert!(clock.is_past(deadline));
        assert!(clock.deadline(Duration::MAX).is_none() && !clock.is_past(None));
    }
}
