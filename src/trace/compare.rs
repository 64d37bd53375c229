//! Comparing stored values that live for different times.
#![forbid(unsafe_code)]

use super::Ref;
use kpg_columnar::Columnar;
use std::cmp::Ordering;

/// Compares two stored values that live for different times.
#[inline]
pub(crate) fn compare<C: Columnar>(a: Ref<'_, C>, b: Ref<'_, C>) -> Ordering {
    C::reborrow(a).cmp(&C::reborrow(b))
}
