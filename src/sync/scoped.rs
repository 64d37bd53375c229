//! The gate: runs a borrowed closure on other threads, and returns only when none of them can touch it any more.
//!
//! ```text
//!   run ──publish──▶ Arc<ScopedCall> ──▶ workers, each: enter
//!                                          gate open?  inside += 1, passed += 1 ─▶ f(&c) ─▶ inside -= 1
//!                                          closed?     never touches f
//!   run waits until (all passed, or closed) and inside = 0; a guard does so if `wait` unwinds
//! ```
//!
//! Why the erased lifetime is sound: `f` is called only between the two changes of `inside`, both under the lock, the
//! first only while the gate is open. `run` borrows `f` for its whole duration; before it returns or unwinds, its
//! guard closes the gate under the lock and waits for `inside = 0`. From then on no one gets in, and whoever was in has
//! done its last look at `f` before the unlock that the guard's lock has seen. A copy of the `Arc` that lives longer holds
//! a dangling pointer that nobody follows.
//!
//! Next stop: `install` in `client`.

use super::monitor::{Monitor, MonitorGuard};
use super::shim::{Arc, model_failed, mutant};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

type Payload = Box<dyn Any + Send>;

struct Gate {
    /// Who may pass in all.
    participants: usize,
    /// Who has entered, 0..=participants.
    passed: usize,
    /// Who is between entering and leaving.
    inside: usize,
    closed: bool,
    /// The first panic.
    payload: Option<Payload>,
}

impl Gate {
    /// Whether nobody will enter any more.
    fn is_done(&self) -> bool {
        self.closed || self.passed == self.participants
    }

    /// Whether all have entered and left.
    fn is_complete(&self) -> bool {
        self.passed == self.participants && self.inside == 0
    }
}

/// One call of a borrowed closure by several threads.
pub struct ScopedCall<C: ?Sized> {
    gate: Monitor<Gate>,
    /// Lives until `run` returns.
    f: *const (dyn Fn(&C) + Sync),
}

// SAFETY: the closure is `Sync`, so it may be called from any thread; while it may be called it lives, see above.
unsafe impl<C: ?Sized> Send for ScopedCall<C> {}
// SAFETY: as above; the rest is in a monitor.
unsafe impl<C: ?Sized> Sync for ScopedCall<C> {}

/// What came of `enter`.
#[derive(Debug)]
pub enum Entered {
    /// The closure ran.
    Ran,
    /// The gate was closed; the closure was not touched.
    Closed,
    /// The closure panicked, with this text (as a `String`) where it had one. The first payload itself goes to `run`.
    Panicked(Box<dyn Any + Send>),
}

/// What came of `run`.
#[derive(Debug)]
pub enum Outcome {
    /// All participants ran the closure.
    Completed,
    /// The gate was closed before all had entered; so many ran the closure.
    Closed {
        /// Participants that ran it.
        ran: usize,
    },
    /// A participant panicked in the closure: the payload of the first.
    Panicked(Box<dyn Any + Send>),
}

/// Closes the gate and waits until nobody is inside, however `run` ends.
struct Leave<'a, C: ?Sized>(&'a ScopedCall<C>);

impl<C: ?Sized> Drop for Leave<'_, C> {
    fn drop(&mut self) {
        if model_failed() {
            return;
        }
        let gate = self.0.shut();
        drop(self.0.emptied(gate));
    }
}

