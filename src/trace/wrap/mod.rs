//! Views of cursors, batches and traces that copy nothing.
//!
//! Each kind has three types, one a layer, and `new` on the batch's, for what an arrangement delivers:
//!
//! | view | shows |
//! |---|---|
//! | `enter` | each time with a loop's round 0 |
//! | `filter` | the (key, val) that a predicate admits |
//! | `negate` | each diff negated |
//! | `as_of` | each time joined with one time |
#![forbid(unsafe_code)]

mod as_of;
mod enter;
mod filter;
mod negate;

pub use as_of::{AsOfBatch, AsOfCursor, AsOfTrace};
pub use enter::{EnterBatch, EnterCursor, EnterTrace};
pub use filter::{FilterBatch, FilterCursor, FilterTrace};
pub use negate::{NegateBatch, NegateCursor, NegateTrace};

/// The methods of `Cursor` that a view passes on as they are.
macro_rules! pass_cursor {
    ($($method:ident),*) => { $( pass_cursor!(@ $method); )* };
    (@ key) => { #[inline] fn key(&self) -> Option<Ref<'a, Self::Key>> { self.inner.key() } };
    (@ val) => { #[inline] fn val(&self) -> Option<Ref<'a, Self::Val>> { self.inner.val() } };
    (@ step_key) => { #[inline] fn step_key(&mut self) { self.inner.step_key() } };
    (@ seek_key) => { #[inline] fn seek_key(&mut self, key: Ref<'_, Self::Key>) { self.inner.seek_key(key) } };
    (@ step_val) => { #[inline] fn step_val(&mut self) { self.inner.step_val() } };
    (@ seek_val) => { #[inline] fn seek_val(&mut self, val: Ref<'_, Self::Val>) { self.inner.seek_val(val) } };
    (@ rewind_vals) => { #[inline] fn rewind_vals(&mut self) { self.inner.rewind_vals() } };
    (@ position) => { #[inline] fn position(&self) -> usize { self.inner.position() } };
    (@ time_count) => { #[inline] fn time_count(&self) -> usize { self.inner.time_count() } };
    (@ val_position) => { #[inline] fn val_position(&self) -> usize { self.inner.val_position() } };
    (@ resume) => {
        #[inline]
        fn resume(&mut self, position: usize, val_position: usize) { self.inner.resume(position, val_position) }
    };
}
use pass_cursor;

/// What `Trace` says of registration, passed on as it is.
macro_rules! pass_registration {
    () => {
        fn set_since(&mut self, since: &Antichain<Self::Time>) {
            self.inner.set_since(since)
        }
        fn bind_since(&mut self, frontier: Rc<dyn Fn() -> Antichain<Self::Time>>) {
            self.inner.bind_since(frontier)
        }
        fn set_cut(&mut self, cut: &Antichain<Self::Time>) {
            self.inner.set_cut(cut)
        }
    };
}
use pass_registration;

#[cfg(test)]
mod tests;
