//! How many there are of what comes out, and the sum of a number of each.
#![forbid(unsafe_code)]

use differential_dataflow::difference::Semigroup;
use differential_dataflow::{Data, VecCollection};
use std::cell::Cell;
use std::rc::Rc;
use timely::progress::Timestamp;

/// Of one worker.
#[derive(Clone, Default)]
pub struct Sums(Rc<Cell<(i64, i64)>>);

impl Sums {
    /// As of what has come so far.
    pub fn get(&self) -> (i64, i64) {
        self.0.get()
    }
    /// Adds up what passes.
    pub fn watch<'s, T, D, R>(
        &self,
        collection: VecCollection<'s, T, D, R>,
        number: impl Fn(&D) -> i64 + 'static,
    ) -> VecCollection<'s, T, D, R>
    where
        T: Timestamp,
        D: Data,
        R: Semigroup + Copy + TryInto<i64> + 'static,
    {
        let sums = Rc::clone(&self.0);
        collection.inspect_core(move |event| {
            let Ok((_, updates)) = event else { return };
            let (mut count, mut sum) = sums.get();
            for (datum, _, diff) in updates {
                let diff: i64 = (*diff).try_into().unwrap_or_else(|_| panic!("a diff of more than 64 bits"));
                (count, sum) = (count + diff, sum + diff * number(datum));
            }
            sums.set((count, sum));
        })
    }
}

/// What all workers have.
pub fn total(all: impl IntoIterator<Item = (i64, i64)>) -> (i64, i64) {
    all.into_iter().fold((0, 0), |total, one| (total.0 + one.0, total.1 + one.1))
}