impl<C: ?Sized> ScopedCall<C> {
    /// Has `f` run by `participants` threads, each once.
    ///
    /// `publish` hands the call to them; each calls [`enter`](ScopedCall::enter). Then `wait` is called over and over
    /// until all have passed; it blocks in [`wait_until`](ScopedCall::wait_until) or makes the participants go on;
    /// when it returns false, the gate is closed. So does a panic of `f` or of `wait`. Whoever is inside then is waited
    /// for, blocking: `f` must come to its end by itself.
    pub fn run(
        participants: usize,
        f: &(dyn Fn(&C) + Sync),
        publish: impl FnOnce(Arc<ScopedCall<C>>),
        wait: &mut dyn FnMut(&ScopedCall<C>) -> bool,
    ) -> Outcome {
        let f: *const (dyn Fn(&C) + Sync + '_) = f;
        // SAFETY: only the lifetime changes. `Leave` sees to it that `f` is not called once it may have ended.
        let f = unsafe { std::mem::transmute::<*const (dyn Fn(&C) + Sync + '_), *const (dyn Fn(&C) + Sync)>(f) };
        let gate = Gate { participants, passed: 0, inside: 0, closed: false, payload: None };
        let call = Arc::new(ScopedCall { gate: Monitor::new(gate), f });
        let leave = Leave(&*call);
        publish(call.clone());
        loop {
            let gate = call.gate.lock();
            if gate.closed || gate.is_complete() {
                break;
            }
            drop(gate);
            if !wait(&call) {
                break;
            }
        }
        drop(leave);
        let mut gate = call.gate.lock();
        match gate.payload.take() {
            Some(payload) => Outcome::Panicked(payload),
            None if gate.passed == participants => Outcome::Completed,
            None => Outcome::Closed { ran: gate.passed },
        }
    }

    /// Passes the gate and runs the closure, unless the gate is closed.
    pub fn enter(&self, argument: &C) -> Entered {
        let mut gate = self.gate.lock();
        if gate.is_done() {
            return Entered::Closed;
        }
        gate.passed += 1;
        gate.inside += 1;
        drop(gate);
        let result = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `inside` counts this thread and the gate was open, so `run` has not returned and does not until
            // this thread has counted itself out.
            let f = unsafe { &*self.f };
            f(argument)
        }));
        let mut gate = self.gate.lock();
        gate.inside -= 1;
        let Err(payload) = result else {
            drop(gate);
            self.gate.notify_all();
            return Entered::Ran;
        };
        gate.closed = true;
        let text = text(&*payload);
        let other = match gate.payload {
            None => gate.payload.replace(payload),
            Some(_) => Some(payload),
        };
        drop(gate);
        self.gate.notify_all();
        // Last, since a payload is foreign code, and its drop may panic too.
        drop(other);
        Entered::Panicked(Box::new(text))
    }

    /// Closes the gate: who has not entered never will. From any thread.
    pub fn close(&self) {
        drop(self.shut());
        self.gate.notify_all();
    }

    /// Whether nobody will enter any more: closed, or all have.
    pub fn is_closed(&self) -> bool {
        self.gate.lock().is_done()
    }

    /// Blocks until something has changed or the deadline has passed; returns at once if all have passed and left, or
    /// the gate is closed. Returns false if the deadline has passed. For `run`'s `wait`.
    pub fn wait_until(&self, deadline: Option<Instant>) -> bool {
        let gate = self.gate.lock();
        if gate.closed || gate.is_complete() {
            return true;
        }
        let (_gate, timed_out) = self.gate.wait(gate, deadline);
        !timed_out
    }

    fn shut(&self) -> MonitorGuard<'_, Gate> {
        let mut gate = self.gate.lock();
        gate.closed = true;
        gate
    }

    /// Waits until nobody is inside.
    fn emptied<'a>(&'a self, mut gate: MonitorGuard<'a, Gate>) -> MonitorGuard<'a, Gate> {
        while gate.inside > 0 && !mutant("scoped.inside") {
            gate = self.gate.wait(gate, None).0;
        }
        gate
    }
}

impl<C: ?Sized> fmt::Debug for ScopedCall<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedCall").finish_non_exhaustive()
    }
}

