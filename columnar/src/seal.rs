//! Sealing in slices: the parts of a column take their smallest encodings one after the other, so much at a time.
//!
//! ```text
//! (u64, String)    numbers │ bytes │ ends          three parts
//!                  done      half    not yet       what a sealer knows between two slices
//! ```
//! A part is an integer column (file `ints`) or a bitmap; all else is made of them. Until a part is done it stands as it
//! was built, and what it is turned into lies in the sealer: so a column can be read between slices, and one whose
//! sealing is given up, or gets no memory, is what it was.
use std::any::Any;

/// Where the sealing of a column stands; see [`Column::seal_in`](crate::Column::seal_in).
///
/// One sealer seals one column, or several that are walked in the same order each time. Between the slices nothing is
/// pushed to them.
#[derive(Default)]
pub struct Sealer {
    /// Parts that are sealed.
    done: usize,
    /// Parts that this walk has come to.
    met: usize,
    /// Values that may still be looked at or written.
    fuel: usize,
    /// What part `done` has come to.
    state: Option<Box<dyn Any + Send>>,
}

impl Sealer {
    /// A sealer that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A sealer that ends on its first walk.
    pub(crate) fn whole() -> Self {
        Sealer { fuel: usize::MAX, ..Self::default() }
    }

    /// Seals on, for `fuel` values looked at or written: `walk` calls [`Column::seal_in`](crate::Column::seal_in) of each
    /// column until one says that it is not done. Takes what was used from `fuel`; true once all is sealed.
    pub fn slice(&mut self, fuel: &mut usize, walk: impl FnOnce(&mut Self) -> bool) -> bool {
        self.met = 0;
        self.fuel = *fuel;
        let done = walk(self);
        *fuel = self.fuel;
        done
    }

    /// Passes a part that is done, or lets `seal` work on it, which is given what may be used and where the part's state
    /// is kept. True iff the part is done.
    pub(crate) fn part(&mut self, seal: impl FnOnce(&mut usize, &mut Option<Box<dyn Any + Send>>) -> bool) -> bool {
        if self.met == self.done {
            if !seal(&mut self.fuel, &mut self.state) {
                return false;
            }
            self.state = None;
            self.done += 1;
        }
        self.met += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traits::{Column, Columnar};

    type Row = (u64, String, Option<u32>, u64);

    fn rows(count: u64) -> <Row as Columnar>::Column {
        let mut column = <Row as Columnar>::Column::default();
        for i in 0..count {
            let name = "x".repeat(i as usize % 5);
            column.push((i * 3, &name, (i % 2 == 0).then_some(i as u32), crate::mix(i) % 1000));
        }
        column
    }

    #[test]
    fn a_slice_looks_at_no_more_than_its_fuel() {
        let (mut whole, mut sliced) = (rows(5000), rows(5000));
        whole.seal();
        let (mut sealer, mut slices) = (Sealer::new(), 0);
        loop {
            let mut fuel = 100;
            let done = sealer.slice(&mut fuel, |sealer| sliced.seal_in(sealer));
            assert!(done || fuel == 0);
            slices += 1;
            if done {
                break;
            }
        }
        // Each number is looked at once, and where it gets narrow written once.
        assert!((250..600).contains(&slices), "{slices} slices");
        assert_eq!(sliced.bytes(), whole.bytes());
        assert!((0..5000).all(|index| sliced.get(index) == whole.get(index)));
    }

    #[test]
    fn without_memory_it_is_what_it_was() {
        let arena = kpg_arena::Arena::new(kpg_arena::ArenaConfig::default());
        let _entered = arena.enter();
        for allocation in 1.. {
            let mut column = rows(1000);
            arena.fail_after(allocation);
            let mut sealer = Sealer::new();
            let sealed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                while !sealer.slice(&mut 64, |sealer| column.seal_in(sealer)) {}
            }));
            let untouched = arena.fails_in() > 0;
            arena.fail_after(0);
            column.check_invariants();
            let expected = rows(1000);
            assert!((0..1000).all(|index| column.get(index) == expected.get(index)));
            column.seal();
            column.check_invariants();
            if untouched {
                assert!(sealed.is_ok() && allocation > 3);
                return;
            }
        }
    }
}
