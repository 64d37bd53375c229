//! Operators: what dataflows are made of.
//!
//! Reading order: `collection` (stateless stages), `arrange` and `arranged`, `join`, `reduce` (driver) and `reduce_key`
//! (algorithm), `counting` (count, distinct, threshold), `variable` (loops), `publish` (sharing between dataflows),
//! `custom` (operators of your own). Next stop up: `client`.
#![forbid(unsafe_code)]

mod arrange;
mod arranged;
mod collection;
mod counting;
mod custom;
mod exchange;
mod history;
mod join;
mod joins;
mod publish;
mod reduce;
mod reduce_key;
mod total;
mod variable;

pub use arrange::{ArrangedByKey, ArrangedBySelf};
pub use arranged::Arranged;
pub(crate) use collection::owned;
pub use collection::{Chunk, Collection};
pub use custom::{Held, Notificator, OperatorBuilder, Session, UpdatesInput, UpdatesOutput};
pub use publish::{Imported, PublishedArrangement, PublishedStream};
pub use variable::Variable;