/// What a panic said.
fn text(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without text".to_owned(),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::{Mutex, spsc};
    use std::time::Duration;

    /// `run` with `threads` threads that enter with their index.
    fn run(
        threads: usize,
        participants: usize,
        f: &(dyn Fn(&usize) + Sync),
        wait: &mut dyn FnMut(&ScopedCall<usize>) -> bool,
    ) -> (Outcome, Vec<Entered>) {
        let mut outcome = None;
        let mut entered = Vec::new();
        std::thread::scope(|scope| {
            let mut handles = Vec::new();
            let publish = |call: Arc<ScopedCall<usize>>| {
                handles.extend((0..threads).map(|index| {
                    let call = call.clone();
                    scope.spawn(move || call.enter(&index))
                }));
            };
            outcome = Some(ScopedCall::run(participants, f, publish, wait));
            entered.extend(handles.into_iter().map(|handle| handle.join().expect("the thread ends well")));
        });
        (outcome.expect("run returned"), entered)
    }

    #[test]
    fn all_run() {
        let seen = Mutex::new(Vec::new());
        let (outcome, entered) = run(4, 4, &|&index| seen.lock().push(index), &mut |call| call.wait_until(None));
        assert!(matches!(outcome, Outcome::Completed), "{outcome:?}");
        assert!(entered.iter().all(|entered| matches!(entered, Entered::Ran)));
        let mut seen = seen.into_inner();
        seen.sort();
        assert_eq!(seen, [0, 1, 2, 3]);
    }

    #[test]
    fn a_deadline_closes() {
        let (entered, mut deadline) = (Mutex::new(false), None);
        // From when one is inside, however long its thread takes to start.
        let (outcome, _) = run(1, 2, &|_| *entered.lock() = true, &mut |call| {
            if !*entered.lock() {
                std::thread::yield_now();
                return true;
            }
            call.wait_until(Some(*deadline.get_or_insert_with(|| Instant::now() + Duration::from_millis(20))))
        });
        assert!(matches!(outcome, Outcome::Closed { ran: 1 }), "{outcome:?}");
    }

    #[test]
    fn a_panic_closes() {
        let f = |&index: &usize| {
            if index == 1 {
                std::panic::resume_unwind(Box::new("one"))
            }
        };
        let (outcome, entered) = run(2, 3, &f, &mut |call| call.wait_until(None));
        let Outcome::Panicked(payload) = outcome else { panic!("{outcome:?}") };
        assert_eq!(payload.downcast_ref(), Some(&"one"));
        let Entered::Panicked(text) = &entered[1] else { panic!("{entered:?}") };
        assert_eq!(text.downcast_ref(), Some(&"one".to_owned()));
    }

    #[test]
    fn close_and_enter_too_late() {
        let (mut sender, mut receiver) = spsc::channel();
        let publish = |call: Arc<ScopedCall<()>>| {
            call.close();
            sender.send(call);
        };
        let outcome = ScopedCall::run(1, &|_| unreachable!("it is closed"), publish, &mut |_| true);
        assert!(matches!(outcome, Outcome::Closed { ran: 0 }));
        let call = receiver.receive().expect("it was published");
        assert!(call.is_closed() && matches!(call.enter(&()), Entered::Closed));
        assert!(matches!(ScopedCall::<()>::run(0, &|_| (), |_| (), &mut |_| false), Outcome::Completed));
    }

    /// `wait` panics while a participant is inside: the borrow still ends after it.
    #[test]
    fn wait_unwinds() {
        let inside = Monitor::new(0);
        let mut thread = None;
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let slow = |_: &()| {
                *inside.lock() = 1;
                inside.notify_all();
                std::thread::sleep(Duration::from_millis(20));
                *inside.lock() = 2;
            };
            let publish = |call: Arc<ScopedCall<()>>| thread = Some(std::thread::spawn(move || call.enter(&())));
            ScopedCall::run(2, &slow, publish, &mut |_| {
                let mut guard = inside.lock();
                while *guard == 0 {
                    guard = inside.wait(guard, None).0;
                }
                drop(guard);
                std::panic::resume_unwind(Box::new("wait"))
            })
        }));
        assert!(unwound.is_err());
        assert_eq!(*inside.lock(), 2);
        assert!(matches!(thread.expect("it was published").join().expect("the thread ends well"), Entered::Ran));
    }

    /// The caller's thread is itself a participant.
    #[test]
    fn steps_itself() {
        let count = Mutex::new(0);
        let outcome = ScopedCall::run(2, &|_: &()| *count.lock() += 1, |_| (), &mut |call| {
            matches!(call.enter(&()), Entered::Ran)
        });
        assert!(matches!(outcome, Outcome::Completed));
        assert_eq!(count.into_inner(), 2);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::shim::{UnsafeCell, bound, with_mutant};
    use super::*;
    use loom::thread;

    /// What the closure borrows: loom sees a look at it that is not over when `run` returns.
    struct Borrowed(UnsafeCell<usize>);
    // SAFETY: for the model only; loom checks each access.
    unsafe impl Send for Borrowed {}
    // SAFETY: as above.
    unsafe impl Sync for Borrowed {}

    /// The closure lives as long as the model, so that a mutant breaks no real memory.
    fn gate(participants: usize, close: bool, give_up: bool) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = if participants > 1 { bound(2, Some(3)) } else { None };
        builder.check(move || {
            let borrowed = Arc::new(Borrowed(UnsafeCell::new(0)));
            let theirs = borrowed.clone();
            let f = move |_: &()| theirs.0.with(|_| ());
            let mut threads = Vec::new();
            let publish = |call: Arc<ScopedCall<()>>| {
                for index in 0..participants {
                    let call = call.clone();
                    threads.push(thread::spawn(move || {
                        if close && index == 0 {
                            call.close();
                        }
                        let _ = call.enter(&());
                    }));
                }
            };
            let outcome = ScopedCall::run(participants, &f, publish, &mut |call| !give_up && call.wait_until(None));
            borrowed.0.with_mut(|_| ());
            assert!(close || give_up || matches!(outcome, Outcome::Completed));
            threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
        });
    }

    #[test]
    fn one_enters() {
        gate(1, false, false);
    }

    #[test]
    fn two_enter() {
        gate(2, false, false);
    }

    #[test]
    fn closed_meanwhile() {
        gate(2, true, false);
    }

    #[test]
    fn given_up() {
        gate(1, false, true);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_inside() {
        with_mutant("scoped.inside", || gate(1, false, true));
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn mutant_waiting() {
        with_mutant("monitor.waiting", || gate(1, false, false));
    }
}
