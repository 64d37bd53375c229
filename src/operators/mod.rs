//! Operators: what dataflows are made of.
//!
//! Reading order: `collection` (stateless stages), `arrange` and `arranged`, `join` and `reduce` (the drivers; the work is
//! in the directories of those names), `counting` (count, distinct, threshold), `variable` (loops), `publish` (sharing
//! between dataflows), `custom` (operators of your own). Next stop up: `client`.
//!
//! Streams of updates and arrangements are different types, so that taking one for the other does not compile:
//!
//! ```compile_fail,E0308
//! # use kpg::prelude::*;
//! # let engine = Engine::start(Config::default().workers(1))?;
//! engine.install("mixed", |scope| {
//!     let (_input, pairs) = scope.input::<(u64, u64)>();
//!     let arranged = pairs.arrange_by_key();
//!     arranged.join_core(&pairs, |key, a, b| Some((key, a, b))); // expected `&Arranged`
//! })?;
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]

mod arrange;
mod arranged;
mod collection;
mod counting;
mod custom;
mod exchange;
mod importers;
mod join;
mod joins;
mod outbox;
mod publish;
mod reduce;
mod total;
mod variable;

pub use arrange::{ArrangedByKey, ArrangedBySelf};
pub use arranged::Arranged;
pub(crate) use collection::owned;
pub use collection::{Chunk, Collection};
pub use custom::{Held, Notificator, OperatorBuilder, Session, UpdatesInput, UpdatesOutput};
pub use publish::{Holdable, Imported, PublishedArrangement, PublishedStream};
pub use variable::Variable;
