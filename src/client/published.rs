//! Reading published arrangements from any thread.
#![forbid(unsafe_code)]

use super::error::Error;
use super::waiting;
use crate::operators::PublishedArrangement;
use crate::order::{Antichain, Timestamp};
use crate::runtime::Query;
use crate::trace::{Hold, MergeBatch, OrdBatch, Snapshot, SnapshotError};
use std::time::Duration;

/// A published arrangement of (key, val) as kpg stores it.
pub type Published<K, V, T = u64, R = i64> = PublishedArrangement<OrdBatch<K, V, T, R>>;

fn convert<T: Timestamp>(error: SnapshotError<T>, query: &Query) -> Error {
    match error {
        SnapshotError::Compacted { since } => Error::Compacted { since: format!("{since:?}") },
        SnapshotError::NotYet { complete } => {
            Error::ended(query).unwrap_or(Error::NotYet { complete: format!("{complete:?}") })
        }
        SnapshotError::Unpublished => Error::ended(query).unwrap_or(Error::Shutdown),
    }
}

impl<B: MergeBatch + Send + Sync> PublishedArrangement<B> {
    /// The collection as of `time`, from any thread, without asking a worker, during any merge.
    ///
    /// # Errors
    /// `Compacted`: hold history that you will read; `NotYet`; the query's end.
    pub fn snapshot_at(&self, time: &B::Time) -> Result<Snapshot<B>, Error> {
        // Before it is tried: an end reaches the query first, and what it publishes a moment later.
        Error::check(self.query())?;
        self.published().snapshot_at(time).map_err(|error| convert(error, self.query()))
    }

    /// The collection as of the latest complete time.
    ///
    /// # Errors
    /// `NotYet`, if no time is complete; the query's end.
    pub fn snapshot(&self) -> Result<Snapshot<B>, Error> {
        Error::check(self.query())?;
        self.published().snapshot().map_err(|error| convert(error, self.query()))
    }

    /// Waits until `time` is complete, then as `snapshot_at`.
    ///
    /// # Errors
    /// `Deadline`; `WouldBlock` inside a step; otherwise as `snapshot_at`.
    pub fn wait_snapshot(&self, time: &B::Time, timeout: Duration) -> Result<Snapshot<B>, Error> {
        let clock = &self.query().clock;
        let deadline = clock.deadline(timeout);
        let late = || Error::Deadline { what: format!("{time:?} was complete") };
        let (mut stepper, mut more) = (None, !clock.is_past(deadline));
        loop {
            match self.snapshot_at(time) {
                Err(Error::NotYet { .. }) => {}
                other => return other,
            }
            if !more {
                return Err(late());
            }
            match waiting::role() {
                waiting::Role::Inside => {
                    return Err(Error::WouldBlock { what: format!("waiting until {time:?} was complete") });
                }
                waiting::Role::Owner(workers) => {
                    more = stepper.get_or_insert_with(|| waiting::Stepper::new(workers, clock, deadline)).step();
                }
                waiting::Role::Client => match self.published().wait_complete(time, clock.by_system(deadline)) {
                    Err(SnapshotError::NotYet { .. }) => return Err(late()),
                    Err(error) => return Err(convert(error, self.query())),
                    Ok(()) => {}
                },
            }
        }
    }

    /// Keeps what is at or past `since` readable, until the hold is dropped.
    ///
    /// # Errors
    /// `Compacted`, if it is folded already; the query's end.
    pub fn hold(&self, since: &B::Time) -> Result<Hold<B::Time>, Error> {
        Error::check(self.query())?;
        let since = Antichain::from_elem(*since);
        self.published().hold(&since).map_err(|error| convert(error, self.query()))
    }

    /// What is not beyond this frontier is complete on all shards.
    pub fn complete(&self) -> Antichain<B::Time> {
        self.published().complete()
    }

    /// Whether `time` is complete on all shards.
    pub fn is_complete(&self, time: &B::Time) -> bool {
        !self.complete().less_equal(time)
    }
}
