//! What is measured, apart from who is: every engine gets the very same updates, at the same moments, and its answers
//! are hashed in the same way.
//!
//! ```text
//! spec       a workload's name and parameters, as a command line gives them
//! distribution  which keys are updated how often
//! generate   numbers, keys and graphs: random access, by seed
//! open_loop  what is due when; latencies from the scheduled time
//! answer     a hash of a result, whatever its order
//! machine    pinning, memory, what others took of the processor meanwhile
//! files      published graphs, where they are at hand
//! report     what a run says, as one line of JSON
//! ```
#![forbid(unsafe_code)]

pub mod answer;
pub mod distribution;
pub mod files;
pub mod generate;
pub mod machine;
pub mod open_loop;
pub mod report;
pub mod spec;

pub use answer::Answer;
pub use distribution::Distribution;
pub use open_loop::OpenLoop;
pub use report::{Metric, Report, Unit};
pub use spec::{Spec, Workload};
