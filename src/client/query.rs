//! Installed queries, as those who installed them see them.
#![forbid(unsafe_code)]

use super::error::Error;
use super::metrics::{QueryBytes, bytes_of};
use super::shared::{Registry, Shared};
use super::waiting;
use crate::runtime::{Command, DataflowId, Ending, Lag};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An installed query. Dropping this leaves it installed; `retire` takes it down.
pub struct Query {
    pub(super) query: Arc<crate::runtime::Query>,
    pub(super) shared: Arc<Shared>,
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.query.fmt(f)
    }
}

impl Query {
    /// The name it was installed under.
    pub fn name(&self) -> &str {
        &self.query.name
    }

    /// Its memory.
    pub fn bytes(&self) -> QueryBytes {
        bytes_of(&self.query)
    }

    /// What it keeps of others' arrangements because it lags: who, from when on, about how many bytes.
    pub fn lags(&self) -> Vec<Lag> {
        self.query.lags()
    }

    /// The error that its handles give, if it has ended.
    pub fn error(&self) -> Option<Error> {
        Error::ended(&self.query)
    }

    /// Takes the query down on all workers: operators, messages, memory. Its handles give `Retired` from now on; a
    /// subscription does once it has handed over what was complete.
    ///
    /// # Errors
    /// `Imported`, while others import from it; `Deadline`, if a worker has not freed its part within
    /// [`super::Config::install_timeout`]; `Shutdown`; `WouldBlock` inside a step.
    pub fn retire(self) -> Result<(), Error> {
        self.retire_timeout(self.shared.install_timeout)
    }

    /// As `retire`, waiting for at most `timeout`: the query is taken down all the same, each worker frees its part when
    /// it gets there, and another call waits on. With no time at all it only says whether they have: so it can be called
    /// inside a step too.
    ///
    /// # Errors
    /// As `retire`.
    pub fn retire_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.end(false, timeout)
    }

    /// As `retire`, together with all that import from it, transitively: those end with `SourceEnded`.
    ///
    /// # Errors
    /// As `retire`, but for `Imported`.
    pub fn retire_cascade(self) -> Result<(), Error> {
        self.retire_cascade_timeout(self.shared.install_timeout)
    }

    /// As `retire_cascade`, waiting for at most `timeout`, as `retire_timeout` does.
    ///
    /// # Errors
    /// As `retire_cascade`.
    pub fn retire_cascade_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.end(true, timeout)
    }

    fn end(&self, cascade: bool, timeout: Duration) -> Result<(), Error> {
        if !timeout.is_zero() {
            waiting::check_may_wait("retire")?;
        }
        let deadline = self.shared.clock.deadline(timeout);
        let count = {
            let mut registry = self.shared.registry.lock();
            if registry.stopping.is_some() {
                return Err(Error::Shutdown);
            }
            let all = importers(&registry, self.query.id);
            // Those that are being installed have told the query already, and the registry not yet.
            let by = self.query.importers();
            if !by.is_empty() && !cascade {
                return Err(Error::Imported { query: self.query.name.clone(), by });
            }
            self.query.end(Ending::Retired);
            let mut count = 0;
            // Importers first, so that none outlives what it reads.
            for id in all.iter().rev() {
                registry.queries.remove(id);
                count = self.shared.append(Command::End(*id, Ending::Retired));
            }
            count
        };
        if self.shared.wait_executed(count, deadline) {
            Ok(())
        } else {
            Err(Error::Deadline { what: format!("all workers had freed query {:?}", self.query.name) })
        }
    }
}

/// A query and all that import from it, transitively, sources before importers.
fn importers(registry: &Registry, id: DataflowId) -> Vec<DataflowId> {
    let mut all = vec![id];
    // Numbers grow, and a query imports only from those before it.
    for (other, entry) in registry.queries.range(id..) {
        if entry.imports.iter().any(|source| all.contains(source)) {
            all.push(*other);
        }
    }
    all
}
