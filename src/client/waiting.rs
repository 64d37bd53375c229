//! Waiting: blocking calls of clients, also on threads that own workers.
//!
//! A thread that owns workers (a host's, or a simulation's) steps them while it waits; from inside a step or an install
//! closure nothing may wait, and the call fails at once. All other threads sleep on the monitor of what they wait for.
#![forbid(unsafe_code)]

use super::error::Error;
use crate::runtime::{Clock, Mailbox, Worker};
use crate::sync::Monitor;
use std::cell::RefCell;
use std::ptr;
use std::rc::{Rc, Weak};
use std::sync::{self, Arc};
use std::time::{Duration, Instant};

/// A worker that this thread owns, and which of its engine's it is, which can be told while it steps.
struct Owned {
    worker: Weak<RefCell<Worker>>,
    index: usize,
    mailboxes: sync::Weak<[Arc<Mailbox>]>,
}

thread_local! {
    static OWNED: RefCell<Vec<Owned>> = const { RefCell::new(Vec::new()) };
}

/// Registers a worker as owned by this thread.
pub(crate) fn own(worker: &Rc<RefCell<Worker>>) {
    OWNED.with(|owned| {
        let mut owned = owned.borrow_mut();
        owned.retain(|owned| owned.worker.strong_count() > 0);
        let (index, mailboxes) = (worker.borrow().index(), Arc::downgrade(worker.borrow().mailboxes()));
        owned.push(Owned { worker: Rc::downgrade(worker), index, mailboxes });
    });
}

fn owned() -> Vec<Rc<RefCell<Worker>>> {
    OWNED.with(|owned| owned.borrow().iter().filter_map(|owned| owned.worker.upgrade()).collect())
}

/// The number of this thread's worker of the engine that has these mailboxes, if it owns just one.
pub(crate) fn own_index(mailboxes: &Arc<[Arc<Mailbox>]>) -> Option<usize> {
    OWNED.with(|owned| {
        let owned = owned.borrow();
        let mut here = owned.iter().filter(|owned| ptr::addr_eq(owned.mailboxes.as_ptr(), Arc::as_ptr(mailboxes)));
        let first = here.next()?;
        here.next().is_none().then_some(first.index)
    })
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

/// Steps each of the workers once, or as a simulation's schedule says: true iff there was, or may be, something to do.
pub(crate) fn step_round(workers: &[Rc<RefCell<Worker>>]) -> bool {
    let schedule = workers.iter().find_map(|worker| worker.borrow().schedule().cloned());
    let Some(schedule) = schedule else {
        return workers.iter().filter(|worker| worker.borrow_mut().step()).count() > 0;
    };
    let order = schedule.borrow_mut().round(workers.len());
    let mut busy = false;
    let mut left: Vec<bool> = vec![true; workers.len()];
    for index in order {
        left[index] = false;
        busy |= workers[index].borrow_mut().step();
    }
    if !busy {
        // Those that were left out, so that it is known whether all are idle.
        for index in (0..workers.len()).filter(|index| left[*index]) {
            busy |= workers[index].borrow_mut().step();
        }
    }
    busy || workers.iter().any(|worker| worker.borrow().has_incoming())
}

/// Steps the workers that this thread owns, while it waits.
pub(crate) struct Stepper<'a> {
    workers: Vec<Rc<RefCell<Worker>>>,
    clock: &'a Clock,
    deadline: Option<Instant>,
    idle: bool,
}

impl<'a> Stepper<'a> {
    /// For a wait until then.
    pub(crate) fn new(workers: Vec<Rc<RefCell<Worker>>>, clock: &'a Clock, deadline: Option<Instant>) -> Self {
        Stepper { workers, clock, deadline, idle: false }
    }

    /// Steps once, and rests a moment if no worker had anything to do: false iff it is no use to wait any longer. To be
    /// called after each look for what is waited for.
    ///
    /// In a simulation with a schedule nobody else does anything. So if it comes back from a look that found nothing, and
    /// the workers are idle still, that will be so until the deadline: time goes on to that, or, if there is none, for
    /// ever.
    pub(crate) fn step(&mut self) -> bool {
        if step_round(&self.workers) {
            self.idle = false;
        } else if !self.clock.is_simulated() {
            // Other threads may own the rest of the workers.
            std::thread::sleep(Duration::from_micros(20));
        } else if !self.workers.iter().any(|worker| worker.borrow().schedule().is_some()) {
            self.clock.pass(SIMULATED_REST);
        } else if std::mem::replace(&mut self.idle, true) {
            let Some(deadline) = self.deadline else { return false };
            self.clock.pass(deadline.saturating_duration_since(self.clock.now()));
        }
        !self.clock.is_past(self.deadline)
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
        Role::Owner(workers) => {
            let mut stepper = Stepper::new(workers, clock, deadline);
            loop {
                let more = stepper.step();
                if let Some(found) = look(&mut monitor.lock()) {
                    return found;
                }
                if !more {
                    return Err(late());
                }
            }
        }
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
