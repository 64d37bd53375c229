//! trace
#![forbid(unsafe_code)]
mod traits;
pub use traits::{Batch, Cursor, Delivery, Ref, Trace};
