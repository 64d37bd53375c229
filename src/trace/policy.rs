//! How eagerly a spine merges.
#![forbid(unsafe_code)]

/// How much merging each new batch pays for, and how much an idle worker does at a time. Units of fuel: about one
/// update read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MergePolicy {
    /// Fuel paid to each open merge for each update inserted; at least [`MergePolicy::LEAST`].
    pub coefficient: usize,
    /// Fuel an idle worker gives at a time.
    pub idle_fuel: usize,
    /// Past this debt of merges that could run now, an arrangement should yield before it seals.
    pub debt_bound: usize,
}

impl MergePolicy {
    /// The laziest coefficient that keeps the number of batches logarithmic.
    ///
    /// Two entries are merged when the older one's class (the logarithm of its size) is not above the newer one's, so
    /// a merge of class c reads fewer than 2·2^(c+1) updates, and the next one of that class falls due when at least
    /// 2^c more have come. 2·2^(c+1) / 2^c = 4 for each of these end the reading before, and a quarter more the sealing.
    pub const LEAST: usize = 5;

    /// Merges as little at a time as keeps the number of batches logarithmic: short steps.
    pub const fn lazy() -> Self {
        MergePolicy { coefficient: Self::LEAST, idle_fuel: 10_000, debt_bound: 1 << 26 }
    }
    /// Merges whatever can be merged at once: few batches, long steps.
    pub const fn eager() -> Self {
        MergePolicy { coefficient: 1 << 24, idle_fuel: 1 << 24, debt_bound: 1 << 26 }
    }
    /// Fuel for each open merge when `weight` comes in.
    pub(crate) fn fuel(&self, weight: usize) -> isize {
        let fuel = self.coefficient.max(Self::LEAST).saturating_mul(weight).saturating_add(16);
        fuel.min(isize::MAX as usize / 4) as isize
    }
}

impl Default for MergePolicy {
    fn default() -> Self {
        MergePolicy { coefficient: 8, ..Self::lazy() }
    }
}
