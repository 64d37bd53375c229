//! The one error type of the client: each says what happened and what to do.
#![forbid(unsafe_code)]

use crate::runtime::{Ending, Failure, Query};
use std::fmt;

/// What can go wrong between a client and its engine.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A configuration that cannot be run; says what to change.
    Config(String),
    /// A core was named that this process may not use.
    NoSuchCore {
        /// The core.
        core: usize,
        /// Those that it may use.
        usable: Vec<usize>,
    },
    /// A core was named twice: each worker needs one of its own.
    CoreTwice {
        /// The core.
        core: usize,
    },
    /// The query was retired; its handles do nothing any more.
    Retired {
        /// The query.
        query: String,
    },
    /// User code of the query failed.
    Poisoned {
        /// The query.
        query: String,
        /// The operator or stage in which it failed.
        operator: String,
        /// What happened there.
        failure: Failure,
    },
    /// A query that this one imports from ended: what was complete stays, nothing new will come.
    SourceEnded {
        /// This query.
        query: String,
        /// The source.
        source: String,
        /// How it ended.
        ending: Ending,
    },
    /// The engine has shut down, or is about to.
    Shutdown,
    /// The dataflow cannot be run; names the ports.
    Graph {
        /// The query.
        query: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The workers built different dataflows: the closure must not depend on the worker.
    Differs {
        /// The query.
        query: String,
    },
    /// The closure of an install panicked.
    InstallPanicked {
        /// The query.
        query: String,
        /// What the panic said.
        message: String,
    },
    /// The source of an import has ended or belongs to another engine.
    SourceGone {
        /// The query that was to be installed.
        query: String,
        /// The source.
        source: String,
    },
    /// The query is imported by others: retire them first, or all together with `retire_cascade`.
    Imported {
        /// The query.
        query: String,
        /// Those that import from it.
        by: Vec<String>,
    },
    /// The deadline passed first.
    Deadline {
        /// What was waited for.
        what: String,
    },
    /// A time before one that was given up: an input's time goes forward only.
    TimeWentBack {
        /// The time asked for.
        asked: String,
        /// The time it is at.
        at: String,
    },
    /// The queue is full: wait, or give the workers time.
    Full,
    /// It would block the worker that it waits for: call it from outside steps and install closures.
    WouldBlock {
        /// What was called.
        what: String,
    },
    /// History before `since` is compacted: hold it before you need it.
    Compacted {
        /// From here on it can be read.
        since: String,
    },
    /// The time is not complete yet: wait for it.
    NotYet {
        /// What is not beyond this frontier is complete.
        complete: String,
    },
    /// An accumulated diff does not fit its type.
    DiffOverflow,
}

impl Error {
    /// The error that an ended query gives.
    pub(crate) fn ended(query: &Query) -> Option<Error> {
        let name = query.name.clone();
        Some(match query.ending()? {
            Ending::Retired => Error::Retired { query: name },
            Ending::Poisoned { operator, failure } => Error::Poisoned { query: name, operator, failure },
            Ending::Source { query, ending } => Error::SourceEnded { query: name, source: query, ending: *ending },
            Ending::NotInstalled => Error::Differs { query: name },
            Ending::Shutdown => Error::Shutdown,
        })
    }

    /// Fails if the query has ended.
    pub(crate) fn check(query: &Query) -> Result<(), Error> {
        Error::ended(query).map_or(Ok(()), Err)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(text) => f.write_str(text),
            Error::NoSuchCore { core, usable } => {
                write!(f, "there is no core {core} that this process may use: name some of {usable:?}")
            }
            Error::CoreTwice { core } => write!(f, "core {core} is named twice: name another, or take one worker less"),
            Error::Retired { query } => write!(f, "query {query:?} was retired: drop its handles"),
            Error::Poisoned { query, operator, failure } => {
                write!(f, "query {query:?} ended, for its operator {operator:?} failed: {failure}")
            }
            Error::SourceEnded { query, source, ending } => write!(
                f,
                "query {query:?} gets nothing new, for {source:?}, from which it imports, ended ({ending:?}): retire it"
            ),
            Error::Shutdown => f.write_str("the engine has shut down: start another"),
            Error::Graph { query, reason } => write!(f, "query {query:?} cannot be run: {reason}"),
            Error::Differs { query } => write!(
                f,
                "the workers built different dataflows for query {query:?}: its closure must do the same on each"
            ),
            Error::InstallPanicked { query, message } => {
                write!(f, "the closure of query {query:?} panicked: {message}")
            }
            Error::SourceGone { query, source } => write!(
                f,
                "query {query:?} was not installed: {source:?}, from which it imports, has ended or is of another engine"
            ),
            Error::Imported { query, by } => {
                write!(f, "query {query:?} is imported by {by:?}: retire those first, or call retire_cascade")
            }
            Error::Deadline { what } => write!(f, "the deadline passed before {what}"),
            Error::TimeWentBack { asked, at } => {
                write!(f, "cannot go back to {asked}, it is at {at} already: use times at or after that")
            }
            Error::Full => f.write_str("the queue is full: wait until the workers have taken some of it"),
            Error::WouldBlock { what } => write!(
                f,
                "{what} would wait for the worker that runs it: call it outside of operators and install closures"
            ),
            Error::Compacted { since } => {
                write!(f, "history before {since} is compacted: read at a later time, or hold it earlier")
            }
            Error::NotYet { complete } => write!(f, "only what is not beyond {complete} is complete: wait for it"),
            Error::DiffOverflow => crate::order::DiffOverflow.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
