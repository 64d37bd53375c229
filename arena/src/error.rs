//! What can go wrong: no memory, or an arena that another thread has entered.
#![forbid(unsafe_code)]

use std::fmt;

/// An allocation that was refused. Nothing was changed by it.
///
/// The `try_` methods return it; the others unwind with it as payload
/// (`std::panic::resume_unwind(Box::new(out_of_memory))`, so no panic hook runs and nothing is printed).
/// Whoever catches the unwind finds it by `payload.downcast_ref::<OutOfMemory>()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The size of the block that was asked for, in bytes; `usize::MAX` if it can't be expressed.
    pub requested: usize,
    /// Bytes live at that moment in what refused.
    pub live: usize,
    /// The cap of what refused, in bytes, if it has one.
    pub cap: Option<usize>,
    /// The name of the arena or tag that refused.
    pub who: String,
    /// Why it refused.
    pub cause: Cause,
}

/// Why an allocation was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The arena's cap.
    ArenaCap,
    /// The tag's cap.
    TagCap,
    /// The system gave no memory; the error number.
    System(i32),
    /// No block can be that large.
    TooLarge,
    /// A test asked for it, by `Arena::fail_after`.
    Injected,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfMemory { requested, live, cap, who, cause } = self;
        write!(f, "out of memory: {who} has {live} bytes live")?;
        if let Some(cap) = cap {
            write!(f, " of at most {cap}")?;
        }
        write!(f, " and was asked for {requested} more; ")?;
        match cause {
            Cause::ArenaCap => f.write_str("raise the arena's cap, or hold less: drop queries, snapshots or history"),
            Cause::TagCap => f.write_str("raise the cap of this tag, or let its owner hold less"),
            Cause::System(errno) => {
                let reason = std::io::Error::from_raw_os_error(*errno);
                write!(f, "the system refused ({reason}): give the process more memory, or set a cap below what it has")
            }
            Cause::TooLarge => f.write_str("no block can be that large: look for a length computed wrongly"),
            Cause::Injected => f.write_str("a test injected this by Arena::fail_after"),
        }
    }
}

impl std::error::Error for OutOfMemory {}

/// The arena is entered by another thread just now. An arena serves one thread at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// The name of the arena.
    pub who: String,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is entered by another thread; drop that thread's guard before this thread enters it", self.who)
    }
}

impl std::error::Error for Busy {}
