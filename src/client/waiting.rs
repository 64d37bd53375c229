//! Waiting: blocking calls of clients, also on threads that own workers.
//!
//! A thread that owns workers (a host's, or a simulation's) steps them while it waits; from inside a step or an install
//! closure nothing may wait, and the call fails at once. All other threads sleep on the monitor of what they wait for.
#![forbid(unsafe_code)]

use super::error::Error;
use crate::runtime::{Clock, Worker};
use crate::sync::Monitor;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

thread_local! {
    static OWNED: RefCell<Vec<Weak<RefCell<Worker>>>> = const { RefCell::new(Vec::new()) };
}

/// Registers a worker as owned by this thread.
pub(crate) fn own(worker: &Rc<RefCell<Worker>>) {
    OWNED.with(|owned| {
        let mut owned = owned.borrow_mut();
        owned.retain(|worker| worker.strong_count() > 0);
        owned.push(Rc::downgrade(worker));
    });
}

fn owned() -> Vec<Rc<RefCell<Worker>>> {
    OWNED.with(|owned| owned.borrow().iter().filter_map(Weak::upgrade).collect())
}

/// What this thread may do while it waits.
pub(crate) enum Role {
    /// Sleep.
    Client,
    /// Step these.
    Owner(Vec<Rc<RefCell<Worker>>>),
    /// Nothing: it is inside a step.
    Inside,
}

/// What this thread may do while it waits.
pub(crate) fn role() -> Role {
    let workers = owned();
    if workers.is_empty() {
        Role::Client
    } else if workers.iter().any(|worker| worker.try_borrow_mut().is_err()) {
        Role::Inside
    } else {
        Role::Owner(workers)
    }
}

/// Fails if this thread is inside a step.
pub(crate) fn check_may_wait(what: &str) -> Result<(), Error> {
    match role() {
        Role::Inside => Err(Error::WouldBlock { what: what.to_string() }),
        _ => Ok(()),
    }
}

/// With nothing to do, so much simulated time passes until the next look.
const SIMULATED_REST: Duration = Duration::from_micros(100);

/// Steps each of the workers once, and rests a moment if none had anything to do.
pub(crate) fn step_all(workers: &[Rc<RefCell<Worker>>], clock: &Clock) {
    let mut busy = false;
    for worker in workers {
        busy |= worker.borrow_mut().step();
    }
    if busy {
        return;
    }
    if clock.is_simulated() {
        clock.pass(SIMULATED_REST);
    } else {
        // Other threads may own the rest of the workers.
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// Waits until `look` gives something. With a deadline that has come it looks once, and steps nobody.
///
/// # Errors
/// What `look` gives; `Deadline`; `WouldBlock` from inside a step, if there is time and `look` does not give something
/// at once.
pub(crate) fn wait<S, O>(
    clock: &Clock,
    monitor: &Monitor<S>,
    deadline: Option<Instant>,
    what: &str,
    mut look: impl FnMut(&mut S) -> Option<Result<O, Error>>,
) -> Result<O, Error> {
    if let Some(found) = look(&mut monitor.lock()) {
        return found;
    }
    let late = || Error::Deadline { what: what.to_string() };
    if clock.is_past(deadline) {
        return Err(late());
    }
    match role() {
        Role::Inside => Err(Error::WouldBlock { what: format!("waiting until {what}") }),
        Role::Owner(workers) => loop {
            step_all(&workers, clock);
            if let Some(found) = look(&mut monitor.lock()) {
                return found;
            }
            if clock.is_past(deadline) {
                return Err(late());
            }
        },
        Role::Client => {
            let deadline = clock.by_system(deadline);
            let mut state = monitor.lock();
            loop {
                if let Some(found) = look(&mut state) {
                    return found;
                }
                let (guard, timed_out) = monitor.wait(state, deadline);
                state = guard;
                if timed_out {
                    return look(&mut state).unwrap_or_else(|| Err(late()));
                }
            }
        }
    }
}
