//! operators
#![forbid(unsafe_code)]
mod arranged;
mod collection;
mod history;
mod join;
mod reduce_key;
pub use arranged::Arranged;
pub use collection::{Chunk, Collection};
