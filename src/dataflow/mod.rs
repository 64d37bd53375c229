//! Dataflow: streams, ports, capabilities, nodes and stages; one dataflow as one worker runs it.
//!
//! Reading order: `scope` (how it is built), `edge` (how messages go), `capability` and `node` (what a node sees),
//! `run` (how it is stepped), `install` (what workers share meanwhile). Next stop up: `trace`.
#![forbid(unsafe_code)]

mod capability;
mod core;
mod doze;
mod edge;
mod install;
mod node;
mod run;
mod scope;
mod updates;

pub use capability::{Capability, CapabilitySet, NotHeld, Token};
pub(crate) use core::Core;
pub use core::Stamp;
pub(crate) use doze::ImportSource;
pub(crate) use edge::Outlet;
pub use edge::Payload;
pub use install::{Agreement, HistoryHold, InstallFault, InstallShared, SharedHandle, TakeHold};
pub(crate) use node::{Closure, Node};
pub use node::{Fuel, InputPort, OutgoingStamp, OutputPort, QUANTUM, Stamped};
pub(crate) use run::Dataflow;
pub(crate) use scope::{Build, NodeBuilder};
pub use scope::{Interest, Scope, Stream};
pub use updates::Updates;
