//! kpg maintains indexed, multiversioned views of changing data ("shared arrangements"), and any number of dataflow
//! queries that share them, inside the process of a service.
//!
//! The modules, from the ground up, in the order in which a reader should meet them:
//!
//! - [`order`]: timestamps, their partial order, antichains; what diffs can do
//! - [`sync`]: the only atomics, locks and parking
//! - [`progress`]: which timestamps may still come, and where
//! - [`runtime`]: workers, what carries messages between them, commands
//! - [`dataflow`]: streams, ports, capabilities, nodes and stages
//! - [`trace`]: batches, the spine that merges them, handles, snapshots
//! - [`operators`]: what dataflows are made of
//! - [`client`]: engine, inputs, subscriptions, published arrangements; [`simulation`]
//!
//! A module imports only those above it in this list. Where bytes live is the package `kpg-arena`, how values lie
//! `kpg-columnar`, here as [`columnar`].
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(not(loom))]
pub mod client;
#[cfg(not(loom))]
pub mod dataflow;
#[cfg(not(loom))]
pub mod operators;
pub mod order;
pub mod progress;
pub mod runtime;
pub mod sync;
#[cfg(not(loom))]
pub mod trace;

pub use kpg_arena as arena;
pub use kpg_columnar as columnar;

#[cfg(not(loom))]
pub use client::{Error, simulation};

/// What a program that embeds kpg needs.
#[cfg(not(loom))]
pub mod prelude {
    pub use crate::client::{Changes, Config, Engine, Error, Input, Probe, Published, Query, Subscription};
    pub use crate::columnar::{Column, Columnar};
    pub use crate::dataflow::Scope;
    pub use crate::operators::{Arranged, Collection, Variable};
    pub use crate::order::{Antichain, Pair, Product, Timestamp};
    pub use crate::trace::{MergePolicy, Trace};
}
