//! How eagerly a spine merges.
#![forbid(unsafe_code)]

/// How much merging each new batch pays for, and how much an idle worker does at a time. Units of fuel: about one
/// update read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MergePolicy {
    /// Fuel paid to each open merge for each update inserted; at least [`MergePolicy::least`].
    pub coefficient: usize,
    /// How many batches of a class are merged at once, from 2 to [`MergePolicy::MOST`]. More write each update less
    /// often, and leave more batches to read.
    pub fan_out: usize,
    /// Fuel an idle worker gives at a time, before it looks for something better to do; 0: idle workers do not merge.
    pub idle_fuel: usize,
    /// When nothing else is due, an idle worker merges two neighbours too whose sizes differ by no more than this factor: what rests
    /// comes down to few batches, and an update is written anew up to so often in each order of that factor. While it
    /// is merged it takes its memory twice, which others may be refused then, under a cap. 0, the default: it does not.
    pub idle_ratio: usize,
    /// Past this debt of merges that could run now, an arrangement should yield before it seals.
    pub debt_bound: usize,
}

impl MergePolicy {
    /// The laziest coefficient that keeps the number of batches logarithmic, at a fan-out of 2; see [`MergePolicy::least`].
    pub const LEAST: usize = 5;
    /// The greatest fan-out.
    pub const MOST: usize = 16;

    /// The laziest coefficient that keeps the number of batches logarithmic, at this fan-out `f`.
    ///
    /// A class is the logarithm to base f of a size. When f entries of class c or above are there, they are merged: of
    /// class c fewer than f·f^(c+1) updates are read, and a quarter more is the sealing. The next merge of that class falls
    /// due when f more entries of it have come, f·f^c updates at least, or, where those merged were uneven and some were left,
    /// half as many: 1.25·f·f^(c+1) / (f·f^c / 2) = 2.5·f for each of these end it before.
    pub const fn least(&self) -> usize {
        (Self::LEAST * self.effective_fan_out()).div_ceil(2)
    }
    /// The fan-out, within its bounds.
    pub(crate) const fn effective_fan_out(&self) -> usize {
        match self.fan_out {
            0 | 1 => 2,
            fan_out if fan_out > Self::MOST => Self::MOST,
            fan_out => fan_out,
        }
    }
    /// The class of a size: its logarithm to base of the fan-out.
    pub(crate) fn class(&self, weight: usize) -> usize {
        let weight = weight.max(1);
        match self.effective_fan_out() {
            2 => weight.ilog2() as usize,
            fan_out => weight.ilog(fan_out) as usize,
        }
    }

    /// Merges as little at a time as keeps the number of batches logarithmic: short steps.
    pub const fn lazy() -> Self {
        MergePolicy { coefficient: Self::LEAST, fan_out: 2, idle_fuel: 2_000, idle_ratio: 0, debt_bound: 1 << 26 }
    }
    /// Merges whatever can be merged at once: few batches, long steps.
    pub const fn eager() -> Self {
        MergePolicy { coefficient: 1 << 24, fan_out: 2, idle_fuel: 1 << 24, idle_ratio: 0, debt_bound: 1 << 26 }
    }
    /// Fuel for each open merge when `weight` comes in.
    pub(crate) fn fuel(&self, weight: usize) -> isize {
        let fuel = self.coefficient.max(self.least()).saturating_mul(weight).saturating_add(16);
        fuel.min(isize::MAX as usize / 4) as isize
    }
}

impl Default for MergePolicy {
    fn default() -> Self {
        MergePolicy { coefficient: 8, ..Self::lazy() }
    }
}
