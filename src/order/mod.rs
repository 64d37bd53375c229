//! Orders: the partially ordered times everything else is about.
//!
//! ```text
//! PartialOrder ── Lattice ── Timestamp        u64  u32  ()  Product<T, u32>  Pair<A, B>
//!       └── Antichain, MutableAntichain       minimal elements, plain and counted
//! Semigroup ── Monoid ── Abelian, Multiply    what diffs can do
//! ```
//!
//! A timestamp is written as at most [`MAX_COORDINATES`] `u64` coordinates and its partial order is that of the
//! coordinates; so the progress tracker needs no types. Next stop up: `progress`.
#![forbid(unsafe_code)]

mod antichain;
mod coords;
mod diff;
mod lattice;
mod product;
mod rep;

pub use antichain::{Antichain, MutableAntichain};
pub use coords::{Coords, MAX_COORDINATES, Timestamp};
pub use diff::{Abelian, DiffOverflow, Monoid, Multiply, Semigroup};
pub use lattice::{Lattice, PartialOrder};
pub use product::{Pair, Product};
pub use rep::rep;
