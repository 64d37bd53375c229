//! Merges that got no memory: they wait, and are tried again now and then.
//!
//! ```text
//! denied ─▶ 1 turn off ─▶ tried, denied ─▶ 2 off ─▶ tried, denied ─▶ 4 off … 1024 off ─▶ tried, done ─▶ forgotten
//! ```
//! A turn is a batch inserted or a call of an idle worker. Invariant: what waits is no debt, and no worker stays awake
//! for it. By class, so that small merges go on while a large one waits. Used by `spine`.
#![forbid(unsafe_code)]

use kpg_arena::OutOfMemory;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// So many doublings at most: a merge that is denied for long is tried each 1024th turn.
const DOUBLINGS: u32 = 10;

#[derive(Copy, Clone, Default)]
struct Wait {
    // How often it was denied in a row.
    times: u32,
    // Turns until it is tried again.
    turns: u32,
}

/// For each class, whether its merge waits for memory.
#[derive(Default)]
pub(super) struct Denied {
    waits: Vec<Wait>,
    count: u64,
}

impl Denied {
    /// A turn has passed.
    pub fn turn(&mut self) {
        self.waits.iter_mut().for_each(|wait| wait.turns = wait.turns.saturating_sub(1));
    }
    /// Whether a merge of `class` is not to be tried now.
    pub fn waits(&self, class: usize) -> bool {
        self.waits.get(class).is_some_and(|wait| wait.turns > 0)
    }
    /// A merge of `class` was denied.
    pub fn deny(&mut self, class: usize) {
        if self.waits.len() <= class {
            self.waits.resize(class + 1, Wait::default());
        }
        let wait = &mut self.waits[class];
        wait.turns = 1 << wait.times.min(DOUBLINGS);
        wait.times += 1;
        self.count += 1;
    }
    /// A merge of `class` has ended.
    pub fn forgive(&mut self, class: usize) {
        if let Some(wait) = self.waits.get_mut(class) {
            *wait = Wait::default();
        }
    }
    /// Classes whose merge waits, or was denied when it was last tried.
    pub fn waiting(&self) -> usize {
        self.waits.iter().filter(|wait| wait.times > 0).count()
    }
    /// How often a merge was denied so far.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// What `call` gives, or why it gave nothing; no panic goes on by itself, so that the caller can undo first.
pub(super) fn granted<R>(call: impl FnOnce() -> R) -> Result<R, Refusal> {
    catch_unwind(AssertUnwindSafe(call))
        .map_err(|payload| if payload.is::<OutOfMemory>() { Refusal::Memory } else { Refusal::Panic(payload) })
}

/// Why a piece of a merge did not end.
pub(super) enum Refusal {
    /// It got no memory.
    Memory,
    /// The user's code panicked.
    Panic(Box<dyn std::any::Any + Send>),
}

impl Refusal {
    /// Goes on with a panic that is not about memory.
    pub fn raise_others(self) {
        if let Refusal::Panic(payload) = self {
            resume_unwind(payload);
        }
    }
}
